# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What cases with an NFS 4.2 server share.  They are skipped where there can be none.

[ "$(id -u)" = 0 ] || skip "only root can have virtual nodes in the virtual machine"
command -v exportfs >/dev/null && command -v rpc.nfsd >/dev/null || skip "the NFS server is not installed (Debian: nfs-kernel-server)"

# nfs_vm N: run the commands from standard input in a virtual machine with N nodes on NFS.
nfs_vm() {
    {
        printf '%s\n' 'set -eu' "$(vm_environment)" 'export CASE_DIR=/tmp/case VCLUSTER_DIR=/tmp/vcluster' 'mkdir -p /tmp/case /tmp/crypt' \
            '. "$SRC/tests/lib.sh"' '. "$SRC/tests/io/nfs_up.sh"' "nfs_up $1"
        cat
    } > "$CASE_DIR/job"
    in_vm "$CASE_DIR/job"
}

# nfs_up N: there, N virtual nodes that mount the server's ext4 at /mnt/shared, and another one at /mnt/squash, where root is
# nobody.  Each node has a client of its own, since the server sees their names.
nfs_up() {
    local switch node clients
    modprobe -a nfsd nfs nfsv4 brd ext4 veth bridge
    mkdir -p /srv/x /mnt/shared /mnt/squash /run/rpcbind /var/lib/nfs/rpc_pipefs
    mkfs.ext4 -q /dev/ram0 && mount /dev/ram0 /srv/x
    mkdir /srv/x/squash
    mkfs.ext4 -q /dev/ram1 && mount /dev/ram1 /srv/x/squash
    mount -t nfsd nfsd /proc/fs/nfsd 2>/dev/null || true
    vcluster up "$1" --slots 1
    switch=$(cut -d' ' -f1 "$VCLUSTER_DIR/switch.holder")
    ip link add nfs0 type veth peer name nfs1 netns "$switch"
    nsenter --target "$switch" --net -- ip link set nfs1 master br0 up
    ip addr add 10.99.0.254/24 dev nfs0
    ip link set nfs0 up
    rpcbind
    exportfs -o rw,no_root_squash,insecure,fsid=0,no_subtree_check 10.99.0.0/24:/srv/x
    exportfs -o rw,root_squash,insecure,fsid=1,no_subtree_check 10.99.0.0/24:/srv/x/squash
    rpc.nfsd -V 4 2
    rpc.mountd
    for node in $(cat "$VCLUSTER_DIR/nodes"); do
        vcluster exec "$node" mount -t nfs4 -o vers=4.2 10.99.0.254:/ /mnt/shared
        vcluster exec "$node" mount -t nfs4 -o vers=4.2 10.99.0.254:/squash /mnt/squash
    done
    vcluster exec node1 stat -f -c 'on %T' /mnt/shared
    clients=$(cat /proc/fs/nfsd/clients/*/info | grep ^name: | sort -u)
    printf '%s\n' "$clients"
    [ "$(wc -l <<<"$clients")" = "$1" ] || fail "the server sees another number of clients than $1"
}

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# nfs.sh ROUNDS: NFS 4.2, in a virtual machine: a server, and two virtual nodes that
# mount it, each with a client of its own, since the server sees their names.  The two
# write disjoint bytes of one block ROUNDS times, and nothing is lost; jobs on one node
# each write a file at the same time.
. "$SRC/tests/io/common.sh"

rounds=$1
[ "$(id -u)" = 0 ] || skip "only root can have virtual nodes in the virtual machine"
command -v exportfs >/dev/null && command -v rpc.nfsd >/dev/null || skip "the NFS server is not installed (Debian: nfs-kernel-server)"
keys_in "$CASE_DIR/keys" lab other
halves=$(mpi_program io halves) hold=$(mpi_program io hold) program=$(mpi_program io roundtrip)

cat > "$CASE_DIR/job" <<END
set -eu
$(vm_environment)
export CASE_DIR=/tmp/case VCLUSTER_DIR=/tmp/vcluster
mkdir -p /tmp/case /srv/x /mnt/shared /tmp/crypt
modprobe -a nfsd nfs nfsv4 brd ext4 veth bridge
mkfs.ext4 -q /dev/ram0 && mount /dev/ram0 /srv/x
mount -t nfsd nfsd /proc/fs/nfsd 2>/dev/null || true
mkdir -p /run/rpcbind /var/lib/nfs/rpc_pipefs
. "\$SRC/tests/lib.sh"
vcluster up 2 --slots 1
switch=\$(cut -d' ' -f1 "\$VCLUSTER_DIR/switch.holder")
ip link add nfs0 type veth peer name nfs1 netns "\$switch"
nsenter --target "\$switch" --net -- ip link set nfs1 master br0 up
ip addr add 10.99.0.254/24 dev nfs0
ip link set nfs0 up
rpcbind
exportfs -o rw,no_root_squash,insecure,fsid=0,no_subtree_check 10.99.0.0/24:/srv/x
rpc.nfsd -V 4 2
rpc.mountd
for node in node0 node1; do
    vcluster exec \$node mount -t nfs4 -o vers=4.2 10.99.0.254:/ /mnt/shared
done
run() { local n=\$1; shift; vcluster mpirun -n \$n -x MT_WATCHDOG=\$((LIMIT - 10)) "\$@"; }
vcluster exec node1 stat -f -c 'on %T' /mnt/shared
clients=\$(cat /proc/fs/nfsd/clients/*/info | grep ^name: | sort -u)
printf '%s\n' "\$clients"
[ "\$(wc -l <<<"\$clients")" = 2 ] || fail "the server sees another number of clients than two"

must run 2 $halves /mnt/shared rounds=$rounds
vcluster exec node0 rm -f /mnt/shared/halves
must run 2 $program /mnt/shared cases=3 seed=5

# A job on one node cannot test it, and need not, here.
held=/mnt/shared/held
vcluster exec node0 $hold \$held /tmp/case/ready /tmp/case/end & holder=\$!
until [ -e /tmp/case/ready ]; do kill -0 \$holder; sleep 0.1; done
must run 1 --host node1 $hold \$held
touch /tmp/case/end
wait \$holder
END
in_vm "$CASE_DIR/job"

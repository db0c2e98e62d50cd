# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# home.sh fuse|nfs: a home directory on a file system that is no node's own.  What a new user tries is refused and leads to
# docs/keys.rst; the commands of that page then serve messages and files on three nodes, and a fourth that comes later.
# With `nfs`, an NFS server in a virtual machine, where it runs as `home.sh mounted`; with `fuse`, bindfs, which counts as
# unknown.
. "$SRC/tests/io/common.sh"
[ "$(id -u)" = 0 ] || skip "only root can mount"
nodes="node0 node1 node2 node3" type="nfs (0x6969)" net=/mnt/shared
case $1 in
    nfs)
        . "$SRC/tests/io/nfs_up.sh"
        mpi_program io named > "$CASE_DIR/null"
        nfs_vm 4 <<< '. "$SRC/tests/io/home.sh" mounted'
        exit 0 ;;
    fuse)
        command -v bindfs >/dev/null || skip "bindfs is not installed"
        [ -e /dev/fuse ] || skip "there is no /dev/fuse"
        type="fuse (0x65735546)" net=$CASE_DIR/net
        mkdir "$net" "$CASE_DIR/served"
        cluster_up 4 --slots 1
        let_go() { for node in $nodes; do vcluster exec $node umount "$net" || true; done; vcluster down; }
        trap 'let_go > /dev/null 2>&1 || true' EXIT
        for node in $nodes; do must vcluster exec $node bindfs "$CASE_DIR/served" "$net"; done ;;
esac

program=$(mpi_program io named)
seq 1 20000 > "$CASE_DIR/plain"
mkdir "$CASE_DIR/bin" "$CASE_DIR/files"
printf '#!/bin/sh\nexec "%s/tests/vcluster" agent "$@"\n' "$SRC" > "$CASE_DIR/bin/ssh"
chmod +x "$CASE_DIR/bin/ssh"
disk=/dev/shm/alice                                     # stands for /var/lib/alice: every node has its own
for node in $nodes; do vcluster exec $node install -d -m 700 $disk; done
export HOME=$net/alice PATH=$CASE_DIR/bin:$PATH
unset OMPI_MCA_crypt_keystore_dir OMPI_MCA_crypt_psk_file OMPI_MCA_crypt_auth
vcluster exec node0 mkdir -m 700 "$HOME"
login() { vcluster exec node0 "$@"; }
job() { vcluster mpirun -n 3 --map-by ppr:1:node -x HOME -x MT_WATCHDOG=$((LIMIT - 10)) --mca fs_crypt_key_label "${1:-results}" \
            "$program" make "$CASE_DIR/plain" "$CASE_DIR/files/${1:-output}" 0; }
# Of the output of doctor.
doctor() { login mpicrypt doctor --all --mpirun "$SRC/tests/vcluster mpirun -n 3 -x HOME" > "$CASE_DIR/doctor" 2>&1 || true; cat "$CASE_DIR/doctor"; }
found() { tr -s ' \n' ' ' < "$CASE_DIR/doctor" | grep -qF -- "$1" || fail "doctor does not say \"$1\""; }

echo "--- what a new user tries"
must_refuse "docs/keys.rst has the commands for a home directory on NFS" login mpicrypt keygen
must_refuse "the file system is of type $type" login mpicrypt keygen
must_refuse "--machine-key FILE wraps them: docs/keys.rst" login mpicrypt key new results
[ -z "$(login ls "$HOME/.ompi-crypt/keys" | grep results)" ] || fail "it was made"
must login mpicrypt keygen --allow-netfs
must_refuse 'See "A home directory on NFS" in docs/keys.rst.' job
doctor
found "FAIL key pre-shared key $HOME/.ompi-crypt/psk: the file system is of type $type"
found 'See "A home directory on NFS" in docs/keys.rst.'
login rm "$HOME/.ompi-crypt/psk"

echo "--- the commands of the page"
mapfile -t commands < <(sed -n '/^A home directory on NFS/,/^Two people/s/^    \(export\|mpicrypt\) /\1 /p' "$SRC/docs/keys.rst" | sed "s#/var/lib/alice#$disk#g")
[ ${#commands[@]} = 5 ] || fail "the page has other commands: ${commands[*]}"
eval "${commands[0]}"
for command in "${commands[@]:1:2}"; do
    must login bash -c "$command"
done
must login mpicrypt key new results
must login grep -q '^key wrapped ' "$HOME/.ompi-crypt/keys/results.1"
must job
for node in node0 node1 node2; do must vcluster exec $node mpicrypt file verify "$CASE_DIR/files/output"; done
doctor
found "ok keystore 1 version of keys of files, under the machine key (together"
must_fail grep -q '^FAIL' "$CASE_DIR/doctor"
must login mpicrypt key rotate results
must vcluster exec node2 mpicrypt key list

echo "--- a node that comes later"
must_refuse "machine key $disk/machine: No such file or directory" vcluster exec node3 mpicrypt key list
for command in "${commands[@]:3}"; do
    must login bash -c "$command"
done
must vcluster exec node3 mpicrypt key list
must vcluster exec node3 mpicrypt file verify "$CASE_DIR/files/output"

echo "--- a node without the machine key"
vcluster exec node2 rm $disk/machine
rm "$CASE_DIR/files/output"
must_refuse "machine key $disk/machine: No such file or directory" job
doctor
found "FAIL keystore machine key $disk/machine: No such file or directory"
found "[node2]"
must login mpicrypt keygen --existing --out $disk/machine --hosts node2

echo "--- a key that lies there in the clear"
must login env -u OMPI_MCA_crypt_keystore_machine_key mpicrypt key new old --allow-netfs
must_refuse "keys would be in the clear on a network file system" login mpicrypt key list
must_refuse 'mpicrypt key protect LABEL' job old
must login mpicrypt key protect old --allow-netfs
must login mpicrypt key list
must job old

[ "$1" != mounted ] || {
    echo "--- root is nobody"
    chmod 700 /srv/x/squash
    must_refuse "nobody (root_squash)" env OMPI_MCA_crypt_psk_file=/mnt/squash/psk \
        "$SRC/tests/vcluster" mpirun -n 3 --map-by ppr:1:node "$program" make "$CASE_DIR/plain" "$CASE_DIR/files/output" 0
    chmod 777 /srv/x/squash
    must vcluster exec node0 bash -c 'umask 077; mpicrypt keygen --out /dev/shm/other; mkdir /mnt/squash/mine && cp /dev/shm/other /mnt/squash/mine/psk'
    vcluster exec node0 ls -ln /mnt/squash/mine || true
    must_refuse "it belongs to user id 65534" vcluster exec node0 mpicrypt key list --keystore-dir /mnt/squash/mine
}

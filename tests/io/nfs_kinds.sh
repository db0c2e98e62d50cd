# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# nfs_kinds.sh ROUNDS: older NFS, and mounts whose locks do not reach the server, as nfs.sh does for 4.2.  Where both nodes may write,
# they do, in one block, ROUNDS times, and nothing is lost.  Where their locks are their own the file is refused; one node may write, and
# the other reads it then.  mpicrypt doctor comes to the same verdict.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/nfs_up.sh"

rounds=$1
keys_in "$CASE_DIR/keys" lab other
halves=$(mpi_program io halves) convert=$(mpi_program io convert)
head -c 300000 /dev/urandom > "$CASE_DIR/plain"

nfs_vm 2 <<END
. "\$SRC/tests/io/common.sh"
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
run() { local n=\$1; shift; vcluster mpirun -n \$n -x MT_WATCHDOG=\$((LIMIT - 10)) "\$@"; }
# NFS 3 has a lock manager of its own, which asks the rpcbind and statd of its network.
rpc.statd --no-notify
for node in node0 node1; do
    must vcluster exec \$node bash -ec 'mount -t tmpfs none /run && mkdir /run/rpcbind && rpcbind && rpc.statd --no-notify'
done
while read -r -u 3 options verdict; do
    echo "--- \$options: \$verdict"
    for node in node0 node1; do
        must vcluster exec \$node mkdir -p "/mnt/\$options"
        must vcluster exec \$node mount -t nfs -o "\$options" "10.99.0.254:\$([[ \$options = vers=3* ]] && echo /srv/x || echo /)" "/mnt/\$options"
    done
    vcluster exec node0 rm -f "/mnt/\$options/halves"
    if [ "\$verdict" = written ]; then
        must run 2 $halves "/mnt/\$options" rounds=$rounds
    else
        must_refuse "\$verdict" run 2 $halves "/mnt/\$options" rounds=1
        [ ! -s /srv/x/halves ] || fail "something was written to the refused file"
    fi
    safe="NOT safe"
    [ "\$verdict" != written ] || safe=safe
    says "writers on several nodes: \$safe" mpicrypt doctor --mpirun "\$SRC/tests/vcluster mpirun" \
        --path "/mnt/\$options"
    must run 1 --host node0 $convert write "$CASE_DIR/plain" "/mnt/\$options/alone"
    must run 1 --host node1 $convert read "$CASE_DIR/plain" "/mnt/\$options/alone"
    vcluster exec node0 rm "/mnt/\$options/alone"
done 3<<'KINDS'
vers=4.1 written
vers=4.0 written
vers=3 written
vers=3,local_lock=flock written
vers=3,nolock Locks on this file system do not keep out other nodes
vers=3,local_lock=all Locks on this file system do not keep out other nodes
vers=3,local_lock=posix Locks on this file system do not keep out other nodes
KINDS
END

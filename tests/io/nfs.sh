# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# nfs.sh ROUNDS: NFS 4.2, in a virtual machine: a server, and two virtual nodes that
# mount it, each with a client of its own, since the server sees their names.  The two
# write disjoint bytes of one block ROUNDS times, and nothing is lost; jobs on one node
# each write a file at the same time.  Both write while processes are killed, and the server
# starts again; what it changed is found.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/nfs_up.sh"

rounds=$1
keys_in "$CASE_DIR/keys" lab other
halves=$(mpi_program io halves) hold=$(mpi_program io hold) program=$(mpi_program io roundtrip)
convert=$(mpi_program io convert)
mpi_program io storm > "$CASE_DIR/null"
head -c 100000 /dev/urandom > "$CASE_DIR/plain"

nfs_vm 2 <<END
run() { local n=\$1; shift; vcluster mpirun -n \$n -x MT_WATCHDOG=\$((LIMIT - 10)) "\$@"; }

must run 2 $halves /mnt/shared rounds=$rounds
vcluster exec node0 rm -f /mnt/shared/halves
must run 2 $program /mnt/shared cases=3 seed=5
says "writers on several nodes: safe" mpicrypt doctor --mpirun "\$SRC/tests/vcluster mpirun" --path /mnt/shared

# A job on one node cannot test it, and need not, here.
held=/mnt/shared/held
vcluster exec node0 $hold \$held /tmp/case/ready /tmp/case/end & holder=\$!
until [ -e /tmp/case/ready ]; do kill -0 \$holder; sleep 0.1; done
must run 1 --host node1 $hold \$held
touch /tmp/case/end
wait \$holder

. "\$SRC/tests/io/common.sh"
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
. "\$SRC/tests/io/storms.sh"
storm_on=(--host node0:2,node1:2)
echo "--- processes are killed"
storm_kills 3 5 /mnt/shared
echo "--- the server ends, and starts again: the storm goes on"
storm_directory /tmp/case/storm /mnt/shared/storm
storm_begin /tmp/case/storm 1
rpc.nfsd 0
echo 10 > /proc/fs/nfsd/nfsv4leasetime
echo 10 > /proc/fs/nfsd/nfsv4gracetime
rpc.nfsd -V 4 2
storm_goes_on /tmp/case/storm
storm_end /tmp/case/storm
storm_check /tmp/case/storm

echo "--- the server changes a byte"
must run 2 $convert write "$CASE_DIR/plain" /mnt/shared/changed
( . "\$SRC/tests/io/offsets.sh"; poke /srv/x/changed "\$(data_at /srv/x/changed 5)" )
echo 3 > /proc/sys/vm/drop_caches
must_refuse "is not what a holder of the key wrote" run 2 $convert read "$CASE_DIR/plain" /mnt/shared/changed
END

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# nfs.sh ROUNDS: NFS 4.2, in a virtual machine: a server, and two virtual nodes that
# mount it, each with a client of its own, since the server sees their names.  The two
# write disjoint bytes of one block ROUNDS times, and nothing is lost; jobs on one node
# each write a file at the same time.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/nfs_up.sh"

rounds=$1
keys_in "$CASE_DIR/keys" lab other
halves=$(mpi_program io halves) hold=$(mpi_program io hold) program=$(mpi_program io roundtrip)

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
END

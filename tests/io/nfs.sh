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
mkdir -p /tmp/case /tmp/crypt
. "\$SRC/tests/lib.sh"
. "\$SRC/tests/io/nfs_up.sh"
nfs_up 2
run() { local n=\$1; shift; vcluster mpirun -n \$n -x MT_WATCHDOG=\$((LIMIT - 10)) "\$@"; }

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

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# nothing.c on nodes with a small /dev/shm, as containers have.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2 --slots 4
program=$(mpi_program coll nothing)
for node in node0 node1; do
    vcluster exec "$node" mount -o remount,size=32m /dev/shm
done
must vcluster mpirun -n 8 "$program"

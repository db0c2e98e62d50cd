# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# gone.c: a job that ends while a rank is late for shared memory leaves none of it in /dev/shm.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
program=$(mpi_program coll gone)
for transport in pml btl; do
    if vcluster mpirun -n 4 --mca crypt_transport $transport "$program" > "$CASE_DIR/out" 2>&1; then
        fail "a killed rank, and mpirun says that all is well: $(cat "$CASE_DIR/out")"
    fi
    for node in node0 node1; do
        left=$(vcluster exec $node find /dev/shm -name 'ompi-crypt-????????????????')
        [ -z "$left" ] || fail "$transport: left on $node: $left"
    done
    echo "$transport: nothing is left"
done

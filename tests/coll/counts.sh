# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The six metrics of every algorithm, rank by rank, against the simulator and
# against the closed forms of docs/design/004-collectives.rst.  Sub-communicators of one
# job have all the node maps.
. "$SRC/tests/lib.sh"
set -eu

program=$(mpi_program coll metrics)

# count NODESxRANKS [PROGRAM-ARG...]
count() {
    local shape=$1; shift
    cluster_up "${shape%x*}" --slots "${shape#*x}"
    vcluster mpirun -n $((${shape%x*} * ${shape#*x})) "$program" "$@" > "$CASE_DIR/counted"
    python3 "$SRC/tests/coll/check_metrics.py" < "$CASE_DIR/counted" || fail "$*"
    vcluster down
}

count 5x4 bytes=64 2x2 cyclic:2x2 4x2 cyclic:4x2 4x4 cyclic:4x4 5x3 cyclic:5x3 3,1,4 cyclic:3,1,4 \
    list:0,1,1,0,2,0,2,1,3 2x3 3x1
count 5x4 bytes=1000 4x2 cyclic:4x2 5x3 3,1,4
count 5x4 bytes=150000 4x2 cyclic:4x2 5x3 3,1,4
count 8x2 bytes=64 8x2 cyclic:8x2 7x2 cyclic:7x2 7x1 8x1

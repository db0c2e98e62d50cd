# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Nothing is sealed twice: the bytes that each rank hands to the host PML for
# other nodes, in every collective of coll/cryptag, are those of the simulator,
# which seals once.
. "$SRC/tests/lib.sh"
set -eu
. "$SRC/tests/coll/forge/build.sh"

cluster_up 4 --slots 3
program=$(forge wire)
vcluster mpirun -n 12 "$program" bytes=1000 2x2 4x2 cyclic:4x2 3x3 cyclic:3x3 3,1,2 list:0,1,1,0,2,0 4x1 \
    > "$CASE_DIR/counted"
python3 "$SRC/tests/coll/check_wire.py" < "$CASE_DIR/counted" || fail "sealed bytes"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# An address of each process leads, on the other's node, to somebody who accepts and says nothing, as that of a bridge for
# containers may.  Both try it first, and meet by another one.
set -eu
. "$SRC/tests/lib.sh"

over_btl
cluster_up 2
program=$(mpi_program mpi p2p_empty)

# mute NODE PORT: where the other node's process listens.
mute() {
    shared_first "$1"
    vcluster net "$1" python3 "$SRC/tests/attack/mute/mute.py" 10.77.0.1 "$2" "$CASE_DIR/$1" &
    until [ -s "$CASE_DIR/$1" ]; do
        kill -0 $! || fail "no mute.py on $1"
        sleep 0.01
    done
}
mute node0 21001
mute node1 21000
must vcluster mpirun -n 2 --map-by node -x MT_WATCHDOG="$LIMIT" --mca crypt_verbose 10 \
    --mca btl_crypt_port_min 21000 --mca btl_crypt_port_range 2 "$program" 2>&1
grep -q connection "$CASE_DIR/node0" "$CASE_DIR/node1" || fail "nobody tried the address"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# between.sh [servers] [handshake]: somebody between the two nodes, under an address that processes of both try
# first, over btl/crypt.  What he changes before the two have authenticated each other, or answers himself, costs them an
# attempt: they meet by another address.  Of the bits of a handshake he changes a sample, one in each connection;
# unit/test_tls_refused changes every byte, and test_tls_hello every bit of the hellos.  What he does to records: records.sh.
set -eu
. "$SRC/tests/lib.sh"

over_btl
cluster_up 2 --slots 8
meet=$(mpi_program attack/between meet)
helpers=()
trap 'kill ${helpers[@]+"${helpers[@]}"} 2>/dev/null || true; vcluster down >/dev/null 2>&1 || true' EXIT
for node in node0 node1; do
    shared_first $node
done
address_of() { vcluster net "$1" ip -4 -o addr show dev eth0 | sed -nE 's/.* inet ([0-9.]+).*/\1/p'; }

# between WHAT COUNT: COUNT processes of each node are behind it for those of the other.  Where it listens on a node, no
# process can, so those of node0 get the ports from 21000 on, and those of node1 the ones behind.  (From 32768 on the system
# gives them to connections of mpirun's.)
between() {
    local node other first
    helpers=()
    for node in node0 node1; do
        other=node$((1 - ${node#node}))
        first=$((21000 + ${other#node} * $2))
        rm -f "$CASE_DIR/$node"
        "$SRC/tests/vcluster" net $node python3 "$SRC/tests/attack/between/between.py" "$1" 10.77.0.1 $first "$2" "$(address_of $other)" \
            "$CASE_DIR/$node" &
        helpers+=($!)
        until [ -s "$CASE_DIR/$node" ]; do
            kill -0 $! || fail "no between.py on $node"
            sleep 0.01
        done
    done
}
end_between() { kill "${helpers[@]}"; wait "${helpers[@]}" 2>/dev/null || true; helpers=(); }

# job COUNT PROGRAM...: COUNT processes on each node.
job() {
    local count=$1; shift
    vcluster mpirun -n $((2 * count)) --map-by ppr:"$count":node -x MT_WATCHDOG=60 --mca btl_crypt_pq off \
        --mca btl_crypt_port_min 21000 --mca btl_crypt_port_range $((2 * count)) "$@" > "$CASE_DIR/out" 2>&1
}

# met LEAST: the job went on, and so many connections were spoilt, each of them in vain.
met() {
    cat "$CASE_DIR/node0" "$CASE_DIR/node1" | grep -v '^listening$' | sort | uniq -c
    ! grep -h BAD "$CASE_DIR/node0" "$CASE_DIR/node1" || fail "somebody went on"
    [ "$(cat "$CASE_DIR/node0" "$CASE_DIR/node1" | grep -cv 'listening\|did not come\|no hello')" -ge "$1" ] || fail "too few"
}

part_servers() {
    between servers 8
    job 8 "$meet" || fail "$(cat "$CASE_DIR/out")"
    met 20
    grep -qhE '^a certificate \([0-9]{3,} bytes\)' "$CASE_DIR/node0" "$CASE_DIR/node1" || fail "no server showed a certificate"
    end_between
}

part_handshake() {
    local begin
    for begin in 0 100 200; do
        between "handshake $begin" 8
        job 8 "$meet" || fail "$(cat "$CASE_DIR/out")"
        met 20
        end_between
    done
}

for part in "$@"; do
    echo "+ $part"
    part_$part
done

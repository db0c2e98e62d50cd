# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What a process sends to itself.  UCX goes through whatever UCX_TLS leaves it, and libfabric through
# its provider, here TCP: nothing in plaintext, on any interface.  Over ob1 it stays in the process.
set -eu
. "$SRC/tests/lib.sh"

canary=$(od -An -v -tx1 -N16 /dev/urandom | tr -d ' \n')
cluster_up 2
program=$(mpi_program attack/around canary)
over_tcp=(--mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp -x UCX_NET_DEVICES=eth0)

# shown MPIRUN-ARG...: how often the canary is in what its job sends; to its own address
# Linux sends through lo.
shown() {
    VCLUSTER_IF=lo capture_start node0 "$CASE_DIR/lo" -B 262144
    vcluster mpirun -n 1 --host node0 "$@" "$program" "$canary" self < /dev/null > "$CASE_DIR/out" 2>&1 ||
        fail "$* -- $(cat "$CASE_DIR/out")"
    vcluster exec node0 bash -c 'echo "end of capture" > /dev/udp/127.0.0.1/9'
    until tail -c 65536 "$CASE_DIR/lo" | grep -qaF 'end of capture'; do capture_alive node0; done
    kill -TERM "${CAPTURE_PID[node0]}"
    wait "${CAPTURE_PID[node0]}" || true
    python3 -c 'import sys; print(open(sys.argv[2], "rb").read().count(bytes.fromhex(sys.argv[1])))' "$canary" "$CASE_DIR/lo"
}

# compare HOST MPIRUN-ARG...
compare() {
    local host=$1 plain sealed; shift
    plain=$(shown --mca pml "$host" "$@")
    [ "$plain" -gt 1000 ] || fail "plain $host shows $plain canaries: the test looks in the wrong place"
    sealed=$(shown --mca pml_crypt_host "$host" "$@" --mca crypt_report "json:$CASE_DIR/report")
    [ "$sealed" = 0 ] || fail "$sealed canaries of what a process sends to itself over $host"
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["sealed_messages"] >= 30, r; assert 0 == r["sealed_peers"], r' \
        "$CASE_DIR/report"
    echo "$host plain: $plain canaries, sealed: none"
}

for one in 'pml: ucx' 'mtl: ofi'; do
    in_variant ompi_info | grep -q "MCA $one" || skip "this Open MPI has no ${one/: //}"
done
compare ucx "${over_tcp[@]}"
compare cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm'
[ "$(shown)" = 0 ] || fail "canaries of what a process sends to itself over ob1"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A process whose peer cannot be reached says so after 10 seconds, with both names, and gets through when it can.
set -eu
. "$SRC/tests/lib.sh"

over_btl
cluster_up 2
program=$(mpi_program attack/refused sender)
: > "$CASE_DIR/out"
rule="ipproto tcp dport 21000-21099"
vcluster net node1 ip rule add pref 1 $rule unreachable
vcluster mpirun -n 2 --map-by node -x MT_WATCHDOG="$LIMIT" --mca btl_crypt_port_min 21000 --mca btl_crypt_port_range 100 \
    "$program" > "$CASE_DIR/out" 2>&1 &
job=$!
until grep -q 'refused by another one for 10 seconds' "$CASE_DIR/out"; do
    kill -0 $job 2>/dev/null || fail "it said nothing: $(cat "$CASE_DIR/out")"
    sleep 0.2
done
vcluster net node1 ip rule del pref 1
wait $job || fail "the job: $(cat "$CASE_DIR/out")"
cat "$CASE_DIR/out"
grep -q 'this process: on node1, rank 1' "$CASE_DIR/out" || fail "not which process"
grep -q 'rank 0, on node0' "$CASE_DIR/out" || fail "not which peer"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Sealed messages of collectives that were changed, cut, replayed or swapped
# are refused: with crypt_on_auth_failure=error every rank returns our error
# class and finds zeros, and goes on; otherwise the job ends with a message.
#
#     tamper.sh [OPERATION:ALGORITHM:BYTES...]
. "$SRC/tests/lib.sh"
set -eu

. "$SRC/tests/coll/forge/build.sh"
cases=("$@")
[ ${#cases[@]} -gt 0 ] || for algorithm in $(algorithms ALLGATHER | grep -nvx hop | cut -d: -f1); do
    cases+=("0:$algorithm:64")
done

export MT_WATCHDOG=60
cluster_up 3 --slots 2
forger=$(forge forger)
for case in "${cases[@]}"; do
    IFS=: read -r operation algorithm bytes <<<"$case"
    arguments=("operation=$operation" "algorithm=$algorithm" "bytes=$bytes")
    must timeout "$LIMIT" "$SRC/tests/vcluster" mpirun -n 6 --mca crypt_on_auth_failure error -x MT_WATCHDOG \
        "$forger" "${arguments[@]}" 2>"$CASE_DIR/log"
    grep -q 'failed authentication' "$CASE_DIR/log" || fail "no message about $case"
    for kind in 1 6; do                         # a flipped bit; a replay
        rc=0
        timeout "$LIMIT" "$SRC/tests/vcluster" mpirun -n 6 -x MT_WATCHDOG "$forger" "${arguments[@]}" abort=$kind \
            >"$CASE_DIR/log" 2>&1 || rc=$?
        echo "abort=$kind: status $rc"
        if [ "$rc" = 0 ] || [ "$rc" = 124 ] || grep -q 'watchdog' "$CASE_DIR/log"; then
            cat "$CASE_DIR/log"
            fail "$case, abort=$kind: the job did not end as it should"
        fi
        grep -q 'failed authentication.  The job aborts' "$CASE_DIR/log" || fail "no message about $case"
    done
done

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A changed message in the first collective of a communicator is not taken for
# settings that differ: with crypt_on_auth_failure=error every rank returns our
# error class, and the next call is the first one.
. "$SRC/tests/lib.sh"
set -eu
. "$SRC/tests/coll/forge/build.sh"

export MT_WATCHDOG=60
cluster_up 3 --slots 2
first=$(forge first)
# job EXPECTED-TEXT [ARG...]
job() {
    local text=$1 rc=0; shift
    timeout "$LIMIT" "$SRC/tests/vcluster" mpirun -n 6 --mca crypt_on_auth_failure error -x MT_WATCHDOG "$first" "$@" \
        >"$CASE_DIR/log" 2>&1 || rc=$?
    grep -q "$text" "$CASE_DIR/log" && ! grep -q 'watchdog\|must be the same on all ranks' "$CASE_DIR/log" ||
        { cat "$CASE_DIR/log"; fail "first $*: not as it should be"; }
    return $rc
}
must job 'failed authentication'
must_fail job 'sets up a communicator' late
must_fail job 'sets up a communicator' group
# The text of the failed authentication itself may be lost: its process is ended at once.
grep -q 'the group key was changed' "$CASE_DIR/log" || { cat "$CASE_DIR/log"; fail "no group key was changed"; }
must job 'reason: *out of memory' fault
! grep 'failed authentication' "$CASE_DIR/log" || fail "a fault of this process is said to be a forgery"

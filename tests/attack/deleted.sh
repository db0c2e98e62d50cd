# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# deleted.sh [all]: deleted messages, of which no other sign is promised than the counts
# that are sent at the end.  A message that is missing, a count that is, and one that was
# changed are each said by the receiver alone; the job then ends with status 0, and under
# crypt_on_missing=abort with another.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
program=$(internal_program ompi/mca/pml/crypt attack/deleted "$SRC/tests/attack/deleted/deleted.c" "$SRC/tests/mpi/mt.c" \
    -L"$PREFIX/lib" -lmca_common_cryptmpi -Wl,-rpath,"$PREFIX/lib")

# job ARGUMENT...: its output, without line breaks, is in $said.
job() {
    local rc=0 on_missing=${OMPI_MCA_crypt_on_missing:-warn}
    echo "+ $on_missing: $*"
    timeout "$LIMIT" "$SRC/tests/vcluster" mpirun -n 2 --map-by node -x MT_WATCHDOG=60 "$program" "$@" \
        > "$CASE_DIR/out" 2>&1 < /dev/null || rc=$?
    cat "$CASE_DIR/out"
    said=$(tr -s ' \n' ' ' < "$CASE_DIR/out")
    [[ $rc != 124 && $said != *watchdog* ]] || fail "the job hangs"
    return $rc
}

# warned TEXT: rank 0 said that in the last job, and there is no other warning.
warned() {
    [[ $said == *"WARNING: "*"rank 0 (on node0) $1"* ]] || fail "rank 0 does not say: $1"
    [ "$(grep -c '^WARNING: ' "$CASE_DIR/out")" = 1 ] || fail "more than one warning"
}
aborted() {
    [[ $said == *"rank 0 (on node0) aborts the job"*"crypt_on_missing is abort"* ]] || fail "it does not say why it failed"
}
missing='had not received 1 of the messages'
changed='received 1 final message counts that do not authenticate'
silent='did not receive the final message counts of some processes: 1 are missing'

job changed || fail "the job failed"
warned "$changed"
[[ $said == *"the final count was changed"* ]] || fail "no count was changed"
! OMPI_MCA_crypt_on_missing=abort job delete=1 count || fail "the job succeeded"
warned "$silent"
aborted
[[ $said == *"the final count was deleted"* ]] || fail "no count was deleted"
[ "${1-}" = all ] || exit 0

job || fail "the job failed"
[[ $said != *WARNING* ]] || fail "it complains, with nothing deleted"
job delete=1 || fail "the job failed"
warned "$missing"
job count || fail "the job failed"
warned "$silent"
export OMPI_MCA_crypt_on_missing=abort
job || fail "the job failed, with nothing deleted"
! job delete=1 || fail "the job succeeded, with a message missing"
warned "$missing"
aborted
! job changed || fail "the job succeeded, with a count that was changed"
warned "$changed"
aborted

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# At the end of a job each process learns how many messages were sent to it:
# what never arrived is said, a job that lost nothing says nothing, and one
# whose process dies ends as it would without us.  Over libfabric, too, which drops what nobody waits for
# when its sender has left.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
program=$(mpi_program mpi unreceived)

ranks=4

# job ARGUMENT...: $ranks on the nodes; its output, without line breaks, is in $said.
job() {
    local rc=0
    echo "+ $*"
    vcluster mpirun -n $ranks --map-by node "$program" "$@" > "$CASE_DIR/out" 2>&1 < /dev/null || rc=$?
    cat "$CASE_DIR/out"
    said=$(tr -s ' \n' ' ' < "$CASE_DIR/out")
    return $rc
}

job messages=0 || fail "the job failed"
[[ $said != *"at the end of the job"* && $said != *"are missing"* ]] || fail "it complains"
job messages=3 || fail "the job failed"
[[ $said == *"rank 0 (on node0) had not received 3 of the messages"* ]] || fail "it does not say what is missing"
[[ $(grep -c 'messages are missing' "$CASE_DIR/out") == 1 && $said != *"at the end of the job"* ]] ||
    fail "others say so, too"

# Under crypt_on_missing=abort it is an error; but not where nothing is missing.
export OMPI_MCA_crypt_on_missing=abort
job messages=0 || fail "the job failed"
[[ $said != *"crypt_on_missing"* ]] || fail "it complains"
! job messages=1 || fail "the job succeeded, with a message missing"
[[ $said == *"rank 0 (on node0) had not received 1 of the messages"* && $said == *"and crypt_on_missing is abort"* ]] ||
    fail "it does not say why it failed"
unset OMPI_MCA_crypt_on_missing
! job dies || fail "the job succeeded"

# 16 ranks, which end at different times, over libfabric's own TCP (net, later tcp).  cm of 4.1 takes it by itself, if
# nobody has a file with parameters for the site.
vcluster down
cluster_up 4 --slots 4
ranks=16
export OMPI_MCA_mca_base_param_files=/dev/null OMPI_MCA_crypt_report=json:$CASE_DIR/report
export OMPI_MCA_pml_crypt_host=cm
[ "$SERIES" = 4.1 ] || export OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=tcp
for round in 1 2 3; do
    job messages=0 || fail "the job failed"
    [[ $said != *"at the end of the job"* && $said != *"are missing"* ]] || fail "it complains"
done
grep -q '"host": "cm"' "$CASE_DIR/report" || fail "that was not over cm: $(cat "$CASE_DIR/report")"
job messages=2 || fail "the job failed"
[[ $said == *"rank 0 (on node0) had not received 2 of the messages"* ]] || fail "it does not say what is missing"

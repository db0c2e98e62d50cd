# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# MPI_T_init_thread before MPI_Init registers every parameter before any of our components is
# opened: the job is encrypted as without it, and what ends a job does so.
set -eu
. "$SRC/tests/lib.sh"

cat > "$CASE_DIR/early.c" <<'END_OF_C'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int provided, rank, ranks = 1;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(MPI_IN_PLACE, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%d ranks\n", ranks);
    }
    MPI_T_finalize();                           /* after MPI_Finalize it crashes in 4.1, plain as well */
    return MPI_Finalize();
}
END_OF_C
cluster_up 2
must in_variant mpicc -o "$CASE_DIR/early" "$CASE_DIR/early.c"

# job ARGUMENT...: its output, without line breaks, is in $said.
job() {
    local rc=0
    echo "+ ${OMPI_MCA_pml-} ${OMPI_MCA_btl-} $*"
    mpirun_aside -n 2 --map-by node "$@" -- "$CASE_DIR/early" > "$CASE_DIR/out" 2>&1 < /dev/null || rc=$?
    cat "$CASE_DIR/out"
    said=$(tr -s ' \n' ' ' < "$CASE_DIR/out")
    return $rc
}

job --mca crypt_report 1 || fail "the job failed"
[[ $said == *"2 ranks"* && $said =~ sealed_messages\ +[1-9] ]] || fail "nothing was encrypted"

# btl/crypt: osc was read before it could be set, so whoever does this names it.
over_btl
! job || fail "another osc could be used"
[[ $said == *"a component is allowed that would go around it"* ]] || fail "it does not say which"
export OMPI_MCA_osc=rdma,sm
[ "$SERIES" != 4.1 ] || OMPI_MCA_osc=pt2pt,sm
job || fail "the job failed"
[[ $said == *"2 ranks"* ]] || fail "it did not run"
export OMPI_MCA_btl=crypt,tcp,self
! job || fail "btl/tcp runs beside it"
[[ $said == *"a BTL that would send in plaintext"* ]] || fail "it does not say why"

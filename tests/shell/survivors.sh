# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A process is killed in the middle of messages; the others find out, revoke, shrink, and go on (ULFM): over plain
# ob1, and over btl/crypt, which says why, also where connections are replaced.  Or nobody dies, and a connection is
# cut: then each of its ends takes the other one for dead.  The same where two networks carry what is long.
set -eu
. "$SRC/tests/lib.sh"

[ "$SERIES" != 4.1 ] || skip "Open MPI 4.1 has no fault tolerance"
cluster_up 2 --slots 2
in_variant ompi_info > "$CASE_DIR/info"
grep -q 'FT MPI support: yes' "$CASE_DIR/info" || skip "this Open MPI was built without fault tolerance"
program=$(mpi_program shell/survivors survivors)

survive() {                                     # survive [SETTING...]
    local rc=0
    ( export "$@"; vcluster mpirun -n 4 --with-ft ulfm -x MT_WATCHDOG="$LIMIT" "$program" ) > "$CASE_DIR/out" 2>&1 || rc=$?
    tr -d '\0' < "$CASE_DIR/out"
    [ $rc = 0 ] && grep -aq 'passed survivors: 3 of 4' "$CASE_DIR/out" || fail "$*: status $rc"
}

survive OMPI_MCA_pml=ob1
for i in 1 2 3; do
    survive OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=btl
    grep -aq 'the application is told that the peer has failed' "$CASE_DIR/out" || fail "nobody says that a peer has failed"
done
survive OMPI_MCA_pml=ob1 OMPI_MCA_btl=crypt,sm,self
for i in 1 2 3; do
    survive OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=btl OMPI_MCA_btl_crypt_replace_after=20
done

# What is in the sockets of who has died is for memory that may be gone.  (Now and then all of it comes before the news.)
unmapped() {
    OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=btl vcluster mpirun -n 4 --with-ft ulfm -x MT_WATCHDOG="$LIMIT" "$program" unmapped \
        > "$CASE_DIR/out" 2>&1 || true
    tr -d '\0' < "$CASE_DIR/out"
    grep -aq 'passed survivors: unmapped' "$CASE_DIR/out" || fail "not unmapped"
}
for i in 1 2 3; do unmapped; done

# Nobody answers, for the time that the user allows.
OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=btl OMPI_MCA_crypt_connect_timeout=4 vcluster mpirun -n 2 --map-by node \
    --with-ft ulfm -x MT_WATCHDOG="$LIMIT" -x SURVIVORS_PID="$CASE_DIR/pid" "$program" silent > "$CASE_DIR/out" 2>&1 || true
tr -d '\0' < "$CASE_DIR/out"
for text in 'no answer within crypt_connect_timeout' 'passed survivors: silent'; do
    grep -aq "$text" "$CASE_DIR/out" || fail "\"$text\" is not there"
done

# Whoever leaves so has not called MPI_Finalize, which mpirun counts as a failure.
cut_one() {                                     # cut_one CONNECTIONS
    OMPI_MCA_crypt_transport=btl vcluster mpirun -n 2 --map-by node --with-ft ulfm -x MT_WATCHDOG="$LIMIT" "$program" cut \
        > "$CASE_DIR/out" 2>&1 || true
    tr -d '\0' < "$CASE_DIR/out"
    for text in "one of $1 connections is cut" 'passed survivors: rank 0' 'passed survivors: rank 1'; do
        grep -aq "$text" "$CASE_DIR/out" || fail "\"$text\" is not there"
    done
}
cut_one 1

vcluster down
cluster_up 2 --slots 2 --nets 2
for i in 1 2; do
    survive OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=btl
    survive OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=btl OMPI_MCA_btl_crypt_replace_after=20
    unmapped
    cut_one 2
done

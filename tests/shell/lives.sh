# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# lives.sh [btl] RANKS[:mix]...: MPI begins and ends many times in the processes of a job on
# two nodes, by sessions or by a mix with MPI_Init.  Each life draws new keys, and
# whoever is met in it has those of the same life.  Over pml/crypt, or btl/crypt.
#
# Open MPI 5.0.7 itself loses its way from the second life on: btl/tcp looks for the
# ports of the first, and PMIx loses a fence now and then, in which all wait.  So each
# process has ports of its own here, the same ones in every life, and a job that does
# not end counts as one that fails.  Where plain fails, ours may fail, too, but never
# with a message of ours, and not where plain always gets through.
set -eu
. "$SRC/tests/lib.sh"

[ "$SERIES" != 4.1 ] || skip "this MPI has no sessions"
transport=pml
[ "$1" != btl ] || { transport=btl; shift; }
cluster_up 2
program=$(mpi_program mpi sessions)
cat > "$CASE_DIR/ports" <<'END'
#!/bin/sh
export OMPI_MCA_btl_tcp_port_min_v4=$((20000 + 500 * ${OMPI_COMM_WORLD_LOCAL_RANK:-${PMIX_RANK:-0}})) OMPI_MCA_btl_tcp_port_range_v4=500
exec "$@"
END
chmod +x "$CASE_DIR/ports"
lives=10 tries=4

# job PML RANKS ARGUMENT...: is it through?
job() {
    local ranks=$2 status=0 pml=(--mca pml "$1"); shift 2
    [ "${pml[2]}" != crypt ] || pml+=(--mca crypt_transport $transport)
    timeout 40 "$SRC/tests/vcluster" mpirun -n "$ranks" --map-by node "${pml[@]}" "$CASE_DIR/ports" "$program" "$@" \
        > "$CASE_DIR/out" 2>&1 < /dev/null || status=$?
    if [ $status = 124 ]; then      # its daemons are still there
        vcluster down
        cluster_up 2
    fi
    [ $status = 0 ] && grep -q '^passed sessions' "$CASE_DIR/out"
}

# Messages of ours: their words, and the names of our files and parameters.
ours() { grep -qiE 'authentic|crypt|seal|key|record|plaintext|Sorry!  You were supposed' "$CASE_DIR/out"; }

through() {
    local ranks=$1 try; shift
    echo "+ $lives lives, $ranks ranks, ${*:-sessions}"
    for ((try = 1; try <= tries; try++)); do
        if job crypt "$ranks" "$lives" "$@"; then
            [ "$(grep -c '^ok sessions: life' "$CASE_DIR/out")" = "$lives" ] || fail "other lives: $(cat "$CASE_DIR/out")"
            return
        fi
        cat "$CASE_DIR/out"
        ! ours || fail "a message of ours"
        echo "it failed without a word of ours: $try of $tries"
    done
    for ((try = 1; try <= 3 * tries; try++)); do
        if ! job ob1 "$ranks" "$lives" "$@"; then
            echo "plain fails, too"
            plain_failed=$((${plain_failed:-0} + 1))
            return
        fi
    done
    fail "plain gets through $((3 * tries)) times"
}

for what; do
    through ${what/:/ }
done
[ "${plain_failed:-0}" -lt $# ] || fail "nothing was seen"

[ $transport = pml ] || exit 0

# In a later life our help texts are there as in the first one.
echo "+ a message of the second life"
OMPI_MCA_crypt_psk_file=$CASE_DIR/psk
(umask 077; od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' > "$CASE_DIR/psk")
export OMPI_MCA_crypt_psk_file
cat > "$CASE_DIR/gone.c" <<'END'
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

/* Two lives; before the second one the key is no more there. */
int main(void)
{
    MPI_Session session;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_finalize(&session);
    unlink(getenv("OMPI_MCA_crypt_psk_file"));
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_finalize(&session);
    return 0;
}
END
must in_variant mpicc -o "$CASE_DIR/gone" "$CASE_DIR/gone.c"
must_fail vcluster mpirun -n 1 "$CASE_DIR/gone" > "$CASE_DIR/out" 2>&1 < /dev/null
cat "$CASE_DIR/out"
grep -q 'The pre-shared key does not exist' "$CASE_DIR/out" || fail "the text is not there"

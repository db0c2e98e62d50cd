# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# waits.sh [long]: what is waited for in vain.  A runtime that does not answer: a first contact ends
# with crypt_connect_timeout, in words that name both processes; so do a spawn and a connect with
# Open MPI 4.1.  `long`: without it there is one warning after two minutes, and the job goes
# on when the answer comes.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
cat > "$CASE_DIR/pair.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* Rank 0 sends rank 1 a number; with an argument it starts this program once more. */
int main(int argc, char **argv)
{
    int rank, number = 7;
    MPI_Comm parent, child;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (MPI_COMM_NULL == parent && argc > 1) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&child);
    } else if (MPI_COMM_NULL == parent && 0 == rank) {
        MPI_Send(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else if (MPI_COMM_NULL == parent) {
        MPI_Recv(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("rank 1 has got %d\n", number);
    }
    if (MPI_COMM_NULL != parent) {
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return 0;
}
END
# The runtime does not answer for SILENT seconds, or for ever, what concerns our records, or
# in the call that SILENT_IN names.
cat > "$CASE_DIR/silent.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void be_silent(void)
{
    const char *seconds = getenv("SILENT");

    if (NULL == seconds) {
        for (;;) {
            pause();
        }
    }
    for (int left = atoi(seconds); left > 0; left = (int) sleep((unsigned) left)) {
    }
}

static int is_silent(const char *call)
{
    return NULL != getenv("SILENT_IN") && 0 == strcmp(getenv("SILENT_IN"), call);
}

typedef int get_t(const void *, const char *, const void *, size_t, void *, void *);
static struct { char proc[1024], *key; const void *info; size_t count; void *to, *data; } asked;

static void *ask_late(void *real)
{
    be_silent();
    ((get_t *) real)(asked.proc, asked.key, asked.info, asked.count, asked.to, asked.data);
    return NULL;
}

/* The name of a process is 260 bytes of PMIx, of which we have no header. */
int PMIx_Get_nb(const void *proc, const char *key, const void *info, size_t count, void *to, void *data)
{
    get_t *real = (get_t *) dlsym(RTLD_NEXT, "PMIx_Get_nb");
    pthread_t thread;

    if (!is_silent("get") || NULL == key || NULL == strstr(key, "crypt.record")) {
        return real(proc, key, info, count, to, data);
    }
    memcpy(asked.proc, proc, 260);
    asked.key = strdup(key);
    asked.info = info;
    asked.count = count;
    asked.to = to;
    asked.data = data;
    return pthread_create(&thread, NULL, ask_late, (void *) real);
}

int PMIx_Spawn(const void *job, size_t jobs, const void *apps, size_t count, char *nspace)
{
    int (*real)(const void *, size_t, const void *, size_t, char *) = dlsym(RTLD_NEXT, "PMIx_Spawn");

    if (is_silent("spawn")) {
        be_silent();
    }
    return real(job, jobs, apps, count, nspace);
}

int PMIx_Connect(const void *procs, size_t count, const void *info, size_t infos)
{
    int (*real)(const void *, size_t, const void *, size_t) = dlsym(RTLD_NEXT, "PMIx_Connect");

    if (is_silent("connect")) {
        be_silent();
    }
    return real(procs, count, info, infos);
}
END
must in_variant mpicc -o "$CASE_DIR/pair" "$CASE_DIR/pair.c"
must in_variant gcc -shared -fPIC -o "$CASE_DIR/silent.so" "$CASE_DIR/silent.c" -ldl -lpthread

# run SILENT_IN PARAMETER... [-- ARGUMENT]: into $CASE_DIR/out.
run() {
    local in=$1 parameters=(); shift
    while (($#)) && [ "$1" != -- ]; do parameters+=("$1"); shift; done
    [ $# = 0 ] || shift
    vcluster mpirun -n 2 --map-by node -x LD_PRELOAD="$CASE_DIR/silent.so" -x SILENT_IN="$in" ${SILENT:+-x SILENT} \
        ${parameters[@]+"${parameters[@]}"} "$CASE_DIR/pair" "$@" > "$CASE_DIR/out" 2>&1 < /dev/null
}

echo "+ nobody is silent"
must run none
grep -q 'rank 1 has got 7' "$CASE_DIR/out" || fail "$(cat "$CASE_DIR/out")"

# ends SECONDS SILENT_IN ARGUMENT...: what goes before may take that long, too.
ends() {
    local seconds=$1 what=$2; shift 2
    echo "+ silent: $what"
    must_fail run "$what" --mca crypt_connect_timeout "$seconds" "$@"
    cat "$CASE_DIR/out"
    grep -q "has been waiting for $seconds seconds (crypt_connect_timeout), and aborts" "$CASE_DIR/out" || fail "it does not say so"
    grep -q 'this process: .* rank [01], on node[01], in ' "$CASE_DIR/out" || fail "this process"
    grep -q 'the peer:     ' "$CASE_DIR/out" || fail "the peer"
}
ends 3 get
grep -q 'in the first contact with the peer' "$CASE_DIR/out" && grep -qE 'the peer: .* rank [01], of this job' "$CASE_DIR/out" &&
    grep -q 'awaited: *its record of keys' "$CASE_DIR/out" || fail "it does not say what it waits for"
if [ "$SERIES" = 4.1 ]; then
    ends 3 spawn -- spawn
    grep -q 'in MPI_Comm_spawn' "$CASE_DIR/out" || fail "not in a spawn"
    ends 20 connect -- spawn
    grep -qE 'the peer: .* of another job' "$CASE_DIR/out" || fail "not with another job"
fi

# While a first contact waits, it looks each second at what is pending, and the next stranger's message may be there.
cat > "$CASE_DIR/strangers.c" <<'END'
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Two processes that rank 0 has not met answer receives for any source; a third receive stays pending. */
int main(int argc, char **argv)
{
    MPI_Request in[3];
    int rank, numbers[3];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (0 == rank) {
        setenv("SILENT_IN", "get", 1);
        for (int i = 0; i < 3; i++) {
            MPI_Irecv(&numbers[i], 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &in[i]);
        }
        for (int i = 0, n; i < 2; i++) {
            MPI_Waitany(3, in, &n, MPI_STATUS_IGNORE);
        }
        MPI_Send(&rank, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
    } else if (rank < 3) {
        MPI_Send(&rank, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
    if (1 == rank) {
        MPI_Recv(&numbers[0], 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&rank, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    } else if (0 == rank) {
        MPI_Waitall(3, in, MPI_STATUSES_IGNORE);
        printf("rank 0 has got them\n");
    }
    MPI_Finalize();
    return 0;
}
END
must in_variant mpicc -o "$CASE_DIR/strangers" "$CASE_DIR/strangers.c"
echo "+ two strangers, and an answer after 4 seconds"
timeout "$LIMIT" "$SRC/tests/vcluster" mpirun -n 3 --map-by node --oversubscribe -x LD_PRELOAD="$CASE_DIR/silent.so" -x SILENT_IN=none -x SILENT=4 \
    --mca crypt_transport pml --mca crypt_connect_timeout 20 "$CASE_DIR/strangers" > "$CASE_DIR/out" 2>&1 < /dev/null \
    || fail "$(cat "$CASE_DIR/out")"
grep -q 'rank 0 has got them' "$CASE_DIR/out" || fail "$(cat "$CASE_DIR/out")"

[ "${1-}" = long ] || exit 0
echo "+ an answer after 130 seconds"
export SILENT=130
must run get
cat "$CASE_DIR/out"
[ "$(grep -c 'WARNING: a process has been waiting for 120 seconds' "$CASE_DIR/out")" -ge 1 ] || fail "no warning"
[ "$(grep -c 'WARNING: a process has been waiting' "$CASE_DIR/out")" -le 2 ] || fail "more than one a process"
grep -q 'rank 1 has got 7' "$CASE_DIR/out" || fail "it did not go on"

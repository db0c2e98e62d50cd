# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A peer that cannot be authenticated, met on every way on which one can be met:
# two nodes have different keys.  By default the job ends, with the reason and nothing
# else, whatever the error handler; under crypt_on_auth_failure=error the call
# returns an error.
set -eu
. "$SRC/tests/lib.sh"
. "$SRC/tests/shell/keys_jobs.sh"

program=$CASE_DIR/ways
cat > "$program.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, other, got;

static void show(const char *way, int rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    if (MPI_SUCCESS != rc) {
        MPI_Error_string(rc, text, &length);
    }
    printf("%s, rank %d: %s\n", way, rank, MPI_SUCCESS == rc ? "success" : text);
    fflush(stdout);
}

static int window(void)
{
    void *base;
    MPI_Win win;

    return MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
}

static int spawn(char *program)
{
    char *arguments[] = {program, "child", NULL};
    MPI_Comm children;
    MPI_Info info;
    int rc;

    MPI_Info_create(&info);
    MPI_Info_set(info, "host", "node1");
    rc = MPI_Comm_spawn(getenv("WITH"), arguments, 1, info, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
    return MPI_SUCCESS != rc ? rc : MPI_Send(&rank, 1, MPI_INT, 0, 1, children);
}

static int probe(void)
{
    MPI_Status status;

    return 0 == rank ? MPI_Probe(other, 1, MPI_COMM_WORLD, &status) : MPI_Send(&rank, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
}

static int exchange(MPI_Comm comm)
{
    return MPI_Sendrecv(&rank, 1, MPI_INT, other, 1, &got, 1, MPI_INT, other, 1, comm, MPI_STATUS_IGNORE);
}

static void session(const char *way)
{
#ifdef MPI_SESSION_NULL
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rc;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Group_rank(group, &rank);
    other = 1 - rank;
    rc = MPI_Comm_create_from_group(group, "ways", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    if (MPI_SUCCESS == rc) {
        rc = exchange(comm);
        MPI_Comm_free(&comm);
    }
    show(way, rc);                      /* Open MPI 5.0 has no error texts afterwards */
    MPI_Session_finalize(&session);
#else
    show(way, -1);
#endif
}

int main(int argc, char **argv)
{
    const char *way = argv[argc - 1];
    MPI_Comm parent;
    int rc = -1;

    if (0 == strcmp("session", way)) {
        session(way);
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (0 == strcmp("child", way)) {
        MPI_Comm_get_parent(&parent);
        MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
        rc = MPI_Recv(&got, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
    } else if (0 == strcmp("exchange", way)) {
        rc = exchange(MPI_COMM_WORLD);
    } else if (0 == strcmp("sum", way)) {
        rc = MPI_Allreduce(&rank, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else if (0 == strcmp("gather", way)) {
        int all[2];
        rc = MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    } else if (0 == strcmp("dup", way)) {
        rc = MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    } else if (0 == strcmp("probe", way)) {
        rc = probe();
    } else if (0 == strcmp("window", way)) {
        rc = window();
    } else if (0 == strcmp("spawn", way)) {
        rc = spawn(argv[0]);
    }
    show(way, rc);
    MPI_Finalize();
    return 0;
}
END
must in_variant mpicc -O2 -Wall -Werror -o "$program" "$program.c"
export WITH=$CASE_DIR/with

new() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }
for node in node0 node1; do
    new | vcluster exec "$node" bash -c 'umask 077; cat > /dev/shm/psk'
done
keys="crypt_auth=psk crypt_psk_file=/dev/shm/psk"

# way NAME: its job runs, with one process where it makes the other one; its output is
# in out, and its status returned.
way() {
    local processes=2 rc=0
    [ "$1" != spawn ] || processes=1
    echo "+ $1, $mode"
    timeout -k 5 "$LIMIT" "$SRC/tests/vcluster" mpirun -n $processes --map-by node --host node0:4,node1:4 -x WITH \
        "$WITH" "$program" "$1" > "$CASE_DIR/out" 2>&1 < /dev/null || rc=$?
    cat "$CASE_DIR/out"
    # The launcher of 5.0 may stay when all processes have ended (tests/vcluster).
    [ "$rc" != 124 ] && { [ "$rc" != 137 ] || grep -q '^vcluster: mpirun hung' "$CASE_DIR/out"; } || fail "$1: it hangs"
    ! grep -qiE 'segmentation|signal [0-9]|signal:|sets up a communicator|message failed authentication|check your network for faults' \
        "$CASE_DIR/out" || fail "$1: a crash, or a message that blames something else"
    return $rc
}
ways="exchange sum gather dup probe window"
[ "$SERIES" = 4.1 ] || ways="exchange sum gather dup probe session"

mode=abort
# shellcheck disable=SC2086
set_both $keys
for name in $ways spawn; do
    ! way "$name" || fail "$name: the job goes on"
    said=$(grep -c '^Peer authentication failed' "$CASE_DIR/out") || true
    [ "$said" = 1 ] || [ "$said" = 2 ] || fail "$name: it is said $said times"
    says_too "rank 0"
    ! grep -q "^$name, rank .: " "$CASE_DIR/out" || fail "$name: the call returned"
done

mode=error
# shellcheck disable=SC2086
set_both $keys crypt_on_auth_failure=error
for name in ${ways/ dup/}; do           # after which MPI_Finalize of Open MPI 4.1 crashes by itself
    way "$name" || fail "$name: the program could not go on"
    wanted=MPI_ERR_CRYPT
    # By then Open MPI has made this of it.
    [ "$name" != window ] || wanted=MPI_ERR_WIN
    for rank in 0 1; do
        grep "^$name, rank $rank: .*$wanted" "$CASE_DIR/out" || fail "$name: rank $rank had another result"
    done
done

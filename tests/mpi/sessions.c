/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI sessions: made, used and ended several times in one process, beside and
 * without MPI_COMM_WORLD's life; each time all sizes over a communicator made
 * from a process set.  "sessions LIVES [mix [DIR]]": a mix has a life of MPI_Init, one of
 * MPI_Init with a session that ends before it, and sessions that overlap, so that
 * MPI lives on from one to the other; with a directory that all share, each life but one has
 * a file, too.  Of more than one rank a node plain Open MPI
 * 5.0.7 makes a second life fail between nodes (btl/tcp connects to the first life's
 * port): shell/lives knows how to help it.  Of any number of ranks OpenPMIx 5.0.7 loses a fence of
 * MPI_Session_init now and then, over plain Open MPI, too: the server counts the process out when it notices
 * that the connection of the life before was closed, even if the process has already joined the fence of
 * the next one (openpmix 3934).  So a life begins after the server has closed the old connection.
 */
#include "mt.h"

#include <time.h>
#include <unistd.h>

#if MT_HAS_MPI4
/* Is a connection of this node closed at one end only?  In the kernel's table: FIN_WAIT1 and 2, CLOSE_WAIT. */
static int is_half_closed(void)
{
    char line[512];
    unsigned state;
    int found = 0;
    FILE *f = fopen("/proc/self/net/tcp", "r");
    while (NULL != f && !found && NULL != fgets(line, sizeof(line), f)) {
        found = 1 == sscanf(line, " %*[0-9]: %*s %*s %x", &state) && (4 == state || 5 == state || 8 == state);
    }
    if (NULL != f) {
        fclose(f);
    }
    return found;
}

static void await_server(void)
{
    time_t until = time(NULL) + 60;
    while (is_half_closed()) {
        if (time(NULL) > until) {
            mt_fail(__FILE__, __LINE__, "the server has not closed the connection of the life before");
        }
        usleep(1000);
    }
}

static void talk(MPI_Comm comm, int seed)
{
    int rank, size;
    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(MPI_Comm_size(comm, &size));
    for (int d = 0; d < size; d++) {
        int to = (rank + d) % size, from = (rank + size - d) % size;
        for (int i = 0; i < mt_few_sizes_count; i++) {
            size_t n = mt_few_sizes[i];
            unsigned char *p = malloc(n + 1);
            MPI_Status status;
            mt_buf_t buf;
            mt_buf_new(&buf, n);
            mt_fill(p, n, mt_key(seed, rank, to, i));
            MT_MPI(MPI_Sendrecv(p, (int) n, MPI_BYTE, to, 1, buf.p, (int) n, MPI_BYTE, from, 1, comm, &status));
            MT_STATUS(&status, from, 1, n);
            MT_BUF(&buf, n, mt_key(seed, from, rank, i));
            mt_buf_free(&buf);
            free(p);
        }
    }
}

static const char *directory;

static void keep(MPI_Comm comm, int life, int rank)
{
    char path[1024];
    int said = 1000 * life + rank, read = -1;
    MPI_File f;
    snprintf(path, sizeof(path), "%s/file", directory);
    MT_MPI(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    MT_MPI(MPI_File_write_at_all(f, rank * (MPI_Offset) sizeof(said), &said, 1, MPI_INT, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_read_at_all(f, rank * (MPI_Offset) sizeof(said), &read, 1, MPI_INT, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_close(&f));
    if (read != said) {
        mt_fail(__FILE__, __LINE__, "life %d: the file has %d instead of %d", life, read, said);
    }
}

static int speak(MPI_Comm comm, int life)
{
    int rank, size, sum = 0;
    talk(comm, life);
    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(MPI_Comm_size(comm, &size));
    MT_MPI(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    if (size * (size - 1) / 2 != sum) {
        mt_fail(__FILE__, __LINE__, "the sum of the ranks is %d", sum);
    }
    if (NULL != directory && 2 != life) {
        keep(comm, life, rank);
    }
    return rank;
}

static int in_session(int life, MPI_Session session)
{
    MPI_Group group;
    MPI_Comm comm;
    int rank;
    MT_MPI(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    MT_MPI(MPI_Comm_create_from_group(group, "ompi-crypt.tests.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    MT_MPI(MPI_Group_free(&group));
    rank = speak(comm, life);
    MT_MPI(MPI_Comm_free(&comm));
    return rank;
}

static MPI_Session begin(void)
{
    MPI_Session session;
    MT_MPI(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    return session;
}

static int one_life(int life, int mix)
{
    MPI_Session session = MPI_SESSION_NULL, second;
    int rank = -1;
    if (mix && 1 == life) {
        MT_MPI(MPI_Init(NULL, NULL));
        session = begin();
        in_session(life, session);
        MT_MPI(MPI_Session_finalize(&session));
        rank = speak(MPI_COMM_WORLD, life);
        MT_MPI(MPI_Finalize());
    } else {
        session = begin();
        rank = in_session(life, session);
        if (mix && 0 == life % 3) {
            second = begin();
            MT_MPI(MPI_Session_finalize(&session));
            session = second;
            in_session(life, session);
        }
        MT_MPI(MPI_Session_finalize(&session));
    }
    if (0 == rank) {
        printf("ok sessions: life %d\n", life);
        fflush(stdout);
    }
    return rank;
}
#endif

int main(int argc, char **argv)
{
#if MT_HAS_MPI4
    int rank = -1, lives = argc > 1 ? atoi(argv[1]) : 1, mix = argc > 2 && 0 == strcmp("mix", argv[2]);
    directory = argc > 3 ? argv[3] : NULL;
    for (int life = 0; life < lives; life++) {
        await_server();
        rank = one_life(life, mix);
    }
    if (0 == rank) {
        printf("passed sessions\n");
    }
    return 0;
#else
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    mt_skip("this MPI has no sessions");
#endif
}

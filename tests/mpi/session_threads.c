/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Threads that only a session asked for: "session_threads" alone, or, with "late",
 * after another session that has one thread.
 */
#include "mt.h"

#include <pthread.h>

#if MT_HAS_MPI4
enum { THREADS = 4 };

static MPI_Comm comm;
static int rank, size, rounds;

static size_t size_of(int t, int source, int k)
{
    uint64_t state = mt_key(t, source, k, 2);

    return mt_random_size(&state, 150000);
}

static void *body(void *arg)
{
    int t = (int) (intptr_t) arg;
    unsigned char *p = malloc(150000);

    for (int r = 0; r < rounds; r++) {
        int d = r % size, to = (rank + d) % size, from = (rank + size - d) % size;
        size_t n = size_of(t, rank, r), m = size_of(t, from, r);
        MPI_Request in, out;
        MPI_Status status;
        mt_buf_t buf;
        mt_buf_new(&buf, m);
        mt_fill(p, n, mt_key(t, rank, to, r));
        MT_MPI(MPI_Irecv(buf.p, (int) m, MPI_BYTE, from, t, comm, &in));
        MT_MPI(MPI_Isend(p, (int) n, MPI_BYTE, to, t, comm, &out));
        MT_MPI(MPI_Wait(&in, &status));
        MT_MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
        MT_STATUS(&status, from, t, m);
        MT_BUF(&buf, m, mt_key(t, from, rank, r));
        mt_buf_free(&buf);
    }
    free(p);
    return NULL;
}

static MPI_Session session_of(const char *level)
{
    MPI_Session session;
    MPI_Info info;

    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "thread_level", level));
    MT_MPI(MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session));
    MT_MPI(MPI_Info_free(&info));
    return session;
}

static void use(MPI_Session session)
{
    pthread_t id[THREADS];
    MPI_Group group;

    MT_MPI(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    MT_MPI(MPI_Comm_create_from_group(group, "ompi-crypt.tests.session-threads", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    MT_MPI(MPI_Group_free(&group));
    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(MPI_Comm_size(comm, &size));
    for (int t = 0; t < THREADS; t++) {
        MT_CHECK(0 == pthread_create(&id[t], NULL, body, (void *) (intptr_t) t), "pthread_create");
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(id[t], NULL);
    }
    MT_MPI(MPI_Comm_free(&comm));
}
#endif

int main(int argc, char **argv)
{
#if MT_HAS_MPI4
    bool late = argc > 1 && 0 == strcmp(argv[1], "late");
    MPI_Session first = MPI_SESSION_NULL, session;

    rounds = 200;
    if (late) {
        first = session_of("MPI_THREAD_SINGLE");
    }
    session = session_of("MPI_THREAD_MULTIPLE");
    use(session);
    MT_MPI(MPI_Session_finalize(&session));
    if (late) {
        MT_MPI(MPI_Session_finalize(&first));
    }
    if (0 == rank) {
        printf("passed session_threads\n");
    }
    return 0;
#else
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    mt_skip("this MPI has no sessions");
#endif
}

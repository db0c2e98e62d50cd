/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Many large messages at a time, for a transport that reads and writes memory by itself (RDMA): is a
 * buffer used again before it has been read or written?
 *
 * Each round `messages` sends are outstanding, and each has a text of its own.  Receives are posted before
 * them (early) and after them (late); then both in turn.  Rounds use the same memory of the application, and
 * a buffer is overwritten as soon as its request is complete.  pml/crypt has fewer stages than
 * that, and so seals the next message where one has just been; what was read too late does not authenticate, and over
 * plain Open MPI has the wrong text.  `messages` beyond 256 make it give pages of stages back to the
 * kernel between the rounds (pml_crypt_stage.c), which an adapter may still have registered.
 *
 *     CANARY       (variable) 16 bytes in hex: every 64 bytes begin with them, for who looks at the wire
 *     fork         a child lives during each round
 *     hasty        what is sent is overwritten at once, as no program may: the control
 */
#include "mt.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANARY = 16, LINE = 64 };

static size_t bytes;
static int messages;
static unsigned char canary[CANARY], *out, *in;
static bool has_canary;

static void fill(unsigned char *p, int round, int source, int i)
{
    mt_fill(p, bytes, mt_key(round, source, i, 0));
    for (size_t at = 0; has_canary && at + CANARY <= bytes; at += LINE) {
        memcpy(p + at, canary, CANARY);
    }
}

static void check(const unsigned char *p, int round, int source, int i)
{
    static unsigned char *expected;

    expected = NULL == expected ? malloc(bytes) : expected;
    fill(expected, round, source, i);
    for (size_t at = 0; at < bytes; at++) {
        MT_CHECK(p[at] == expected[at], "wrong byte at %zu of %zu of message %d of round %d", at, bytes, i, round);
    }
}

static void receives(MPI_Request *request, int from)
{
    for (int i = 0; i < messages; i++) {
        MT_MPI(MPI_Irecv(in + (size_t) i * bytes, (int) bytes, MPI_BYTE, from, i, MPI_COMM_WORLD, &request[i]));
    }
}

/* Both directions at a time, unless `one_way`. */
static void round_of(int round, bool one_way)
{
    MPI_Request *request = malloc(2 * (size_t) messages * sizeof(*request)), *sends = request + messages;
    const int other = 1 - mt_rank;
    const bool early = 0 != round % 2, sender = !one_way || round % 2 == mt_rank, receiver = !one_way || !sender;
    const bool hasty = mt_flag("hasty");
    int done;

    for (int i = 0; i < 2 * messages; i++) {
        request[i] = MPI_REQUEST_NULL;
    }
    if (receiver) {
        memset(in, 0xa5, (size_t) messages * bytes);
    }
    if (receiver && early) {
        receives(request, other);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; sender && i < messages; i++) {
        fill(out + (size_t) i * bytes, round, mt_rank, i);
        MT_MPI(MPI_Isend(out + (size_t) i * bytes, (int) bytes, MPI_BYTE, other, i, MPI_COMM_WORLD, &sends[i]));
        if (hasty) {
            memset(out + (size_t) i * bytes, 0x5a, bytes);
        }
    }
    if (receiver && !early) {
        receives(request, other);
    }
    for (;;) {
        MT_MPI(MPI_Waitany(2 * messages, request, &done, MPI_STATUS_IGNORE));
        if (MPI_UNDEFINED == done) {
            break;
        }
        if (done < messages) {
            check(in + (size_t) done * bytes, round, other, done);
        } else {
            memset(out + (size_t) (done - messages) * bytes, 0x5a, bytes);
        }
    }
    free(request);
}

static void read_canary(void)
{
    const char *word = getenv("CANARY");

    has_canary = NULL != word;
    for (int i = 0; has_canary && i < CANARY; i++) {
        MT_CHECK(1 == sscanf(word + 2 * i, "%2hhx", &canary[i]), "CANARY is not %d bytes in hex", CANARY);
    }
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int rounds = (int) mt_arg("rounds", 4);

    bytes = (size_t) mt_arg("bytes", 300000);
    messages = (int) mt_arg("messages", 16);
    out = malloc((size_t) messages * bytes);
    in = malloc((size_t) messages * bytes);
    MT_CHECK(2 == mt_size && NULL != out && NULL != in, "two processes, and memory");
    read_canary();
    for (int round = 0; round < rounds; round++) {
        pid_t child = mt_flag("fork") ? fork() : 0;
        int status;

        if (mt_flag("fork") && 0 == child) {
            memset(out, 1, (size_t) messages * bytes);          /* of its own, from now on */
            for (;;) {
                pause();
            }
        }
        round_of(round, mt_flag("one-way"));
        MT_CHECK(0 == child || (0 == kill(child, SIGKILL) && child == waitpid(child, &status, 0)), "the child");
    }
    mt_group("%d rounds of %d messages of %zu bytes", rounds, messages, bytes);
    return mt_end();
}

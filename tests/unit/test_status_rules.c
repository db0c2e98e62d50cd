/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The rules by which `mpicrypt ps` decides what looks wrong, and its sentences, from pages that are
 * made here.
 */
#include "tests/unit/unit.h"

#include <limits.h>

#include "ompi/tools/mpicrypt/ps/judge.c"

#define SECONDS INT64_C(1000000000)

static const int64_t now = 1000 * SECONDS;
static opal_crypt_status_process_t pages[40];
static char *text, *not_seen;
static int found;
static bool known;

/* Processes that are inside MPI, and in which messages begin and end. */
static void good(int count)
{
    for (int i = 0; i < count; i++) {
        pages[i] = (opal_crypt_status_process_t){
            .who = {.rank = (uint32_t) i, .pid = 100 + (uint32_t) i, .job = "j", .host = "n"}, .now = now, .state = 'R',
           .snapshot = {.updated = now - SECONDS / 2, .active = now - SECONDS / 2, .phase = OPAL_CRYPT_STATUS_RUNNING}};
    }
}

static void waits(int rank, opal_crypt_status_wait_t wait)
{
    pages[rank].snapshot.waits[pages[rank].snapshot.wait_count++] = wait;
}

static bool judged(int count, int expected, const char *sentence)
{
    size_t bytes, more;
    FILE *out, *rest;
    bool right;

    free(text);
    free(not_seen);
    out = open_memstream(&text, &bytes);
    rest = open_memstream(&not_seen, &more);
    found = mpicrypt_ps_judge(pages, count, 2, 10, out, rest, &known);
    fclose(out);
    fclose(rest);
    right = found == expected && NULL != strstr(text, sentence);
    if (!right) {
        fprintf(stderr, "%d:\n%swhere %d: %s\n", found, text, expected, sentence);
    }
    return right;
}

#pragma GCC diagnostic ignored "-Woverride-init"     /* RECEIVE, with other values behind */
#define RECEIVE(...) ((opal_crypt_status_wait_t){.kind = OPAL_CRYPT_STATUS_RECEIVE, .since = now - 34 * SECONDS, \
                                                        .comm = "MPI_COMM_WORLD", .blocking = 1, __VA_ARGS__})

static void sealed(int of, uint32_t with, uint64_t sent, uint64_t accepted)
{
    opal_crypt_status_snapshot_t *m = &pages[of].snapshot;

    m->peers[m->peer_count++] = (opal_crypt_status_peer_t){.rank = with, .state = OPAL_CRYPT_STATUS_SEALED, .sent = sent,
                                                                  .accepted = accepted, .highest = accepted};
}

static bool goes_on(const char *but)
{
    return known && 0 == strcmp(not_seen, but);
}

static void test_receives(void)
{
    UNIT_GROUP("receives");
    good(2);
    UNIT_CHECK(judged(2, 0, "") && goes_on(""));
    UNIT_CHECK(judged(1, 0, "") && goes_on("1 of its processes: name all nodes (--host, --slurm)\n"));
    waits(1, RECEIVE(.since = now - 9 * SECONDS));
    UNIT_CHECK(judged(2, 0, ""));

    good(2);
    waits(1, RECEIVE(.tag = 6));
    UNIT_CHECK(judged(2, 1, "rank 1 (n) has waited 34 s in a receive from rank 0, tag 6; rank 0 has sent nothing to it\n"));
    sealed(0, 1, 3, 0);
    sealed(1, 0, 0, 2);
    UNIT_CHECK(judged(2, 1, "; rank 0 has sent it 1 message that it has not received\n"));
    pages[1].snapshot.waits[0].queued_unmatched = 1;
    pages[1].snapshot.waits[0].unmatched_tag = 5;
    UNIT_CHECK(judged(2, 1, "; rank 0 has sent it 1 message that it has not received: tag 5\n"));
    pages[1].snapshot.waits[0].queued_unmatched = 0;
    pages[1].snapshot.peers[0].accepted = 3;
    UNIT_CHECK(judged(2, 1, "; rank 0 has sent nothing more to it (3 messages, all of them received)\n"));

    UNIT_GROUP("what is not known is not said");
    pages[0].snapshot.peers[0].state = OPAL_CRYPT_STATUS_ON_NODE;
    UNIT_CHECK(judged(2, 1, "in a receive from rank 0, tag 6\n"));
    good(2);
    pages[0].snapshot.peers_left_out = 1;
    waits(1, RECEIVE(.tag = 6));
    UNIT_CHECK(judged(2, 1, "in a receive from rank 0, tag 6\n"));
    UNIT_CHECK(judged(1, 0, ""));
    UNIT_CHECK((pages[0] = pages[1], judged(1, 1, "; no page of rank 0 was seen\n")));

    UNIT_GROUP("any rank, any tag, other communicators, other jobs, collectives");
    good(2);
    waits(1, RECEIVE(.peer = -1, .process = -1, .tag = INT_MIN, .comm = "row\033"));
    UNIT_CHECK(judged(2, 1, "in a receive from any rank, any tag, of row?\n"));
    good(2);
    waits(1, RECEIVE(.peer = 4, .process = 0, .tag = 1, .comm = "row"));
    UNIT_CHECK(judged(2, 1, "in a receive from rank 4 of row (rank 0 of the job), tag 1, of row; rank 0"));
    good(2);
    waits(1, RECEIVE(.peer = 4, .process = OPAL_CRYPT_STATUS_FOREIGN, .tag = 1, .comm = "up"));
    UNIT_CHECK(judged(2, 1, "in a receive from rank 4 of up, of another job, tag 1, of up\n"));
    good(2);
    waits(1, RECEIVE(.tag = -16, .text = "barrier"));
    UNIT_CHECK(judged(2, 1, "has waited 34 s in a collective (barrier), for a message from rank 0;"));
}

static void test_requests(void)
{
    UNIT_GROUP("requests");
    good(2);
    waits(1, RECEIVE(.blocking = 0, .tag = 6));
    UNIT_CHECK(judged(2, 0, ""));               /* others come and go */
    pages[1].snapshot.active = now - 20 * SECONDS;
    UNIT_CHECK(judged(2, 1, "has waited 34 s in a receive from rank 0, tag 6"));
    pages[1].snapshot.updated = now - 20 * SECONDS;
    UNIT_CHECK(judged(2, 0, ""));               /* it computes */
    good(2);
    pages[0].snapshot.active = 0;
    waits(0, RECEIVE(.kind = OPAL_CRYPT_STATUS_SEND, .protocol = OPAL_CRYPT_STATUS_CHOPPED, .peer = 1, .process = 1, .bytes = 99));
    UNIT_CHECK(judged(2, 1, "has waited 34 s in a send to rank 1, tag 0 (99 bytes, in segments)\n"));
}

static void test_processes(void)
{
    UNIT_GROUP("stopped, gone, outside MPI");
    good(3);
    pages[0].state = 'T';
    UNIT_CHECK(judged(3, 1, "rank 0 (n) is stopped (state T): 'kill -CONT 100' lets it go on\n"));
    waits(1, RECEIVE());
    pages[0].snapshot.updated = 0;
    UNIT_CHECK(judged(3, 2, "; rank 0 is stopped\n"));
    pages[0].state = 'R';
    UNIT_CHECK(judged(3, 2, "rank 0 (n) has been outside MPI for 1000 s, and others wait for it (process 100, state R)\n"));
    UNIT_CHECK(NULL != strstr(text, "; rank 0 has not been inside MPI for 1000 s\n"));
    pages[1].snapshot.wait_count = 0;
    UNIT_CHECK(judged(3, 0, ""));               /* no process waits for it */
    pages[0].gone = 1;
    UNIT_CHECK(judged(3, 1, "rank 0 (n) is gone: process 100 ended without MPI_Finalize\n"));

    UNIT_GROUP("first contact, MPI_Init, MPI_Finalize");
    good(4);
    waits(2, RECEIVE(.kind = OPAL_CRYPT_STATUS_CONTACT, .process = 3, .peer = -1, .text = "its record of keys"));
    UNIT_CHECK(judged(4, 1, "rank 2 (n) has waited 34 s in its first contact with rank 3, for its record of keys\n"));
    good(2);
    pages[1].snapshot.phase = OPAL_CRYPT_STATUS_ENDING;
    UNIT_CHECK(judged(2, 1, "rank 1 (n) has been in MPI_Finalize for 1000 s\n"));
    pages[1].snapshot.phase_since = now - 5 * SECONDS;
    UNIT_CHECK(judged(2, 0, ""));

    UNIT_GROUP("many");
    good(40);
    for (int i = 1; i < 40; i++) {
        waits(i, RECEIVE());
    }
    UNIT_CHECK(judged(40, 39, "  19 more ranks wait (--all shows them)\n"));

    UNIT_GROUP("times that cannot be");
    good(2);
    waits(1, RECEIVE(.since = INT64_MIN));
    pages[0].snapshot.updated = INT64_MAX;
    pages[1].now = INT64_MAX;
    UNIT_CHECK(judged(2, 1, "has waited"));
}

static void test_unknown(void)
{
    static const char *const both = "whether 1 process inside MPI goes on: none of their messages was seen for 10 s\n"
                                    "whether 1 process, asleep outside MPI, goes on\n";

    UNIT_GROUP("nobody is seen to go on");
    good(2);
    pages[0].snapshot.active = pages[1].snapshot.updated = 0;
    UNIT_CHECK(judged(2, 0, "") && goes_on(""));            /* one computes */
    pages[1].state = 'S';
    UNIT_CHECK(judged(2, 0, "") && !known && 0 == strcmp(not_seen, both));
    pages[0].snapshot.active = now;
    UNIT_CHECK(judged(2, 0, "") && goes_on(""));
    pages[0].snapshot.active = 0;
    waits(0, RECEIVE(.process = 1));
    UNIT_CHECK(judged(2, 2, "has waited 34 s") && goes_on(""));     /* something is wrong, and that is known */
}

static void over_btl(int count)
{
    good(count);
    for (int i = 0; i < count; i++) {
        pages[i].who.over_btl = 1;
        pages[i].snapshot.sealed = 1;
        pages[i].snapshot.active = now - (20 + i) * SECONDS;
    }
}

static void test_over_btl(void)
{
    UNIT_GROUP("over btl/crypt: what has arrived, as records say nothing of messages");
    over_btl(2);
    sealed(0, 1, 9, 0);
    waits(1, RECEIVE(.tag = 6));
    UNIT_CHECK(judged(2, 1, "rank 1 (n) has waited 34 s in a receive from rank 0, tag 6\n") && goes_on(""));
    pages[1].snapshot.waits[0].asked = 1;
    UNIT_CHECK(judged(2, 1, "in a receive from rank 0, tag 6; no other message from it has arrived\n"));
    pages[1].snapshot.waits[0].queued_unmatched = 1;
    pages[1].snapshot.waits[0].unmatched_tag = 5;
    UNIT_CHECK(judged(2, 1, "in a receive from rank 0, tag 6; a message of another tag is queued: rank 0, tag 5\n"));
    pages[0].state = 'T';
    UNIT_CHECK(judged(2, 2, "; rank 0 is stopped\n"));
    over_btl(2);
    waits(0, RECEIVE(.kind = OPAL_CRYPT_STATUS_SEND, .process = 1, .peer = 1, .tag = 5, .bytes = 7, .blocking = 0,
                     .protocol = OPAL_CRYPT_STATUS_BELOW));
    UNIT_CHECK(judged(2, 1, "rank 0 (n) has waited 34 s in a send to rank 1, tag 5 (7 bytes)\n"));
    pages[0].snapshot.active = now - 5 * SECONDS;
    UNIT_CHECK(judged(2, 0, "") && goes_on(""));            /* an old request of a process that goes on */

    UNIT_GROUP("inside MPI, and in no call that is seen");
    over_btl(2);
    UNIT_CHECK(judged(2, 0, "") && !known
               && 0 == strcmp(not_seen, "whether 2 processes inside MPI go on: none of their messages was seen for 10 s\n"));
    over_btl(1);
    pages[0].snapshot.updated = now - 30 * SECONDS;
    UNIT_CHECK(judged(1, 0, "") && known);                  /* it computes */

    UNIT_GROUP("what connections say");
    over_btl(2);
    waits(0, RECEIVE(.kind = OPAL_CRYPT_STATUS_TAKE, .process = 1, .peer = -1, .bytes = 99));
    UNIT_CHECK(judged(2, 1, "rank 0 (n) has waited 34 s for rank 1 to take 99 bytes that were sent to it\n"));
    pages[0].snapshot.waits[0].process = OPAL_CRYPT_STATUS_FOREIGN;
    UNIT_CHECK(judged(2, 1, "for a process of another job to take 99 bytes that were sent to it\n"));
}

int main(void)
{
    test_receives();
    test_requests();
    test_processes();
    test_unknown();
    test_over_btl();
    free(text);
    free(not_seen);
    return unit_done();
}

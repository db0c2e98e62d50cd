/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A connection of btl/crypt with the threads that a process has: some post, under the lock; one makes progress,
 * which reads without the lock, and pumps and reaps with it.  It answers what it reads, as callbacks do.  Both
 * ends at once; to the end, and with a cut.  Under ThreadSanitizer this test shows that nothing races.
 * (No UNIT_CHECK in threads: it counts without a lock.)
 */
#include "btl_ends.h"

#include <poll.h>
#include <pthread.h>

#define POSTERS 2
#define POSTS   1000            /* of a thread: each a put and a fragment */
#define PUT     700
#define ANSWER  9               /* the tag of what is posted in a callback */
#define ANSWERS (POSTERS * POSTS / 8)

/* What is posted, and its memory, until it is done with. */
typedef struct parcel {
    opal_btl_crypt_item_t item;
    uint32_t words[];
} parcel_t;

typedef struct process {
    opal_btl_crypt_engine_t engine;
    opal_btl_crypt_link_t *link;
    struct process *other;
    pthread_mutex_t lock;
    unsigned held, posting;                     /* under it: parcels; posters that have not ended */

    /* Only for the thread that makes progress. */
    unsigned cut_after, came[POSTERS], answers, wrong;
    uint8_t memory[POSTERS][PUT];
} process_t;

typedef struct poster {
    process_t *process;
    unsigned number;
} poster_t;

static process_t processes[2];

/* ---- out ---- */

/* With the lock. */
static void post_parcel(process_t *process, const opal_btl_crypt_frame_t *frame, const void *bytes)
{
    parcel_t *parcel = malloc(sizeof(*parcel) + frame->bytes);
    const struct iovec piece = {parcel->words, frame->bytes};

    memcpy(parcel->words, bytes, frame->bytes);
    opal_btl_crypt_item_make(&parcel->item, frame, &piece, 1);
    if (opal_btl_crypt_link_post(process->link, &parcel->item)) {
        free(parcel);
    } else {
        ++process->held;
    }
}

/* Which poster, which of its posts, and something that depends on it. */
static size_t fill_words(uint32_t *words, unsigned poster, unsigned i)
{
    const size_t count = 2 + i * 7919 % (0 == i % 50 ? 20000 : 300);

    words[0] = poster;
    words[1] = i;
    for (size_t at = 2; at < count; at++) {
        words[at] = (uint32_t) (i * 2654435761u + at);
    }
    return 4 * count;
}

static void *run_poster(void *arg)
{
    const poster_t *me = arg;
    process_t *process = me->process;
    opal_btl_crypt_frame_t put = {.type = OPAL_BTL_CRYPT_PUT, .bytes = PUT,
                                  .address = (uintptr_t) process->other->memory[me->number]};
    opal_btl_crypt_frame_t fragment = {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = 1};
    static __thread uint32_t words[20002];
    uint8_t bytes[PUT];

    for (unsigned i = 0; i < POSTS; i++) {
        memset(bytes, (int) (i + me->number), sizeof(bytes));
        fragment.bytes = fill_words(words, me->number, i);
        pthread_mutex_lock(&process->lock);
        post_parcel(process, &put, bytes);
        post_parcel(process, &fragment, words);
        pthread_mutex_unlock(&process->lock);
    }
    pthread_mutex_lock(&process->lock);
    --process->posting;
    pthread_mutex_unlock(&process->lock);
    return NULL;
}

/* ---- in ---- */

static bool is_right(const process_t *process, const uint32_t *words, size_t bytes)
{
    static __thread uint32_t expected[20002];
    const unsigned poster = words[0];
    uint8_t put[PUT];

    if (bytes < 8 || poster >= POSTERS || bytes != fill_words(expected, poster, process->came[poster])) {
        return false;
    }
    memset(put, (int) (process->came[poster] + poster), sizeof(put));
    return 0 == memcmp(words, expected, bytes) && 0 == memcmp(put, process->memory[poster], sizeof(put));
}

static bool process_deliver(opal_btl_crypt_link_t *link, uint8_t tag, void *bytes, size_t count)
{
    const opal_btl_crypt_frame_t answer = {.type = OPAL_BTL_CRYPT_FRAGMENT, .tag = ANSWER, .bytes = 8};
    process_t *process = link->owner;
    const uint32_t *words = bytes;

    if (ANSWER == tag) {
        process->answers++;
    } else if (!is_right(process, words, count)) {
        process->wrong++;
    } else if (7 == process->came[words[0]]++ % 8) {
        pthread_mutex_lock(&process->lock);
        post_parcel(process, &answer, bytes);
        pthread_mutex_unlock(&process->lock);
    }
    return true;
}

/* ---- progress ---- */

/* Pump and reap.  Has everything been sent?  *waits: for the socket. */
static bool send_on(process_t *process, bool *waits)
{
    opal_btl_crypt_item_t *item;
    bool done;

    pthread_mutex_lock(&process->lock);
    opal_btl_crypt_link_pump(process->link);
    while (NULL != (item = opal_btl_crypt_link_reap(process->link))) {
        if (item != &process->link->hello) {
            free(item);
            --process->held;
        }
    }
    *waits = process->link->wants_write;
    done = 0 == process->held && 0 == process->posting && 0 == opal_btl_crypt_ring_used(&process->link->ring);
    pthread_mutex_unlock(&process->lock);
    return done;
}

static bool all_came(const process_t *process)
{
    unsigned came = 0;

    for (int i = 0; i < POSTERS; i++) {
        came += process->came[i];
    }
    return POSTERS * POSTS == came && ANSWERS == process->answers;
}

static void *run_progress(void *arg)
{
    process_t *process = arg;
    struct pollfd ready = {.fd = process->link->fd};
    bool waits;

    while ((!send_on(process, &waits) || !all_came(process)) && OPAL_BTL_CRYPT_OPEN == process->link->state) {
        ready.events = (short) (POLLIN | (waits ? POLLOUT : 0));
        poll(&ready, 1, 1);
        opal_btl_crypt_link_read(process->link);
        if (process->came[0] >= process->cut_after) {
            shutdown(process->link->fd, SHUT_RDWR);
        }
    }
    return NULL;
}

/* ---- both ---- */

static job_t job;

static void start_link(void)
{
    const opal_crypt_tls_identity_t identity = tls_identity();
    opal_btl_crypt_link_t *client, *server;
    int pair[2];

    job.psk = tls_psk(PSK);
    btl_pair(pair);
    client = processes[0].link = opal_btl_crypt_link_connect(&processes[0].engine, pair[0], tls_group, &identity, &job.psk);
    server = processes[1].link = opal_btl_crypt_link_accept(&processes[1].engine, pair[1], job_find, &job);
    UNIT_REQUIRE(NULL != client && NULL != server);
    for (int i = 0; i < 8 && OPAL_BTL_CRYPT_AUTHENTICATED != server->state; i++) {
        opal_btl_crypt_link_drive(client);
        opal_btl_crypt_link_drive(server);
    }
    client->owner = &processes[0];
    server->owner = &processes[1];
    opal_btl_crypt_link_send_hello(client);
    opal_btl_crypt_link_send_hello(server);
    opal_btl_crypt_link_read(client);
    UNIT_REQUIRE(OPAL_BTL_CRYPT_OPEN == client->state && OPAL_BTL_CRYPT_OPEN == server->state);
}

static void start_processes(opal_crypt_tls_t *tls, unsigned cut_after)
{
    memset(processes, 0, sizeof(processes));
    for (int i = 0; i < 2; i++) {
        processes[i].engine = (opal_btl_crypt_engine_t) {.tls = tls, .aead = &opal_aead_openssl_module, .own = tls_name(0),
                                                         .deliver = process_deliver};
        UNIT_REQUIRE(opal_btl_crypt_engine_start(&processes[i].engine));
        processes[i].other = &processes[1 - i];
        processes[i].posting = POSTERS;
        processes[i].cut_after = 0 == i ? cut_after : UINT32_MAX;
        pthread_mutex_init(&processes[i].lock, NULL);
    }
    start_link();
}

static void run_all(void)
{
    pthread_t progress[2], threads[2][POSTERS];
    poster_t posters[2][POSTERS];

    for (int i = 0; i < 2; i++) {
        UNIT_REQUIRE(0 == pthread_create(&progress[i], NULL, run_progress, &processes[i]));
        for (unsigned k = 0; k < POSTERS; k++) {
            posters[i][k] = (poster_t) {&processes[i], k};
            UNIT_REQUIRE(0 == pthread_create(&threads[i][k], NULL, run_poster, &posters[i][k]));
        }
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(progress[i], NULL);
        for (int k = 0; k < POSTERS; k++) {
            pthread_join(threads[i][k], NULL);
        }
    }
}

static void end_process(process_t *process)
{
    opal_btl_crypt_queue_t *queues[] = {&process->link->sealed, &process->link->queue};

    for (int i = 0; i < 2; i++) {
        for (opal_btl_crypt_item_t *item; NULL != (item = opal_btl_crypt_queue_take(queues[i]));) {
            if (item != &process->link->hello) {
                free(item);
                --process->held;
            }
        }
    }
    UNIT_CHECK(0 == process->held && 0 == process->wrong);
    opal_btl_crypt_link_destroy(process->link);
    UNIT_CHECK(0 == process->engine.ring_bytes);
    opal_btl_crypt_engine_stop(&process->engine);
    pthread_mutex_destroy(&process->lock);
}

int main(void)
{
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);

    UNIT_REQUIRE(NULL != tls);
    UNIT_GROUP("%d threads that post, and one that makes progress, on each end", POSTERS);
    start_processes(tls, UINT32_MAX);
    run_all();
    UNIT_CHECK(all_came(&processes[0]) && all_came(&processes[1]));
    opal_btl_crypt_link_close(processes[0].link, 1000);
    opal_btl_crypt_link_read(processes[1].link);
    UNIT_CHECK(OPAL_BTL_CRYPT_ENDED == processes[1].link->state);
    end_process(&processes[0]);
    end_process(&processes[1]);

    UNIT_GROUP("and the connection is cut meanwhile");
    start_processes(tls, POSTS / 2);
    run_all();
    UNIT_CHECK(OPAL_BTL_CRYPT_FAILED == processes[0].link->state && OPAL_BTL_CRYPT_FAILED == processes[1].link->state);
    end_process(&processes[0]);
    end_process(&processes[1]);
    opal_crypt_tls_destroy(tls);
    return unit_done();
}

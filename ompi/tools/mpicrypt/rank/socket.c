/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Ping-pong and pairs over one TCP socket of each pair, without MPI: what a transport can reach on one processor.
 * Plain, or sealed as TLS 1.3 would do it, with the provider that pml/crypt chooses:
 *
 *     | 23 1 | 3 3 2 | n + 16 2 | ciphertext n | tag 16 |        n = 1 .. 16384
 *
 * A message is sealed into batches of records, with a call for each batch: of 64 KiB, which the kernel takes as one
 * packet, and of 240 KiB beyond the first 512 KiB, which was found best.  A receive reads as much as there is; records
 * are opened into the message or, with `copied`, into a buffer that is copied when it is complete, as MPI does with
 * eager messages.  Each message is sent by itself, as MPI_Isend does not know whether another one follows.
 * The key is a constant: nothing is protected.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "rank.h"

#include "opal/mca/common/crypt/base/thread.h"

enum {
    RECORD = 16384, HEADER = 5, OVERHEAD = HEADER + OPAL_AEAD_TAG_BYTES,
    BATCH = 64 << 10, BATCH_LONG = 240 << 10, LONG = 512 << 10,
    SEALED = BATCH_LONG / RECORD * (RECORD + OVERHEAD), WIRE = 256 << 10
};

#define YIELD "OMPI_MCA_mpi_yield_when_idle"     /* mpicrypt bench sets it */

/* Messages of one direction: `count` of `bytes`, each `stride` behind the one before. */
typedef struct flow {
    uint8_t *base;
    size_t bytes, count, stride;
    size_t message, done;               /* the current one, and how much of it is done */
} flow_t;

static int partner, fd = -1;
static bool first, yields;
static uint8_t *out, *in, *copy, *sealed, *wire;
static size_t size, messages;
static const uint8_t *batch;            /* to be sent: from `left` up to `ready` */
static size_t ready, left;
static size_t have, at;                 /* in `wire`: read, and opened */

static const opal_aead_module_t *aead;
static opal_aead_context_t *context;
static void *key;
static uint64_t sent, received;         /* records */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static bool over(const flow_t *f) { return f->message == f->count; }

static void step(flow_t *f, size_t bytes)
{
    f->done += bytes;
    if (f->done == f->bytes) {
        f->done = 0;
        f->message++;
    }
}

/* The bytes that a call moved.  It does not sleep, just as MPI does not; if there are more ranks than processors, it
 * lets others run, just as MPI does. */
static size_t moved(ssize_t bytes)
{
    if (0 == bytes || (bytes < 0 && EAGAIN != errno && EINTR != errno)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "the socket failed: %s", 0 == bytes ? "it was closed" : strerror(errno));
    }
    if (bytes < 0 && yields) {
        sched_yield();
    }
    return bytes < 0 ? 0 : (size_t) bytes;
}

/* ---- records ---- */

static void start_sealing(size_t bits)
{
    aead = mpicrypt_mpi_bare(bits, &context, &key);
    sealed = mpicrypt_mpi_memory(SEALED);
    wire = mpicrypt_mpi_memory(WIRE);
}

/* Each direction has nonces of its own; both sides know which records are next. */
static void nonce_of(bool mine, uint64_t number, uint8_t nonce[OPAL_AEAD_NONCE_BYTES])
{
    memset(nonce, 0, OPAL_AEAD_NONCE_BYTES);
    nonce[0] = first == mine;
    memcpy(nonce + 4, &number, sizeof(number));
}

static void header_of(size_t bytes, uint8_t header[HEADER])
{
    const size_t said = bytes + OPAL_AEAD_TAG_BYTES;

    memcpy(header, (uint8_t[]) {23, 3, 3, (uint8_t) (said >> 8), (uint8_t) said}, HEADER);
}

static void seal_record(const uint8_t *plain, size_t bytes, uint8_t *to)
{
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES];

    header_of(bytes, to);
    nonce_of(true, sent++, nonce);
    if (OPAL_AEAD_OK != aead->seal(context, key, nonce, to, HEADER, plain, bytes, to + HEADER, to + HEADER + bytes)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "%s cannot seal %zu bytes", aead->name, bytes);
    }
}

static void open_record(const uint8_t *from, size_t bytes, uint8_t *to)
{
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES], expected[HEADER];

    header_of(bytes, expected);
    nonce_of(false, received++, nonce);
    if (0 != memcmp(from, expected, HEADER)
        || OPAL_AEAD_OK != aead->open(context, key, nonce, from, HEADER, from + HEADER, bytes, from + HEADER + bytes, to)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "a record of %zu bytes does not open", bytes);
    }
}

/* ---- one direction, as far as it goes now ---- */

static void seal_batch(flow_t *f)
{
    const uint8_t *message = f->base + f->message * f->stride;
    const size_t end = least(f->done + (f->done < LONG ? BATCH : BATCH_LONG), f->bytes), from = f->done;

    for (size_t done = from; done < end; done += RECORD) {
        const size_t now = least(end - done, RECORD);

        seal_record(message + done, now, sealed + ready);
        ready += now + OVERHEAD;
    }
    step(f, end - from);
    batch = sealed;
}

/* True if everything has been sent. */
static bool push(flow_t *f)
{
    if (left == ready && !over(f)) {
        left = ready = 0;
        if (NULL != aead) {
            seal_batch(f);
        } else {
            batch = f->base + f->message * f->stride;
            ready = f->bytes;
            step(f, f->bytes);
        }
    }
    if (left < ready) {
        left += moved(send(fd, batch + left, ready - left, MSG_DONTWAIT | MSG_NOSIGNAL));
    }
    return left == ready && over(f);
}

static void open_there(flow_t *f)
{
    while (!over(f)) {
        const size_t now = least(f->bytes - f->done, RECORD);
        uint8_t *message = f->base + f->message * f->stride;

        if (have - at < now + OVERHEAD) {
            return;
        }
        open_record(wire + at, now, (NULL == copy ? message : copy) + f->done);
        at += now + OVERHEAD;
        if (NULL != copy && f->done + now == f->bytes) {
            memcpy(message, copy, f->bytes);
        }
        step(f, now);
    }
}

static void read_records(flow_t *f)
{
    open_there(f);                      /* records that arrived with those of the last flow */
    if (over(f)) {
        return;
    }
    if (at == have) {
        at = have = 0;
    } else if (WIRE - have < WIRE / 4) {
        memmove(wire, wire + at, have - at);
        have -= at;
        at = 0;
    }
    have += moved(recv(fd, wire + have, WIRE - have, MSG_DONTWAIT));
    open_there(f);
}

/* True if everything has arrived. */
static bool pull(flow_t *f)
{
    if (!over(f) && NULL != aead) {
        read_records(f);
    } else if (!over(f)) {
        step(f, moved(recv(fd, f->base + f->message * f->stride + f->done, f->bytes - f->done, MSG_DONTWAIT)));
    }
    return over(f);
}

/* ---- the patterns ---- */

static flow_t nothing(void) { return (flow_t) {.count = 0}; }
static flow_t outgoing(void) { return (flow_t) {.base = out, .bytes = size, .count = messages}; }
static flow_t incoming(void) { return (flow_t) {.base = in, .bytes = size, .count = messages, .stride = size}; }

static void exchange(flow_t from, flow_t to)
{
    bool gone = false, come = false;

    while (!gone || !come) {
        gone = gone || push(&from);
        come = come || pull(&to);
    }
}

static void pingpong(void)
{
    exchange(first ? outgoing() : nothing(), first ? nothing() : incoming());
    exchange(first ? nothing() : outgoing(), first ? incoming() : nothing());
}

static void window(void)
{
    static uint8_t byte;
    const flow_t answer = {.base = &byte, .bytes = 1, .count = 1};

    if (mpicrypt_mpi_job.both) {
        exchange(outgoing(), incoming());
    } else if (first) {
        exchange(outgoing(), nothing());
        exchange(nothing(), answer);
    } else {
        exchange(nothing(), incoming());
        exchange(answer, nothing());
    }
}

static double iterate(size_t count, size_t units)
{
    (void) units;
    for (size_t i = 0; i < count && partner >= 0; ++i) {
        pingpong();
    }
    return 0;
}

static double iterate_windows(size_t count, size_t units)
{
    (void) units;
    for (size_t i = 0; i < count && partner >= 0; ++i) {
        window();
    }
    return 0;
}

static void prepare(size_t bytes, size_t count, size_t pairs)
{
    partner = mpicrypt_mpi_partner(pairs, mpicrypt_mpi_job.local, &first);
    size = bytes;
    messages = count;
    if (partner < 0) {
        return;
    }
    out = mpicrypt_mpi_memory(bytes);
    in = 1 == count || !first || mpicrypt_mpi_job.both ? mpicrypt_mpi_memory(count * bytes) : NULL;
    copy = mpicrypt_mpi_job.copied ? mpicrypt_mpi_memory(bytes) : NULL;
    if (fd >= 0) {
        return;
    }
    yields = NULL != getenv(YIELD) && 0 == strcmp(getenv(YIELD), "1");
    if (0 != mpicrypt_mpi_job.seal_bits) {
        start_sealing(mpicrypt_mpi_job.seal_bits);
    }
    fd = mpicrypt_mpi_socket_meet(partner, first);
}

static void prepare_pingpong(size_t bytes) { prepare(bytes, 1, 1); }
static void prepare_windows(size_t bytes) { prepare(bytes, mpicrypt_mpi_job.window, mpicrypt_mpi_job.pairs); }

static void fill(int number)
{
    mpicrypt_mpi_fill(&(mpicrypt_mpi_message_t) {.plain = out, .bytes = size}, mpicrypt_mpi_rank, number);
}

static void check(int number)
{
    for (size_t i = 0; i < messages; ++i) {
        mpicrypt_mpi_check_filled(&(mpicrypt_mpi_message_t) {.plain = in + i * size, .bytes = size}, partner, number);
    }
}

static void verify(int number)
{
    if (partner >= 0) {
        fill(number);
        pingpong();
        check(number);
    }
}

static void verify_windows(int number)
{
    if (partner >= 0) {
        fill(number);
        window();
    }
    if (partner >= 0 && (!first || mpicrypt_mpi_job.both)) {
        check(number);
    }
}

static void release(void)
{
    free(out);
    free(in);
    free(copy);
    out = in = copy = NULL;
}

const mpicrypt_mpi_pattern_t mpicrypt_mpi_socket = {prepare_pingpong, verify, iterate, release, 2};
const mpicrypt_mpi_pattern_t mpicrypt_mpi_socket_pairs = {prepare_windows, verify_windows, iterate_windows, release, 1};

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Ping-pong over one TCP socket, without MPI: what a transport can reach on one processor.  Plain,
 * or sealed as TLS 1.3 would do it, with the provider that pml/crypt chooses:
 *
 *     | 23 1 | 3 3 2 | n + 16 2 | ciphertext n | tag 16 |        n = 1 .. 16384
 *
 * sealed from the message into a batch of records, a call for each batch: of 64 KiB, which the kernel takes as one
 * packet, and of 240 KiB from 512 KiB on, as was found best; read as much as there is, and opened into the message,
 * or into a place from which it is copied when it is there as a whole (copied), as MPI does with messages that are sent without asking.
 * MPI says who and where, and is asleep meanwhile.  The key is a constant: nothing is protected.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rank.h"
#include "ompi/tools/mpicrypt/speed/speed.h"

#include "opal/mca/common/crypt/base/thread.h"

enum {
    RECORD = 16384, HEADER = 5, OVERHEAD = HEADER + OPAL_AEAD_TAG_BYTES,
    BATCH = 64 << 10, BATCH_LONG = 240 << 10, LONG = 512 << 10,
    SEALED = BATCH_LONG / RECORD * (RECORD + OVERHEAD), WIRE = 256 << 10
};

typedef struct way {                    /* where the partner listens */
    char host[256], port[8];
} way_t;

static int partner, fd = -1;
static bool first;
static uint8_t *out, *in, *copy, *sealed, *wire;
static size_t size, have, at;           /* of a message; in `wire`: read, and opened */

static const opal_aead_module_t *aead;
static opal_aead_context_t *context;
static void *key;
static uint64_t sent, received;         /* records */

/* ---- the socket ---- */

static int listen_here(way_t *way)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener < 0 || 0 != bind(listener, (struct sockaddr *) &address, bytes) || 0 != listen(listener, 1)
        || 0 != getsockname(listener, (struct sockaddr *) &address, &bytes)
        || 0 != gethostname(way->host, sizeof(way->host) - 1)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "no socket can be had: %s", strerror(errno));
    }
    snprintf(way->port, sizeof(way->port), "%u", ntohs(address.sin_port));
    return listener;
}

static int connect_to(const way_t *way)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int connected = -1, rc = getaddrinfo(way->host, way->port, &hints, &list);

    for (const struct addrinfo *a = list; NULL != a && connected < 0; a = a->ai_next) {
        connected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connected >= 0 && 0 != connect(connected, a->ai_addr, a->ai_addrlen)) {
            close(connected);
            connected = -1;
        }
    }
    if (NULL != list) {
        freeaddrinfo(list);
    }
    if (connected < 0) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "no connection to %s, which the other rank's node calls itself: %s", way->host,
                           0 != rc ? gai_strerror(rc) : strerror(errno));
    }
    return connected;
}

static void meet(void)
{
    const int yes = 1;
    way_t way = {.host = ""};

    if (first) {
        int listener = listen_here(&way);
        MPI_Send(&way, sizeof(way), MPI_BYTE, partner, 1, MPI_COMM_WORLD);
        fd = accept(listener, NULL, NULL);
        close(listener);
    } else {
        MPI_Recv(&way, sizeof(way), MPI_BYTE, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fd = connect_to(&way);
    }
    if (fd < 0 || 0 != setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes))) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "the other rank does not come: %s", strerror(errno));
    }
}

/* What a call moved.  It does not sleep, as MPI does not. */
static size_t moved(ssize_t bytes)
{
    if (0 == bytes || (bytes < 0 && EAGAIN != errno && EINTR != errno)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "the socket failed: %s", 0 == bytes ? "it was closed" : strerror(errno));
    }
    return bytes < 0 ? 0 : (size_t) bytes;
}

static void write_all(const uint8_t *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        done += moved(send(fd, bytes + done, count - done, MSG_DONTWAIT | MSG_NOSIGNAL));
    }
}

/* ---- records ---- */

static void start_sealing(size_t bits)
{
    static const uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES] = "a benchmark's key guards nothing";
    int cipher = mpicrypt_speed_cipher(bits);

    if (cipher < 0) {
        mpicrypt_mpi_abort(MPICRYPT_USAGE, "--seal: %zu is not one of 128, 192, 256", bits);
    }
    aead = mpicrypt_mpi_provider((opal_aead_cipher_t) cipher, raw, &key);
    context = opal_crypt_context(aead);
    if (NULL == context) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "out of memory");
    }
    sealed = mpicrypt_mpi_memory(SEALED);
    wire = mpicrypt_mpi_memory(WIRE);
}

/* Each direction has nonces of its own; both know which records are next. */
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
    const opal_aead_aad_t header = {to, HEADER};

    header_of(bytes, to);
    nonce_of(true, sent++, nonce);
    if (OPAL_AEAD_OK != aead->seal(context, key, nonce, &header, 1, plain, bytes, to + HEADER, to + HEADER + bytes)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "%s cannot seal %zu bytes", aead->name, bytes);
    }
}

static void open_record(const uint8_t *from, size_t bytes, uint8_t *to)
{
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES], expected[HEADER];
    const opal_aead_aad_t header = {from, HEADER};

    header_of(bytes, expected);
    nonce_of(false, received++, nonce);
    if (0 != memcmp(from, expected, HEADER)
        || OPAL_AEAD_OK != aead->open(context, key, nonce, &header, 1, from + HEADER, bytes, from + HEADER + bytes, to)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "a record of %zu bytes does not open", bytes);
    }
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static void send_sealed(void)
{
    for (size_t done = 0; done < size;) {
        const size_t end = least(done + (done < LONG ? BATCH : BATCH_LONG), size);
        size_t ready = 0;

        for (; done < end; done += least(end - done, RECORD)) {
            const size_t now = least(end - done, RECORD);
            seal_record(out + done, now, sealed + ready);
            ready += now + OVERHEAD;
        }
        write_all(sealed, ready);
    }
}

/* At least `wanted` bytes from `at` on. */
static void fill_wire(size_t wanted)
{
    while (have - at < wanted) {
        if (at > 0 && WIRE - have < WIRE / 4) {
            memmove(wire, wire + at, have - at);
            have -= at;
            at = 0;
        }
        have += moved(recv(fd, wire + have, WIRE - have, MSG_DONTWAIT));
    }
}

static void receive_sealed(void)
{
    uint8_t *to = NULL == copy ? in : copy;

    for (size_t done = 0; done < size;) {
        const size_t now = least(size - done, RECORD);

        fill_wire(now + OVERHEAD);
        open_record(wire + at, now, to + done);
        at += now + OVERHEAD;
        done += now;
        if (at == have) {
            at = have = 0;
        }
    }
    if (NULL != copy) {
        memcpy(in, copy, size);
    }
}

/* ---- the pattern ---- */

static void send_one(void)
{
    if (NULL != aead) {
        send_sealed();
    } else {
        write_all(out, size);
    }
}

static void receive_one(void)
{
    if (NULL != aead) {
        receive_sealed();
        return;
    }
    for (size_t done = 0; done < size;) {
        done += moved(recv(fd, in + done, size - done, MSG_DONTWAIT));
    }
}

static double iterate(size_t count, size_t units)
{
    (void) units;
    for (size_t i = 0; i < count && partner >= 0; ++i) {
        if (first) {
            send_one();
            receive_one();
        } else {
            receive_one();
            send_one();
        }
    }
    return 0;
}

static void prepare(size_t bytes)
{
    partner = mpicrypt_mpi_partner(1, mpicrypt_mpi_job.local, &first);
    size = bytes;
    out = mpicrypt_mpi_memory(bytes);
    in = mpicrypt_mpi_memory(bytes);
    copy = mpicrypt_mpi_job.copied ? mpicrypt_mpi_memory(bytes) : NULL;
    if (fd >= 0 || partner < 0) {
        return;
    }
    if (0 != mpicrypt_mpi_job.seal_bits) {
        start_sealing(mpicrypt_mpi_job.seal_bits);
    }
    meet();
}

static void verify(int number)
{
    if (partner >= 0) {
        mpicrypt_mpi_fill(&(mpicrypt_mpi_message_t) {.plain = out, .bytes = size}, mpicrypt_mpi_rank, number);
        iterate(1, 0);
        mpicrypt_mpi_check_filled(&(mpicrypt_mpi_message_t) {.plain = in, .bytes = size}, partner, number);
    }
}

static void release(void)
{
    free(out);
    free(in);
    free(copy);
}

const mpicrypt_mpi_pattern_t mpicrypt_mpi_socket = {prepare, verify, iterate, release, 2};

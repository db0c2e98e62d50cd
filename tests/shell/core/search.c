/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 *     search CORE CAPTURE TAGS CONSTANTS NEEDLES...
 *
 * Looks in the core file for any 16 bytes that stand somewhere in a file of
 * needles, as they are and as words of the other byte order.  0: none is there;
 * 1: some are.  No needles are
 *
 *   - 16 bytes of which, without those below, fewer than 12 differ: no key is
 *     like that;
 *   - what was on the wire (CAPTURE, of tcpdump): a context keeps the last tag;
 *   - what is in TAGS, which passed openly within the node, too;
 *   - the token before a message within the node: found in the core file itself;
 *   - what stands in CONSTANTS too, needles of a job with other keys: key
 *     schedules of a self test.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NEEDLE = 16, BUCKETS = 1 << 22 };


typedef struct needle {
    uint8_t bytes[NEEDLE];
    size_t at;                  /* in its file */
    int public;
    struct needle *next;
} needle_t;

static needle_t *buckets[BUCKETS];
static size_t needles;

static const uint8_t *map(const char *path, size_t *bytes)
{
    int fd = open(path, O_RDONLY);
    struct stat status;
    void *at;

    if (fd < 0 || 0 != fstat(fd, &status) || 0 == status.st_size) {
        fprintf(stderr, "%s: cannot be read, or empty\n", path);
        exit(2);
    }
    *bytes = (size_t) status.st_size;
    at = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (MAP_FAILED == at) {
        exit(2);
    }
    close(fd);
    return at;
}

static needle_t **bucket(const uint8_t *bytes)
{
    uint64_t first;

    memcpy(&first, bytes, sizeof(first));
    return &buckets[(first * UINT64_C(0x9e3779b97f4a7c15)) >> 42];
}

/* `public` says of each byte whether everybody knows it, or is NULL. */
static int is_key(const uint8_t *bytes, const uint8_t *public)
{
    uint8_t secret[NEEDLE];
    size_t different = 0;

    for (int i = 0; i < NEEDLE; i++) {
        if ((NULL == public || !public[i]) && NULL == memchr(secret, bytes[i], different)) {
            secret[different++] = bytes[i];
        }
    }
    return different >= 12;
}

static needle_t *find(const uint8_t *bytes)
{
    needle_t *n = *bucket(bytes);

    while (NULL != n && 0 != memcmp(n->bytes, bytes, NEEDLE)) {
        n = n->next;
    }
    return n;
}

/* What stands here is known to everybody. */
static void publish(const uint8_t *bytes, size_t count)
{
    for (size_t at = 0; at + NEEDLE <= count; at++) {
        needle_t *n = find(bytes + at);

        if (NULL != n) {
            n->public = 1;
        }
    }
}

/* ---- TCP streams of a capture: Ethernet, IPv4, in order and without losses ---- */

typedef struct stream {
    uint8_t key[12];                    /* addresses and ports */
    uint8_t *bytes;
    size_t count;
    struct stream *next;
} stream_t;

static stream_t *streams;

static void append(const uint8_t *key, const uint8_t *payload, size_t bytes)
{
    stream_t *s = streams;

    while (NULL != s && 0 != memcmp(s->key, key, sizeof(s->key))) {
        s = s->next;
    }
    if (NULL == s) {
        s = calloc(1, sizeof(*s));
        memcpy(s->key, key, sizeof(s->key));
        s->next = streams;
        streams = s;
    }
    s->bytes = realloc(s->bytes, s->count + bytes);
    memcpy(s->bytes + s->count, payload, bytes);
    s->count += bytes;
}

static void read_capture(const uint8_t *file, size_t bytes)
{
    enum { FILE_HEADER = 24, PACKET_HEADER = 16, ETHERNET = 14, TCP = 6 };
    uint32_t length;

    for (size_t at = FILE_HEADER; at + PACKET_HEADER <= bytes; at += PACKET_HEADER + length) {
        const uint8_t *ip = file + at + PACKET_HEADER + ETHERNET, *tcp = ip + 4 * (ip[0] & 15);

        memcpy(&length, file + at + 8, sizeof(length));
        if (at + PACKET_HEADER + length <= bytes && 0x45 == ip[0] && TCP == ip[9]) {
            size_t total = (size_t) (ip[2] << 8 | ip[3]), headers = 20 + 4 * (size_t) (tcp[12] >> 4);

            append(ip + 12, ip + headers, total - headers);
        }
    }
    for (stream_t *s = streams; NULL != s; s = s->next) {
        publish(s->bytes, s->count);
    }
}

/* | header 8 | token 16 | payload | */
static void publish_local(const uint8_t *memory, size_t bytes)
{
    enum { HEADER = 8, TOKEN = 16 };
    static const uint8_t local[HEADER] = {0x13};

    for (size_t at = 0; at + HEADER + TOKEN <= bytes; at++) {
        if (0 == memcmp(memory + at, local, sizeof(local))) {
            publish(memory + at + HEADER, TOKEN);
        }
    }
}

static void add(const uint8_t *bytes, size_t at)
{
    needle_t **place = bucket(bytes), *n;

    if (NULL == find(bytes) && NULL != (n = malloc(sizeof(*n)))) {
        memcpy(n->bytes, bytes, NEEDLE);
        n->at = at;
        n->public = 0;
        n->next = *place;
        *place = n;
        needles++;
    }
}

static void add_all(const uint8_t *all, size_t bytes, const uint8_t *public)
{
    uint8_t swapped[NEEDLE];

    for (size_t at = 0; at + NEEDLE <= bytes; at++) {
        if (is_key(all + at, NULL == public ? NULL : public + at)) {
            add(all + at, at);
            for (int i = 0; i < NEEDLE && 0 == at % 4; i++) {
                swapped[i] = all[at + (size_t) (i ^ 3)];
            }
            if (0 == at % 4) {
                add(swapped, at);
            }
        }
    }
}

/* Which bytes of a file of needles everybody knows, after publish. */
static uint8_t *public_bytes(const uint8_t *all, size_t bytes)
{
    uint8_t *public = calloc(bytes, 1);
    needle_t *n;

    for (size_t at = 0; at + NEEDLE <= bytes; at++) {
        if (NULL != (n = find(all + at)) && n->public) {
            memset(public + at, 1, NEEDLE);
        }
    }
    return public;
}

enum { FILES = 8 };

int main(int argc, char **argv)
{
    const uint8_t *core, *file[FILES];
    uint8_t *public[FILES];
    size_t bytes, file_bytes[FILES], found = 0;
    int files = argc - 5;

    /* 1. everything that stands there  2. what of it is public */
    for (int i = 0; i < files && i < FILES; i++) {
        file[i] = map(argv[5 + i], &file_bytes[i]);
        add_all(file[i], file_bytes[i], NULL);
    }
    core = map(argv[2], &bytes);
    read_capture(core, bytes);
    core = map(argv[3], &bytes);
    publish(core, bytes);
    core = map(argv[4], &bytes);
    publish(core, bytes);
    core = map(argv[1], &bytes);
    publish_local(core, bytes);
    for (int i = 0; i < files; i++) {
        public[i] = public_bytes(file[i], file_bytes[i]);
    }
    /* 3. the rest */
    memset(buckets, 0, sizeof(buckets));
    needles = 0;
    for (int i = 0; i < files; i++) {
        add_all(file[i], file_bytes[i], public[i]);
    }
    core = map(argv[1], &bytes);
    for (size_t at = 0; at + NEEDLE <= bytes; at++) {
        needle_t *n = find(core + at);

        if (NULL != n && found++ < 10) {
            printf("  at %zu: what stands at %zu of the needles\n", at, n->at);
        }
    }
    printf("%zu bytes, %zu needles, %zu found\n", bytes, needles, found);
    return 0 != found || 0 == needles;
}

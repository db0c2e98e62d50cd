/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Shared by every file of the core: return codes, the reason of a refusal, little- and big-endian helpers.
 *
 * The core (opal/mca/common/crypt) makes no MPI call, uses no Open MPI type, and opens no sockets and no files but key
 * files.  Hence unit tests and fuzzers can link it unchanged.
 */
#ifndef OPAL_CRYPT_BASE_BASE_H
#define OPAL_CRYPT_BASE_BASE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The libraries are built with hidden visibility; this is what the core exports. */
#pragma GCC visibility push(default)

/* Return codes of the core.  0 is success, everything else negative. */
enum {
    OPAL_CRYPT_OK = 0,
    OPAL_CRYPT_ERR_AUTH = -1,       /* made by no holder of the key, or for another place */
    OPAL_CRYPT_ERR_REPLAY = -2,     /* authentic, but seen before */
    OPAL_CRYPT_ERR_ORDER = -3,      /* authentic, but out of order */
    OPAL_CRYPT_ERR_EXHAUSTED = -4,  /* a counter is used up */
    OPAL_CRYPT_ERR_FORKED = -5,     /* a forked child, which has no keys, tried to seal or to open */
    OPAL_CRYPT_ERR_CONFIG = -6,     /* a parameter, key file, certificate ...; why says which */
    OPAL_CRYPT_ERR_PEER = -7,       /* the peer's record is refused; why says how it differs */
    OPAL_CRYPT_ERR_MEMORY = -8,
    OPAL_CRYPT_ERR_LIBRARY = -9,    /* a library call failed that should never fail */
    OPAL_CRYPT_ERR_STORAGE = -10,   /* files: reading, writing or locking failed; see errno */
    OPAL_CRYPT_ERR_TORN = -11,      /* files: the first write of a block was cut short */
    OPAL_CRYPT_ERR_ACCESS = -12,    /* files: no key for these bytes, or no region that contains them */
    OPAL_CRYPT_ERR_OLD = -13        /* the record was authenticated too long ago, and may be renewed */
};

/* For functions that hardly any message calls: GCC moves the paths to them out of the way of the others, whose code
 * then fills a third fewer cache lines. */
#define OPAL_CRYPT_RARE __attribute__((cold))
/* Functions that every message calls are placed together. */
#define OPAL_CRYPT_OFTEN __attribute__((hot))

/* Why something was refused, for the caller to show.  `topic` names an entry
 * of help-opal-common-crypt.txt, `detail` fills its %s.  Never key material. */
typedef struct opal_crypt_why {
    const char *topic;
    char detail[768];
} opal_crypt_why_t;

/* Fill `why` (may be NULL) and return rc, so that callers can write
 * `return opal_crypt_refuse(why, rc, "topic", "format", ...)`. */
int opal_crypt_refuse(opal_crypt_why_t *why, int rc, const char *topic,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

const char *opal_crypt_strerror(int rc);

/* Wire and disk integers.  Records and frames are big-endian (they are sorted and compared as bytes), files
 * little-endian.  Whole words: GCC turns single bytes into vectors, at four times the cost. */
static inline void opal_crypt_put16(uint8_t *p, uint16_t v)
{
    v = htobe16(v);
    memcpy(p, &v, sizeof(v));
}

static inline void opal_crypt_put32(uint8_t *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, sizeof(v));
}

static inline void opal_crypt_put48(uint8_t *p, uint64_t v)
{
    opal_crypt_put16(p, (uint16_t) (v >> 32));
    opal_crypt_put32(p + 2, (uint32_t) v);
}

static inline void opal_crypt_put64(uint8_t *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, sizeof(v));
}

static inline uint16_t opal_crypt_get16(const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return be16toh(v);
}

static inline uint32_t opal_crypt_get32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return be32toh(v);
}

static inline uint64_t opal_crypt_get48(const uint8_t *p)
{
    return ((uint64_t) opal_crypt_get16(p) << 32) | opal_crypt_get32(p + 2);
}

static inline uint64_t opal_crypt_get64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return be64toh(v);
}

static inline bool opal_crypt_all_zero(const uint8_t *bytes, size_t count)
{
    return 0 == count || (0 == bytes[0] && 0 == memcmp(bytes, bytes + 1, count - 1));
}

#pragma GCC visibility pop

#endif

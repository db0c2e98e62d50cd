/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Records of TLS 1.3 (RFC 8446, 5.2), sealed and opened by a provider.
 *
 *     | 23 1 | 3 3 2 | n + 17 2 | ciphertext of ( plaintext n | type 1 ) | tag 16 |       n + 22 B
 *     AAD   = the first 5 bytes
 *     nonce = IV XOR (0^4 || sequence 8)
 *     type    23 data, n = 1 .. 16384     22 KeyUpdate, n = 5     21 close_notify, n = 2
 *
 * Each direction has a secret and, derived from it, a key, an IV and a sequence that starts at 0.  A sender renews the
 * secret on its own, with a KeyUpdate, after that number of records; the old one is wiped at once.  The first record that
 * does not open, or is not one of these, ends the direction for good.
 *
 * Threads: one that seals and one that opens, concurrently; create, share and destroy by one.
 */
#ifndef OPAL_CRYPT_TLS_RECORDS_H
#define OPAL_CRYPT_TLS_RECORDS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "opal/mca/aead/aead_module.h"
#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/base/share.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_TLS_RECORD_HEADER        5
#define OPAL_CRYPT_TLS_RECORD_PLAIN_MAX     16384
#define OPAL_CRYPT_TLS_RECORD_OVERHEAD      22              /* header, type, tag */
#define OPAL_CRYPT_TLS_RECORD_MAX           (OPAL_CRYPT_TLS_RECORD_PLAIN_MAX + OPAL_CRYPT_TLS_RECORD_OVERHEAD)
#define OPAL_CRYPT_TLS_RECORD_KEY_UPDATE    (5 + OPAL_CRYPT_TLS_RECORD_OVERHEAD)
#define OPAL_CRYPT_TLS_RECORD_CLOSE         (2 + OPAL_CRYPT_TLS_RECORD_OVERHEAD)

/* A sender renews its key after at most RENEW records; a receiver accepts up to BEAR.  RFC 8446, 5.5, allows AES-GCM
 * 2^24.5 of them. */
#define OPAL_CRYPT_TLS_RECORDS_RENEW        (UINT64_C(1) << 20)
#define OPAL_CRYPT_TLS_RECORDS_BEAR         (UINT64_C(1) << 24)

typedef struct opal_crypt_tls_records opal_crypt_tls_records_t;

/* From two traffic secrets, as long as the hash of the cipher's suite; the caller wipes its own copies. renew:
 * OPAL_CRYPT_TLS_RECORDS_RENEW; tests use less, at least 2.  ERR_CONFIG: TLS 1.3 has no such cipher, or the provider
 * lacks it. */
int opal_crypt_tls_records_create(const opal_aead_module_t *aead, opal_aead_cipher_t cipher, uint64_t renew,
                                  const uint8_t *secret_out, const uint8_t *secret_in,
                                  opal_crypt_tls_records_t **records);
void opal_crypt_tls_records_destroy(opal_crypt_tls_records_t *records);             /* NULL allowed */

/* How many records of all kinds have been sealed and opened so far. */
void opal_crypt_tls_records_counts(const opal_crypt_tls_records_t *records, uint64_t *sealed, uint64_t *opened);

/* Threads that help to seal and to open; NULL: none.  They must not run other loops at the same time. */
void opal_crypt_tls_records_share(opal_crypt_tls_records_t *records, opal_crypt_share_t *sealing,
                                  opal_crypt_share_t *opening);

/* ---- sealing ---- */

/* The most that `plain_bytes` can become, KeyUpdates included; 0 for 0. */
size_t opal_crypt_tls_records_bytes(const opal_crypt_tls_records_t *records, size_t plain_bytes);

/* Seal the concatenated pieces, as records of 16 KiB and a shorter last one, into `wire`, which has the room given by
 * opal_crypt_tls_records_bytes, and overlaps none of them.  *wire_bytes: how much was written.  ERR_CONFIG: no room, or
 * nothing to seal; nothing was done.  ERR_EXHAUSTED after close.  Any other error ends the connection, and nothing is
 * to be sent. */
int opal_crypt_tls_records_seal(opal_crypt_tls_records_t *records, const struct iovec *pieces, int count,
                                uint8_t *wire, size_t capacity, size_t *wire_bytes);

/* The sealed close_notify: nothing can be sealed after it. */
int opal_crypt_tls_records_close(opal_crypt_tls_records_t *records, uint8_t wire[OPAL_CRYPT_TLS_RECORD_CLOSE]);

/* ---- opening ---- */

typedef enum {
    OPAL_CRYPT_TLS_RECORD_DATA,
    OPAL_CRYPT_TLS_RECORD_RENEWED,          /* a KeyUpdate: the caller does nothing */
    OPAL_CRYPT_TLS_RECORD_CLOSED            /* close_notify; bytes after it are an error */
} opal_crypt_tls_record_kind_t;

/* The length of the record that begins here, header included; 0: needs more than `bytes` (< 5) to tell.  ERR_AUTH: not
 * a record, and the direction has ended; reported before the rest has arrived. */
int opal_crypt_tls_records_next(opal_crypt_tls_records_t *records, const uint8_t *wire, size_t bytes,
                                size_t *record_bytes);

/* Open one whole record: *plain_bytes go to `plain`, 0 unless it is DATA.  If `capacity` is larger than the plaintext, it
 * may be opened directly there, and plain[*plain_bytes] may become 0.  If it is exactly as large, only verified bytes
 * are written to `plain`.  `wire` is destroyed, and must not overlap `plain`.  ERR_CONFIG: no room; the record can be
 * opened again, with more.  ERR_AUTH, from then on always: it is not the next record of this connection; `plain` has
 * zeros, or is unchanged.  ERR_ORDER: close_notify has come before. */
int opal_crypt_tls_records_open(opal_crypt_tls_records_t *records, uint8_t *wire, size_t record_bytes, void *plain,
                                size_t capacity, size_t *plain_bytes, opal_crypt_tls_record_kind_t *kind);

/* Open the 16 KiB records at `wire` with several threads, as far as they are complete and fit into `plain`.  Each is
 * written to `plain` once verified, even if another one fails.  *taken: their bytes; 0: no helpers, or too few
 * records, and nothing was done.  Errors as above. */
int opal_crypt_tls_records_open_run(opal_crypt_tls_records_t *records, uint8_t *wire, size_t bytes, void *plain,
                                    size_t capacity, size_t *taken, size_t *plain_bytes);

/* Has close_notify come?  A connection that ends without it was cut. */
bool opal_crypt_tls_records_closed(const opal_crypt_tls_records_t *records);

/* ---- by the kernel ---- */

/* Before the first record: let the kernel seal what goes out over this TCP socket, open what comes in, or both; that
 * direction of `records` then ends.  False: neither.  EBADMSG of a read: not data, or it does not open. */
bool opal_crypt_tls_records_to_kernel(opal_crypt_tls_records_t *records, int fd, bool *out, bool *in);
ssize_t opal_crypt_tls_kernel_close(int fd);                        /* send close_notify: 2, or an errno */
ssize_t opal_crypt_tls_kernel_read(int fd, struct iovec *pieces, size_t count, opal_crypt_tls_record_kind_t *kind);

/* A kernel opens what is sealed here, and cannot renew its key: send no KeyUpdate.  The caller ends the connection
 * before OPAL_CRYPT_TLS_RECORDS_BEAR. */
void opal_crypt_tls_records_keep_key(opal_crypt_tls_records_t *records);

#pragma GCC visibility pop

#endif

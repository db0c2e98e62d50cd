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
 * Each direction has a secret, and of it a key, an IV and a sequence that starts at 0.  A sender renews
 * the secret by itself, with a KeyUpdate, after so many records; the old one is wiped at once.
 * The first record that does not open, or is not one of these, ends the direction for good.
 *
 * Threads: one that seals and one that opens, at the same time; create, share and destroy by one.
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

/* A sender renews its key before it has sealed more records; a receiver bears so many.  RFC 8446, 5.5, allows
 * AES-GCM 2^24.5 of them. */
#define OPAL_CRYPT_TLS_RECORDS_RENEW        (UINT64_C(1) << 20)
#define OPAL_CRYPT_TLS_RECORDS_BEAR         (UINT64_C(1) << 24)

typedef struct opal_crypt_tls_records opal_crypt_tls_records_t;

/* From two traffic secrets, as long as the hash of the cipher's suite, which stay the caller's to wipe.
 * renew: OPAL_CRYPT_TLS_RECORDS_RENEW; tests take less, at least 2.  ERR_CONFIG: TLS 1.3 has no such cipher, or the
 * provider lacks it. */
int opal_crypt_tls_records_create(const opal_aead_module_t *aead, opal_aead_cipher_t cipher, uint64_t renew,
                                  const uint8_t *secret_out, const uint8_t *secret_in,
                                  opal_crypt_tls_records_t **records);
void opal_crypt_tls_records_destroy(opal_crypt_tls_records_t *records);             /* NULL allowed */

/* How many were sealed and opened so far, of all kinds. */
void opal_crypt_tls_records_counts(const opal_crypt_tls_records_t *records, uint64_t *sealed, uint64_t *opened);

/* Other threads that help to seal, and to open; NULL: none.  Nobody else's loops run there at the same time. */
void opal_crypt_tls_records_share(opal_crypt_tls_records_t *records, opal_crypt_share_t *sealing,
                                  opal_crypt_share_t *opening);

/* ---- sealing ---- */

/* The most that `plain_bytes` can become, KeyUpdates included; 0 of 0. */
size_t opal_crypt_tls_records_room(const opal_crypt_tls_records_t *records, size_t plain_bytes);

/* The joined pieces as records of 16 KiB and a shorter last one, to `wire`, which has room for what
 * opal_crypt_tls_records_room says, and overlaps none of them.  *wire_bytes: how much was written.
 * ERR_CONFIG: no room, or nothing to seal; nothing has happened.  ERR_EXHAUSTED after close.  Any other error
 * ends the connection, and nothing is to be sent. */
int opal_crypt_tls_records_seal(opal_crypt_tls_records_t *records, const struct iovec *pieces, int count,
                                uint8_t *wire, size_t room, size_t *wire_bytes);

/* The sealed end: nothing can be sealed after it. */
int opal_crypt_tls_records_close(opal_crypt_tls_records_t *records, uint8_t wire[OPAL_CRYPT_TLS_RECORD_CLOSE]);

/* ---- opening ---- */

typedef enum {
    OPAL_CRYPT_TLS_RECORD_DATA,
    OPAL_CRYPT_TLS_RECORD_RENEWED,          /* a KeyUpdate: nothing for the caller */
    OPAL_CRYPT_TLS_RECORD_CLOSED            /* the sealed end; bytes behind it are an error */
} opal_crypt_tls_record_kind_t;

/* The length of the record that begins here, header included; 0: more than `bytes` (< 5) are needed to say.
 * ERR_AUTH: no record, and the direction has ended.  It is said before the rest has arrived. */
int opal_crypt_tls_records_next(opal_crypt_tls_records_t *records, const uint8_t *wire, size_t bytes,
                                size_t *record_bytes);

/* One whole record.  *plain_bytes of it are in `plain`, 0 unless it is DATA.  Where `room` is larger than the
 * plaintext, it may be opened there, and plain[*plain_bytes] may have become 0.  Where it is exactly as large, nothing is
 * written to `plain` but what has verified.  `wire` is worth nothing afterwards, and does not overlap `plain`.
 * ERR_CONFIG: no room; the record can be opened again, with more.  ERR_AUTH, for ever: it is not the next record
 * of this connection; `plain` has zeros, or is as it was.  ERR_ORDER: the sealed end has come before. */
int opal_crypt_tls_records_open(opal_crypt_tls_records_t *records, uint8_t *wire, size_t record_bytes, void *plain,
                                size_t room, size_t *plain_bytes, opal_crypt_tls_record_kind_t *kind);

/* The records of 16 KiB that begin at `wire`, as far as they are whole and `plain` has room for them, by several threads.
 * Each goes to `plain` when it has verified, even if another one has not.
 * *taken: their bytes; 0: there is nobody to share them with, or not much to share, and nothing has happened.  Errors as
 * above. */
int opal_crypt_tls_records_open_run(opal_crypt_tls_records_t *records, uint8_t *wire, size_t bytes, void *plain, size_t room,
                                    size_t *taken, size_t *plain_bytes);

/* Has the sealed end come?  A connection that ends without it was cut. */
bool opal_crypt_tls_records_closed(const opal_crypt_tls_records_t *records);

/* ---- by the kernel ---- */

/* Before the first record: the kernel seals what goes out over this TCP socket, opens what comes in, or both; that direction
 * of `records` has ended.  False: neither.  EBADMSG of a read: what came was no data, or does not open. */
bool opal_crypt_tls_records_to_kernel(opal_crypt_tls_records_t *records, int fd, bool *out, bool *in);
ssize_t opal_crypt_tls_kernel_close(int fd);                        /* send the sealed end: 2, or an errno */
ssize_t opal_crypt_tls_kernel_read(int fd, struct iovec *pieces, size_t count, opal_crypt_tls_record_kind_t *kind);

/* A kernel opens what is sealed here, and cannot renew its key: no KeyUpdate.  The caller ends the connection before
 * OPAL_CRYPT_TLS_RECORDS_BEAR. */
void opal_crypt_tls_records_keep_key(opal_crypt_tls_records_t *records);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Hands a direction of a connection to the kernel (kTLS, Documentation/networking/tls.rst): it, or a network card,
 * seals or opens the records from then on.  The records are the same, so the other end need not know; but a kernel
 * before 6.14 cannot renew a key.
 */
#include "records_object.h"
#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#if __has_include(<linux/tls.h>)
#    include <linux/tls.h>
#endif

#ifdef TLS_1_3_VERSION

#    ifndef SOL_TLS
#        define SOL_TLS 282
#    endif
#    ifndef TCP_ULP
#        define TCP_ULP 31
#    endif

/* Both begin with `info`; salt and IV together make up our IV. */
typedef union kernel_key {
    struct tls_crypto_info info;
    struct tls12_crypto_info_aes_gcm_128 aes128;
    struct tls12_crypto_info_aes_gcm_256 aes256;
} kernel_key_t;

static socklen_t kernel_key_fill(kernel_key_t *key, const uint8_t *raw, size_t raw_bytes, const uint8_t *iv)
{
    key->info.version = TLS_1_3_VERSION;
    if (TLS_CIPHER_AES_GCM_128_KEY_SIZE == raw_bytes) {
        key->info.cipher_type = TLS_CIPHER_AES_GCM_128;
        memcpy(key->aes128.key, raw, raw_bytes);
        memcpy(key->aes128.salt, iv, sizeof(key->aes128.salt));
        memcpy(key->aes128.iv, iv + sizeof(key->aes128.salt), sizeof(key->aes128.iv));
        return sizeof(key->aes128);
    }
    key->info.cipher_type = TLS_CIPHER_AES_GCM_256;
    memcpy(key->aes256.key, raw, raw_bytes);
    memcpy(key->aes256.salt, iv, sizeof(key->aes256.salt));
    memcpy(key->aes256.iv, iv + sizeof(key->aes256.salt), sizeof(key->aes256.iv));
    return sizeof(key->aes256);
}

static bool kernel_takes(const opal_crypt_tls_records_t *records, const record_direction_t *direction, int fd, int option)
{
    const opal_crypt_tls_suite_t *suite = records->suite;
    const size_t raw_bytes = opal_aead_raw_key_bytes(suite->cipher);
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
    kernel_key_t key;
    bool taken = false;

    if (OPAL_AEAD_AES_128_GCM != suite->cipher && OPAL_AEAD_AES_256_GCM != suite->cipher) {
        return false;
    }
    opal_crypt_secret_begin();
    memset(&key, 0, sizeof(key));       /* includes rec_seq; a union's initializer would not clear the rest */
    if (OPAL_CRYPT_OK == opal_crypt_tls_expand(suite->sha384, direction->secret, "key", raw, raw_bytes)) {
        const socklen_t bytes = kernel_key_fill(&key, raw, raw_bytes, direction->iv);

        taken = 0 == setsockopt(fd, SOL_TLS, option, &key, bytes);
    }
    opal_crypt_wipe(raw, sizeof(raw));
    opal_crypt_wipe(&key, sizeof(key));
    opal_crypt_secret_end();
    return taken;
}

bool opal_crypt_tls_records_to_kernel(opal_crypt_tls_records_t *records, int fd, bool *out, bool *in)
{
    *out = *in = false;
    if (opal_crypt_forked() || 0 != records->out.sequence || 0 != records->in.sequence
        || 0 != setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls"))) {
        return false;
    }
    *out = kernel_takes(records, &records->out, fd, TLS_TX);
    *in = kernel_takes(records, &records->in, fd, TLS_RX);
    if (*out) {
        (void) opal_crypt_tls_record_end(records, &records->out, OPAL_CRYPT_ERR_EXHAUSTED);
    }
    if (*in) {
        (void) opal_crypt_tls_record_end(records, &records->in, OPAL_CRYPT_ERR_ORDER);
    }
    return *out || *in;
}

/* The type of a record is passed to and from the kernel as a control message. */
ssize_t opal_crypt_tls_kernel_close(int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(1)];
    } control = {.bytes = {0}};
    struct iovec piece = {(void *) (uintptr_t) opal_crypt_tls_record_close_notify, RECORD_CLOSE_BYTES};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

    control.head.cmsg_level = SOL_TLS;
    control.head.cmsg_type = TLS_SET_RECORD_TYPE;
    control.head.cmsg_len = CMSG_LEN(1);
    *CMSG_DATA(&control.head) = RECORD_ALERT;
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t opal_crypt_tls_kernel_read(int fd, struct iovec *pieces, size_t count, opal_crypt_tls_record_kind_t *kind)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(1)];
    } control;
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count, .msg_control = &control, .msg_controllen = sizeof(control)};
    const ssize_t came = recvmsg(fd, &message, MSG_DONTWAIT);
    const struct cmsghdr *said = came < 0 ? NULL : CMSG_FIRSTHDR(&message);
    uint8_t type = RECORD_DATA;

    *kind = OPAL_CRYPT_TLS_RECORD_DATA;
    if (came < 0 && (EBADMSG == errno || EMSGSIZE == errno || EINVAL == errno)) {
        (void) opal_crypt_count_failed();
    }
    if (NULL != said && SOL_TLS == said->cmsg_level && TLS_GET_RECORD_TYPE == said->cmsg_type) {
        type = *CMSG_DATA(said);
    }
    if (came <= 0 || RECORD_DATA == type) {
        return came;
    }
    if (RECORD_ALERT == type && RECORD_CLOSE_BYTES == came && pieces[0].iov_len >= RECORD_CLOSE_BYTES
        && 0 == memcmp(pieces[0].iov_base, opal_crypt_tls_record_close_notify, RECORD_CLOSE_BYTES)) {
        *kind = OPAL_CRYPT_TLS_RECORD_CLOSED;
        return 0;
    }
    (void) opal_crypt_count_failed();
    errno = EBADMSG;                                /* it cannot process KeyUpdates */
    return -1;
}

#else

bool opal_crypt_tls_records_to_kernel(opal_crypt_tls_records_t *records, int fd, bool *out, bool *in)
{
    (void) records, (void) fd;
    *out = *in = false;
    return false;
}

ssize_t opal_crypt_tls_kernel_close(int fd)
{
    (void) fd;
    errno = ENOTSUP;
    return -1;
}

ssize_t opal_crypt_tls_kernel_read(int fd, struct iovec *pieces, size_t count, opal_crypt_tls_record_kind_t *kind)
{
    (void) fd, (void) pieces, (void) count;
    *kind = OPAL_CRYPT_TLS_RECORD_DATA;
    errno = ENOTSUP;
    return -1;
}

#endif

void opal_crypt_tls_records_keep_key(opal_crypt_tls_records_t *records)
{
    records->renew = OPAL_CRYPT_TLS_RECORDS_BEAR;
}

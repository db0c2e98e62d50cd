/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key export, backup: the keys of a label, or all, as one encrypted message in a new file.
 *
 *     recipient  ->  keystore (which logs)  ->  seal  ->  sign  ->  file
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/x509.h>

#include "certificate.h"
#include "move.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/cryptfile/keystore/exchange.h"

enum { EXPORT_N = 17 };                 /* N = 2^17: 128 MiB with r = 8 */

int mpicrypt_key_for_passphrase(const mpicrypt_passphrase_t *passphrase, unsigned n, mpicrypt_recipient_t *recipient)
{
    opal_crypt_why_t why = {.topic = NULL};
    uint8_t *kek;

    *recipient = (mpicrypt_recipient_t){.scrypt = {.n = n, .r = 8, .p = 1}};
    int rc = opal_crypt_draw(recipient->scrypt.salt, sizeof(recipient->scrypt.salt));
    rc = rc ? rc : mpicrypt_passphrase_key(passphrase, &recipient->scrypt, &kek, &why);
    recipient->kek = OPAL_CRYPT_OK == rc ? kek : NULL;
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused("the passphrase cannot be used", rc, &why);
}

int mpicrypt_key_seal(const mpicrypt_key_move_t *move, const char *label, const mpicrypt_recipient_t *recipient,
                      mpicrypt_message_t *message)
{
    opal_cryptfile_keystore_t *keystore;
    opal_crypt_why_t why = {.topic = NULL};
    const char *what = NULL == label ? "backup" : label;
    char *text;
    size_t bytes;
    int code = mpicrypt_keystore_open(move->where, &keystore);

    if (MPICRYPT_OK != code) {
        return code;
    }
    int rc = opal_cryptfile_keystore_export(keystore, label, &text, &bytes, &why);
    opal_cryptfile_keystore_close(keystore);
    if (OPAL_CRYPT_OK == rc) {
        rc = mpicrypt_envelope_seal(text, bytes, recipient, message, &why);
        opal_crypt_secmem_free(text);
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(what, rc, &why);
}

/* ---- the file ---- */

/* The directory of `path`, as a name of at most PATH_MAX bytes. */
static void directory_of(const char *path, char directory[PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    snprintf(directory, PATH_MAX, "%.*s", NULL == slash ? 1 : slash == path ? 1 : (int) (slash - path), NULL == slash ? "." : path);
}

/* A name appears once all of the message is on the storage, and never replaces another. */
static bool write_new(const char *path, const mpicrypt_message_t *message)
{
    char directory[PATH_MAX], self[32];
    int fd, error;

    directory_of(path, directory);
    int names = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool named = false, good = names >= 0;
    fd = good ? open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (good && fd < 0 && (EOPNOTSUPP == errno || EISDIR == errno || ENOENT == errno)) {
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);    /* NFS, for example */
        named = fd >= 0;
    }
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    good = fd >= 0 && mpicrypt_write_all(fd, message->bytes, message->count) && 0 == fsync(fd)
           && (named || 0 == linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW)) && (0 == fsync(names) || EINVAL == errno);
    error = errno;
    if (named && !good) {
        (void) unlink(path);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (names >= 0) {
        close(names);
    }
    errno = error;
    return good;
}

static int deliver(const mpicrypt_message_t *message, const char *path)
{
    if (0 == strcmp(path, "-")) {
        return mpicrypt_write_all(STDOUT_FILENO, message->bytes, message->count) ? MPICRYPT_OK
                                                 : mpicrypt_error(MPICRYPT_FAILED, "standard output: %s", strerror(errno));
    }
    if (!write_new(path, message)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, EEXIST == errno ? "it exists, and is not replaced" : strerror(errno));
    }
    printf("%s: %zu bytes\n", path, message->count);
    return MPICRYPT_OK;
}

/* ---- whom it is for, and from ---- */

static int read_recipient(const mpicrypt_key_move_t *move, FILE *say, mpicrypt_recipient_t *recipient)
{
    const bool netfs = move->where->netfs;
    opal_crypt_why_t why = {.topic = NULL};
    mpicrypt_passphrase_t passphrase;

    *recipient = (mpicrypt_recipient_t){.certificate = NULL};
    if (NULL == move->to) {
        int code = mpicrypt_passphrase_read(move->passphrase_file, netfs, true, &passphrase);
        if (MPICRYPT_OK == code) {
            code = mpicrypt_key_for_passphrase(&passphrase, EXPORT_N, recipient);
            opal_crypt_secmem_free(passphrase.text);
        }
        return code;
    }
    int rc = mpicrypt_certificate_read(move->to, netfs, &recipient->certificate, &why);
    if (OPAL_CRYPT_OK == rc) {
        rc = mpicrypt_certificate_check(recipient->certificate, MPICRYPT_CERTIFICATE_ENCRYPTS, move->ca, netfs, &why);
        if (OPAL_CRYPT_OK != rc) {
            X509_free(recipient->certificate);
        } else {
            mpicrypt_certificate_print(say, "encrypted to", recipient->certificate);
        }
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused("--to", rc, &why);
}

static int read_signer(const mpicrypt_key_move_t *move, FILE *say, mpicrypt_identity_t *signer)
{
    opal_crypt_why_t why = {.topic = NULL};

    *signer = (mpicrypt_identity_t){NULL, NULL};
    if (NULL == move->certificate) {
        return MPICRYPT_OK;
    }
    int rc = mpicrypt_identity_read(move->certificate, move->private_key, move->where->netfs, signer, &why);
    rc = rc ? rc : mpicrypt_certificate_check(signer->certificate, MPICRYPT_CERTIFICATE_SIGNS, NULL, move->where->netfs, &why);
    if (OPAL_CRYPT_OK != rc) {
        mpicrypt_identity_free(signer);
        return mpicrypt_refused("--cert", rc, &why);
    }
    mpicrypt_certificate_print(say, "signed by", signer->certificate);
    return MPICRYPT_OK;
}

int mpicrypt_key_export(const mpicrypt_key_move_t *move, const char *label)
{
    const char *out = move->out;
    char own[OPAL_CRYPTFILE_KEY_LABEL_MAX + 8] = "keystore.cms";
    mpicrypt_recipient_t recipient;
    mpicrypt_identity_t signer;
    mpicrypt_message_t message = {.bytes = NULL};
    opal_crypt_why_t why = {.topic = NULL};
    struct stat status;

    if (NULL == out) {
        if (NULL != label) {
            snprintf(own, sizeof(own), "%s.cms", label);
        }
        out = own;
    }
    const bool to_stdout = 0 == strcmp(out, "-");
    FILE *say = to_stdout ? stderr : stdout;
    if (to_stdout && isatty(STDOUT_FILENO)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--out -: standard output is a terminal");
    }
    if (!to_stdout && 0 == lstat(out, &status)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: it exists, and is not replaced", out);
    }
    int code = mpicrypt_keystore_begin(move->where);
    code = code ? code : read_signer(move, say, &signer);
    if (MPICRYPT_OK != code) {
        return code;
    }
    code = read_recipient(move, say, &recipient);
    if (MPICRYPT_OK == code) {
        code = mpicrypt_key_seal(move, label, &recipient, &message);
        X509_free(recipient.certificate);
        opal_crypt_secmem_free((void *) (uintptr_t) recipient.kek);
    }
    if (MPICRYPT_OK == code && NULL != signer.certificate) {
        int rc = mpicrypt_envelope_sign(&signer, &message, &why);
        code = OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused("--cert", rc, &why);
    }
    mpicrypt_identity_free(&signer);
    code = code ? code : deliver(&message, out);
    OPENSSL_free(message.bytes);
    return code;
}

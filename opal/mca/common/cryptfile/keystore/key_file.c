/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A key file of the backend `file`: read and checked, composed and put into place.
 *
 *     the record's lines (cryptfile/keystore/record.c)
 *     key plain HEX64            on local storage
 *     key wrapped HEX80          RFC 3394 under the machine key: for shared storage.  If a
 *                                machine key is set, a plain key is refused: the storage
 *                                server could have substituted a key of its own
 *     mac HEX64                  over all lines before, under a key derived from the key
 */
#include "key_file.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    KEY_BYTES = OPAL_CRYPTFILE_LABEL_KEY_BYTES,
    MAC_BYTES = OPAL_CRYPT_HASH_BYTES,
    MAC_LINE_BYTES = 4 + 2 * MAC_BYTES + 1
};

static int path_of(const opal_cryptfile_keystore_t *keystore, const char *label, unsigned version,
                   char *path, size_t max, opal_crypt_why_t *why)
{
    int bytes = snprintf(path, max, "%s/%s.%u", keystore->directory, label, version);

    return bytes > 0 && (size_t) bytes < max
               ? OPAL_CRYPT_OK
               : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-file", "%s: the path is too long",
                                   keystore->directory);
}

static int mac_of(const uint8_t key[KEY_BYTES], const char *text, size_t bytes, uint8_t mac[MAC_BYTES])
{
    opal_crypt_input_t piece = {text, bytes};
    uint8_t *mac_key = opal_crypt_secmem_alloc(OPAL_CRYPT_SECRET_BYTES);
    int rc = NULL == mac_key ? OPAL_CRYPT_ERR_MEMORY
                             : opal_crypt_kdf_expand(key, OPAL_CRYPT_LABEL_KEYSTORE_RECORD, NULL, 0, mac_key,
                                                     OPAL_CRYPT_SECRET_BYTES);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_hmac(mac_key, &piece, 1, mac);
    }
    opal_crypt_secmem_free(mac_key);
    return rc;
}

/* ---- reading ---- */

static int key_line(const opal_cryptfile_keystore_t *keystore, const char **at, const char *stop,
                    uint8_t key[KEY_BYTES], bool *plain)
{
    static const char plain_name[] = "key plain ", wrapped_name[] = "key wrapped ";
    uint8_t wrapped[OPAL_CRYPTFILE_RFC3394_BYTES];
    size_t left = (size_t) (stop - *at);

    *plain = left > sizeof(plain_name) && 0 == memcmp(*at, plain_name, sizeof(plain_name) - 1);
    if (*plain) {
        const char *hex = *at + sizeof(plain_name) - 1;
        *at = hex + 2 * KEY_BYTES + 1;
        return *at <= stop && '\n' == (*at)[-1] && opal_crypt_hex_read(hex, key, KEY_BYTES) ? OPAL_CRYPT_OK
                                                                                                   : OPAL_CRYPT_ERR_AUTH;
    }
    if (left <= sizeof(wrapped_name) || 0 != memcmp(*at, wrapped_name, sizeof(wrapped_name) - 1)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    const char *hex = *at + sizeof(wrapped_name) - 1;
    *at = hex + 2 * sizeof(wrapped) + 1;
    if (*at > stop || '\n' != (*at)[-1] || !opal_crypt_hex_read(hex, wrapped, sizeof(wrapped))) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    return NULL == keystore->machine_key ? OPAL_CRYPT_ERR_CONFIG
                                         : opal_cryptfile_rfc3394_unwrap(keystore->machine_key, wrapped, key);
}

static int parse_label(const opal_cryptfile_keystore_t *keystore, const char *text, size_t bytes,
                       opal_cryptfile_key_file_t *content, bool *plain)
{
    uint8_t mac[MAC_BYTES], written[MAC_BYTES];
    const char *at, *stop = text + bytes;
    size_t used;
    int rc = opal_cryptfile_keystore_record_parse(text, bytes, &used, &content->record);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    at = text + used;
    rc = key_line(keystore, &at, stop, content->key, plain);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (MAC_LINE_BYTES != stop - at || 0 != memcmp(at, "mac ", 4) || '\n' != stop[-1] ||
        !opal_crypt_hex_read(at + 4, written, sizeof(written))) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    rc = mac_of(content->key, text, (size_t) (at - text), mac);
    return OPAL_CRYPT_OK != rc ? rc
           : 0 == opal_crypt_differ(mac, written, sizeof(mac)) ? OPAL_CRYPT_OK
                                                                      : OPAL_CRYPT_ERR_AUTH;
}

static int explain(int rc, const char *path, opal_crypt_why_t *why)
{
    if (OPAL_CRYPT_ERR_CONFIG == rc) {
        return opal_crypt_refuse(why, rc, "keystore-machine-key", "%.512s", path);
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH == rc ? OPAL_CRYPT_ERR_CONFIG : rc, "keystore-file",
                             "%.512s: it is not what was written there", path);
}

int opal_cryptfile_key_file_load_any(const opal_cryptfile_keystore_t *keystore, const char *label, unsigned version,
                                     opal_cryptfile_key_file_t **content, bool *plain, opal_crypt_why_t *why)
{
    opal_crypt_secret_file_t file;
    char path[4200];
    int rc = path_of(keystore, label, version, path, sizeof(path), why);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_secret_group_read(keystore->group, path, "key", 1, OPAL_CRYPTFILE_RECORD_TEXT_MAX, true, &file, why);
    }
    if (OPAL_CRYPT_ERR_CONFIG == rc && 0 != access(path, F_OK) && ENOENT == errno) {
        return opal_crypt_refuse(why, rc, "keystore-no-label", "%s, version %u, keystore file %.512s", label, version,
                                 keystore->directory);
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    opal_cryptfile_key_file_t *made = opal_crypt_secmem_alloc(sizeof(*made));
    rc = NULL == made ? OPAL_CRYPT_ERR_MEMORY : parse_label(keystore, (const char *) file.bytes, file.count, made, plain);
    opal_crypt_secmem_free(file.bytes);
    if (OPAL_CRYPT_OK != rc) {
        rc = explain(rc, path, why);
    } else if (*plain && NULL != file.warning.topic && !keystore->secret_on_netfs) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-keystore", "%s", file.warning.detail);
    } else if (0 != strcmp(made->record.label, label) || made->record.version != version) {
        rc = explain(OPAL_CRYPT_ERR_AUTH, path, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secmem_free(made);
        return rc;
    }
    *content = made;
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_key_file_load(const opal_cryptfile_keystore_t *keystore, const char *label, unsigned version,
                                 opal_cryptfile_key_file_t **content, opal_crypt_why_t *why)
{
    bool plain;
    int rc = opal_cryptfile_key_file_load_any(keystore, label, version, content, &plain, why);

    if (OPAL_CRYPT_OK == rc && plain && NULL != keystore->machine_key) {
        opal_crypt_secmem_free(*content);
        *content = NULL;
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-plain",
                               "%.400s/%s.%u: its key lies in the clear, and a machine key is set; \"mpicrypt key "
                               "protect %s\" wraps it", keystore->directory, label, version, label);
    }
    return rc;
}

/* ---- writing ---- */

/* The file's text, in secret memory that the caller frees; returns its length. */
static int compose(const opal_cryptfile_keystore_t *keystore, const opal_cryptfile_key_file_t *content, char **text)
{
    uint8_t wrapped[OPAL_CRYPTFILE_RFC3394_BYTES], mac[MAC_BYTES];
    char *made = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_RECORD_TEXT_MAX);
    int used = NULL == made ? OPAL_CRYPT_ERR_MEMORY
                            : opal_cryptfile_keystore_record_write(&content->record, made,
                                                                   OPAL_CRYPTFILE_RECORD_TEXT_MAX - 512);
    int rc = used < 0 ? used : OPAL_CRYPT_OK;

    if (OPAL_CRYPT_OK == rc && NULL != keystore->machine_key) {
        rc = opal_cryptfile_rfc3394_wrap(keystore->machine_key, content->key, wrapped);
        used += sprintf(made + used, "key wrapped ");
        opal_crypt_hex_write(wrapped, sizeof(wrapped), made + used);
        used += 2 * (int) sizeof(wrapped);
    } else if (OPAL_CRYPT_OK == rc) {
        used += sprintf(made + used, "key plain ");
        opal_crypt_hex_write(content->key, KEY_BYTES, made + used);
        used += 2 * KEY_BYTES;
    }
    if (OPAL_CRYPT_OK == rc) {
        made[used++] = '\n';
        rc = mac_of(content->key, made, (size_t) used, mac);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secmem_free(made);
        return rc;
    }
    used += sprintf(made + used, "mac ");
    opal_crypt_hex_write(mac, sizeof(mac), made + used);
    used += 2 * MAC_BYTES;
    made[used++] = '\n';
    *text = made;
    return used;
}

static int open_directory_of(const char *path)
{
    char directory[4200];
    const char *slash = strrchr(path, '/');

    snprintf(directory, sizeof(directory), "%.*s", NULL == slash ? 1 : (int) (slash - path), NULL == slash ? "." : path);
    return open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Written to a temporary file and moved into place: a key file is complete or absent.  Then the directory is synced,
 * since data files that use the key may survive a power failure; some file systems cannot sync a directory. */
static int put_file(const opal_crypt_secret_group_t *group, const char *path, const char *text, size_t bytes, bool create,
                    opal_crypt_why_t *why)
{
    char beside[4240];

    snprintf(beside, sizeof(beside), "%s.%ld.new", path, (long) getpid());
    (void) unlink(beside);              /* left by a killed process with our pid: we hold the keystore's lock */
    int directory = open_directory_of(path);
    int fd = directory < 0 ? -1 : open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        int rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-file", "%.512s: %s", beside, strerror(errno));
        if (directory >= 0) {
            close(directory);
        }
        return rc;
    }
    bool good = NULL == group || (0 == fchown(fd, (uid_t) -1, group->group) && 0 == fchmod(fd, 0640));
    errno = good ? ENOSPC : errno;      /* the error if the write is short */
    good = good && (ssize_t) bytes == write(fd, text, bytes) && 0 == fsync(fd);
    int error = errno;
    if (0 != close(fd) && good) {
        good = false;
        error = errno;
    }
    if (good) {
        good = 0 == (create ? link(beside, path) : rename(beside, path));
        error = errno;
    }
    if (!good || create) {
        unlink(beside);
    }
    if (good && 0 != fsync(directory) && EINVAL != errno) {
        good = false;
        error = errno;
    }
    close(directory);
    if (!good) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG,
                                 EEXIST == error ? "keystore-label-exists" : "keystore-file", "%.512s: %s", path,
                                 strerror(error));
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_key_file_store(const opal_cryptfile_keystore_t *keystore, const opal_cryptfile_key_file_t *content,
                                  bool create, opal_crypt_why_t *why)
{
    char path[4200], *text = NULL;
    int rc = path_of(keystore, content->record.label, content->record.version, path, sizeof(path), why);

    if (OPAL_CRYPT_OK == rc) {
        int bytes = compose(keystore, content, &text);
        rc = bytes < 0 ? bytes : put_file(keystore->group, path, text, (size_t) bytes, create, why);
    }
    opal_crypt_secmem_free(text);
    return rc;
}

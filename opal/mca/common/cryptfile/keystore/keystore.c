/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The parts common to all backends: opening, finding a key, and access rights.
 */
#include "keystore_object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool opal_cryptfile_key_label_valid(const char *label)
{
    size_t bytes = strspn(label, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return bytes > 0 && bytes <= OPAL_CRYPTFILE_KEY_LABEL_MAX && '\0' == label[bytes] && '.' != label[0];
}

/* ---- open and close ---- */

/* A missing directory is for the backend to report. */
static int check_directory(const opal_crypt_secret_group_t *group, const char *path, bool *of_another, opal_crypt_why_t *why)
{
    struct stat status = {.st_uid = geteuid()};
    int fd = open(path, (NULL == group ? O_PATH : O_RDONLY) | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && NULL != group && ENOENT != errno) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-directory", "%.512s: %s", path, strerror(errno));
    }
    int rc = fd < 0 ? OPAL_CRYPT_OK : opal_cryptfile_keystore_directory_check(group, fd, path, why);
    if (fd >= 0) {
        (void) fstat(fd, &status);
        close(fd);
    }
    *of_another = geteuid() != status.st_uid;
    return rc;
}

/* The keystore's directory is the caller's choice, or ~/.ompi-crypt/keys; then ~/.ompi-crypt is
 * checked, too. */
static int choose_directory(opal_cryptfile_keystore_t *keystore, const char *chosen, opal_crypt_why_t *why)
{
    char path[4096], *name;
    int rc = OPAL_CRYPT_OK;

    if (NULL == chosen) {
        rc = opal_crypt_home_path("keys", path, sizeof(path), why);
        if (OPAL_CRYPT_OK == rc) {
            name = strrchr(path, '/');
            *name = '\0';
            rc = check_directory(NULL, path, &keystore->of_another, why);
            *name = '/';
        }
        chosen = path;
    }
    rc = OPAL_CRYPT_OK == rc ? check_directory(keystore->group, chosen, &keystore->of_another, why) : rc;
    if (OPAL_CRYPT_OK == rc) {
        keystore->directory = strdup(chosen);
        rc = NULL == keystore->directory ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
        keystore->of_another = keystore->of_another && (NULL != keystore->group || keystore->ops->server);
    }
    return rc;
}

static int choose_group(opal_cryptfile_keystore_t *keystore, const char *text, opal_crypt_why_t *why)
{
    if (OPAL_CRYPTFILE_KEYSTORE_FILE != keystore->backend) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-group", "%.200s: only a keystore of files can be a group's", text);
    }
    keystore->group = &keystore->group_space;
    return opal_crypt_secret_group_parse(text, &keystore->group_space, why);
}

int opal_cryptfile_keystore_open(const opal_cryptfile_keystore_options_t *options,
                                 opal_cryptfile_keystore_t **keystore, opal_crypt_why_t *why)
{
    opal_cryptfile_keystore_t *made = calloc(1, sizeof(*made));

    if (NULL == made) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->log_fd = -1;
    made->backend = options->backend;
    made->ops = OPAL_CRYPTFILE_KEYSTORE_PKCS11 == options->backend  ? &opal_cryptfile_keystore_pkcs11_ops
                : OPAL_CRYPTFILE_KEYSTORE_VAULT == options->backend ? &opal_cryptfile_keystore_vault_ops
                                                                    : &opal_cryptfile_keystore_file_ops;
    made->secret_on_netfs = options->secret_on_netfs;
    made->now = options->now;
    int rc = NULL == options->group ? OPAL_CRYPT_OK : choose_group(made, options->group, why);
    rc = OPAL_CRYPT_OK == rc ? choose_directory(made, options->directory, why) : rc;
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_keystore_log_open(made, options->log_file, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = made->ops->open(made, options, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_cryptfile_keystore_close(made);
        return rc;
    }
    *keystore = made;
    return OPAL_CRYPT_OK;
}

void opal_cryptfile_keystore_close(opal_cryptfile_keystore_t *keystore)
{
    if (NULL == keystore) {
        return;
    }
    keystore->ops->close(keystore);
    if (keystore->log_fd >= 0) {
        close(keystore->log_fd);
    }
    pthread_mutex_destroy(&keystore->lock);
    free(keystore->directory);
    free(keystore);
}

/* ---- access rights ---- */

bool opal_cryptfile_keystore_owns(const opal_cryptfile_keystore_record_t *record)
{
    bool owner = 0 == record->owner_count;

    for (unsigned i = 0; i < record->owner_count; ++i) {
        owner = owner || record->owners[i] == (uint32_t) geteuid();
    }
    return owner;
}

opal_cryptfile_grant_t opal_cryptfile_keystore_grant_of(const opal_cryptfile_keystore_t *keystore,
                                                        const opal_cryptfile_keystore_record_t *record,
                                                        const char **refusal)
{
    int64_t now = 0 != keystore->now ? (int64_t) keystore->now : (int64_t) time(NULL);

    *refusal = !opal_cryptfile_keystore_owns(record) ? "this user is not an owner of the key" : record->revoked ? "the key is revoked" : NULL;
    if (NULL != *refusal) {
        return OPAL_CRYPTFILE_GRANT_NONE;
    }
    if (0 != record->not_after && now > record->not_after) {
        *refusal = "the key has expired: it decrypts, but encrypts nothing more";
        return OPAL_CRYPTFILE_GRANT_OPEN;
    }
    return OPAL_CRYPTFILE_GRANT_SEAL;
}

typedef struct newest {
    bool revoked_too;
    opal_cryptfile_keystore_record_t *record;
} newest_t;

static int keep_newest(const opal_cryptfile_keystore_record_t *record, void *arg)
{
    newest_t *newest = arg;

    if ((newest->revoked_too || !record->revoked) && record->version > newest->record->version) {
        *newest->record = *record;
    }
    return 0;
}

int opal_cryptfile_keystore_look_up(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version,
                                    bool revoked_too, opal_cryptfile_keystore_record_t *record,
                                    opal_crypt_why_t *why)
{
    newest_t newest = {revoked_too, record};

    if (!opal_cryptfile_key_label_valid(label)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-label", "%.80s", label);
    }
    memset(record, 0, sizeof(*record));
    if (0 != version) {
        return keystore->ops->read(keystore, label, version, record, why);
    }
    int rc = keystore->ops->walk(keystore, label, keep_newest, NULL, &newest, why);
    if (OPAL_CRYPT_OK == rc && 0 == record->version) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s, keystore %s %s",
                               label, keystore->ops->name, keystore->directory);
    }
    return rc;
}

int opal_cryptfile_keystore_find(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version,
                                 opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    pthread_mutex_lock(&keystore->lock);
    int rc = opal_cryptfile_keystore_look_up(keystore, label, version, false, record, why);
    pthread_mutex_unlock(&keystore->lock);
    return rc;
}

opal_cryptfile_grant_t opal_cryptfile_keystore_grant(opal_cryptfile_keystore_t *keystore,
                                                     const char *label)
{
    opal_cryptfile_keystore_record_t record;
    const char *refusal;

    if (OPAL_CRYPT_OK != opal_cryptfile_keystore_find(keystore, label, 0, &record, NULL)) {
        return OPAL_CRYPTFILE_GRANT_NONE;
    }
    return opal_cryptfile_keystore_grant_of(keystore, &record, &refusal);
}

const char *opal_cryptfile_keystore_refusal(opal_cryptfile_keystore_t *keystore, const char *label,
                                            opal_cryptfile_keystore_record_t *record)
{
    const char *refusal = NULL;

    pthread_mutex_lock(&keystore->lock);
    if (OPAL_CRYPT_OK == opal_cryptfile_keystore_look_up(keystore, label, 0, true, record, NULL)) {
        (void) opal_cryptfile_keystore_grant_of(keystore, record, &refusal);
    }
    pthread_mutex_unlock(&keystore->lock);
    return refusal;
}

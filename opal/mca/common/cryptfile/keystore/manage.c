/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Management: new keys and versions, lists, revocation, recovery keys.
 */
#include "keystore_object.h"

#include <string.h>

static bool passed(const opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record)
{
    const int64_t now = 0 != keystore->now ? (int64_t) keystore->now : (int64_t) time(NULL);

    return 0 != record->not_after && now > record->not_after;
}

/* A rotation changes the key; owners and not_after stay unless the caller gives others. */
static int take_over(const opal_cryptfile_keystore_t *keystore, unsigned how,
                     const opal_cryptfile_keystore_record_t *newest, opal_cryptfile_keystore_record_t *record,
                     opal_crypt_why_t *why)
{
    char name[OPAL_CRYPTFILE_RECORD_TEXT_BYTES];

    if (0 != (how & OPAL_CRYPTFILE_KEYSTORE_KEEP_OWNERS)) {
        memcpy(record->owners, newest->owners, sizeof(record->owners));
        record->owner_count = newest->owner_count;
    }
    if (0 == record->escrow_bytes) {
        memcpy(record->escrow, newest->escrow, sizeof(record->escrow));
        record->escrow_bytes = newest->escrow_bytes;
    }
    if (0 == (how & OPAL_CRYPTFILE_KEYSTORE_KEEP_NOT_AFTER)) {
        return OPAL_CRYPT_OK;
    }
    record->not_after = newest->not_after;
    return passed(keystore, record) ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-expired",
                                                        "%s: its last day has passed; a new version needs another",
                                                        opal_cryptfile_record_text(newest, name))
                                    : OPAL_CRYPT_OK;
}

static int new_key(opal_cryptfile_keystore_t *keystore, unsigned how,
                   opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    const bool rotate = 0 != (how & OPAL_CRYPTFILE_KEYSTORE_ROTATE);
    const char *verb = rotate ? "rotate" : "new";
    opal_cryptfile_keystore_record_t newest;
    char name[OPAL_CRYPTFILE_RECORD_TEXT_BYTES];
    opal_crypt_why_t found = {.topic = NULL};
    int rc = opal_cryptfile_keystore_look_up(keystore, record->label, 0, true, &newest, &found);

    if (!rotate && OPAL_CRYPT_OK == rc) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-label-exists", "%s", opal_cryptfile_record_text(&newest, name));
    }
    if (OPAL_CRYPT_OK != rc && (rotate || NULL == found.topic || 0 != strcmp("keystore-no-label", found.topic))) {
        *why = found;
        return rc;
    }
    if (rotate && UINT16_MAX == newest.version) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_EXHAUSTED, "keystore-versions", "%s", record->label);
    }
    rc = rotate ? take_over(keystore, how, &newest, record, why) : OPAL_CRYPT_OK;
    if (OPAL_CRYPT_OK == rc && passed(keystore, record)) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-not-after", "%s", record->label);
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    record->version = (uint16_t) (newest.version + 1);
    record->bits = 256;
    record->created = 0 != keystore->now ? (int64_t) keystore->now : (int64_t) time(NULL);
    record->revoked = false;
    record->changes = 0;
    rc = opal_cryptfile_keystore_log(keystore, verb, record->label, record->version, NULL, NULL, why);
    return OPAL_CRYPT_OK != rc ? rc : opal_cryptfile_keystore_log_end(keystore, verb, record->label, record->version, keystore->ops->create(keystore, record, why));
}

int opal_cryptfile_keystore_new(opal_cryptfile_keystore_t *keystore, unsigned how,
                                opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    opal_crypt_why_t mine;
    int rc = opal_cryptfile_keystore_change(keystore, record->label, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = new_key(keystore, how, record, NULL == why ? &mine : why);
        opal_cryptfile_keystore_changed(keystore);
    }
    return rc;
}

int opal_cryptfile_keystore_list(opal_cryptfile_keystore_t *keystore,
                                 int (*each)(const opal_cryptfile_keystore_record_t *record, void *arg),
                                 void (*bad)(const opal_crypt_why_t *why, void *arg), void *arg,
                                 opal_crypt_why_t *why)
{
    pthread_mutex_lock(&keystore->lock);
    int rc = keystore->ops->walk(keystore, NULL, each, bad, arg, why);
    pthread_mutex_unlock(&keystore->lock);
    return rc;
}

static int change(opal_cryptfile_keystore_t *keystore, const char *verb, opal_cryptfile_keystore_record_t *record,
                  opal_crypt_why_t *why)
{
    if (NULL == keystore->ops->update) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-at-server", "%s %s", verb, record->label);
    }
    if (UINT32_MAX == record->changes) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_EXHAUSTED, "keystore-versions", "%s", record->label);
    }
    ++record->changes;
    int rc = opal_cryptfile_keystore_log(keystore, verb, record->label, record->version, NULL, NULL, why);
    return OPAL_CRYPT_OK != rc ? rc : opal_cryptfile_keystore_log_end(keystore, verb, record->label, record->version, keystore->ops->update(keystore, record, why));
}

static int revoke_one(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version,
                      opal_crypt_why_t *why)
{
    opal_cryptfile_keystore_record_t record;
    int rc = keystore->ops->read(keystore, label, version, &record, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (record.revoked) {
        return opal_cryptfile_keystore_log(keystore, "revoke", label, version, NULL, NULL, why);
    }
    record.revoked = true;
    return change(keystore, "revoke", &record, why);
}

typedef struct versions {
    unsigned newest;            /* readable version; 0: none */
    opal_crypt_why_t bad;       /* why the first unreadable one cannot be read; topic NULL: all can */
} versions_t;

static int note_newest(const opal_cryptfile_keystore_record_t *record, void *arg)
{
    versions_t *versions = arg;

    versions->newest = record->version > versions->newest ? record->version : versions->newest;
    return OPAL_CRYPT_OK;
}

static void note_bad(const opal_crypt_why_t *why, void *arg)
{
    versions_t *versions = arg;

    if (NULL == versions->bad.topic) {
        versions->bad = *why;
    }
}

/* Every version, beginning with the newest, which new files use.  A missing or unreadable version does not keep the
 * others from being revoked; the first error is returned. */
static int revoke_all(opal_cryptfile_keystore_t *keystore, const char *label, opal_crypt_why_t *why)
{
    versions_t versions = {.newest = 0};
    opal_crypt_why_t none;
    int result = keystore->ops->walk(keystore, label, note_newest, note_bad, &versions, why);

    if (OPAL_CRYPT_OK == result && NULL != versions.bad.topic) {
        result = OPAL_CRYPT_ERR_CONFIG;
        *(NULL == why ? &none : why) = versions.bad;
    } else if (OPAL_CRYPT_OK == result && 0 == versions.newest) {
        result = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s, keystore %s %s", label,
                                   keystore->ops->name, keystore->directory);
    }
    for (unsigned i = versions.newest; i >= 1; --i) {
        opal_crypt_why_t one = {.topic = NULL};
        int rc = revoke_one(keystore, label, (uint16_t) i, &one);
        bool missing = NULL != one.topic && 0 == strcmp("keystore-no-label", one.topic);
        if (OPAL_CRYPT_OK != rc && !missing && OPAL_CRYPT_OK == result) {
            result = rc;
            *(NULL == why ? &none : why) = one;
        }
    }
    return result;
}

int opal_cryptfile_keystore_revoke(opal_cryptfile_keystore_t *keystore, const char *label,
                                   uint16_t version, opal_crypt_why_t *why)
{
    int rc = opal_cryptfile_keystore_change(keystore, label, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = NULL == keystore->ops->update ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-at-server", "revoke %s", label)
             : 0 == version                ? revoke_all(keystore, label, why) : revoke_one(keystore, label, version, why);
        opal_cryptfile_keystore_changed(keystore);
    }
    return rc;
}

static int set_escrow(opal_cryptfile_keystore_t *keystore, const char *label, const char *public_pem,
                      opal_crypt_why_t *why)
{
    opal_cryptfile_keystore_record_t record;
    int rc = opal_cryptfile_keystore_look_up(keystore, label, 0, false, &record, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_escrow_key(keystore, public_pem, record.escrow, &record.escrow_bytes, why);
    }
    return OPAL_CRYPT_OK == rc ? change(keystore, "escrow", &record, why) : rc;
}

int opal_cryptfile_keystore_escrow(opal_cryptfile_keystore_t *keystore, const char *label,
                                   const char *public_pem, opal_crypt_why_t *why)
{
    int rc = opal_cryptfile_keystore_change(keystore, label, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = set_escrow(keystore, label, public_pem, why);
        opal_cryptfile_keystore_changed(keystore);
    }
    return rc;
}

int opal_cryptfile_keystore_protect(opal_cryptfile_keystore_t *keystore, const char *label,
                                    unsigned *count, opal_crypt_why_t *why)
{
    int rc = opal_cryptfile_keystore_change(keystore, label, why);

    *count = 0;
    if (OPAL_CRYPT_OK == rc && (NULL == keystore->ops->protect || NULL == keystore->machine_key)) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-machine-key",
                               "%s: no machine key is set to protect it with", label);
        opal_cryptfile_keystore_changed(keystore);
    } else if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_keystore_log(keystore, "protect", label, 0, NULL, NULL, why);
        rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_keystore_log_end(keystore, "protect", label, 0, keystore->ops->protect(keystore, label, count, why)) : rc;
        opal_cryptfile_keystore_changed(keystore);
    }
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Keys leave a keystore and enter one.  A label that is here already is taken for the sender's only if a version has
 * the same key in both; otherwise a stranger's key could become the newest version of ours.  State never goes back: an
 * older export adds nothing, and revokes nothing less.
 */
#include "bundle.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>

int opal_cryptfile_keystore_moves(const opal_cryptfile_keystore_t *keystore, const char *label, opal_crypt_why_t *why)
{
    return OPAL_CRYPTFILE_KEYSTORE_FILE == keystore->backend
               ? OPAL_CRYPT_OK
               : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-in-token", "%s", NULL == label ? "all labels" : label);
}

/* ---- out ---- */

typedef struct export_list {
    struct export_name {
        char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
        uint16_t version;
    } *names;
    size_t count;
    bool full;
} export_list_t;

static int export_note(const opal_cryptfile_keystore_record_t *record, void *arg)
{
    export_list_t *list = arg;

    list->full = list->count == OPAL_CRYPTFILE_BUNDLE_KEYS;
    if (list->full) {
        return OPAL_CRYPT_ERR_EXHAUSTED;
    }
    strcpy(list->names[list->count].label, record->label);
    list->names[list->count++].version = record->version;
    return OPAL_CRYPT_OK;
}

/* Labels ascending, versions of a label descending. */
static int export_order(const void *one, const void *other)
{
    const struct export_name *a = one, *b = other;
    int order = strcmp(a->label, b->label);

    return 0 != order ? order : (int) b->version - (int) a->version;
}

static int export_one(opal_cryptfile_keystore_t *keystore, const struct export_name *name, opal_cryptfile_bundle_t *bundle,
                      opal_crypt_why_t *why)
{
    static const char refusal[] = "this user is not an owner of the key";
    opal_cryptfile_key_file_t *content;
    int rc = opal_cryptfile_key_file_load(keystore, name->label, name->version, &content, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (!opal_cryptfile_keystore_owns(&content->record)) {
        rc = opal_cryptfile_keystore_log(keystore, "export", name->label, name->version, NULL, refusal, why);
        rc = rc ? rc : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-refused", "%s, version %u: %s", name->label,
                                         name->version, refusal);
    } else {
        rc = opal_cryptfile_bundle_add(bundle, content);
        rc = rc ? rc : opal_cryptfile_keystore_log(keystore, "export", name->label, name->version, NULL, NULL, why);
    }
    opal_crypt_secmem_free(content);
    return rc;
}

static int export_all(opal_cryptfile_keystore_t *keystore, const char *label, export_list_t *list, opal_cryptfile_bundle_t *bundle,
                      opal_crypt_why_t *why)
{
    int rc = keystore->ops->walk(keystore, label, export_note, NULL, list, why);

    if (OPAL_CRYPT_OK == rc && 0 == list->count) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s, keystore %s %s",
                                 NULL == label ? "no label at all" : label, keystore->ops->name, keystore->directory);
    }
    qsort(list->names, list->count, sizeof(*list->names), export_order);
    rc = rc ? rc : opal_cryptfile_bundle_begin(bundle, 0 != keystore->now ? (int64_t) keystore->now : (int64_t) time(NULL),
                                               (unsigned) list->count);
    for (size_t i = 0; OPAL_CRYPT_OK == rc && i < list->count; ++i) {
        rc = export_one(keystore, &list->names[i], bundle, why);
    }
    rc = rc ? rc : opal_cryptfile_bundle_end(bundle);
    return OPAL_CRYPT_ERR_EXHAUSTED != rc ? rc
           : opal_crypt_refuse(why, rc, "keystore-too-many", "%s", NULL == label ? "all labels" : label);
}

int opal_cryptfile_keystore_export(opal_cryptfile_keystore_t *keystore, const char *label, char **text, size_t *bytes,
                                   opal_crypt_why_t *why)
{
    export_list_t list = {.names = calloc(OPAL_CRYPTFILE_BUNDLE_KEYS, sizeof(*list.names))};
    opal_cryptfile_bundle_t bundle = {.text = NULL};
    int rc = NULL == list.names ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_keystore_moves(keystore, label, why);

    if (OPAL_CRYPT_OK == rc) {
        pthread_mutex_lock(&keystore->lock);
        rc = export_all(keystore, label, &list, &bundle, why);
        pthread_mutex_unlock(&keystore->lock);
    }
    free(list.names);
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secmem_free(bundle.text);
        return rc;
    }
    *text = bundle.text;
    *bytes = bundle.used;
    return OPAL_CRYPT_OK;
}

/* ---- in ---- */

typedef struct import_state {
    opal_cryptfile_keystore_t *keystore;
    opal_cryptfile_import_to_t *to;
    opal_cryptfile_key_file_t *key;     /* the one being read; secret memory */
    opal_crypt_why_t why;               /* of the label being read */
} import_state_t;

/* The version that the keystore has: NULL if it has none. */
static int import_held(import_state_t *in, opal_cryptfile_key_file_t **held)
{
    *held = NULL;
    if (NULL == in->keystore) {
        return OPAL_CRYPT_OK;
    }
    int rc = opal_cryptfile_key_file_load(in->keystore, in->key->record.label, in->key->record.version, held, &in->why);

    if (OPAL_CRYPT_OK != rc) {
        *held = NULL;
    }
    return OPAL_CRYPT_OK != rc && NULL != in->why.topic && 0 == strcmp("keystore-no-label", in->why.topic) ? OPAL_CRYPT_OK : rc;
}

/* May all versions of this label come in?  The reader is a copy. */
static int import_judge(import_state_t *in, opal_cryptfile_bundle_reader_t reader, unsigned count)
{
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1] = "";
    opal_cryptfile_keystore_record_t newest;
    opal_cryptfile_key_file_t *held;
    unsigned same = 0;
    int rc = OPAL_CRYPT_OK;

    for (unsigned i = 0; OPAL_CRYPT_OK == rc && i < count; ++i) {
        rc = opal_cryptfile_bundle_next(&reader, in->key);
        rc = rc ? rc : import_held(in, &held);
        if (OPAL_CRYPT_OK == rc && NULL != held) {
            ++same;
            if (0 != opal_crypt_differ(held->key, in->key->key, sizeof(held->key))) {
                rc = opal_crypt_refuse(&in->why, OPAL_CRYPT_ERR_CONFIG, "keystore-other-key", "%s, version %u",
                                       in->key->record.label, in->key->record.version);
            }
            opal_crypt_secmem_free(held);
        }
        strcpy(label, in->key->record.label);
    }
    if (OPAL_CRYPT_OK != rc || same > 0 || NULL == in->keystore) {
        return rc;
    }
    rc = opal_cryptfile_keystore_look_up(in->keystore, label, 0, true, &newest, &in->why);
    if (OPAL_CRYPT_OK == rc) {
        return opal_crypt_refuse(&in->why, OPAL_CRYPT_ERR_CONFIG, "keystore-other-key", "%s: no version of it is in both", label);
    }
    return NULL != in->why.topic && 0 == strcmp("keystore-no-label", in->why.topic)
               ? opal_cryptfile_key_file_place(in->keystore, &in->why) : rc;
}

/* Add the version, or revoke the one that is held. */
static int import_one(import_state_t *in, opal_cryptfile_import_t *done)
{
    opal_cryptfile_keystore_record_t *record = &in->key->record;
    opal_cryptfile_key_file_t *held;
    int rc = import_held(in, &held);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    *done = NULL == held ? OPAL_CRYPTFILE_IMPORT_NEW : held->record.revoked == record->revoked ? OPAL_CRYPTFILE_IMPORT_HELD
            : record->revoked ? OPAL_CRYPTFILE_IMPORT_REVOKED : OPAL_CRYPTFILE_IMPORT_STAYS;
    if (NULL == held && !record->revoked && NULL != in->keystore
        && opal_cryptfile_key_file_was_revoked(in->keystore, record->fingerprint)) {
        record->revoked = true;
        *done = OPAL_CRYPTFILE_IMPORT_BACK;
    }
    const bool changes = NULL == held || OPAL_CRYPTFILE_IMPORT_REVOKED == *done;
    if (changes && !in->to->dry_run) {
        rc = opal_cryptfile_keystore_log(in->keystore, NULL == held ? "import" : "revoke", record->label, record->version, NULL,
                                         NULL, &in->why);
        if (OPAL_CRYPT_OK == rc && NULL != held) {
            held->record.revoked = true;
            held->record.changes += UINT32_MAX != held->record.changes;
        }
        rc = rc ? rc : opal_cryptfile_keystore_log_end(in->keystore, NULL == held ? "import" : "revoke", record->label, record->version,
                                                       opal_cryptfile_key_file_store(in->keystore, NULL == held ? in->key : held,
                                                                                     NULL == held, &in->why));
    }
    opal_crypt_secmem_free(held);
    return rc;
}

/* All versions of one label; the reader moves past them. */
static int import_label(import_state_t *in, opal_cryptfile_bundle_reader_t *reader, unsigned count)
{
    in->why.topic = NULL;
    int rc = import_judge(in, *reader, count);

    if (OPAL_CRYPT_OK != rc && !in->to->dry_run) {
        (void) opal_cryptfile_keystore_log(in->keystore, "import", in->key->record.label, in->key->record.version, NULL,
                                           NULL != in->why.topic && 0 == strcmp("keystore-other-key", in->why.topic)
                                               ? "another key has this label" : "the keystore cannot take it", NULL);
    }
    for (unsigned i = 0; i < count; ++i) {
        opal_cryptfile_import_t done = OPAL_CRYPTFILE_IMPORT_REFUSED;
        int read = opal_cryptfile_bundle_next(reader, in->key);

        rc = rc ? rc : read ? read : import_one(in, &done);
        in->to->each(&in->key->record, OPAL_CRYPT_OK == rc ? done : OPAL_CRYPTFILE_IMPORT_REFUSED, &in->why, in->to->arg);
    }
    return rc;
}

/* How many versions of its first label the rest of the text has; at most `left`. */
static unsigned import_versions(import_state_t *in, opal_cryptfile_bundle_reader_t reader, unsigned left)
{
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1] = "";
    unsigned count = 0;

    while (count < left && OPAL_CRYPT_OK == opal_cryptfile_bundle_next(&reader, in->key)
           && (0 == count || 0 == strcmp(label, in->key->record.label))) {
        strcpy(label, in->key->record.label);
        ++count;
    }
    return count;
}

static int import_all(import_state_t *in, const char *text, size_t bytes, opal_crypt_why_t *why)
{
    opal_cryptfile_bundle_reader_t reader;
    int result = opal_cryptfile_bundle_check(text, bytes, in->key, &reader);

    if (OPAL_CRYPT_OK != result) {
        return opal_crypt_refuse(why, result, "keystore-bundle", "%zu bytes", bytes);
    }
    in->to->exported = reader.exported;
    for (unsigned done = 0, count; done < reader.count; done += count) {
        count = import_versions(in, reader, reader.count - done);
        int rc = import_label(in, &reader, count);
        if (OPAL_CRYPT_OK != rc && OPAL_CRYPT_OK == result) {
            result = rc;
            if (NULL != why) {
                *why = in->why;
            }
        }
    }
    return result;
}

int opal_cryptfile_keystore_import(opal_cryptfile_keystore_t *keystore, const char *text, size_t bytes,
                                   opal_cryptfile_import_to_t *to, opal_crypt_why_t *why)
{
    import_state_t in = {.keystore = keystore, .to = to, .key = opal_crypt_secmem_alloc(sizeof(*in.key))};
    int rc = NULL == in.key ? OPAL_CRYPT_ERR_MEMORY
             : NULL != keystore ? opal_cryptfile_keystore_moves(keystore, NULL, why)
             : to->dry_run ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_CONFIG;

    rc = rc || NULL == keystore ? rc : opal_cryptfile_keystore_change(keystore, NULL, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = import_all(&in, text, bytes, why);
        if (NULL != keystore) {
            opal_cryptfile_keystore_changed(keystore);
        }
    }
    opal_crypt_secmem_free(in.key);
    return rc;
}

/* ---- away ---- */

int opal_cryptfile_keystore_delete(opal_cryptfile_keystore_t *keystore, const char *label, unsigned *count,
                                   opal_crypt_why_t *why)
{
    int rc = opal_cryptfile_keystore_moves(keystore, label, why);

    *count = 0;
    rc = rc ? rc : opal_cryptfile_keystore_change(keystore, label, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = keystore->ops->remove(keystore, label, count, why);
        opal_cryptfile_keystore_changed(keystore);
    }
    if (OPAL_CRYPT_OK == rc && 0 == *count) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s, keystore %s %s", label, keystore->ops->name,
                               keystore->directory);
    }
    return rc;
}

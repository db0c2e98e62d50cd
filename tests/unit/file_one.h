/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Encrypted files that are one file, as tests/vectors/onefile-v1.txt has them: their bytes, a
 * keystore with their keys, and what becomes of them.
 */
#ifndef TESTS_FILE_ONE_H
#define TESTS_FILE_ONE_H

#include "opal/mca/common/cryptfile/file/header.h"
#include "opal/mca/common/cryptfile/keystore/keystore_object.h"
#include "tests/unit/file_vectors.h"

#include <fcntl.h>

enum { ONE_CAPACITY = 4 << 20, ONE_KEYS = 16 };

/* Bytes, and zeros behind them. */
typedef struct one_image {
    uint8_t *bytes;
    size_t size;
} one_image_t;

typedef struct one_file {
    char name[40];
    one_image_t image;
    uint64_t plain_bytes;
    uint8_t *plain;                     /* what it reads as */
    unsigned key_count;
    char labels[ONE_KEYS][OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    uint8_t keys[ONE_KEYS][32];
    uint8_t root[32];
    int sealed;
} one_file_t;

static inline void one_image_new(one_image_t *image, size_t size)
{
    UNIT_REQUIRE(size <= ONE_CAPACITY);
    *image = (one_image_t){calloc(1, ONE_CAPACITY), size};
}

static inline void one_piece(one_image_t *image, const vector_block_t *vector)
{
    size_t at = (size_t) number_of(vector, "at");

    UNIT_REQUIRE(at < image->size);
    vector_bytes(vector, "bytes", image->bytes + at, image->size - at);
}

static inline void one_file_new(one_file_t *file, const vector_block_t *vector)
{
    *file = (one_file_t){.plain_bytes = (uint64_t) number_of(vector, "bytes"), .sealed = vector_has(vector, "root")};
    snprintf(file->name, sizeof(file->name), "%s", vector_text(vector, "name"));
    one_image_new(&file->image, (size_t) number_of(vector, "size"));
    file->plain = calloc(1, file->plain_bytes + 1);
    if (file->sealed) {
        vector_bytes(vector, "root", file->root, sizeof(file->root));
    }
}

static inline void one_file_free(one_file_t *file)
{
    free(file->image.bytes);
    free(file->plain);
    *file = (one_file_t){.plain = NULL};
}

/* A key, a piece, or a text of the file. */
static inline void one_file_take(one_file_t *file, const vector_block_t *vector)
{
    if (kind_is(vector, "key")) {
        UNIT_REQUIRE(file->key_count < ONE_KEYS);
        snprintf(file->labels[file->key_count], sizeof(file->labels[0]), "%s", vector_text(vector, "label"));
        vector_bytes(vector, "key", file->keys[file->key_count++], 32);
    } else if (kind_is(vector, "piece")) {
        one_piece(&file->image, vector);
    } else {
        size_t at = (size_t) number_of(vector, "at");
        vector_bytes(vector, "bytes", file->plain + at, file->plain_bytes - at);
    }
}

/* A changed version of the file, and the outcome that is expected. */
typedef struct one_changed {
    char name[80], open[40], blocks[200], seal[40];
    uint8_t attribute[8192];
    size_t attribute_bytes;
    one_image_t image;
} one_changed_t;

static inline void one_changed_new(one_changed_t *changed, const one_file_t *file, const vector_block_t *vector)
{
    snprintf(changed->name, sizeof(changed->name), "%s", vector_text(vector, "name"));
    snprintf(changed->open, sizeof(changed->open), "%s", vector_text(vector, "open"));
    snprintf(changed->blocks, sizeof(changed->blocks), "%s", vector_text(vector, "blocks"));
    snprintf(changed->seal, sizeof(changed->seal), "%s", vector_text(vector, "seal"));
    changed->attribute_bytes = vector_has(vector, "attribute") ? vector_bytes(vector, "attribute", changed->attribute, sizeof(changed->attribute)) : 0;
    one_image_new(&changed->image, (size_t) number_of(vector, "size"));
    memcpy(changed->image.bytes, file->image.bytes, changed->image.size < file->image.size ? changed->image.size : file->image.size);
}

/* Every file of the vectors, and its changed versions. */
static inline void one_walk(void (*good)(const one_file_t *file), void (*bad)(const one_file_t *file, const one_changed_t *changed))
{
    FILE *input = vector_file("onefile-v1.txt");
    static vector_block_t vector;
    static one_changed_t changed;
    one_file_t file = {.plain = NULL};
    enum { NOTHING, GOOD, BAD } at = NOTHING;
    int more;

    do {
        more = vector_next(input, &vector);
        if (more && (kind_is(&vector, "piece") || kind_is(&vector, "key") || kind_is(&vector, "text"))) {
            if (GOOD == at) {
                one_file_take(&file, &vector);
            } else if (BAD == at) {
                one_piece(&changed.image, &vector);
            }
            continue;
        }
        if (GOOD == at) {
            good(&file);
        } else if (BAD == at) {
            bad(&file, &changed);
            free(changed.image.bytes);
        }
        at = !more ? NOTHING : kind_is(&vector, "file") ? GOOD : kind_is(&vector, "changed") ? BAD : NOTHING;
        if (GOOD == at) {
            one_file_free(&file);
            one_file_new(&file, &vector);
        } else if (BAD == at) {
            one_changed_new(&changed, &file, &vector);
        }
    } while (more);
    one_file_free(&file);
    fclose(input);
}

/* ---- a keystore of the file's keys ---- */

static const one_file_t *one_keystore_of;

static inline int one_key(const char *label)
{
    int i = (int) one_keystore_of->key_count - 1;

    while (i >= 0 && 0 != strcmp(label, one_keystore_of->labels[i])) {
        --i;
    }
    return i;
}

static inline int one_key_read(opal_cryptfile_keystore_t *keystore, const char *label, uint16_t version,
                               opal_cryptfile_keystore_record_t *record, opal_crypt_why_t *why)
{
    (void) keystore;
    *record = (opal_cryptfile_keystore_record_t){.version = version, .bits = 256};
    snprintf(record->label, sizeof(record->label), "%s", label);
    return one_key(label) >= 0 && 1 == version ? OPAL_CRYPT_OK : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s", label);
}

static inline int one_key_unwrap(opal_cryptfile_keystore_t *keystore, const opal_cryptfile_keystore_record_t *record,
                                 const opal_cryptfile_unwrap_t *blobs, size_t count, size_t *which, opal_crypt_why_t *why)
{
    int rc = OPAL_CRYPT_OK;

    (void) keystore;
    (void) why;
    for (*which = 0; *which < count && OPAL_CRYPT_OK == rc; *which += OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_rfc3394_unwrap(one_keystore_of->keys[one_key(record->label)], blobs[*which].wrapped->blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT,
                                           blobs[*which].data_key);
    }
    return rc;
}

static inline opal_cryptfile_keystore_t *one_keystore(const one_file_t *file)
{
    static const opal_cryptfile_keystore_ops_t ops = {.name = "test", .read = one_key_read, .unwrap = one_key_unwrap};
    static opal_cryptfile_keystore_t keystore = {.ops = &ops, .backend = 1, .lock = PTHREAD_MUTEX_INITIALIZER, .log_fd = -1};

    keystore.log_fd = keystore.log_fd < 0 ? open("/dev/null", O_WRONLY) : keystore.log_fd;
    one_keystore_of = file;
    return &keystore;
}

/* ---- opening ---- */

typedef struct one_opened {
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t state;
    opal_cryptfile_copy_state_t copies[OPAL_CRYPTFILE_COPIES];
    opal_cryptfile_copy_t chosen;
    bool differ;
    opal_crypt_why_t why;
} one_opened_t;

static inline void one_close(one_opened_t *opened)
{
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        opal_cryptfile_copy_free(&opened->copies[i]);
    }
}

/* In the words of the vectors.  A place is given as it would be read: no longer than its map is said to be. */
static inline const char *one_open(const one_image_t *image, const uint8_t *attribute, size_t attribute_bytes,
                                   opal_cryptfile_keystore_t *keystore, one_opened_t *opened)
{
    *opened = (one_opened_t){.differ = false};
    int rc = opal_cryptfile_header_parse(image->bytes, OPAL_CRYPTFILE_HEADER_BYTES, &opened->header);
    if (OPAL_CRYPT_OK != rc) {
        return OPAL_CRYPT_ERR_CONFIG == rc ? "version" : "forged";
    }
    const opal_cryptfile_geometry_t *geometry = &opened->header.geometry;
    uint64_t seal_at = opal_cryptfile_geometry_seal_at(geometry);
    static const uint8_t zeros[4];
    rc = opal_cryptfile_state_parse(seal_at + 4 <= ONE_CAPACITY ? image->bytes + seal_at : zeros, geometry, image->size, &opened->state);
    if (OPAL_CRYPT_OK != rc || OPAL_CRYPTFILE_STATE_MAKING == opened->state) {
        return OPAL_CRYPT_OK == rc ? "unfinished" : "forged";
    }
    for (unsigned i = 0; i < 2; ++i) {
        uint64_t at = opal_cryptfile_geometry_map_at(geometry, i);
        size_t count = at + OPAL_CRYPTFILE_MAP_HEAD_BYTES > ONE_CAPACITY ? 0 : opal_cryptfile_place_peek(image->bytes + at, geometry) + 4;
        count = at + count > ONE_CAPACITY ? 0 : count;
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_place_judge(image->bytes + at, count, &opened->header, keystore, NULL,
                                                                 &opened->copies[OPAL_CRYPTFILE_COPY_PLACE_0 + i]));
    }
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_copy_judge(attribute, attribute_bytes, keystore, NULL,
                                                                 &opened->copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE]));
    rc = opal_cryptfile_header_choose(opened->copies, &opened->header, &opened->chosen, &opened->differ, &opened->why);
    UNIT_CHECK(OPAL_CRYPT_OK == rc || NULL != opened->why.topic);
    return OPAL_CRYPT_OK == rc ? "encrypted" : OPAL_CRYPT_ERR_AUTH == rc ? "forged" : OPAL_CRYPT_ERR_ACCESS == rc ? "no key" : "version";
}

#endif

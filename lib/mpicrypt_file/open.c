/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening: what is read is an attacker's until a key of the keystore has verified the map.
 *
 *     regular file | begins like one of ours | lock of its users | header | keystore | copies of the map
 *     | engine | seal, if it has one | what the caller expects
 */
#include "lib/mpicrypt_file/reader.h"
#include "lib/mpicrypt_file/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/cryptfile/file/header.h"
#include "opal/mca/common/cryptfile/file/seal.h"

enum { OPEN_PART_BYTES = 1 << 20 };     /* read by one call of the system */

/* A file that is being opened. */
typedef struct opening {
    mpicrypt_file_t *file;
    const char *path;                   /* NULL: opened by descriptor */
    const mpicrypt_asked_t *asked;
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t state;
    opal_cryptfile_keystore_t *keystore;
    opal_cryptfile_copy_state_t copies[OPAL_CRYPTFILE_COPIES];
    mpicrypt_file_error_t *error;
} opening_t;

static int open_refuse(const opening_t *o, int status, const char *reason)
{
    return mpicrypt_fail(o->error, status, 0, MPICRYPT_FILE_NOWHERE, o->file->name, "%s", reason);
}

static int open_refuse_errno(const opening_t *o) { return mpicrypt_fail_errno(o->error, errno, o->file->name); }

/* ---- is it one of ours? ---- */

/* `old`: it begins as a second file of a development version. */
static int open_plain(const opening_t *o, bool old)
{
    uint8_t *bytes = NULL;
    size_t count = 0;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_attribute_read(&o->file->posix, &bytes, &count)) {
        return open_refuse_errno(o);
    }
    old = old || opal_cryptfile_header_old(bytes, count);
    free(bytes);
    if (old) {
        return open_refuse(o, MPICRYPT_FILE_ERR_FORMAT, "it was encrypted by a development version: decrypt it with that version");
    }
    if (0 != count) {
        return open_refuse(o, MPICRYPT_FILE_ERR_FORGED, "it has the attribute of an encrypted file, but does not begin like one");
    }
    o->file->plain = o->asked->plain;
    return o->file->plain ? MPICRYPT_FILE_OK : open_refuse(o, MPICRYPT_FILE_ERR_PLAIN, "it is not encrypted");
}

/* Other users of the file hold this lock, too, until they close it; `mpicrypt file rekey` and the like hold it alone.  A
 * file system without locks has none of those. */
static int open_take(const opening_t *o)
{
    ompi_common_cryptmpio_use_t use = OMPI_CRYPTMPIO_USE_OURS;
    bool got = true;

    if (NULL != o->path) {
        (void) ompi_common_cryptmpio_posix_use(&o->file->posix, o->path, false, &use);
    } else if (OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_lock_now(&o->file->posix, OMPI_CRYPTMPIO_LOCK_USE, false, &got) && !got) {
        use = OMPI_CRYPTMPIO_USE_BUSY;
    }
    return OMPI_CRYPTMPIO_USE_OURS == use ? MPICRYPT_FILE_OK
           : mpicrypt_fail(o->error, MPICRYPT_FILE_ERR_IO, OMPI_CRYPTMPIO_USE_BUSY == use ? EBUSY : ESTALE, MPICRYPT_FILE_NOWHERE,
                           o->file->name, "%s", ompi_common_cryptmpio_posix_why_not(use));
}

static int open_header(opening_t *o)
{
    opal_cryptfile_storage_t *storage = &o->file->posix.super;
    bool magic;
    int rc = opal_cryptfile_beginning_read(storage, &magic, &o->header, &o->state);

    return OPAL_CRYPT_ERR_STORAGE == rc ? open_refuse_errno(o)
           : OPAL_CRYPT_ERR_MEMORY == rc ? open_refuse(o, MPICRYPT_FILE_ERR_MEMORY, "out of memory")
           : OPAL_CRYPT_ERR_CONFIG == rc ? open_refuse(o, MPICRYPT_FILE_ERR_FORMAT, "another version of ompi-crypt made it")
           : OPAL_CRYPT_OK != rc || !magic ? open_refuse(o, MPICRYPT_FILE_ERR_FORGED, "its header is damaged")
           : OPAL_CRYPTFILE_STATE_MAKING == o->state
               ? open_refuse(o, MPICRYPT_FILE_ERR_UNFINISHED, "it is being made, or its maker was killed") : MPICRYPT_FILE_OK;
}

/* ---- keys ---- */

static void open_complain(const char *name, const char *value, opal_crypt_parameter_t kind, const char *nearest, void *arg)
{
    mpicrypt_file_error_t *wrong = arg;
    char sentence[512];

    if (0 == wrong->status && mpicrypt_settings_complain(name, value, kind, nearest, sentence, sizeof(sentence))) {
        (void) mpicrypt_fail(wrong, MPICRYPT_FILE_ERR_SETUP, 0, MPICRYPT_FILE_NOWHERE, NULL, "%s", sentence);
    }
}

static int open_keystore(opening_t *o)
{
    const mpicrypt_settings_t given = {.directory = o->asked->keystore}, settings = mpicrypt_settings(&given);
    opal_cryptfile_keystore_options_t options;
    opal_crypt_why_t why = {.topic = NULL};
    mpicrypt_file_error_t wrong = {.status = 0};

    opal_crypt_parameter_environment(open_complain, &wrong);
    if (0 != wrong.status) {
        return open_refuse(o, MPICRYPT_FILE_ERR_SETUP, wrong.text);
    }
    if (!mpicrypt_settings_keystore(&settings, &options)) {
        return open_refuse(o, MPICRYPT_FILE_ERR_SETUP, "OMPI_MCA_crypt_keystore is file, pkcs11 or vault");
    }
    int rc = opal_cryptfile_keystore_open(&options, &o->keystore, &why);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_FILE_OK : mpicrypt_fail_refused(o->error, MPICRYPT_FILE_ERR_SETUP, rc, o->file->name, &why);
}

static int open_copy(opening_t *o, opal_cryptfile_copy_t copy)
{
    const bool attribute = OPAL_CRYPTFILE_COPY_ATTRIBUTE == copy;
    opal_cryptfile_copy_state_t *state = &o->copies[copy];
    uint8_t *bytes = NULL;
    size_t count = 0;
    int rc = attribute ? ompi_common_cryptmpio_posix_attribute_read(&o->file->posix, &bytes, &count)
                       : opal_cryptfile_place_read(&o->file->posix.super, &o->header, (unsigned) copy - OPAL_CRYPTFILE_COPY_PLACE_0,
                                                   &bytes, &count);

    if (OPAL_CRYPT_OK == rc) {
        rc = attribute ? opal_cryptfile_copy_judge(bytes, count, o->keystore, NULL, state)
                       : opal_cryptfile_place_judge(bytes, count, &o->header, o->keystore, &o->copies[copy - 1], state);
        free(bytes);
    }
    return rc;
}

/* The engine takes the map; what it needs of the keys it copies. */
static int open_engine(opening_t *o, opal_cryptfile_copy_state_t *best)
{
    const opal_cryptfile_of_t of = {.storage = &o->file->posix.super, .provider = mpicrypt_start_provider,
                                    .part_bytes = OPEN_PART_BYTES};
    const uint32_t count = best->map->region_count;
    int rc = opal_cryptfile_create(&of, &o->file->engine);

    o->file->readable = calloc(count + 1, sizeof(*o->file->readable));
    o->file->generation = best->map->generation;
    rc = OPAL_CRYPT_OK == rc && NULL == o->file->readable ? OPAL_CRYPT_ERR_MEMORY : rc;
    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < count; ++i) {
        o->file->readable[i] = !best->map->regions[i].encrypted || NULL != best->keys[i].data_key;
    }
    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_work_secret(o->file->engine);
        rc = opal_cryptfile_use(o->file->engine, best->map, best->keys);
    }
    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_keys_free(best->keys, count);
        best->map = NULL;
        best->keys = NULL;
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_FILE_OK
           : OPAL_CRYPT_ERR_MEMORY == rc ? open_refuse(o, MPICRYPT_FILE_ERR_MEMORY, "out of memory")
           : open_refuse(o, MPICRYPT_FILE_ERR_SETUP, "OpenSSL cannot be used for its cipher");
}

static int open_map(opening_t *o)
{
    opal_cryptfile_copy_t chosen;
    opal_crypt_why_t why = {.topic = NULL};
    bool differ;
    int rc = OPAL_CRYPT_OK;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES && OPAL_CRYPT_OK == rc; ++i) {
        rc = open_copy(o, (opal_cryptfile_copy_t) i);
    }
    if (OPAL_CRYPT_OK != rc) {
        return OPAL_CRYPT_ERR_STORAGE == rc ? open_refuse_errno(o) : mpicrypt_fail_refused(o->error, MPICRYPT_FILE_ERR_FORGED, rc,
                                                                                           o->file->name, &why);
    }
    rc = opal_cryptfile_header_choose(o->copies, &o->header, &chosen, &differ, &why);
    return OPAL_CRYPT_OK == rc ? open_engine(o, &o->copies[chosen])
           : mpicrypt_fail_refused(o->error, OPAL_CRYPT_ERR_ACCESS == rc ? MPICRYPT_FILE_ERR_KEY
                                   : OPAL_CRYPT_ERR_CONFIG == rc ? MPICRYPT_FILE_ERR_FORMAT : MPICRYPT_FILE_ERR_FORGED,
                                   rc, o->file->name, &why);
}

/* ---- what the caller expects ---- */

static int open_seal(opening_t *o)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    opal_crypt_why_t why = {.topic = NULL};

    if (OPAL_CRYPTFILE_STATE_SEALED != o->state) {
        return o->asked->sealed ? open_refuse(o, MPICRYPT_FILE_ERR_UNEXPECTED, "it is not sealed") : MPICRYPT_FILE_OK;
    }
    int rc = opal_cryptfile_seal_demand(o->file->engine, NULL, &why);
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_fail_refused(o->error, MPICRYPT_FILE_ERR_FORGED, rc, o->file->name, &why);
    }
    (void) opal_cryptfile_sealed_hash(o->file->engine, hash);
    if (o->asked->sealed && 0 != opal_crypt_differ(hash, o->asked->seal_root, sizeof(hash))) {
        return open_refuse(o, MPICRYPT_FILE_ERR_UNEXPECTED, "its seal has another root than is expected: it is another file, or another "
                           "version of it");
    }
    o->file->sealed = true;
    _Static_assert(sizeof(o->file->seal_root) == OPAL_CRYPTFILE_SEAL_TEXT_BYTES, "seal_root");
    opal_cryptfile_seal_text(hash, o->file->seal_root);
    return MPICRYPT_FILE_OK;
}

static int open_label(const opening_t *o)
{
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(o->file->engine);

    for (uint32_t i = 0; NULL != o->asked->label && i < map->region_count; ++i) {
        if (map->regions[i].encrypted && 0 != strcmp(o->asked->label, map->regions[i].label)) {
            return mpicrypt_fail(o->error, MPICRYPT_FILE_ERR_UNEXPECTED, 0, MPICRYPT_FILE_NOWHERE, o->file->name,
                                 "it is encrypted under label %s, and %s is expected", map->regions[i].label, o->asked->label);
        }
    }
    return MPICRYPT_FILE_OK;
}

static int open_memory(const opening_t *o)
{
    mpicrypt_file_t *file = o->file;
    int rc = OPAL_CRYPT_OK;

    file->threads = o->asked->threads;
    if (file->threads > 1) {
        rc = opal_crypt_team_create(file->threads - 1, false, &file->team);
    }
    file->cache = OPAL_CRYPT_OK == rc ? mpicrypt_cache_new(o->asked->cache_bytes) : NULL;
    return NULL == file->cache ? open_refuse(o, MPICRYPT_FILE_ERR_MEMORY, "out of memory") : MPICRYPT_FILE_OK;
}

/* ---- all of it ---- */

static int open_encrypted(opening_t *o)
{
    int status = open_take(o);

    status = MPICRYPT_FILE_OK == status ? open_header(o) : status;
    status = MPICRYPT_FILE_OK == status ? open_keystore(o) : status;
    status = MPICRYPT_FILE_OK == status ? open_map(o) : status;
    status = MPICRYPT_FILE_OK == status ? open_label(o) : status;
    status = MPICRYPT_FILE_OK == status ? open_seal(o) : status;
    status = MPICRYPT_FILE_OK == status ? open_memory(o) : status;
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        opal_cryptfile_copy_free(&o->copies[i]);
    }
    opal_cryptfile_keystore_close(o->keystore);
    return status;
}

static int open_any(opening_t *o)
{
    struct stat status;
    bool magic = false;

    if (0 != fstat(o->file->posix.data_fd, &status)) {
        return open_refuse_errno(o);
    }
    if (!S_ISREG(status.st_mode)) {
        return mpicrypt_fail(o->error, MPICRYPT_FILE_ERR_IO, S_ISDIR(status.st_mode) ? EISDIR : ESPIPE, MPICRYPT_FILE_NOWHERE,
                             o->file->name, "it is not a regular file");
    }
    int rc = opal_cryptfile_beginning_read(&o->file->posix.super, &magic, &o->header, &o->state);
    return OPAL_CRYPT_ERR_STORAGE == rc && !magic ? open_refuse_errno(o) : magic ? open_encrypted(o)
           : open_plain(o, OPAL_CRYPT_ERR_CONFIG == rc);
}

int mpicrypt_open(int fd, const char *path, const char *name, const mpicrypt_asked_t *asked, mpicrypt_file_t **file,
                  mpicrypt_file_error_t *error)
{
    mpicrypt_file_t *made = calloc(1, sizeof(*made));
    opening_t o = {.file = made, .path = path, .asked = asked, .error = error};

    if (NULL == made || NULL == (made->name = strdup(name))) {
        free(made);
        (void) close(fd);
        return mpicrypt_fail(error, MPICRYPT_FILE_ERR_MEMORY, ENOMEM, MPICRYPT_FILE_NOWHERE, name, "out of memory");
    }
    made->born = mpicrypt_start_generation();
    ompi_common_cryptmpio_posix_init(&made->posix, fd, false);
    ompi_common_cryptmpio_posix_find_system(&made->posix);
    int status = open_any(&o);
    if (MPICRYPT_FILE_OK != status) {
        mpicrypt_close(made);
        return status;
    }
    *file = made;
    return mpicrypt_fail_nothing(error);
}

/* In a child all but the descriptor is left alone: another thread of the parent may have been changing it.  The locks are
 * the parent's, too. */
void mpicrypt_close(mpicrypt_file_t *file)
{
    if (!mpicrypt_start_foreign(file)) {
        opal_crypt_team_destroy(file->team);
        mpicrypt_cache_free(file->cache);
        opal_cryptfile_destroy(file->engine);
        ompi_common_cryptmpio_posix_release(&file->posix);
        free(file->readable);
    }
    (void) close(file->posix.data_fd);
    free(file->name);
    free(file);
}

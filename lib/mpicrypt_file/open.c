/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A file of the library: the steps of opening.h, with the user's keystore, an engine that only reads, a cache and threads.
 */
#include "lib/mpicrypt_file/opening.h"
#include "lib/mpicrypt_file/reader.h"
#include "lib/mpicrypt_file/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPEN_PART_BYTES = 1 << 20 };     /* read by one call of the system */

static int open_refuse(const mpicrypt_opening_t *o, int status, const char *reason)
{
    return mpicrypt_fail(o->error, status, 0, MPICRYPT_FILE_NOWHERE, o->name, "%s", reason);
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

static int open_keystore(const mpicrypt_opening_t *o, const char *directory, opal_cryptfile_keystore_t **keystore)
{
    const mpicrypt_settings_t given = {.directory = directory}, settings = mpicrypt_settings(&given);
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
    int rc = opal_cryptfile_keystore_open(&options, keystore, &why);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_FILE_OK : mpicrypt_fail_refused(o->error, MPICRYPT_FILE_ERR_SETUP, rc, o->name, &why);
}

/* The engine takes the map; what it needs of the keys it copies. */
static int open_engine(mpicrypt_opening_t *o, mpicrypt_file_t *file)
{
    const opal_cryptfile_of_t of = {.storage = &file->posix.super, .provider = mpicrypt_start_provider, .part_bytes = OPEN_PART_BYTES};
    opal_cryptfile_copy_state_t *best = &o->copies[o->best];
    const uint32_t count = best->map->region_count;
    int rc = opal_cryptfile_create(&of, &file->engine);

    file->readable = calloc(count + 1, sizeof(*file->readable));
    file->generation = best->map->generation;
    rc = OPAL_CRYPT_OK == rc && NULL == file->readable ? OPAL_CRYPT_ERR_MEMORY : rc;
    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < count; ++i) {
        file->readable[i] = !best->map->regions[i].encrypted || NULL != best->keys[i].data_key;
    }
    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_work_secret(file->engine);
        rc = opal_cryptfile_use(file->engine, best->map, best->keys);
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

/* A file that has a seal must match it, whatever was asked for. */
static int open_expected(const mpicrypt_opening_t *o, const mpicrypt_asked_t *asked, mpicrypt_file_t *file)
{
    uint8_t root[OPAL_CRYPT_HASH_BYTES];
    int status = NULL == asked->label ? MPICRYPT_FILE_OK : mpicrypt_opening_label(o, opal_cryptfile_map_of(file->engine), asked->label);

    if (MPICRYPT_FILE_OK != status || !(o->sealed || asked->sealed)) {
        return status;
    }
    status = mpicrypt_opening_seal(o, file->engine, asked->sealed ? asked->seal_root : NULL, root);
    if (MPICRYPT_FILE_OK == status) {
        _Static_assert(sizeof(file->seal_root) == OPAL_CRYPTFILE_SEAL_TEXT_BYTES, "seal_root");
        opal_cryptfile_seal_text(root, file->seal_root);
        file->sealed = true;
    }
    return status;
}

static int open_memory(const mpicrypt_opening_t *o, const mpicrypt_asked_t *asked, mpicrypt_file_t *file)
{
    int rc = OPAL_CRYPT_OK;

    file->threads = asked->threads;
    if (file->threads > 1) {
        rc = opal_crypt_team_create(file->threads - 1, false, &file->team);
    }
    file->cache = OPAL_CRYPT_OK == rc ? mpicrypt_cache_new(asked->cache_bytes) : NULL;
    return NULL == file->cache ? open_refuse(o, MPICRYPT_FILE_ERR_MEMORY, "out of memory") : MPICRYPT_FILE_OK;
}

static int open_encrypted(mpicrypt_opening_t *o, const mpicrypt_asked_t *asked, mpicrypt_file_t *file)
{
    opal_cryptfile_keystore_t *keystore = NULL;
    int status = mpicrypt_opening_take(o, false);

    status = MPICRYPT_FILE_OK == status ? mpicrypt_opening_header(o) : status;
    status = MPICRYPT_FILE_OK == status ? open_keystore(o, asked->keystore, &keystore) : status;
    status = MPICRYPT_FILE_OK == status ? mpicrypt_opening_judge(o, keystore) : status;
    status = MPICRYPT_FILE_OK == status ? mpicrypt_opening_choose(o) : status;
    status = MPICRYPT_FILE_OK == status ? open_engine(o, file) : status;
    status = MPICRYPT_FILE_OK == status ? open_expected(o, asked, file) : status;
    status = MPICRYPT_FILE_OK == status ? open_memory(o, asked, file) : status;
    mpicrypt_opening_end(o);
    opal_cryptfile_keystore_close(keystore);
    return status;
}

int mpicrypt_open(int fd, const char *path, const char *name, const mpicrypt_asked_t *asked, mpicrypt_file_t **file,
                  mpicrypt_file_error_t *error)
{
    mpicrypt_file_t *made = calloc(1, sizeof(*made));

    if (NULL == made || NULL == (made->name = strdup(name))) {
        free(made);
        (void) close(fd);
        return mpicrypt_fail(error, MPICRYPT_FILE_ERR_MEMORY, ENOMEM, MPICRYPT_FILE_NOWHERE, name, "out of memory");
    }
    mpicrypt_opening_t o = {.name = made->name, .path = path, .posix = &made->posix, .error = error};
    made->born = mpicrypt_start_generation();
    ompi_common_cryptmpio_posix_init(&made->posix, fd, false);
    ompi_common_cryptmpio_posix_find_system(&made->posix);
    int status = mpicrypt_opening_begin(&o);
    made->plain = MPICRYPT_FILE_ERR_PLAIN == status && asked->plain;
    status = made->plain ? MPICRYPT_FILE_OK : MPICRYPT_FILE_OK == status ? open_encrypted(&o, asked, made) : status;
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

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The steps of opening an encrypted file: see opening.h.
 */
#include "lib/mpicrypt_file/opening.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "opal/mca/common/crypt/base/secmem.h"

static int opening_refuse(const mpicrypt_opening_t *o, int status, const char *reason)
{
    return mpicrypt_fail(o->error, status, 0, MPICRYPT_FILE_NOWHERE, o->name, "%s", reason);
}

static int opening_refuse_errno(const mpicrypt_opening_t *o) { return mpicrypt_fail_errno(o->error, errno, o->name); }

/* ---- is it one of ours? ---- */

/* `old`: it begins as a second file of a development version. */
static int opening_plain(const mpicrypt_opening_t *o, bool old)
{
    const char *found = old ? "its first bytes" : NULL;
    uint8_t *bytes = NULL;
    size_t count = 0;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_attribute_read(o->posix, &bytes, &count)) {
        return opening_refuse_errno(o);
    }
    if (NULL == found && opal_cryptfile_header_old(bytes, count)) {
        found = "its attribute " OMPI_CRYPTMPIO_ATTRIBUTE;
    }
    free(bytes);
    if (NULL != found) {
        return mpicrypt_fail(o->error, MPICRYPT_FILE_ERR_FORMAT, 0, MPICRYPT_FILE_NOWHERE, o->name, "it was encrypted by a development "
                             "version (found: %s), and this version cannot read it: decrypt it with that version", found);
    }
    return 0 != count ? opening_refuse(o, MPICRYPT_FILE_ERR_FORGED, "it has the attribute of an encrypted file, but does not begin like one")
                      : opening_refuse(o, MPICRYPT_FILE_ERR_PLAIN, "it is not encrypted");
}

int mpicrypt_opening_begin(mpicrypt_opening_t *o)
{
    opal_cryptfile_state_t state;
    struct stat status;
    bool magic = false;

    if (0 != fstat(o->posix->data_fd, &status)) {
        return opening_refuse_errno(o);
    }
    if (!S_ISREG(status.st_mode)) {
        return mpicrypt_fail(o->error, MPICRYPT_FILE_ERR_IO, S_ISDIR(status.st_mode) ? EISDIR : ESPIPE, MPICRYPT_FILE_NOWHERE,
                             o->name, "it is not a regular file");
    }
    int rc = opal_cryptfile_beginning_read(&o->posix->super, &magic, &o->header, &state);
    return magic ? MPICRYPT_FILE_OK : OPAL_CRYPT_ERR_STORAGE == rc ? opening_refuse_errno(o)
           : opening_plain(o, OPAL_CRYPT_ERR_CONFIG == rc);
}

/* ---- its users ---- */

static int opening_refuse_use(mpicrypt_opening_t *o, ompi_common_cryptmpio_use_t use, bool alone)
{
    o->busy = true;
    return mpicrypt_fail(o->error, MPICRYPT_FILE_ERR_IO, OMPI_CRYPTMPIO_USE_BUSY == use ? EBUSY : ESTALE, MPICRYPT_FILE_NOWHERE,
                         o->name, "%s", alone && OMPI_CRYPTMPIO_USE_BUSY == use
                         ? "a job or another mpicrypt has it open, and nobody may have it open for this"
                         : ompi_common_cryptmpio_posix_why_not(use));
}

static int opening_refuse_lock(const mpicrypt_opening_t *o, const char *unknown)
{
    return mpicrypt_fail(o->error, MPICRYPT_FILE_ERR_IO, errno, MPICRYPT_FILE_NOWHERE, o->name, "%s: %s", unknown, strerror(errno));
}

int mpicrypt_opening_take(mpicrypt_opening_t *o, bool alone)
{
    ompi_common_cryptmpio_use_t use = OMPI_CRYPTMPIO_USE_OURS;
    bool got = true, stays = true;
    int rc;

    if (NULL != o->path) {
        rc = ompi_common_cryptmpio_posix_use(o->posix, o->path, alone, &use);
    } else {
        rc = ompi_common_cryptmpio_posix_lock_now(o->posix, OMPI_CRYPTMPIO_LOCK_USE, alone, &got);
        use = OPAL_CRYPT_OK == rc && !got ? OMPI_CRYPTMPIO_USE_BUSY : use;
    }
    if (OMPI_CRYPTMPIO_USE_OURS != use) {
        return opening_refuse_use(o, use, alone);
    }
    if (!alone) {
        return MPICRYPT_FILE_OK;
    }
    if (OPAL_CRYPT_OK != rc) {
        return opening_refuse_lock(o, "whether somebody has it open cannot be told without locks");
    }
    /* As a job tries it (cryptmpio_probe.c): the lock must not end with another descriptor of the file. */
    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_stays(o->posix, OMPI_CRYPTMPIO_LOCK_USE, &stays)) {
        return opening_refuse_lock(o, "whether its lock holds cannot be told");
    }
    return stays ? MPICRYPT_FILE_OK
           : opening_refuse(o, MPICRYPT_FILE_ERR_IO, "locks of its file system end when any descriptor of the file is closed, so it cannot be "
                    "changed safely");
}

/* ---- header and map ---- */

int mpicrypt_opening_header(mpicrypt_opening_t *o)
{
    opal_cryptfile_state_t state = OPAL_CRYPTFILE_STATE_OPEN;
    bool magic;
    int rc = opal_cryptfile_beginning_read(&o->posix->super, &magic, &o->header, &state);

    o->sealed = OPAL_CRYPTFILE_STATE_SEALED == state;
    return OPAL_CRYPT_ERR_STORAGE == rc ? opening_refuse_errno(o)
           : OPAL_CRYPT_ERR_MEMORY == rc ? opening_refuse(o, MPICRYPT_FILE_ERR_MEMORY, "out of memory")
           : OPAL_CRYPT_ERR_CONFIG == rc ? opening_refuse(o, MPICRYPT_FILE_ERR_FORMAT, "another version of ompi-crypt made it")
           : OPAL_CRYPT_OK != rc || !magic ? opening_refuse(o, MPICRYPT_FILE_ERR_FORGED, "its header is damaged")
           : OPAL_CRYPTFILE_STATE_MAKING == state
               ? opening_refuse(o, MPICRYPT_FILE_ERR_UNFINISHED, "it is being made, or its maker was killed") : MPICRYPT_FILE_OK;
}

static int opening_copy(mpicrypt_opening_t *o, opal_cryptfile_copy_t copy, opal_cryptfile_keystore_t *keystore)
{
    const bool attribute = OPAL_CRYPTFILE_COPY_ATTRIBUTE == copy;
    opal_cryptfile_copy_state_t *state = &o->copies[copy];
    uint8_t *bytes = NULL;
    size_t count = 0;
    int rc = attribute ? ompi_common_cryptmpio_posix_attribute_read(o->posix, &bytes, &count)
                       : opal_cryptfile_place_read(&o->posix->super, &o->header, (unsigned) copy - OPAL_CRYPTFILE_COPY_PLACE_0,
                                                   &bytes, &count);

    if (OPAL_CRYPT_OK == rc) {
        rc = attribute ? opal_cryptfile_copy_judge(bytes, count, keystore, NULL, state)
                       : opal_cryptfile_place_judge(bytes, count, &o->header, keystore, &o->copies[copy - 1], state);
        free(bytes);
    }
    return rc;
}

int mpicrypt_opening_judge(mpicrypt_opening_t *o, opal_cryptfile_keystore_t *keystore)
{
    const opal_crypt_why_t nothing = {.topic = NULL};
    int rc = OPAL_CRYPT_OK;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES && OPAL_CRYPT_OK == rc; ++i) {
        rc = opening_copy(o, (opal_cryptfile_copy_t) i, keystore);
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_FILE_OK : mpicrypt_fail_refused(o->error, MPICRYPT_FILE_ERR_FORGED, rc, o->name, &nothing);
}

int mpicrypt_opening_choose(mpicrypt_opening_t *o)
{
    opal_crypt_why_t why = {.topic = NULL};
    int rc = opal_cryptfile_header_choose(o->copies, &o->header, &o->best, &o->differ, &why);

    return OPAL_CRYPT_OK == rc ? MPICRYPT_FILE_OK
           : mpicrypt_fail_refused(o->error, OPAL_CRYPT_ERR_ACCESS == rc ? MPICRYPT_FILE_ERR_KEY
                                   : OPAL_CRYPT_ERR_CONFIG == rc ? MPICRYPT_FILE_ERR_FORMAT : MPICRYPT_FILE_ERR_FORGED,
                                   rc, o->name, &why);
}

/* ---- what the caller expects ---- */

int mpicrypt_opening_label(const mpicrypt_opening_t *o, const opal_cryptfile_map_t *map, const char *label)
{
    for (uint32_t i = 0; i < map->region_count; ++i) {
        if (map->regions[i].encrypted && 0 != strcmp(label, map->regions[i].label)) {
            return mpicrypt_fail(o->error, MPICRYPT_FILE_ERR_UNEXPECTED, 0, MPICRYPT_FILE_NOWHERE, o->name,
                                 "it is encrypted under label %s, and %s is expected", map->regions[i].label, label);
        }
    }
    return MPICRYPT_FILE_OK;
}

int mpicrypt_opening_seal(const mpicrypt_opening_t *o, opal_cryptfile_t *engine, const uint8_t *wanted,
                          uint8_t root[OPAL_CRYPT_HASH_BYTES])
{
    opal_crypt_why_t why = {.topic = NULL};

    if (!o->sealed) {
        return opening_refuse(o, MPICRYPT_FILE_ERR_UNEXPECTED, "it is not sealed");
    }
    int rc = opal_cryptfile_seal_demand(engine, NULL, &why);
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_fail_refused(o->error, MPICRYPT_FILE_ERR_FORGED, rc, o->name, &why);
    }
    (void) opal_cryptfile_sealed_hash(engine, root);
    return NULL == wanted || 0 == opal_crypt_differ(root, wanted, OPAL_CRYPT_HASH_BYTES) ? MPICRYPT_FILE_OK
           : opening_refuse(o, MPICRYPT_FILE_ERR_UNEXPECTED, "its seal has another root than is expected: it is another file, or another "
                    "version of it");
}

void mpicrypt_opening_end(mpicrypt_opening_t *o)
{
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        opal_cryptfile_copy_free(&o->copies[i]);
    }
}

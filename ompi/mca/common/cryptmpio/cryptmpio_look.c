/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rank 0 inspects a file: plain, encrypted, or to be created.  Others may just be
 * creating the same one, which then has one part, or a fraction of one:
 *
 *     no sidecar, and one is wanted    create it, with nothing in it, and look again
 *     it seems whole                   take it
 *     it does not                      wait for the maker's lock, and look once more
 *         whole by now                     take it
 *         vacant, and so is the file       ours, and the lock stays: make it, or delete it
 *         of a file that is gone           set aside, unless it is in use, and look again
 *         else                             refused: nobody is making this
 *
 * Nothing here is collective.  All processes that go on with the holder of the lock
 * are in this call: none of them can wait for the lock elsewhere.
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

typedef ompi_common_cryptmpio_look_t look_t;

/* Why a sidecar is not usable; no topic: it is. */
typedef struct verdict {
    int error;
    const char *topic, *detail;
} verdict_t;

static void refuse(ompi_common_cryptmpio_file_t *state, look_t *look, int error, const char *topic, const char *detail)
{
    opal_crypt_why_t why;

    (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, topic, "%s", detail);
    ompi_common_cryptmpio_show(state, &why);
    look->kind = OMPI_CRYPTMPIO_LOOK_REFUSED;
    look->error = error;
}

/* ---- the parts ---- */

/* Where to store a copy of the map; frees the one of an earlier try. */
static uint8_t **copy_at(look_t *look, int copy)
{
    free(look->copies[copy]);
    look->copies[copy] = NULL;
    look->sizes[copy] = 0;
    return &look->copies[copy];
}

/* A process that may write the file but not read it cannot read its map either, but can
 * list its attributes: without one of that name, the file is plain. */
static bool lists_none(const ompi_common_cryptmpio_file_t *state)
{
    char names[XATTR_LIST_MAX];

    return !ompi_common_cryptmpio_lists(names, flistxattr(state->posix.data_fd, names, sizeof(names)));
}

static int look_at_attribute(const ompi_common_cryptmpio_file_t *state, look_t *look)
{
    size_t count;
    int rc = ompi_common_cryptmpio_posix_attribute_read(&state->posix, copy_at(look, OPAL_CRYPTFILE_COPY_ATTRIBUTE), &count);

    look->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] = count;
    if (OPAL_CRYPT_ERR_STORAGE == rc && EACCES == errno && '\0' == look->label[0] && lists_none(state)) {
        errno = ENODATA;
        return OPAL_CRYPT_OK;
    }
    return rc;
}

static bool is_empty(ompi_common_cryptmpio_file_t *state)
{
    uint64_t bytes;

    return OPAL_CRYPT_OK == state->posix.super.size(&state->posix.super, OPAL_CRYPTFILE_DATA, &bytes) && 0 == bytes;
}

/* There is a sidecar, but the file is empty and has no attribute, though it could
 * have one: it was created anew beside the sidecar of an earlier file. */
static bool is_stale(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    if (look->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] > 0) {
        return false;
    }
    errno = 0;                          /* its maker may have written it since the sidecar was opened */
    return OPAL_CRYPT_OK == look_at_attribute(state, look) && 0 == look->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] &&
           ENODATA == errno && is_empty(state);
}

static verdict_t read_sidecar(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    opal_cryptfile_sidecar_header_t header;
    size_t count;

    if (is_stale(state, look)) {
        return (verdict_t){MPI_ERR_FILE_EXISTS, "file-sidecar-stale", state->sidecar};
    }
    int rc = opal_cryptfile_sidecar_read(&state->posix.super, &header);
    if (OPAL_CRYPT_OK != rc) {
        return (verdict_t){MPI_ERR_IO, "file-sidecar-damaged", opal_crypt_strerror(rc)};
    }
    memcpy(look->uuid, header.uuid, sizeof(look->uuid));
    for (int slot = 0; slot < 2; ++slot) {
        int copy = OPAL_CRYPTFILE_COPY_SIDECAR_0 + slot;
        rc = opal_cryptfile_sidecar_map_read(&state->posix.super, &header, slot, copy_at(look, copy), &count);
        look->sizes[copy] = count;
        if (OPAL_CRYPT_OK != rc) {
            return (verdict_t){MPI_ERR_IO, "file-failed", strerror(errno)};
        }
    }
    return (verdict_t){MPI_SUCCESS, NULL, NULL};
}

static bool has_map(const look_t *look)
{
    bool any = false;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        any = any || look->sizes[i] > 0;
    }
    return any;
}

/* ---- the file; true: look again ---- */

static void judge(ompi_common_cryptmpio_file_t *state, look_t *look, const verdict_t *verdict)
{
    if (NULL != verdict->topic) {
        refuse(state, look, verdict->error, verdict->topic, verdict->detail);
    } else {
        look->kind = OMPI_CRYPTMPIO_LOOK_ENCRYPTED;
    }
}

/* The file that the sidecar belonged to is gone from here, and must not block a new one; it may
 * exist under another name, so nothing is deleted.  An attacker who can cause this could have
 * deleted the sidecar as well.  But on a file system that lacks attributes without saying so, the
 * sidecar may be in use. */
static bool set_aside(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    opal_crypt_why_t why;
    bool got;

    if (OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_lock_now(&state->posix, OMPI_CRYPTMPIO_LOCK_USE, true, &got) && !got) {
        ompi_common_cryptmpio_posix_close(&state->posix);
        refuse(state, look, MPI_ERR_FILE_IN_USE, "file-busy", "its sidecar seems to belong to another file, but is in use");
        return false;
    }
    int rc = ompi_common_cryptmpio_posix_set_aside(&state->posix, state->sidecar);

    if (OPAL_CRYPT_OK != rc) {
        look->kind = OMPI_CRYPTMPIO_LOOK_REFUSED;
        look->error = ompi_common_cryptmpio_show_sidecar(state, "file-sidecar", errno);
        return false;
    }
    (void) opal_crypt_refuse(&why, OPAL_CRYPT_OK, "file-sidecar-left", "%s", state->sidecar);
    ompi_common_cryptmpio_show(state, &why);
    return true;
}

/* Under the maker's lock.  A vacant sidecar counts as damaged if the file or its
 * attribute shows that there was a map. */
static bool settle(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    int rc = look_at_attribute(state, look);
    bool ours = OPAL_CRYPT_OK == rc && state->posix.may_write && 0 == look->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] &&
                is_empty(state) && ompi_common_cryptmpio_posix_is_vacant(&state->posix);

    if (ours && '\0' != look->label[0]) {
        ompi_common_cryptmpio_posix_admit(&state->posix);
        look->kind = OMPI_CRYPTMPIO_LOOK_NEW;
        return false;
    }
    if (ours && OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_abandon(&state->posix, state->sidecar)) {
        return true;
    }
    if (!ours && state->posix.may_write && is_stale(state, look)) {
        return set_aside(state, look);
    }
    verdict_t verdict = ours ? (verdict_t){MPI_ERR_FILE_EXISTS, "file-sidecar-stale", state->sidecar}
                             : read_sidecar(state, look);
    judge(state, look, &verdict);
    ompi_common_cryptmpio_posix_maker_unlock(&state->posix);
    return false;
}

static bool look_at_sidecar(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    verdict_t verdict = read_sidecar(state, look);
    bool there;

    if (NULL == verdict.topic && has_map(look)) {
        judge(state, look, &verdict);
        return false;
    }
    if (OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_maker_lock(&state->posix, state->sidecar, &there)) {
        return !there || settle(state, look);
    }
    if (ompi_common_cryptmpio_posix_is_vacant(&state->posix) && is_empty(state)) {
        verdict = (verdict_t){MPI_ERR_IO, "file-locks", strerror(errno)};
    }
    judge(state, look, &verdict);
    return false;
}

/* Nothing is in it, or it was begun by a maker that was killed, or that is still making it: then we wait for its lock. */
static bool begin_one(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    const bool makes = '\0' != look->label[0] && state->posix.may_write;
    int error;
    bool again = makes ? ompi_common_cryptmpio_begin_one(state, look, &error) : ompi_common_cryptmpio_clear_one(state, &error);

    if (MPI_SUCCESS != error) {
        look->kind = OMPI_CRYPTMPIO_LOOK_REFUSED;
        look->error = error;
    }
    return again;
}

/* `was_empty`: before the search for a map. */
static bool look_at_plain(ompi_common_cryptmpio_file_t *state, look_t *look, bool was_empty)
{
    bool wanted = '\0' != look->label[0], meant = look->meant_plain && !state->posix.may_write;
    uint64_t bytes = 0;

    if (OPAL_CRYPT_OK != state->posix.super.size(&state->posix.super, OPAL_CRYPTFILE_DATA, &bytes)) {
        refuse(state, look, MPI_ERR_IO, "file-failed", strerror(errno));
        return false;
    }
    look->bare = 0 == bytes && !meant && (look->require || (!state->posix.may_write && (wanted || look->seal)));
    if (bytes > 0 && was_empty) {
        return true;                    /* somebody just created it, and may have written a map before the data */
    } else if ('\0' != look->root[0]) {
        refuse(state, look, MPI_ERR_IO, "file-seal", "there is none: the file is not encrypted");
    } else if (bytes > 0 && wanted && state->posix.may_write && ompi_common_cryptmpio_is_unmade(state)) {
        return begin_one(state, look);  /* its maker lost power */
    } else if (bytes > 0 && !meant && (wanted || look->require)) {
        refuse(state, look, MPI_ERR_ACCESS, "file-plain", wanted ? look->label : "fs_crypt_require");
    } else if (bytes > 0 && !meant && look->seal) {       /* it may have replaced a sealed file */
        refuse(state, look, MPI_ERR_IO, "file-seal", "there is none: the file is not encrypted");
    } else if (wanted && state->posix.may_write) {
        return begin_one(state, look);
    }
    return false;
}

/* Is the name too long for any sidecar to exist?  (If only the path is too long, there may be one.) */
static bool is_too_long(const ompi_common_cryptmpio_file_t *state)
{
    return ENAMETOOLONG == errno && strlen(state->sidecar) < PATH_MAX;
}

/* A pipe, a terminal, a device. */
static bool is_no_file(const ompi_common_cryptmpio_file_t *state)
{
    struct stat status;

    return 0 == fstat(state->posix.data_fd, &status) && !S_ISREG(status.st_mode);
}

/* The attribute says that it was one file, but it does not begin like one: another program emptied or overwrote it, or
 * its maker lost power.  A writer with a label makes it anew, if it is empty. */
static bool look_at_remains(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    bool empty = is_empty(state), wanted = '\0' != look->label[0];

    if (ompi_common_cryptmpio_is_unmade(state) && (!empty || (wanted && state->posix.may_write))) {
        return begin_one(state, look);
    }
    if ('\0' != look->root[0]) {
        refuse(state, look, MPI_ERR_IO, "file-seal", "there is none: the file is not encrypted");
    } else if (empty && !state->posix.may_write && !look->require) {
        look->bare = true;              /* it may be made anew at any time */
    } else if (empty || !look->meant_plain || state->posix.may_write) {
        refuse(state, look, MPI_ERR_IO, "file-overwritten", empty ? "it is empty" : "it begins with other bytes");
    }
    return false;
}

/* If it may only be written to, the attribute's name would have been listed: then it is plain, unless a label is asked for. */
static int look_at_beginning(ompi_common_cryptmpio_file_t *state, const look_t *look, bool *one, bool *begun)
{
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t said;
    int rc = opal_cryptfile_beginning_read(&state->posix.super, one, &header, &said);

    *begun = OPAL_CRYPT_OK == rc && *one && OPAL_CRYPTFILE_STATE_MAKING == said;
    if (OPAL_CRYPT_ERR_STORAGE == rc && EBADF == errno) {
        errno = EACCES;
        return '\0' == look->label[0] ? OPAL_CRYPT_OK : rc;
    }
    return *one ? OPAL_CRYPT_OK : rc;
}

/* What it has is read under the lock that keeps others from making it anew, and from changing its keys. */
static bool look_at_one(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    verdict_t verdict = {MPI_SUCCESS, NULL, NULL};
    bool again = false;

    ompi_common_cryptmpio_posix_one(&state->posix);
    look->error = ompi_common_cryptmpio_take(state, &again);
    if (MPI_SUCCESS != look->error) {
        look->kind = OMPI_CRYPTMPIO_LOOK_REFUSED;
    } else if (OPAL_CRYPT_OK != look_at_attribute(state, look)) {
        refuse(state, look, MPI_ERR_IO, "file-failed", strerror(errno));
    } else {
        verdict.error = ompi_common_cryptmpio_read_one(state, look, &again, &verdict.topic, &verdict.detail);
        if (!again) {
            judge(state, look, &verdict);
        }
    }
    return again;
}

static bool look_once(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    char found[PATH_MAX];
    bool was_empty, one = false, begun = false;

    ompi_common_cryptmpio_posix_close(&state->posix);
    look->one = false;
    was_empty = is_empty(state);
    if (OPAL_CRYPT_OK != look_at_attribute(state, look) || OPAL_CRYPT_OK != look_at_beginning(state, look, &one, &begun)) {
        refuse(state, look, MPI_ERR_IO, "file-failed", strerror(errno));
    } else if (one) {
        return begun ? begin_one(state, look) : look_at_one(state, look);
    } else if (ompi_common_cryptmpio_was_one(look)) {
        return look_at_remains(state, look);
    } else if (look->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] > 0
               && OMPI_CRYPTMPIO_FIND_ELSEWHERE == ompi_common_cryptmpio_posix_find(&state->posix, state->sidecar, found)) {
        refuse(state, look, MPI_ERR_IO, "file-sidecar-elsewhere", found);
    } else if (OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_open(&state->posix, state->sidecar, 0)) {
        return look_at_sidecar(state, look);
    } else if (ENOENT != errno && !is_too_long(state)) {
        refuse(state, look, ompi_common_cryptmpio_error(OPAL_CRYPT_ERR_STORAGE, errno), "file-sidecar", strerror(errno));
    } else if (look->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] > 0) {
        refuse(state, look, MPI_ERR_IO, "file-sidecar-missing", state->sidecar);
    } else {
        return look_at_plain(state, look, was_empty);
    }
    return false;
}

/* The map that was read is valid if the parts are still in place: a tool that replaces them leaves
 * the old map as it was.  One file that has a map is taken already. */
static bool take(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    bool again = false;
    int error = OMPI_CRYPTMPIO_LOOK_NEW == look->kind || (OMPI_CRYPTMPIO_LOOK_ENCRYPTED == look->kind && !look->one)
                    ? ompi_common_cryptmpio_take(state, &again) : MPI_SUCCESS;

    if (MPI_SUCCESS != error) {
        look->kind = OMPI_CRYPTMPIO_LOOK_REFUSED;
        look->error = error;
    } else if (again) {
        look->kind = OMPI_CRYPTMPIO_LOOK_PLAIN;
    }
    return again;
}

/* One file. */
static bool holds_none(ompi_common_cryptmpio_file_t *state, const look_t *look)
{
    uint64_t end;

    return OPAL_CRYPT_OK == state->posix.super.size(&state->posix.super, OPAL_CRYPTFILE_DATA, &end) &&
           0 == opal_cryptfile_geometry_size(&look->beginning.geometry, end);
}

void ompi_common_cryptmpio_look(ompi_common_cryptmpio_file_t *state, look_t *look)
{
    const bool reads = !state->posix.may_write, meant = look->meant_plain && reads;
    const bool wanted = '\0' != look->root[0] || (!meant && ('\0' != look->label[0] || look->require || (look->seal && reads)));

    if (is_no_file(state)) {
        look->kind = OMPI_CRYPTMPIO_LOOK_PLAIN;
        if (wanted) {
            refuse(state, look, MPI_ERR_ACCESS, "file-failed", "it is no regular file, and cannot be encrypted");
        }
    } else if (NULL == state->sidecar) {
        refuse(state, look, MPI_ERR_IO, "file-failed", strerror(errno));
    } else if ('\0' != look->root[0] && state->posix.may_write) {
        /* Pages are checked as they are read; with the file open for writing, no seal is left to check them against. */
        refuse(state, look, MPI_ERR_AMODE, "file-seal", "crypt_seal_root is for opening with MPI_MODE_RDONLY");
    } else {
        while (look_once(state, look) || take(state, look)) {
        }
        look->empty = OMPI_CRYPTMPIO_LOOK_ENCRYPTED == look->kind && look->one ? holds_none(state, look) : is_empty(state);
    }
}

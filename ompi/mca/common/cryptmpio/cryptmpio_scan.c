/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rank 0 inspects a file: plain, encrypted, or to be created.  The first row that fits counts, and
 * docs/design/012-one-file.rst, "Plain or encrypted", says why:
 *
 *     it begins with the magic                     being made: begin.  Else encrypted, if header and maps are whole
 *     it, or its attribute, begins as an old map   refused
 *     it has the attribute of an encrypted file    not made: begin.  Else another program overwrote it: refused
 *     it has bytes                                 512 zeros: begin.  Else plain
 *     it is empty                                  a writer with a label: begin.  Else plain
 *
 * begin (cryptmpio_begin.c) waits for a maker; then the file is ours to make, or cleared, or to be scanned again.
 *
 * Nothing here is collective.  All processes that go on with the holder of the maker's lock are in this call: none of
 * them can wait for the lock elsewhere.
 */
#include "cryptmpio_internal.h"

#include "ompi/mca/common/cryptmpi/cryptmpi_classes.h"

#include <errno.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

typedef ompi_common_cryptmpio_file_t state_t;
typedef ompi_common_cryptmpio_scan_t file_scan_t;

static void refuse(state_t *state, file_scan_t *scan, int error, const char *topic, const char *detail)
{
    opal_crypt_why_t why;

    (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, topic, "%s", detail);
    ompi_common_cryptmpio_show(state, &why);
    scan->kind = OMPI_CRYPTMPIO_SCAN_REFUSED;
    scan->error = error;
}

static bool is_wanted(const file_scan_t *scan) { return '\0' != scan->label[0]; }

/* ---- what there is ---- */

/* Where to store a copy of the map; frees the one of an earlier try. */
static uint8_t **copy_at(file_scan_t *scan, int copy)
{
    free(scan->copies[copy]);
    scan->copies[copy] = NULL;
    scan->sizes[copy] = 0;
    return &scan->copies[copy];
}

/* A process that may write the file but not read it cannot read its map either, but can
 * list its attributes: without one of that name, the file is plain. */
static bool lists_none(const state_t *state)
{
    char names[XATTR_LIST_MAX];

    return !ompi_common_cryptmpio_lists(names, flistxattr(state->posix.data_fd, names, sizeof(names)));
}

static int read_attribute(const state_t *state, file_scan_t *scan)
{
    size_t count;
    int rc = ompi_common_cryptmpio_posix_attribute_read(&state->posix, copy_at(scan, OPAL_CRYPTFILE_COPY_ATTRIBUTE), &count);

    scan->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] = count;
    if (OPAL_CRYPT_ERR_STORAGE == rc && EACCES == errno && !is_wanted(scan) && lists_none(state)) {
        errno = ENODATA;
        return OPAL_CRYPT_OK;
    }
    return rc;
}

static bool has_attribute(const file_scan_t *scan) { return scan->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] > 0; }

/* Does it begin with the magic, and has its maker just begun?  If it may only be written to, the attribute's name would
 * have been listed: then it is plain, unless a label is asked for. */
static int read_beginning(state_t *state, const file_scan_t *scan, bool *magic, bool *begun)
{
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t said;
    int rc = opal_cryptfile_beginning_read(&state->posix.super, magic, &header, &said);

    *begun = OPAL_CRYPT_OK == rc && *magic && OPAL_CRYPTFILE_STATE_MAKING == said;
    if (OPAL_CRYPT_ERR_STORAGE == rc && EBADF == errno) {
        errno = EACCES;
        return is_wanted(scan) ? rc : OPAL_CRYPT_OK;
    }
    return *magic ? OPAL_CRYPT_OK : rc;
}

/* Read the contents of the places, as far as they can be a map. */
static int read_copies(state_t *state, file_scan_t *scan)
{
    int rc = OPAL_CRYPT_OK;

    for (unsigned place = 0; place < 2 && OPAL_CRYPT_OK == rc; ++place) {
        int copy = OPAL_CRYPTFILE_COPY_PLACE_0 + (int) place;
        size_t count = 0;
        rc = opal_cryptfile_place_read(&state->posix.super, &scan->beginning, place, copy_at(scan, copy), &count);
        scan->sizes[copy] = NULL == scan->copies[copy] ? 0 : count;
    }
    return rc;
}

static bool is_empty(state_t *state)
{
    uint64_t bytes;

    return OPAL_CRYPT_OK == state->posix.super.size(&state->posix.super, &bytes) && 0 == bytes;
}

/* How much data has an encrypted file? */
static int find_bytes(state_t *state, file_scan_t *scan)
{
    uint64_t end;
    int rc = state->posix.super.size(&state->posix.super, &end);

    if (OPAL_CRYPT_OK == rc) {
        scan->bytes = opal_cryptfile_geometry_size(&scan->beginning.geometry, end);
        scan->empty = 0 == scan->bytes;
    }
    return rc;
}

/* No pipe, terminal, or device. */
static bool is_regular(const state_t *state)
{
    struct stat status;

    return 0 != fstat(state->posix.data_fd, &status) || S_ISREG(status.st_mode);
}

/* ---- the rows; true: scan again ---- */

static bool begin(state_t *state, file_scan_t *scan)
{
    int error;
    bool again = is_wanted(scan) && state->posix.may_write ? ompi_common_cryptmpio_begin(state, scan, &error)
                                                           : ompi_common_cryptmpio_clear(state, &error);

    if (MPI_SUCCESS != error) {
        scan->kind = OMPI_CRYPTMPIO_SCAN_REFUSED;
        scan->error = error;
    }
    return again;
}

/* All of it is read under the lock that keeps others from making the file anew, and from changing its keys. */
static bool scan_encrypted(state_t *state, file_scan_t *scan)
{
    opal_cryptfile_state_t said;
    bool magic = true;

    scan->error = ompi_common_cryptmpio_take(state);
    if (MPI_SUCCESS != scan->error) {
        scan->kind = OMPI_CRYPTMPIO_SCAN_REFUSED;
        return false;
    }
    ompi_common_cryptmpio_posix_find_system(&state->posix);         /* drops old pages */
    int rc = read_attribute(state, scan);
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_beginning_read(&state->posix.super, &magic, &scan->beginning, &said) : rc;
    if (OPAL_CRYPT_OK == rc && magic && OPAL_CRYPTFILE_STATE_MAKING == said) {
        return true;
    }
    scan->sealed = OPAL_CRYPT_OK == rc && OPAL_CRYPTFILE_STATE_SEALED == said;  /* while we have the file, nobody seals it */
    rc = OPAL_CRYPT_OK == rc && magic ? find_bytes(state, scan) : rc;
    rc = OPAL_CRYPT_OK == rc && magic ? read_copies(state, scan) : rc;
    if (OPAL_CRYPT_ERR_CONFIG == rc) {
        refuse(state, scan, MPI_ERR_IO, "file-failed", "another version of ompi-crypt made it");
    } else if (OPAL_CRYPT_ERR_AUTH == rc || !magic) {
        refuse(state, scan, ompi_common_cryptmpi_code(OMPI_CRYPTMPI_FORGED), "file-map-damaged", "its header is damaged");
    } else if (OPAL_CRYPT_OK != rc) {
        refuse(state, scan, ompi_common_cryptmpio_error(rc, errno), "file-failed",
               OPAL_CRYPT_ERR_STORAGE == rc ? strerror(errno) : opal_crypt_strerror(rc));
    } else {
        scan->kind = OMPI_CRYPTMPIO_SCAN_ENCRYPTED;
    }
    return false;
}

/* It was encrypted, but another program emptied or overwrote it, or its maker lost power.  A writer with a label makes it
 * anew, if it is empty. */
static bool scan_remains(state_t *state, file_scan_t *scan)
{
    bool empty = is_empty(state);

    if (ompi_common_cryptmpio_is_unmade(state) && (!empty || (is_wanted(scan) && state->posix.may_write))) {
        return begin(state, scan);
    }
    if ('\0' != scan->root[0]) {
        refuse(state, scan, MPI_ERR_IO, "file-seal", "there is none: the file is not encrypted");
    } else if (empty && !state->posix.may_write && !scan->require) {
        scan->bare = true;              /* it may be made anew at any time */
    } else if (empty || !scan->meant_plain || state->posix.may_write) {
        refuse(state, scan, MPI_ERR_IO, "file-overwritten", empty ? "it is empty" : "it begins with other bytes");
    }
    return false;
}

/* `was_empty`: before the search for a map. */
static bool scan_plain(state_t *state, file_scan_t *scan, bool was_empty)
{
    const bool writes = state->posix.may_write, wanted = is_wanted(scan), meant = scan->meant_plain && !writes;
    uint64_t bytes = 0;

    if (OPAL_CRYPT_OK != state->posix.super.size(&state->posix.super, &bytes)) {
        refuse(state, scan, MPI_ERR_IO, "file-failed", strerror(errno));
        return false;
    }
    scan->bare = 0 == bytes && !meant && (scan->require || (!writes && (wanted || scan->seal)));
    if (bytes > 0 && was_empty) {
        return true;                    /* somebody has just created it */
    } else if ('\0' != scan->root[0]) {
        refuse(state, scan, MPI_ERR_IO, "file-seal", "there is none: the file is not encrypted");
    } else if (wanted && writes && (0 == bytes || ompi_common_cryptmpio_is_unmade(state))) {
        return begin(state, scan);
    } else if (bytes > 0 && !meant && (wanted || scan->require)) {
        refuse(state, scan, MPI_ERR_ACCESS, "file-plain", wanted ? scan->label : "fs_crypt_require");
    } else if (bytes > 0 && !meant && scan->seal) {       /* it may have replaced a sealed file */
        refuse(state, scan, MPI_ERR_IO, "file-seal", "there is none: the file is not encrypted");
    }
    return false;
}

/* ---- all of it ---- */

/* `wanted`: a plain file may be refused, or become an encrypted one.  If it is not, two looks find a plain file. */
static bool scan_once(state_t *state, file_scan_t *scan, bool wanted)
{
    bool was_empty = wanted && is_empty(state), magic = false, begun = false;
    int rc = read_attribute(state, scan);

    rc = OPAL_CRYPT_OK == rc ? read_beginning(state, scan, &magic, &begun) : rc;
    if (OPAL_CRYPT_OK == rc && !magic && !has_attribute(scan)) {
        return wanted && scan_plain(state, scan, was_empty);
    }
    const int error = errno;
    if (!is_regular(state)) {
        return false;
    }
    const bool began = OPAL_CRYPT_ERR_CONFIG == rc;
    if (began || (OPAL_CRYPT_OK == rc && !magic
                  && opal_cryptfile_header_old(scan->copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE], scan->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE]))) {
        refuse(state, scan, MPI_ERR_IO, "file-old", began ? "its first bytes" : "its attribute " OMPI_CRYPTMPIO_ATTRIBUTE);
        return false;
    }
    if (OPAL_CRYPT_OK != rc) {
        refuse(state, scan, MPI_ERR_IO, "file-failed", strerror(error));
        return false;
    }
    return !magic ? scan_remains(state, scan) : begun ? begin(state, scan) : scan_encrypted(state, scan);
}

void ompi_common_cryptmpio_scan(ompi_common_cryptmpio_file_t *state, file_scan_t *scan)
{
    const bool reads = !state->posix.may_write, meant = scan->meant_plain && reads;
    const bool wanted = '\0' != scan->root[0] || is_wanted(scan) || scan->require || scan->seal;

    if (wanted && !is_regular(state)) {
        if ('\0' != scan->root[0] || (!meant && (is_wanted(scan) || scan->require || reads))) {
            refuse(state, scan, MPI_ERR_ACCESS, "file-failed", "it is no regular file, and cannot be encrypted");
        }
    } else if (NULL == state->path) {
        refuse(state, scan, MPI_ERR_IO, "file-failed", strerror(errno));
    } else if ('\0' != scan->root[0] && state->posix.may_write) {
        /* Pages are checked as they are read; with the file open for writing, no seal is left to check them against. */
        refuse(state, scan, MPI_ERR_AMODE, "file-seal", "crypt_seal_root is for opening with MPI_MODE_RDONLY");
    } else {
        scan->empty = true;             /* unless it is encrypted */
        while (scan_once(state, scan, wanted)) {
            ompi_common_cryptmpio_posix_release(&state->posix);
        }
    }
}

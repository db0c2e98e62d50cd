/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the job asked for, and what it may do in a file that has something else.
 *
 * A file comes with a map of its own, and an attacker with the storage can swap files.
 * So a map counts only as far as it fits what the job asked for, by a label at opening
 * (parameter or info key) or by MPIX_File_set_encryption_map:
 *
 *     asked for by the program, region by region     read and write
 *     a label at opening, and the region has it      read and write; an empty file must have
 *                                                    exactly the map that the label makes
 *     a label at opening, and another is there       read: its writer had a key of ours
 *     a label at opening, and the region is plain    nothing
 *     no label at opening                            read and write: the file's map says all
 *
 * Beyond that, no plaintext is written under fs_crypt_require, and no plain byte is
 * read or written after a request for encryption failed (MPIX_File_set_encryption_map or an
 * info key): a program that ignores the error would store its secrets in the clear.
 */
#include "cryptmpio_internal.h"
#include "cryptmpio_shut.h"

#include "ompi/mca/common/cryptmpi/cryptmpi.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- info keys ---- */

static const char *const known_keys[] = {OMPI_CRYPTMPIO_INFO_KEYS};

static bool is_known(const char *key)
{
    for (size_t i = 0; i < sizeof(known_keys) / sizeof(known_keys[0]); ++i) {
        if (0 == strcmp(known_keys[i], key)) {
            return true;
        }
    }
    return false;
}

static int show_key(const ompi_common_cryptmpio_file_t *state, int error, const char *key, const char *value)
{
    opal_crypt_why_t why;

    (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG,
                             MPI_ERR_INFO_KEY == error ? "file-info-key" : "file-info-value", "%.60s%s%.60s", key,
                             '\0' == *value ? "" : " = ", value);
    ompi_common_cryptmpio_show(state, &why);
    return error;
}

int ompi_common_cryptmpio_info_check(const ompi_common_cryptmpio_file_t *state, opal_info_t *info)
{
    char key[MPI_MAX_INFO_KEY + 1], value[64];
    ompi_common_cryptmpio_ask_t ask;
    opal_crypt_why_t why;
    uint32_t bytes;

    for (int i = 0; ompi_common_cryptmpi_info_key(info, i, key, sizeof(key)); ++i) {
        if (0 == strncmp(key, OMPI_CRYPTMPIO_INFO_PREFIX, strlen(OMPI_CRYPTMPIO_INFO_PREFIX)) && !is_known(key)) {
            return show_key(state, MPI_ERR_INFO_KEY, key, "");
        }
    }
    if (ompi_common_cryptmpi_info_get(info, "crypt_algorithm", value, sizeof(value))
        && OPAL_CRYPT_OK != ompi_common_cryptmpio_ask_algorithm(&ask, value, &why)) {
        ompi_common_cryptmpio_show(state, &why);
        return MPI_ERR_INFO_VALUE;
    }
    if (ompi_common_cryptmpi_info_get(info, "crypt_block_size", value, sizeof(value))
        && !ompi_common_cryptmpio_block_parse(value, &bytes)) {
        return show_key(state, MPI_ERR_INFO_VALUE, "crypt_block_size", value);
    }
    if (ompi_common_cryptmpi_info_get(info, "crypt_repeat", value, sizeof(value)) && 0 != strcmp(value, "once")) {
        return show_key(state, MPI_ERR_INFO_VALUE, "crypt_repeat", value);
    }
    if (ompi_common_cryptmpi_info_get(info, "crypt_rest", value, sizeof(value)) && 0 != strcmp(value, "plain")) {
        return show_key(state, MPI_ERR_INFO_VALUE, "crypt_rest", value);
    }
    return MPI_SUCCESS;
}

bool ompi_common_cryptmpio_block_parse(const char *text, uint32_t *bytes)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    *bytes = (uint32_t) number;
    return *text >= '0' && *text <= '9' && '\0' == *end && number <= UINT32_MAX;
}

/* Neither a view nor MPI_File_set_info makes a map.  The map must already fit what the info asks for, or a program
 * that asked in the wrong place would store plaintext. */
static int view_check(const ompi_common_cryptmpio_file_t *state, opal_info_t *info)
{
    const opal_cryptfile_map_t *map = NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);
    char key[MPI_MAX_INFO_KEY + 1], label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 2];
    int error = ompi_common_cryptmpio_info_check(state, info);

    for (int i = 0; MPI_SUCCESS == error && !state->encrypted && ompi_common_cryptmpi_info_key(info, i, key, sizeof(key)); ++i) {
        error = is_known(key) ? show_key(state, MPI_ERR_INFO_VALUE, key, "of a plain file, after it was opened") : MPI_SUCCESS;
    }
    if (MPI_SUCCESS == error && NULL != map && ompi_common_cryptmpi_info_get(info, "crypt_key_label", label, sizeof(label))) {
        uint32_t i = 0;
        while (i < map->region_count && 0 != strcmp(map->regions[i].label, label)) {
            ++i;
        }
        error = i < map->region_count ? MPI_SUCCESS : show_key(state, MPI_ERR_INFO_VALUE, "crypt_key_label", label);
    }
    return error;
}

static ompi_common_cryptmpio_file_t *state_of(const ompi_file_t *fh)
{
    return ompi_common_cryptmpio_module(&((mca_common_ompio_data_t *) fh->f_io_selected_data)->ompio_fh)->state;
}

/* Errors are agreed on: the others would wait for a process that returned early.  A refusal stands until a later
 * call that asks for encryption succeeds; a call that asks for nothing does not lift it. */
static int judge(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_denied_t denied, opal_info_t *info)
{
    bool asks = ompi_common_cryptmpio_info_asks(info);
    int error = ompi_common_cryptmpio_agree_any(state->fh, view_check(state, info), &asks);

    if (asks) {
        ompi_common_cryptmpio_deny(state, denied, MPI_SUCCESS != error);
    }
    return error;
}

static int file_set_view(ompi_file_t *fh, OMPI_MPI_OFFSET_TYPE displacement, ompi_datatype_t *etype, ompi_datatype_t *filetype,
                         const char *datarep, opal_info_t *info)
{
    ompi_common_cryptmpio_file_t *state = state_of(fh);
    int error = judge(state, OMPI_CRYPTMPIO_DENIED_VIEW, info);

    return MPI_SUCCESS != error ? error : state->set_view(fh, displacement, etype, filetype, datarep, info);
}

static int file_set_info(ompi_file_t *fh, ompi_info_t *info)
{
    ompi_common_cryptmpio_file_t *state = state_of(fh);
    int error = judge(state, OMPI_CRYPTMPIO_DENIED_INFO, &info->super);

    if (MPI_SUCCESS != error) {
        return error;
    }
    return NULL != state->set_info ? state->set_info(fh, info) : opal_infosubscribe_change_info(&fh->super, &info->super);
}

/* For series in which only info subscribers see MPI_File_set_info; returns the value that the file's info gets. */
static __thread bool subscribing;

static ompi_common_cryptmpi_info_char_t *heard(opal_infosubscriber_t *object, ompi_common_cryptmpi_info_char_t *key,
                                               ompi_common_cryptmpi_info_char_t *value)
{
    const ompi_file_t *fh = (const ompi_file_t *) object;

    if (!subscribing && NULL != value && '\0' != *value) {
        opal_info_t *info = OBJ_NEW(opal_info_t);
        if (NULL == info || OPAL_SUCCESS != opal_info_set(info, key, value) || MPI_SUCCESS != view_check(state_of(fh), info)) {
            ompi_common_cryptmpi_late_info_abort(fh->f_filename, key);
        }
        OBJ_RELEASE(info);
    }
    return value;
}

static void hear_info(ompi_file_t *fh)
{
    subscribing = true;
    for (size_t i = 0; i < sizeof(known_keys) / sizeof(known_keys[0]); ++i) {
        ompi_common_cryptmpi_hear_info(&fh->super, known_keys[i], heard);
    }
    subscribing = false;
}

void ompi_common_cryptmpio_watch_views(ompi_common_cryptmpio_file_t *state)
{
    ompi_file_t *fh = ompi_common_cryptmpio_handle(state->fh);

    if (NULL != fh) {
        hear_info(fh);
        state->set_view = OMPI_COMMON_CRYPTMPI_IO(fh->f_io_selected_module).io_module_file_set_view;
        OMPI_COMMON_CRYPTMPI_IO(fh->f_io_selected_module).io_module_file_set_view = file_set_view;
        state->set_info = ompi_common_cryptmpi_watch_info(&OMPI_COMMON_CRYPTMPI_IO(fh->f_io_selected_module), file_set_info);
    }
}

/* ---- regions ---- */

/* The map that set_default_map makes of the same request. */
static bool is_default(const opal_cryptfile_map_t *map, const ompi_common_cryptmpio_scan_t *scan)
{
    const opal_cryptfile_region_t *region = map->regions;
    const opal_cryptfile_tiling_t *tiling = &region->tiling;
    ompi_common_cryptmpio_ask_t ask = {.block_bytes = scan->block_size};
    opal_crypt_why_t why;

    return 1 == map->region_count && OPAL_CRYPT_OK == ompi_common_cryptmpio_ask_algorithm(&ask, scan->algorithm, &why)
           && region->encrypted && ask.encrypted && (opal_aead_cipher_t) ask.cipher == region->cipher
           && ask.block_bytes == region->block_bytes && 0 == tiling->displacement && 1 == tiling->extent && !tiling->once
           && 1 == tiling->run_count && 0 == tiling->runs[0].offset && 1 == tiling->runs[0].bytes;
}

static opal_cryptfile_grant_t most_of(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_region_t *region, bool asked)
{
    bool has_label = region->encrypted && 0 == strcmp(region->label, state->label);
    bool fits = '\0' == state->label[0] || asked || (has_label && state->fits);

    if (region->encrypted) {
        return fits ? OPAL_CRYPTFILE_GRANT_SEAL : OPAL_CRYPTFILE_GRANT_OPEN;
    }
    return !fits || 0 != state->denied ? OPAL_CRYPTFILE_GRANT_NONE : state->must ? OPAL_CRYPTFILE_GRANT_OPEN : OPAL_CRYPTFILE_GRANT_SEAL;
}

/* Fail at opening: the first write would fail, perhaps hours later.  An empty file may still get another map. */
int ompi_common_cryptmpio_has_label(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map,
                                    const ompi_common_cryptmpio_scan_t *scan)
{
    bool has = !state->posix.may_write || state->joined || scan->empty || '\0' == scan->label[0];
    opal_crypt_why_t why;

    for (uint32_t i = 0; !has && i < map->region_count; ++i) {
        has = map->regions[i].encrypted && 0 == strcmp(map->regions[i].label, scan->label);
    }
    return has ? MPI_SUCCESS
           : ompi_common_cryptmpio_told(state, opal_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-label", "%s", scan->label), &why);
}

static void limit(ompi_common_cryptmpio_file_t *state)
{
    const opal_cryptfile_map_t *map = NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);

    for (uint32_t i = 0; NULL != map && i < map->region_count; ++i) {
        opal_cryptfile_limit(state->file, i, most_of(state, &map->regions[i], state->asked[i]));
    }
}

void ompi_common_cryptmpio_wished(ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_scan_t *scan)
{
    const opal_cryptfile_map_t *map = NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);

    snprintf(state->label, sizeof(state->label), "%s", scan->label);
    state->fits = NULL != map && (!scan->empty || is_default(map, scan));
    limit(state);
}

void ompi_common_cryptmpio_took(ompi_common_cryptmpio_file_t *state, const bool *asked)
{
    memcpy(state->asked, asked, sizeof(state->asked));
    limit(state);
}

/* A plain file is shut as a whole: its fbtl may not be ours, and sharedfp/individual writes to files of its own.
 * An encrypted file has our fbtl, which limits access to the plain regions only. */
static void shut_or_not(ompi_common_cryptmpio_file_t *state)
{
    ompi_file_t *fh = ompi_common_cryptmpio_handle(state->fh);
    bool shut = 0 != state->denied && !state->encrypted;

    if (NULL == fh || shut == state->shut) {
        return;
    }
    ompi_common_cryptmpi_io_module_t *io = &OMPI_COMMON_CRYPTMPI_IO(fh->f_io_selected_module);
    if (shut) {
        state->before_shut = *io;
        ompi_common_cryptmpio_shut(io);
    } else {
        *io = state->before_shut;
    }
    state->shut = shut;
}

void ompi_common_cryptmpio_deny(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_denied_t by, bool denied)
{
    state->denied = denied ? state->denied | by : state->denied & ~(unsigned) by;
    limit(state);
    shut_or_not(state);
}

/* Another process has written them since opening; if the size is unknown, assume so. */
static bool has_bytes(const ompi_common_cryptmpio_file_t *state)
{
    struct stat status;

    return 0 != fstat(state->posix.data_fd, &status) || status.st_size > 0;
}

bool ompi_common_cryptmpio_refuses(const ompi_common_cryptmpio_file_t *state, bool writing)
{
    return !state->encrypted && (0 != state->denied || (writing ? state->must : state->bare && has_bytes(state)));
}

const char *ompi_common_cryptmpio_why_limited(const ompi_common_cryptmpio_file_t *state, bool writing, uint32_t region)
{
    const opal_cryptfile_map_t *map = NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);
    bool plain = NULL == map || (region < map->region_count && !map->regions[region].encrypted);

    if (NULL == map ? !ompi_common_cryptmpio_refuses(state, writing)
                    : region >= map->region_count
                          || opal_cryptfile_limited(state->file, region)
                                 >= (writing ? OPAL_CRYPTFILE_GRANT_SEAL : OPAL_CRYPTFILE_GRANT_OPEN)) {
        return NULL;
    }
    if (plain && 0 != state->denied) {
        return "these bytes are plain, and the encryption that the program asked for was refused";
    }
    if (NULL == map && !writing && state->bare) {
        return "the file was empty when it was opened, and got bytes since; it was encrypted before, or plain bytes are refused (a label, "
               "fs_crypt_require or fs_crypt_seal): open it again";
    }
    if (plain && state->must && (NULL == map || '\0' == state->label[0] || state->asked[region])) {
        return "these bytes are plain, and fs_crypt_require is set";
    }
    return plain ? "these bytes are plain in this file's map, and the job asks for a label (fs_crypt_key_label, crypt_key_label); a "
                   "program that wants this map asks for it by MPIX_File_set_encryption_map"
                 : "this file's map is not what the job asks for (fs_crypt_key_label, crypt_key_label): it has another label, or "
                   "was made empty; a program that wants it asks for it by MPIX_File_set_encryption_map";
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening.  Rank 0 inspects the file and broadcasts what it found, as bytes; together all
 * choose one copy of its map (cryptmpio_copies.c).  A process that can verify none gets no
 * engine, and each of its accesses fails.
 */
#include "cryptmpio_internal.h"

#include "ompi/mca/common/cryptmpi/cryptmpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef ompi_common_cryptmpio_scan_t file_scan_t;

/* ---- what rank 0 finds ---- */

static void wishes(const char *filename, opal_info_t *info, file_scan_t *scan)
{
    const ompi_common_cryptmpio_params_t *p = &ompi_common_cryptmpio_params;
    char number[64];

    scan->require = p->require;
    scan->seal = p->seal;
    scan->durable = p->durable;
    scan->meant_plain = ompi_common_cryptmpio_meant_plain(filename);
    if (!ompi_common_cryptmpi_info_get(info, "crypt_key_label", scan->label, sizeof(scan->label))) {
        snprintf(scan->label, sizeof(scan->label), "%s", NULL == p->key_label ? "" : p->key_label);
    }
    if (ompi_common_cryptmpi_info_get(info, "crypt_algorithm", scan->algorithm, sizeof(scan->algorithm))) {
        scan->asked = 0 != strcasecmp(scan->algorithm, "plain");
    } else {
        snprintf(scan->algorithm, sizeof(scan->algorithm), "%s", NULL == p->algorithm ? "" : p->algorithm);
    }
    (void) ompi_common_cryptmpi_info_get(info, "crypt_seal_root", scan->root, sizeof(scan->root));
    scan->block_size = p->block_size;
    if (ompi_common_cryptmpi_info_get(info, "crypt_block_size", number, sizeof(number))) {
        scan->asked = scan->asked || 0 != strcasecmp(scan->algorithm, "plain");
        (void) ompi_common_cryptmpio_block_parse(number, &scan->block_size);        /* already checked */
    }
}

/* Does this process want something at opening that needs a label, or a seal? */
static bool has_wish(const file_scan_t *wanted) { return '\0' != wanted->label[0] || wanted->asked || '\0' != wanted->root[0]; }

/* Rank 0's request decides: refuse if this process asked for something else. */
static int compare(const ompi_common_cryptmpio_file_t *state, const file_scan_t *wanted, const file_scan_t *scan)
{
    bool label = '\0' == wanted->label[0] || 0 == strcmp(wanted->label, scan->label);
    opal_crypt_why_t why;

    if (wanted->asked && OMPI_CRYPTMPIO_SCAN_PLAIN == scan->kind && '\0' == scan->label[0]) {
        (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-info-value",
                                 "crypt_algorithm or crypt_block_size, of a plain file, without a label");
        ompi_common_cryptmpio_show(state, &why);
        return MPI_ERR_INFO_VALUE;
    }
    if (label && ('\0' == wanted->root[0] || 0 == strcmp(wanted->root, scan->root))) {
        return MPI_SUCCESS;
    }
    (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-wish", "%s = %s", label ? "crypt_seal_root" : "crypt_key_label",
                             label ? wanted->root : wanted->label);
    ompi_common_cryptmpio_show(state, &why);
    return MPI_ERR_NOT_SAME;
}

/* Can the job create a file with rank 0's label, if it has one? */
static int may_make(const ompi_common_cryptmpio_file_t *none_yet, const file_scan_t *wanted)
{
    file_scan_t scan = *wanted;
    ompi_common_cryptmpio_ask_t ask;
    opal_crypt_why_t why = {.topic = NULL};
    int error = OMPI_SUCCESS == ompi_common_cryptmpio_bcast(none_yet->fh, 0, scan.label, sizeof(scan.label)) ? MPI_SUCCESS : MPI_ERR_INTERN;
    bool plain, held;

    scan.label[sizeof(scan.label) - 1] = '\0';
    plain = '\0' == scan.label[0];
    error = MPI_SUCCESS == error ? compare(none_yet, wanted, &scan) : error;
    error = MPI_SUCCESS == error && !plain ? ompi_common_cryptmpio_usable(none_yet) : error;
    if (MPI_SUCCESS == error && !plain && 0 == none_yet->fh->f_rank) {
        error = ompi_common_cryptmpio_told(none_yet, ompi_common_cryptmpio_whole_algorithm(&ask, scan.algorithm, &why), &why);
    }
    held = plain || (MPI_SUCCESS == error && ompi_common_cryptmpio_holds(scan.label));
    error = ompi_common_cryptmpio_agree_any(none_yet->fh, error, &held);
    return MPI_SUCCESS != error || held ? error
           : ompi_common_cryptmpio_told(none_yet, ompi_common_cryptmpio_no_holder(scan.label, &why), &why);
}

static bool would_make(const ompio_file_t *fh, const char *filename, int amode)
{
    struct stat status;

    return 0 == fh->f_rank && 0 != (amode & MPI_MODE_CREATE) && 0 != lstat(filename, &status) && ENOENT == errno;
}

/* Before the file system's component creates the file: a refused open would leave it behind, empty and plain.  Where
 * nobody wishes for anything, nobody looks. */
int ompi_common_cryptmpio_open_begin(ompio_file_t *fh, const char *filename, int amode, opal_info_t *info, bool *require)
{
    enum { MAKES, WISH, REQUIRE, VALUES };      /* WISH: 2 if rank 0 has one, 1 if only others do */
    const ompi_common_cryptmpio_file_t none_yet = {.fh = fh};
    file_scan_t scan = {.kind = OMPI_CRYPTMPIO_SCAN_PLAIN};
    int error = ompi_common_cryptmpio_info_check(&none_yet, info), values[VALUES];
    bool makes = false;

    wishes(filename, info, &scan);
    values[WISH] = has_wish(&scan) ? 0 == fh->f_rank ? 2 : 1 : 0;
    values[MAKES] = 2 == values[WISH] && would_make(fh, filename, amode);
    values[REQUIRE] = scan.require;
    error = ompi_common_cryptmpio_agree_values(fh, error, values, VALUES);
    *require = 0 != values[REQUIRE];
    makes = 0 != values[MAKES];
    if (MPI_SUCCESS == error && 1 == values[WISH]) {
        makes = would_make(fh, filename, amode);
        error = ompi_common_cryptmpio_agree_any(fh, MPI_SUCCESS, &makes);
    }
    return MPI_SUCCESS == error && makes ? may_make(&none_yet, &scan) : error;
}

static bool is_flag(const bool *flag) { return *(const uint8_t *) flag <= 1; }

static bool is_text(const char *text, size_t bytes) { return NULL != memchr(text, '\0', bytes); }

/* Is this a message that rank 0 can send? */
static bool is_scan(const file_scan_t *scan)
{
    bool is = scan->kind >= OMPI_CRYPTMPIO_SCAN_PLAIN && scan->kind <= OMPI_CRYPTMPIO_SCAN_REFUSED
              && (OMPI_CRYPTMPIO_SCAN_REFUSED != scan->kind || scan->error > MPI_SUCCESS)
              && is_flag(&scan->empty) && is_flag(&scan->meant_plain) && is_flag(&scan->asked) && is_flag(&scan->bare)
              && is_flag(&scan->require) && is_flag(&scan->seal) && is_flag(&scan->durable)
              && is_text(scan->label, sizeof(scan->label)) && is_text(scan->algorithm, sizeof(scan->algorithm))
              && is_text(scan->root, sizeof(scan->root));

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES && is; ++i) {
        is = scan->sizes[i] <= OPAL_CRYPTFILE_MAP_MAX_BYTES;
    }
    return is;
}

/* Broadcast rank 0's findings, then the copies of the map, in the sizes that it found; agreed on. */
static int hand_out(ompi_common_cryptmpio_file_t *state, file_scan_t *scan)
{
    const file_scan_t wanted = *scan;
    bool enough = true;

    int rc = ompi_common_cryptmpio_bcast(state->fh, 0, scan, sizeof(*scan));
    if (OMPI_SUCCESS != rc || !is_scan(scan)) {
        *scan = wanted;
        rc = OMPI_ERROR;
    }
    memcpy(scan->copies, wanted.copies, sizeof(scan->copies));
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES && OMPI_SUCCESS == rc; ++i) {
        if (0 != state->fh->f_rank && scan->sizes[i] > 0) {
            scan->copies[i] = malloc(scan->sizes[i]);
            enough = enough && NULL != scan->copies[i];
        }
    }
    int error = OMPI_SUCCESS != rc ? MPI_ERR_INTERN : enough ? compare(state, &wanted, scan) : MPI_ERR_NO_MEM;
    error = ompi_common_cryptmpio_agree(state->fh, error);
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES && MPI_SUCCESS == error; ++i) {
        if (scan->sizes[i] > 0 && OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, 0, scan->copies[i], scan->sizes[i])) {
            error = MPI_ERR_INTERN;
        }
    }
    return error;
}

/* Rank 0 keeps the maker's lock if the file is ours to create; all ranks know.  `error`: of this process, so far.  A file
 * that is plain, and meant to be, needs nothing more than that all know it. */
static int scan_and_share(ompi_common_cryptmpio_file_t *state, int error, file_scan_t *scan)
{
    bool more = has_wish(scan);

    if (0 == state->fh->f_rank && MPI_SUCCESS == error) {
        ompi_common_cryptmpio_scan(state, scan);
        more = more || OMPI_CRYPTMPIO_SCAN_PLAIN != scan->kind || scan->bare || scan->require || scan->seal || scan->durable;
    }
    error = ompi_common_cryptmpio_agree_any(state->fh, error, &more);
    if (MPI_SUCCESS != error || !more) {
        scan->seal = scan->durable = false;     /* as rank 0 has them */
        return error;
    }
    state->looked = true;
    ompi_common_cryptmpio_posix_find_system(&state->posix);
    error = hand_out(state, scan);
    state->making = OMPI_CRYPTMPIO_SCAN_NEW == scan->kind;
    state->seal = scan->seal;
    state->must = scan->require;
    state->bare = scan->bare;
    if (scan->durable) {
        ompi_common_cryptmpio_posix_durable(&state->posix);
    }
    return error;
}

static void forget(file_scan_t *scan)
{
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        free(scan->copies[i]);
    }
}

/* The program may change its directory later. */
static char *absolute(const char *filename)
{
    char *directory = '/' == *filename ? NULL : getcwd(NULL, 0), *path = NULL;

    if ('/' == *filename) {
        return strdup(filename);
    }
    if (NULL == directory || asprintf(&path, "%s/%s", directory, filename) < 0) {
        path = NULL;
    }
    free(directory);
    return path;
}

/* ---- all processes ---- */

static int open_encrypted(ompi_common_cryptmpio_file_t *state, file_scan_t *scan)
{
    opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES] = {{.map = NULL}};
    bool differ = false;
    int best = -1, error;

    state->encrypted = true;
    error = ompi_common_cryptmpio_choose_copy(state, ompi_common_cryptmpio_usable(state), scan, states, &best, &differ);
    if (MPI_SUCCESS == error) {
        error = ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_has_label(state, states[best].map, scan));
    }
    if (MPI_SUCCESS == error) {
        state->beginning = scan->beginning;     /* the map has the same one */
        error = ompi_common_cryptmpio_join(state);
    }
    if (MPI_SUCCESS == error && differ && state->posix.may_write && 0 == state->fh->f_rank) {
        error = ompi_common_cryptmpio_repair_copies(state, scan, states, best);
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS == error) {
        opal_cryptfile_copy_state_t *chosen = &states[best];
        error = ompi_common_cryptmpio_use(state, chosen->map, chosen->verified ? chosen->keys : NULL);
        if (!chosen->verified) {
            opal_cryptfile_keys_free(chosen->keys, 0);
        }
        chosen->map = NULL;
    }
    if (MPI_SUCCESS == error && state->posix.may_write) {
        error = ompi_common_cryptmpio_take_off_seal(state);
    }
    if (MPI_SUCCESS == error && ('\0' != scan->root[0] || (state->seal && !state->posix.may_write))) {
        error = ompi_common_cryptmpio_demand_seal(state, scan->root);
    }
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        opal_cryptfile_copy_free(&states[i]);
    }
    return error;
}

static int act(ompi_common_cryptmpio_file_t *state, file_scan_t *scan)
{
    int error;

    switch (scan->kind) {
    case OMPI_CRYPTMPIO_SCAN_REFUSED:
        return scan->error;
    case OMPI_CRYPTMPIO_SCAN_ENCRYPTED:
        error = open_encrypted(state, scan);
        break;
    case OMPI_CRYPTMPIO_SCAN_NEW:
        error = ompi_common_cryptmpio_set_default_map(state, scan->label, scan->algorithm, scan->block_size);
        state->fresh = MPI_SUCCESS == error;
        break;
    default:
        error = MPI_SUCCESS;
    }
    ompi_common_cryptmpio_wished(state, scan);
    return error;
}

int ompi_common_cryptmpio_scan_again(ompi_common_cryptmpio_file_t *state)
{
    file_scan_t scan = {.kind = OMPI_CRYPTMPIO_SCAN_PLAIN, .label = "set_encryption_map",        /* the requester */
                   .require = state->must, .seal = state->seal};
    int error = scan_and_share(state, MPI_SUCCESS, &scan);

    if (MPI_SUCCESS == error && OMPI_CRYPTMPIO_SCAN_REFUSED == scan.kind) {
        error = scan.error;
    } else if (MPI_SUCCESS == error && OMPI_CRYPTMPIO_SCAN_ENCRYPTED == scan.kind) {
        state->joined = true;
        error = open_encrypted(state, &scan);
    }
    forget(&scan);
    return error;
}

int ompi_common_cryptmpio_open(ompio_file_t *fh, const char *filename, int amode, opal_info_t *info, int rc,
                               bool require, ompi_common_cryptmpio_file_t **state)
{
    const ompi_common_cryptmpio_file_t none = {.fh = fh};
    ompi_common_cryptmpio_file_t *made = malloc(sizeof(*made));
    file_scan_t scan = {.kind = OMPI_CRYPTMPIO_SCAN_PLAIN};

    if (NULL == made) {                 /* the others hear of it, and return */
        bool any = false;
        return ompi_common_cryptmpio_agree_any(fh, MPI_ERR_NO_MEM, &any);
    }
    *made = none;
    wishes(filename, info, &scan);
    scan.require = require;
    ompi_common_cryptmpio_posix_init(&made->posix, fh->fd, 0 == (amode & MPI_MODE_RDONLY));
    made->path = absolute(filename);
    int error = scan_and_share(made, rc, &scan);
    if (MPI_SUCCESS == error) {
        error = act(made, &scan);
    }
    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, ompi_common_cryptmpio_stream, "fs:crypt: %s: %s%s%s", filename,
                        MPI_SUCCESS != error ? "refused" : made->encrypted ? "encrypted" : "plain",
                        '\0' != scan.label[0] ? ", asked for with label " : "", scan.label);
    forget(&scan);
    if (MPI_SUCCESS != error) {
        ompi_common_cryptmpio_unmake(made, filename, amode);
        ompi_common_cryptmpio_close(made);
        return error;
    }
    *state = made;
    if (made->encrypted || made->must || made->bare) {
        ompi_common_cryptmpio_hook(made);
    }
    ompi_common_cryptmpio_watch_views(made);
    return MPI_SUCCESS;
}

void ompi_common_cryptmpio_close(ompi_common_cryptmpio_file_t *state)
{
    if (NULL == state) {
        return;
    }
    const opal_cryptfile_map_t *map = NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);
    opal_cryptfile_keys_free(state->keys, NULL == map ? 0 : map->region_count);
    opal_cryptfile_destroy(state->file);
    ompi_common_cryptmpio_abandon(state);
    if (state->looked || 0 == state->fh->f_rank) {
        ompi_common_cryptmpio_posix_release(&state->posix);
    }
    free(state->path);
    free(state);
}

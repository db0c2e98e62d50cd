/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening.  Rank 0 inspects the file and broadcasts what it found, as bytes; together all
 * choose one copy of its map (cryptmpio_copies.c).  A process that can verify none gets no
 * engine, and each of its accesses fails.
 */
#include "cryptmpio_internal.h"

#include "opal/mca/common/crypt/base/secmem.h"
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

static bool is_flag(const bool *flag) { return *(const uint8_t *) flag <= 1; }

static bool is_text(const char *text, size_t bytes) { return NULL != memchr(text, '\0', bytes); }

/* Can the job create a file with rank 0's label, if it has one?  The others look into their keystores only if rank 0 lacks the key. */
static int may_make(const ompi_common_cryptmpio_file_t *none_yet, const file_scan_t *wanted)
{
    const bool root = 0 == none_yet->fh->f_rank;
    file_scan_t scan = *wanted;
    ompi_common_cryptmpio_ask_t ask;
    opal_crypt_why_t why = {.topic = NULL};
    int error = MPI_SUCCESS;
    bool held;

    if (root && '\0' != scan.label[0]) {
        error = ompi_common_cryptmpio_told(none_yet, ompi_common_cryptmpio_whole_algorithm(&ask, scan.algorithm, &why), &why);
        scan.held = MPI_SUCCESS == error && ompi_common_cryptmpio_holds(scan.label);
    }
    if (OMPI_SUCCESS != ompi_common_cryptmpio_bcast(none_yet->fh, 0, &scan, sizeof(scan))
        || !is_flag(&scan.held) || !is_text(scan.label, sizeof(scan.label)) || !is_text(scan.root, sizeof(scan.root))) {
        error = MPI_ERR_INTERN;
    }
    error = MPI_SUCCESS == error ? compare(none_yet, wanted, &scan) : error;
    held = MPI_SUCCESS == error && ('\0' == scan.label[0] || scan.held);
    if (MPI_SUCCESS == error && '\0' != scan.label[0]) {
        error = ompi_common_cryptmpio_usable(none_yet);
        held = held || (MPI_SUCCESS == error && !root && ompi_common_cryptmpio_holds(scan.label));
    }
    error = ompi_common_cryptmpio_agree_any(none_yet->fh, error, &held);
    return MPI_SUCCESS != error || held ? error
           : ompi_common_cryptmpio_told(none_yet, ompi_common_cryptmpio_no_holder(scan.label, &why), &why);
}

static bool would_make(const ompio_file_t *fh, const char *filename, int amode)
{
    struct stat status;

    return 0 == fh->f_rank && 0 != (amode & MPI_MODE_CREATE) && 0 != lstat(filename, &status) && ENOENT == errno;
}

/* Has this process, rank 0, the key for what it wishes for by default? */
static bool has_default(const file_scan_t *wanted)
{
    ompi_common_cryptmpio_ask_t ask;
    opal_crypt_why_t why;

    return '\0' != wanted->label[0] && OPAL_CRYPT_OK == ompi_common_cryptmpio_whole_algorithm(&ask, wanted->algorithm, &why)
           && ompi_common_cryptmpio_holds(wanted->label);
}

/* What compare() compares. */
static int say_words(const file_scan_t *wanted, int says[OMPI_CRYPTMPIO_SAYS_HASH])
{
    const opal_crypt_input_t words[] = {{wanted->label, strlen(wanted->label) + 1}, {wanted->root, strlen(wanted->root) + 1}};
    uint8_t hash[OPAL_CRYPT_HASH_BYTES] = {0};
    const int rc = opal_crypt_sha256(words, 2, hash);

    ompi_common_cryptmpio_say_hash(hash, says);
    return ompi_common_cryptmpio_error(rc, 0);
}

/* Before the file system's component creates the file: a refused open would leave it behind, empty and plain.  Where
 * nobody wishes for anything, nobody looks. */
int ompi_common_cryptmpio_open_begin(ompio_file_t *fh, const char *filename, int amode, opal_info_t *info, bool *require)
{
    /* WISH: 2 if rank 0 has one, 1 if only others do; MAKES: 2 if it has the key, too */
    enum { MAKES, WISH, REQUIRE, CANNOT, WORDS, VALUES = WORDS + OMPI_CRYPTMPIO_SAYS_HASH };
    const ompi_common_cryptmpio_file_t none_yet = {.fh = fh};
    file_scan_t scan = {.kind = OMPI_CRYPTMPIO_SCAN_PLAIN};
    int error = ompi_common_cryptmpio_info_check(&none_yet, info), values[VALUES];
    bool makes = false;

    wishes(filename, info, &scan);
    values[WISH] = has_wish(&scan) ? 0 == fh->f_rank ? 2 : 1 : 0;
    values[MAKES] = 2 == values[WISH] && would_make(fh, filename, amode) ? has_default(&scan) ? 2 : 1 : 0;
    values[REQUIRE] = scan.require;
    values[CANNOT] = 0 != values[WISH] && !ompi_common_cryptmpio_could_use(fh);
    const int said = say_words(&scan, values + WORDS);
    error = MPI_SUCCESS == error ? said : error;
    error = ompi_common_cryptmpio_agree_values(fh, error, values, VALUES);
    *require = 0 != values[REQUIRE];
    makes = 0 != values[MAKES];
    if (MPI_SUCCESS == error && 2 == values[MAKES] && 0 == values[CANNOT] && ompi_common_cryptmpio_said_alike_hash(values + WORDS)) {
        return MPI_SUCCESS;             /* what may_make finds out: all wish for the same, and can have it */
    }
    if (MPI_SUCCESS == error && 1 == values[WISH]) {
        makes = would_make(fh, filename, amode);
        error = ompi_common_cryptmpio_agree_any(fh, MPI_SUCCESS, &makes);
    }
    return MPI_SUCCESS == error && makes ? may_make(&none_yet, &scan) : error;
}

/* Is this a message that rank 0 can send? */
static bool is_scan(const file_scan_t *scan)
{
    bool is = scan->kind >= OMPI_CRYPTMPIO_SCAN_PLAIN && scan->kind <= OMPI_CRYPTMPIO_SCAN_REFUSED
              && (OMPI_CRYPTMPIO_SCAN_REFUSED != scan->kind || scan->error > MPI_SUCCESS)
              && is_flag(&scan->empty) && is_flag(&scan->meant_plain) && is_flag(&scan->asked) && is_flag(&scan->bare)
              && is_flag(&scan->require) && is_flag(&scan->seal) && is_flag(&scan->durable)
              && is_flag(&scan->held) && is_flag(&scan->sealed) && scan->bytes <= OPAL_CRYPTFILE_OFFSET_MAX
              && is_text(scan->label, sizeof(scan->label)) && is_text(scan->algorithm, sizeof(scan->algorithm))
              && is_text(scan->root, sizeof(scan->root));

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES && is; ++i) {
        is = scan->sizes[i] <= OPAL_CRYPTFILE_MAP_MAX_BYTES;
    }
    return is;
}

/* Of each copy, whether a process can verify it, and whether one refuses it.  UNSURE: the first process of a node has not verified
 * all copies with all their keys.  GIVEN: there are processes that are given keys, and have not tried to verify any.
 * MADE, MADE_NONE: rank 0 has made the map of a new file, or none; that map is the copy in the attribute, and there is no other. */
enum { UNSURE = 2 * OPAL_CRYPTFILE_COPIES, GIVEN, SEEN, MADE = 2 * OPAL_CRYPTFILE_COPY_PLACE_0, MADE_NONE };

/* What a process knows of a file that is being opened. */
typedef struct file_findings {
    file_scan_t scan;
    opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES];      /* of its own keys */
    int seen[SEEN];                     /* by any process */
} file_findings_t;

/* What rank 0 sends: its findings, and the copies of the map one after the other, if they are short. */
typedef struct sent_scan {
    file_scan_t scan;
    uint8_t copies[4096];
} sent_scan_t;

static bool are_long(const file_scan_t *scan)
{
    uint64_t bytes = 0;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        bytes += scan->sizes[i];
    }
    return bytes > sizeof(((sent_scan_t *) NULL)->copies);
}

static void pack_copies(const file_scan_t *scan, sent_scan_t *found)
{
    memset(found->scan.copies, 0, sizeof(found->scan.copies));
    for (size_t i = 0, at = 0; !are_long(scan) && i < OPAL_CRYPTFILE_COPIES; at += scan->sizes[i++]) {
        if (scan->sizes[i] > 0) {
            memcpy(found->copies + at, scan->copies[i], scan->sizes[i]);
        }
    }
}

/* Memory for the copies, with those that came along. */
static bool unpack_copies(file_scan_t *scan, const sent_scan_t *found)
{
    memset(scan->copies, 0, sizeof(scan->copies));
    for (size_t i = 0, at = 0; i < OPAL_CRYPTFILE_COPIES; at += scan->sizes[i++]) {
        scan->copies[i] = scan->sizes[i] > 0 ? malloc(scan->sizes[i]) : NULL;
        if (scan->sizes[i] > 0 && NULL == scan->copies[i]) {
            return false;
        }
        if (!are_long(scan) && scan->sizes[i] > 0) {
            memcpy(scan->copies[i], found->copies + at, scan->sizes[i]);
        }
    }
    return true;
}

static bool is_sure(const opal_cryptfile_copy_state_t *states)
{
    bool sure = true;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        sure = sure && (NULL == states[i].map || (states[i].verified && ompi_common_cryptmpio_has_all_keys(states[i].map, states[i].keys)));
    }
    return sure;
}

static int judge_mine(const ompi_common_cryptmpio_file_t *state, bool asks, file_findings_t *findings)
{
    const file_scan_t *scan = &findings->scan;
    opal_cryptfile_copy_state_t *made = &findings->states[OPAL_CRYPTFILE_COPY_ATTRIBUTE];
    const int error = OMPI_CRYPTMPIO_SCAN_NEW == scan->kind ? ompi_common_cryptmpio_made_judge(state, scan, asks, made)
                      : OMPI_CRYPTMPIO_SCAN_ENCRYPTED != scan->kind ? MPI_SUCCESS
                      : ompi_common_cryptmpio_judge_copies(scan, asks ? ompi_common_cryptmpio_keystore() : NULL, findings->states);

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        findings->seen[2 * i] = findings->states[i].verified;
        findings->seen[2 * i + 1] = findings->states[i].refused;
    }
    if (OMPI_CRYPTMPIO_SCAN_NEW == scan->kind) {
        findings->seen[MADE] = NULL != made->map;
        findings->seen[MADE_NONE] = NULL == made->map;
    }
    return error;
}

/* What follows for a new file depends on its map: all must have received one, or none. */
static int agree_on_seen(const ompi_common_cryptmpio_file_t *state, int error, file_findings_t *findings, int count)
{
    error = ompi_common_cryptmpio_agree_values(state->fh, error, findings->seen, count);
    return MPI_SUCCESS == error && OMPI_CRYPTMPIO_SCAN_NEW == findings->scan.kind && 0 != findings->seen[MADE]
                   && 0 != findings->seen[MADE_NONE] ? MPI_ERR_INTERN : error;
}

/* What this process can verify of an encrypted file's copies; agreed on.  Those that are given keys leave it to the first process of
 * their node and, unless all of these are sure, ask after all. */
static int judge_together(ompi_common_cryptmpio_file_t *state, int error, file_findings_t *findings)
{
    const file_scan_t *scan = &findings->scan;
    const bool given = state->given;

    if (MPI_SUCCESS == error && (OMPI_CRYPTMPIO_SCAN_ENCRYPTED == scan->kind || OMPI_CRYPTMPIO_SCAN_NEW == scan->kind)) {
        error = ompi_common_cryptmpio_usable(state);
    }
    error = MPI_SUCCESS == error ? judge_mine(state, !given, findings) : error;
    findings->seen[UNSURE] = state->gives && (state->node_fd < 0 || !is_sure(findings->states));
    findings->seen[GIVEN] = given;
    error = agree_on_seen(state, error, findings, SEEN);
    if (MPI_SUCCESS != error || 0 == findings->seen[UNSURE] || 0 == findings->seen[GIVEN]) {
        return error;
    }
    ompi_common_cryptmpio_node_end(state);
    for (int i = 0; given && i < OPAL_CRYPTFILE_COPIES; ++i) {
        opal_cryptfile_copy_free(&findings->states[i]);
    }
    error = given ? judge_mine(state, true, findings) : MPI_SUCCESS;
    return agree_on_seen(state, error, findings, UNSURE);
}

/* Long copies follow, in the sizes that rank 0 found and all know. */
static int hand_out_copies(ompi_common_cryptmpio_file_t *state, file_findings_t *findings)
{
    file_scan_t *scan = &findings->scan;
    int error = MPI_SUCCESS;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        if (scan->sizes[i] > 0 && OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, 0, scan->copies[i], scan->sizes[i])) {
            error = MPI_ERR_INTERN;
        }
    }
    return judge_together(state, error, findings);
}

/* A new file, and rank 0 has made its map? */
static bool has_made(const file_scan_t *scan)
{
    return OMPI_CRYPTMPIO_SCAN_NEW == scan->kind && scan->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] > 0;
}

/* Broadcast rank 0's findings; each process judges the copies of the map, and all agree on what any has `seen`. */
static int hand_out(ompi_common_cryptmpio_file_t *state, file_findings_t *findings)
{
    file_scan_t *scan = &findings->scan;
    const file_scan_t wanted = *scan;
    sent_scan_t found = {.scan = *scan};
    int error = MPI_SUCCESS;

    pack_copies(scan, &found);
    if (OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, 0, &found, sizeof(found)) || !is_scan(&found.scan)) {
        error = MPI_ERR_INTERN;
    } else if (0 != state->fh->f_rank) {
        *scan = found.scan;
        error = unpack_copies(scan, &found) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    error = MPI_SUCCESS == error ? compare(state, &wanted, scan) : error;
    if (MPI_SUCCESS == error && (OMPI_CRYPTMPIO_SCAN_ENCRYPTED == scan->kind || has_made(scan))) {
        ompi_common_cryptmpio_node_begin(state, scan->meeting);
        if (state->gives && 0 != state->fh->f_rank) {       /* drops old pages before others of the node read */
            ompi_common_cryptmpio_posix_find_system(&state->posix);
        }
    }
    if (!are_long(scan)) {
        return judge_together(state, error, findings);
    }
    error = ompi_common_cryptmpio_agree_values(state->fh, error, findings->seen, SEEN);       /* as in judge_together: one may not know */
    return MPI_SUCCESS == error ? hand_out_copies(state, findings) : error;
}

static void drop_copies(file_scan_t *scan)
{
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        free(scan->copies[i]);
        scan->copies[i] = NULL;
        scan->sizes[i] = 0;
    }
}

/* Rank 0 keeps the maker's lock if the file is ours to create, from the `defaults` or a map that follows; all ranks know.  `error`:
 * of this process, so far.  A file that is plain, and meant to be, needs nothing more than that all know it. */
static int scan_and_share(ompi_common_cryptmpio_file_t *state, int error, bool defaults, file_findings_t *findings)
{
    file_scan_t *scan = &findings->scan;
    bool more = has_wish(scan);

    if (0 == state->fh->f_rank && MPI_SUCCESS == error) {
        ompi_common_cryptmpio_scan(state, scan);
        opal_crypt_random(&scan->meeting, sizeof(scan->meeting));
        if (OMPI_CRYPTMPIO_SCAN_NEW == scan->kind) {        /* an attribute that was left behind is not its map */
            drop_copies(scan);
        }
        if (defaults && OMPI_CRYPTMPIO_SCAN_NEW == scan->kind) {
            ompi_common_cryptmpio_made_begin(scan, &findings->states[OPAL_CRYPTFILE_COPY_ATTRIBUTE]);
        }
        more = more || OMPI_CRYPTMPIO_SCAN_PLAIN != scan->kind || scan->bare || scan->require || scan->seal || scan->durable;
    }
    error = ompi_common_cryptmpio_agree_any(state->fh, error, &more);
    if (MPI_SUCCESS != error || !more) {
        scan->seal = scan->durable = false;     /* as rank 0 has them */
        return error;
    }
    state->inspected = true;
    if (0 == state->fh->f_rank && OMPI_CRYPTMPIO_SCAN_ENCRYPTED != scan->kind) {        /* else found before the file was read */
        ompi_common_cryptmpio_posix_find_system(&state->posix);
    }
    error = hand_out(state, findings);
    state->making = OMPI_CRYPTMPIO_SCAN_NEW == scan->kind;
    state->seal = scan->seal;
    state->must = scan->require;
    state->bare = scan->bare;
    if (scan->durable) {
        ompi_common_cryptmpio_posix_durable(&state->posix);
    }
    return error;
}

static void forget(file_findings_t *findings)
{
    drop_copies(&findings->scan);
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        opal_cryptfile_copy_free(&findings->states[i]);
    }
}

/* The program may change its directory later. */
static char *absolute_name(const char *filename)
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

/* Rank 0 makes the copies agree; the same answer on every process. */
static int repair_together(ompi_common_cryptmpio_file_t *state, const file_findings_t *findings, int best)
{
    int error = 0 == state->fh->f_rank ? ompi_common_cryptmpio_repair_copies(state, &findings->scan, findings->states, best) : MPI_SUCCESS;

    return ompi_common_cryptmpio_agree(state->fh, error);
}

static int open_encrypted(ompi_common_cryptmpio_file_t *state, file_findings_t *findings)
{
    const file_scan_t *scan = &findings->scan;
    const bool writes = state->posix.may_write;
    opal_cryptfile_copy_state_t *chosen;
    bool differ = false;
    int best = -1, error;

    state->encrypted = true;
    error = ompi_common_cryptmpio_choose_copy(state, scan, findings->seen, findings->states, &best, &differ);
    if (MPI_SUCCESS == error) {
        state->beginning = scan->beginning;     /* the verified map has the same one */
    }
    error = MPI_SUCCESS == error ? ompi_common_cryptmpio_has_label(state, findings->states[best].map, scan) : error;
    if (MPI_SUCCESS == error) {
        ompi_common_cryptmpio_node_ask(state);
    }
    error = ompi_common_cryptmpio_join(state, error);
    if (MPI_SUCCESS == error && differ && writes) {
        error = repair_together(state, findings, best);
    }
    if (MPI_SUCCESS == error) {
        chosen = &findings->states[best];
        error = ompi_common_cryptmpio_node_keys(state, chosen->map, state->given || chosen->verified ? chosen->keys : NULL,
                                                &chosen->verified);
        error = ompi_common_cryptmpio_use(state, chosen->map, chosen->verified ? chosen->keys : NULL, error);
        if (!chosen->verified) {
            opal_cryptfile_keys_free(chosen->keys, 0);
        }
        chosen->map = NULL;
    }
    if (MPI_SUCCESS == error && writes && scan->sealed) {
        error = ompi_common_cryptmpio_take_off_seal(state);
    } else if (MPI_SUCCESS == error && writes && state->seal && NULL != state->file) {
        opal_cryptfile_seal_watch(state->file, scan->bytes);
    }
    if (MPI_SUCCESS == error && ('\0' != scan->root[0] || (state->seal && !writes))) {
        error = ompi_common_cryptmpio_demand_seal(state, scan->root);
    }
    return error;
}

static int act(ompi_common_cryptmpio_file_t *state, file_findings_t *findings)
{
    const file_scan_t *scan = &findings->scan;
    int error;

    switch (scan->kind) {
    case OMPI_CRYPTMPIO_SCAN_REFUSED:
        return scan->error;
    case OMPI_CRYPTMPIO_SCAN_ENCRYPTED:
        error = open_encrypted(state, findings);
        break;
    case OMPI_CRYPTMPIO_SCAN_NEW:
        error = NULL != findings->states[OPAL_CRYPTFILE_COPY_ATTRIBUTE].map
                    ? ompi_common_cryptmpio_made_open(state, &findings->states[OPAL_CRYPTFILE_COPY_ATTRIBUTE])
                    : ompi_common_cryptmpio_set_default_map(state, scan->label, scan->algorithm, scan->block_size);
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
    file_findings_t findings = {.scan = {.kind = OMPI_CRYPTMPIO_SCAN_PLAIN, .label = "set_encryption_map",        /* the requester */
                       .require = state->must, .seal = state->seal}};
    int error = scan_and_share(state, MPI_SUCCESS, false, &findings);

    if (MPI_SUCCESS == error && OMPI_CRYPTMPIO_SCAN_REFUSED == findings.scan.kind) {
        error = findings.scan.error;
    } else if (MPI_SUCCESS == error && OMPI_CRYPTMPIO_SCAN_ENCRYPTED == findings.scan.kind) {
        state->joined = true;
        error = open_encrypted(state, &findings);
    }
    ompi_common_cryptmpio_node_end(state);
    forget(&findings);
    return error;
}

int ompi_common_cryptmpio_open(ompio_file_t *fh, const char *filename, int amode, opal_info_t *info, int rc,
                               bool require, ompi_common_cryptmpio_file_t **state)
{
    const ompi_common_cryptmpio_file_t none = {.fh = fh};
    ompi_common_cryptmpio_file_t *made = malloc(sizeof(*made));
    file_findings_t findings = {.scan = {.kind = OMPI_CRYPTMPIO_SCAN_PLAIN}};

    if (NULL == made) {                 /* the others hear of it, in scan_and_share, and return */
        return ompi_common_cryptmpio_agree(fh, MPI_ERR_NO_MEM);
    }
    *made = none;
    wishes(filename, info, &findings.scan);
    findings.scan.require = require;
    ompi_common_cryptmpio_posix_init(&made->posix, fh->fd, 0 == (amode & MPI_MODE_RDONLY));
    made->path = absolute_name(filename);
    ompi_common_cryptmpio_node_init(made);
    int error = scan_and_share(made, rc, true, &findings);
    if (MPI_SUCCESS == error) {
        error = act(made, &findings);
    }
    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, ompi_common_cryptmpio_stream, "fs:crypt: %s: %s%s%s", filename,
                        MPI_SUCCESS != error ? "refused" : made->encrypted ? "encrypted" : "plain",
                        '\0' != findings.scan.label[0] ? ", asked for with label " : "", findings.scan.label);
    forget(&findings);
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
    if (state->inspected || 0 == state->fh->f_rank) {
        ompi_common_cryptmpio_posix_release(&state->posix);
    }
    free(state->path);
    free(state);
}

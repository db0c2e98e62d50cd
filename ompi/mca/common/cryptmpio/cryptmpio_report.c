/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Errors of files: as MPI codes, and as texts.
 */
#include "cryptmpio_internal.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_classes.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "opal/mca/common/crypt/base/text.h"

#define HELP "help-ompi-common-cryptmpio.txt"

int ompi_common_cryptmpio_error(int rc, int error)
{
    switch (rc) {
    case OPAL_CRYPT_OK:
        return MPI_SUCCESS;
    case OPAL_CRYPT_ERR_AUTH:
        return ompi_common_cryptmpi_code(OMPI_CRYPTMPI_FORGED);
    case OPAL_CRYPT_ERR_TORN:
        return ompi_common_cryptmpi_code(OMPI_CRYPTMPI_TORN);
    case OPAL_CRYPT_ERR_ACCESS:
        return MPI_ERR_ACCESS;
    case OPAL_CRYPT_ERR_CONFIG:
        return MPI_ERR_ARG;
    case OPAL_CRYPT_ERR_MEMORY:
        return MPI_ERR_NO_MEM;
    case OPAL_CRYPT_ERR_STORAGE:
        return EACCES == error ? MPI_ERR_ACCESS : ENOSPC == error ? MPI_ERR_NO_SPACE
               : EDQUOT == error ? MPI_ERR_QUOTA : EROFS == error ? MPI_ERR_READ_ONLY : MPI_ERR_IO;
    default:
        return MPI_ERR_IO;
    }
}

/* The file's name, on one line. */
static const char *name_of(const ompi_common_cryptmpio_file_t *state, char name[PATH_MAX])
{
    snprintf(name, PATH_MAX, "%s", NULL == state ? "(none yet)" : state->fh->f_filename);
    return opal_crypt_harmless(name, "");
}

enum { SHOWN_MAX = 20 };        /* messages of a process */

/* `name` identifies a message that all processes of a node would print alike, so that it is shown once; or NULL. */
static void show(const char *name, const char *file, const char *topic, ...)
{
    static int shown;
    va_list list;
    bool said = true;

    if (__atomic_load_n(&shown, __ATOMIC_RELAXED) >= SHOWN_MAX) {
        return;
    }
    va_start(list, topic);
    if (NULL != name) {
        said = opal_cryptproc_vshow_once(name, file, topic, list);
    } else {
        opal_cryptproc_vshow_here(file, topic, list);
    }
    va_end(list);
    if (said && SHOWN_MAX == __atomic_add_fetch(&shown, 1, __ATOMIC_RELAXED)) {
        fprintf(stderr, "[%s] further messages about files are not shown\n", opal_process_info.nodename);
    }
}

enum { SAME_BYTES = 96 };

static void same(const char *topic, const char *file, const char *detail, char name[SAME_BYTES])
{
    const char *const texts[] = {file, detail};
    uint64_t sum = UINT64_C(0xcbf29ce484222325);        /* FNV-1a */

    for (int i = 0; i < 2; ++i) {
        for (const char *c = texts[i]; '\0' != *c; ++c) {
            sum = (sum ^ (unsigned char) *c) * UINT64_C(0x100000001b3);
        }
    }
    snprintf(name, SAME_BYTES, "%s-%016" PRIx64, topic, sum);
}

void ompi_common_cryptmpio_show(const ompi_common_cryptmpio_file_t *state, const opal_crypt_why_t *why)
{
    static const char *const known[] = {"keystore-refused", "keystore-no-label"};
    const char *topic = NULL == why->topic ? "file-failed" : why->topic;
    bool keystore = 0 == strncmp(topic, "keystore-", 9);
    char text[OPAL_CRYPTPROC_ON_NODE_BYTES], name[SAME_BYTES], path[PATH_MAX];

    same(topic, name_of(state, path), why->detail, name);
    if (!keystore && 0 != strncmp(topic, "file-", 5)) {     /* about secret files, which messages use, too */
        show(name, "help-opal-common-crypt.txt", topic, opal_cryptproc_on_node(why->detail, text));
        return;
    }
    keystore = keystore && 0 != strcmp(topic, known[0]) && 0 != strcmp(topic, known[1]);
    show(name, HELP, keystore ? "keystore" : topic, path, opal_process_info.nodename, why->detail);
}

void ompi_common_cryptmpio_lock_waits(const char *file, pid_t holder, unsigned seconds, bool last)
{
    char name[SAME_BYTES], path[PATH_MAX], who[64] = "of another user, or on another node";

    if (holder > 0) {
        snprintf(who, sizeof(who), "%ld", (long) holder);
    }
    snprintf(path, sizeof(path), "%s", file);
    same("file-lock", opal_crypt_harmless(path, ""), who, name);
    show(last ? NULL : name, HELP, last ? "file-lock-timeout" : "file-lock-waits", path, opal_process_info.nodename, who, seconds);
}

bool ompi_common_cryptmpio_lacks_key(const opal_crypt_why_t *why)
{
    static const char *const topics[] = {"file-no-label", "file-no-holder", "keystore", "secret-"};     /* a key file */

    for (size_t i = 0; NULL != why->topic && i < sizeof(topics) / sizeof(topics[0]); ++i) {
        if (0 == strncmp(why->topic, topics[i], strlen(topics[i]))) {
            return true;
        }
    }
    return false;
}

int ompi_common_cryptmpio_told(const ompi_common_cryptmpio_file_t *state, int rc, const opal_crypt_why_t *why)
{
    const int error = errno;

    if (OPAL_CRYPT_OK != rc && NULL != why->topic) {
        ompi_common_cryptmpio_show(state, why);
    }
    return OPAL_CRYPT_OK != rc && ompi_common_cryptmpio_lacks_key(why) ? ompi_common_cryptmpi_code(OMPI_CRYPTMPI_NO_KEY)
                                                                       : ompi_common_cryptmpio_error(rc, error);
}

int ompi_common_cryptmpio_stored(const ompi_common_cryptmpio_file_t *state, int rc, const char *what)
{
    const int error = errno;
    opal_crypt_why_t why;

    if (OPAL_CRYPT_ERR_STORAGE == rc) {
        (void) opal_crypt_refuse(&why, rc, "file-failed", "%s: %s", what, strerror(error));
        ompi_common_cryptmpio_show(state, &why);
    }
    return ompi_common_cryptmpio_error(rc, error);
}

/* Does this process lack a key, and not the right to use the bytes? */
static bool lacks_key(const ompi_common_cryptmpio_file_t *state, bool writing, const opal_cryptfile_outcome_t *outcome)
{
    return OPAL_CRYPT_ERR_ACCESS == outcome->rc && NULL == ompi_common_cryptmpio_why_limited(state, writing, outcome->region)
           && (UINT32_MAX != outcome->region || (state->encrypted && NULL == state->file));
}

static const char *reason(const ompi_common_cryptmpio_file_t *state, bool writing, const opal_cryptfile_outcome_t *outcome)
{
    const char *limited;

    switch (outcome->rc) {
    case OPAL_CRYPT_ERR_AUTH:
        return "this block is not what a holder of the key wrote here: it was changed, moved or damaged, or a program "
               "that knows nothing of encryption (cp, for instance) wrote over the file";
    case OPAL_CRYPT_ERR_TORN:
        return "the first write of this block was cut short, and nothing of it was ever finished; whatever is "
               "written there next starts from zeros";
    case OPAL_CRYPT_ERR_ACCESS:
        limited = ompi_common_cryptmpio_why_limited(state, writing, outcome->region);
        return NULL != limited ? limited : UINT32_MAX == outcome->region ? "no region of the file's map holds these bytes, or the map could not be verified"
                                             : "this process has no key that allows it";
    case OPAL_CRYPT_ERR_STORAGE:
        return strerror(outcome->error);
    default:
        return opal_crypt_strerror(outcome->rc);
    }
}

static void warn_torn(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map,
                      const opal_cryptfile_outcome_t *outcome)
{
    opal_crypt_why_t why;

    (void) opal_crypt_refuse(&why, OPAL_CRYPT_OK, "file-torn", "region %u (label %s), block %llu", outcome->torn_region,
                             map->regions[outcome->torn_region].label, (unsigned long long) outcome->torn_block);
    ompi_common_cryptmpio_show(state, &why);
}

int ompi_common_cryptmpio_report(const ompi_common_cryptmpio_file_t *state, bool writing,
                                 const opal_cryptfile_outcome_t *outcome)
{
    const opal_cryptfile_map_t *map = NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);
    char where[160] = "-", path[PATH_MAX];

    if (outcome->torn && NULL != map) {
        warn_torn(state, map, outcome);
    }
    if (OPAL_CRYPT_OK == outcome->rc) {
        return MPI_SUCCESS;
    }
    if (NULL != map && outcome->region < map->region_count) {
        snprintf(where, sizeof(where), "region %u (label %s), block %llu", outcome->region, map->regions[outcome->region].label,
                 (unsigned long long) outcome->block);
    }
    show(NULL, HELP, "file-transfer", writing ? "write" : "read", name_of(state, path), state->fh->f_rank,
         opal_process_info.nodename, (unsigned long long) outcome->file_offset, where, reason(state, writing, outcome));
    return lacks_key(state, writing, outcome) ? ompi_common_cryptmpi_code(OMPI_CRYPTMPI_NO_KEY)
                                              : ompi_common_cryptmpio_error(outcome->rc, outcome->error);
}

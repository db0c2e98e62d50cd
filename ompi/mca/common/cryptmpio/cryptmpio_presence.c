/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Other jobs that write to a file.  The probe runs between the processes of one job; a job
 * on one node, or on MPI_COMM_SELF, has no partner for it, and another job on another node
 * may write to the same file.  So every process that opens a file for writing leaves a mark
 * for as long as it is open, where nodes could see different bytes:
 *
 *     mark     a shared lock on one byte, chosen among 2^32 by the node's
 *              name and boot id: a lock needs no byte to exist
 *     proven   a shared lock on one more, by a job whose probe succeeded
 *     gate     held while a job checks for marks and leaves its own: of two that come at
 *              the same time, the first is let in
 *
 * A job that cannot probe is refused while another node has its mark there and no job
 * holds "proven".  Marks are locks, so the kernel releases those of a killed process, and
 * the lock server those of a failed node when its lease ends (NFS: 90 seconds).
 * Without locks, no file is written at all.
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define NODES_FIRST (UINT64_C(1) << 61)
#define NODES       (UINT64_C(1) << 32)

/* FNV-1a: not secret, only chooses a byte. */
static uint64_t mix(uint64_t hash, const char *text)
{
    for (; '\0' != *text; ++text) {
        hash = (hash ^ (uint8_t) *text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t mark_of_this_node(void)
{
    char host[256] = "", boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    (void) gethostname(host, sizeof(host) - 1);
    if (NULL != file) {
        if (NULL == fgets(boot, sizeof(boot), file)) {
            boot[0] = '\0';
        }
        fclose(file);
    }
    return NODES_FIRST + mix(mix(UINT64_C(0xcbf29ce484222325), host), boot) % NODES;
}

/* Does another process hold a lock there?  If unknown, yes. */
static bool taken(const ompi_common_cryptmpio_file_t *state, uint64_t at, uint64_t bytes)
{
    bool is_free = false;

    return bytes > 0 && (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_locked(&state->posix, at, bytes, &is_free) || !is_free);
}

static int refuse(const ompi_common_cryptmpio_file_t *state)
{
    opal_crypt_why_t why;

    (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-elsewhere", "%s", "");
    ompi_common_cryptmpio_show(state, &why);
    return MPI_ERR_FILE_IN_USE;
}

/* Rank 0 of a job that has probed nothing. */
static int mark_node(ompi_common_cryptmpio_file_t *state, uint64_t mark)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    int error = MPI_SUCCESS;

    if (OPAL_CRYPT_OK != storage->lock(storage, OMPI_CRYPTMPIO_LOCK_ENTER, 1, true)) {
        return ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
    }
    bool elsewhere = taken(state, NODES_FIRST, mark - NODES_FIRST) ||
                     taken(state, mark + 1, NODES_FIRST + NODES - mark - 1);
    if (elsewhere && !taken(state, OMPI_CRYPTMPIO_LOCK_PROVEN, 1)) {
        error = refuse(state);
    } else if (OPAL_CRYPT_OK != storage->lock(storage, mark, 1, false)) {
        error = ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
    }
    (void) storage->unlock(storage, OMPI_CRYPTMPIO_LOCK_ENTER, 1);
    return error;
}

int ompi_common_cryptmpio_presence(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    bool apart = ompi_common_cryptmpio_apart(state->fh), root = 0 == state->fh->f_rank;
    uint64_t mark = mark_of_this_node();
    int error = MPI_SUCCESS;

    if (root && !apart && (ompi_common_cryptmpio_one_node(state->path)
                           || (!ompi_common_cryptmpio_params.trust_locks && !state->posix.nfs))) {
        error = mark_node(state, mark);
    } else if (root && (OPAL_CRYPT_OK != storage->lock(storage, mark, 1, false) ||
                        (apart && !state->untested && OPAL_CRYPT_OK != storage->lock(storage, OMPI_CRYPTMPIO_LOCK_PROVEN, 1, false)))) {
        error = ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS == error && !root && OPAL_CRYPT_OK != storage->lock(storage, mark, 1, false)) {
        error = ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
    }
    return ompi_common_cryptmpio_agree(state->fh, error);
}

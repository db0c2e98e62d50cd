/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Storage of an encrypted file under POSIX: a descriptor, an extended attribute, and range locks of the open file
 * description, which know nodes where the file system does.  No MPI: tools use this, too.
 */
#ifndef OMPI_COMMON_CRYPTMPIO_POSIX_H
#define OMPI_COMMON_CRYPTMPIO_POSIX_H

#include "opal/mca/common/cryptfile/file/file.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_names.h"

#include <limits.h>

#pragma GCC visibility push(default)

typedef struct ompi_common_cryptmpio_posix {
    opal_cryptfile_storage_t super;
    int data_fd;                        /* the caller's */
    bool may_write;
    bool remote;                        /* the file system is not local to this node */
    bool nfs;
} ompi_common_cryptmpio_posix_t;

void ompi_common_cryptmpio_posix_init(ompi_common_cryptmpio_posix_t *posix, int data_fd, bool may_write);
/* Fill in `remote` and `nfs`, which are false before. */
void ompi_common_cryptmpio_posix_find_system(ompi_common_cryptmpio_posix_t *posix);

/* From now on, the order of writes holds on the storage device, too. */
void ompi_common_cryptmpio_posix_durable(ompi_common_cryptmpio_posix_t *posix);

/* Release all locks. */
void ompi_common_cryptmpio_posix_release(ompi_common_cryptmpio_posix_t *posix);

/* The attribute: malloc'd, or NULL and 0 where there is none. */
int ompi_common_cryptmpio_posix_attribute_read(const ompi_common_cryptmpio_posix_t *posix, uint8_t **bytes, size_t *count);
/* Write the map or, if it does not fit, its digest once the file is on the storage.  Writes nothing if the file
 * system has no attributes. */
int ompi_common_cryptmpio_posix_attribute_write(const ompi_common_cryptmpio_posix_t *posix,
                                                const opal_cryptfile_map_t *map);
int ompi_common_cryptmpio_posix_sync(const ompi_common_cryptmpio_posix_t *posix);

/* ---- the file's rights ---- */

/* Copy the access control list of `of`, or remove fd's if `of` has none; false: errno. */
bool ompi_common_cryptmpio_posix_copy_acl(int fd, int of);

/* Has it no access control list?  With one, the group bits of the mode are the list's mask, not the rights of
 * the group. */
bool ompi_common_cryptmpio_posix_no_acl(int of);

/* ---- its names ---- */

/* As rename(2), but never over something that exists. */
int ompi_common_cryptmpio_posix_rename(const char *from, const char *to);

/* Make the names in the directory of this path survive a power failure. */
int ompi_common_cryptmpio_posix_sync_names(const char *path);

/* ---- using (cryptmpio_posix_use.c): many processes, or one that replaces or seals it; and making, by one ---- */

typedef enum {
    OMPI_CRYPTMPIO_USE_OURS,            /* until it is closed */
    OMPI_CRYPTMPIO_USE_BUSY,            /* another has it exclusively or, for an exclusive request, at all */
    OMPI_CRYPTMPIO_USE_OTHER            /* the path now leads to another file */
} ompi_common_cryptmpio_use_t;

/* Before anything in the file is trusted.  Does not wait.  ERR_STORAGE with errno: there are no locks. */
int ompi_common_cryptmpio_posix_use(const ompi_common_cryptmpio_posix_t *posix, const char *path, bool alone,
                                    ompi_common_cryptmpio_use_t *use);

/* For messages: why the file cannot be used, if the result is not USE_OURS. */
const char *ompi_common_cryptmpio_posix_why_not(ompi_common_cryptmpio_use_t use);

/* Does that path lead to the open file? */
bool ompi_common_cryptmpio_posix_is_at(int fd, const char *path);
/* The path of the open file behind all links, malloc'd: as the kernel has it or, if that does not lead there, as `path` does.  NULL:
 * neither. */
char *ompi_common_cryptmpio_posix_real_path(int fd, const char *path);

/* Wait until no other process is making the file, and keep others from it: a process that may only read keeps out makers,
 * but not other readers.  *there: the path still leads to the file.  ERR_STORAGE with errno: there are no locks. */
int ompi_common_cryptmpio_posix_maker_lock(ompi_common_cryptmpio_posix_t *posix, const char *path, bool *there);
void ompi_common_cryptmpio_posix_maker_unlock(ompi_common_cryptmpio_posix_t *posix);

/* ---- locks, besides those of blocks ---- */

/* Lock bytes for more than one block, below those of all blocks. */
#define OMPI_CRYPTMPIO_LOCK_PROBE   ((UINT64_C(1) << 62) - 1)
#define OMPI_CRYPTMPIO_LOCK_MAKER   ((UINT64_C(1) << 62) - 2)
#define OMPI_CRYPTMPIO_LOCK_REFRESH ((UINT64_C(1) << 62) - 3)
#define OMPI_CRYPTMPIO_LOCK_ENTER   ((UINT64_C(1) << 62) - 32)
#define OMPI_CRYPTMPIO_LOCK_PROVEN  ((UINT64_C(1) << 62) - 33)
#define OMPI_CRYPTMPIO_LOCK_USE     ((UINT64_C(1) << 62) - 34)
#define OMPI_CRYPTMPIO_LOCK_WRITERS ((UINT64_C(1) << 62) - 35)
#define OMPI_CRYPTMPIO_LOCK_UNSEAL  ((UINT64_C(1) << 62) - 36)

/* Wait for a lock; ERR_STORAGE with errno, ETIMEDOUT when the time limit is over (cryptmpio_posix_wait.c). */
int ompi_common_cryptmpio_posix_take_lock(int fd, short type, uint64_t at, uint64_t bytes);

/* One step of a wait that does not take the lock, with the same limit. */
int ompi_common_cryptmpio_posix_wait_once(int fd, uint64_t at, opal_cryptfile_wait_t *wait);

/* A lock that this process waits for: its file and holder (0: unknown), the wait so far, and whether it gives up. */
typedef void (*ompi_common_cryptmpio_waits_t)(const char *file, pid_t holder, unsigned seconds, bool last);
/* For all files: the function called after 10 seconds of waiting, and after `timeout` seconds, if not 0. */
void ompi_common_cryptmpio_posix_on_wait(ompi_common_cryptmpio_waits_t waits, unsigned timeout);
unsigned ompi_common_cryptmpio_posix_wait_limit(void);

/* Drop what this node caches of an encrypted file: the next read comes from the server. */
int ompi_common_cryptmpio_posix_refresh(ompi_common_cryptmpio_posix_t *posix);

/* Lock one byte if no conflicting lock exists. */
int ompi_common_cryptmpio_posix_lock_now(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, bool exclusive, bool *got);
/* The shared locks of a user, all at once or none: on USE and, to write, on WRITERS beside it. */
int ompi_common_cryptmpio_posix_share_now(const ompi_common_cryptmpio_posix_t *posix, bool writes, bool *got);

/* Could another process lock this byte now? */
int ompi_common_cryptmpio_posix_lock_test(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, bool *is_free);

/* Does this process's exclusive lock on a byte survive closing another descriptor?  Traditional
 * POSIX locks do not, and a file system may support no others. */
int ompi_common_cryptmpio_posix_lock_stays(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, bool *stays);

/* Are these bytes free of others' locks, shared or exclusive? */
int ompi_common_cryptmpio_posix_locked(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, uint64_t bytes, bool *is_free);

/* ---- ranges of locks, in a file of their own (cryptmpio_posix_ranges.c) ---- */

int ompi_common_cryptmpio_posix_ranges_take(ompi_common_cryptmpio_posix_t *posix);
/* Does another process, which has taken them, have these locks, and no more? */
int ompi_common_cryptmpio_posix_ranges_test(ompi_common_cryptmpio_posix_t *posix, bool *right);

/* ---- what a node sees of others' writes (cryptmpio_posix_pages.c) ---- */

#define OMPI_CRYPTMPIO_PAGES_MAX 4      /* values */

typedef enum {
    OMPI_CRYPTMPIO_SEEN_RIGHT,
    OMPI_CRYPTMPIO_SEEN_ERROR,          /* errno; it is ESTALE for the following two */
    OMPI_CRYPTMPIO_SEEN_SIZE,           /* another size */
    OMPI_CRYPTMPIO_SEEN_BYTES           /* other bytes */
} ompi_common_cryptmpio_seen_t;

/* Write the pages of this value, or check that the file has these, and no more. */
ompi_common_cryptmpio_seen_t ompi_common_cryptmpio_posix_pages(ompi_common_cryptmpio_posix_t *posix, bool writing, uint8_t value);
/* The same under the lock PROBE, which is released afterwards. */
ompi_common_cryptmpio_seen_t ompi_common_cryptmpio_posix_pages_locked(ompi_common_cryptmpio_posix_t *posix, bool writing, uint8_t value);

#pragma GCC visibility pop

#endif

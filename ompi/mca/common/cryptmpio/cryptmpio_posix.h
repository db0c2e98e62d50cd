/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Storage of an encrypted file as POSIX has it: two descriptors, an extended
 * attribute, and range locks of the open file description, which know nodes
 * where the file system does.  No MPI: tools use this, too.
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
    int sidecar_fd;                     /* ours; -1: none */
    bool may_write;
    bool both;                          /* locks are of both parts, not of the sidecar alone: */
                                        /* the file system is not one of this node */
    bool nfs;
} ompi_common_cryptmpio_posix_t;

void ompi_common_cryptmpio_posix_init(ompi_common_cryptmpio_posix_t *posix, int data_fd, bool may_write);

/* Where the sidecar of a file lies, whatever links lead to the file; malloc'd,
 * or NULL with errno. */
char *ompi_common_cryptmpio_posix_sidecar(const char *path);

/* Open it, never through a link; `creating`: 0, or O_CREAT with or without O_EXCL,
 * as for open(2).  ERR_STORAGE with errno. */
int ompi_common_cryptmpio_posix_open(ompi_common_cryptmpio_posix_t *posix, const char *sidecar, int creating);
void ompi_common_cryptmpio_posix_close(ompi_common_cryptmpio_posix_t *posix);

/* The attribute: malloc'd, or NULL and 0 where there is none. */
int ompi_common_cryptmpio_posix_attribute_read(const ompi_common_cryptmpio_posix_t *posix, uint8_t **bytes, size_t *count);
/* The map, or its digest where it does not fit, after the sidecar was brought to the storage; nothing where the file system
 * has no attributes. */
int ompi_common_cryptmpio_posix_attribute_write(const ompi_common_cryptmpio_posix_t *posix,
                                                const opal_cryptfile_map_t *map);
int ompi_common_cryptmpio_posix_attribute_remove(const ompi_common_cryptmpio_posix_t *posix);

/* Both parts to storage.  Who syncs the data himself: begin before, the sidecar
 * after, so that the sidecar is on its way while he waits for the data. */
int ompi_common_cryptmpio_posix_sync(const ompi_common_cryptmpio_posix_t *posix);
void ompi_common_cryptmpio_posix_sync_begin(const ompi_common_cryptmpio_posix_t *posix);
int ompi_common_cryptmpio_posix_sync_sidecar(const ompi_common_cryptmpio_posix_t *posix);

/* ---- making: several may want to at the same time (cryptmpio_posix_make.c) ---- */

/* Wait until nobody is making the sidecar that is open, and nobody else can: a
 * process that may only read keeps out makers, but no other readers.  *there: it is
 * still what lies at that path.  ERR_STORAGE with errno: there are no locks. */
int ompi_common_cryptmpio_posix_maker_lock(ompi_common_cryptmpio_posix_t *posix, const char *sidecar, bool *there);
void ompi_common_cryptmpio_posix_maker_unlock(ompi_common_cryptmpio_posix_t *posix);

/* Has the sidecar neither a map nor room for anything else yet? */
bool ompi_common_cryptmpio_posix_is_vacant(ompi_common_cryptmpio_posix_t *posix);

/* Under the lock: whoever may use the data may use the new sidecar, as far as its maker can give that.  (A umask is for new
 * files, and the data is there.) */
void ompi_common_cryptmpio_posix_admit(const ompi_common_cryptmpio_posix_t *posix);

/* The access control list of `of`, or none; false: errno. */
bool ompi_common_cryptmpio_posix_copy_acl(int fd, int of);

/* Has it none?  Where it has one, the group's bits of its mode are the most that the list gives to anybody, and no rights of
 * the group. */
bool ompi_common_cryptmpio_posix_no_acl(int of);

/* Under the lock: what was begun is deleted, and closed.  ERR_STORAGE with errno:
 * it lies there still. */
int ompi_common_cryptmpio_posix_abandon(ompi_common_cryptmpio_posix_t *posix, const char *sidecar);

/* Under the lock: give the sidecar the name UUID.mpic-old in the same directory, never in the place of another one,
 * and close it.  ERR_STORAGE with errno: it lies there still. */
#define OMPI_CRYPTMPIO_ASIDE ".mpic-old"
int ompi_common_cryptmpio_posix_set_aside(ompi_common_cryptmpio_posix_t *posix, const char *sidecar);

/* As rename(2), but never over something that exists. */
int ompi_common_cryptmpio_posix_rename(const char *from, const char *to);

/* From now on the order of writes holds on the storage, too. */
void ompi_common_cryptmpio_posix_durable(ompi_common_cryptmpio_posix_t *posix);

/* That the two parts exist outlives a loss of power. */
int ompi_common_cryptmpio_posix_sync_names(const char *sidecar);

/* ---- by UUID (cryptmpio_posix_find.c): of a file that was renamed without its sidecar ---- */

typedef enum {
    OMPI_CRYPTMPIO_FIND_NOTHING,        /* its own sidecar is beside it, or none was found, or the attribute is unreadable */
    OMPI_CRYPTMPIO_FIND_BROUGHT,        /* it lies beside it now; what lay there was set aside */
    OMPI_CRYPTMPIO_FIND_ELSEWHERE       /* `found` seems to belong to it, but must not be, or cannot be, renamed here */
} ompi_common_cryptmpio_find_t;

/* Before the sidecar is opened. */
ompi_common_cryptmpio_find_t ompi_common_cryptmpio_posix_find(const ompi_common_cryptmpio_posix_t *posix, const char *sidecar,
                                                              char found[PATH_MAX]);

/* The UUID in the data's attribute, which nobody has verified; false: there is none.  Does the open sidecar have it? */
bool ompi_common_cryptmpio_posix_uuid(const ompi_common_cryptmpio_posix_t *posix, uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES]);
bool ompi_common_cryptmpio_posix_uuid_at(const char *path, uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES]);
bool ompi_common_cryptmpio_posix_is_of(ompi_common_cryptmpio_posix_t *posix, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES]);

/* ---- using (cryptmpio_posix_use.c): many, or one that puts other files in the place of the parts ---- */

typedef enum {
    OMPI_CRYPTMPIO_USE_OURS,            /* until the sidecar is closed */
    OMPI_CRYPTMPIO_USE_BUSY,            /* another has it alone, or, who wants it alone, at all */
    OMPI_CRYPTMPIO_USE_OTHER_SIDECAR,   /* the name has another one since; open it anew */
    OMPI_CRYPTMPIO_USE_OTHER_DATA
} ompi_common_cryptmpio_use_t;

/* With both parts open, before anything of them is believed.  Does not wait.  ERR_STORAGE with
 * errno: there are no locks. */
int ompi_common_cryptmpio_posix_use(const ompi_common_cryptmpio_posix_t *posix, const char *sidecar, bool alone,
                                    ompi_common_cryptmpio_use_t *use);

/* For messages: why a file that is not ours cannot be used now. */
const char *ompi_common_cryptmpio_posix_why_not(ompi_common_cryptmpio_use_t use);

/* Is the open file what lies at that path? */
bool ompi_common_cryptmpio_posix_lies_at(int fd, const char *path);

/* ---- locks, besides those of blocks ---- */

/* Bytes that are locked for more than a block: below all blocks' locks. */
#define OMPI_CRYPTMPIO_LOCK_PROBE   ((UINT64_C(1) << 62) - 1)
#define OMPI_CRYPTMPIO_LOCK_MAKER   ((UINT64_C(1) << 62) - 2)
#define OMPI_CRYPTMPIO_LOCK_REFRESH ((UINT64_C(1) << 62) - 3)
#define OMPI_CRYPTMPIO_LOCK_GATE    ((UINT64_C(1) << 62) - 32)      /* these five: of the sidecar alone */
#define OMPI_CRYPTMPIO_LOCK_PROVEN  ((UINT64_C(1) << 62) - 33)
#define OMPI_CRYPTMPIO_LOCK_USE     ((UINT64_C(1) << 62) - 34)
#define OMPI_CRYPTMPIO_LOCK_WRITERS ((UINT64_C(1) << 62) - 35)
#define OMPI_CRYPTMPIO_LOCK_UNSEAL  ((UINT64_C(1) << 62) - 36)
#define OMPI_CRYPTMPIO_LOCKS_FIRST  ((UINT64_C(1) << 62) - 16)

/* Wait for a lock; ERR_STORAGE with errno, ETIMEDOUT after the time that is allowed (cryptmpio_posix_wait.c). */
int ompi_common_cryptmpio_posix_take_lock(int fd, short type, uint64_t at, uint64_t bytes);

/* Of a lock that this process has waited for: its file, who has it (0: not known), for how long, and whether that was the last try. */
typedef void (*ompi_common_cryptmpio_waits_t)(const char *file, pid_t holder, unsigned seconds, bool last);
/* Of all files: what is called after 10 seconds, and at the end of `timeout` seconds, if not 0. */
void ompi_common_cryptmpio_posix_on_wait(ompi_common_cryptmpio_waits_t waits, unsigned timeout);

/* Whatever this node keeps of the two parts: what is read next is what the server has. */
int ompi_common_cryptmpio_posix_refresh(ompi_common_cryptmpio_posix_t *posix);

/* Lock one byte of the sidecar alone, if nobody has it. */
int ompi_common_cryptmpio_posix_lock_now(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, bool exclusive, bool *got);

/* Could another process lock this byte now, of either part that is locked? */
int ompi_common_cryptmpio_posix_lock_test(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, bool *is_free);

/* Is the exclusive lock that this process has on a byte of the sidecar still there after it closed another descriptor?  Locks of
 * the old kind are not, and a file system may know no others. */
bool ompi_common_cryptmpio_posix_lock_stays(const ompi_common_cryptmpio_posix_t *posix, uint64_t at);

/* Has nobody else a lock, shared or not, on these bytes of the sidecar? */
int ompi_common_cryptmpio_posix_locked(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, uint64_t bytes, bool *is_free);

#pragma GCC visibility pop

#endif

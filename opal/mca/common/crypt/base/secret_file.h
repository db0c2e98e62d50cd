/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading a file that holds a secret: opened without following a link, checked on the descriptor (a regular file,
 * ours, readable by us only, on a file system of this node, in a directory where no other user can rename it), then
 * read into memory of crypt_secmem.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_SECRET_FILE_H
#define OPAL_CRYPT_BASE_SECRET_FILE_H

#include "base.h"

#include <sys/types.h>

struct stat;

#pragma GCC visibility push(default)

/* From fstatfs: does the file system keep its data on this node? */
typedef enum {
    OPAL_CRYPT_FS_LOCAL,
    OPAL_CRYPT_FS_NETWORK,
    OPAL_CRYPT_FS_UNKNOWN       /* treated as a network */
} opal_crypt_fs_t;

/* `name` gets a name for messages. */
opal_crypt_fs_t opal_crypt_fs_kind(unsigned long magic, const char **name);

/* The magic numbers of local file systems, in hexadecimal, each between two spaces. */
#define OPAL_CRYPT_FS_LOCAL_BYTES 256
void opal_crypt_fs_local(char text[OPAL_CRYPT_FS_LOCAL_BYTES]);

/* The same for the file system of `path`; ERR_CONFIG if it cannot be determined. */
int opal_crypt_fs_of(const char *path, opal_crypt_fs_t *kind, const char **name);

/* The same for an open file, with the number for messages; UNKNOWN if it cannot be determined. */
opal_crypt_fs_t opal_crypt_fs_of_open(int fd, const char **name, unsigned long *magic);

/* Read a file of `count` bytes: 0, or errno.  *whole is false if it has more, or fewer. */
int opal_crypt_read_whole(int fd, void *bytes, size_t count, bool *whole);

typedef struct opal_crypt_secret_file {
    uint8_t *bytes;             /* memory of crypt_secmem, the caller's to free; followed by a zero */
    size_t count;
    opal_crypt_why_t warning;           /* topic NULL: none */
} opal_crypt_secret_file_t;

/* Refuse an open file that is not on a file system of this node, unless allow_network (then `warning`, which may be
 * NULL, says so). */
int opal_crypt_secret_file_place(int fd, const char *path, const char *what, bool allow_network,
                                 opal_crypt_why_t *warning, opal_crypt_why_t *why);

/* Open (O_PATH) the directory of a secret.  Refuse one where another user can replace the file: it belongs to neither
 * us nor root, or others may write to it and it has no sticky bit. */
int opal_crypt_secret_file_directory(const char *path, const char *what, int *directory, opal_crypt_why_t *why);

/* At least `min`, at most `max` bytes.  `what` names the file for messages
 * ("pre-shared key").  ERR_CONFIG with `why` filled. */
int opal_crypt_secret_file_read(const char *path, const char *what, size_t min, size_t max,
                                bool allow_network, opal_crypt_secret_file_t *file,
                                opal_crypt_why_t *why);

/* A file of exactly 64 hexadecimal digits (and at most a line end): 32 bytes of crypt_secmem, the caller's to free. */
int opal_crypt_secret_file_hex(const char *path, const char *what, bool allow_network,
                               uint8_t **secret, opal_crypt_why_t *warning,
                               opal_crypt_why_t *why);

/* ---- a secret that a group shares (crypt/base/secret_group.c) ---- */

/* The members of `group` may read it; it belongs to `owner` or root, who alone may change it. */
typedef struct opal_crypt_secret_group {
    uid_t owner;
    gid_t group;
} opal_crypt_secret_group_t;

/* From "[OWNER:]GROUP", names or numbers.  Without OWNER, this user. */
int opal_crypt_secret_group_parse(const char *text, opal_crypt_secret_group_t *group, opal_crypt_why_t *why);

/* Refuse a directory that is not the group's, that others than its owner can change, or that has an access list.  Not for
 * O_PATH. */
int opal_crypt_secret_group_directory(int fd, const char *what, const char *path, const opal_crypt_secret_group_t *group,
                                      opal_crypt_why_t *why);
/* Refuse a file that others can read, or others than its owner change, or that has an access list.  It may also be
 * private. */
int opal_crypt_secret_group_file(int fd, const struct stat *status, const char *what, const char *path,
                                 const opal_crypt_secret_group_t *group, opal_crypt_why_t *why);

/* secret_file_read and secret_file_hex by these rules; group NULL: as above.  The second is for a file that is not in the
 * group's directory. */
int opal_crypt_secret_group_read(const opal_crypt_secret_group_t *group, const char *path, const char *what, size_t min, size_t max,
                                 bool allow_network, opal_crypt_secret_file_t *file, opal_crypt_why_t *why);
int opal_crypt_secret_group_hex(const opal_crypt_secret_group_t *group, const char *path, const char *what, bool allow_network,
                                uint8_t **secret, opal_crypt_why_t *warning, opal_crypt_why_t *why);

/* ~/.ompi-crypt/NAME: ERR_CONFIG if there is no home directory, or the name does not fit. */
int opal_crypt_home_path(const char *name, char *path, size_t path_bytes, opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Secrets that a group shares: whom a user names with "[OWNER:]GROUP", and what is checked on the open directory and
 * the open file.
 */
#include "secret_file.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- names ---- */

/* A number need not be known here; the last one is not a user or a group. */
static bool number_of_id(const char *text, uint32_t *id)
{
    char *end;

    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    *id = (uint32_t) value;
    return '\0' != *text && strlen(text) == strspn(text, "0123456789") && 0 == errno && value < UINT32_MAX;
}

static bool uid_of(const char *text, uid_t *owner)
{
    struct passwd entry, *found = NULL;
    char space[4096];
    uint32_t id;

    if (number_of_id(text, &id)) {
        *owner = (uid_t) id;
        return true;
    }
    if (0 != getpwnam_r(text, &entry, space, sizeof(space), &found) || NULL == found) {
        return false;
    }
    *owner = found->pw_uid;
    return true;
}

/* A group may have many members. */
static bool gid_of(const char *text, gid_t *group)
{
    struct group entry, *found = NULL;
    uint32_t id;

    if (number_of_id(text, &id)) {
        *group = (gid_t) id;
        return true;
    }
    for (size_t bytes = 4096; bytes <= 16 << 20; bytes *= 4) {
        char *space = malloc(bytes);
        int error = NULL == space ? ENOMEM : getgrnam_r(text, &entry, space, bytes, &found);

        free(space);
        if (ERANGE != error) {
            *group = 0 == error && NULL != found ? entry.gr_gid : 0;
            return 0 == error && NULL != found;
        }
    }
    return false;
}

int opal_crypt_secret_group_parse(const char *text, opal_crypt_secret_group_t *group, opal_crypt_why_t *why)
{
    const char *colon = strchr(text, ':');
    char *owner = NULL == colon ? NULL : strndup(text, (size_t) (colon - text));
    bool known = NULL == colon || (NULL != owner && uid_of(owner, &group->owner));

    if (NULL == colon) {
        group->owner = geteuid();
    }
    free(owner);
    if (known && gid_of(NULL == colon ? text : colon + 1, &group->group)) {
        return OPAL_CRYPT_OK;
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-group", "%.200s: this node does not know the %s", text,
                             known ? "group" : "owner");
}

/* ---- checks ---- */

static bool no_list(int fd, const char *name)
{
    return fgetxattr(fd, name, NULL, 0) < 0 && (ENODATA == errno || EOPNOTSUPP == errno);
}

/* An access list can give more than the mode shows. */
static int refuse_list(int fd, const char *what, const char *path, opal_crypt_why_t *why)
{
    return no_list(fd, "system.posix_acl_access") && no_list(fd, "system.posix_acl_default")
               ? OPAL_CRYPT_OK
               : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-group", "%s %.512s: it has an access list (setfacl -b)", what, path);
}

int opal_crypt_secret_group_directory(int fd, const char *what, const char *path, const opal_crypt_secret_group_t *group,
                                      opal_crypt_why_t *why)
{
    struct stat status;

    if (0 != fstat(fd, &status)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-group", "%s %.512s: %s", what, path, strerror(errno));
    }
    if (0 != status.st_uid && group->owner != status.st_uid) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-group",
                                 "%s %.512s: it belongs to user id %lu; %lu is expected (\"OWNER:GROUP\" names another)", what, path,
                                 (unsigned long) status.st_uid, (unsigned long) group->owner);
    }
    if (group->group != status.st_gid || 0 != (status.st_mode & (S_IWGRP | S_IWOTH))) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-group",
                                 "%s %.512s: it belongs to group id %lu and has the mode 0%o; group id %lu and 0750 are expected", what,
                                 path, (unsigned long) status.st_gid, (unsigned) status.st_mode & 07777, (unsigned long) group->group);
    }
    return refuse_list(fd, what, path, why);
}

int opal_crypt_secret_group_file(int fd, const struct stat *status, const char *what, const char *path,
                                 const opal_crypt_secret_group_t *group, opal_crypt_why_t *why)
{
    const bool shared = 0 != (status->st_mode & S_IRGRP);

    if (0 != status->st_uid && group->owner != status->st_uid && geteuid() != status->st_uid) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-owner", "%s %.512s: it belongs to user id %lu; %lu is expected", what,
                                 path, (unsigned long) status->st_uid, (unsigned long) group->owner);
    }
    if (0 != (status->st_mode & (07777 & ~(S_IRUSR | S_IWUSR | S_IRGRP))) || (shared && group->group != status->st_gid)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-mode",
                                 "%s %.512s: it belongs to group id %lu and its mode is 0%o; group id %lu and 0640 are expected", what, path,
                                 (unsigned long) status->st_gid, (unsigned) status->st_mode & 07777, (unsigned long) group->group);
    }
    return refuse_list(fd, what, path, why);
}

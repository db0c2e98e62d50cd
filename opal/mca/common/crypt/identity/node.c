/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Identifies the node: the kernel's boot id, and 16 random bytes in a shared-memory object of this user:
 *
 *     /dev/shm/ompi-crypt-node-UID, 0600, 16 bytes
 *
 * Two processes that publish the same pair share that object, hence a kernel and a /dev/shm.  The first process to
 * open the object fills it, under a lock; if that process was killed, the next one does.  An object that another user
 * made is refused: that user could give two nodes the same bytes.
 */
#include "local.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODE_NONCE_BYTES 16

static int read_boot_id(uint8_t boot_id[16], opal_crypt_why_t *why)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    FILE *file = fopen(path, "re");
    unsigned digits = 0;
    int c;

    memset(boot_id, 0, 16);
    while (NULL != file && EOF != (c = getc(file)) && digits < 32) {
        unsigned digit = (unsigned) c - '0', letter = ((unsigned) c | 0x20) - 'a';

        if (digit < 10 || letter < 6) {
            boot_id[digits / 2] = (uint8_t) (boot_id[digits / 2] << 4 | (digit < 10 ? digit : letter + 10));
            ++digits;
        }
    }
    if (NULL != file) {
        fclose(file);
    }
    return 32 == digits ? OPAL_CRYPT_OK
         : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "node-boot-id", "%s", path);
}

static int refuse_object(const char *path, int error, opal_crypt_why_t *why)
{
    struct stat status;

    if (0 == lstat(path, &status) && status.st_uid != geteuid()) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "node-hijacked",
                                 "%s: it belongs to user id %lu, this process runs as %lu", path,
                                 (unsigned long) status.st_uid, (unsigned long) geteuid());
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG,
                             ENOSPC == error || EDQUOT == error ? "node-full" : "node-object", "%s: %s", path,
                             strerror(error));
}

static int check_object(int fd, const char *path, opal_crypt_why_t *why)
{
    struct stat status;

    if (0 != fstat(fd, &status)) {
        return refuse_object(path, errno, why);
    }
    if (status.st_uid != geteuid()) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "node-hijacked",
                                 "%s: it belongs to user id %lu, this process runs as %lu", path,
                                 (unsigned long) status.st_uid, (unsigned long) geteuid());
    }
    if (!S_ISREG(status.st_mode) || 0 != (status.st_mode & (S_IRWXG | S_IRWXO))) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "node-object",
                                 "%s: its type and mode are 0%o, where a file of mode 0600 is expected",
                                 path, (unsigned) status.st_mode);
    }
    if (S_IRUSR + S_IWUSR != (status.st_mode & (S_IRUSR | S_IWUSR)) && 0 != fchmod(fd, S_IRUSR | S_IWUSR)) {  /* the umask */
        return refuse_object(path, errno, why);
    }
    return OPAL_CRYPT_OK;
}

/* Under the lock: read the nonce, or generate it if the object is empty. */
static int read_or_fill(int fd, const char *path, uint8_t nonce[NODE_NONCE_BYTES], opal_crypt_why_t *why)
{
    ssize_t got = pread(fd, nonce, NODE_NONCE_BYTES, 0);

    if (NODE_NONCE_BYTES == got) {
        return OPAL_CRYPT_OK;
    }
    opal_crypt_random(nonce, NODE_NONCE_BYTES);
    errno = got < 0 ? errno : 0;
    if (got < 0 || NODE_NONCE_BYTES != pwrite(fd, nonce, NODE_NONCE_BYTES, 0)) {
        return refuse_object(path, 0 != errno ? errno : ENOSPC, why);
    }
    return OPAL_CRYPT_OK;
}

enum { OPEN_FLAGS = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK };

/* As left by a process with an unusual umask that was killed, or is still at it.  The directory is sticky. */
static bool is_ours_of_mode_0(const char *path)
{
    struct stat status;
    const bool found = 0 == lstat(path, &status);

    errno = EACCES;
    return found && S_ISREG(status.st_mode) && status.st_uid == geteuid() && 0 == (status.st_mode & 07777);
}

static int read_node_nonce(uint8_t nonce[NODE_NONCE_BYTES], opal_crypt_why_t *why)
{
    char path[64];
    int fd, rc;

    snprintf(path, sizeof(path), "/dev/shm/ompi-crypt-node-%lu", (unsigned long) geteuid());
    errno = 0;
    fd = open(path, OPEN_FLAGS, 0600);
    if (fd < 0 && EACCES == errno && is_ours_of_mode_0(path) && 0 == chmod(path, 0600)) {
        fd = open(path, OPEN_FLAGS, 0600);
    }
    if (fd < 0) {
        return refuse_object(path, errno, why);
    }
    rc = check_object(fd, path, why);
    if (OPAL_CRYPT_OK == rc) {
        while (0 != (rc = flock(fd, LOCK_EX)) && EINTR == errno) {
        }
        rc = 0 == rc ? read_or_fill(fd, path, nonce, why) : refuse_object(path, errno, why);
        (void) flock(fd, LOCK_UN);              /* explicitly: a child forked meanwhile has it open, too */
    }
    close(fd);
    return rc;
}

int opal_crypt_node_identity(uint8_t boot_id[16], uint8_t node_nonce[16], opal_crypt_why_t *why)
{
    int rc = read_boot_id(boot_id, why);

    return OPAL_CRYPT_OK == rc ? read_node_nonce(node_nonce, why) : rc;
}

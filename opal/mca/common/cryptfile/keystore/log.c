/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The log of a keystore: one line for each grant and each refusal, appended by
 * one write, so that lines of several processes do not mix.
 *
 *     2026-11-21T09:00:00Z host uid=1000 pid=42 unwrap label=lab version=1 file=0011... granted
 *
 * In the log of a user who does not own the keystore (a member of a group, or of a site with a key server), "keystore=DIRECTORY" follows the file.
 */
#include "keystore_object.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A member of a group cannot write into its keystore, and logs in a file of their own: ~/.ompi-crypt/keystore.log. */
static int path_of_member(char *path, size_t bytes, opal_crypt_why_t *why)
{
    int rc = opal_crypt_home_path("keystore.log", path, bytes, why);
    char *slash = OPAL_CRYPT_OK == rc ? strrchr(path, '/') : NULL;

    if (NULL == slash) {
        return rc;
    }
    *slash = '\0';
    int fd = 0 != mkdir(path, 0700) && EEXIST != errno ? -1 : open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    rc = fd < 0 ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-log", "%.512s: %s", path, strerror(errno))
                : opal_cryptfile_keystore_directory_check(NULL, fd, path, why);
    if (fd >= 0) {
        close(fd);
    }
    *slash = '/';
    return rc;
}

int opal_cryptfile_keystore_log_open(opal_cryptfile_keystore_t *keystore, const char *path,
                                     opal_crypt_why_t *why)
{
    char own[4200];
    struct stat status;

    if (NULL == path && keystore->of_another) {
        int rc = path_of_member(own, sizeof(own), why);

        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
        path = own;
    } else if (NULL == path) {
        snprintf(own, sizeof(own), "%s/log", keystore->directory);
        path = own;
    }
    keystore->log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (keystore->log_fd < 0 && ENOENT == errno && path == own && !keystore->of_another) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-missing", "there is no keystore %.512s",
                                 keystore->directory);
    }
    if (keystore->log_fd < 0 || 0 != fstat(keystore->log_fd, &status)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-log", "%.512s: %s", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-log", "%.512s: neither a file nor a device",
                                 path);
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_keystore_log(opal_cryptfile_keystore_t *keystore, const char *verb, const char *label,
                                unsigned version, const uint8_t *uuid, const char *refusal,
                                opal_crypt_why_t *why)
{
    char line[1280], host[65] = "", stamp[32], file[2 * OPAL_CRYPTFILE_UUID_BYTES + 1] = "-", where[600] = "";
    time_t now = 0 != keystore->now ? keystore->now : time(NULL);
    struct tm parts;

    if (0 != gethostname(host, sizeof(host) - 1)) {
        strcpy(host, "-");
    }
    gmtime_r(&now, &parts);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (NULL != uuid) {
        opal_crypt_hex_write(uuid, OPAL_CRYPTFILE_UUID_BYTES, file);
    }
    if (keystore->of_another) {
        snprintf(where, sizeof(where), " keystore=%.512s", keystore->directory);
        opal_crypt_harmless(where, "");
    }
    int bytes = snprintf(line, sizeof(line), "%s %s uid=%lu pid=%ld %s label=%s version=%u file=%s%s %s%s\n", stamp, host,
                         (unsigned long) geteuid(), (long) getpid(), verb, label, version, file, where,
                         NULL == refusal ? "granted" : "refused: ", NULL == refusal ? "" : refusal);
    ssize_t written;
    if (bytes >= (int) sizeof(line)) {          /* an invalid label was refused */
        bytes = (int) sizeof(line) - 1;
        line[bytes - 1] = '\n';
    }
    do {
        written = write(keystore->log_fd, line, (size_t) bytes);
    } while (written < 0 && EINTR == errno);
    if (written != bytes) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-log", "%s",
                                 written < 0 ? strerror(errno) : "the disk is full");
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_keystore_log_end(opal_cryptfile_keystore_t *keystore, const char *verb, const char *label,
                                    unsigned version, int rc)
{
    if (OPAL_CRYPT_OK != rc) {
        (void) opal_cryptfile_keystore_log(keystore, verb, label, version, NULL, "the keystore could not be changed", NULL);
    }
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file compact: a new sidecar without rooms replaces the old one, by one
 * rename.  Interrupted overwrites are finished first, so the keys of all regions are
 * needed, and every block must open.  Otherwise the data is not changed, and a seal
 * stays valid.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

static int failed(const char *path) { return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(errno)); }

static int finish_region(const mpicrypt_file_t *file, uint32_t number)
{
    uint64_t blocks = opal_cryptfile_block_count(file->file, number, file->bytes);
    const char *label = file->map->regions[number].label;
    int rc = OPAL_CRYPT_OK;

    if (NULL == file->keys[number].data_key) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: region %u: %s: there is no key for it here", file->path, (unsigned) number, label);
    }
    for (uint64_t block = 0; block < blocks && OPAL_CRYPT_OK == rc; ++block) {
        opal_cryptfile_block_condition_t condition;
        uint32_t plain_bytes;
        rc = opal_cryptfile_check(file->file, number, block, &condition, &plain_bytes);
        if (OPAL_CRYPT_OK == rc && OPAL_CRYPTFILE_BLOCK_BAD == condition) {
            return mpicrypt_error(MPICRYPT_FAILED, "%s: region %u, block %llu does not open; see 'mpicrypt file verify'", file->path,
                                  (unsigned) number, (unsigned long long) block);
        }
        /* A block may open although its data is lost: then it was its room that opened. */
        if (OPAL_CRYPT_OK == rc && OPAL_CRYPTFILE_BLOCK_BEHIND == condition) {
            rc = opal_cryptfile_finish_block(file->file, number, block);
        }
        if (0 == block % 256) {
            mpicrypt_progress(label, block, blocks);
        }
    }
    mpicrypt_progress_end();
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : failed(file->path);
}

/* Write the new sidecar, with the mode and owner of the old one. */
static int write_new(const mpicrypt_file_t *file, const char *path)
{
    ompi_common_cryptmpio_posix_t posix;
    int rc = OPAL_CRYPT_ERR_STORAGE;

    ompi_common_cryptmpio_posix_init(&posix, file->posix.data_fd, true);
    posix.sidecar_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (posix.sidecar_fd >= 0 && mpicrypt_file_own_as(posix.sidecar_fd, file->posix.sidecar_fd)) {
        opal_cryptfile_storage_t *from = (opal_cryptfile_storage_t *) (uintptr_t) &file->posix.super;
        rc = opal_cryptfile_sidecar_compact(from, &posix.super, file->map);
        rc = OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_sync(&posix) : rc;
    }
    int error = errno;
    ompi_common_cryptmpio_posix_close(&posix);
    errno = error;
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK
           : OPAL_CRYPT_ERR_STORAGE == rc ? failed(path) : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, opal_crypt_strerror(rc));
}

static void print(const mpicrypt_file_t *file, const struct stat *before)
{
    struct stat after;

    if (0 == stat(file->sidecar, &after)) {
        printf("%s: %llu bytes, of which %llu are on disk; before, %llu and %llu\n", file->sidecar, (unsigned long long) after.st_size,
               512 * (unsigned long long) after.st_blocks, (unsigned long long) before->st_size,
               512 * (unsigned long long) before->st_blocks);
    }
}

static int compact(const mpicrypt_file_t *file)
{
    struct stat before;
    const char *part;
    uint64_t number;
    int code = 0 == fstat(file->posix.sidecar_fd, &before) ? MPICRYPT_OK : failed(file->sidecar);

    if (MPICRYPT_OK == code) {
        code = mpicrypt_file_begin_over(file->sidecar, &part, &number);
    }
    if (MPICRYPT_OK != code) {
        return code;
    }
    code = write_new(file, part);
    if (MPICRYPT_OK != code) {
        mpicrypt_file_drop();
        return code;
    }
    code = mpicrypt_file_finish_one(file->sidecar, &before);
    if (MPICRYPT_OK == code) {
        print(file, &before);
    }
    return code;
}

int mpicrypt_file_compact(const mpicrypt_file_options_t *options, const char *path)
{
    mpicrypt_file_options_t with = *options;
    mpicrypt_file_t file;

    with.alone = true;
    int code = mpicrypt_file_open_verified(&with, path, true, &file);

    if (MPICRYPT_OK != code) {
        return code;
    }
    code = ompi_common_cryptmpio_posix_is_one(&file.posix)
               ? mpicrypt_error(MPICRYPT_FAILED, "%s: it has no sidecar that could be shrunk", path) : mpicrypt_file_check_seal(&file);
    for (uint32_t i = 0; MPICRYPT_OK == code && i < file.map->region_count; ++i) {
        code = file.map->regions[i].encrypted ? finish_region(&file, i) : MPICRYPT_OK;
    }
    if (MPICRYPT_OK == code && OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_sync(&file.posix)) {
        code = failed(path);
    }
    code = MPICRYPT_OK == code ? compact(&file) : code;
    mpicrypt_file_close(&file);
    return code;
}

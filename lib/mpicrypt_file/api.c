/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The exported calls: arguments are checked, outputs are as long as the caller's struct, a thread is not canceled while it
 * holds a lock, and a forked child is refused.
 */
#include "lib/mpicrypt_file/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "opal/mca/common/cryptfile/file/seal.h"

#define API __attribute__((visibility("default")))

enum { CACHE_BYTES = 16 << 20 };

/* The structs of the first release, which callers have that were compiled with it.  They end without padding. */
#define INFO_BYTES   sizeof(mpicrypt_file_info_t)
#define REGION_BYTES sizeof(mpicrypt_file_region_t)
#define OPTION_BYTES sizeof(mpicrypt_file_options_t)
#if defined(__LP64__)
_Static_assert(48 == OPTION_BYTES && 44 == offsetof(mpicrypt_file_options_t, threads), "mpicrypt_file_options_t");
_Static_assert(112 == INFO_BYTES && 40 == offsetof(mpicrypt_file_info_t, seal_root), "mpicrypt_file_info_t");
_Static_assert(152 == REGION_BYTES && 120 == offsetof(mpicrypt_file_region_t, displacement)
               && 144 == offsetof(mpicrypt_file_region_t, once), "mpicrypt_file_region_t");
#endif
_Static_assert(offsetof(mpicrypt_file_info_t, reserved) + 7 == INFO_BYTES, "mpicrypt_file_info_t");
_Static_assert(offsetof(mpicrypt_file_region_t, reserved_3) + 4 == REGION_BYTES, "mpicrypt_file_region_t");
_Static_assert(offsetof(mpicrypt_file_options_t, threads) + 4 == OPTION_BYTES, "mpicrypt_file_options_t");

/* ---- what every call begins and ends with ---- */

static int api_begin(void)
{
    int before;

    (void) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static int api_end(int before, int status)
{
    (void) pthread_setcancelstate(before, NULL);
    return status;
}

static int api_argument(mpicrypt_file_error_t *error, const char *reason)
{
    return mpicrypt_fail(error, MPICRYPT_FILE_ERR_ARGUMENT, EINVAL, MPICRYPT_FILE_NOWHERE, NULL, "%s", reason);
}

/* May this call use the file? */
static int api_file(const mpicrypt_file_t *file, mpicrypt_file_error_t *error)
{
    if (NULL == file) {
        return api_argument(error, "file is NULL");
    }
    return !mpicrypt_start_foreign(file) ? MPICRYPT_FILE_OK
           : mpicrypt_fail(error, MPICRYPT_FILE_ERR_FORKED, 0, MPICRYPT_FILE_NOWHERE, file->name,
                           "it was opened before fork(): open it again in the child");
}

/* ---- options ---- */

static int api_options(const mpicrypt_file_options_t *given, mpicrypt_asked_t *asked, mpicrypt_file_error_t *error)
{
    mpicrypt_file_options_t options = {.bytes = sizeof(options)};

    if (NULL != given) {
        if (given->bytes < OPTION_BYTES) {
            return api_argument(error, "options: bytes is not sizeof(mpicrypt_file_options_t)");
        }
        const size_t more = given->bytes - sizeof(options);
        if (more > 65536 || !opal_crypt_all_zero((const uint8_t *) given + sizeof(options), more)) {
            return api_argument(error, "options: something is asked for that this version does not know");
        }
        options = *given;
    }
    if (0 != (options.flags & ~MPICRYPT_FILE_PLAIN)) {
        return api_argument(error, "options: this version does not know a flag");
    }
    if (NULL != options.label && !opal_cryptfile_key_label_valid(options.label)) {
        return api_argument(error, "options: a label has 1 to 64 letters, digits, dots, dashes and underscores, and does not begin with a dot");
    }
    if (options.threads > OPAL_CRYPT_TEAM_MAX) {
        return api_argument(error, "options: at most 256 threads");
    }
    *asked = (mpicrypt_asked_t){.label = options.label, .keystore = options.keystore, .sealed = NULL != options.seal_root,
                                .plain = 0 != (options.flags & MPICRYPT_FILE_PLAIN), .threads = 0 == options.threads ? 1 : options.threads,
                                .cache_bytes = 0 == options.cache_bytes ? CACHE_BYTES : options.cache_bytes};
    if (asked->sealed && !opal_cryptfile_seal_parse(options.seal_root, asked->seal_root)) {
        return api_argument(error, "options: seal_root is not 64 hexadecimal digits");
    }
    if (asked->plain && (asked->sealed || NULL != asked->label)) {
        return api_argument(error, "options: a plain file has neither label nor seal");
    }
    return MPICRYPT_FILE_OK;
}

/* ---- opening and closing ---- */

/* A FIFO without a writer, or a tape, must not make us wait.  It is read without this flag's effect, being a regular file. */
static int api_open_path(const char *path) { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }

API int mpicrypt_file_open(const char *path, const mpicrypt_file_options_t *options, mpicrypt_file_t **file,
                           mpicrypt_file_error_t *error)
{
    mpicrypt_asked_t asked;
    int before = api_begin(), status = NULL == path || NULL == file ? api_argument(error, "path or file is NULL")
                                                                    : api_options(options, &asked, error);

    status = MPICRYPT_FILE_OK == status ? mpicrypt_start(path, error) : status;
    if (NULL != file) {
        *file = NULL;
    }
    if (MPICRYPT_FILE_OK == status) {
        int fd = api_open_path(path);
        status = fd < 0 ? mpicrypt_fail_errno(error, errno, path) : mpicrypt_open(fd, path, path, &asked, file, error);
    }
    return api_end(before, status);
}

/* Locks belong to the open file description: one of our own keeps ours apart from those of the caller and of other opens.
 * Where /proc does not give one, the caller's has to do. */
static int api_duplicate(int fd)
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    int own = fcntl(fd, F_GETFD) < 0 ? -1 : api_open_path(link);
    return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

API int mpicrypt_file_open_fd(int fd, const char *name, const mpicrypt_file_options_t *options, mpicrypt_file_t **file,
                              mpicrypt_file_error_t *error)
{
    const char *called = NULL == name ? "file" : name;
    mpicrypt_asked_t asked;
    int before = api_begin(), status = NULL == file ? api_argument(error, "file is NULL") : api_options(options, &asked, error);

    status = MPICRYPT_FILE_OK == status ? mpicrypt_start(called, error) : status;
    if (NULL != file) {
        *file = NULL;
    }
    if (MPICRYPT_FILE_OK == status) {
        int own = api_duplicate(fd);
        status = own < 0 ? mpicrypt_fail_errno(error, errno, called) : mpicrypt_open(own, NULL, called, &asked, file, error);
    }
    return api_end(before, status);
}

API void mpicrypt_file_close(mpicrypt_file_t *file)
{
    int before = api_begin();

    if (NULL != file) {
        mpicrypt_close(file);
    }
    (void) api_end(before, MPICRYPT_FILE_OK);
}

/* ---- reading ---- */

API int mpicrypt_file_read(mpicrypt_file_t *file, uint64_t offset, void *memory, size_t bytes, size_t *got,
                           mpicrypt_file_error_t *error)
{
    size_t unused;
    int before = api_begin(), status = NULL == memory && bytes > 0 ? api_argument(error, "memory is NULL") : api_file(file, error);

    got = NULL == got ? &unused : got;
    *got = 0;
    if (MPICRYPT_FILE_OK == status) {
        status = mpicrypt_read(file, offset, memory, bytes, got, error);
    } else if (NULL != memory) {
        memset(memory, 0, bytes);
    }
    return api_end(before, status);
}

API int mpicrypt_file_size(mpicrypt_file_t *file, uint64_t *bytes, mpicrypt_file_error_t *error)
{
    int before = api_begin(), status = NULL == bytes ? api_argument(error, "bytes is NULL") : api_file(file, error);

    if (NULL != bytes) {
        *bytes = 0;
    }
    return api_end(before, MPICRYPT_FILE_OK == status ? mpicrypt_size(file, bytes, error) : status);
}

API int mpicrypt_file_verify(mpicrypt_file_t *file, int (*progress)(void *arg, uint64_t done, uint64_t of), void *arg, int *stopped,
                             mpicrypt_file_error_t *error)
{
    int before = api_begin(), status = api_file(file, error);

    if (NULL != stopped) {
        *stopped = 0;
    }
    return api_end(before, MPICRYPT_FILE_OK == status ? mpicrypt_verify(file, progress, arg, stopped, error) : status);
}

/* ---- the map ---- */

API int mpicrypt_file_info(mpicrypt_file_t *file, mpicrypt_file_info_t *info, mpicrypt_file_error_t *error)
{
    int before = api_begin(), status = NULL == info || info->bytes < INFO_BYTES
                                           ? api_argument(error, "info: bytes is not sizeof(mpicrypt_file_info_t)") : api_file(file, error);

    if (MPICRYPT_FILE_OK == status) {
        mpicrypt_file_info_t found;
        memset(&found, 0, sizeof(found));
        mpicrypt_info(file, &found);
        found.bytes = info->bytes;
        memcpy(info, &found, INFO_BYTES);
        status = mpicrypt_fail_nothing(error);
    }
    return api_end(before, status);
}

API int mpicrypt_file_region(mpicrypt_file_t *file, uint32_t region, mpicrypt_file_region_t *about, mpicrypt_file_error_t *error)
{
    int before = api_begin(), status = NULL == about || about->bytes < REGION_BYTES
                                           ? api_argument(error, "region: bytes is not sizeof(mpicrypt_file_region_t)") : api_file(file, error);

    if (MPICRYPT_FILE_OK == status) {
        mpicrypt_file_region_t found;
        memset(&found, 0, sizeof(found));
        status = mpicrypt_region(file, region, &found, error);
        found.bytes = about->bytes;
        memcpy(about, &found, REGION_BYTES);
    }
    return api_end(before, status);
}

API int mpicrypt_file_runs(mpicrypt_file_t *file, uint32_t region, uint64_t first, uint64_t *pairs, size_t count,
                           mpicrypt_file_error_t *error)
{
    int before = api_begin(), status = NULL == pairs && count > 0 ? api_argument(error, "pairs is NULL") : api_file(file, error);

    return api_end(before, MPICRYPT_FILE_OK == status ? mpicrypt_runs(file, region, first, pairs, count, error) : status);
}

API const char *mpicrypt_file_version(void) { return PACKAGE_VERSION; }

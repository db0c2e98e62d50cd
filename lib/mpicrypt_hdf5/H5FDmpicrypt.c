/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A virtual file driver of HDF5 that reads encrypted files, by libmpicrypt_file.  HDF5 loads it because of
 * HDF5_DRIVER=mpicrypt and HDF5_PLUGIN_PATH.
 *
 * No symbol of libhdf5 is used, so that one build serves every copy of it in whatever package of a language.  H5F_ACC_*
 * are such symbols in disguise (they call H5open), and so is HDF5's stack of errors: a line on standard error says why
 * something failed.
 *
 * Threads: HDF5 calls one function at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>
#include <H5FDdevelop.h>
#include <H5PLextern.h>

#include "lib/mpicrypt_file/mpicrypt_file.h"

_Static_assert(1 == H5FD_CLASS_VERSION, "another H5FD_class_t");

enum {
    DRIVER_VALUE = 451,                 /* of those that HDF5 leaves for drivers that are not registered */
    ACC_WRITES = 0x0001 | 0x0002 | 0x0004 | 0x0010      /* RDWR, TRUNC, EXCL, CREAT */
};

typedef struct hdf5_file {
    H5FD_t super;                       /* first: HDF5 knows this part */
    mpicrypt_file_t *file;
    dev_t device;
    ino_t inode;
    haddr_t eoa, eof;
    uint32_t said;                      /* a bit for each status of which there was a line */
} hdf5_file_t;

static void hdf5_say(const char *text)
{
    fprintf(stderr, "HDF5 driver mpicrypt: %s\n", text);
}

/* ---- HDF5_DRIVER_CONFIG: words with commas between them ---- */

typedef struct hdf5_config {
    char label[65];
    mpicrypt_file_options_t options;
} hdf5_config_t;

static bool hdf5_word(const char *word, size_t bytes, hdf5_config_t *config)
{
    static const char label[] = "label=";
    const size_t prefix = sizeof(label) - 1;

    if (5 == bytes && 0 == memcmp(word, "plain", 5)) {
        config->options.flags |= MPICRYPT_FILE_PLAIN;
        return true;
    }
    if (bytes > prefix && bytes - prefix < sizeof(config->label) && 0 == memcmp(word, label, prefix)) {
        memcpy(config->label, word + prefix, bytes - prefix);
        config->label[bytes - prefix] = '\0';
        config->options.label = config->label;
        return true;
    }
    return 0 == bytes;
}

static bool hdf5_configure(hdf5_config_t *config)
{
    const char *word = getenv("HDF5_DRIVER_CONFIG");

    *config = (hdf5_config_t){.options = {.bytes = sizeof(config->options)}};
    while (NULL != word && '\0' != *word) {
        const size_t bytes = strcspn(word, ",");
        if (!hdf5_word(word, bytes, config)) {
            hdf5_say("HDF5_DRIVER_CONFIG: plain, label=LABEL, or both with a comma between them");
            return false;
        }
        word += bytes + (',' == word[bytes]);
    }
    return true;
}

/* ---- from opening to closing ---- */

/* As open().  netCDF looks at the first bytes of a file itself, unless its name is file:///PATH#mode=netcdf-4, and passes
 * all of that on. */
static int hdf5_open_name(const char *name)
{
    static const char scheme[] = "file://";
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = open(name, flags);

    if (fd < 0 && ENOENT == errno && 0 == strncmp(name, scheme, sizeof(scheme) - 1) && '/' == name[sizeof(scheme) - 1]) {
        char *path = strdup(name + sizeof(scheme) - 1);
        if (NULL != path) {
            path[strcspn(path, "#")] = '\0';
            fd = open(path, flags);
        }
        free(path);
    }
    return fd;
}

/* The file, its identity and size.  0, or -1 with an error. */
static int hdf5_open_file(const char *name, const hdf5_config_t *config, hdf5_file_t *made, mpicrypt_file_error_t *error)
{
    struct stat status;
    uint64_t bytes = 0;
    const int fd = hdf5_open_name(name);

    if (fd < 0 || 0 != fstat(fd, &status)) {
        snprintf(error->text, sizeof(error->text), "%s: %m", name);
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    int rc = mpicrypt_file_open_fd(fd, name, &config->options, &made->file, error);
    close(fd);                          /* the library has its own */
    if (MPICRYPT_FILE_OK != rc) {
        made->file = NULL;
    } else {
        rc = mpicrypt_file_size(made->file, &bytes, error);
    }
    made->device = status.st_dev;
    made->inode = status.st_ino;
    made->eof = (haddr_t) bytes;
    return MPICRYPT_FILE_OK == rc ? 0 : -1;
}

static H5FD_t *hdf5_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
    mpicrypt_file_error_t error = {.status = MPICRYPT_FILE_ERR_IO};
    hdf5_config_t config;

    (void) fapl;
    (void) maxaddr;
    if (0 != (flags & ACC_WRITES)) {
        hdf5_say("it reads only; open the file for reading");
        return NULL;
    }
    if (!hdf5_configure(&config)) {
        return NULL;
    }
    hdf5_file_t *made = calloc(1, sizeof(*made));
    if (NULL == made) {
        return NULL;
    }
    if (0 != hdf5_open_file(name, &config, made, &error)) {
        hdf5_say(error.text);
        if (MPICRYPT_FILE_ERR_PLAIN == error.status) {
            hdf5_say("HDF5_DRIVER_CONFIG=plain allows plain files, too");
        }
        mpicrypt_file_close(made->file);
        free(made);
        return NULL;
    }
    return &made->super;
}

static herr_t hdf5_close(H5FD_t *super)
{
    hdf5_file_t *file = (hdf5_file_t *) super;

    mpicrypt_file_close(file->file);
    free(file);
    return 0;
}

static int hdf5_compare(const H5FD_t *one, const H5FD_t *two)
{
    const hdf5_file_t *a = (const hdf5_file_t *) one, *b = (const hdf5_file_t *) two;

    return a->device != b->device ? (a->device < b->device ? -1 : 1)
           : a->inode != b->inode ? (a->inode < b->inode ? -1 : 1) : 0;
}

static herr_t hdf5_query(const H5FD_t *super, unsigned long *flags)
{
    (void) super;
    *flags = H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

/* ---- addresses ---- */

static haddr_t hdf5_get_eoa(const H5FD_t *super, H5FD_mem_t type)
{
    (void) type;
    return ((const hdf5_file_t *) super)->eoa;
}

static herr_t hdf5_set_eoa(H5FD_t *super, H5FD_mem_t type, haddr_t address)
{
    (void) type;
    ((hdf5_file_t *) super)->eoa = address;
    return 0;
}

static haddr_t hdf5_get_eof(const H5FD_t *super, H5FD_mem_t type)
{
    (void) type;
    return ((const hdf5_file_t *) super)->eof;
}

/* ---- data ---- */

/* A read that fails leaves zeros, which HDF5 does not use. */
static herr_t hdf5_read(H5FD_t *super, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t bytes, void *memory)
{
    hdf5_file_t *file = (hdf5_file_t *) super;
    mpicrypt_file_error_t error = {.status = MPICRYPT_FILE_OK};
    size_t got = 0;

    (void) type;
    (void) dxpl;
    if (HADDR_UNDEF == address || address > UINT64_MAX - bytes) {
        memset(memory, 0, bytes);
        return -1;
    }
    if (MPICRYPT_FILE_OK == mpicrypt_file_read(file->file, (uint64_t) address, memory, bytes, &got, &error)) {
        if (got == bytes) {
            return 0;
        }
        memset(memory, 0, bytes);
        error.status = MPICRYPT_FILE_ERR_FORGED;
        snprintf(error.text, sizeof(error.text), "a file ends before address %llu, which HDF5 wants to read",
                 (unsigned long long) (address + bytes));
    }
    const uint32_t bit = (uint32_t) 1 << (error.status & 31);
    if (0 == (file->said & bit)) {
        file->said |= bit;
        hdf5_say(error.text);
    }
    return -1;
}

static herr_t hdf5_write(H5FD_t *super, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t bytes, const void *memory)
{
    (void) super;
    (void) type;
    (void) dxpl;
    (void) address;
    (void) bytes;
    (void) memory;
    return -1;
}

static const H5FD_class_t mpicrypt_hdf5_class = {
    .version = H5FD_CLASS_VERSION,
    .value = DRIVER_VALUE,
    .name = "mpicrypt",
    .maxaddr = ((haddr_t) 1 << 63) - 1,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = hdf5_open,
    .close = hdf5_close,
    .cmp = hdf5_compare,
    .query = hdf5_query,
    .get_eoa = hdf5_get_eoa,
    .set_eoa = hdf5_set_eoa,
    .get_eof = hdf5_get_eof,
    .read = hdf5_read,
    .write = hdf5_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY
};

/* ---- what HDF5 looks up ---- */

H5PL_type_t H5PLget_plugin_type(void) { return H5PL_TYPE_VFD; }

const void *H5PLget_plugin_info(void) { return &mpicrypt_hdf5_class; }

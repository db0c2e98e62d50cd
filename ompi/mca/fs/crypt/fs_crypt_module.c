/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The functions: each calls the file system's own component, and adds what an
 * encrypted file needs.
 */
#include "fs_crypt.h"

#include <stdlib.h>
#include <unistd.h>

static ompi_common_cryptmpio_module_t *module_of(const ompio_file_t *fh)
{
    return (ompi_common_cryptmpio_module_t *) fh->f_fs;
}

/* Files are deleted without a handle: initialized again for each. */
static __thread ompi_common_cryptmpio_module_t deleter;

static int module_init(ompio_file_t *fh)
{
    return module_of(fh)->under->fs_module_init(fh);
}

static int module_finalize(ompio_file_t *fh)
{
    ompi_common_cryptmpio_module_t *module = module_of(fh);
    int rc = module->under->fs_module_finalize(fh);

    fh->f_fs = NULL;
    if (module != &deleter) {
        free(module);
    }
    return rc;
}

/* Also open for reading, since a partly overwritten block is read first; but a plain
 * file may allow writing only. */
static int open_under(struct ompi_communicator_t *comm, const char *filename, int amode, opal_info_t *info, ompio_file_t *fh)
{
    const mca_fs_base_module_t *under = module_of(fh)->under;

    if (0 != (amode & MPI_MODE_WRONLY)) {
        int rc = under->fs_file_open(comm, filename, (amode & ~MPI_MODE_WRONLY) | MPI_MODE_RDWR, info, fh);
        if (MPI_SUCCESS == ompi_common_cryptmpio_agree(fh, rc)) {
            return rc;
        }
        if (OMPI_SUCCESS == rc) {
            close(fh->fd);
            amode &= ~MPI_MODE_EXCL;    /* rank 0 has just created it, and cannot do so again */
        }
    }
    return under->fs_file_open(comm, filename, amode, info, fh);
}

static int file_open(struct ompi_communicator_t *comm, const char *filename, int amode, opal_info_t *info, ompio_file_t *fh)
{
    ompi_common_cryptmpio_module_t *module = module_of(fh);
    bool require;
    int rc;

    fh->fd = -1;                        /* was 0, and OMPIO closes it even if the open fails */
    rc = ompi_common_cryptmpio_open_begin(fh, filename, amode, info, &require);
    if (MPI_SUCCESS == rc) {            /* else no file is created */
        rc = open_under(comm, filename, amode, info, fh);
        rc = ompi_common_cryptmpio_open(fh, filename, amode, info, rc, require, &module->state);
    }
    if (OMPI_SUCCESS == rc && module->state->encrypted && NULL != fh->f_sharedfp_component
        && 0 == strcmp(fh->f_sharedfp_component->mca_component_name, "individual")) {
        fh->f_sharedfp = NULL;          /* it would write plain data to files of its own */
    }
    if (OMPI_SUCCESS != rc) {           /* OMPIO closes the file after a failed open, and would delete it */
        fh->f_amode &= ~MPI_MODE_DELETE_ON_CLOSE;
    }
    return rc;
}

static int file_close(ompio_file_t *fh)
{
    ompi_common_cryptmpio_module_t *module = module_of(fh);
    ompi_common_cryptmpio_file_t *state = module->state;
    bool used = NULL != state && state->encrypted && state->region_count > 0;
    bool sealing = used && state->posix.may_write && state->seal;
    int error = sealing ? ompi_common_cryptmpio_seal(state) : MPI_SUCCESS;

    ompi_common_cryptmpio_close(state);
    module->state = NULL;
    int rc = module->under->fs_file_close(fh);
    return OMPI_SUCCESS == rc ? error : rc;
}

static int file_delete(char *filename, opal_info_t *info) { return deleter.under->fs_file_delete(filename, info); }

static int file_set_size(ompio_file_t *fh, OMPI_MPI_OFFSET_TYPE size)
{
    ompi_common_cryptmpio_module_t *module = module_of(fh);

    return module->state->encrypted ? ompi_common_cryptmpio_set_size(module->state, size)
                                    : module->under->fs_file_set_size(fh, size);
}

static int file_get_size(ompio_file_t *fh, OMPI_MPI_OFFSET_TYPE *size)
{
    ompi_common_cryptmpio_module_t *module = module_of(fh);
    int rc = module->under->fs_file_get_size(fh, size);

    return OMPI_SUCCESS == rc ? ompi_common_cryptmpio_size_sealed(module->state, size) : rc;
}

/* Every process syncs, and drops cached bytes, so that it reads what the others have synced. */
static int file_sync(ompio_file_t *fh)
{
    ompi_common_cryptmpio_module_t *module = module_of(fh);
    int rc = module->under->fs_file_sync(fh);

    return OMPI_SUCCESS == rc && module->state->encrypted && OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_refresh(&module->state->posix) ? MPI_ERR_IO : rc;
}

mca_fs_base_module_t *ompi_fs_crypt_module(ompio_file_t *fh, mca_fs_base_module_t *under, mca_fs_base_component_t *component)
{
    bool to_delete = MPI_COMM_NULL == fh->f_comm;
    ompi_common_cryptmpio_module_t *module = to_delete ? &deleter : calloc(1, sizeof(*module));

    if (NULL == module) {
        return NULL;
    }
    *module = (ompi_common_cryptmpio_module_t){
        .super = {
            .fs_module_init = module_init,
            .fs_module_finalize = module_finalize,
            .fs_file_open = file_open,
            .fs_file_close = file_close,
            .fs_file_delete = file_delete,
            .fs_file_set_size = file_set_size,
            .fs_file_get_size = file_get_size,
            .fs_file_sync = file_sync,
        },
        .magic = OMPI_CRYPTMPIO_MAGIC,
        .abi = OMPI_CRYPTMPIO_ABI,
        .under = under,
        .under_component = component,
        .set_map = ompi_common_cryptmpio_set_map,
        .get_map = ompi_common_cryptmpio_get_map,
    };
    return &module->super;
}

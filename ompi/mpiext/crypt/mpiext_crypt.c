/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The application-facing library.  From the handle it finds OMPIO's file, and
 * fs/crypt's module on it by name, magic and version; nothing is looked up by
 * symbol, so that a program linked with this library also runs without the
 * components.
 */
#include "ompi/mca/common/cryptmpio/cryptmpio.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_shut.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_crypt.h"

/* The functions that applications call; the components' symbols are hidden. */
#pragma GCC visibility push(default)
int MPIX_File_set_encryption_map(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                                 const char *datarep, MPI_Info info);
int MPIX_File_get_encryption_regions(MPI_File fh, int *regions);
int MPIX_File_get_encryption_map(MPI_File fh, int region, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype,
                                 char *datarep, MPI_Info *info);
#pragma GCC visibility pop

static bool is_file(MPI_File fh) { return NULL != fh && !ompi_file_invalid(fh); }

/* NULL: no file, or not one that OMPIO and fs/crypt handle. */
static ompi_common_cryptmpio_module_t *module_of(MPI_File fh, ompio_file_t **ompio)
{
    *ompio = is_file(fh) ? ompi_common_cryptmpio_ompio(fh) : NULL;
    return NULL == *ompio ? NULL : ompi_common_cryptmpio_module(*ompio);
}

static int fail(MPI_File fh, int error)
{
    if (MPI_SUCCESS != error) {
        (void) MPI_File_call_errhandler(NULL == fh ? MPI_FILE_NULL : fh, error);
    }
    return error;
}

/* The components that handle the file would write the secret data in plaintext.  Every process gets here, since
 * all of them have the file open through the same components. */
static int refuse(MPI_File fh)
{
    ompi_file_t *file = fh;

    if (is_file(fh)) {
        OPAL_THREAD_LOCK(&file->f_lock);
        ompi_common_cryptmpio_shut(&OMPI_COMMON_CRYPTMPI_IO(file->f_io_selected_module));
        OPAL_THREAD_UNLOCK(&file->f_lock);
        if (0 == ompi_comm_rank(file->f_comm)) {
            opal_output(0, "MPIX_File_set_encryption_map: %s was not opened by io/ompio with fs/crypt, and cannot be encrypted (leave "
                           "the parameters io, fs and fbtl at their defaults). Every later read or write through this handle fails.",
                        file->f_filename);
        }
    }
    return fail(fh, MPI_ERR_UNSUPPORTED_OPERATION);
}

int MPIX_File_set_encryption_map(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                                 const char *datarep, MPI_Info info)
{
    const ompi_common_cryptmpio_map_ask_t ask = {disp, etype, filetype, datarep, MPI_INFO_NULL == info ? NULL : info};
    ompio_file_t *ompio;
    ompi_common_cryptmpio_module_t *module = module_of(fh, &ompio);

    if (NULL == module) {
        return refuse(fh);
    }
    OPAL_THREAD_LOCK(&((ompi_file_t *) fh)->f_lock);
    int rc = module->set_map(ompio, &ask);
    OPAL_THREAD_UNLOCK(&((ompi_file_t *) fh)->f_lock);
    return fail(fh, rc);
}

int MPIX_File_get_encryption_regions(MPI_File fh, int *regions)
{
    ompio_file_t *ompio;
    ompi_common_cryptmpio_module_t *module = module_of(fh, &ompio);
    const opal_cryptfile_map_t *map = NULL == module ? NULL : module->get_map(ompio);

    if (NULL == module) {
        return fail(fh, MPI_ERR_UNSUPPORTED_OPERATION);
    }
    *regions = NULL == map ? 0 : (int) map->region_count;
    return MPI_SUCCESS;
}

/* The number of datatype blocks that a run needs: the length of each is an int. */
static size_t blocks_of(const opal_cryptfile_run_t *run)
{
    return (size_t) ((run->bytes + INT_MAX - 1) / INT_MAX);
}

/* A region's tile as a datatype. */
static int type_of(const opal_cryptfile_tiling_t *tiling, MPI_Datatype *type)
{
    MPI_Datatype tile = MPI_DATATYPE_NULL;
    size_t count = 0, used = 0;

    for (uint32_t i = 0; i < tiling->run_count; ++i) {
        count += blocks_of(&tiling->runs[i]);
    }
    MPI_Aint *displacements = calloc(count + 1, sizeof(*displacements));
    int *lengths = calloc(count + 1, sizeof(*lengths));
    int rc = NULL == displacements || NULL == lengths ? MPI_ERR_NO_MEM : count > INT_MAX ? MPI_ERR_TYPE : MPI_SUCCESS;

    for (uint32_t i = 0; MPI_SUCCESS == rc && i < tiling->run_count; ++i) {
        uint64_t at = tiling->runs[i].offset, left = tiling->runs[i].bytes;
        for (size_t k = blocks_of(&tiling->runs[i]); k > 0; --k) {
            displacements[used] = (MPI_Aint) at;
            lengths[used] = left < INT_MAX ? (int) left : INT_MAX;
            at += (uint64_t) lengths[used];
            left -= (uint64_t) lengths[used++];
        }
    }
    if (MPI_SUCCESS == rc) {
        rc = MPI_Type_create_hindexed((int) count, lengths, displacements, MPI_BYTE, &tile);
    }
    if (MPI_SUCCESS == rc) {
        rc = MPI_Type_create_resized(tile, 0, (MPI_Aint) tiling->extent, type);
        MPI_Type_free(&tile);
    }
    free(displacements);
    free(lengths);
    return MPI_SUCCESS == rc ? MPI_Type_commit(type) : rc;
}

static int info_of(const opal_cryptfile_region_t *region, MPI_Info *info)
{
    static const char *const names[] = {"aes-128-gcm", "aes-192-gcm", "aes-256-gcm", "chacha20-poly1305"};
    char number[16];
    int rc = MPI_Info_create(info);

    if (MPI_SUCCESS == rc) {
        rc = MPI_Info_set(*info, "crypt_algorithm", region->encrypted ? names[region->cipher] : "plain");
    }
    if (MPI_SUCCESS == rc && region->encrypted) {
        snprintf(number, sizeof(number), "%u", (unsigned) region->block_bytes);
        rc = MPI_Info_set(*info, "crypt_block_size", number);
        rc = MPI_SUCCESS == rc ? MPI_Info_set(*info, "crypt_key_label", region->label) : rc;
    }
    if (MPI_SUCCESS == rc && region->tiling.once) {
        rc = MPI_Info_set(*info, "crypt_repeat", "once");
    }
    return MPI_SUCCESS == rc && 0 == region->tiling.run_count ? MPI_Info_set(*info, "crypt_rest", "plain") : rc;
}

int MPIX_File_get_encryption_map(MPI_File fh, int region, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype,
                                 char *datarep, MPI_Info *info)
{
    ompio_file_t *ompio;
    ompi_common_cryptmpio_module_t *module = module_of(fh, &ompio);
    const opal_cryptfile_map_t *map = NULL == module ? NULL : module->get_map(ompio);

    if (NULL == module) {
        return fail(fh, MPI_ERR_UNSUPPORTED_OPERATION);
    }
    if (NULL == map || region < 0 || (uint32_t) region >= map->region_count) {
        return fail(fh, MPI_ERR_ARG);
    }
    *disp = (MPI_Offset) map->regions[region].tiling.displacement;
    *etype = MPI_BYTE;
    if (NULL != datarep) {
        strcpy(datarep, "native");
    }
    int rc = type_of(&map->regions[region].tiling, filetype);
    return fail(fh, MPI_SUCCESS == rc ? info_of(&map->regions[region], info) : rc);
}

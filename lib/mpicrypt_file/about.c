/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the map says, which has verified.
 */
#include "lib/mpicrypt_file/reader.h"

#include <stdio.h>
#include <string.h>

void mpicrypt_info(const mpicrypt_file_t *file, mpicrypt_file_info_t *info)
{
    const opal_cryptfile_map_t *map = file->plain ? NULL : opal_cryptfile_map_of(file->engine);

    if (NULL != map) {
        memcpy(info->uuid, map->uuid, sizeof(info->uuid));
        info->generation = file->generation;
        info->regions = map->region_count;
        info->sealed = file->sealed;
        memcpy(info->seal_root, file->seal_root, sizeof(info->seal_root));
    }
}

static const opal_cryptfile_region_t *region_of(const mpicrypt_file_t *file, uint32_t region, mpicrypt_file_error_t *error)
{
    const opal_cryptfile_map_t *map = file->plain ? NULL : opal_cryptfile_map_of(file->engine);

    if (NULL != map && region < map->region_count) {
        return &map->regions[region];
    }
    (void) mpicrypt_fail(error, MPICRYPT_FILE_ERR_ARGUMENT, 0, MPICRYPT_FILE_NOWHERE, file->name, "it has no region %lu", (unsigned long) region);
    return NULL;
}

int mpicrypt_region(const mpicrypt_file_t *file, uint32_t region, mpicrypt_file_region_t *about, mpicrypt_file_error_t *error)
{
    const opal_cryptfile_region_t *of = region_of(file, region, error);
    opal_cryptfile_wrapped_by_t by;

    if (NULL == of) {
        return MPICRYPT_FILE_ERR_ARGUMENT;
    }
    about->encrypted = of->encrypted;
    about->readable = file->readable[region];
    if (of->encrypted) {
        snprintf(about->cipher, sizeof(about->cipher), "%s", opal_cryptfile_algorithm_name(of->cipher));
        snprintf(about->label, sizeof(about->label), "%s", of->label);
        about->block_bytes = of->block_bytes;
        about->key_version = OPAL_CRYPT_OK == opal_cryptfile_wrapped_parse(of->wrapped, &by) ? by.version : 0;
    }
    about->displacement = of->tiling.displacement;
    about->extent = of->tiling.extent;
    about->run_count = of->tiling.run_count;
    about->once = of->tiling.once;
    return mpicrypt_fail_nothing(error);
}

int mpicrypt_runs(const mpicrypt_file_t *file, uint32_t region, uint64_t first, uint64_t *pairs, size_t count,
                  mpicrypt_file_error_t *error)
{
    const opal_cryptfile_region_t *of = region_of(file, region, error);

    if (NULL == of) {
        return MPICRYPT_FILE_ERR_ARGUMENT;
    }
    if (first > of->tiling.run_count || count > of->tiling.run_count - first) {
        return mpicrypt_fail(error, MPICRYPT_FILE_ERR_ARGUMENT, 0, MPICRYPT_FILE_NOWHERE, file->name, "region %lu has %lu runs",
                             (unsigned long) region, (unsigned long) of->tiling.run_count);
    }
    for (size_t i = 0; i < count; ++i) {
        pairs[2 * i] = of->tiling.runs[first + i].offset;
        pairs[2 * i + 1] = of->tiling.runs[first + i].bytes;
    }
    return mpicrypt_fail_nothing(error);
}

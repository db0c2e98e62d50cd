/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Any bytes as a map or a digest.  What is accepted is written back as the
 * same bytes, and every question about offsets is answered consistently.
 */
#include "fuzz.h"

#include "opal/mca/common/cryptfile/file/map.h"

static void ask(const opal_cryptfile_map_t *map, uint64_t offset)
{
    uint32_t region, hint = 0 == map->region_count ? 0 : (uint32_t) (offset % map->region_count);
    uint64_t plain, bytes, back, more;

    if (opal_cryptfile_map_find(map, &hint, offset, &region, &plain, &bytes) && 0 != map->regions[region].tiling.run_count) {
        const opal_cryptfile_tiling_t *tiling = &map->regions[region].tiling;
        FUZZ_CHECK(plain == opal_cryptfile_tiling_before(tiling, offset));
        FUZZ_CHECK(opal_cryptfile_tiling_locate(tiling, plain, &back, &more) && back == offset);
    }
    FUZZ_CHECK(bytes > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opal_cryptfile_map_digest_t digest;
    uint8_t digest_bytes[OPAL_CRYPTFILE_MAP_DIGEST_BYTES];
    opal_cryptfile_map_t *map;

    if (OPAL_CRYPT_OK == opal_cryptfile_map_digest_parse(data, size, &digest)) {
        opal_cryptfile_map_digest_write(&digest, digest_bytes);
        FUZZ_CHECK(0 == memcmp(digest_bytes, data, size));
    }
    if (OPAL_CRYPT_OK != opal_cryptfile_map_parse(data, size, &map)) {
        return 0;
    }
    FUZZ_CHECK(size == opal_cryptfile_map_bytes(map));
    uint8_t *again = malloc(size);
    FUZZ_CHECK(NULL != again);
    opal_cryptfile_map_write(map, again);
    FUZZ_CHECK(0 == memcmp(again, data, size));
    free(again);
    static const uint64_t offsets[] = {0, 1, 511, 4096, 65537, UINT64_C(1) << 40, (UINT64_C(1) << 62) + 5, INT64_MAX};
    for (unsigned i = 0; i < sizeof(offsets) / sizeof(*offsets); ++i) {
        ask(map, offsets[i]);
    }
    opal_cryptfile_map_destroy(map);
    return 0;
}

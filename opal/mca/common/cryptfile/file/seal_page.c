/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Pages and roots of a seal.  A page is read as it is stored, and what is hashed
 * is made from it: the newer slot of each entry, whose flags say only that it is used, or
 * zeros.  Nothing here is trusted; the caller compares the page's hash.
 */
#include "seal_page.h"
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <string.h>

enum { PAGE_BLOCKS = OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS };

static int page_parse(const opal_cryptfile_t *file, uint32_t region, opal_cryptfile_seal_page_t *page)
{
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < page->count && OPAL_CRYPT_OK == rc; ++i) {
        const uint8_t *entry = page->entries + i * OPAL_CRYPTFILE_ENTRY_BYTES;
        uint32_t capacity = opal_cryptfile_capacity(file, region, page->first + i);
        opal_cryptfile_slot_t slots[2];
        rc = opal_cryptfile_slot_parse(entry, capacity, &slots[0]);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_cryptfile_slot_parse(entry + OPAL_CRYPTFILE_SLOT_BYTES, capacity, &slots[1]);
        }
        int newer = OPAL_CRYPT_OK == rc ? opal_cryptfile_entry_newer(slots) : -1;
        page->newer[i] = newer < 0 ? (opal_cryptfile_slot_t){.used = false} : opal_cryptfile_slot_plain(&slots[newer]);
    }
    return rc;
}

/* Pages begin at multiples of 128 blocks; contiguous entries may begin at other multiples of 64. */
int opal_cryptfile_seal_page_read(opal_cryptfile_t *file, uint32_t region, uint64_t number, uint64_t blocks,
                                  opal_cryptfile_seal_page_t *page)
{
    int rc = OPAL_CRYPT_OK;

    page->first = number * PAGE_BLOCKS;
    page->count = (uint32_t) (blocks - page->first < PAGE_BLOCKS ? blocks - page->first : PAGE_BLOCKS);
    memset(page->entries, 0, sizeof(page->entries));
    for (uint32_t i = 0; i < page->count && OPAL_CRYPT_OK == rc;) {
        uint64_t at;
        rc = opal_cryptfile_entry_at(file, region, page->first + i, false, &at);
        uint64_t together = opal_cryptfile_together(file, region, page->first + i);
        uint32_t here = (uint32_t) (together < page->count - i ? together : page->count - i);
        if (OPAL_CRYPT_OK == rc && 0 != at) {
            const opal_cryptfile_extent_t extent = {at, page->entries + i * OPAL_CRYPTFILE_ENTRY_BYTES, here * OPAL_CRYPTFILE_ENTRY_BYTES};
            rc = file->storage->read(file->storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
        }
        i += here;
    }
    return OPAL_CRYPT_OK == rc ? page_parse(file, region, page) : rc;
}

void opal_cryptfile_seal_page_slots(const opal_cryptfile_seal_page_t *page, uint8_t slots[OPAL_CRYPTFILE_SEAL_PAGE_BYTES])
{
    for (uint32_t i = 0; i < page->count; ++i) {
        opal_cryptfile_slot_write(&page->newer[i], slots + i * OPAL_CRYPTFILE_SLOT_BYTES);
    }
}

int opal_cryptfile_seal_page_hash(const opal_cryptfile_region_state_t *of, uint32_t region, uint64_t number,
                                  const uint8_t *slots, uint32_t count, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    uint8_t head[16] = {'p', 'a', 'g', 'e'};
    const opal_crypt_input_t pieces[2] = {{head, sizeof(head)}, {slots, (size_t) count * OPAL_CRYPTFILE_SLOT_BYTES}};

    opal_crypt_le_put32(head + 4, region);
    opal_crypt_le_put64(head + 8, number);
    return opal_crypt_hmac(of->seal_key, pieces, 2, hash);
}

int opal_cryptfile_seal_root(const opal_cryptfile_t *file, uint32_t region, uint64_t data_bytes, uint64_t parts,
                             const uint8_t id[OPAL_CRYPTFILE_SEAL_ID_BYTES], const uint8_t *hashes, uint64_t count,
                             uint8_t root[OPAL_CRYPT_HASH_BYTES])
{
    uint8_t head[32] = {'r', 'o', 'o', 't'};
    opal_cryptfile_map_digest_t digest;
    int rc = opal_cryptfile_map_digest(file->map, &digest);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    const opal_crypt_input_t pieces[4] = {{head, sizeof(head)}, {id, OPAL_CRYPTFILE_SEAL_ID_BYTES},
                                                 {digest.hash, OPAL_CRYPT_HASH_BYTES},
                                                 {hashes, count * OPAL_CRYPT_HASH_BYTES}};
    opal_crypt_le_put32(head + 4, region);
    opal_crypt_le_put64(head + 8, file->map->generation);
    opal_crypt_le_put64(head + 16, data_bytes);
    opal_crypt_le_put64(head + 24, parts);
    return opal_crypt_hmac(file->regions[region]->seal_key, pieces, 4, root);
}

int opal_cryptfile_seal_need_key(opal_cryptfile_region_state_t *of)
{
    if (NULL == of->blocks) {
        return OPAL_CRYPT_ERR_ACCESS;
    }
    if (NULL != of->seal_key) {
        return OPAL_CRYPT_OK;
    }
    of->seal_key = opal_crypt_secmem_alloc(OPAL_CRYPT_SECRET_BYTES);
    return NULL == of->seal_key ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_blocks_seal_key(of->blocks, of->seal_key);
}

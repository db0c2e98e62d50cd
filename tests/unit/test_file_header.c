/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The start of files that are one file, against tests/vectors/onefile-v1.txt: the geometry chosen, where
 * things are, and the verdict on every file there, good or bad; and a loss of power
 * while one is made, or its map is changed.
 */
#include "opal/mca/common/crypt/base/le.h"
#include "tests/unit/file_one.h"

static unsigned good_count, changed_count;

/* ---- geometries and places ---- */

/* A map of n regions that alternate, `run` bytes each. */
static opal_cryptfile_map_t *turns(const vector_block_t *vector)
{
    uint32_t regions = (uint32_t) number_of(vector, "regions"), number;
    uint64_t run_bytes = (uint64_t) number_of(vector, "run");
    opal_cryptfile_map_t *map;
    bool added;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&map));
    for (uint32_t i = 0; i < regions; ++i) {
        const opal_cryptfile_run_t run = {.bytes = run_bytes};
        opal_cryptfile_tiling_t tiling;
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tiling_make(&tiling, i * run_bytes, regions * run_bytes, false, &run, 1, NULL));
        const opal_cryptfile_region_ask_t ask = {true, OPAL_AEAD_AES_128_GCM, (uint32_t) number_of(vector, "block"), "lab", &tiling};
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_add(map, &ask, &number, &added, NULL) && added);
        opal_cryptfile_tiling_free(&tiling);
    }
    return map;
}

static void check_geometry(const vector_block_t *vector, opal_cryptfile_map_t *map)
{
    uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES], again[OPAL_CRYPTFILE_GEOMETRY_BYTES];
    opal_cryptfile_geometry_t *g = &map->geometry;

    UNIT_REQUIRE(sizeof(bytes) == vector_bytes(vector, "bytes", bytes, sizeof(bytes)));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_geometry_parse(bytes, g));
    UNIT_CHECK(g->group_bytes == (uint64_t) number_of(vector, "G") && g->control_bytes == (uint64_t) number_of(vector, "T"));
    UNIT_CHECK(g->header_bytes == (uint64_t) number_of(vector, "H") && g->map_bytes == (uint32_t) number_of(vector, "m"));
    UNIT_CHECK(g->entries == (uint32_t) number_of(vector, "N") && g->redo_rooms == (uint32_t) number_of(vector, "W"));
    UNIT_CHECK(g->redo_bytes == (uint32_t) number_of(vector, "b"));
    opal_cryptfile_geometry_write(g, again);
    UNIT_EQUAL_BYTES(bytes, again, sizeof(bytes));
}

static void check_place(const vector_block_t *vector, const opal_cryptfile_map_t *map)
{
    const opal_cryptfile_geometry_t *g = &map->geometry;
    uint64_t offset = (uint64_t) number_of(vector, "offset"), group = (uint64_t) number_of(vector, "group"), back, together;
    uint32_t region = (uint32_t) number_of(vector, "region"), block_bytes = map->regions[region].block_bytes;
    const opal_cryptfile_tiling_t *tiling = &map->regions[region].tiling;
    uint64_t stand = opal_cryptfile_geometry_stand(g, tiling, offset), block = stand / block_bytes;
    uint64_t left = opal_cryptfile_geometry_bytes(g, tiling, group) - (stand - group * opal_cryptfile_geometry_data(g)) + stand % block_bytes;
    uint64_t entry = opal_cryptfile_geometry_entry(map, region, block);

    UNIT_CHECK(opal_cryptfile_geometry_place(g, offset) == (uint64_t) number_of(vector, "place"));
    UNIT_CHECK(opal_cryptfile_geometry_end(g, offset + 1) == (uint64_t) number_of(vector, "end"));
    UNIT_CHECK(block == (uint64_t) number_of(vector, "block") && stand % block_bytes == (uint64_t) number_of(vector, "within"));
    UNIT_CHECK((left < block_bytes ? left : block_bytes) == (uint64_t) number_of(vector, "capacity"));
    UNIT_CHECK(entry == (uint64_t) number_of(vector, "entry"));
    UNIT_CHECK(opal_cryptfile_geometry_entry_at(g, group, entry) == (uint64_t) number_of(vector, "entry_at"));
    UNIT_CHECK(opal_cryptfile_geometry_locate(g, tiling, stand, &back, &together) && back == offset && together > 0);
}

/* ---- files ---- */

static void check_good(const one_file_t *file)
{
    uint8_t again[OPAL_CRYPTFILE_HEADER_BYTES], *place;
    one_opened_t opened;

    UNIT_CHECK(opal_cryptfile_header_magic(file->image.bytes, file->image.size));
    UNIT_REQUIRE(0 == strcmp("encrypted", one_open(&file->image, NULL, 0, one_keystore(file), &opened)));
    const opal_cryptfile_geometry_t *g = &opened.header.geometry;
    const opal_cryptfile_map_t *map = opened.copies[opened.chosen].map;
    UNIT_CHECK(OPAL_CRYPTFILE_COPY_PLACE_1 == opened.chosen && !opened.differ);
    UNIT_CHECK((OPAL_CRYPTFILE_STATE_SEALED == opened.state) == file->sealed);
    UNIT_CHECK(opal_cryptfile_geometry_size(g, file->image.size) == file->plain_bytes);
    UNIT_CHECK(0 == file->plain_bytes || opal_cryptfile_geometry_end(g, file->plain_bytes) == file->image.size);
    opal_cryptfile_header_write(&opened.header, again);
    UNIT_EQUAL_BYTES(file->image.bytes, again, sizeof(again));
    size_t bytes = opal_cryptfile_place_bytes(map);
    place = malloc(bytes);
    opal_cryptfile_place_write(map, place);
    UNIT_EQUAL_BYTES(file->image.bytes + opal_cryptfile_geometry_map_at(g, 0), place, bytes);

    /* The attribute has the map: nothing to replace.  Kinds of development versions are refused. */
    one_opened_t other;
    opal_cryptfile_map_t *old;
    UNIT_CHECK(0 == strcmp("encrypted", one_open(&file->image, place, bytes - 4, one_keystore(file), &other)) && !other.differ);
    one_close(&other);
    for (place[10] = 0; place[10] < OPAL_CRYPTFILE_KIND_MAP; ++place[10]) {
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_map_parse(place, bytes - 4, &old));
    }

    const one_file_t no_keys = {.key_count = 0};
    UNIT_CHECK(0 == strcmp("no key", one_open(&file->image, NULL, 0, one_keystore(&no_keys), &other)));
    one_close(&other);
    free(place);
    one_close(&opened);
    ++good_count;
}

static void check_changed(const one_file_t *file, const one_changed_t *changed)
{
    one_opened_t opened;
    const char *verdict = one_open(&changed->image, changed->attribute, changed->attribute_bytes, one_keystore(file), &opened);

    if (!UNIT_CHECK(0 == strcmp(changed->open, verdict))) {
        fprintf(stderr, "  %s, %s: %s (%s)\n", file->name, changed->name, verdict, NULL == opened.why.topic ? "" : opened.why.detail);
    }
    one_close(&opened);
    ++changed_count;
}

/* ---- power is lost while a file is made or a map is changed, or after the process that changed it was killed ---- */

enum { FRONT = 24576, SECTOR = 512, OPS = 64, DOUBT = 12 };

static unsigned sector;                 /* written at once: a part of a small map */

/* A file; what is behind the front does not change. */
typedef struct front {
    uint64_t size;
    uint8_t bytes[FRONT];
} front_t;

typedef struct cache_op {
    enum { CACHE_SYNC, CACHE_WRITE, CACHE_RESIZE } kind;
    uint64_t at;                        /* of a write; the new size */
    size_t count;
    uint8_t bytes[SECTOR];
} cache_op_t;

/* The calls to the storage, sector by sector, and what readers see. */
typedef struct cache {
    opal_cryptfile_storage_t super;
    cache_op_t ops[OPS];
    unsigned count;
    front_t now;
} cache_t;

static void put_op(front_t *front, const cache_op_t *op)
{
    uint64_t end = op->at + op->count;

    if (CACHE_WRITE == op->kind) {
        memcpy(front->bytes + op->at, op->bytes, op->count);
        front->size = end > front->size ? end : front->size;
    } else if (CACHE_RESIZE == op->kind) {
        for (uint64_t i = op->at; i < FRONT; ++i) {
            front->bytes[i] = 0;
        }
        front->size = op->at;
    }
}

static int cache_do(opal_cryptfile_storage_t *storage, const cache_op_t *op)
{
    cache_t *cache = (cache_t *) storage;

    UNIT_REQUIRE(cache->count < OPS);
    cache->ops[cache->count++] = *op;
    put_op(&cache->now, op);
    return OPAL_CRYPT_OK;
}

static int cache_read(opal_cryptfile_storage_t *storage, const opal_cryptfile_extent_t *extents, size_t count)
{
    UNIT_REQUIRE(1 == count && extents->at + extents->count <= FRONT);
    memcpy(extents->bytes, ((cache_t *) storage)->now.bytes + extents->at, extents->count);
    return OPAL_CRYPT_OK;
}

static int cache_size(opal_cryptfile_storage_t *storage, uint64_t *bytes)
{
    *bytes = ((cache_t *) storage)->now.size;
    return OPAL_CRYPT_OK;
}

static int cache_sync(opal_cryptfile_storage_t *storage)
{
    return cache_do(storage, &(cache_op_t){.kind = CACHE_SYNC});
}

static int cache_write(opal_cryptfile_storage_t *storage, const opal_cryptfile_extent_t *extents, size_t count)
{
    uint64_t at = extents->at, end = at + extents->count;

    UNIT_REQUIRE(1 == count && end <= FRONT);
    for (uint64_t to; at < end; at = to) {
        to = (at / sector + 1) * sector < end ? (at / sector + 1) * sector : end;
        cache_op_t op = {.kind = CACHE_WRITE, .at = at, .count = to - at};
        memcpy(op.bytes, (const uint8_t *) extents->bytes + (at - extents->at), op.count);
        (void) cache_do(storage, &op);
    }
    return OPAL_CRYPT_OK;
}

static int cache_resize(opal_cryptfile_storage_t *storage, uint64_t bytes)
{
    return cache_do(storage, &(cache_op_t){.kind = CACHE_RESIZE, .at = bytes});
}

static cache_t *cache_of(const front_t *front)
{
    cache_t *cache = calloc(1, sizeof(*cache));

    cache->super = (opal_cryptfile_storage_t){.read = cache_read, .write = cache_write, .size = cache_size, .resize = cache_resize,
                                              .sync = cache_sync};
    cache->now = *front;
    return cache;
}

typedef struct changing {
    const one_file_t *file;
    one_image_t image;                  /* what is tried */
    const char *verdict;
    unsigned long images;
} changing_t;

static uint64_t generation_of(changing_t *c, const front_t *front, one_opened_t *opened)
{
    memcpy(c->image.bytes, front->bytes, FRONT);
    c->image.size = front->size;
    ++c->images;
    c->verdict = one_open(&c->image, NULL, 0, one_keystore(c->file), opened);
    return 0 == strcmp("encrypted", c->verdict) ? opened->copies[opened->chosen].map->generation : 0;
}

static void put_ops(front_t *front, cache_op_t *const *ops, unsigned count, unsigned which)
{
    for (unsigned i = 0; i < count; ++i) {
        if (0 != (which & 1u << i)) {
            put_op(front, ops[i]);
        }
    }
}

/* The next call: a sync brings all to the disk, others are in doubt. */
static void goes_on(cache_op_t *op, front_t *stable, cache_op_t **doubt, unsigned *doubts)
{
    if (CACHE_SYNC == op->kind) {
        put_ops(stable, doubt, *doubts, ~0u);
        *doubts = 0;
    } else {
        UNIT_REQUIRE(*doubts < DOUBT);
        doubt[(*doubts)++] = op;
    }
}

static void authenticate(opal_cryptfile_copy_state_t *copy)
{
    for (uint32_t i = 0; i < copy->map->region_count; ++i) {
        opal_cryptfile_region_t *region = &copy->map->regions[i];
        if (region->encrypted) {
            UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_mac(copy->map, i, copy->keys[i].data_key, region->mac));
        }
    }
}

/* Write the next map, as a process that finds this on the disk, and the writes in doubt. */
static cache_t *change(changing_t *c, const front_t *front, uint64_t *to)
{
    cache_t *cache = cache_of(front);
    one_opened_t now, next;

    UNIT_REQUIRE(0 != generation_of(c, front, &now) && 0 != generation_of(c, front, &next));
    opal_cryptfile_copy_state_t *copy = &next.copies[next.chosen];
    *to = ++copy->map->generation;
    authenticate(copy);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_replace(&cache->super, now.copies[now.chosen].map, copy->map));
    one_close(&now);
    one_close(&next);
    return cache;
}

/* `least`: the generation that was acknowledged. */
static void try_change(changing_t *c, const front_t *disk, cache_op_t *const *doubt, unsigned doubts, uint64_t least, int depth)
{
    cache_op_t *ops[DOUBT];
    front_t stable = *disk, front = *disk;
    uint64_t next;

    put_ops(&front, doubt, doubts, ~0u);
    cache_t *cache = change(c, &front, &next);
    memcpy(ops, doubt, doubts * sizeof(*doubt));
    for (unsigned n = 0;; ++n) {
        for (unsigned which = 0; which < 1u << doubts; ++which) {
            one_opened_t opened;
            front = stable;
            put_ops(&front, ops, doubts, which);
            uint64_t found = generation_of(c, &front, &opened);
            UNIT_CHECK(found >= (n == cache->count ? next : least) && found <= next);
            one_close(&opened);
        }
        if (depth > 0) {
            try_change(c, &stable, ops, doubts, n == cache->count ? next : least, depth - 1);
        }
        if (n == cache->count) {
            break;
        }
        goes_on(&cache->ops[n], &stable, ops, &doubts);
    }
    free(cache);
}

static void choose_front(opal_cryptfile_copy_state_t *copy, unsigned which)
{
    static const struct { uint64_t header_bytes; uint32_t map_bytes; } fronts[] = {{0, 3072}, {1 << 20, 4096}, {1 << 20, 8192}};

    copy->map->geometry.header_bytes = fronts[which].header_bytes;
    copy->map->geometry.map_bytes = fronts[which].map_bytes;
    ++copy->map->uuid[0];               /* another file */
    authenticate(copy);
}

/* Make a file with each geometry, as a process that finds this on the disk, and the writes in doubt: it stays as it is, or is
 * unfinished, or complete. */
static void try_make(changing_t *c, const front_t *disk, cache_op_t *const *doubt, unsigned doubts, opal_cryptfile_copy_state_t *copy,
                     unsigned which, int depth)
{
    cache_op_t *ops[DOUBT];
    front_t stable = *disk, front = *disk;
    unsigned whole = 0;

    put_ops(&front, doubt, doubts, ~0u);
    cache_t *cache = cache_of(&front);
    choose_front(copy, which);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_make_begin(&cache->super, copy->map));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_make_end(&cache->super, copy->map));
    memcpy(ops, doubt, doubts * sizeof(*doubt));
    for (unsigned n = 0; n <= cache->count; ++n) {
        bool nothing = opal_crypt_all_zero(stable.bytes, OPAL_CRYPTFILE_HEADER_BYTES);
        for (unsigned some = 0; some < 1u << doubts; ++some) {
            one_opened_t opened;
            front = stable;
            put_ops(&front, ops, doubts, some);
            uint64_t found = generation_of(c, &front, &opened);
            bool right = nothing && opal_crypt_all_zero(front.bytes, OPAL_CRYPTFILE_HEADER_BYTES) ? front.size <= OPAL_CRYPTFILE_HEADER_BYTES
                                                                                                  : 0 != found || 0 == strcmp("unfinished", c->verdict);
            UNIT_CHECK(right && (n < cache->count || 0 != found));
            whole += 0 != found;
            one_close(&opened);
        }
        for (unsigned next = 0; next < 3 && depth > 0; ++next) {
            try_make(c, &stable, ops, doubts, copy, next, depth - 1);
        }
        if (n < cache->count) {
            goes_on(&cache->ops[n], &stable, ops, &doubts);
        }
    }
    UNIT_CHECK(whole > 0);
    free(cache);
}

static void check_change(const one_file_t *file)
{
    changing_t c = {.file = file};
    one_opened_t opened;
    front_t front = {.size = file->image.size};

    one_image_new(&c.image, file->image.size);
    memcpy(c.image.bytes, file->image.bytes, file->image.size);
    memcpy(front.bytes, file->image.bytes, FRONT);
    uint64_t generation = generation_of(&c, &front, &opened);
    bool small = 0 == opened.header.geometry.header_bytes && 0 == strcmp("rooms", file->name);
    if (small) {
        sector = SECTOR;
        for (unsigned which = 0; which < 3; ++which) {
            try_make(&c, &(front_t){.size = 0}, NULL, 0, &opened.copies[opened.chosen], which, 2);
        }
        sector = 128;
        try_change(&c, &front, NULL, 0, generation, 2);
        printf("  %s: %lu images\n", file->name, c.images);
        UNIT_CHECK(c.images > 300);
    }
    one_close(&opened);
    free(c.image.bytes);
}

static void ignore_changed(const one_file_t *file, const one_changed_t *changed)
{
    (void) file;
    (void) changed;
}

static void test_map_copies(void)
{
    FILE *input = vector_file("onefile-v1.txt");
    static vector_block_t vector;
    opal_cryptfile_map_t *map = NULL;
    unsigned geometries = 0, copies = 0;

    UNIT_GROUP("geometries, and where things lie");
    while (vector_next(input, &vector)) {
        if (kind_is(&vector, "geometry")) {
            opal_cryptfile_map_destroy(map);
            map = turns(&vector);
            check_geometry(&vector, map);
            ++geometries;
        } else if (kind_is(&vector, "place")) {
            check_place(&vector, map);
            ++copies;
        }
    }
    UNIT_CHECK(9 == geometries && 54 == copies);
    opal_cryptfile_map_destroy(map);
    fclose(input);
}

/* A header may announce places of 64 MiB, but a map and its CRC have at most 32 MiB: nobody reads more. */
static void test_long_map(void)
{
    const opal_cryptfile_geometry_t geometry = {.header_bytes = UINT64_C(1) << 28, .map_bytes = 64u << 20};
    uint8_t head[OPAL_CRYPTFILE_MAP_HEAD_BYTES] = "MPICRYPT\1\0\4";

    UNIT_GROUP("no map is longer than the limit");
    for (uint32_t over = 0; over < 2; ++over) {
        const uint32_t bytes = OPAL_CRYPTFILE_MAP_MAX_BYTES - 4 + over;
        opal_crypt_le_put32(head + 44, bytes);
        UNIT_CHECK((0 == over ? bytes : 0) == opal_cryptfile_place_peek(head, &geometry));
    }
}

int main(void)
{
    test_map_copies();
    test_long_map();
    UNIT_GROUP("files, and what was made of them");
    one_walk(check_good, check_changed);
    UNIT_CHECK(7 == good_count && 241 == changed_count);
    UNIT_GROUP("files that are made, and a map that is changed");
    one_walk(check_change, ignore_changed);
    return unit_done();
}

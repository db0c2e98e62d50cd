/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Inside the block engine: what an open file is made of, and what its parts
 * offer one another.
 */
#ifndef OPAL_CRYPTFILE_FILE_FILE_OBJECT_H
#define OPAL_CRYPTFILE_FILE_FILE_OBJECT_H

#include "file.h"
#include "block.h"
#include "opal/mca/common/crypt/base/thread.h"

#include <pthread.h>

#define OPAL_CRYPTFILE_RUN_BYTES    (4u << 20)  /* locked at a time, unless a block is larger */
#define OPAL_CRYPTFILE_PART_BYTES   (256u << 10)  /* sealed and written at a time, unless a block is larger */
#define OPAL_CRYPTFILE_RUN_BLOCKS   4096u
#define OPAL_CRYPTFILE_PLAN_PIECES  65536u      /* planned at a time */

typedef struct opal_cryptfile_seal_base {
    uint64_t block;
    opal_cryptfile_slot_t slot;                 /* unused: a hole */
} opal_cryptfile_seal_base_t;

typedef struct opal_cryptfile_region_state {
    opal_cryptfile_blocks_t *blocks;            /* NULL: plain, or no key */
    const opal_aead_module_t *aead;
    opal_cryptfile_grant_t grant;               /* of a key; a plain region needs none */
    opal_cryptfile_grant_t limit;               /* what may be done here, whatever the key grants */
    pthread_mutex_t lock;                       /* the bases; the first region's: the file's sealed_entries */
    uint8_t *seal_key;                          /* secret memory; NULL: not needed yet */
    uint8_t *pages;                             /* hashes of the demanded seal; the first region has those of all groups */
    uint8_t root[OPAL_CRYPT_HASH_BYTES];        /* the seal's, if has_root */
    bool has_root;
    uint64_t before_blocks;                     /* watched: blocks that were there at opening, and were not cut off */
    struct opal_cryptfile_seal_base *bases;     /* versions by others that a part of a block was written over */
    size_t base_count, base_capacity;
    uint8_t *ours;                              /* at sealing: every S of the job, sorted */
    size_t ours_count;
    uint8_t *accepted;                          /* for each group, a hash of the fields to seal */
} opal_cryptfile_region_state_t;

struct opal_cryptfile {
    opal_cryptfile_of_t of;
    opal_cryptfile_storage_t *storage;
    opal_cryptfile_map_t *map;
    opal_cryptfile_region_state_t **regions;    /* as many as the map has */
    bool secret;                                /* work in secret memory */
    bool torn_told;                             /* a write to a torn block was reported */
    bool sealed;                                /* the seal was demanded and verified */
    uint8_t sealed_hash[OPAL_CRYPT_HASH_BYTES];  /* of all roots */
    uint64_t sealed_bytes;                      /* the size that the pages cover, after a check, too; */
    uint32_t sealed_regions;                    /* and the number of regions */
    uint8_t *sealed_entries;                    /* the group read last, under the first region's lock */
    uint64_t sealed_group;
    bool watched;                               /* the processes that write it will seal it */
    uint64_t before_bytes;                      /* then: data that was there at opening, and was not cut off */
    pthread_mutex_t range_lock;
    pthread_cond_t range_free;
    struct opal_cryptfile_range *ranges;        /* held by threads of this process */
    pthread_mutex_t work_lock;
    struct opal_cryptfile_work *idle;
};

/* ---- locks: against threads here, then against processes ---- */

typedef struct opal_cryptfile_range {
    struct opal_cryptfile_range *next;
    uint64_t first, last;
} opal_cryptfile_range_t;

int opal_cryptfile_range_lock(opal_cryptfile_t *file, opal_cryptfile_range_t *range,
                              uint64_t at, uint64_t count, bool exclusive);
/* Exclusive, without waiting; *got: it is locked. */
int opal_cryptfile_range_try(opal_cryptfile_t *file, opal_cryptfile_range_t *range,
                             uint64_t at, uint64_t count, bool *got);
/* Returns rc, the result of the work under the lock, with its errno.  But a lock that cannot be
 * released may have been lost earlier: then even work that succeeded has failed. */
int opal_cryptfile_range_unlock(opal_cryptfile_t *file, opal_cryptfile_range_t *range, int rc);

/* ---- order, where a node may lose power: the storage's barrier, if it has one ---- */

static inline int opal_cryptfile_barrier(opal_cryptfile_t *file)
{
    return NULL == file->storage->barrier ? OPAL_CRYPT_OK : file->storage->barrier(file->storage);
}

/* ---- layout: where things lie ---- */

static inline const opal_cryptfile_geometry_t *opal_cryptfile_geometry_of(const opal_cryptfile_t *file) { return &file->map->geometry; }

/* Set the file's size. */
int opal_cryptfile_size_set(opal_cryptfile_t *file, uint64_t bytes);
/* The size of a file that ends at `end` on the storage. */
uint64_t opal_cryptfile_size_to(const opal_cryptfile_t *file, uint64_t end);
/* How many bytes there are from an offset to the end of its group, which no block crosses. */
uint64_t opal_cryptfile_group_left(const opal_cryptfile_t *file, uint64_t offset);

/* The position of a region's first byte from this offset on in the region's stream, which is cut into blocks; and the
 * inverse: the offset of a position, and how many bytes from there on are contiguous.  False: no such byte. */
uint64_t opal_cryptfile_stand(const opal_cryptfile_t *file, uint32_t region, uint64_t offset);
bool opal_cryptfile_locate(const opal_cryptfile_t *file, uint32_t region, uint64_t plain, uint64_t *offset, uint64_t *together);

/* All blocks of the region have lower numbers. */
uint64_t opal_cryptfile_blocks_most(const opal_cryptfile_t *file, uint32_t region);
/* How many bytes a block can have: B, or less where a group ends. */
uint32_t opal_cryptfile_capacity(const opal_cryptfile_t *file, uint32_t region, uint64_t block);
/* The byte that is locked for a block. */
uint64_t opal_cryptfile_lock_at(const opal_cryptfile_t *file, uint32_t region, uint64_t block);
/* Locks of all blocks, of all regions, in the group of this offset and in later ones. */
void opal_cryptfile_locks_behind(const opal_cryptfile_t *file, uint64_t offset, uint64_t *at, uint64_t *count);

/* Where the entry of a block lies, which has a capacity. */
uint64_t opal_cryptfile_entry_at(const opal_cryptfile_t *file, uint32_t region, uint64_t block);

typedef struct opal_cryptfile_redo_place {
    uint64_t head, cipher;
} opal_cryptfile_redo_place_t;

/* Where the room of this number is in the block's group; head 0: there is none. */
opal_cryptfile_redo_place_t opal_cryptfile_redo_at(const opal_cryptfile_t *file, uint32_t region, uint64_t block, uint32_t number);

/* ---- plan ---- */

/* Bytes of a request that lie together in a region's packed stream, or, if the
 * region is plain, in the file. */
typedef struct opal_cryptfile_piece {
    uint8_t *memory;
    uint64_t plain, bytes;
    uint32_t region;
} opal_cryptfile_piece_t;

/* Bytes that two requests name: read once, then copied. */
typedef struct opal_cryptfile_copied {
    uint8_t *to;
    const uint8_t *from;
    uint64_t bytes;
} opal_cryptfile_copied_t;

/* How far the planning of a list of requests has got. */
typedef struct opal_cryptfile_plan {
    const opal_cryptfile_request_t *requests;
    size_t request_count, request;
    uint64_t within;                    /* of the request */
    uint32_t hint;                      /* the region found last */
    uint64_t end;                       /* bytes of the file from here on are not planned */
    uint64_t planned;
    opal_cryptfile_piece_t *pieces;
    size_t piece_count, piece_capacity;
    opal_cryptfile_copied_t *copies;
    size_t copy_count, copy_capacity;
} opal_cryptfile_plan_t;

/* The next pieces, at most `limit`, sorted by region and place, without
 * overlaps (if two requests write a byte, one wins); none: done.
 * ERR_ACCESS, in `outcome` too, for bytes that belong to no region, or to one
 * for which `grant` is missing. */
int opal_cryptfile_plan_next(const opal_cryptfile_t *file, opal_cryptfile_plan_t *plan, size_t limit,
                             opal_cryptfile_grant_t grant, opal_cryptfile_outcome_t *outcome);
/* Would the plan be the same if the file ended there?  And start over. */
bool opal_cryptfile_plan_ends(const opal_cryptfile_plan_t *plan, uint64_t end);
void opal_cryptfile_plan_again(opal_cryptfile_plan_t *plan, uint64_t end);
void opal_cryptfile_plan_free(opal_cryptfile_plan_t *plan);

/* Consecutive blocks of one region and one group that the pieces from
 * `piece` on (of which `used` bytes are done) reach into. */
typedef struct opal_cryptfile_run_of_blocks {
    uint32_t region;
    uint64_t first, count;
    size_t piece;                       /* the first one */
    uint64_t used;
} opal_cryptfile_blockrun_t;

/* Blocks of a run that are sealed and written, or read and opened, at a time:
 * their bytes are still in the processor's cache then. */
static inline uint64_t opal_cryptfile_run_part(const opal_cryptfile_t *file, uint32_t block_bytes, uint64_t left)
{
    uint64_t blocks = block_bytes < file->of.part_bytes ? file->of.part_bytes / block_bytes : 1;

    return blocks < left ? blocks : left;
}

bool opal_cryptfile_plan_run(const opal_cryptfile_t *file, const opal_cryptfile_plan_t *plan,
                             size_t *piece, uint64_t *used, opal_cryptfile_blockrun_t *run);

/* ---- what a call works with ---- */

typedef struct opal_cryptfile_slots {
    opal_cryptfile_slot_t slot[2];
    bool bad[2];                        /* no process can have written this */
    bool behind;                        /* an overwrite was cut short, and is not finished */
    uint8_t sealed[OPAL_CRYPT_HASH_BYTES];      /* the sealed field */
    bool overwritten;                   /* through a room */
    uint32_t redo;                      /* for the overwrite that is under way; 0: none yet, or it needs none */
    opal_cryptfile_redo_place_t redo_at;
} opal_cryptfile_slots_t;

/* Rooms of a group that a call holds. */
typedef struct opal_cryptfile_redo_rooms {
    opal_cryptfile_range_t ranges[OPAL_CRYPTFILE_REDO_ROOMS_MAX];
    uint32_t numbers[OPAL_CRYPTFILE_REDO_ROOMS_MAX];    /* rising */
    uint32_t range_count, count;
} opal_cryptfile_redo_rooms_t;

typedef struct opal_cryptfile_work {
    struct opal_cryptfile_work *next;
    uint8_t *cipher, *plain;            /* space for a part of a run, aligned to a page */
    uint8_t *old;                       /* of one block: data, then a room's ciphertext */
    size_t cipher_capacity, plain_capacity, old_capacity;
    uint8_t *slot_bytes;                /* entries of a run, then the heads of its rooms */
    opal_cryptfile_slots_t *slots;
    opal_cryptfile_slot_t *fresh;
    size_t block_capacity;
    opal_cryptfile_redo_rooms_t redo_rooms; /* for the overwrites of a run */
    const opal_cryptfile_range_t *held; /* the block locks that the call holds */
    opal_cryptfile_extent_t *extents;
    size_t extent_count, extent_capacity;
} opal_cryptfile_work_t;

int opal_cryptfile_work_take(opal_cryptfile_t *file, opal_cryptfile_work_t **work);
void opal_cryptfile_work_give(opal_cryptfile_t *file, opal_cryptfile_work_t *work);
void opal_cryptfile_work_end(opal_cryptfile_t *file);
/* Memory for a run of `blocks` blocks. */
int opal_cryptfile_work_reserve(const opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint64_t blocks,
                                uint32_t block_bytes);

/* What an atomic call holds throughout: the locks of all blocks from the first to the last. */
typedef struct opal_cryptfile_held {
    opal_cryptfile_range_t range;
    bool is_held;
} opal_cryptfile_held_t;

int opal_cryptfile_hold(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_plan_t *plan, bool exclusive,
                        opal_cryptfile_held_t *held);
int opal_cryptfile_hold_end(opal_cryptfile_t *file, opal_cryptfile_held_t *held, int rc);

/* Add an extent to the next transfer; joined to the last one where both sides are contiguous. */
int opal_cryptfile_extent_add(opal_cryptfile_work_t *work, uint64_t at, void *bytes, size_t count);
/* The same for bytes of a packed stream. */
int opal_cryptfile_extent_packed(const opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region,
                                 uint64_t plain, void *bytes, size_t count);

/* ---- entries ---- */

/* The slots of `count` blocks of one group, to work->slots; *at: where the entry of the first lies. */
int opal_cryptfile_entries_read(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region,
                                uint64_t first, uint64_t count, uint64_t *at);

/* The entries of these blocks as stored, if they match the demanded seal; else ERR_AUTH. */
int opal_cryptfile_tree_entries(opal_cryptfile_t *file, uint32_t region, uint64_t first, uint64_t count, uint8_t *entries);

/* An entry as it is stored. */
void opal_cryptfile_entry_parse(const opal_cryptfile_t *file, const uint8_t *bytes, uint32_t capacity, opal_cryptfile_slots_t *slots);
void opal_cryptfile_entry_put(const opal_cryptfile_slots_t *slots, uint8_t bytes[OPAL_CRYPTFILE_ENTRY_BYTES]);

/* Clear an entry that is beyond the end of the file: its slots have no version, and say that they had. */
void opal_cryptfile_entry_void(uint8_t entry[OPAL_CRYPTFILE_SLOTS_BYTES]);

/* Before a file grows to `end`, with the lock of some block beyond its end: finish the blocks that it
 * ends in, and clear void entries, as far as their locks are held. */
int opal_cryptfile_lengthen(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_range_t *held, uint64_t end);
/* Take these block locks, and more if that work needs them; and do it. */
int opal_cryptfile_lengthen_lock(opal_cryptfile_t *file, opal_cryptfile_work_t *work, opal_cryptfile_range_t *range, uint64_t at,
                                 uint64_t count, uint64_t end);

/* If the file is watched, note that a block gets a new version with bytes of this one. */
int opal_cryptfile_seal_based(opal_cryptfile_t *file, uint32_t region, uint64_t block,
                              const opal_cryptfile_slot_t *slot);

/* ---- rooms ---- */

/* The check in the head of a complete room, which covers everything but itself. */
uint32_t opal_cryptfile_redo_check(const uint8_t head[OPAL_CRYPTFILE_REDO_HEAD_BYTES], const uint8_t *cipher, uint32_t cipher_bytes);

/* What a room holds, and its B bytes in `cipher`; *there: it is of this block.  The number comes from
 * storage: it may name a room that does not exist, or that has another block by now. */
int opal_cryptfile_redo_read(opal_cryptfile_t *file, uint32_t region, uint64_t block, uint32_t number,
                             opal_cryptfile_redo_room_t *redo, uint8_t *cipher, bool *there);

/* Take rooms of the run's group for this call alone, into work->rooms: at least one, at most `wanted`.  The run's
 * entries are in work->slots.  No block's mark leads to what the rooms hold.  May wait for other processes.  And give
 * them back: returns rc, like range_unlock. */
int opal_cryptfile_redo_take(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_blockrun_t *run,
                                    uint32_t wanted);
int opal_cryptfile_redo_give(opal_cryptfile_t *file, opal_cryptfile_work_t *work, int rc);

/* ---- one block (recover.c) ---- */

/* Which version of a block is there. */
typedef struct opal_cryptfile_found {
    enum {
        OPAL_CRYPTFILE_FOUND_HOLE,
        OPAL_CRYPTFILE_FOUND_CURRENT,   /* data with the newer slot */
        OPAL_CRYPTFILE_FOUND_AHEAD,     /* data with a room's slot */
        OPAL_CRYPTFILE_FOUND_REDO,      /* a room's ciphertext */
        OPAL_CRYPTFILE_FOUND_OLDER      /* data with the older slot */
    } how;
    opal_cryptfile_slot_t slot;         /* unused: a hole */
    uint64_t entry_at;                  /* where the block's entry lies */
} opal_cryptfile_found_t;

/* Under the block's lock: find the current version, and put its text into `plain` (B bytes,
 * zero-filled).  ERR_AUTH or ERR_TORN: no version opens. */
int opal_cryptfile_recover(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region,
                           uint64_t block, uint8_t *plain, opal_cryptfile_found_t *found);

/* The same for a reader without a lock: takes the block's lock, and releases it. */
int opal_cryptfile_recover_alone(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region,
                                 uint64_t block, uint8_t *plain, opal_cryptfile_found_t *found);

/* Under the block's exclusive lock, with its entry in `slots`: recover, and finish an overwrite
 * that was cut short, so that the entry is right and the room can be reused; `slots` are updated.
 * ERR_AUTH or ERR_TORN: no version opens, and nothing was changed. */
int opal_cryptfile_finish(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t block,
                          uint8_t *plain, opal_cryptfile_found_t *found, opal_cryptfile_slots_t *slots);

/* Under the lock of a block, with its entry in `slots`: redo the overwrite from its room, without the key.
 * A block that was cut is left alone. */
int opal_cryptfile_redo(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t number, const opal_cryptfile_redo_room_t *redo,
                        opal_cryptfile_slots_t *slots);

/* Mark, in the slot that is written next, the room of the overwrite. */
static inline void opal_cryptfile_mark(opal_cryptfile_slots_t *slots)
{
    opal_cryptfile_slot_t *next = &slots->slot[!opal_cryptfile_entry_newer(slots->slot)];

    next->pending = true;
    next->redo = slots->redo;
}

/* Before anything of a run is overwritten, with its entries in work->slots: take rooms.  commit_end must follow, even
 * after a failure. */
int opal_cryptfile_commit_begin(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_blockrun_t *run);
/* Assign rooms to blocks from `from` on, as far as rooms suffice (*count blocks), and write the marks that lead to
 * them, with the entries of [entered, from), whose round is done.  The run's entries are at `at`. */
int opal_cryptfile_commit_round(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_blockrun_t *run,
                                uint64_t entered, uint64_t from, uint64_t at, uint64_t *count);
/* Blocks [from, from + count) of a round, sealed: ciphertext of block from + i at
 * work->cipher + i B, its slot in work->fresh, what its entry held in
 * work->slots (of the whole run, both).  Rooms and data are written. */
int opal_cryptfile_commit_part(opal_cryptfile_t *file, opal_cryptfile_work_t *work,
                               const opal_cryptfile_blockrun_t *run, uint64_t from, uint64_t count);
/* After that: write the entries of blocks [entered, done), and free the rooms.  rc: the result
 * so far, which is returned if it is an error. */
int opal_cryptfile_commit_end(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint64_t entered, uint64_t done, uint64_t at, int rc);

/* ---- outcome ---- */

static inline void opal_cryptfile_outcome_init(opal_cryptfile_outcome_t *outcome)
{
    *outcome = (opal_cryptfile_outcome_t){.region = UINT32_MAX};
}

/* Fill in the outcome of a failure; returns rc. */
int opal_cryptfile_outcome_set(const opal_cryptfile_t *file, opal_cryptfile_outcome_t *outcome, int rc,
                               uint32_t region, uint64_t block);

#endif

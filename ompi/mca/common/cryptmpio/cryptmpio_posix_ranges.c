/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Ranges of locks of one process, as its file system keeps them: neighbors become one range, a range is locked again in
 * part, is divided, and changes between shared and exclusive.  All of these happen to the locks of blocks, users and rooms.
 * The MDS of CephFS (seen with 16) computes where two joined ranges end in 32 bits: a process that locks a byte
 * for the second time, at offsets like those of our locks, loses all but the first byte of the range.
 *
 *     byte       0  1  2  3  4  5  6          X exclusive, s shared
 *     held       X  .  X  X  X  s  s
 */
#include "cryptmpio_posix.h"

#include "opal/mca/common/cryptfile/file/geometry.h"

static uint64_t lock_of(uint8_t at) { return opal_cryptfile_geometry_entry_lock(0) + at; }

int ompi_common_cryptmpio_posix_ranges_take(ompi_common_cryptmpio_posix_t *posix)
{
    static const struct {
        char how;
        uint8_t at, bytes;
    } steps[] = {{'X', 0, 3}, {'X', 3, 2}, {'X', 2, 1}, {'.', 1, 1}, {'s', 6, 1}, {'s', 5, 2}, {'X', 5, 1}, {'s', 5, 1}};
    opal_cryptfile_storage_t *storage = &posix->super;
    int rc = OPAL_CRYPT_OK;

    for (size_t i = 0; OPAL_CRYPT_OK == rc && i < sizeof(steps) / sizeof(*steps); ++i) {
        rc = '.' == steps[i].how ? storage->unlock(storage, lock_of(steps[i].at), steps[i].bytes)
                                 : storage->lock(storage, lock_of(steps[i].at), steps[i].bytes, 'X' == steps[i].how);
    }
    return rc;
}

/* Several processes may test at once: what they can have, they share. */
int ompi_common_cryptmpio_posix_ranges_test(ompi_common_cryptmpio_posix_t *posix, bool *right)
{
    static const struct {
        bool exclusive, is_free;
        uint8_t at, bytes;
    } tests[] = {{false, false, 0, 1}, {false, true, 1, 1}, {false, false, 2, 3}, {false, false, 4, 1}, {true, false, 5, 2}, {true, false, 6, 1}};
    opal_cryptfile_storage_t *storage = &posix->super;
    int rc = OPAL_CRYPT_OK;

    *right = true;
    for (size_t i = 0; OPAL_CRYPT_OK == rc && i < sizeof(tests) / sizeof(*tests); ++i) {
        bool got = false;
        rc = storage->try_lock(storage, lock_of(tests[i].at), tests[i].bytes, tests[i].exclusive, &got);
        *right = *right && OPAL_CRYPT_OK == rc && got == tests[i].is_free;
        rc = got ? storage->unlock(storage, lock_of(tests[i].at), tests[i].bytes) : rc;
    }
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The half of btl/crypt that needs no Open MPI, over socket pairs:
 *
 *     | 0 | ...      unauthenticated clients                        fuzz_btl_unauthenticated.h
 *     | 1 | ...      a peer that has the keys, and sends anything   fuzz_btl_peer.h
 *     | 2 | ...      two good ends, in any order                    fuzz_btl_pair.h
 */
#include "fuzz_btl.h"
#include "fuzz_btl_pair.h"
#include "fuzz_btl_peer.h"
#include "fuzz_btl_unauthenticated.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t in = {data, data + size};

    fuzz_begin();
    switch (take8(&in)) {
    case 0: fuzz_unauthenticated(&in); break;
    case 1: fuzz_peer(&in); break;
    case 2: fuzz_two(&in); break;
    default: break;
    }
    return 0;
}

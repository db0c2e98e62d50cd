/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * window: puts, accumulates and gets of many lengths between the nodes.  A program may look into its window at any time, so
 * nothing is opened there that has not verified: of what pml/crypt opens, not a byte is written to a window.  (Over btl/crypt
 * unit/test_btl_link looks.)
 */
#define _GNU_SOURCE
#include "mt.h"

#include <dlfcn.h>

enum { ROOM = 1 << 20 };

static unsigned char window[ROOM], data[ROOM];
static unsigned opened, in_window;

/* ---- in front of the functions that open ---- */

static void see(const void *plain, size_t bytes)
{
    opened++;
    in_window += bytes > 0 && (const unsigned char *) plain < window + ROOM && (const unsigned char *) plain + bytes > window;
}

int opal_crypt_direct_open(void *session, const void *envelope, const uint8_t *frame, size_t bytes, void *plain, size_t room,
                           uint64_t *counter);
int opal_crypt_direct_open(void *session, const void *envelope, const uint8_t *frame, size_t bytes, void *plain, size_t room,
                           uint64_t *counter)
{
    int (*real)(void *, const void *, const uint8_t *, size_t, void *, size_t, uint64_t *) =
        (int (*)(void *, const void *, const uint8_t *, size_t, void *, size_t, uint64_t *)) dlsym(RTLD_NEXT, "opal_crypt_direct_open");

    see(plain, bytes);
    return real(session, envelope, frame, bytes, plain, room, counter);
}

int opal_crypt_first_open(void *session, const void *envelope, const uint8_t *frame, size_t bytes, void *plain, size_t room,
                          void *shape, uint64_t *counter, void **chop);
int opal_crypt_first_open(void *session, const void *envelope, const uint8_t *frame, size_t bytes, void *plain, size_t room,
                          void *shape, uint64_t *counter, void **chop)
{
    int (*real)(void *, const void *, const uint8_t *, size_t, void *, size_t, void *, uint64_t *, void **) =
        (int (*)(void *, const void *, const uint8_t *, size_t, void *, size_t, void *, uint64_t *, void **)) dlsym(RTLD_NEXT, "opal_crypt_first_open");

    see(plain, bytes);
    return real(session, envelope, frame, bytes, plain, room, shape, counter, chop);
}

int opal_crypt_segment_open(void *chop, uint32_t segment, const uint8_t *frame, size_t bytes, void *plain);
int opal_crypt_segment_open(void *chop, uint32_t segment, const uint8_t *frame, size_t bytes, void *plain)
{
    int (*real)(void *, uint32_t, const uint8_t *, size_t, void *) =
        (int (*)(void *, uint32_t, const uint8_t *, size_t, void *)) dlsym(RTLD_NEXT, "opal_crypt_segment_open");

    see(plain, bytes);
    return real(chop, segment, frame, bytes, plain);
}

/* ---- what is done to windows ---- */

/* The last rank's window, by rank 0. */
static void change(MPI_Win win, int bytes, bool replace)
{
    const int to = mt_size - 1;

    memset(window, 0, sizeof(window));
    MT_MPI(MPI_Win_fence(0, win));
    if (0 == mt_rank) {
        mt_fill(data, (size_t) bytes, mt_key(1, bytes, replace, 0));
        MT_MPI(replace ? MPI_Accumulate(data, bytes, MPI_BYTE, to, 1, bytes, MPI_BYTE, MPI_REPLACE, win)
                       : MPI_Put(data, bytes, MPI_BYTE, to, 1, bytes, MPI_BYTE, win));
    }
    MT_MPI(MPI_Win_fence(0, win));
    if (to == mt_rank) {
        MT_SAME(window + 1, (size_t) bytes, mt_key(1, bytes, replace, 0), "a window");
    }
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 1000, 8000, 9000, 60000, 300000, ROOM - 1};
    unsigned all;
    MPI_Win win;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_MPI(MPI_Win_create(window, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        change(win, lengths[i], false);
        change(win, lengths[i], true);
    }
    MT_MPI(MPI_Win_free(&win));
    MT_CHECK(0 == in_window, "%u of %u messages were opened in a window", in_window, opened);
    /* A receive's buffer is nobody else's: there they are opened where they belong. */
    if (0 == mt_rank) {
        MT_MPI(MPI_Send(data, ROOM, MPI_BYTE, mt_size - 1, 1, MPI_COMM_WORLD));
    } else if (mt_size - 1 == mt_rank) {
        MT_MPI(MPI_Recv(window, ROOM, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MT_CHECK(in_window > 0 || !mt_sealed(), "of %u messages none was opened in the buffer of a receive", opened);
    }
    MT_MPI(MPI_Reduce(&opened, &all, 1, MPI_UNSIGNED, MPI_SUM, 0, MPI_COMM_WORLD));
    MT_CHECK(0 != mt_rank || all > 0 || !mt_sealed(), "nothing was opened");
    mt_group("windows, and %u messages", all);
    return mt_end();
}

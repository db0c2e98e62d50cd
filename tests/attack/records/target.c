/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * target DIRECTORY: two processes put and send long messages into each other's windows, the memory of DIRECTORY/window.RANK, which is
 * there when they have been ended.  All its bytes are OLD or those of a put; a thread that finds another one there, if for a
 * moment only, puts that behind the window.
 */
#include "mt.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM = 1 << 20, ROUNDS = 30, OLD = 0x33, EVEN = 0x5a, ODD = 0xa5 };

static unsigned char data[ROOM], *window;

static void *poll_window(void *argument)
{
    const volatile unsigned char *bytes = window;

    (void) argument;
    for (size_t i = 0;; i = (i + 61) % ROOM) {
        const unsigned char now = bytes[i];

        if (OLD != now && EVEN != now && ODD != now) {
            window[ROOM] = now;
        }
    }
    return NULL;
}

static void map_window(const char *directory)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof(path), "%s/window.%d", directory, mt_rank);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    MT_CHECK(fd >= 0 && 0 == ftruncate(fd, ROOM + 1), "%s", path);
    window = mmap(NULL, ROOM + 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MT_CHECK(MAP_FAILED != window, "%s", path);
    memset(window, OLD, ROOM + 1);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    MPI_Win win;

    mt_start_alone(&argc, &argv, MPI_THREAD_FUNNELED);
    map_window(argv[1]);
    MT_CHECK(0 == pthread_create(&thread, NULL, poll_window, NULL), "a thread");
    MT_MPI(MPI_Win_create(window, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MT_MPI(MPI_Win_fence(0, win));
    for (int round = 0; round < ROUNDS; round++) {
        memset(data, 0 == round % 2 ? EVEN : ODD, ROOM);
        if (0 == round / 2 % 2) {
            MT_MPI(MPI_Put(data, ROOM, MPI_BYTE, 1 - mt_rank, 0, ROOM, MPI_BYTE, win));
        } else {                                /* a put of ob1, even if the other one is not */
            MT_MPI(MPI_Sendrecv(data, ROOM, MPI_BYTE, 1 - mt_rank, 0, window, ROOM, MPI_BYTE, 1 - mt_rank, 0, MPI_COMM_WORLD,
                                MPI_STATUS_IGNORE));
        }
        MT_MPI(MPI_Win_fence(0, win));
        MT_CHECK(0 == memcmp(window, data, ROOM), "round %d: wrong bytes", round);
        MT_MPI(MPI_Win_fence(0, win));          /* both have looked before the next put */
    }
    MT_MPI(MPI_Win_free(&win));
    return mt_end();
}

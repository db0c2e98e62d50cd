/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Thousands of messages from rank 0 to rank 1 that are outstanding at once: how much
 * time and memory they take on each side.  outstanding.sh compares.
 *
 *     outstanding way=get|receives|sends|blocking count=N bytes=N [threads]
 *
 *     get         MPI_Get by rank 1, all in one epoch
 *     receives    all receives are posted, then all sends
 *     sends       all sends, which rank 1 lets arrive before it posts a receive
 *     blocking    all receives are posted; one MPI_Send after another
 *
 * Every buffer is touched before memory is measured, so that growth is what the
 * library holds.  Message i is the part of one pattern that begins at 64 (i mod 1024):
 * so messages that are swapped are detected.
 */
#include "mt.h"

#include <sys/mman.h>
#include <sys/resource.h>

enum { STEP = 64, STEPS = 1024, MEASURE = 4711 };

static int count;
static size_t bytes;
static unsigned char *from, *to;
static MPI_Request *req;

/* What /proc/self/status says in the line `name`, in KiB. */
static long status_kib(const char *name)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    MT_CHECK(NULL != f, "/proc/self/status");
    while (kib < 0 && NULL != fgets(line, sizeof(line), f)) {
        if (0 == strncmp(line, name, strlen(name))) {
            kib = atol(line + strlen(name));
        }
    }
    fclose(f);
    MT_CHECK(kib >= 0, "no line %s", name);
    return kib;
}

/* Milliseconds on a processor: on a busy machine they tell more than the clock. */
static double busy_ms(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return 1e3 * (double) (used.ru_utime.tv_sec + used.ru_stime.tv_sec)
           + 1e-3 * (double) (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    MT_CHECK(NULL != f && fputs("5", f) >= 0 && 0 == fclose(f), "the peak cannot be set back");
}

static unsigned char *touched(size_t n)
{
    unsigned char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MT_CHECK(MAP_FAILED != p, "%zu bytes of memory", n);
    memset(p, 0xee, n);
    return p;
}

static const unsigned char *message(int i)
{
    return from + (size_t) (i % STEPS) * STEP;
}

static void check(void)
{
    for (int i = 0; i < count; i++) {
        MT_CHECK(0 == memcmp(to + (size_t) i * bytes, message(i), bytes), "message %d", i);
    }
}

static void receives(void)
{
    for (int i = 0; i < count; i++) {
        MT_MPI(MPI_Irecv(to + (size_t) i * bytes, (int) bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &req[i]));
    }
}

static void sends(void)
{
    for (int i = 0; i < count; i++) {
        MT_MPI(MPI_Isend(message(i), (int) bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &req[i]));
    }
}

static void blocking(void)
{
    for (int i = 0; i < count; i++) {
        MT_MPI(MPI_Send(message(i), (int) bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        req[i] = MPI_REQUEST_NULL;
    }
}

static void wait_all(void)
{
    MT_MPI(MPI_Waitall(count, req, MPI_STATUSES_IGNORE));
}

/* With `late` the receives come when the sends, as far as they go by themselves, have arrived. */
static void two_sided(void (*send)(void), bool late)
{
    if (1 == mt_rank && !late) {
        receives();
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        send();
    }
    if (late) {
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (1 == mt_rank && late) {
        receives();
    }
    wait_all();
}

static void gets(MPI_Win win)
{
    MT_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    for (int i = 0; 1 == mt_rank && i < count; i++) {
        MT_MPI(MPI_Get(to + (size_t) i * bytes, (int) bytes, MPI_BYTE, 0, (MPI_Aint) (message(i) - from), (int) bytes,
                       MPI_BYTE, win));
    }
    MT_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

int main(int argc, char **argv)
{
    const char *way = NULL;
    MPI_Win win = MPI_WIN_NULL;
    mt_start(&argc, &argv, mt_flag("threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    for (int i = 1; i < argc; i++) {
        way = 0 == strncmp(argv[i], "way=", 4) ? argv[i] + 4 : way;
    }
    count = (int) mt_arg("count", 1000);
    bytes = (size_t) mt_arg("bytes", 131072);
    MT_CHECK(NULL != way && 2 == mt_size, "a way, and two ranks");
    from = touched(bytes + STEP * STEPS);
    mt_fill(from, bytes + STEP * STEPS, mt_key(1, 0, 0, 0));
    to = 1 == mt_rank ? touched((size_t) count * bytes) : NULL;
    req = (void *) touched((size_t) count * sizeof(*req));
    unsigned char *scratch = touched(bytes);
    if (0 == strcmp(way, "get")) {      /* 5.0 refuses windows over two nodes */
        MT_MPI(MPI_Win_create(from, (MPI_Aint) (bytes + STEP * STEPS), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    MT_MPI(MPI_Sendrecv(from, (int) bytes, MPI_BYTE, 1 - mt_rank, MEASURE, 1 == mt_rank ? to : scratch, (int) bytes,
                        MPI_BYTE, 1 - mt_rank, MEASURE, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    reset_peak();
    long before = status_kib("VmRSS:");
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    double begin = MPI_Wtime(), idle = busy_ms();
    if (0 == strcmp(way, "get")) {
        gets(win);
    } else {
        two_sided(0 == strcmp(way, "blocking") ? blocking : sends, 0 == strcmp(way, "sends"));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    double end = MPI_Wtime();
    printf("rank %d: %ld KiB, %.0f ms, on a processor %.0f ms\n", mt_rank, status_kib("VmHWM:") - before,
           1e3 * (end - begin), busy_ms() - idle);
    fflush(stdout);
    if (1 == mt_rank) {
        check();
    }
    if (MPI_WIN_NULL != win) {
        MT_MPI(MPI_Win_free(&win));
    }
    return mt_end();
}

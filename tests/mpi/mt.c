/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * See mt.h.
 */
#include "mt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define GUARD 64
#define POISON 0xa7

int mt_rank, mt_size;

static int arg_count;
static char **arg_values;
static const char *program = "?";
static char (*hosts)[MPI_MAX_PROCESSOR_NAME];
static const char *volatile place_file = "start";
static volatile int place_line;

const size_t mt_sizes[] = {
    0, 1, 2, 7, 8, 15, 16, 17, 23, 24, 25, 40, 63, 64, 65, 255, 256, 1000, 1023, 1024, 1025,
    4071, 4072, 4073, 4095, 4096, 4097, 8192, 16383, 16384,
    32727, 32728, 32729, 32743, 32744, 32745, 32767, 32768, 32769, 65495, 65496, 65497,
    65511, 65512, 65513, 65535, 65536, 65537, 106399, 106400, 106401, 131071, 131072, 131073,
    139168, 262143, 262144, 262145, 524287, 524288, 524289, 557056, 557057,
    1048575, 1048576, 1048577, 4194303, 4194304, 4194305, MT_MAX_SIZE
};
const int mt_sizes_count = sizeof(mt_sizes) / sizeof(*mt_sizes);
const size_t mt_few_sizes[] = {0, 1, 24, 4096, 32769, 65535, 65537, 300001, 1048576};
const int mt_few_sizes_count = sizeof(mt_few_sizes) / sizeof(*mt_few_sizes);

/* ---- life ---- */

/* Seconds for which this process was ready to run but did not; 0 where Linux does not tell. */
static unsigned waited(void)
{
    char text[128] = "";
    int fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
    uint64_t nanoseconds = 0;

    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0) {
        text[0] = '\0';
    }
    close(fd);
    for (const char *c = text + strcspn(text, " "); ' ' == *c || (*c >= '0' && *c <= '9'); c++) {
        if (' ' == *c && nanoseconds > 0) {
            break;
        }
        nanoseconds = ' ' == *c ? 0 : 10 * nanoseconds + (uint64_t) (*c - '0');
    }
    return (unsigned) (nanoseconds / 1000000000);
}

/* A limit counts the time that the process could run, even on a machine with a load of 20.  Only
 * async-signal-safe calls. */
static void on_alarm(int sig)
{
    static unsigned granted;
    char text[512], digits[16];
    size_t n = 0, d = sizeof(digits);
    const char *parts[] = {"watchdog: ", program, " hangs after ", place_file, ":"};
    unsigned more = waited() - granted;

    (void) sig;
    if (more > 0) {
        granted += more;
        alarm(more);
        return;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        for (const char *c = parts[i]; *c && n < sizeof(text) - 20; c++) {
            text[n++] = *c;
        }
    }
    for (unsigned v = (unsigned) place_line; d > 0 && (v || d == sizeof(digits)); v /= 10) {
        digits[--d] = (char) ('0' + v % 10);
    }
    memcpy(text + n, digits + d, sizeof(digits) - d);
    n += sizeof(digits) - d;
    text[n++] = '\n';
    if (write(2, text, n) < 0) {
        _exit(98);
    }
    _exit(99);
}

static void find_hosts(void)
{
    char mine[MPI_MAX_PROCESSOR_NAME] = "";
    int n;
    hosts = malloc((size_t) mt_size * sizeof(*hosts));
    MT_CHECK(NULL != hosts, "memory");
    MT_MPI(MPI_Get_processor_name(mine, &n));
    MT_MPI(MPI_Allgather(mine, sizeof(mine), MPI_CHAR, hosts, sizeof(mine), MPI_CHAR, MPI_COMM_WORLD));
}

void mt_start_alone(int *argc, char ***argv, int level)
{
    int given;
    const char *limit = getenv("MT_WATCHDOG");
    const char *slash = strrchr((*argv)[0], '/');
    program = slash ? slash + 1 : (*argv)[0];
    signal(SIGALRM, on_alarm);
    alarm(limit ? (unsigned) atoi(limit) : 300);
    MT_MPI(MPI_Init_thread(argc, argv, level, &given));
    arg_count = *argc;
    arg_values = *argv;
    MT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &mt_rank));
    MT_MPI(MPI_Comm_size(MPI_COMM_WORLD, &mt_size));
    if (given < level) {
        mt_skip("thread level %d asked for, %d given", level, given);
    }
}

void mt_start(int *argc, char ***argv, int level)
{
    mt_start_alone(argc, argv, level);
    find_hosts();
}

int mt_end(void)
{
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        printf("passed %s\n", program);
        fflush(stdout);
    }
    MT_MPI(MPI_Finalize());
    free(hosts);
    return 0;
}

void mt_group(const char *format, ...)
{
    va_list ap;
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        printf("ok %s: ", program);
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        printf("\n");
        fflush(stdout);
    }
}

void mt_skip(const char *format, ...)
{
    va_list ap;
    if (0 == mt_rank) {
        printf("skipped %s: ", program);
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        printf("\n");
        fflush(stdout);
    }
    MPI_Finalize();
    exit(MT_SKIP);
}

void mt_place(const char *file, int line)
{
    place_file = file;
    place_line = line;
}

void mt_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    fprintf(stderr, "%s:%d: rank %d of %d: %s\n", file, line, mt_rank, mt_size, text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

void mt_fail_mpi(const char *file, int line, const char *call, int rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    MPI_Error_string(rc, text, &n);
    mt_fail(file, line, "%s: %s", call, text);
}

long mt_arg(const char *name, long otherwise)
{
    size_t n = strlen(name);
    for (int i = 1; i < arg_count; i++) {
        if (0 == strncmp(arg_values[i], name, n) && '=' == arg_values[i][n]) {
            return strtol(arg_values[i] + n + 1, NULL, 0);
        }
    }
    return otherwise;
}

bool mt_flag(const char *word)
{
    for (int i = 1; i < arg_count; i++) {
        if (0 == strcmp(arg_values[i], word)) {
            return true;
        }
    }
    return false;
}

/* ---- patterns ---- */

uint64_t mt_mix(uint64_t x)             /* splitmix64's output function */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t mt_key(int seed, int source, int tag, int index)
{
    return mt_mix(mt_mix(mt_mix(mt_mix((uint64_t) seed) + (uint64_t) source) + (uint64_t) tag) + (uint64_t) index);
}

void mt_fill(void *p, size_t n, uint64_t key)
{
    unsigned char *to = p;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = mt_mix(key + i / 8);
        memcpy(to + i, &word, n - i < 8 ? n - i : 8);
    }
}

size_t mt_differs(const void *p, size_t n, uint64_t key)
{
    const unsigned char *from = p;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = mt_mix(key + i / 8);
        size_t some = n - i < 8 ? n - i : 8;
        if (0 != memcmp(from + i, &word, some)) {
            size_t k = 0;
            while (k < some && from[i + k] == ((unsigned char *) &word)[k]) {
                k++;
            }
            return i + k;
        }
    }
    return n;
}

uint64_t mt_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return mt_mix(*state);
}

size_t mt_random_size(uint64_t *state, size_t limit)
{
    size_t size;
    switch (mt_below(state, 8)) {
    case 0:  size = mt_sizes[mt_below(state, (size_t) mt_sizes_count)]; break;
    case 1:  size = mt_below(state, 200000); break;
    case 2:  size = 60000 + mt_below(state, 12000); break;
    case 3:  size = 30000 + mt_below(state, 6000); break;
    default: size = mt_below(state, 2000); break;
    }
    return size > limit ? limit ? size % limit : 0 : size;
}

/* ---- buffers ---- */

void mt_buf_new(mt_buf_t *b, size_t n)
{
    unsigned char *base = mt_alloc(n + 2 * GUARD);
    MT_CHECK(NULL != base, "no memory for %zu bytes", n);
    b->p = base + GUARD;
    b->n = n;
    memset(base, POISON, n + 2 * GUARD);
}

void mt_buf_free(mt_buf_t *b)
{
    free(b->p - GUARD);
    b->p = NULL;
}

void mt_buf_poison(mt_buf_t *b)
{
    memset(b->p - GUARD, POISON, b->n + 2 * GUARD);
}

void mt_buf_check(const mt_buf_t *b, size_t used, uint64_t key, const char *file, int line)
{
    size_t wrong = mt_differs(b->p, used, key);
    if (wrong != used) {
        mt_fail(file, line, "wrong byte at %zu of %zu", wrong, used);
    }
    for (const unsigned char *c = b->p - GUARD; c < b->p; c++) {
        if (POISON != *c) {
            mt_fail(file, line, "%td bytes before the buffer were written", b->p - c);
        }
    }
    for (const unsigned char *c = b->p + used; c < b->p + b->n + GUARD; c++) {
        if (POISON != *c) {
            mt_fail(file, line, "byte %td was written, message %zu, buffer %zu", c - b->p, used, b->n);
        }
    }
}

void mt_status_check(const MPI_Status *s, int source, int tag, size_t bytes, const char *file, int line)
{
    int count = -1, cancelled = -1;
    MPI_Get_count(s, MPI_BYTE, &count);
    MPI_Test_cancelled(s, &cancelled);
    if (s->MPI_SOURCE != source || s->MPI_TAG != tag || (size_t) count != bytes || cancelled) {
        mt_fail(file, line, "status says source %d tag %d count %d cancelled %d, expected source %d tag %d count %zu",
                s->MPI_SOURCE, s->MPI_TAG, count, cancelled, source, tag, bytes);
    }
}

/* ---- surroundings ---- */

bool mt_remote(int rank)
{
    return 0 != strcmp(hosts[rank], hosts[mt_rank]);
}

long mt_rss_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (1 == sscanf(line, "VmRSS: %ld kB", &kib)) {
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return kib;
}

bool mt_sealed(void)
{
    const char *pml = getenv("OMPI_MCA_pml"), *transport = getenv("OMPI_MCA_crypt_transport"), *host = getenv("OMPI_MCA_pml_crypt_host");

    return pml && NULL != strstr(pml, "crypt")
           && ((transport && 0 == strcmp(transport, "pml")) || (host && (0 == strcmp(host, "ucx") || 0 == strcmp(host, "cm"))));
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Core files hold no keys: this program starts itself once per provider, the
 * child seals and opens with a key that it reads from a pipe, and dies of
 * SIGSEGV.  Its core file, which has the memory and the registers, is searched
 * for all that aead_needles.h names.  Where a provider can only turn core files
 * off, there must be none.  A child that keeps copies on purpose shows that the
 * search finds keys on the stack and on the heap.
 */
#include "tests/unit/aead_providers.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int main(void)
{
    return unit_skip("a sanitizer keeps SIGSEGV for itself");
}

#else

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/aead_needles.h"

static void test_needles(void)
{
    static const uint8_t raw[16] = {        /* FIPS 197, A.1 */
        0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c
    };
    static const uint8_t last[16] = {
        0xd0, 0x14, 0xf9, 0xa8, 0xc9, 0xee, 0x25, 0x89, 0xe1, 0x3f, 0x0c, 0xc8, 0xb6, 0x63, 0x0c, 0xa6
    };
    static const uint8_t raw_256[32] = {    /* A.3 */
        0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae, 0xf0, 0x85, 0x7d, 0x77, 0x81,
        0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61, 0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3, 0x09, 0x14, 0xdf, 0xf4
    };
    static const uint8_t last_256[16] = {
        0xfe, 0x48, 0x90, 0xd1, 0xe6, 0x18, 0x8d, 0x0b, 0x04, 0x6d, 0xf3, 0x44, 0x70, 0x6c, 0x63, 0x1e
    };
    static const uint8_t h[16] = {          /* McGrew and Viega, GCM, test case 2 */
        0x66, 0xe9, 0x4b, 0xd4, 0xef, 0x8a, 0x2c, 0x3b, 0x88, 0x4c, 0xfa, 0x59, 0xca, 0x34, 0x2b, 0x2e
    };
    static const uint8_t wanted[16] = {
        0x5e, 0x2e, 0xc7, 0x46, 0x91, 0x70, 0x62, 0x88, 0x2c, 0x85, 0xb0, 0x68, 0x53, 0x53, 0xde, 0xb7
    };
    uint8_t product[16] = {
        0x03, 0x88, 0xda, 0xce, 0x60, 0xb6, 0xa3, 0x92, 0xf3, 0x28, 0xc2, 0xb9, 0x71, 0xb2, 0xfe, 0x78
    };
    uint8_t keys[15][NEEDLE];

    UNIT_GROUP("the key expansion is FIPS 197's");
    UNIT_CHECK(11 == expand(raw, 16, keys[0]));
    UNIT_EQUAL_BYTES(last, keys[10], sizeof(last));
    UNIT_CHECK(15 == expand(raw_256, 32, keys[0]));
    UNIT_EQUAL_BYTES(last_256, keys[14], sizeof(last_256));
    UNIT_GROUP("and so is multiplication SP 800-38D's");
    hash_times(product, h);
    UNIT_EQUAL_BYTES(wanted, product, sizeof(wanted));
}

/* ---- the child ---- */

static void die(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

/* Where the child dies. */
typedef enum { SEALED, OPENED, REFUSED, STAGES } stage_t;
static const char *const stage_names[STAGES] = { "sealed", "opened", "refused" };

static int use(keyed_t *k, size_t bytes, stage_t stage)
{
    static uint8_t text[70000];
    static const uint8_t header[1000];
    const size_t aad_bytes = 128 == bytes ? sizeof(header) : 6;
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES] = { (uint8_t) bytes }, tag[OPAL_AEAD_TAG_BYTES];
    int rc = k->module->seal(k->context, k->key, nonce, header, aad_bytes, text, bytes, text, tag);

    if (SEALED == stage) {
        return OPAL_AEAD_OK == rc;
    }
    tag[3] ^= REFUSED == stage ? 4 : 0;
    rc = k->module->open(k->context, k->key, nonce, header, aad_bytes, text, bytes, tag, text);
    return (REFUSED == stage ? OPAL_AEAD_REFUSED : OPAL_AEAD_OK) == rc;
}

/* The key never touches the child's stack or heap on its way from the pipe. */
static void child_works(const char *name, opal_aead_cipher_t cipher, size_t bytes, stage_t stage, int late)
{
    const provider_t *p = all_providers;
    uint8_t *raw = opal_aead_pages_alloc(OPAL_AEAD_KEY_MAX_BYTES);
    keyed_t k;

    while (0 != strcmp(name, p->module->name)) {
        ++p;
    }
    UNIT_REQUIRE(OPAL_AEAD_KEY_MAX_BYTES == read(STDIN_FILENO, raw, OPAL_AEAD_KEY_MAX_BYTES));
#ifdef OMPI_CRYPT_HAVE_AEAD_OPENSSL
    if (late) {             /* the application has used OpenSSL before */
        UNIT_REQUIRE(0 != EVP_CIPHER_CTX_reset(EVP_CIPHER_CTX_new()));
    }
#endif
    UNIT_REQUIRE(OPAL_AEAD_OK == p->init());
    k = keyed_new(p, cipher, raw);
    UNIT_REQUIRE(use(&k, bytes, stage));
    (void) late;
    die();
}

/* All places where a key must not be. */
static void child_leaks(void)
{
    uint8_t *raw = opal_aead_pages_alloc(OPAL_AEAD_KEY_MAX_BYTES);
    uint8_t *on_heap;
    needles_t needles;

    UNIT_REQUIRE(OPAL_AEAD_KEY_MAX_BYTES == read(STDIN_FILENO, raw, OPAL_AEAD_KEY_MAX_BYTES));
    needles_of(&needles, OPAL_AEAD_AES_128_GCM, raw);       /* on the stack */
    on_heap = malloc(NEEDLE);
    UNIT_REQUIRE(NULL != on_heap);
    memcpy(on_heap, needles.bytes[0], NEEDLE);              /* the raw key on the heap */
    opal_aead_wipe(needles.bytes[0], NEEDLE);
    __asm__ volatile("" : : "r"(on_heap), "r"(&needles) : "memory");
    die();
}

/* ---- the parent ---- */

static char directory[] = "/tmp/aead-core.XXXXXX";

/* Find the core file's path; false if there is no core file. */
static int find_core(char *path, size_t size)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;
    int found = 0;

    UNIT_REQUIRE(NULL != entries);
    while (NULL != (entry = readdir(entries))) {
        if ('.' != entry->d_name[0]) {
            snprintf(path, size, "%s/%s", directory, entry->d_name);
            found++;
        }
    }
    closedir(entries);
    UNIT_REQUIRE(found <= 1);
    return found;
}

/* Run a child with this key; its wait status. */
static int run_child(char *const *arguments, const uint8_t *raw)
{
    int ends[2], status;
    pid_t pid;

    UNIT_REQUIRE(0 == pipe(ends));
    UNIT_REQUIRE(OPAL_AEAD_KEY_MAX_BYTES == write(ends[1], raw, OPAL_AEAD_KEY_MAX_BYTES));
    pid = fork();
    UNIT_REQUIRE(0 <= pid);
    if (0 == pid) {
        const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

        (void) setrlimit(RLIMIT_CORE, &all);
        if (0 != chdir(directory) || 0 > dup2(ends[0], STDIN_FILENO)) {
            _exit(2);
        }
        close(ends[0]);
        close(ends[1]);
        execv("/proc/self/exe", arguments);
        _exit(3);
    }
    close(ends[0]);
    close(ends[1]);
    UNIT_REQUIRE(pid == waitpid(pid, &status, 0));
    return status;
}

static int contains(const uint8_t *file, size_t bytes, const uint8_t *needle)
{
    uint8_t swapped[NEEDLE];

    for (int i = 0; i < NEEDLE; ++i) {          /* as words of the other byte order */
        swapped[i] = needle[i ^ 3];
    }
    return NULL != memmem(file, bytes, needle, NEEDLE) || NULL != memmem(file, bytes, swapped, NEEDLE);
}

/* How many of the needles are in the child's core file, which is deleted. */
static int count_in_core(const needles_t *needles)
{
    char path[512];
    int file, found = 0;
    struct stat status;
    void *core;

    UNIT_REQUIRE(1 == find_core(path, sizeof(path)));
    file = open(path, O_RDONLY);
    UNIT_REQUIRE(0 <= file && 0 == fstat(file, &status) && 0 < status.st_size);
    core = mmap(NULL, (size_t) status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    UNIT_REQUIRE(MAP_FAILED != core);
    for (int i = 0; i < needles->count; ++i) {
        if (contains(core, (size_t) status.st_size, needles->bytes[i])) {
            found++;
        }
    }
    munmap(core, (size_t) status.st_size);
    close(file);
    unlink(path);
    return found;
}

static void test_provider(const char *what, const char *name, opal_aead_cipher_t cipher, size_t bytes,
                          stage_t stage, int has_core)
{
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
    needles_t needles;
    char numbers[3][24], path[512];
    char *const arguments[] = { "test_aead_core", (char *) what, (char *) name, numbers[0], numbers[1], numbers[2], NULL };
    int status, found;

    snprintf(numbers[0], sizeof(numbers[0]), "%d", cipher);
    snprintf(numbers[1], sizeof(numbers[1]), "%zu", bytes);
    snprintf(numbers[2], sizeof(numbers[2]), "%d", stage);
    fill(raw, sizeof(raw), 1000 + (uint64_t) cipher);
    status = run_child(arguments, raw);
    UNIT_REQUIRE(WIFSIGNALED(status) && SIGSEGV == WTERMSIG(status));
    if (!has_core) {
        UNIT_CHECK(!WCOREDUMP(status) && 0 == find_core(path, sizeof(path)));
        return;
    }
    needles_of(&needles, cipher, raw);
    found = count_in_core(&needles);
    if (!UNIT_CHECK(0 == found)) {
        fprintf(stderr, "  %s, %s, %zu bytes %s\n", name, opal_aead_cipher_name(cipher), bytes, stage_names[stage]);
    }
}

static void test_providers(void)
{
    static const size_t lengths[] = { 16, 128, 129, 400, 1000, 70000 };

    for (const provider_t *p = all_providers; NULL != p->module; ++p) {
        const int has_core = 0 != strcmp("cryptopp", p->module->name);

        if (OPAL_AEAD_OK != p->init()) {
            continue;
        }
        for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
            if (!can(p, (opal_aead_cipher_t) c)) {
                continue;
            }
            UNIT_GROUP("%s, %s", p->module->name, opal_aead_cipher_name((unsigned) c));
            for (size_t i = 0; i < STAGES * sizeof(lengths) / sizeof(lengths[0]); ++i) {
                test_provider("works", p->module->name, (opal_aead_cipher_t) c, lengths[i / STAGES],
                              (stage_t) (i % STAGES), has_core);
            }
        }
        p->fini();
    }
#ifdef OMPI_CRYPT_HAVE_AEAD_OPENSSL
    UNIT_GROUP("openssl where the application was first");
    test_provider("late", "openssl", OPAL_AEAD_AES_128_GCM, 1000, SEALED, 0);
#endif
}

int main(int argc, char **argv)
{
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
    needles_t needles;
    char path[512];
    int status;

    if (1 < argc && 0 == strcmp("leaks", argv[1])) {
        child_leaks();
    } else if (5 < argc) {
        child_works(argv[2], (opal_aead_cipher_t) atoi(argv[3]), (size_t) atol(argv[4]), (stage_t) atoi(argv[5]),
                    0 == strcmp("late", argv[1]));
    }
    UNIT_REQUIRE(1 == argc && NULL != mkdtemp(directory));
    test_needles();
    UNIT_GROUP("a key that is kept is found");
    fill(raw, sizeof(raw), 999);
    needles_of(&needles, OPAL_AEAD_AES_128_GCM, raw);
    status = run_child((char *[]) { "test_aead_core", "leaks", NULL }, raw);
    UNIT_REQUIRE(WIFSIGNALED(status) && SIGSEGV == WTERMSIG(status));
    if (!WCOREDUMP(status) || 1 != find_core(path, sizeof(path))) {
        rmdir(directory);
        return unit_skip("core files are not written to the working directory here (/proc/sys/kernel/core_pattern, ulimit -H -c)");
    }
    UNIT_CHECK(needles.count == count_in_core(&needles));
    test_providers();
    rmdir(directory);
    return unit_done();
}

#endif

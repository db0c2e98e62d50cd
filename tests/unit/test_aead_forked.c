/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A fork'd child holds no keys of a provider: neither in the memory that it got
 * from us, nor in what a library keeps on its own heap, nor in the contexts of
 * threads that the child does not have.
 *
 * This program starts itself for each provider and cipher, so that libcrypto is
 * in the state that the case wants.  That process seals and opens in three
 * threads, finds the key in its own memory, and forks; the child searches all of
 * its memory for what aead_needles.h names.
 */
#include "tests/unit/aead_providers.h"
#include "tests/unit/memory_search.h"

#include <pthread.h>
#include <sys/wait.h>

#include "tests/unit/aead_needles.h"

#define THREADS 2

static keyed_t keyed;
static pthread_barrier_t worked, searched;

static void use(opal_aead_context_t *context)
{
    static const size_t lengths[] = { 16, 129, 1000, 70000 };
    uint8_t *text = malloc(70000);

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        uint8_t nonce[OPAL_AEAD_NONCE_BYTES] = { (uint8_t) i }, tag[OPAL_AEAD_TAG_BYTES];

        memset(text, (int) i, lengths[i]);
        UNIT_REQUIRE(OPAL_AEAD_OK == keyed.module->seal(context, keyed.key, nonce, "header", 6, text, lengths[i], text, tag));
        UNIT_REQUIRE(OPAL_AEAD_OK == keyed.module->open(context, keyed.key, nonce, "header", 6, text, lengths[i], tag, text));
    }
    free(text);
}

static void *thread(void *unused)
{
    opal_aead_context_t *context = NULL;

    UNIT_REQUIRE(OPAL_AEAD_OK == keyed.module->context_new(&context));
    use(context);
    pthread_barrier_wait(&worked);
    pthread_barrier_wait(&searched);
    use(context);                       /* the parent goes on */
    keyed.module->context_free(context);
    return unused;
}

/* What a fork'd child finds: 0 nothing, 1 something, 2 it could not search. */
static int child_finds(int loud)
{
    int status;
    pid_t child = fork();

    if (0 == child) {
        const int found = search_self(loud);

        _exit(found < 0 ? 2 : found > 0);
    }
    UNIT_REQUIRE(child > 0 && child == waitpid(child, &status, 0) && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The key comes from a pipe into memory that is ours, and touches nothing else. */
static int work(const char *what, const char *name, opal_aead_cipher_t cipher)
{
    const provider_t *p = all_providers;
    uint8_t *raw = opal_aead_pages_alloc(OPAL_AEAD_KEY_MAX_BYTES), *leak = NULL;
    pthread_t threads[THREADS];

    while (0 != strcmp(name, p->module->name)) {
        ++p;
    }
    UNIT_REQUIRE(OPAL_AEAD_KEY_MAX_BYTES == read(STDIN_FILENO, raw, OPAL_AEAD_KEY_MAX_BYTES));
    if (0 == strcmp(what, "late")) {    /* the application has used OpenSSL before */
        UNIT_REQUIRE(0 != EVP_CIPHER_CTX_reset(EVP_CIPHER_CTX_new()));
    }
    UNIT_REQUIRE(OPAL_AEAD_OK == p->init());
    keyed = keyed_new(p, cipher, raw);
    use(keyed.context);
    UNIT_REQUIRE(0 == pthread_barrier_init(&worked, NULL, THREADS + 1));
    UNIT_REQUIRE(0 == pthread_barrier_init(&searched, NULL, THREADS + 1));
    for (int i = 0; i < THREADS; ++i) {
        UNIT_REQUIRE(0 == pthread_create(&threads[i], NULL, thread, NULL));
    }
    pthread_barrier_wait(&worked);
    if (0 == strcmp(what, "leak")) {
        leak = malloc(SEARCH_NEEDLE);
        memcpy(leak, raw, SEARCH_NEEDLE);
        __asm__ volatile("" : : "r"(leak) : "memory");
        UNIT_CHECK(1 == child_finds(0));
    } else {
        UNIT_CHECK(0 == child_finds(1));
    }
    UNIT_CHECK(0 < search_self(0));     /* the parent's are where they were */
    pthread_barrier_wait(&searched);
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    use(keyed.context);
    UNIT_CHECK(0 < search_self(0));
    keyed_free(&keyed);
    free(leak);
    return unit_done();
}

/* ---- the program that starts the others ---- */

static int run(const char *what, const char *name, opal_aead_cipher_t cipher)
{
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
    char number[32], memory[16];
    needles_t needles;
    int ends[2], status, fd = memfd_create("needles", 0);
    pid_t child;

    UNIT_REQUIRE(0 <= fd && 0 == ftruncate(fd, sizeof(search_t)) && 0 == pipe(ends));
    search_begin(fd);
    fill(raw, sizeof(raw), 2000 + (uint64_t) cipher);
    needles_of(&needles, cipher, raw);
    for (int i = 0; i < needles.count; ++i) {
        snprintf(number, sizeof(number), "needle %d", i);
        search_add(number, needles.bytes[i]);
    }
    munmap(search, sizeof(*search));
    UNIT_REQUIRE(OPAL_AEAD_KEY_MAX_BYTES == write(ends[1], raw, OPAL_AEAD_KEY_MAX_BYTES));
    snprintf(number, sizeof(number), "%d", cipher);
    snprintf(memory, sizeof(memory), "%d", fd);
    child = fork();
    if (0 == child) {
        if (0 > dup2(ends[0], STDIN_FILENO)) {
            _exit(2);
        }
        execl("/proc/self/exe", "test_aead_forked", what, name, number, memory, (char *) NULL);
        _exit(3);
    }
    UNIT_REQUIRE(child > 0 && child == waitpid(child, &status, 0));
    close(ends[0]);
    close(ends[1]);
    close(fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

int main(int argc, char **argv)
{
    if (4 < argc) {
        search_begin(atoi(argv[4]));
        return work(argv[1], argv[2], (opal_aead_cipher_t) atoi(argv[3]));
    }
    if (-1 == access("/proc/self/mem", R_OK)) {
        return unit_skip("/proc/self/mem cannot be read here");
    }
    for (const provider_t *p = all_providers; NULL != p->module; ++p) {
        if (OPAL_AEAD_OK != p->init()) {
            printf("skipped: %s cannot be used here\n", p->module->name);
            continue;
        }
        for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
            if (can(p, (opal_aead_cipher_t) c)) {
                UNIT_GROUP("%s, %s", p->module->name, opal_aead_cipher_name((unsigned) c));
                UNIT_CHECK(0 == run("works", p->module->name, (opal_aead_cipher_t) c));
            }
        }
        UNIT_GROUP("%s: a copy that is made on purpose is found in the child", p->module->name);
        UNIT_CHECK(0 == run("leak", p->module->name, OPAL_AEAD_AES_256_GCM));
        p->fini();
    }
#ifdef OMPI_CRYPT_HAVE_AEAD_OPENSSL
    UNIT_GROUP("openssl where the application was first: round keys lie on libcrypto's heap");
    for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
        UNIT_CHECK(0 == run("late", "openssl", (opal_aead_cipher_t) c));
    }
#endif
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A program that gave libcrypto its own allocator keeps it, and memory from there is returned to it.
 * Round keys are then where a core file would show them, so there are no core files.  The same if the
 * program does so after us, which libcrypto allows.
 */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "opal/mca/aead/openssl/aead_openssl.h"

#define MARK UINT64_C(0x616c6c6f6361746f)

typedef struct {
    uint64_t mark, unused;
} head_t;

static unsigned long strange;           /* blocks that we were given back, and had not made */

static void *program_malloc(size_t bytes, const char *file, int line)
{
    head_t *head = malloc(sizeof(*head) + bytes);

    (void) file;
    (void) line;
    if (NULL == head) {
        return NULL;
    }
    head->mark = MARK;
    return head + 1;
}

static void program_free(void *block, const char *file, int line)
{
    head_t *head = (head_t *) block - 1;

    (void) file;
    (void) line;
    if (NULL == block) {
        return;
    }
    if (MARK != head->mark) {
        strange++;
        return;
    }
    head->mark = 0;
    free(head);
}

static void *program_realloc(void *block, size_t bytes, const char *file, int line)
{
    head_t *head = (head_t *) block - 1;

    if (NULL == block) {
        return program_malloc(bytes, file, line);
    }
    if (MARK != head->mark) {
        strange++;
        return NULL;
    }
    head = realloc(head, sizeof(*head) + bytes);
    return NULL == head ? NULL : head + 1;
}

static bool dumps_cores(void)
{
    struct rlimit limit;

    return 0 != getrlimit(RLIMIT_CORE, &limit) || limit.rlim_cur > 1;
}

/* A message, by a context of its own. */
static bool seals(void)
{
    static const uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES] = {1}, nonce[OPAL_AEAD_NONCE_BYTES] = {2};
    const opal_aead_module_t *module = &opal_aead_openssl_module;
    uint8_t text[100] = {3}, sealed[100], tag[OPAL_AEAD_TAG_BYTES];
    opal_aead_openssl_key_t key;
    opal_aead_context_t *context = NULL;
    bool good = OPAL_AEAD_OK == module->context_new(&context)
                && OPAL_AEAD_OK == module->key_init(OPAL_AEAD_AES_128_GCM, raw, &key)
                && OPAL_AEAD_OK == module->seal(context, &key, nonce, NULL, 0, text, sizeof(text), sealed, tag)
                && OPAL_AEAD_OK == module->open(context, &key, nonce, NULL, 0, sealed, sizeof(sealed), tag, text);

    module->key_wipe(&key);
    module->context_free(context);
    return good && 3 == text[0];
}

static void before_us(void)
{
    EVP_MD_CTX *of_the_program;

    UNIT_REQUIRE(1 == CRYPTO_set_mem_functions(program_malloc, program_realloc, program_free));
    of_the_program = EVP_MD_CTX_new();
    UNIT_REQUIRE(NULL != of_the_program && 1 == EVP_DigestInit_ex(of_the_program, EVP_sha256(), NULL));
    UNIT_REQUIRE(OPAL_AEAD_OK == opal_aead_openssl_init());
    UNIT_CHECK(seals());
    UNIT_CHECK(OPAL_AEAD_OPENSSL_NO_CORE_FILES == opal_aead_openssl_guard() && !dumps_cores());
    EVP_MD_CTX_free(of_the_program);
}

static void after_us(void)
{
    UNIT_REQUIRE(OPAL_AEAD_OK == opal_aead_openssl_init());
    UNIT_CHECK(OPAL_AEAD_OPENSSL_OWN_PAGES == opal_aead_openssl_guard());
    UNIT_REQUIRE(1 == CRYPTO_set_mem_functions(program_malloc, program_realloc, program_free));
    UNIT_CHECK(seals());
    UNIT_CHECK(OPAL_AEAD_OPENSSL_NO_CORE_FILES == opal_aead_openssl_guard() && !dumps_cores());
}

/* A process each, as libcrypto has one allocator; without its end, where it frees what others made. */
static void in_a_child(const char *title, void (*test)(void), bool foreign)
{
    int status = -1;
    pid_t child;

    UNIT_GROUP("%s", title);
    child = fork();
    if (0 == child) {
        test();
        UNIT_CHECK(foreign || 0 == strange);
        fflush(NULL);
        _exit(unit_done());
    }
    UNIT_CHECK(child == waitpid(child, &status, 0));
    UNIT_CHECK(WIFEXITED(status) && 0 == WEXITSTATUS(status));
}

int main(void)
{
    struct rlimit limit;

    UNIT_REQUIRE(0 == getrlimit(RLIMIT_CORE, &limit));
    limit.rlim_cur = limit.rlim_max;
    UNIT_REQUIRE(0 == setrlimit(RLIMIT_CORE, &limit));
    in_a_child("an allocator that was there before", before_us, false);
    in_a_child("one that comes later", after_us, true);
    return unit_done();
}

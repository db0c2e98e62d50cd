/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A fork'd child has none of the keys of the core: not the psk or what is made of
 * it, the private keys, the secrets of a session, its epoch and chopping keys, or a
 * group's.  All of its memory is searched.  What it seals or opens is refused, and
 * libcrypto is still good for its own purposes.
 *
 * All of it once more as on a kernel without MADV_WIPEONFORK, and while other threads
 * are in the middle of messages and key agreements.
 */
#include "tests/unit/crypt_fixture.h"
#include "tests/unit/memory_search.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "opal/mca/common/crypt/wire/chop.h"
#include "opal/mca/common/crypt/identity/local_object.h"
#include "opal/mca/common/crypt/wire/session.h"
#include "tests/unit/sessions.h"

static bool old_kernel;
static atomic_int refused;

/* In the C library's place. */
int madvise(void *address, size_t bytes, int advice)
{
    if (old_kernel && MADV_WIPEONFORK == advice) {
        atomic_fetch_add(&refused, 1);
        errno = EINVAL;
        return -1;
    }
    return (int) syscall(SYS_madvise, address, bytes, advice);
}

/* ---- keys in use ---- */

static const opal_crypt_envelope_t here = { 1, 2, 1, 3 };
static opal_crypt_local_t *local, *peer, *certified;
static opal_crypt_session_t *session;
static opal_crypt_group_t *group;
static opal_crypt_chop_t *chop;
static opal_crypt_shape_t shape;

/* `raw` of the provider's key: | id 8 | cipher 4 | - | raw | */
static const uint8_t *raw_of(const void *key)
{
    return (const uint8_t *) key + 16;
}

static void add_needles(const uint8_t *psk, const uint8_t *group_secret)
{
    const opal_crypt_epoch_t *epoch = session->out.seats[0].epoch;

    search_add("psk", psk);
    search_add("psk auth", local->auth_state);
    search_add("psk mix", local->method->mix(local->auth_state));
    search_add("private key", local->pair.private);
    search_add("private key of the peer", peer->pair.private);
    search_add("parent, out", session->secrets->out.direct);
    search_add("parent, chop", session->secrets->out.chop);
    search_add("parent, in", session->secrets->in.direct);
    search_add("token", session->secrets->token_in.bytes);
    search_add("epoch key", raw_of(epoch->key));
    search_add("chopping key", epoch->chop);
    search_add("subkey", raw_of(chop->key));
    search_add("group key", group_secret);
}

static void seed_of(const char *path)
{
    char command[600];
    FILE *out;

    snprintf(command, sizeof(command), "openssl pkey -in '%s' -outform DER | tail -c 32", path);
    out = popen(command, "r");
    setvbuf(out, (char *) search->window, _IOFBF, 4096);
    UNIT_REQUIRE(NULL != out && 32 == fread(search->window + 8192, 1, 32, out));
    pclose(out);
    search_add("certificate's key", search->window + 8192);
}

/* The psk on its way to its file: only in memory that is not searched. */
static void use_keys(void)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_PSK);
    opal_crypt_group_secret_t *secret = (void *) (search->window + 4096);
    uint8_t *psk = search->window, (*members)[32] = (void *) (search->window + 1024), frame[1000] = { 0 };
    char *text = (char *) search->window + 512;
    const void *record;
    size_t bytes;
    uint64_t counter;

    opal_crypt_random(psk, 32);
    for (int i = 0; i < 32; ++i) {
        snprintf(text + 2 * i, 3, "%02x", psk[i]);
    }
    options.psk_file = fixture_file_bytes("psk", text, 64, 0600);
    options.aead = &opal_aead_openssl_module;
    local = fixture_local(&options, 0);
    peer = fixture_local(&options, 1);
    record = opal_crypt_local_record(peer, &bytes);
    UNIT_REQUIRE(OPAL_CRYPT_OK == fixture_session(local, record, bytes, NULL, &session, NULL));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_direct_seal(session, &here, frame, 100, frame + 200));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_make(100, 30, 24, &shape));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_seal(session, &here, &shape, frame, frame + 200,
                                                        &counter, &chop));
    opal_crypt_random(secret, sizeof(*secret));
    opal_crypt_random(members, 64);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_group_from_secret(secret, options.aead, options.cipher, 20, 1, 2,
                                                               (const uint8_t (*)[32]) members, 2, 0, &group));
    add_needles(psk, (const uint8_t *) secret->key);
    if (0 == access(fixture_path("ed25519.pem"), R_OK)) {
        options.auth = OPAL_CRYPT_AUTH_X509;
        options.x509_cert = fixture_path("ed25519.pem");
        options.x509_key = fixture_path("ed25519.key");
        options.x509_ca = fixture_path("ca.pem");
        certified = fixture_local(&options, 2);
        seed_of(options.x509_key);
    } else {
        printf("  skipped: no certificates, as there is no openssl program\n");
    }
    memset(search->window, 0, 8192 + 64);
}

/* ---- the child ---- */

#define REFUSED(call) (OPAL_CRYPT_ERR_FORKED == (call) || (fprintf(stderr, "  not refused: %s\n", #call), false))

static bool everything_refused(void)
{
    opal_crypt_piece_t piece = { .origin = 0, .destination = OPAL_CRYPT_TO_ALL, .plain_bytes = 100 };
    const opal_crypt_input_t input = { "x", 1 };
    opal_crypt_chop_t *other = NULL;
    opal_crypt_keypair_t pair = { .private = NULL };
    uint8_t plain[200] = { 0 }, frame[400] = { 0x11 }, key[32] = { 0 };
    uint64_t counter;

    return REFUSED(opal_crypt_counter_take(session, &counter))
        && REFUSED(opal_crypt_direct_seal(session, &here, plain, 9, frame))
        && REFUSED(opal_crypt_direct_open(session, &here, frame, 33, plain, 200, &counter))
        && REFUSED(opal_crypt_first_seal(session, &here, &shape, plain, frame, &counter, &other))
        && REFUSED(opal_crypt_segment_seal(chop, 1, plain, frame))
        && REFUSED(opal_crypt_segment_open(chop, 1, frame, 40, plain))
        && REFUSED(opal_crypt_piece_seal(group, &piece, plain, frame))
        && REFUSED(opal_crypt_piece_open(group, &piece, frame, plain))
        && REFUSED(opal_crypt_piece_seal_to(group, session, &piece, plain, frame))
        && REFUSED(opal_crypt_piece_open_from(group, session, &piece, frame, plain))
        && OPAL_CRYPT_OK != opal_crypt_kdf_expand(key, OPAL_CRYPT_LABEL_CHOP, "", 0, plain, 32)
        && OPAL_CRYPT_OK != opal_crypt_hmac(key, &input, 1, plain)
        && OPAL_CRYPT_OK != opal_crypt_keypair_make(OPAL_CRYPT_KEX_X25519, &pair)
        && NULL == opal_crypt_secmem_alloc(64) && all_zero(frame + 1, sizeof(frame) - 1);
}

/* What the application's child may do with libcrypto itself. */
static bool library_works(void)
{
    uint8_t hash[32], text[64] = "text", key[32] = { 1 };
    EVP_CIPHER_CTX *evp = EVP_CIPHER_CTX_new();
    unsigned bytes = 0;
    int written = 0;
    bool good = 1 == EVP_Digest("x", 1, hash, &bytes, EVP_sha256(), NULL) && 1 == RAND_bytes(key, 32)
                && 1 == EVP_EncryptInit_ex(evp, EVP_aes_256_gcm(), NULL, key, hash)
                && 1 == EVP_EncryptUpdate(evp, text, &written, text, 64);

    EVP_CIPHER_CTX_free(evp);
    ERR_raise(ERR_LIB_USER, 1);
    good = good && 0 != ERR_get_error();
    OPENSSL_thread_stop();
    return good;
}

/* 0, or the number of what was wrong. */
static int child(int loud)
{
    const int found = search_self(loud);

    if (0 != found) {
        return found < 0 ? 1 : 2;
    }
    if (!opal_crypt_forked() || !everything_refused()) {
        return 3;
    }
    if (!library_works()) {
        return 4;
    }
    /* As the child's own exit might. */
    opal_crypt_chop_end(chop);
    opal_crypt_session_destroy(session);
    opal_crypt_group_destroy(group);
    opal_crypt_local_destroy(local);
    opal_crypt_finalize();
    return opal_crypt_forked() ? 0 : 5;
}

static int child_says(bool grandchild)
{
    int status;
    pid_t pid = fork();

    if (0 == pid) {
        if (grandchild && 0 != (pid = fork())) {
            _exit(pid == waitpid(pid, &status, 0) && WIFEXITED(status) ? WEXITSTATUS(status) : 99);
        }
        _exit(child(1));
    }
    UNIT_REQUIRE(pid > 0 && pid == waitpid(pid, &status, 0));
    if (!WIFEXITED(status) || 0 != WEXITSTATUS(status)) {
        fprintf(stderr, "  a child's wait status is 0x%x\n", (unsigned) status);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* ---- other threads in the middle of something ---- */

static atomic_bool ending;
static atomic_int under_way;

static void *busy(void *what)
{
    static const uint8_t text[5000];
    uint8_t *frame = malloc(6000);
    opal_crypt_chop_t *made;
    opal_crypt_shape_t whole;
    uint64_t counter;
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(peer, &bytes);

    UNIT_REQUIRE(NULL != frame && OPAL_CRYPT_OK == opal_crypt_shape_make(5000, 5000, 24, &whole));
    atomic_fetch_add(&under_way, 1);
    while (!atomic_load(&ending)) {
        if (NULL == what) {
            opal_crypt_session_t *another = NULL;

            UNIT_REQUIRE(OPAL_CRYPT_OK == fixture_session(local, record, bytes, NULL, &another, NULL));
            opal_crypt_session_destroy(another);
        } else {
            UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_direct_seal(session, &here, text, 5000, frame));
            UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_seal(session, &here, &whole, text, frame,
                                                                &counter, &made));
            opal_crypt_chop_end(made);
        }
    }
    free(frame);
    return NULL;
}

static void test_busy(void)
{
    pthread_t threads[2];

    UNIT_GROUP("children of moments in which other threads seal and agree on keys");
    for (intptr_t i = 0; i < 2; ++i) {
        UNIT_REQUIRE(0 == pthread_create(&threads[i], NULL, busy, (void *) i));
    }
    while (atomic_load(&under_way) < 2) {
        usleep(100);
    }
    for (int i = 0; i < 5; ++i) {
        UNIT_CHECK(0 == child_says(false));
    }
    atomic_store(&ending, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

/* ---- the two programs ---- */

static int run(void)
{
    uint8_t *leak, frame[200];

    search_begin(-1);
    use_keys();
    UNIT_GROUP("the parent's memory holds them all");
    UNIT_CHECK(search->count / 2 <= search_self(0));
    UNIT_GROUP("a child's does not, nor its child's");
    UNIT_CHECK(0 == child_says(false));
    UNIT_CHECK(0 == child_says(true));
    test_busy();
    UNIT_GROUP("a copy on the heap is found");
    leak = malloc(64);
    memcpy(leak, search->needle[2], SEARCH_NEEDLE);
    __asm__ volatile("" : : "r"(leak) : "memory");
    UNIT_CHECK(2 == child_says(false));
    free(leak);
    UNIT_GROUP("and the parent goes on");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(session, &here, frame, 100, frame));
    UNIT_CHECK(search->count / 2 <= search_self(0));
    UNIT_CHECK(old_kernel == (0 != atomic_load(&refused)));
    opal_crypt_finalize();
    return unit_done();
}

int main(int argc, char **argv)
{
    const char *source = getenv("srcdir");
    char command[1200];
    int status;
    pid_t pid;

    if (argc > 1) {
        snprintf(fixture_directory, sizeof(fixture_directory), "%s", argv[2]);
        old_kernel = 0 == strcmp(argv[1], "old");
        UNIT_REQUIRE(0 == opal_aead_openssl_init());
        return run();
    }
    fixture_begin();
    snprintf(command, sizeof(command), "sh '%s/x509_ca.sh' '%s'", NULL == source ? "." : source, fixture_directory);
    (void) !system(command);
    for (int old = 0; old < 2; ++old) {
        UNIT_GROUP("%s", old ? "as on a kernel before 4.14" : "as this kernel has it");
        pid = fork();
        if (0 == pid) {
            execl("/proc/self/exe", argv[0], old ? "old" : "new", fixture_directory, (char *) NULL);
            _exit(99);
        }
        UNIT_REQUIRE(pid > 0 && pid == waitpid(pid, &status, 0));
        UNIT_CHECK(WIFEXITED(status) && 0 == WEXITSTATUS(status));
    }
    return unit_done();
}

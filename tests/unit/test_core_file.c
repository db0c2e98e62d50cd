/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a crash leaves behind: a child with keys in use dies by SIGSEGV, and
 * its core file is searched for them.  A mark on the heap must be found, or
 * the search would prove nothing.
 */
#include "tests/unit/crypt_fixture.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "opal/mca/common/crypt/identity/local_object.h"

/* Secrets as the parent knows them, in memory that the core file leaves out. */
typedef struct secrets {
    uint8_t psk[32];
    char psk_text[64];
    uint8_t psk_auth[32], psk_mix[32];
    uint8_t private_key[32];
    uint8_t direction_out[32], direction_in[32], token[32];
    uint8_t seed[32];                   /* of the Ed25519 key of a certificate */
    char seed_text[64];                 /* the key in PEM */
    uint8_t mark[32];                   /* this one is on the heap, too */
} secrets_t;

static secrets_t *secrets;
uint8_t *heap_mark;

static void *find(void *hay, size_t hay_bytes, const void *needle, size_t bytes)
{
    return memmem(hay, hay_bytes, needle, bytes);
}

/* Keys in use: sessions made, a certificate's key used, nothing destroyed. */
static void use_keys(void)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_PSK);
    opal_crypt_local_t *a, *b, *c;
    opal_crypt_schedule_t *schedule;
    uint8_t *keys = opal_crypt_secmem_alloc(96);
    opal_crypt_why_t why;

    options.psk_file = fixture_path("psk");
    a = fixture_local(&options, 0);
    b = fixture_local(&options, 1);
    schedule = fixture_schedule(a, b);
    UNIT_REQUIRE(NULL != schedule && NULL != keys);
    opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_OUT, keys, 32);
    opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_IN, keys + 32, 32);
    opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_LOCAL_TOKEN, OPAL_CRYPT_IN, keys + 64, 32);
    memcpy(secrets->direction_out, keys, 32);
    memcpy(secrets->direction_in, keys + 32, 32);
    memcpy(secrets->token, keys + 64, 32);
    memcpy(secrets->private_key, a->pair.private, 32);
    memcpy(secrets->psk_auth, a->auth_state, 32);
    memcpy(secrets->psk_mix, a->method->mix(a->auth_state), 32);

    if (0 == access(fixture_path("ed25519.pem"), R_OK)) {
        options.auth = OPAL_CRYPT_AUTH_X509;
        options.x509_cert = options.x509_key = fixture_path("both.pem");    /* the harder way */
        options.x509_ca = fixture_path("ca.pem");
        UNIT_REQUIRE(OPAL_CRYPT_OK
                     == opal_crypt_local_create(&options, &(opal_crypt_identity_t) { .nspace = "1" }, &c,
                                                &why));
    }
    heap_mark = malloc(32);
    memcpy(heap_mark, secrets->mark, 32);
    __asm__ volatile("" : : "r"(heap_mark) : "memory");     /* or the compiler leaves both out */
    raise(SIGSEGV);
}

/* The core file of a child that uses keys and crashes; NULL if there is no core file. */
static void *crash(size_t *bytes)
{
    struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
    struct stat status;
    const char *names[] = { "core", NULL };
    char with_pid[64];
    void *core;
    int how, fd = -1;
    pid_t child = fork();

    if (0 == child) {
        if (0 != setrlimit(RLIMIT_CORE, &all) || 0 != chdir(fixture_directory)) {
            _exit(1);
        }
        use_keys();
        _exit(1);
    }
    UNIT_REQUIRE(child > 0 && child == waitpid(child, &how, 0));
    UNIT_CHECK(WIFSIGNALED(how) && SIGSEGV == WTERMSIG(how));
    snprintf(with_pid, sizeof(with_pid), "core.%ld", (long) child);
    names[1] = with_pid;
    for (int i = 0; i < 2 && fd < 0; ++i) {
        fd = open(fixture_path(names[i]), O_RDONLY);
    }
    if (fd < 0 || 0 != fstat(fd, &status) || 0 == status.st_size) {
        return NULL;
    }
    core = mmap(NULL, (size_t) status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    UNIT_REQUIRE(MAP_FAILED != core);
    *bytes = (size_t) status.st_size;
    return core;
}

static void make_secrets(void)
{
    secrets = mmap(NULL, sizeof(*secrets), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    UNIT_REQUIRE(MAP_FAILED != secrets && 0 == madvise(secrets, sizeof(*secrets), MADV_DONTDUMP));
    opal_crypt_random(secrets->psk, 32);
    opal_crypt_random(secrets->mark, 32);
    for (int i = 0; i < 32; ++i) {
        secrets->psk_text[2 * i] = "0123456789abcdef"[secrets->psk[i] >> 4];
        secrets->psk_text[2 * i + 1] = "0123456789abcdef"[secrets->psk[i] & 15];
    }
    fixture_file_bytes("psk", secrets->psk_text, 64, 0600);
}

/* The certificates of the x509 test, if there is an openssl program, and the
 * seed of the private key: the last 32 of the 48 bytes of its DER. */
static int make_certificate(void)
{
    const char *source = getenv("srcdir");
    char command[1200];
    FILE *out;
    int good, fd;

    snprintf(command, sizeof(command), "sh '%s/x509_ca.sh' '%s'", NULL == source ? "." : source, fixture_directory);
    if (0 != system(command)) {
        return 0;
    }
    snprintf(command, sizeof(command), "openssl pkey -in '%s' -outform DER | tail -c 32", fixture_path("ed25519.key"));
    UNIT_REQUIRE(NULL != (out = popen(command, "r")));
    good = 32 == fread(secrets->seed, 1, 32, out);
    pclose(out);
    fd = open(fixture_path("ed25519.key"), O_RDONLY);
    good = good && 64 == pread(fd, secrets->seed_text, 64, sizeof("-----BEGIN PRIVATE KEY-----"));
    close(fd);
    return good;
}

#define ABSENT(name, bytes) UNIT_CHECK(NULL == find(core, core_bytes, secrets->name, bytes))

int main(void)
{
    size_t core_bytes = 0;
    void *core;
    int certificate;

    fixture_begin();
    make_secrets();
    certificate = make_certificate();
    core = crash(&core_bytes);
    if (NULL == core) {
        return unit_skip("the kernel writes no core files here (kernel.core_pattern)");
    }
    UNIT_GROUP("a core file of %zu bytes holds the mark, and no key", core_bytes);
    UNIT_CHECK(NULL != find(core, core_bytes, secrets->mark, 32));
    ABSENT(psk, 32);
    ABSENT(psk, 8);
    ABSENT(psk_text, 64);
    ABSENT(psk_text, 16);
    ABSENT(psk_auth, 32);
    ABSENT(psk_mix, 32);
    ABSENT(private_key, 32);
    ABSENT(direction_out, 32);
    ABSENT(direction_in, 32);
    ABSENT(token, 32);
    if (certificate) {
        UNIT_GROUP("nor a certificate's private key");
        ABSENT(seed, 32);
        ABSENT(seed, 8);
        ABSENT(seed_text, 64);
        ABSENT(seed_text + 22, 24);     /* of the seed */
    }
    UNIT_GROUP("the secrets that were searched for are some");
    for (const uint8_t *p = secrets->psk_auth; p < secrets->seed; p += 32) {
        uint8_t zeros[32] = { 0 };

        UNIT_CHECK(0 != memcmp(p, zeros, 32));
    }
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What is compared.  A column is a set of MCA parameters (and, for the naive
 * one, sealing inside the benchmark); `plain` is always the first, as every
 * ratio is to it.
 */
#include <string.h>

#include "bench.h"

/* What the parameters of pml/crypt's own messages are for. */
#define PML "crypt_transport=pml"

/* Sending all by copies in 512 KiB fragments suits a loop-like network better
 * than what Open MPI chooses, and larger eager limits avoid its rendezvous. */
#define TUNED "btl_tcp_flags=send,inplace,need-ack,need-csum,hetero-rdma btl_tcp_max_send_size=524288"
#define RAISED "btl_tcp_eager_limit=262144 btl_tcp_rndv_eager_limit=262144 btl_tcp_max_send_size=262144 " \
    "btl_tcp_endpoint_cache=17408"

/* What encrypted files do by themselves: cycles of collective calls that a cache holds. */
#define SHORT_CYCLES "io_ompio_bytes_per_agg=4194304"

/* A program that is not ours cannot seal by itself: every message whole, by one thread
 * of OpenSSL, on every hop of a collective. */
#define WHOLE PML " pml_crypt_t=0:1:4G aead=openssl coll=^cryptag"

/* As many as a process has processors, less one. */
#define ALL_THREADS "pml_crypt_t=256"
#define WHOLE_ALL_THREADS "pml_crypt_t=0:256:4G"

typedef struct scheme {
    const char *name;
    bool crypt, naive;
    const char *settings;
    bool file, bare, socket, copied, kernel;
} scheme_t;

static const scheme_t schemes[] = {
    {.name = "plain", .settings = ""},
    {.name = "tuned", .settings = TUNED},
    {.name = "raised", .settings = RAISED},
    {.name = "naive", .naive = true, .settings = ""},
    {.name = "bare", .naive = true, .bare = true, .settings = ""},
    {.name = "crypt", .crypt = true, .settings = ""},
    {.name = "crypt-tuned", .crypt = true, .settings = PML " " TUNED},
    {.name = "crypt-raised", .crypt = true, .settings = PML " " RAISED},
    {.name = "pipe", .crypt = true, .settings = PML " pml_crypt_t=1"},
    {.name = "threads", .crypt = true, .settings = PML " " WHOLE_ALL_THREADS},
    {.name = "both", .crypt = true, .settings = PML " " ALL_THREADS},
    {.name = "pml", .crypt = true, .settings = PML},
    {.name = "btl", .crypt = true, .settings = "crypt_transport=btl"},
    {.name = "btl-ktls", .crypt = true, .kernel = true, .settings = "crypt_transport=btl btl_crypt_ktls=auto"},
    {.name = "socket", .socket = true, .settings = ""},
    {.name = "socket-sealed", .naive = true, .bare = true, .socket = true, .settings = ""},
    {.name = "socket-copied", .naive = true, .bare = true, .socket = true, .copied = true, .settings = ""},
    {.name = "messages", .crypt = true, .settings = ""},
    {.name = "plain-cycles", .settings = SHORT_CYCLES},
    {.name = "file", .crypt = true, .settings = "", .file = true},
    {.name = NULL}
};

const char *mpicrypt_bench_scheme_names(void)
{
    static char names[256];

    names[0] = '\0';
    for (const scheme_t *scheme = schemes; NULL != scheme->name && 0 != strcmp(scheme->name, "messages"); ++scheme) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", 0 == used ? "" : ", ", scheme->name);
    }
    return names;
}

static const scheme_t *find(const char *name)
{
    for (const scheme_t *scheme = schemes; NULL != scheme->name; ++scheme) {
        if (0 == strcmp(scheme->name, name)) {
            return scheme;
        }
    }
    return NULL;
}

static int new_column(mpicrypt_bench_plan_t *plan, const char *name, size_t bits, mpicrypt_bench_column_t **column)
{
    if (MPICRYPT_BENCH_COLUMNS_MAX == plan->column_count) {
        return mpicrypt_error(MPICRYPT_USAGE, "more than %d columns", MPICRYPT_BENCH_COLUMNS_MAX);
    }
    *column = &plan->column[plan->column_count];
    memset(*column, 0, sizeof(**column));
    if (0 == bits || 1 == plan->bits.count) {
        snprintf((*column)->label, sizeof((*column)->label), "%s", name);
    } else {
        snprintf((*column)->label, sizeof((*column)->label), "%s-%zu", name, bits);
    }
    (*column)->bits = bits;
    for (int i = 0; i < plan->column_count; ++i) {
        if (0 == strcmp(plan->column[i].label, (*column)->label)) {
            return mpicrypt_error(MPICRYPT_USAGE, "column %s is there twice", (*column)->label);
        }
    }
    ++plan->column_count;
    return MPICRYPT_OK;
}

/* The settings of every job of a column that has `pml`. */
static void set_pml(const mpicrypt_bench_plan_t *plan, mpicrypt_bench_column_t *column, const char *pml)
{
    snprintf(column->pml, sizeof(column->pml), "%s", pml);
    mpicrypt_words_add(&column->settings, "pml=%s", pml);
    if (0 == strcmp(pml, "crypt")) {
        mpicrypt_words_add(&column->settings, "pml_crypt_host=%s", plan->host);
        mpicrypt_words_add(&column->settings, "crypt_key_bits=%zu", column->bits);
    }
}

int mpicrypt_bench_new_column(mpicrypt_bench_plan_t *plan, const char *name, bool crypt, size_t bits,
                              const char *settings)
{
    mpicrypt_bench_column_t *column;
    int rc = new_column(plan, name, crypt ? bits : 0, &column);

    if (MPICRYPT_OK == rc) {
        set_pml(plan, column, crypt ? "crypt" : plan->host);
        mpicrypt_words_split(&column->settings, settings);
    }
    return rc;
}

static int add_scheme(mpicrypt_bench_plan_t *plan, const scheme_t *scheme, size_t bits)
{
    mpicrypt_bench_column_t *column;
    int rc = new_column(plan, scheme->name, bits, &column);

    if (MPICRYPT_OK == rc) {
        column->naive = scheme->naive;
        column->bare = scheme->bare;
        column->file = scheme->file;
        column->socket = scheme->socket;
        column->copied = scheme->copied;
        column->kernel = scheme->kernel;
        set_pml(plan, column, scheme->crypt ? "crypt" : plan->host);
        mpicrypt_words_split(&column->settings, scheme->settings);
    }
    return rc;
}

/* A socket has no empty messages. */
static int check_socket(const mpicrypt_bench_plan_t *plan, const char *name)
{
    if (0 != strcmp(plan->pattern, "pingpong") && 0 != strcmp(plan->pattern, "pairs")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--schemes: %s is for pingpong and pairs only", name);
    }
    for (int i = 0; i < plan->sizes.count; ++i) {
        if (0 == plan->sizes.value[i]) {
            return mpicrypt_error(MPICRYPT_USAGE, "--schemes: %s has no messages of 0 bytes", name);
        }
    }
    return MPICRYPT_OK;
}

static int add_named(mpicrypt_bench_plan_t *plan, const char *name)
{
    const scheme_t *scheme = find(name);
    int rc = MPICRYPT_OK;

    if (NULL == scheme) {
        return mpicrypt_error(MPICRYPT_USAGE, "--schemes: there is no '%s'; there are: %s", name,
                              mpicrypt_bench_scheme_names());
    }
    if (scheme->socket && MPICRYPT_OK != (rc = check_socket(plan, name))) {
        return rc;
    }
    if (0 == strncmp(name, "btl", 3) && 0 != strcmp(plan->host, "ob1")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--schemes: %s is a transport for the host ob1", name);
    }
    if (NULL != strstr(scheme->settings, "btl_tcp_") && 0 != strcmp(plan->host, "ob1")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--schemes: %s changes btl/tcp, which only the host ob1 uses", name);
    }
    if (scheme->bare && 0 == strcmp(plan->pattern, "nas")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--schemes: %s is for messages of this benchmark's own", name);
    }
    if (!scheme->crypt && !scheme->naive) {
        return add_scheme(plan, scheme, 0);
    }
    for (int b = 0; b < plan->bits.count && MPICRYPT_OK == rc; ++b) {
        rc = scheme->naive && 0 == strcmp(plan->pattern, "nas")
                 ? mpicrypt_bench_new_column(plan, name, true, plan->bits.value[b], WHOLE)
                 : add_scheme(plan, scheme, plan->bits.value[b]);
    }
    return rc;
}

/* "NAME PARAMETER=VALUE...": encrypted if pml=crypt is among them. */
static int add_custom(mpicrypt_bench_plan_t *plan, const char *text)
{
    mpicrypt_words_t words = {NULL, 0};
    mpicrypt_bench_column_t *column = NULL;
    const char *pml = plan->host;
    size_t bits = plan->bits.value[0];
    int rc = MPICRYPT_OK;

    mpicrypt_words_split(&words, text);
    for (int i = 1; i < words.count && MPICRYPT_OK == rc; ++i) {
        pml = 0 == strncmp(words.value[i], "pml=", 4) ? words.value[i] + 4 : pml;
        if (NULL == strchr(words.value[i], '=') || '=' == words.value[i][0]) {
            rc = mpicrypt_error(MPICRYPT_USAGE, "column '%s': '%s' is not PARAMETER=VALUE", text, words.value[i]);
        }
    }
    if (MPICRYPT_OK == rc && (words.count < 1 || NULL != strpbrk(words.value[0], "=,"))) {
        rc = mpicrypt_error(MPICRYPT_USAGE, "column '%s' does not begin with a name", text);
    }
    if (MPICRYPT_OK == rc) {
        rc = new_column(plan, words.value[0], 0 == strcmp(pml, "crypt") ? bits : 0, &column);
    }
    if (MPICRYPT_OK == rc) {
        set_pml(plan, column, pml);
        for (int i = 1; i < words.count; ++i) {
            if (0 != strncmp(words.value[i], "pml=", 4)) {
                mpicrypt_words_add(&column->settings, "%s", words.value[i]);
            }
        }
    }
    mpicrypt_words_free(&words);
    return rc;
}

int mpicrypt_bench_columns(mpicrypt_bench_plan_t *plan, int operand_count, char **operands)
{
    const mpicrypt_bench_coll_t *coll = mpicrypt_bench_coll(plan->pattern);
    int rc = add_named(plan, "plain");
    const bool io = 0 == strcmp(plan->pattern, "io");

    if (NULL != coll && MPICRYPT_OK == rc) {
        rc = mpicrypt_bench_coll_columns(plan, coll);
    }
    if (io) {
        rc = rc ? rc : add_named(plan, "plain-cycles");
        rc = rc ? rc : add_scheme(plan, find("messages"), plan->bits.value[0]);
        rc = rc ? rc : add_named(plan, "file");
    }
    for (int i = 0; i < plan->schemes.count && MPICRYPT_OK == rc && NULL == coll && !io; ++i) {
        if (0 != strcmp(plan->schemes.value[i], "plain")) {
            rc = add_named(plan, plan->schemes.value[i]);
        }
    }
    for (int i = 0; i < operand_count && MPICRYPT_OK == rc; ++i) {
        rc = add_custom(plan, operands[i]);
    }
    return rc;
}

int mpicrypt_bench_column_jobs(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_column_t *column)
{
    int count = 1;

    while (column + count < plan->column + plan->column_count && column[count].joined) {
        ++count;
    }
    return count;
}

void mpicrypt_bench_columns_free(mpicrypt_bench_plan_t *plan)
{
    for (int i = 0; i < plan->column_count; ++i) {
        mpicrypt_words_free(&plan->column[i].settings);
    }
    plan->column_count = 0;
}

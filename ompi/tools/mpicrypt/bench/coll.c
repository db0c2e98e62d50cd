/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * `mpicrypt bench` of collectives: which columns there are, how many ranks on
 * how many nodes and in which order, and how the papers' sizes are scaled down
 * to the nodes that are there.
 *
 * The algorithms of coll/cryptag are compared within one job, which changes a
 * parameter between laps; what needs other components is a job of its own.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* On 5.0, coll/han stands above coll/tuned. */
#define RING "coll=^han coll_tuned_use_dynamic_rules=1 coll_tuned_allgather_algorithm=ring"

static const mpicrypt_bench_coll_t collectives[] = {
    {"allgather", "ring,hop,auto,naive,o-ring,o-rd,o-rd2,c-ring,c-rd,hs1,hs2,hs3",
     "auto,hop,naive,o-ring,o-rd,o-rd2,c-ring,c-rd,hs1,hs2,hs3", "1,1K,4K,16K,64K,256K,1M"},
    {"bcast", "auto,hop,binomial,chain", "auto,hop,binomial,chain", "1,1K,4K,16K,64K,128K,256K,1M"},
    {"alltoall", "auto,hop,node,rows,pairs", "auto,hop,node,rows,pairs", "1,1K,4K,16K,32K,64K,256K"},
    {NULL, NULL, NULL, NULL}
};

const mpicrypt_bench_coll_t *mpicrypt_bench_coll(const char *pattern)
{
    for (const mpicrypt_bench_coll_t *coll = collectives; NULL != coll->name; ++coll) {
        if (0 == strcmp(coll->name, pattern)) {
            return coll;
        }
    }
    return NULL;
}

/* ---- columns ---- */

static bool named(const char *list, const char *name)
{
    size_t bytes = strlen(name);

    for (const char *at = list; NULL != at; at = strchr(at, ',')) {
        at += ',' == *at;
        if (0 == strncmp(at, name, bytes) && (',' == at[bytes] || '\0' == at[bytes])) {
            return true;
        }
    }
    return false;
}

static int add_algorithms(mpicrypt_bench_plan_t *plan, const mpicrypt_bench_coll_t *coll, size_t bits)
{
    bool joined = false;
    int rc = MPICRYPT_OK;

    for (int i = 0; i < plan->schemes.count && MPICRYPT_OK == rc; ++i) {
        if (named(coll->algorithms, plan->schemes.value[i])) {
            rc = mpicrypt_bench_new_column(plan, plan->schemes.value[i], true, bits, "");
            if (MPICRYPT_OK == rc) {
                plan->column[plan->column_count - 1].algorithm = plan->schemes.value[i];
                plan->column[plan->column_count - 1].joined = joined;
                joined = true;
            }
        }
    }
    return rc;
}

int mpicrypt_bench_coll_columns(mpicrypt_bench_plan_t *plan, const mpicrypt_bench_coll_t *coll)
{
    int rc = MPICRYPT_OK;

    for (int i = 0; i < plan->schemes.count && MPICRYPT_OK == rc; ++i) {
        const char *name = plan->schemes.value[i];
        if (!named(coll->schemes, name) && 0 != strcmp(name, "plain")) {
            rc = mpicrypt_error(MPICRYPT_USAGE, "--schemes: there is no '%s' for %s; there are: %s", name, coll->name,
                                coll->schemes);
        } else if (!named(coll->algorithms, name) && 0 != strcmp(name, "plain")) {
            rc = mpicrypt_bench_new_column(plan, name, false, 0, RING);     /* `ring`, a job of its own */
        }
    }
    for (int b = 0; b < plan->bits.count && MPICRYPT_OK == rc; ++b) {
        rc = add_algorithms(plan, coll, plan->bits.value[b]);
    }
    return rc;
}

/* ---- shapes ---- */

/* "4x2": four nodes, two ranks on each.  sscanf alone takes blanks and signs. */
int mpicrypt_bench_shape(const char *text, size_t *nodes, size_t *width)
{
    unsigned a, b;
    char end;

    if ('\0' != text[strspn(text, "0123456789x")] || 2 != sscanf(text, "%6ux%6u%c", &a, &b, &end) || a < 2 || b < 1) {
        return mpicrypt_error(MPICRYPT_USAGE, "--shape: '%s' is not NODESxRANKS with two nodes or more, as in 4x2", text);
    }
    if ((size_t) a * b > MPICRYPT_BENCH_RANKS_MAX) {
        return mpicrypt_error(MPICRYPT_USAGE, "--shape: '%s' has more than %d ranks", text, MPICRYPT_BENCH_RANKS_MAX);
    }
    *nodes = a;
    *width = b;
    return MPICRYPT_OK;
}

static int parse_order(const char *text, bool *cyclic)
{
    *cyclic = 0 == strcmp(text, "cyclic");
    return *cyclic || 0 == strcmp(text, "block") ? MPICRYPT_OK
         : mpicrypt_error(MPICRYPT_USAGE, "--order: '%s' is neither block nor cyclic", text);
}

int mpicrypt_bench_coll_variants(const mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t **variants, int *count)
{
    int shapes = plan->paper ? 2 : plan->shapes.count, rc = MPICRYPT_OK;
    static const char *const paper[] = {"8x16", "7x13"};

    *variants = calloc((size_t) (shapes * plan->orders.count), sizeof(**variants));
    *count = 0;
    if (NULL == *variants) {
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    for (int s = 0; s < shapes && MPICRYPT_OK == rc; ++s) {
        for (int o = 0; o < plan->orders.count && MPICRYPT_OK == rc; ++o) {
            mpicrypt_bench_variant_t *variant = &(*variants)[(*count)++];
            variant->pairs = 1;
            variant->dims = 2;
            rc = mpicrypt_bench_shape(plan->paper ? paper[s] : plan->shapes.value[s], &variant->nodes, &variant->width);
            rc = rc ? rc : parse_order(plan->orders.value[o], &variant->cyclic);
            variant->ranks = variant->nodes * variant->width;
            variant->paper_width = plan->paper ? variant->width : 0;
        }
    }
    return rc;
}

/* Fewer ranks a node, if the processors would have more than --per-cpu each. */
int mpicrypt_bench_coll_scale(mpicrypt_bench_plan_t *plan, mpicrypt_bench_variant_t *variants, int count)
{
    mpicrypt_bench_places_t places = {.nodes = 0};
    int rc = MPICRYPT_OK;

    for (int v = 0; v < count && MPICRYPT_OK == rc; ++v) {
        mpicrypt_bench_variant_t one = variants[v];
        if (0 == v || variants[v].nodes != variants[v - 1].nodes) {
            one.width = 1;
            one.ranks = one.nodes;
            mpicrypt_bench_places_free(&places);
            rc = mpicrypt_bench_places(plan, &one, &places);
        }
        size_t most = (size_t) ((double) plan->per_cpu * places.processors + 1e-9);
        variants[v].processors = places.processors;
        variants[v].width = most < 1 ? 1 : most < variants[v].paper_width ? most : variants[v].paper_width;
        variants[v].ranks = variants[v].nodes * variants[v].width;
    }
    mpicrypt_bench_places_free(&places);
    return rc;
}

void mpicrypt_bench_coll_scaling(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant, FILE *out)
{
    if (variant->width == variant->paper_width) {
        fprintf(out, "%zu nodes with %zu ranks each, as in the paper.\n", variant->nodes, variant->width);
    } else {
        fprintf(out, "%zu nodes with %zu ranks each instead of the paper's %zu (%zu ranks instead of %zu): a node has "
                "%.3g\nprocessors, and with more than %zu ranks on each (--per-cpu) the scheduler would be measured.\n",
                variant->nodes, variant->width, variant->paper_width, variant->ranks,
                variant->nodes * variant->paper_width, variant->processors, plan->per_cpu);
    }
}

/* ---- placing ---- */

void mpicrypt_bench_coll_mapping(const mpicrypt_bench_variant_t *variant, mpicrypt_words_t *command)
{
    if (mpicrypt_launch_is_srun(command)) {
        mpicrypt_words_add(command, "--nodes=%zu", variant->nodes);
        mpicrypt_words_add(command, "--ntasks-per-node=%zu", variant->width);
        mpicrypt_words_add(command, "--distribution=%s", variant->cyclic ? "cyclic" : "block");
        return;
    }
    mpicrypt_words_add(command, "--map-by");
    mpicrypt_words_add(command, "ppr:%zu:node", variant->width);
    if (variant->cyclic) {
        mpicrypt_words_add(command, "--rank-by");
        mpicrypt_words_add(command, "node");
    }
}

bool mpicrypt_bench_coll_fits(const mpicrypt_bench_variant_t *variant, size_t rank, size_t node)
{
    return node == (variant->cyclic ? rank % variant->nodes : rank / variant->width);
}

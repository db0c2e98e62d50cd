/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The table of rules: built in, read from a file, searched.
 */
#include "coll_cryptag_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { ANY, BLOCK, CYCLIC } mapping_t;

typedef struct {
    uint64_t bytes;
    int32_t operation, mapping, nodes, width, algorithm, zero;
} rule_t;

struct ompi_coll_cryptag_rules {
    rule_t *rule;
    int count;
};

#define AG OMPI_COLL_CRYPTAG_ALLGATHER
/* The last one that applies counts.  In HS3 every rank opens everything, which was measured with
 * two ranks on a node; with more of them we share that work, until it is measured. */
static const rule_t built_in[] = {
    /* bytes      operation mapping nodes width algorithm */
    { 0,          AG, ANY,    2, 1, OMPI_COLL_CRYPTAG_C_RD, 0 },
    { 65536,      AG, ANY,    2, 1, OMPI_COLL_CRYPTAG_C_RING, 0 },
    { 0,          AG, ANY,    2, 2, OMPI_COLL_CRYPTAG_HS1, 0 },
    { 131072,     AG, ANY,    2, 2, OMPI_COLL_CRYPTAG_C_RD, 0 },
    { 16384,      AG, CYCLIC, 2, 2, OMPI_COLL_CRYPTAG_HS3, 0 },
    { 4096,       AG, ANY,    8, 2, OMPI_COLL_CRYPTAG_HS3, 0 },
    { 524288,     AG, ANY,    2, 2, OMPI_COLL_CRYPTAG_C_RING, 0 },
    { 0,          AG, ANY,    2, 4, OMPI_COLL_CRYPTAG_HS1, 0 },
    { 16384,      AG, ANY,    8, 4, OMPI_COLL_CRYPTAG_HS2, 0 },
    { 131072,     AG, ANY,    2, 4, OMPI_COLL_CRYPTAG_C_RD, 0 },
    { 262144,     AG, ANY,    8, 4, OMPI_COLL_CRYPTAG_C_RING, 0 },
    { 524288,     AG, ANY,    2, 4, OMPI_COLL_CRYPTAG_C_RING, 0 },
};

#define BC OMPI_COLL_CRYPTAG_BCAST
#define AA OMPI_COLL_CRYPTAG_ALLTOALL
/* Over btl/crypt sharing memory within a node pays most: ours, where faster than Open MPI's own (2x2 and 4x2). */
static const rule_t over_btl_crypt[] = {
    /* bytes      operation mapping nodes width algorithm */
    { 0,          AG, ANY,    2, 1, OMPI_COLL_CRYPTAG_HOP, 0 },
    { 0,          AG, ANY,    2, 2, OMPI_COLL_CRYPTAG_HS1, 0 },
    { 16384,      AG, ANY,    2, 2, OMPI_COLL_CRYPTAG_HS2, 0 },
    { 262144,     AG, ANY,    2, 2, OMPI_COLL_CRYPTAG_HS3, 0 },
    { 65536,      AG, ANY,    3, 2, OMPI_COLL_CRYPTAG_C_RD, 0 },
    { 0,          BC, ANY,    2, 1, OMPI_COLL_CRYPTAG_BCAST_HOP, 0 },
    { 0,          BC, ANY,    2, 2, OMPI_COLL_CRYPTAG_BCAST_BINOMIAL, 0 },
    { 1048576,    BC, ANY,    2, 2, OMPI_COLL_CRYPTAG_BCAST_HOP, 0 },
    { 1048576,    BC, ANY,    3, 2, OMPI_COLL_CRYPTAG_BCAST_CHAIN, 0 },
    { 0,          AA, ANY,    2, 1, OMPI_COLL_CRYPTAG_ALLTOALL_HOP, 0 },
    { 0,          AA, ANY,    2, 2, OMPI_COLL_CRYPTAG_ALLTOALL_NODE, 0 },
    { 4097,       AA, ANY,    2, 2, OMPI_COLL_CRYPTAG_ALLTOALL_ROWS, 0 },
    { 65536,      AA, ANY,    2, 2, OMPI_COLL_CRYPTAG_ALLTOALL_HOP, 0 },
};

static const char *const operation_names[] = { "", "allgather", "bcast", "alltoall" };
static const char *const mapping_names[] = { "any", "block", "cyclic" };

enum { OPERATIONS = 4 };
#define WORD_OF_RUN(name, function, word) word,
#define WORD_OF_NAMED(name, word) word,
static const char *const algorithm_names[OPERATIONS][OMPI_COLL_CRYPTAG_ALGORITHMS + 1] = {
    [OMPI_COLL_CRYPTAG_ALLGATHER] = { "auto", OPAL_CRYPT_ALLGATHERS(WORD_OF_RUN, WORD_OF_NAMED) },
    [OMPI_COLL_CRYPTAG_BCAST] = { "auto", OPAL_CRYPT_BCASTS(WORD_OF_RUN, WORD_OF_NAMED) },
    [OMPI_COLL_CRYPTAG_ALLTOALL] = { "auto", OPAL_CRYPT_ALLTOALLS(WORD_OF_RUN, WORD_OF_NAMED) },
};

const char *ompi_coll_cryptag_operation_name(ompi_coll_cryptag_operation_t operation)
{
    return operation_names[operation];
}

const char *ompi_coll_cryptag_algorithm_name(ompi_coll_cryptag_operation_t operation, int algorithm)
{
    return algorithm_names[operation][algorithm];
}

static int index_of(const char *word, const char *const *names, int count)
{
    for (int i = 0; i < count && NULL != names[i]; i++) {
        if (0 == strcmp(word, names[i])) {
            return i;
        }
    }
    return -1;
}

static bool read_number(const char *word, uint64_t most, uint64_t *number)
{
    char *end;
    unsigned long long value;

    if (word[0] < '0' || word[0] > '9') {
        return false;
    }
    errno = 0;
    value = strtoull(word, &end, 10);
    if ('k' == *end || 'm' == *end) {
        unsigned shift = 'k' == *end++ ? 10 : 20;
        if (value > UINT64_MAX >> shift) {
            return false;
        }
        value <<= shift;
    }
    *number = value;
    return 0 == errno && '\0' == *end && value <= most;
}

/* Returns what is wrong with the line, or NULL.  An empty line has operation 0. */
static const char *read_rule(char *line, rule_t *rule)
{
    char *word[7], *rest = NULL;
    uint64_t nodes, width;
    int words = 0;

    *rule = (rule_t) { 0 };
    line[strcspn(line, "#\r\n")] = '\0';
    for (char *w = strtok_r(line, " \t", &rest); NULL != w && words < 7; w = strtok_r(NULL, " \t", &rest)) {
        word[words++] = w;
    }
    if (0 == words) {
        return NULL;
    }
    if (6 != words) {
        return "needs six words: operation mapping nodes ranks-a-node bytes algorithm";
    }
    rule->operation = index_of(word[0], operation_names, OPERATIONS);
    if (rule->operation < 1) {
        return "the operation is none of allgather, bcast, alltoall";
    }
    rule->mapping = index_of(word[1], mapping_names, 3);
    rule->algorithm = index_of(word[5], algorithm_names[rule->operation], OMPI_COLL_CRYPTAG_ALGORITHMS);
    if (rule->mapping < 0) {
        return "the mapping is none of any, block, cyclic";
    }
    if (!read_number(word[2], INT32_MAX, &nodes) || !read_number(word[3], INT32_MAX, &width)
        || !read_number(word[4], UINT64_MAX, &rule->bytes)) {
        return "nodes, ranks a node and bytes are numbers";
    }
    rule->nodes = (int32_t) nodes;
    rule->width = (int32_t) width;
    return rule->algorithm < 1 ? "the operation has no such algorithm" : NULL;
}

static bool add_rule(ompi_coll_cryptag_rules_t *rules, const rule_t *rule)
{
    rule_t *longer = realloc(rules->rule, ((size_t) rules->count + 1) * sizeof(*longer));

    if (NULL == longer) {
        return false;
    }
    rules->rule = longer;
    rules->rule[rules->count++] = *rule;
    return true;
}

static bool read_file(ompi_coll_cryptag_rules_t *rules, const char *file, char *why, size_t why_bytes)
{
    FILE *stream = fopen(file, "re");
    const char *wrong = NULL;
    char *line = NULL;
    size_t capacity = 0;
    int number = 0;

    if (NULL == stream) {
        snprintf(why, why_bytes, "%s: %s", file, strerror(errno));
        return false;
    }
    while (NULL == wrong && getline(&line, &capacity, stream) >= 0) {
        rule_t rule;

        number++;
        wrong = read_rule(line, &rule);
        if (NULL == wrong && 0 != rule.operation && !add_rule(rules, &rule)) {
            wrong = "out of memory";
        }
    }
    if (NULL == wrong && ferror(stream)) {
        wrong = "cannot be read further";
    }
    free(line);
    fclose(stream);
    if (NULL != wrong) {
        snprintf(why, why_bytes, "%s, line %d: %s", file, number, wrong);
    }
    return NULL == wrong;
}

ompi_coll_cryptag_rules_t *ompi_coll_cryptag_rules_new(bool over_btl, const char *file, char *why, size_t why_bytes)
{
    const rule_t *start = over_btl ? over_btl_crypt : built_in;
    const size_t count = over_btl ? sizeof(over_btl_crypt) / sizeof(*start) : sizeof(built_in) / sizeof(*start);
    ompi_coll_cryptag_rules_t *rules = calloc(1, sizeof(*rules));
    bool whole = NULL != rules;

    for (size_t i = 0; whole && i < count; i++) {
        whole = add_rule(rules, &start[i]);
    }
    if (!whole) {
        snprintf(why, why_bytes, "out of memory");
    }
    if (!whole || (NULL != file && '\0' != file[0] && !read_file(rules, file, why, why_bytes))) {
        ompi_coll_cryptag_rules_free(rules);
        return NULL;
    }
    return rules;
}

void ompi_coll_cryptag_rules_free(ompi_coll_cryptag_rules_t *rules)
{
    if (NULL != rules) {
        free(rules->rule);
        free(rules);
    }
}

int ompi_coll_cryptag_rules_find(const ompi_coll_cryptag_rules_t *rules, ompi_coll_cryptag_operation_t operation,
                                 const ompi_coll_cryptag_topo_t *topo, size_t block_bytes)
{
    const int mapping = topo->in_order ? BLOCK : CYCLIC;

    for (int i = rules->count - 1; i >= 0; i--) {
        const rule_t *rule = &rules->rule[i];
        if ((int) operation == rule->operation && (ANY == rule->mapping || mapping == rule->mapping)
            && topo->nodes >= rule->nodes && topo->widest >= rule->width && block_bytes >= rule->bytes) {
            return rule->algorithm;
        }
    }
    return 0;
}

/* FNV-1a: catches accidental differences, not tampering. */
uint32_t ompi_coll_cryptag_sum(const void *bytes, size_t count, uint32_t sum)
{
    for (size_t i = 0; i < count; i++) {
        sum = (sum ^ ((const uint8_t *) bytes)[i]) * 16777619;
    }
    return sum;
}

uint32_t ompi_coll_cryptag_rules_sum(const ompi_coll_cryptag_rules_t *rules, uint32_t sum)
{
    return ompi_coll_cryptag_sum(rules->rule, (size_t) rules->count * sizeof(*rules->rule), sum);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The table of threads by size: what it chooses, against the paper's example, and its text.
 * (tool/measure has the model that such a table comes from.)
 */
#include "unit.h"

#include <locale.h>

#include "opal/mca/common/crypt/wire/rule.h"

static void table_choice(void)
{
    /* CryptMPI, section IV: Noleland, 32 hardware threads */
    const opal_crypt_rule_t rule = {
        .step = {{64 << 10, 512 << 10, 2}, {128 << 10, 512 << 10, 4}, {512 << 10, 512 << 10, 8}}, .count = 3
    };
    static const struct {
        size_t bytes;
        unsigned ranks, k, t;
    } expected[] = {
        {(64 << 10) - 1, 1, 1, 1}, {64 << 10, 1, 1, 2}, {(128 << 10) - 1, 1, 1, 2}, {128 << 10, 1, 1, 4},
        {512 << 10, 1, 1, 8}, {1 << 20, 1, 2, 8}, {(2 << 20) - 1, 1, 3, 8}, {4 << 20, 1, 8, 8},
        {4 << 20, 8, 8, 2},     /* "if there are 8 pairs ... will use 2 threads" */
        {4 << 20, 16, 8, 1}, {4 << 20, 32, 8, 1}
    };

    UNIT_GROUP("choice by the paper's table");
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); ++i) {
        const opal_crypt_limits_t limits = {
            .threads = 32 / expected[i].ranks, .comm_threads = 2, .max_outstanding = 64
        };
        opal_crypt_choice_t choice = opal_crypt_rule_choose(&rule, &limits, expected[i].bytes, 0);
        UNIT_CHECK(expected[i].k == choice.k);
        UNIT_CHECK(expected[i].t == choice.t);
    }
    /* Two pairs, 64 messages of 4 MiB each: after the 8th, 64 sends are pending. */
    opal_crypt_limits_t limits = {.threads = 16, .comm_threads = 2, .max_outstanding = 64};
    UNIT_CHECK(8 == opal_crypt_rule_choose(&rule, &limits, 4 << 20, 56).k);
    UNIT_CHECK(1 == opal_crypt_rule_choose(&rule, &limits, 4 << 20, 64).k);
    UNIT_CHECK(8 == opal_crypt_rule_choose(&rule, &limits, 4 << 20, 64).t);

    UNIT_GROUP("limits");
    limits.chop_min = (4 << 20) + 1;
    UNIT_CHECK(1 == opal_crypt_rule_choose(&rule, &limits, 4 << 20, 0).k);
    UNIT_CHECK(1 == opal_crypt_rule_choose(&rule, &limits, 4 << 20, 0).t);
    UNIT_CHECK(14 == opal_crypt_rule_max_threads(&limits));
    limits.threads = 3;
    UNIT_CHECK(1 == opal_crypt_rule_max_threads(&limits));
    limits.threads = 0;
    UNIT_CHECK(1 == opal_crypt_rule_max_threads(&limits));
}

static void text(void)
{
    opal_crypt_rule_t rule;
    opal_crypt_why_t why;

    UNIT_GROUP("text");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_rule_parse(&rule, "64K:2,128K:4:1M,512K:8", 512 << 10, &why));
    UNIT_CHECK(3 == rule.count && 65536 == rule.step[0].from_bytes && 2 == rule.step[0].threads);
    UNIT_CHECK(512 << 10 == rule.step[0].chunk_bytes && 1 << 20 == rule.step[1].chunk_bytes);
    UNIT_CHECK(524288 == rule.step[2].from_bytes && 8 == rule.step[2].threads);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_rule_parse(&rule, "1g:2", 1, &why) && 1 << 30 == rule.step[0].from_bytes);

    UNIT_GROUP("text: what is refused leaves the table alone");
    const opal_crypt_rule_t before = rule;
    static const char *const bad[] = {
        "", "1", "64K", "64K:", "64K:0", "64K:1.5", "64K:2,64K:4", "64K:2:3:4", "0.5:1", "1:1e9", "64K:2,", ",",
        "64K:2,5", "-1:2", "nan:2", "inf:2", "64K:2;", "64K:2 ", "64K::2", "64K:nan", "64K:2:-1", "64K:2:1e99", "x"
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_rule_parse(&rule, bad[i], 1, &why));
        UNIT_EQUAL_BYTES(&rule, &before, sizeof(before));
    }
    char steps[256] = "0:1";
    for (int i = 1; i < 32; ++i) {
        snprintf(steps + strlen(steps), sizeof(steps) - strlen(steps), ",%d:1", i);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_rule_parse(&rule, steps, 1, &why) && 32 == rule.count);
    strcat(steps, ",32:1");
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_rule_parse(&rule, steps, 1, &why) && 32 == rule.count);
}

/* A program may have set a locale with decimal commas before MPI_Init. */
static void foreign_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "pl_PL.UTF-8"};
    opal_crypt_rule_t rule = {.count = 0};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (NULL != setlocale(LC_NUMERIC, names[i])) {
            UNIT_GROUP("text: in the locale %s", names[i]);
            UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_rule_parse(&rule, "1.5K:2", 1, NULL));
            UNIT_CHECK(1536 == rule.step[0].from_bytes);
            setlocale(LC_NUMERIC, "C");
            return;
        }
    }
    printf("no locale with decimal commas on this machine\n");
}

int main(void)
{
    table_choice();
    text();
    foreign_locale();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The rounds of `mpicrypt speed`.
 *
 *     for each thread count, key size, message size:
 *         for each round: A, B, C ... then B, C, A ...   (a batch of each)
 *         a row with median and quartiles of the rounds
 */
#include <stdlib.h>
#include <string.h>

#include "speed.h"

/* One provider in one group, with what its rounds measured. */
typedef struct contender {
    mpicrypt_speed_cell_t cell;
    double *seal_ns, *open_ns, *both_ns;
} contender_t;

static int provider_failed(const contender_t *contender, const char *operation)
{
    return mpicrypt_error(MPICRYPT_FAILED, "provider %s failed to %s %zu bytes",
                          contender->cell.module->name, operation, contender->cell.bytes);
}

static int contender_init(const mpicrypt_speed_plan_t *plan, contender_t *contender, const opal_aead_module_t *module, size_t key_bits,
                          size_t bytes, size_t thread_count)
{
    memset(contender, 0, sizeof(*contender));
    contender->seal_ns = calloc(3 * plan->rounds, sizeof(double));
    if (NULL == contender->seal_ns) {
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    contender->open_ns = contender->seal_ns + plan->rounds;
    contender->both_ns = contender->open_ns + plan->rounds;
    if (OPAL_AEAD_OK != mpicrypt_speed_cell_init(&contender->cell, module, opal_aead_aes_gcm(key_bits), bytes,
                                                 (int) thread_count)) {
        free(contender->seal_ns);
        return mpicrypt_error(MPICRYPT_FAILED, "provider %s cannot set up a %zu-bit key",
                              module->name, key_bits);
    }
    return MPICRYPT_OK;
}

static void contender_wipe(contender_t *contender)
{
    mpicrypt_speed_cell_wipe(&contender->cell);
    free(contender->seal_ns);
}

static int measure_rounds(const mpicrypt_speed_plan_t *plan, mpicrypt_speed_team_t *team, contender_t *contenders, int count)
{
    for (int c = 0; c < count; ++c) {
        if (OPAL_AEAD_OK != mpicrypt_speed_calibrate(team, &contenders[c].cell, plan->batch_ms / 1000)) {
            return provider_failed(&contenders[c], "seal and open");
        }
    }
    for (size_t round = 0; round < plan->rounds; ++round) {
        for (int turn = 0; turn < count; ++turn) {
            contender_t *contender = &contenders[((size_t) turn + round) % (size_t) count];
            if (OPAL_AEAD_OK != mpicrypt_speed_seal(team, &contender->cell, &contender->seal_ns[round])) {
                return provider_failed(contender, "seal");
            }
            if (OPAL_AEAD_OK != mpicrypt_speed_open(team, &contender->cell, &contender->open_ns[round])) {
                return provider_failed(contender, "open");
            }
            contender->both_ns[round] = contender->seal_ns[round] + contender->open_ns[round];
        }
    }
    return MPICRYPT_OK;
}

/* MB = 10^6 bytes; all threads together. */
static double rate(const contender_t *contender, size_t thread_count, double ns)
{
    return 1e3 * (double) contender->cell.bytes * (double) thread_count / ns;
}

static void add_spread(mpicrypt_table_t *table, const mpicrypt_spread_t *spread)
{
    mpicrypt_table_number(table, spread->median);
    mpicrypt_table_number(table, spread->low);
    mpicrypt_table_number(table, spread->high);
    mpicrypt_table_number(table, 100 * (spread->high - spread->low) / spread->median);
}

static void add_row(mpicrypt_speed_plan_t *plan, mpicrypt_table_t *table, const contender_t *contender, size_t key_bits, size_t thread_count)
{
    mpicrypt_spread_t seal = mpicrypt_spread(contender->seal_ns, (int) plan->rounds);
    mpicrypt_spread_t open = mpicrypt_spread(contender->open_ns, (int) plan->rounds);
    mpicrypt_spread_t both = mpicrypt_spread(contender->both_ns, (int) plan->rounds);

    mpicrypt_table_text(table, contender->cell.module->name);
    mpicrypt_table_count(table, key_bits);
    mpicrypt_table_count(table, thread_count);
    mpicrypt_table_bytes(table, contender->cell.bytes);
    mpicrypt_table_count(table, plan->rounds);
    add_spread(table, &seal);
    mpicrypt_table_number(table, rate(contender, thread_count, seal.median));
    add_spread(table, &open);
    mpicrypt_table_number(table, rate(contender, thread_count, open.median));
    mpicrypt_table_number(table, both.median);
    mpicrypt_table_number(table, rate(contender, thread_count, both.median));
    ++plan->result_count;
}

/* All providers that can, one key size, thread count and message size. */
static int measure_group(mpicrypt_speed_plan_t *plan, mpicrypt_speed_team_t *team, mpicrypt_table_t *table, size_t key_bits,
                         size_t thread_count, size_t bytes)
{
    contender_t contenders[MPICRYPT_PROVIDERS_MAX];
    int count = 0, rc = MPICRYPT_OK;

    for (int m = 0; m < plan->module_count && MPICRYPT_OK == rc; ++m) {
        if (mpicrypt_provider_usable(plan->modules[m], opal_aead_aes_gcm(key_bits))) {
            rc = contender_init(plan, &contenders[count], plan->modules[m], key_bits, bytes, thread_count);
            count += MPICRYPT_OK == rc;
        }
    }
    if (MPICRYPT_OK == rc) {
        rc = measure_rounds(plan, team, contenders, count);
    }
    for (int c = 0; c < count; ++c) {
        if (MPICRYPT_OK == rc) {
            add_row(plan, table, &contenders[c], key_bits, thread_count);
        }
        contender_wipe(&contenders[c]);
    }
    return rc;
}

int mpicrypt_speed_measure(mpicrypt_speed_plan_t *plan, const int *cpus, mpicrypt_table_t *table)
{
    size_t done = 0, total = (size_t) plan->bits.count * (size_t) plan->threads.count * (size_t) plan->sizes.count;
    size_t max_bytes = 0;
    char label[64], size_text[24];
    int rc = MPICRYPT_OK;

    for (int s = 0; s < plan->sizes.count; ++s) {
        max_bytes = plan->sizes.value[s] > max_bytes ? plan->sizes.value[s] : max_bytes;
    }
    for (int t = 0; t < plan->threads.count && MPICRYPT_OK == rc; ++t) {
        mpicrypt_speed_team_t *team = mpicrypt_speed_team_new((int) plan->threads.value[t], cpus, max_bytes);
        if (NULL == team) {
            return mpicrypt_error(MPICRYPT_FAILED, "no memory for %zu threads with messages of %s",
                                  plan->threads.value[t], mpicrypt_size_text(max_bytes, size_text));
        }
        for (int b = 0; b < plan->bits.count && MPICRYPT_OK == rc; ++b) {
            for (int s = 0; s < plan->sizes.count && MPICRYPT_OK == rc; ++s) {
                snprintf(label, sizeof(label), "%zu bits, %zu threads, %s", plan->bits.value[b],
                         plan->threads.value[t], mpicrypt_size_text(plan->sizes.value[s], size_text));
                mpicrypt_progress(label, done++, total);
                rc = measure_group(plan, team, table, plan->bits.value[b], plan->threads.value[t], plan->sizes.value[s]);
            }
        }
        mpicrypt_speed_team_free(team);
    }
    mpicrypt_progress_end();
    if (MPICRYPT_OK == rc && 0 == plan->result_count) {
        return mpicrypt_error(MPICRYPT_MISSING, "none of these providers can do AES-GCM with these keys");
    }
    return rc;
}

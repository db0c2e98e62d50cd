/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The pieces of `mpicrypt speed`: what is measured (a cell), how a batch of
 * messages is timed, which processors threads are pinned to, which providers
 * there are.
 */
#ifndef MPICRYPT_SPEED_SPEED_H
#define MPICRYPT_SPEED_SPEED_H

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "opal/mca/aead/aead_module.h"

/* ---- providers: mpicrypt_providers.c ---- */

#define MPICRYPT_PROVIDERS_MAX 16

/* Open Open MPI's utility layer and the aead framework.  MPICRYPT_MISSING
 * after a message when there is no provider at all. */
int mpicrypt_providers_open(void);
void mpicrypt_providers_close(void);

/* Every provider that may be used here, and last the benchmark's own
 * openssl-naive; valid until _close. */
int mpicrypt_providers(const opal_aead_module_t **list);

/* Can it do the cipher here, and did it pass its self-test?  A provider that
 * fails that is named on stderr. */
bool mpicrypt_provider_usable(const opal_aead_module_t *module, opal_aead_cipher_t cipher);

/* OpenSSL as the papers' prototypes called it: a context and an algorithm
 * lookup for every message.  For comparison only; no component can select it. */
extern const opal_aead_module_t mpicrypt_speed_naive;

/* ---- processors: mpicrypt_cpus.c ---- */

/* Processors that this process may run on, one hardware thread of every core
 * before the second ones.  Returns the count, 0 on failure; freed by free(). */
int mpicrypt_cpus(int **cpus);

/* The model name of the first processor, as /proc/cpuinfo has it. */
void mpicrypt_processor(char *name, size_t bytes);

/* ---- timing: speed/run.c ---- */

typedef struct mpicrypt_speed_team mpicrypt_speed_team_t;

/* `threads` workers, each pinned to its processor and with buffers of
 * `max_bytes`.  NULL when out of memory. */
mpicrypt_speed_team_t *mpicrypt_speed_team_new(int threads, const int *cpus, size_t max_bytes);
void mpicrypt_speed_team_free(mpicrypt_speed_team_t *team);

/* One provider with one cipher and one size. */
typedef struct mpicrypt_speed_cell {
    const opal_aead_module_t *module;
    opal_aead_cipher_t cipher;
    size_t bytes;
    void *key;                      /* expanded; protects nothing, see _cell_init */
    opal_aead_context_t **contexts; /* one for each worker */
    int context_count;
    size_t seal_messages, open_messages;    /* in a batch, for each thread */
} mpicrypt_speed_cell_t;

/* OPAL_AEAD_OK or what the provider returned. */
int mpicrypt_speed_cell_init(mpicrypt_speed_cell_t *cell, const opal_aead_module_t *module,
                             opal_aead_cipher_t cipher, size_t bytes, int threads);
void mpicrypt_speed_cell_wipe(mpicrypt_speed_cell_t *cell);

/* Choose the batch sizes so that a batch lasts about `seconds`. */
int mpicrypt_speed_calibrate(mpicrypt_speed_team_t *team, mpicrypt_speed_cell_t *cell, double seconds);

/* One batch: every worker seals (opens) its messages; *ns is the time from
 * the first worker's start to the last one's end, for each message of a thread. */
int mpicrypt_speed_seal(mpicrypt_speed_team_t *team, const mpicrypt_speed_cell_t *cell, double *ns);
int mpicrypt_speed_open(mpicrypt_speed_team_t *team, const mpicrypt_speed_cell_t *cell, double *ns);

/* ---- a run: speed/measure.c, speed/show.c ---- */

typedef struct mpicrypt_speed_plan {
    mpicrypt_sizes_t bits, sizes, threads;
    size_t rounds;
    double batch_ms;
    const opal_aead_module_t *modules[MPICRYPT_PROVIDERS_MAX];
    int module_count;
    int result_count;
} mpicrypt_speed_plan_t;

/* Fill the table. */
int mpicrypt_speed_measure(mpicrypt_speed_plan_t *plan, const int *cpus, mpicrypt_table_t *table);

mpicrypt_table_t *mpicrypt_speed_table(void);
void mpicrypt_speed_print(const mpicrypt_speed_plan_t *plan, const mpicrypt_table_t *table);
void mpicrypt_speed_json(const mpicrypt_speed_plan_t *plan, const mpicrypt_table_t *table, FILE *out);
int mpicrypt_speed_plot(const mpicrypt_speed_plan_t *plan, const mpicrypt_table_t *table, const char *path);

#endif

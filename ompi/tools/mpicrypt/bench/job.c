/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One start of mpicrypt-mpi through the launcher.  Open MPI's parameters go
 * into the environment, which mpirun and srun both hand on, and which does not
 * clash with what the user wrote after mpirun; the started program checks that
 * they are in force.  The form of its answers is in rank/rank.h.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "opal/mca/common/crypt/base/parameter.h"

static void add_sizes(mpicrypt_words_t *command, const char *option, const mpicrypt_sizes_t *list)
{
    char text[2048] = "";

    for (int i = 0; i < list->count; ++i) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%zu", 0 == i ? "" : ",", list->value[i]);
    }
    mpicrypt_words_add(command, "%s=%s", option, text);
}

void mpicrypt_bench_launcher(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                             mpicrypt_words_t *command)
{
    mpicrypt_words_split(command, plan->mpirun);
    if (!plan->local && NULL != plan->mapping) {
        mpicrypt_words_split(command, plan->mapping);
    } else if (0 != variant->nodes) {
        mpicrypt_bench_coll_mapping(variant, command);
    } else if (!plan->local) {
        mpicrypt_words_split(command, mpicrypt_launch_is_srun(command) ? "--distribution=cyclic" : "--map-by node");
    }
    /* mpirun would bind each rank to one core, and leave no others to pin it to. */
    if (plan->pin && 1 != plan->cpus_per_rank && !mpicrypt_launch_is_srun(command) && !mpicrypt_launch_binds(command)) {
        mpicrypt_words_split(command, "--bind-to none");
    }
    mpicrypt_words_add(command, "-n");
    mpicrypt_words_add(command, "%zu", variant->ranks);
}

static void begin_command(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                          const char *verb, mpicrypt_words_t *command)
{
    mpicrypt_bench_launcher(plan, variant, command);
    mpicrypt_words_add(command, "%s", plan->program);
    mpicrypt_words_add(command, "%s", verb);
}

static void add_laps(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                     mpicrypt_words_t *command)
{
    add_sizes(command, "--size", &plan->sizes);
    mpicrypt_words_add(command, "--laps=%zu", plan->laps);
    mpicrypt_words_add(command, "--lap-ms=%g", plan->lap_ms);
    if (NULL != places->cpus) {
        mpicrypt_words_add(command, "--cpus=%s", places->cpus);
    }
    if (plan->cryptmpi) {
        char text[2048] = "";
        for (int i = 0; i < plan->sizes.count; ++i) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof(text) - used, "%s%zu", 0 == i ? "" : ",",
                     mpicrypt_bench_cryptmpi_iterations(plan, plan->sizes.value[i]));
        }
        mpicrypt_words_add(command, "--iterations=%s", text);
    }
}

/* The algorithms that the job compares. */
static void add_choices(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_column_t *column,
                        mpicrypt_words_t *command)
{
    char text[1024] = "";

    if (NULL == column->algorithm) {
        return;
    }
    for (int c = 0; c < mpicrypt_bench_column_jobs(plan, column); ++c) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%s", 0 == c ? "" : ",", column[c].algorithm);
    }
    mpicrypt_words_add(command, "--choose=coll_cryptag_%s_algorithm", plan->pattern);
    mpicrypt_words_add(command, "--choices=%s", text);
}

static void job_command(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_column_t *column,
                        const mpicrypt_bench_variant_t *variant, const mpicrypt_bench_places_t *places,
                        mpicrypt_words_t *command)
{
    char require[1024] = "pml";

    for (int i = 0; i < column->settings.count; ++i) {
        size_t used = strlen(require);
        snprintf(require + used, sizeof(require) - used, ",%.*s", (int) strcspn(column->settings.value[i], "="),
                 column->settings.value[i]);
    }
    begin_command(plan, variant, plan->pattern, command);
    add_laps(plan, places, command);
    mpicrypt_words_add(command, "--pairs=%zu", variant->pairs);
    mpicrypt_words_add(command, "--window=%zu", plan->window);
    mpicrypt_words_add(command, "--dims=%zu", variant->dims);
    mpicrypt_words_add(command, "--pml=%s", column->pml);
    mpicrypt_words_add(command, "--require=%s", require);
    if (NULL != variant->workload) {
        mpicrypt_words_add(command, "--workload=%s", variant->workload);
        mpicrypt_words_add(command, "--access=%s", variant->access);
        mpicrypt_words_add(command, "--op=%s", variant->op);
        mpicrypt_words_add(command, "--io-dir=%s", plan->directory);
        mpicrypt_words_add(command, "--data=%zu", plan->data.value[0]);
        mpicrypt_words_add(command, "--row=%zu", plan->row.value[0]);
    }
    if (column->file) {
        mpicrypt_words_add(command, "--label=%s", plan->key_label);
        mpicrypt_words_add(command, "--algorithm=aes-%zu-gcm", column->bits);
    }
    add_choices(plan, column, command);
    if (variant->work.count > 0) {
        add_sizes(command, "--work", &variant->work);
    }
    if (column->naive) {
        mpicrypt_words_add(command, "--seal=%zu", column->bits);
    }
    if (column->bare) {
        mpicrypt_words_add(command, "--bare");
    }
    if (column->socket) {
        mpicrypt_words_add(command, "--socket");
    }
    if (column->copied) {
        mpicrypt_words_add(command, "--copied");
    }
    if (column->kernel) {
        mpicrypt_words_add(command, "--kernel");
    }
    if (plan->both) {
        mpicrypt_words_add(command, "--both");
    }
    if (plan->local) {
        mpicrypt_words_add(command, "--local");
    }
}

/* A plain job with parameters of encrypted ones warns.  Without a value it is taken out of the environment. */
static void take_out(const char *name, const char *value, opal_crypt_parameter_t kind, const char *nearest, void *settings)
{
    (void) value;
    (void) nearest;
    if ((OPAL_CRYPT_PARAMETER_KNOWN == kind || OPAL_CRYPT_PARAMETER_RANGE == kind) && opal_crypt_parameter_of_messages(name)) {
        mpicrypt_words_add(settings, "OMPI_MCA_%s", name);
    }
}

void mpicrypt_bench_settings(const mpicrypt_bench_column_t *column, const mpicrypt_bench_places_t *places,
                             mpicrypt_words_t *settings)
{
    mpicrypt_words_add(settings, "OMPI_MCA_mpi_yield_when_idle=%d", places->yield);
    if (0 != strcmp(column->pml, "crypt")) {
        opal_crypt_parameter_environment(take_out, settings);
    }
    for (int i = 0; i < column->settings.count; ++i) {
        mpicrypt_words_add(settings, "OMPI_MCA_%s", column->settings.value[i]);
    }
}

int mpicrypt_bench_failed(const mpicrypt_words_t *command, const char *label, const mpicrypt_launch_t *result)
{
    char text[4096] = "";

    for (int i = 0; i < command->count; ++i) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%s", 0 == i ? "" : " ", command->value[i]);
    }
    mpicrypt_progress_end();
    fputs(result->err, stderr);
    return mpicrypt_error(127 == result->code || MPICRYPT_MISSING == result->code ? MPICRYPT_MISSING : MPICRYPT_FAILED,
                          "column %s: this command ended with status %d, %s:\n    %s", label, result->code,
                          0 == result->code ? "but its results are not complete" : "its messages are above", text);
}

/* Warnings of the jobs are shown, but the same one once. */
static void show_warnings(mpicrypt_bench_column_t *column, const char *text)
{
    if ('\0' != *text && 0 != strncmp(column->said, text, sizeof(column->said) - 1)) {
        snprintf(column->said, sizeof(column->said), "%s", text);
        mpicrypt_progress_end();
        fputs(text, stderr);
    }
}

/* ---- what came back ---- */

typedef struct laps {
    double *seconds, *work;     /* [column][size][lap] */
    size_t *count;              /* [column][size] */
    size_t most, columns;
    double unit;
    size_t messages;
    bool done;
} laps_t;

static void take_value(const mpicrypt_bench_plan_t *plan, const char *line, laps_t *laps)
{
    size_t bytes, lap, column;
    double seconds, work;

    if (5 != sscanf(line, "value %zu %zu %lf %lf %zu", &bytes, &lap, &seconds, &work, &column)
        || column >= laps->columns) {
        return;
    }
    for (int i = 0; i < plan->sizes.count; ++i) {
        size_t s = column * (size_t) plan->sizes.count + (size_t) i;
        if (plan->sizes.value[i] == bytes && laps->count[s] < laps->most) {
            size_t place = s * laps->most + laps->count[s]++;
            laps->seconds[place] = seconds;
            laps->work[place] = work;
        }
    }
}

static bool take_lines(const mpicrypt_bench_plan_t *plan, char *text, laps_t *laps)
{
    bool complete = true;

    for (char *line = mpicrypt_launch_line(&text); NULL != line; line = mpicrypt_launch_line(&text)) {
        take_value(plan, line, laps);
        sscanf(line, "unit %lf", &laps->unit);
        sscanf(line, "messages %zu", &laps->messages);
        laps->done = laps->done || 0 == strcmp(line, "done");
    }
    for (size_t s = 0; s < laps->columns * (size_t) plan->sizes.count; ++s) {
        complete = complete && laps->count[s] == laps->most;
    }
    return complete && laps->done;
}

int mpicrypt_bench_job(mpicrypt_bench_plan_t *plan, mpicrypt_bench_column_t *column,
                       mpicrypt_bench_variant_t *variant, const mpicrypt_bench_places_t *places,
                       double *seconds, double *work_seconds, double *unit_seconds)
{
    size_t columns = (size_t) mpicrypt_bench_column_jobs(plan, column), sizes = columns * (size_t) plan->sizes.count;
    laps_t laps = {.seconds = calloc(sizes * plan->laps, sizeof(double)),
                   .work = calloc(sizes * plan->laps, sizeof(double)),
                   .count = calloc(sizes, sizeof(size_t)), .most = plan->laps, .columns = columns};
    mpicrypt_words_t command = {NULL, 0}, settings = {NULL, 0};
    mpicrypt_launch_t result;
    int rc = MPICRYPT_FAILED;

    if (NULL == laps.seconds || NULL == laps.work || NULL == laps.count) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "out of memory");
        goto free_laps;
    }
    job_command(plan, column, variant, places, &command);
    mpicrypt_bench_settings(column, places, &settings);
    rc = mpicrypt_launch(&command, &settings, &result);
    if (MPICRYPT_OK != rc) {
        goto free_words;
    }
    if (!take_lines(plan, result.out, &laps) || 0 != result.code) {
        rc = mpicrypt_bench_failed(&command, column->label, &result);
    } else {
        show_warnings(column, result.err);
        for (size_t s = 0; s < sizes; ++s) {
            seconds[s] = mpicrypt_spread(laps.seconds + s * laps.most, (int) laps.most).median;
            work_seconds[s] = mpicrypt_spread(laps.work + s * laps.most, (int) laps.most).median;
        }
        *unit_seconds = laps.unit;
        variant->messages = laps.messages;
    }
    mpicrypt_launch_free(&result);

free_words:
    mpicrypt_words_free(&command);
    mpicrypt_words_free(&settings);
free_laps:
    free(laps.seconds);
    free(laps.work);
    free(laps.count);
    return rc;
}

/* ---- where the launcher puts the ranks ---- */

typedef struct place {
    size_t node;
    char boot[64], cpus[8192];
} place_t;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Processors of one rank: on each machine ranks have theirs in turn, but for
 * ranks that the launcher has bound apart. */
static bool add_cpus(const mpicrypt_bench_plan_t *plan, const place_t *place, size_t rank, size_t ranks,
                     mpicrypt_bench_places_t *places)
{
    size_t mine = 0, all = 0, available = 1, done = 0;
    char *old = places->cpus, part[8192] = "";

    for (size_t i = 0; i < ranks; ++i) {
        bool here = 0 == strcmp(place[i].boot, place[rank].boot);
        if (here && 0 != strcmp(place[i].cpus, place[rank].cpus)) {
            return false;
        }
        mine += here && i < rank;
        all += here;
    }
    for (const char *p = place[rank].cpus; '\0' != *p; ++p) {
        available += ',' == *p;
    }
    places->yield = places->yield || all > available;
    size_t each = 0 == plan->cpus_per_rank ? available / all : plan->cpus_per_rank;
    each = each < 1 || all * each > available ? 1 : each;
    places->each = least(places->each, each);
    size_t number = 0, first = mine * each % available;
    for (const char *p = place[rank].cpus; NULL != p; p = strchr(p, ','), ++number) {
        p += ',' == *p;
        if (number >= first && number < first + each) {
            size_t used = strlen(part);
            snprintf(part + used, sizeof(part) - used, "%s%d", 0 == done++ ? "" : "+", atoi(p));
        }
    }
    if (asprintf(&places->cpus, "%s%s%s", NULL == old ? "" : old, NULL == old ? "" : ",", part) < 0) {
        exit(mpicrypt_error(MPICRYPT_FAILED, "out of memory"));
    }
    free(old);
    return true;
}

/* Processors that a rank has, if those of its machine share them equally. */
static double processors_of(const place_t *place, size_t rank, size_t ranks)
{
    double here = 0, available = 1;

    for (size_t i = 0; i < ranks; ++i) {
        here += 0 == strcmp(place[i].boot, place[rank].boot) && 0 == strcmp(place[i].cpus, place[rank].cpus);
    }
    for (const char *p = place[rank].cpus; '\0' != *p; ++p) {
        available += ',' == *p;
    }
    return available / here;
}

static int understand(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant, char *text,
                      mpicrypt_bench_places_t *places)
{
    place_t *place = calloc(variant->ranks, sizeof(*place)), one;
    size_t seen = 0, rank;
    char host[256], tcp[32];

    if (NULL == place) {
        exit(mpicrypt_error(MPICRYPT_FAILED, "out of memory"));
    }
    for (char *line = mpicrypt_launch_line(&text); NULL != line; line = mpicrypt_launch_line(&text)) {
        sscanf(line, "library %255[^\n]", places->library);
        if (6 == sscanf(line, "rank %zu %zu %255s %63s %31s %8191s", &rank, &one.node, host, one.boot, tcp, one.cpus)
            && rank < variant->ranks) {
            bool equal = 0 == seen || 0 == strcmp(places->tcp, tcp);
            snprintf(places->tcp, sizeof(places->tcp), "%s", equal ? tcp : "different");
            place[rank] = one;
            ++seen;
            places->nodes = one.node + 1 > places->nodes ? one.node + 1 : places->nodes;
        }
    }
    bool apart = seen == variant->ranks;
    places->each = SIZE_MAX;
    for (size_t i = 0; i < variant->ranks && seen == variant->ranks; ++i) {
        for (size_t j = 0; j < i; ++j) {
            places->shared = places->shared || (place[i].node != place[j].node
                                                && 0 == strcmp(place[i].boot, place[j].boot));
        }
        apart = apart && add_cpus(plan, place, i, variant->ranks, places);
        double mine = processors_of(place, i, variant->ranks);
        places->processors = 0 == i || mine < places->processors ? mine : places->processors;
        places->misplaced = places->misplaced
                            || (0 != variant->nodes && !mpicrypt_bench_coll_fits(variant, i, place[i].node));
    }
    /* Without a core for each, pinning would decide which ranks share one. */
    if (!apart || !plan->pin || places->yield) {
        free(places->cpus);
        places->cpus = NULL;
        places->each = (size_t) places->processors;
    }
    free(place);
    return seen == variant->ranks ? MPICRYPT_OK : MPICRYPT_FAILED;
}

int mpicrypt_bench_places(mpicrypt_bench_plan_t *plan, const mpicrypt_bench_variant_t *variant,
                          mpicrypt_bench_places_t *places)
{
    mpicrypt_words_t command = {NULL, 0}, settings = {NULL, 0};
    mpicrypt_launch_t result;

    memset(places, 0, sizeof(*places));
    begin_command(plan, variant, "nodes", &command);
    mpicrypt_words_add(&settings, "OMPI_MCA_pml=%s", plan->host);
    int rc = mpicrypt_launch(&command, &settings, &result);
    if (MPICRYPT_OK == rc) {
        char *text = result.out;
        if (0 != result.code || MPICRYPT_OK != understand(plan, variant, text, places)) {
            rc = mpicrypt_bench_failed(&command, "(placement)", &result);
        } else if (places->misplaced) {
            rc = mpicrypt_error(MPICRYPT_MISSING, "'%s' does not put %zu ranks on each of %zu nodes in %s order; "
                                "--mapping has other words for it", plan->mpirun, variant->width, variant->nodes,
                                variant->cyclic ? "cyclic" : "block");
        } else if (!plan->local && places->nodes < 2) {
            rc = mpicrypt_error(MPICRYPT_MISSING, "'%s' puts all %zu ranks on one node; two are needed, unless "
                                "--local is given", plan->mpirun, variant->ranks);
        } else if (plan->pin && plan->cpus_per_rank > 1 && places->each < plan->cpus_per_rank) {
            fprintf(stderr, "mpicrypt: warning: --cpus-per-rank %zu: '%s' leaves a rank only %zu\n",
                    plan->cpus_per_rank, plan->mpirun, places->each);
        }
        mpicrypt_launch_free(&result);
    }
    mpicrypt_words_free(&command);
    mpicrypt_words_free(&settings);
    return rc;
}

void mpicrypt_bench_places_free(mpicrypt_bench_places_t *places)
{
    free(places->cpus);
    places->cpus = NULL;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The worker team: every job is done once, by several threads where there are
 * several, submitted from several; a chopped message sealed and opened by 2, 4
 * and 8 workers; no thread before the first job; what a fork'd child does.
 */
#include "unit.h"

#include "sessions.h"

#include "opal/mca/common/crypt/base/team.h"
#include "opal/mca/common/crypt/base/thread.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

typedef opal_crypt_job_t job_t;
typedef opal_crypt_team_t team_t;

static bool openmp;                     /* the carrier of the teams */

static team_t *team_of(unsigned threads)
{
    team_t *team = NULL;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_team_create(threads, openmp, &team));
    return team;
}

static void wait_for(const job_t *job)
{
    while (!opal_crypt_job_done(job)) {
        usleep(10);
    }
}

/* ---- plain jobs ---- */

typedef struct sum {
    job_t job;
    unsigned value;             /* the job adds its own number, without atomics */
    unsigned number;
} sum_t;

static void add_number(job_t *job)
{
    sum_t *sum = (sum_t *) job;

    sum->value += sum->number;
}

enum { JOBS = 500 };

static void many(team_t *team, unsigned rounds)
{
    sum_t *sums = calloc(JOBS, sizeof(*sums));

    for (unsigned round = 1; round <= rounds; ++round) {
        unsigned wrong = 0;
        for (unsigned i = 0; i < JOBS; ++i) {
            sums[i].number = i;
            sums[i].job.work = add_number;
            opal_crypt_team_submit(team, &sums[i].job);
        }
        for (unsigned i = 0; i < JOBS; ++i) {
            wait_for(&sums[i].job);
            wrong += i * round != sums[i].value;
        }
        if (0 != wrong) {
            fprintf(stderr, "%u of %d jobs\n", wrong, JOBS);
            abort();                        /* from a thread: unit_check does not lock */
        }
    }
    free(sums);
}

static void *many_thread(void *team)
{
    many(team, 20);
    return NULL;
}

static void test_jobs(void)
{
    pthread_t others[3];

    UNIT_GROUP("jobs: by 1, 2, 4 and 8 threads, submitted by four at once");
    for (unsigned threads = 1; threads <= 8; threads *= 2) {
        team_t *team = team_of(threads);
        UNIT_CHECK(0 == opal_crypt_team_started(team));
        for (int i = 0; i < 3; ++i) {
            UNIT_REQUIRE(0 == pthread_create(&others[i], NULL, many_thread, team));
        }
        many(team, 20);
        for (int i = 0; i < 3; ++i) {
            pthread_join(others[i], NULL);
        }
        UNIT_CHECK(opal_crypt_team_started(team) >= 1);
        UNIT_CHECK(opal_crypt_team_started(team) <= threads);
        opal_crypt_team_destroy(team);
    }

    UNIT_GROUP("a team without work starts no thread; bounds");
    team_t *team = team_of(8);
    UNIT_CHECK(0 == opal_crypt_team_started(team));
    opal_crypt_team_destroy(team);
    opal_crypt_team_destroy(NULL);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_team_create(0, openmp, &team));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_team_create(OPAL_CRYPT_TEAM_MAX + 1, openmp, &team));
}

/* Jobs that wait for one another: there must be as many threads as jobs. */
static pthread_barrier_t together;

static void meet(job_t *job)
{
    (void) job;
    pthread_barrier_wait(&together);
}

static void test_together(void)
{
    UNIT_GROUP("as many jobs at once as threads");
    for (unsigned threads = 2; threads <= 8; threads *= 2) {
        team_t *team = team_of(threads);
        job_t jobs[8] = {{.work = NULL}};
        for (int round = 0; round < 3; ++round) {
            pthread_barrier_init(&together, NULL, threads);
            for (unsigned i = 0; i < threads; ++i) {
                jobs[i].work = meet;
                opal_crypt_team_submit(team, &jobs[i]);
            }
            for (unsigned i = 0; i < threads; ++i) {
                wait_for(&jobs[i]);
            }
            pthread_barrier_destroy(&together);
        }
        UNIT_CHECK(threads == opal_crypt_team_started(team));
        opal_crypt_team_destroy(team);
    }
}

/* ---- a chopped message ---- */

typedef struct piece {
    job_t job;
    opal_crypt_chop_t *chop;
    uint32_t segment;
    uint8_t *plain, *frame;
    size_t wire_bytes;
    int rc;
} piece_t;

static void seal_piece(job_t *job)
{
    piece_t *p = (piece_t *) job;

    p->rc = opal_crypt_segment_seal(p->chop, p->segment, p->plain, p->frame);
}

static void open_piece(job_t *job)
{
    piece_t *p = (piece_t *) job;

    p->rc = opal_crypt_segment_open(p->chop, p->segment, p->frame, p->wire_bytes, p->plain);
}

static void all_pieces(team_t *team, piece_t *pieces, uint32_t count, opal_crypt_chop_t *chop, uint8_t *buffer,
                       const opal_crypt_shape_t *shape, void (*work)(job_t *))
{
    for (uint32_t i = 0; i < count; ++i) {
        pieces[i].chop = chop;
        pieces[i].plain = buffer + opal_crypt_segment_offset(shape, i + 1);
        pieces[i].job.work = work;
        opal_crypt_team_submit(team, &pieces[i].job);
    }
    for (uint32_t i = 0; i < count; ++i) {
        wait_for(&pieces[i].job);
    }
}

static void chopped(ends_t *ends, team_t *team, uint64_t total, uint32_t chunk, uint32_t forged)
{
    const opal_crypt_envelope_t envelope = {.context_low = 7, .tag = 3};
    opal_crypt_shape_t shape, seen_shape;
    opal_crypt_chop_t *sealing, *opening;
    uint8_t *plain = malloc(total), *back = calloc(1, total), first[100 + OPAL_CRYPT_FIRST_OVERHEAD];
    uint64_t counter;

    fill(plain, total, total);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_make(total, 100, chunk, &shape));
    piece_t *pieces = calloc(shape.count, sizeof(*pieces));
    for (uint32_t i = 0; i < shape.count; ++i) {
        pieces[i].segment = i + 1;
        pieces[i].wire_bytes = opal_crypt_segment_bytes(&shape, i + 1) + OPAL_CRYPT_SEGMENT_OVERHEAD;
        pieces[i].frame = malloc(pieces[i].wire_bytes);
    }
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_seal(ends->a, &envelope, &shape, plain, first, &counter, &sealing));
    all_pieces(team, pieces, shape.count, sealing, plain, &shape, seal_piece);
    for (uint32_t i = 0; i < shape.count; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == pieces[i].rc);
    }
    if (0 != forged) {
        pieces[forged - 1].frame[1] ^= 1;
    }
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_open(ends->b, &envelope, first, sizeof(first), back, SIZE_MAX,
                                                        &seen_shape, &counter, &opening));
    all_pieces(team, pieces, shape.count, opening, back, &shape, open_piece);
    for (uint32_t i = 0; i < shape.count; ++i) {
        UNIT_CHECK((i + 1 == forged ? OPAL_CRYPT_ERR_AUTH : OPAL_CRYPT_OK) == pieces[i].rc);
        free(pieces[i].frame);
    }
    if (0 == forged) {
        UNIT_EQUAL_BYTES(plain, back, total);
    } else {
        const uint64_t at = opal_crypt_segment_offset(&shape, forged);
        UNIT_CHECK(0 == back[at] && 0 == memcmp(back + at, back + at + 1, chunk - 1));
    }
    opal_crypt_chop_end(sealing);
    opal_crypt_chop_end(opening);
    free(pieces);
    free(plain);
    free(back);
}

static void test_chopped(void)
{
    UNIT_GROUP("a chopped message by 2, 4 and 8 threads, at good and with a segment changed");
    for (unsigned threads = 2; threads <= 8; threads *= 2) {
        /* other keys, since every (key, nonce) pair is on record */
        ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_EPOCH_SHIFT, threads + (openmp ? 100 : 0));
        team_t *team = team_of(threads);
        chopped(&ends, team, 100000, 1009, 0);
        chopped(&ends, team, 300000, 16384, 0);
        chopped(&ends, team, 100000, 1009, 50);
        opal_crypt_team_destroy(team);
        ends_free(&ends);
    }
}

/* ---- fork ---- */

static void test_fork(void)
{
    team_t *team = team_of(4);
    sum_t before = {.job = {.work = add_number}, .number = 5}, after = {.job = {.work = add_number}, .number = 6};
    int status;
    pid_t child;

    UNIT_GROUP("a fork'd child: jobs are done by the caller, destroy leaves what it finds");
    opal_crypt_team_submit(team, &before.job);
    wait_for(&before.job);
    fflush(stdout);
    child = fork();
    if (0 == child) {
        opal_crypt_team_submit(team, &after.job);
        bool done = opal_crypt_job_done(&after.job) && 6 == after.value;
        opal_crypt_team_destroy(team);
        _exit(done ? 0 : 1);
    }
    UNIT_CHECK(child > 0 && child == waitpid(child, &status, 0) && WIFEXITED(status) && 0 == WEXITSTATUS(status));
    opal_crypt_team_submit(team, &after.job);
    wait_for(&after.job);
    UNIT_CHECK(5 == before.value && 6 == after.value);
    opal_crypt_team_destroy(team);
}

/* ---- what its threads keep to themselves ---- */

static int contexts;                    /* of the team's threads, that are there now */

static int context_new(opal_aead_context_t **context)
{
    *context = malloc(1);
    __atomic_fetch_add(&contexts, 1, __ATOMIC_RELAXED);
    return OPAL_AEAD_OK;
}

static void context_free(opal_aead_context_t *context)
{
    free(context);
    __atomic_fetch_sub(&contexts, 1, __ATOMIC_RELAXED);
}

static const opal_aead_module_t counting = {.context_new = context_new, .context_free = context_free};

static void keep_state(job_t *job)
{
    if (NULL == opal_crypt_context(&counting)) {
        abort();
    }
    meet(job);
}

/* OpenMP's threads are not joined: they end at any time, perhaps while finalize
 * frees what is left, or after it. */
static void test_states(void)
{
    enum { THREADS = 4, ROUNDS = 100 };

    UNIT_GROUP("a team that is destroyed leaves no state of its threads behind");
    for (int round = 0; round < ROUNDS; ++round) {
        team_t *team = team_of(THREADS);
        job_t jobs[THREADS] = {{.work = NULL}};
        pthread_barrier_init(&together, NULL, THREADS);
        for (int i = 0; i < THREADS; ++i) {
            jobs[i].work = keep_state;
            opal_crypt_team_submit(team, &jobs[i]);
        }
        for (int i = 0; i < THREADS; ++i) {
            wait_for(&jobs[i]);
        }
        UNIT_CHECK(THREADS == __atomic_load_n(&contexts, __ATOMIC_RELAXED));
        opal_crypt_team_destroy(team);
        UNIT_CHECK(0 == __atomic_load_n(&contexts, __ATOMIC_RELAXED));
        pthread_barrier_destroy(&together);
        opal_crypt_finalize();
    }
}

static void test_share(void)
{
    UNIT_GROUP("processors: at least one, shared out among the ranks of a node");
    UNIT_CHECK(opal_crypt_team_processors() >= 1);
    UNIT_CHECK(32 == opal_crypt_team_share(32, 32, 1));             /* alone */
    UNIT_CHECK(8 == opal_crypt_team_share(32, 32, 4));              /* not bound */
    UNIT_CHECK(10 == opal_crypt_team_share(32, 32, 3));
    UNIT_CHECK(4 == opal_crypt_team_share(16, 32, 8));              /* bound to a socket: four ranks there */
    UNIT_CHECK(2 == opal_crypt_team_share(2, 32, 16));              /* bound to a core with two threads */
    UNIT_CHECK(2 == opal_crypt_team_share(2, 32, 1));
    UNIT_CHECK(1 == opal_crypt_team_share(2, 2, 4));                /* too many ranks */
    UNIT_CHECK(1 == opal_crypt_team_share(0, 0, 0));
    UNIT_CHECK(2 == opal_crypt_team_share(4, 2, 1));                /* some went off line */
}

/* ThreadSanitizer does not know how the threads of a library that was built
 * without it wait for one another. */
static bool with_openmp(void)
{
#ifdef __SANITIZE_THREAD__
    return false;
#else
    team_t *team = NULL;
    int rc = opal_crypt_team_create(2, true, &team);

    opal_crypt_team_destroy(team);
    return OPAL_CRYPT_OK == rc;
#endif
}

int main(void)
{
    test_jobs();
    test_together();
    test_chopped();
    test_fork();
    test_states();
    test_share();
    openmp = with_openmp();
    printf("%s\n", openmp ? "again, with the threads of OpenMP" : "no OpenMP");
    if (openmp) {
        test_jobs();
        test_together();
        test_chopped();
        test_fork();
        test_states();
    }
    opal_crypt_finalize();
    return unit_done();
}

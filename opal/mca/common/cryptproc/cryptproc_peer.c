/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The record of a peer: fetched through Open MPI's modex, checked, and made into the secrets of the pair.
 *
 *     of our job       record ------------------> check
 *     of another job   instance --> record -----> check --> if it is too old: renewal 0, 1, ... --> check
 *
 * A search handles one answer after another and waits for none, so a false claim of a name cannot stall the process
 * that checks it.  opal_cryptproc_schedule waits for each answer: this process needs that peer.
 */
#include "cryptproc_internal.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "opal/mca/common/crypt/base/patience.h"
#include "opal/mca/common/crypt/base/secmem.h"

#define CORE_HELP "help-opal-common-crypt.txt"

typedef enum { INSTANCE, RECORD, RENEWAL } step_t;

struct opal_cryptproc_search {
    opal_process_name_t name;
    bool waits;                             /* wait for each answer, and for a renewal not published yet */
    opal_crypt_expect_t expect;
    char nspace[OPAL_CRYPTPROC_NSPACE_BYTES];

    step_t step;                            /* what the pending query is for */
    opal_cryptproc_question_t *question;    /* NULL: none could be sent */
    bool second_instance;                   /* the record of our own session was missing: is there another session? */
    uint32_t instance, renewal;
    uint8_t *record;
    size_t record_bytes;
    int64_t begin;                          /* of waiting for renewals */
    opal_cryptproc_wait_t wait;
    opal_crypt_why_t why;
};

static const char *const awaited[] = {
    [INSTANCE] = "the number of its lives of MPI",
    [RECORD] = "its record of keys",
    [RENEWAL] = "its credential, made anew",
};

/* ---- queries ---- */

static void ask(opal_cryptproc_search_t *search, step_t step)
{
    const opal_cryptproc_how_t how = RECORD != step ? OPAL_CRYPTPROC_ANEW
                                   : search->waits ? OPAL_CRYPTPROC_CACHED : OPAL_CRYPTPROC_LIMITED;
    mca_base_component_t key;

    if (INSTANCE == step) {
        opal_cryptproc_key_of_instance(&key);
    } else if (RECORD == step) {
        opal_cryptproc_key_of_record(search->instance, &key);
    } else {
        opal_cryptproc_key_of_renewal(search->instance, search->renewal, &key);
    }
    opal_cryptproc_question_forget(search->question);
    search->step = step;
    search->question = opal_cryptproc_question_make(mca_base_component_to_string(&key));
    if (NULL != search->question) {
        opal_cryptproc_ask(search->question, &search->name, how);
    }
}

static bool answered(opal_cryptproc_search_t *search)
{
    bool done = true;

    if (NULL != search->question) {
        pthread_mutex_lock(&search->question->lock);
        done = search->question->done;
        pthread_mutex_unlock(&search->question->lock);
    }
    return done;
}

/* The answer, now the caller's; NULL: nothing was published. */
static uint8_t *take_answer(opal_cryptproc_search_t *search, size_t *bytes)
{
    opal_cryptproc_question_t *question = search->question;
    uint8_t *found = NULL == question ? NULL : question->found;

    *bytes = NULL == found ? 0 : question->bytes;
    if (NULL != question) {
        question->found = NULL;
    }
    return found;
}

/* ---- steps: return false if another query was sent, else *rc is the result ---- */

static bool with_instance(opal_cryptproc_search_t *search)
{
    size_t bytes;
    uint8_t *number = take_answer(search, &bytes);

    search->instance = NULL != number && sizeof(search->instance) == bytes ? opal_crypt_get32(number) : 0;
    free(number);
    if (!search->second_instance) {         /* in our job it must be of our session: the core says what differs */
        search->expect.instance = search->instance;
    }
    ask(search, RECORD);
    return false;
}

static int check(opal_cryptproc_search_t *search, opal_crypt_schedule_t **schedule)
{
    return opal_crypt_schedule_create(opal_cryptproc_local(), search->record, search->record_bytes, &search->expect, schedule,
                                      &search->why);
}

static bool with_record(opal_cryptproc_search_t *search, opal_crypt_schedule_t **schedule, int *rc)
{
    const bool ours = search->name.jobid == OPAL_PROC_MY_NAME.jobid;

    free(search->record);
    search->record = take_answer(search, &search->record_bytes);
    if (0 == search->record_bytes && ours && search->instance > 0 && !search->second_instance) {
        search->second_instance = true;
        ask(search, INSTANCE);
        return false;
    }
    *rc = check(search, schedule);          /* an empty record is refused, like a missing one */
    if (OPAL_CRYPT_ERR_OLD == *rc && 0 != search->expect.needed) {
        search->begin = opal_crypt_milliseconds();
        search->wait = (opal_cryptproc_wait_t) {.doing = "the first contact with the peer", .awaited = awaited[RENEWAL],
                                                .peer = search->name};
        ask(search, RENEWAL);
        return false;
    }
    return true;
}

/* The peer may be about to publish it.  The pauses grow from 20 ms to a second. */
static void ask_again_later(opal_cryptproc_search_t *search)
{
    enum { FIRST_PAUSE = 20, LAST_PAUSE = 1000 };
    const int64_t passed = opal_crypt_milliseconds() - search->begin;
    const int64_t pause = passed < FIRST_PAUSE ? FIRST_PAUSE : passed < LAST_PAUSE ? passed : LAST_PAUSE;

    (void) nanosleep(&(struct timespec) {.tv_sec = pause / 1000, .tv_nsec = pause % 1000 * 1000000}, NULL);
    if (passed + pause >= 1000 * ((int64_t) search->wait.seconds + 1)) {
        opal_cryptproc_wait_tick(&search->wait);    /* does not show what is pending: we hold a lock */
    }
    ask(search, RENEWAL);
}

/* The record alone is too old: check it with the first of the peer's renewals that is not.  Renewals for earlier
 * meetings are too old, and the latest may be on its way.  Without any, pass 0 bytes, which are refused. */
static bool with_renewal(opal_cryptproc_search_t *search, opal_crypt_schedule_t **schedule, int *rc)
{
    static const uint8_t none;
    uint8_t *fresh = take_answer(search, &search->expect.fresh_bytes);

    if (NULL == fresh && search->waits && opal_crypt_milliseconds() - search->begin < OPAL_CRYPTPROC_FETCH_SECONDS * 1000) {
        ask_again_later(search);
        return false;
    }
    *rc = OPAL_CRYPT_ERR_OLD;               /* `why` is from the check before */
    if (NULL != fresh || 0 == search->renewal) {
        search->expect.fresh = NULL != fresh ? fresh : &none;
        *rc = check(search, schedule);
        search->expect.fresh = NULL;
    }
    if (OPAL_CRYPT_ERR_OLD == *rc && NULL != fresh) {
        search->renewal++;
        ask(search, RENEWAL);
        free(fresh);
        return false;
    }
    free(fresh);
    return true;
}

static void warn_of_clocks(const opal_crypt_schedule_t *schedule, int64_t met)
{
    static bool said = false;
    opal_crypt_why_t why;

    if (opal_crypt_clocks_differ(opal_cryptproc_local(), opal_crypt_schedule_peer(schedule), met, &why)
        && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        OPAL_CRYPTPROC_COUNT(CORE_HELP, why.topic, why.detail);  /* mpirun shows one for the whole job */
    }
}

/* Locked memory grows with the number of peers.  Limits are per node. */
static void warn_of_memory(void)
{
    static bool said = false;
    struct rlimit limit = {0};

    if (!opal_crypt_secmem_locked() && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
        (void) getrlimit(RLIMIT_MEMLOCK, &limit);
        (void) opal_cryptproc_show_once("help-opal-common-cryptproc.txt", "secrets-not-locked", opal_process_info.nodename,
                                        (unsigned long) OPAL_PROC_MY_NAME.vpid, (unsigned long) (limit.rlim_cur / 1024));
    }
}

/* Only for our own job: Open MPI may not know another job's processes, and would ask the runtime. */
static const char *host_of(const void *name)
{
    const opal_process_name_t *whom = name;
    const opal_proc_t *proc = whom->jobid == OPAL_PROC_MY_NAME.jobid ? opal_proc_for_name(*whom) : NULL;

    return NULL == proc ? NULL : opal_get_proc_hostname(proc);
}

/* ---- a search ---- */

static void begin(opal_cryptproc_search_t *search, const opal_process_name_t *name, int64_t met, bool waits)
{
    const bool ours = name->jobid == OPAL_PROC_MY_NAME.jobid;
    opal_crypt_identity_t own;

    opal_cryptproc_own(&own);
    *search = (opal_cryptproc_search_t) {.name = *name, .waits = waits, .instance = ours ? own.instance : 0,
                                         .expect = {.rank = name->vpid, .needed = met, .instance = ours ? own.instance : 0,
                                                    .host = host_of, .whom = &search->name}};
    /* While MPI ends, 5.0 forgets the names of jobs before the last messages have arrived. */
    if (ours) {
        search->expect.nspace = own.nspace;
    } else {
        opal_cryptproc_job_name(name, search->nspace);
        search->expect.nspace = search->nspace;
    }
    ask(search, ours || !OPAL_CRYPTPROC_INSTANCES ? RECORD : INSTANCE);
}

static void end(opal_cryptproc_search_t *search)
{
    opal_cryptproc_question_forget(search->question);
    free(search->record);
}

bool opal_cryptproc_search_go(opal_cryptproc_search_t *search, opal_crypt_schedule_t **schedule, int *rc, opal_crypt_why_t *why)
{
    bool over = false;

    while (!over && answered(search)) {
        over = INSTANCE == search->step ? with_instance(search)
             : RECORD == search->step ? with_record(search, schedule, rc) : with_renewal(search, schedule, rc);
    }
    if (over && OPAL_CRYPT_OK == *rc) {
        warn_of_clocks(*schedule, search->expect.needed);
        warn_of_memory();
    } else if (over) {
        *why = search->why;
    }
    return over;
}

opal_cryptproc_search_t *opal_cryptproc_search_begin(const opal_process_name_t *name, int64_t met)
{
    opal_cryptproc_search_t *search = malloc(sizeof(*search));

    if (NULL != search) {
        begin(search, name, met, false);
    }
    return search;
}

void opal_cryptproc_search_wait(opal_cryptproc_search_t *search, unsigned milliseconds)
{
    opal_cryptproc_question_t *question = search->question;
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += (long) milliseconds * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    if (NULL != question) {
        pthread_mutex_lock(&question->lock);
        while (!question->done && 0 == rc) {
            rc = pthread_cond_timedwait(&question->answered, &question->lock, &end);
        }
        pthread_mutex_unlock(&question->lock);
    }
}

void opal_cryptproc_search_end(opal_cryptproc_search_t *search)
{
    if (NULL != search) {
        end(search);
        free(search);
    }
}

int opal_cryptproc_schedule(const opal_process_name_t *name, int64_t met, opal_crypt_schedule_t **schedule,
                            opal_crypt_why_t *why)
{
    opal_cryptproc_search_t search;
    int rc;

    begin(&search, name, met, true);
    while (!opal_cryptproc_search_go(&search, schedule, &rc, why)) {
        opal_cryptproc_await(search.question, name, awaited[search.step]);
    }
    end(&search);
    return rc;
}

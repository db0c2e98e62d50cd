/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The parts of a file, by the thread that has the file and by those that are free.  A helper is started when a part is
 * begun and a thread is free, and leaves before its next part if a file wants it.  Each thread has memory for one part.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "crew.h"
#include "opal/mca/common/crypt/base/team.h"

/* ---- threads that are free; negative while helpers still have what files took ---- */

static atomic_int free_threads;

void mpicrypt_file_threads(unsigned count) { atomic_store(&free_threads, (int) count); }
void mpicrypt_file_thread_take(void) { (void) atomic_fetch_sub(&free_threads, 1); }
void mpicrypt_file_thread_give(void) { (void) atomic_fetch_add(&free_threads, 1); }

static bool take_free_thread(void)
{
    int count = atomic_load(&free_threads);

    while (count > 0 && !atomic_compare_exchange_weak(&free_threads, &count, count - 1)) {
    }
    return count > 0;
}

unsigned mpicrypt_file_threads_default(void)
{
    enum { AT_MOST = 8 };
    const unsigned count = opal_crypt_team_processors();

    return count < AT_MOST ? count : AT_MOST;
}

/* ---- faults ---- */

bool mpicrypt_file_fault_engine(mpicrypt_file_fault_t *fault, const mpicrypt_opened_t *file, const opal_cryptfile_outcome_t *outcome)
{
    *fault = (mpicrypt_file_fault_t){.file = file, .outcome = *outcome};
    return false;
}

bool mpicrypt_file_fault_system(mpicrypt_file_fault_t *fault, const char *path)
{
    *fault = (mpicrypt_file_fault_t){.path = path, .error = errno};
    return false;
}

bool mpicrypt_file_fault_text(mpicrypt_file_fault_t *fault, const char *path, const char *text)
{
    *fault = (mpicrypt_file_fault_t){.path = path, .text = text};
    return false;
}

static int report_fault(const mpicrypt_file_fault_t *fault)
{
    return NULL != fault->file ? mpicrypt_file_failed(fault->file, &fault->outcome)
           : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", fault->path, NULL != fault->text ? fault->text : strerror(fault->error));
}

/* ---- parts ---- */

typedef struct crew_run crew_run_t;
typedef struct crew_helper {
    crew_run_t *run;
    pthread_t thread;
    enum { NO_HELPER, HELPS, HAS_LEFT } state;
} crew_helper_t;

struct crew_run {
    const mpicrypt_file_crew_t *crew;
    pthread_mutex_t lock;
    unsigned helping;
    crew_helper_t helpers[MPICRYPT_FILE_THREADS_MAX];
    uint64_t begun;                     /* parts */
    bool over, failed;
    uint64_t failed_part;
    mpicrypt_file_fault_t fault;        /* of the first part that failed */
};

/* Under the lock. */
static void note_failure(crew_run_t *run, uint64_t part, const mpicrypt_file_fault_t *fault)
{
    run->over = true;
    if (!run->failed || part < run->failed_part) {
        run->failed = true;
        run->failed_part = part;
        run->fault = *fault;
    }
}

static void find_help(crew_run_t *run);

/* Parts, until there are no more.  Called and left under the lock. */
static void work_parts(crew_run_t *run, void *memory, bool helps)
{
    const mpicrypt_file_crew_t *crew = run->crew;
    mpicrypt_file_fault_t fault;

    while (!run->over && !(helps && atomic_load(&free_threads) < 0)) {
        if (!crew->next(crew->of, memory)) {
            run->over = true;
            break;
        }
        uint64_t part = run->begun++;
        find_help(run);
        pthread_mutex_unlock(&run->lock);
        bool done = crew->work(crew->of, memory, &fault);
        pthread_mutex_lock(&run->lock);
        if (!done) {
            note_failure(run, part, &fault);
        }
    }
}

static void *help(void *arg)
{
    crew_helper_t *helper = arg;
    crew_run_t *run = helper->run;

    pthread_mutex_lock(&run->lock);
    void *memory = run->over ? NULL : run->crew->begin(run->crew->of);
    if (NULL != memory) {
        work_parts(run, memory, true);
        run->crew->end(run->crew->of, memory);
    }
    helper->state = HAS_LEFT;
    --run->helping;
    mpicrypt_file_thread_give();
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

/* It needs the lock no more once its state says that it has left. */
static void join_helper(crew_helper_t *helper)
{
    (void) pthread_join(helper->thread, NULL);
    helper->state = NO_HELPER;
}

/* Under the lock.  Without another thread the work goes on, too. */
static void find_help(crew_run_t *run)
{
    crew_helper_t *helper = NULL;

    if (run->begun + run->helping >= run->crew->parts) {
        return;
    }
    for (int i = 0; i < MPICRYPT_FILE_THREADS_MAX && NULL == helper; ++i) {
        helper = HELPS == run->helpers[i].state ? NULL : &run->helpers[i];
    }
    if (NULL == helper || !take_free_thread()) {
        return;
    }
    if (HAS_LEFT == helper->state) {
        join_helper(helper);
    }
    *helper = (crew_helper_t){.run = run, .state = HELPS};
    if (0 == pthread_create(&helper->thread, NULL, help, helper)) {
        ++run->helping;
    } else {
        helper->state = NO_HELPER;
        mpicrypt_file_thread_give();
    }
}

int mpicrypt_file_crew(const mpicrypt_file_crew_t *crew)
{
    crew_run_t run = {.crew = crew, .lock = PTHREAD_MUTEX_INITIALIZER};
    void *memory = crew->begin(crew->of);

    if (NULL == memory) {
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    pthread_mutex_lock(&run.lock);
    work_parts(&run, memory, false);
    crew->end(crew->of, memory);
    for (int i = 0; i < MPICRYPT_FILE_THREADS_MAX; ++i) {
        const bool started = NO_HELPER != run.helpers[i].state;         /* no helper starts another one now */
        pthread_mutex_unlock(&run.lock);
        if (started) {
            join_helper(&run.helpers[i]);
        }
        pthread_mutex_lock(&run.lock);
    }
    pthread_mutex_unlock(&run.lock);
    pthread_mutex_destroy(&run.lock);
    return run.failed ? report_fault(&run.fault) : MPICRYPT_OK;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One command on many files.  Operands and what is found below directories become tasks, which wait in a short queue
 * until one of the threads is free.  With one thread, or one file, there is no queue.
 *
 *     operand, or name in a directory --> task --> queue --> thread: verb --> report
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crew.h"
#include "many.h"
#include "walk.h"

enum { QUEUE = 2 * MPICRYPT_FILE_THREADS_MAX, MALLOC_KEEPS = 32 << 20 };

/* A file to work on. */
typedef struct file_task {
    mpicrypt_file_directory_t *directory;       /* where it was found; NULL: an operand */
    char *path, *shown, *to;            /* to: of the new file; NULL: there is none */
    mpicrypt_file_state_t state;        /* found when it was found */
} file_task_t;

typedef struct many_files {
    const mpicrypt_file_command_t *command;
    const mpicrypt_file_choices_t *options;
    mpicrypt_file_report_t *report;
    bool many;
    atomic_bool stop;                   /* no file would do better */
    unsigned threads;                   /* 0: no queue */
    pthread_t thread[MPICRYPT_FILE_THREADS_MAX];
    pthread_mutex_t lock;
    pthread_cond_t filled, drained;     /* the queue has tasks; it has a lot of space */
    file_task_t queue[QUEUE];
    unsigned first, queued;
    bool complete;                      /* nothing more will be queued */
} many_files_t;

/* ---- a task ---- */

static void task_free(file_task_t *task)
{
    mpicrypt_file_directory_leave(task->directory);
    free(task->path);
    free(task->shown);
    free(task->to);
}

static int call_verb(const many_files_t *many, const mpicrypt_file_choices_t *options, const file_task_t *task)
{
    const mpicrypt_file_command_t *command = many->command;
    const bool may_be_link = options->in_place && !options->subject->found;     /* which it stays */
    char *real = may_be_link ? realpath(task->path, NULL) : NULL;
    const char *path = NULL == real ? task->path : real;

    if (may_be_link && NULL == real) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", task->path, strerror(errno));
    }
    int code = NULL != command->of_one ? command->of_one(options, path)
                                       : command->of_two(options, path, options->in_place ? path : task->to);
    free(real);
    return code;
}

static void run_task(many_files_t *many, file_task_t *task)
{
    mpicrypt_file_subject_t subject = {.shown = task->shown, .found = NULL != task->directory, .again = many->many,
                                       .state = task->state, .done = many->command->done};
    mpicrypt_file_choices_t options = *many->options;
    const mpicrypt_file_directory_t *directory = task->directory;
    char *text;
    size_t bytes;
    int code = MPICRYPT_OK;

    options.subject = &subject;
    options.in_place = NULL != many->command->of_one ? many->command->in_place : options.in_place;
    options.alone = many->command->alone || options.in_place;   /* what somebody else writes would be lost */
    if (!mpicrypt_file_report_begin(many->report, &subject, &text, &bytes)) {
        (void) mpicrypt_error(MPICRYPT_FAILED, "%s: %s", task->shown, strerror(ENOMEM));
        atomic_store(&many->stop, true);
        return;
    }
    mpicrypt_error_replace(0, NULL == directory ? NULL : directory->place, NULL == directory ? NULL : directory->shown);
    mpicrypt_error_replace(1, NULL == directory || NULL == task->to ? NULL : directory->to_place,
                         NULL == directory ? NULL : directory->to_shown);
    mpicrypt_file_thread_take();
    if (MPICRYPT_FILE_IS_WHOLE == subject.state && many->many && mpicrypt_file_is_left(task->path)) {
        subject.state = MPICRYPT_FILE_IS_LEFT;
    }
    if (MPICRYPT_FILE_IS_WHOLE == subject.state) {
        code = call_verb(many, &options, task);
    }
    mpicrypt_file_thread_give();
    mpicrypt_file_progress_files(1);
    code = mpicrypt_file_report_end(many->report, &subject, code, &text);
    mpicrypt_error_replace(0, NULL, NULL);
    mpicrypt_error_replace(1, NULL, NULL);
    if (MPICRYPT_USAGE == code || MPICRYPT_MISSING == code) {
        atomic_store(&many->stop, true);
    }
}

/* ---- the queue ---- */

static void *work_queue(void *arg)
{
    many_files_t *many = arg;

    pthread_mutex_lock(&many->lock);
    for (;;) {
        while (0 == many->queued && !many->complete) {
            pthread_cond_wait(&many->filled, &many->lock);
        }
        if (0 == many->queued) {
            break;
        }
        file_task_t task = many->queue[many->first];
        many->first = (many->first + 1) % QUEUE;
        if (QUEUE / 2 == --many->queued) {
            pthread_cond_signal(&many->drained);
        }
        pthread_mutex_unlock(&many->lock);
        if (!atomic_load(&many->stop)) {
            run_task(many, &task);
        }
        task_free(&task);
        pthread_mutex_lock(&many->lock);
    }
    pthread_mutex_unlock(&many->lock);
    return NULL;
}

static void queue_begin(many_files_t *many, unsigned threads)
{
    while (many->threads < threads && 0 == pthread_create(&many->thread[many->threads], NULL, work_queue, many)) {
        ++many->threads;
    }
}

static void queue_end(many_files_t *many)
{
    pthread_mutex_lock(&many->lock);
    many->complete = true;
    pthread_cond_broadcast(&many->filled);
    pthread_mutex_unlock(&many->lock);
    for (unsigned i = 0; i < many->threads; ++i) {
        (void) pthread_join(many->thread[i], NULL);
    }
}

/* Takes the task, of which a member that is NULL though it must not be means that there was no memory.  False: stop. */
static bool add_task(many_files_t *many, file_task_t task, bool complete)
{
    if (!complete) {
        (void) mpicrypt_error(MPICRYPT_FAILED, "%s", strerror(ENOMEM));
        atomic_store(&many->stop, true);
    }
    if (atomic_load(&many->stop)) {
        task_free(&task);
        return false;
    }
    if (0 == many->threads) {
        run_task(many, &task);
        task_free(&task);
        return !atomic_load(&many->stop);
    }
    pthread_mutex_lock(&many->lock);
    if (QUEUE == many->queued) {        /* then a lot of space is waited for: threads that work are not interrupted often */
        while (many->queued > QUEUE / 2) {
            pthread_cond_wait(&many->drained, &many->lock);
        }
    }
    many->queue[(many->first + many->queued++) % QUEUE] = task;
    pthread_cond_signal(&many->filled);
    pthread_mutex_unlock(&many->lock);
    return true;
}

/* ---- where files come from ---- */

static char *two_names(const char *directory, const char *slash, const char *name)
{
    char *text;

    return asprintf(&text, "%s%s%s", directory, slash, name) < 0 ? NULL : text;
}

static bool walk_found(void *arg, mpicrypt_file_directory_t *directory, const char *name, mpicrypt_file_walk_kind_t kind)
{
    many_files_t *many = arg;
    file_task_t task = {.directory = directory, .path = two_names(directory->place, "", name),
                        .shown = two_names(directory->shown, "", name),
                        .to = directory->to_fd < 0 ? NULL : two_names(directory->to_place, "", name),
                        .state = MPICRYPT_FILE_WALK_LINK == kind ? MPICRYPT_FILE_IS_LINK
                                 : MPICRYPT_FILE_WALK_SPECIAL == kind ? MPICRYPT_FILE_IS_SPECIAL : MPICRYPT_FILE_IS_WHOLE};

    mpicrypt_file_directory_hold(directory);
    return add_task(many, task, NULL != task.path && NULL != task.shown && (directory->to_fd < 0 || NULL != task.to));
}

static void walk_failed(void *arg, const char *shown, int error)
{
    many_files_t *many = arg;
    mpicrypt_file_subject_t subject = {.shown = shown, .state = MPICRYPT_FILE_HAS_ERROR, .done = many->command->done};
    char *text;
    size_t bytes;

    const bool begun = mpicrypt_file_report_begin(many->report, &subject, &text, &bytes);
    (void) mpicrypt_error(MPICRYPT_FAILED, "%s: %s", shown, strerror(error));
    if (begun) {
        (void) mpicrypt_file_report_end(many->report, &subject, MPICRYPT_FAILED, &text);
    }
}

static bool is_directory(const char *path)
{
    struct stat status;

    return 0 == stat(path, &status) && S_ISDIR(status.st_mode);
}

static void add_operand(many_files_t *many, const char *path, const char *to)
{
    const mpicrypt_file_choices_t *options = many->options;
    const mpicrypt_file_walk_t walk = {.to = options->to, .private_to = 0 == strcmp(many->command->name, "decrypt"), .arg = many,
                                       .found = walk_found, .failed = walk_failed};

    if (options->recursive && is_directory(path)) {
        mpicrypt_file_walk(&walk, path);
        return;
    }
    char *name = NULL == options->to ? NULL : mpicrypt_file_last_name(path);
    file_task_t task = {.path = strdup(path), .shown = strdup(path),
                        .to = NULL != to ? strdup(to) : NULL == name ? NULL : two_names(options->to, "/", name)};

    (void) add_task(many, task, NULL != task.path && NULL != task.shown && (NULL == options->to || NULL != task.to));
    free(name);
}

/* ---- the command ---- */

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *) a, *(char *const *) b); }

/* Two operands of one name would get one new file. */
static int check_names(const mpicrypt_file_choices_t *options, int count, char **operands)
{
    char **names = calloc((size_t) count, sizeof(*names));
    int code = NULL == names ? mpicrypt_error(MPICRYPT_FAILED, "%s", strerror(ENOMEM)) : MPICRYPT_OK;

    for (int i = 0; MPICRYPT_OK == code && i < count; ++i) {
        names[i] = mpicrypt_file_last_name(operands[i]);
        code = NULL == names[i] ? mpicrypt_error(MPICRYPT_FAILED, "%s", strerror(ENOMEM)) : MPICRYPT_OK;
    }
    if (MPICRYPT_OK == code) {
        qsort(names, (size_t) count, sizeof(*names), by_text);
    }
    for (int i = 1; MPICRYPT_OK == code && i < count; ++i) {
        code = 0 == strcmp(names[i - 1], names[i])
                   ? mpicrypt_error(MPICRYPT_USAGE, "--to %s: two of the names end in '%s'", options->to, names[i]) : MPICRYPT_OK;
    }
    for (int i = 0; NULL != names && i < count; ++i) {
        free(names[i]);
    }
    free(names);
    return code;
}

/* The directory of new files, which is for its owner only if these are plain. */
static int make_to(const mpicrypt_file_command_t *command, const mpicrypt_file_choices_t *options)
{
    const mode_t mode = 0 == strcmp(command->name, "decrypt") ? 0700 : 0777;

    return 0 == mkdir(options->to, mode) || EEXIST == errno ? MPICRYPT_OK
           : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", options->to, strerror(errno));
}

static const char *last_words(const mpicrypt_file_command_t *command)
{
    return !command->writes ? ""
           : isatty(STDERR_FILENO) ? "\nmpicrypt file: interrupted: run the same command again to finish\n"
                                   : "mpicrypt file: interrupted: run the same command again to finish\n";
}

int mpicrypt_file_run(const mpicrypt_file_command_t *command, const mpicrypt_file_choices_t *options, int count, char **operands)
{
    const bool two = NULL != command->of_two && NULL == options->to && !options->in_place;
    const bool many = !two && (count > 1 || options->recursive || options->in_place || NULL != options->to);
    int code = NULL == options->to ? MPICRYPT_OK : check_names(options, count, operands);

    code = MPICRYPT_OK == code && NULL != options->to ? make_to(command, options) : code;
    many_files_t *files = MPICRYPT_OK == code ? calloc(1, sizeof(*files)) : NULL;
    mpicrypt_file_report_t *report = NULL == files ? NULL : mpicrypt_file_report_new(command, options, many);
    if (NULL == report) {
        free(files);
        return MPICRYPT_OK != code ? code : mpicrypt_error(MPICRYPT_FAILED, "%s", strerror(ENOMEM));
    }
    /* What is freed is kept for the next file: system calls for it would stop the other threads. */
    (void) mallopt(M_MMAP_THRESHOLD, MALLOC_KEEPS);
    (void) mallopt(M_TRIM_THRESHOLD, MALLOC_KEEPS);
    *files = (many_files_t){.command = command, .options = options, .report = report, .many = many,
                            .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER,
                            .drained = PTHREAD_COND_INITIALIZER};
    mpicrypt_error_one_line();
    mpicrypt_file_signals(last_words(command));
    mpicrypt_file_progress_begin(options->quiet);
    mpicrypt_file_threads((unsigned) options->threads);
    queue_begin(files, many && options->threads > 1 ? (unsigned) options->threads : 0);
    for (int i = 0; i < (two ? 1 : count) && !atomic_load(&files->stop); ++i) {
        add_operand(files, operands[i], two ? operands[1] : NULL);
    }
    queue_end(files);
    code = atomic_load(&files->stop) ? MPICRYPT_FAILED : MPICRYPT_OK;
    int worst = mpicrypt_file_report_free(report);
    free(files);
    mpicrypt_file_keystores_close();
    return worst > code ? worst : code;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Running a command and collecting what it writes.  It stays in our process
 * group, so that ^C ends both; other signals are forwarded (mpicrypt_signals.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpicrypt_launch.h"
#include "mpicrypt_signals.h"

#ifndef OMPI_CRYPT_LIBEXEC_DIR
#define OMPI_CRYPT_LIBEXEC_DIR "."
#endif

/* ---- words ---- */

void mpicrypt_words_add(mpicrypt_words_t *words, const char *format, ...)
{
    va_list list;
    char *word = NULL;

    va_start(list, format);
    if (vasprintf(&word, format, list) < 0) {
        word = NULL;
    }
    va_end(list);
    mpicrypt_names_add(words, word);
}

void mpicrypt_words_split(mpicrypt_words_t *words, const char *text)
{
    for (text += strspn(text, " \t"); '\0' != *text; text += strspn(text, " \t")) {
        size_t bytes = strcspn(text, " \t");
        mpicrypt_names_add(words, strndup(text, bytes));
        text += bytes;
    }
}

/* ---- the command ---- */

static void become(const mpicrypt_words_t *command, const mpicrypt_words_t *settings, int out, int err)
{
    int in = open("/dev/null", O_RDONLY);

    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) {
        _exit(127);
    }
    for (int i = 0; i < settings->count; ++i) {
        putenv(settings->value[i]);
    }
    execvp(command->value[0], command->value);
    dprintf(STDERR_FILENO, "%s: %s\n", command->value[0], strerror(errno));
    _exit(127);
}

/* Append what can be read; false at the end. */
static bool drain(int from, FILE *to)
{
    char block[4096];
    ssize_t bytes = read(from, block, sizeof(block));

    if (bytes < 0 && EINTR == errno) {
        return true;
    }
    return bytes > 0 && fwrite(block, 1, (size_t) bytes, to) == (size_t) bytes;
}

/* Read to the end of both, unless a signal has ended the launcher: what it leaves behind has our pipes for a while. */
static void collect(pid_t child, int out, int err, FILE *to_out, FILE *to_err)
{
    const int end = (int) syscall(SYS_pidfd_open, child, 0);     /* -1 before Linux 5.3 */
    struct pollfd from[3] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}, {.fd = end, .events = POLLIN}};
    FILE *to[2] = {to_out, to_err};
    bool ended = false;

    while ((from[0].fd >= 0 || from[1].fd >= 0) && !(ended && mpicrypt_signals_caught())) {
        if (poll(from, 3, -1) < 0) {
            if (EINTR == errno) {
                continue;
            }
            break;
        }
        for (int i = 0; i < 2; ++i) {
            if (from[i].fd >= 0 && 0 != from[i].revents && !drain(from[i].fd, to[i])) {
                from[i].fd = -1;
            }
        }
        if (0 != from[2].revents) {
            ended = true;
            from[2].fd = -1;
        }
    }
    close(end);
}

int mpicrypt_launch(const mpicrypt_words_t *command, const mpicrypt_words_t *settings, mpicrypt_launch_t *result)
{
    int out[2], err[2], status = 0;
    pid_t ended;
    size_t out_bytes, err_bytes;

    *result = (mpicrypt_launch_t){.code = 127};
    if (mpicrypt_signals_caught()) {
        return MPICRYPT_FAILED;
    }
    if (0 != pipe2(out, O_CLOEXEC) || 0 != pipe2(err, O_CLOEXEC)) {
        return mpicrypt_error(MPICRYPT_FAILED, "no pipe: %s", strerror(errno));
    }
    fflush(NULL);
    mpicrypt_signals_hold();
    pid_t child = fork();
    if (0 == child) {
        mpicrypt_signals_child();
        become(command, settings, out[1], err[1]);
    }
    mpicrypt_signals_parent(child);
    close(out[1]);
    close(err[1]);
    FILE *to_out = mpicrypt_checked(open_memstream(&result->out, &out_bytes));
    FILE *to_err = mpicrypt_checked(open_memstream(&result->err, &err_bytes));
    if (child > 0) {
        collect(child, out[0], err[0], to_out, to_err);
    }
    fclose(to_out);
    fclose(to_err);
    close(out[0]);
    close(err[0]);
    if (child < 0) {
        mpicrypt_signals_over();
        return mpicrypt_error(MPICRYPT_FAILED, "no process for %s: %s", command->value[0], strerror(errno));
    }
    while ((ended = waitpid(child, &status, 0)) < 0 && EINTR == errno) {
    }
    mpicrypt_signals_over();
    if (ended < 0) {
        mpicrypt_launch_free(result);
        return mpicrypt_error(MPICRYPT_FAILED, "%s cannot be waited for: %s", command->value[0], strerror(errno));
    }
    if (mpicrypt_signals_caught()) {
        mpicrypt_launch_free(result);
        return MPICRYPT_FAILED;
    }
    result->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return MPICRYPT_OK;
}

void mpicrypt_launch_free(mpicrypt_launch_t *result)
{
    free(result->out);
    free(result->err);
}

/* ---- launchers ---- */

/* A word before the first option may start another program: "nice srun". */
bool mpicrypt_launch_is_srun(const mpicrypt_words_t *command)
{
    for (int i = 0; i < command->count && '-' != command->value[i][0]; ++i) {
        const char *name = strrchr(command->value[i], '/');
        if (0 == strcmp(NULL == name ? command->value[i] : name + 1, "srun")) {
            return true;
        }
    }
    return false;
}

/* ---- mpicrypt-mpi ---- */

int mpicrypt_mpi_program(const char *given, const char **program)
{
    *program = NULL == given ? OMPI_CRYPT_LIBEXEC_DIR "/mpicrypt-mpi" : given;
    return 0 == access(*program, X_OK) ? MPICRYPT_OK
         : mpicrypt_error(MPICRYPT_MISSING, "there is no program %s; --program names another one", *program);
}

char *mpicrypt_launch_line(char **text)
{
    static const char mark[] = "@mpicrypt ";

    while (NULL != *text) {
        char *line = strsep(text, "\n");
        if (0 == strncmp(line, mark, sizeof(mark) - 1)) {
            return line + sizeof(mark) - 1;
        }
    }
    return NULL;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Passphrases.  Those that are typed go from the terminal to secret memory byte by byte, without echo: stdio would leave
 * them in its buffers.  Whatever ends the input, a signal included, the terminal gets its settings back.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "keystore.h"
#include "passphrase.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"

/* ---- the terminal ---- */

static const int typing_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { TYPING_SIGNALS = sizeof(typing_signals) / sizeof(typing_signals[0]) };

static volatile sig_atomic_t typing_ended_by;

static void end_typing(int number)
{
    typing_ended_by = number;
}

typedef enum { TYPED_LINE, TYPED_NOTHING, TYPED_TOO_MUCH, TYPED_SIGNAL } typed_t;

/* One line from a terminal that hands on every byte; `text` has MPICRYPT_PASSPHRASE_MAX bytes.  Signals come during ppoll only. */
static typed_t type_line(int fd, const sigset_t *open_mask, mpicrypt_passphrase_t *passphrase)
{
    enum { END_OF_INPUT = 4, ERASE = 8, KILL_LINE = 21, DELETE = 127 };
    struct pollfd terminal = {.fd = fd, .events = POLLIN};
    bool too_much = false;
    char byte;

    passphrase->bytes = 0;
    for (;;) {
        if (0 != typing_ended_by) {
            return TYPED_SIGNAL;
        }
        if (ppoll(&terminal, 1, NULL, open_mask) < 0) {
            continue;
        }
        if (1 != read(fd, &byte, 1) || (END_OF_INPUT == byte && 0 == passphrase->bytes)) {
            return TYPED_NOTHING;
        }
        if ('\n' == byte || '\r' == byte) {
            return too_much ? TYPED_TOO_MUCH : TYPED_LINE;
        }
        if (ERASE == byte || DELETE == byte) {
            while (passphrase->bytes > 0 && 0x80 == (0xc0 & passphrase->text[--passphrase->bytes])) {
                /* the other bytes of a character in UTF-8 */
            }
        } else if (KILL_LINE == byte) {
            passphrase->bytes = 0;
        } else if (passphrase->bytes < MPICRYPT_PASSPHRASE_MAX) {
            passphrase->text[passphrase->bytes++] = byte;
        } else {
            too_much = true;
        }
    }
}

static typed_t type_without_echo(int fd, const char *prompt, mpicrypt_passphrase_t *passphrase)
{
    const struct sigaction action = {.sa_handler = end_typing};
    struct sigaction before[TYPING_SIGNALS];
    struct termios shown, hidden;
    sigset_t held, open_mask;
    typed_t typed = TYPED_NOTHING;

    sigemptyset(&held);
    for (int i = 0; i < TYPING_SIGNALS; ++i) {
        sigaddset(&held, typing_signals[i]);
    }
    sigprocmask(SIG_BLOCK, &held, &open_mask);
    for (int i = 0; i < TYPING_SIGNALS; ++i) {
        sigaction(typing_signals[i], &action, &before[i]);
    }
    if (0 == tcgetattr(fd, &shown)) {
        hidden = shown;
        hidden.c_lflag &= ~(tcflag_t) (ECHO | ECHONL | ICANON | IEXTEN);
        hidden.c_iflag &= ~(tcflag_t) (IXON | IXOFF);
        hidden.c_cc[VSUSP] = _POSIX_VDISABLE;
        hidden.c_cc[VMIN] = 1;
        hidden.c_cc[VTIME] = 0;
        if (0 == tcsetattr(fd, TCSAFLUSH, &hidden)) {
            (void) !write(fd, prompt, strlen(prompt));
            typed = type_line(fd, &open_mask, passphrase);
            (void) tcsetattr(fd, TCSAFLUSH, &shown);
            (void) !write(fd, "\n", 1);
        }
    }
    if (TYPED_LINE != typed) {
        opal_crypt_wipe(passphrase->text, MPICRYPT_PASSPHRASE_MAX);
    }
    for (int i = 0; i < TYPING_SIGNALS; ++i) {
        sigaction(typing_signals[i], &before[i], NULL);
    }
    sigprocmask(SIG_SETMASK, &open_mask, NULL);
    return typed;
}

static int typed_code(typed_t typed)
{
    switch (typed) {
    case TYPED_LINE:
        return MPICRYPT_OK;
    case TYPED_TOO_MUCH:
        return mpicrypt_error(MPICRYPT_USAGE, "a passphrase has at most %d bytes", MPICRYPT_PASSPHRASE_MAX);
    case TYPED_SIGNAL:
        signal(typing_ended_by, SIG_DFL);
        raise(typing_ended_by);
        return MPICRYPT_FAILED;
    default:
        return mpicrypt_error(MPICRYPT_USAGE, "no passphrase was typed");
    }
}

static int type_passphrase(bool fresh, mpicrypt_passphrase_t *passphrase)
{
    mpicrypt_passphrase_t again = {.text = NULL};
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

    if (fd < 0) {
        return mpicrypt_error(MPICRYPT_USAGE, "there is no terminal on which to type a passphrase; use --passphrase-file FILE");
    }
    int code = typed_code(type_without_echo(fd, fresh ? "New passphrase: " : "Passphrase: ", passphrase));
    if (MPICRYPT_OK == code && fresh && passphrase->bytes >= MPICRYPT_PASSPHRASE_MIN) {
        again.text = opal_crypt_secmem_alloc(MPICRYPT_PASSPHRASE_MAX);
        code = NULL == again.text ? mpicrypt_error(MPICRYPT_FAILED, "there is no memory for secret keys (ulimit -l)")
                                  : typed_code(type_without_echo(fd, "The same again: ", &again));
        if (MPICRYPT_OK == code
            && (again.bytes != passphrase->bytes || 0 != opal_crypt_differ(again.text, passphrase->text, again.bytes))) {
            code = mpicrypt_error(MPICRYPT_USAGE, "the two passphrases differ");
        }
        opal_crypt_secmem_free(again.text);
    }
    close(fd);
    return code;
}

/* ---- a file ---- */

static int read_passphrase_file(const char *path, bool netfs, mpicrypt_passphrase_t *passphrase)
{
    opal_crypt_secret_file_t file;
    opal_crypt_why_t why = {.topic = NULL};
    int rc = opal_crypt_secret_file_read(path, "passphrase", 1, MPICRYPT_PASSPHRASE_MAX, netfs, &file, &why);

    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused("--passphrase-file", rc, &why);
    }
    passphrase->bytes = file.count - ('\n' == file.bytes[file.count - 1]);
    memcpy(passphrase->text, file.bytes, passphrase->bytes);
    opal_crypt_secmem_free(file.bytes);
    return MPICRYPT_OK;
}

int mpicrypt_passphrase_read(const char *file, bool netfs, bool fresh, mpicrypt_passphrase_t *passphrase)
{
    passphrase->text = opal_crypt_secmem_alloc(MPICRYPT_PASSPHRASE_MAX);
    if (NULL == passphrase->text) {
        return mpicrypt_error(MPICRYPT_FAILED, "there is no memory for secret keys (ulimit -l)");
    }
    int code = NULL == file ? type_passphrase(fresh, passphrase) : read_passphrase_file(file, netfs, passphrase);
    if (MPICRYPT_OK == code && fresh && passphrase->bytes < MPICRYPT_PASSPHRASE_MIN) {
        code = mpicrypt_error(MPICRYPT_USAGE, "a passphrase has at least %d characters; five random words are good", MPICRYPT_PASSPHRASE_MIN);
    }
    if (MPICRYPT_OK != code) {
        opal_crypt_secmem_free(passphrase->text);
        passphrase->text = NULL;
    }
    return code;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * To be loaded before an MPI program: when it seals and opens with intel-ipsec-mb, and when its bytes go into
 * the kernel and come out, on the clock of the machine.  Lines for plot.py, a message each from `begin` on:
 *
 *     begin US RANK | seal, open, send, recv US BYTES | end US
 *
 * Small calls (headers, control) are left out.  Nothing is written while a message is on its way.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum { EVENTS = 1 << 20, SMALL = 1024 };

static struct { double us; const char *what; long bytes; } event[EVENTS];
static int count, on;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);          /* that of a capture */
    return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static void note(const char *what, long bytes)
{
    if (on && count < EVENTS) {
        event[count].us = now();
        event[count].what = what;
        event[count++].bytes = bytes;
    }
}

static void note_large(const char *what, long bytes)
{
    if (bytes >= SMALL) {
        note(what, bytes);
    }
}

void timeline_begin(int rank);
void timeline_end(void);

void timeline_begin(int rank)
{
    on = 1;
    note("begin", rank);
}

static void write_down(void)
{
    FILE *out = fopen(getenv("TIMELINE_FILE"), "w");

    for (int i = 0; NULL != out && i < count; ++i) {
        fprintf(out, "%s %.3f %ld\n", event[i].what, event[i].us, event[i].bytes);
    }
    if (NULL == out || 0 != fclose(out)) {
        abort();
    }
}

void timeline_end(void)
{
    static int asked;

    note("end", 0);
    on = 0;
    if (!asked++) {
        atexit(write_down);
    }
}

/* ---- the cipher ---- */

#define WHOLE_MESSAGE(name, what) \
    static aes_gcm_enc_dec_t real_##name; \
    static void my_##name(const struct gcm_key_data *key, struct gcm_context_data *context, uint8_t *out, \
                          uint8_t const *in, uint64_t bytes, const uint8_t *iv, uint8_t const *aad, uint64_t aad_bytes, \
                          uint8_t *tag, uint64_t tag_bytes) \
    { \
        real_##name(key, context, out, in, bytes, iv, aad, aad_bytes, tag, tag_bytes); \
        note_large(what, (long) bytes); \
    }
#define PART_OF_MESSAGE(name, what) \
    static aes_gcm_enc_dec_update_t real_##name; \
    static void my_##name(const struct gcm_key_data *key, struct gcm_context_data *context, uint8_t *out, \
                          const uint8_t *in, uint64_t bytes) \
    { \
        real_##name(key, context, out, in, bytes); \
        note_large(what, (long) bytes); \
    }
#define TAKE(name) (real_##name = manager->name, manager->name = my_##name)

WHOLE_MESSAGE(gcm128_enc, "seal")
WHOLE_MESSAGE(gcm128_dec, "open")
PART_OF_MESSAGE(gcm128_enc_update, "seal")
PART_OF_MESSAGE(gcm128_dec_update, "open")

void init_mb_mgr_auto(IMB_MGR *manager, IMB_ARCH *arch)
{
    ((void (*)(IMB_MGR *, IMB_ARCH *)) dlsym(RTLD_NEXT, "init_mb_mgr_auto"))(manager, arch);
    TAKE(gcm128_enc);
    TAKE(gcm128_dec);
    TAKE(gcm128_enc_update);
    TAKE(gcm128_dec_update);
}

/* ---- the kernel ---- */

#define CALL(name, what, parameters, arguments) \
    ssize_t name parameters \
    { \
        static ssize_t (*real) parameters; \
        ssize_t moved; \
        if (NULL == real) { \
            real = (ssize_t (*) parameters) dlsym(RTLD_NEXT, #name); \
        } \
        moved = real arguments; \
        note_large(what, (long) moved); \
        return moved; \
    }

CALL(send, "send", (int fd, const void *bytes, size_t length, int flags), (fd, bytes, length, flags))
CALL(sendmsg, "send", (int fd, const struct msghdr *message, int flags), (fd, message, flags))
CALL(writev, "send", (int fd, const struct iovec *pieces, int number), (fd, pieces, number))
CALL(recv, "recv", (int fd, void *bytes, size_t length, int flags), (fd, bytes, length, flags))
CALL(recvmsg, "recv", (int fd, struct msghdr *message, int flags), (fd, message, flags))
CALL(readv, "recv", (int fd, const struct iovec *pieces, int number), (fd, pieces, number))

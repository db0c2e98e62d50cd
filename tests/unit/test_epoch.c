/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Epochs, with the shift lowered so that thousands of them pass, on the core
 * that aborts when a (key, nonce) pair seals twice.
 */
#include "unit.h"

#include "sessions.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/nonce_log.h"

#define SHIFT 3

static const opal_crypt_envelope_t here = {1, 2, 1, 3};

typedef struct {
    uint8_t bytes[16 + OPAL_CRYPT_DIRECT_OVERHEAD];
    uint8_t plain[16];
    uint64_t counter;
} frame_t;

static void seal(opal_crypt_session_t *session, frame_t *frame)
{
    frame->counter = session->next;
    fill(frame->plain, sizeof(frame->plain), frame->counter);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(session, &here, frame->plain, sizeof(frame->plain), frame->bytes));
}

static int open_frame(opal_crypt_session_t *session, const frame_t *frame)
{
    uint8_t plain[16];
    uint64_t counter = UINT64_MAX;
    int rc = opal_crypt_direct_open(session, &here, frame->bytes, sizeof(frame->bytes), plain, SIZE_MAX, &counter);

    if (OPAL_CRYPT_OK == rc) {
        UNIT_CHECK(counter == frame->counter);
        UNIT_EQUAL_BYTES(plain, frame->plain, sizeof(plain));
    }
    return rc;
}

static bool seated(const opal_crypt_epochs_t *epochs, uint64_t number)
{
    for (int i = 0; i < OPAL_CRYPT_EPOCH_SEATS; ++i) {
        if (epochs->seats[i].word == (number + 1) << 15) {
            return true;
        }
    }
    return false;
}

/* Direct and chopped messages alternate over 1,500 epochs; received in blocks, backwards. */
static void many_epochs(void)
{
    enum { MESSAGES = 1500 << SHIFT, BLOCK = 60 };
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, SHIFT, 11);
    static frame_t frames[BLOCK];
    const uint64_t before = opal_crypt_recorded();

    for (int i = 0; i < MESSAGES; i += BLOCK) {
        for (int j = 0; j < BLOCK; ++j) {
            seal(ends.a, &frames[j]);
        }
        for (int j = BLOCK - 1; j >= 0; --j) {
            UNIT_CHECK(OPAL_CRYPT_OK == open_frame(ends.b, &frames[j]));
        }
    }
    UNIT_CHECK(MESSAGES == opal_crypt_recorded() - before);
    UNIT_CHECK(seated(&ends.a->out, 1499) && seated(&ends.b->in, 1499));
    ends_free(&ends);
}

static void chopped_epochs(void)
{
    enum { MESSAGES = 200 << SHIFT };
    ends_t ends = ends_make(OPAL_AEAD_AES_256_GCM, SHIFT, 12);
    opal_crypt_shape_t shape, seen_shape;
    uint8_t plain[100], first[70], segment[40], back[100];
    bool good = true;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_make(100, 30, 24, &shape));
    for (int m = 0; m < MESSAGES; ++m) {
        opal_crypt_chop_t *sealing, *opening;
        uint64_t counter, seen;
        fill(plain, sizeof(plain), (uint64_t) m);
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_seal(ends.a, &here, &shape, plain, first, &counter, &sealing));
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_open(ends.b, &here, first, sizeof(first), back, SIZE_MAX,
                                                            &seen_shape, &seen, &opening));
        for (uint32_t i = 1; i <= shape.count; ++i) {
            uint64_t at = opal_crypt_segment_offset(&shape, i);
            size_t wire = opal_crypt_segment_bytes(&shape, i) + 16;
            good = good && OPAL_CRYPT_OK == opal_crypt_segment_seal(sealing, i, plain + at, segment)
                   && OPAL_CRYPT_OK == opal_crypt_segment_open(opening, i, segment, wire, back + at);
        }
        good = good && seen == counter && 0 == memcmp(plain, back, sizeof(plain));
        opal_crypt_chop_end(sealing);
        opal_crypt_chop_end(opening);
    }
    UNIT_CHECK(good);
    ends_free(&ends);
}

/* A frame that names a far epoch changes nothing unless it verifies. */
static void forged_epochs(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, SHIFT, 13);
    opal_crypt_seat_t before[OPAL_CRYPT_EPOCH_SEATS];
    frame_t frame, forged;

    for (int i = 0; i < 3 << SHIFT; ++i) {
        seal(ends.a, &frame);
        UNIT_CHECK(OPAL_CRYPT_OK == open_frame(ends.b, &frame));
    }
    memcpy(before, ends.b->in.seats, sizeof(before));
    UNIT_CHECK(seated(&ends.b->in, 0) && seated(&ends.b->in, 1) && seated(&ends.b->in, 2));
    for (uint64_t bit = SHIFT; bit < 48; ++bit) {
        forged = frame;
        opal_crypt_put48(forged.bytes + 2, frame.counter ^ (UINT64_C(1) << bit));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == open_frame(ends.b, &forged));
    }
    UNIT_CHECK(0 == memcmp(before, ends.b->in.seats, sizeof(before)));
    ends_free(&ends);
}

/* Late messages of old epochs open, and never drive out the newest. */
static void late_messages(void)
{
    enum { EPOCHS = 10 };
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, SHIFT, 14);
    static frame_t frames[EPOCHS << SHIFT];

    for (int i = 0; i < EPOCHS << SHIFT; ++i) {
        seal(ends.a, &frames[i]);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == open_frame(ends.b, &frames[(EPOCHS << SHIFT) - 1]));
    for (int i = 0; i < EPOCHS << SHIFT; i += 3) {
        UNIT_CHECK(OPAL_CRYPT_OK == open_frame(ends.b, &frames[i]));
        UNIT_CHECK(seated(&ends.b->in, EPOCHS - 1));
    }
    ends_free(&ends);
}

/* While every seat is held, others work with an epoch of their own. */
static void all_seats_held(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, SHIFT, 15);
    opal_crypt_hold_t holds[OPAL_CRYPT_EPOCH_SEATS + 1];
    frame_t frame;

    for (uint64_t e = 0; e < OPAL_CRYPT_EPOCH_SEATS; ++e) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_epoch_hold(&ends.b->in, e, &holds[e]));
        UNIT_CHECK(NULL == holds[e].seat);
        opal_crypt_epoch_release(&ends.b->in, &holds[e], true);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_epoch_hold(&ends.b->in, e, &holds[e]));
        UNIT_CHECK(NULL != holds[e].seat && e == holds[e].epoch->number);
    }
    ends.a->next = 8u << SHIFT;
    seal(ends.a, &frame);
    UNIT_CHECK(OPAL_CRYPT_OK == open_frame(ends.b, &frame));
    UNIT_CHECK(!seated(&ends.b->in, 8));
    for (uint64_t e = 0; e < OPAL_CRYPT_EPOCH_SEATS; ++e) {
        UNIT_CHECK(e == holds[e].epoch->number && !all_zero(holds[e].epoch->iv, 12));
        opal_crypt_epoch_release(&ends.b->in, &holds[e], true);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == open_frame(ends.b, &frame));
    UNIT_CHECK(seated(&ends.b->in, 8) && !seated(&ends.b->in, 0));
    ends_free(&ends);
}

/* In a child the same counter would seal twice: it must not seal at all. */
static void forked_child(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, SHIFT, 16);
    opal_crypt_shape_t shape;
    opal_crypt_chop_t *chop, *other;
    uint8_t plain[100] = {0}, frame[140];
    uint64_t chopped;
    int status = -1;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_make(100, 30, 24, &shape));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_seal(ends.a, &here, &shape, plain, frame, &chopped, &chop));
    pid_t child = fork();
    if (0 == child) {
        uint64_t more;
        _exit(!(OPAL_CRYPT_ERR_FORKED == opal_crypt_counter_take(ends.a, &more)
                && OPAL_CRYPT_ERR_FORKED == opal_crypt_direct_seal(ends.a, &here, plain, 9, frame)
                && OPAL_CRYPT_ERR_FORKED == opal_crypt_final_seal(ends.a, &here, frame)
                && OPAL_CRYPT_ERR_FORKED == opal_crypt_first_seal(ends.a, &here, &shape, plain, frame, &more, &other)
                && OPAL_CRYPT_ERR_FORKED == opal_crypt_segment_seal(chop, 1, plain, frame)));
    }
    UNIT_CHECK(child == waitpid(child, &status, 0));
    UNIT_CHECK(WIFEXITED(status) && 0 == WEXITSTATUS(status));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, plain, 9, frame));
    opal_crypt_chop_end(chop);
    ends_free(&ends);
}

/* The record of used pairs itself: it does detect a repeat. */
static void record_notices(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, SHIFT, 17);
    uint8_t frame[40];
    int status = -1;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, "once", 4, frame));
    pid_t child = fork();
    if (0 == child) {
        uint8_t id[OPAL_CRYPT_RECORD_ID_BYTES] = {1}, nonce[12] = {2};
        fclose(stderr);
        opal_crypt_nonce_log_add(id, nonce);
        nonce[11] = 1;
        opal_crypt_nonce_log_add(id, nonce);
        nonce[11] = 0;
        opal_crypt_nonce_log_add(id, nonce);
        _exit(0);
    }
    UNIT_CHECK(child == waitpid(child, &status, 0));
    UNIT_CHECK(WIFSIGNALED(status) && SIGABRT == WTERMSIG(status));
    ends_free(&ends);
}

static void shift_bounds(void)
{
    opal_crypt_secrets_t *secrets = opal_crypt_secmem_alloc(sizeof(*secrets));
    opal_crypt_session_t *session;

    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_session_from_secrets(
                   secrets, &opal_aead_openssl_module, OPAL_AEAD_AES_128_GCM, 21, &session));
}

/* A second thread is announced while epochs are held, and ends again. */
static void several_threads_later(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, SHIFT, 18);
    opal_crypt_epochs_t *epochs = &ends.a->out;
    opal_crypt_hold_t holds[2], one;
    bool multiple = false;

    opal_crypt_threads(&multiple);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_epoch_hold(epochs, 0, &one));
    opal_crypt_epoch_release(epochs, &one, true);
    for (int i = 0; i < 2; ++i) {
        multiple = 1 == i;
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_epoch_hold(epochs, 0, &holds[i]) && NULL != holds[i].seat);
    }
    UNIT_CHECK(2 == (holds[0].seat->word & 0x7fff));
    opal_crypt_epoch_release(epochs, &holds[0], true);
    multiple = false;
    opal_crypt_epoch_release(epochs, &holds[1], true);
    UNIT_CHECK(0 == (epochs->seats[0].word & 0x7fff) && seated(epochs, 0));
    opal_crypt_threads(NULL);
    ends_free(&ends);
}

/* A rest leaves what is held, and the next message goes on where the last one was. */
static void rest(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, SHIFT, 19);
    opal_crypt_epochs_t *in = &ends.b->in;
    opal_crypt_hold_t hold;
    frame_t frame;

    for (int i = 0; i < 3 << SHIFT; ++i) {
        seal(ends.a, &frame);
        UNIT_CHECK(OPAL_CRYPT_OK == open_frame(ends.b, &frame));
        if (1 == i % (1 << SHIFT)) {
            const uint64_t number = (uint64_t) i >> SHIFT;

            UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_epoch_hold(in, number, &hold) && NULL != hold.seat);
            opal_crypt_session_rest(ends.b);
            for (int s = 0; s < OPAL_CRYPT_EPOCH_SEATS; ++s) {
                UNIT_CHECK((hold.seat == &in->seats[s]) == (NULL != in->seats[s].epoch)
                           && (NULL == in->seats[s].epoch) == (0 == in->seats[s].word));
            }
            UNIT_CHECK(number == hold.epoch->number && !all_zero(hold.epoch->iv, 12));
            opal_crypt_epoch_release(in, &hold, true);
        }
        if (2 == i % (1 << SHIFT)) {
            opal_crypt_session_rest(ends.a);
            opal_crypt_session_rest(ends.b);
            for (int s = 0; s < OPAL_CRYPT_EPOCH_SEATS; ++s) {
                UNIT_CHECK(0 == in->seats[s].word && NULL == ends.a->out.seats[s].epoch);
            }
        }
    }
    ends_free(&ends);
}

int main(void)
{
    static const bool no = false;

    for (int alone = 0; alone < 2; ++alone) {
        opal_crypt_record_forget();                 /* the same keys again */
        opal_crypt_threads(1 == alone ? &no : NULL);
        UNIT_GROUP(1 == alone ? "one thread, as declared" : "any number of threads");
        UNIT_GROUP("1,500 epochs of direct messages");
        many_epochs();
        UNIT_GROUP("200 epochs of chopped messages");
        chopped_epochs();
        UNIT_GROUP("forged epochs change nothing");
        forged_epochs();
        UNIT_GROUP("late messages");
        late_messages();
        UNIT_GROUP("all seats held");
        all_seats_held();
        UNIT_GROUP("a rest");
        rest();
    }
    opal_crypt_threads(NULL);
    UNIT_GROUP("a second thread, later");
    several_threads_later();
    UNIT_GROUP("a fork'd child does not seal");
    forked_child();
    UNIT_GROUP("the record of nonces notices a repetition");
    record_notices();
    UNIT_GROUP("an epoch is never longer than 2^20 messages");
    shift_bounds();
    opal_crypt_finalize();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loops that threads share: each turn is taken once, even if helpers are late or missing; and records that are sealed
 * and opened in this way are byte for byte those of one thread.
 */
#include "aead_providers.h"
#include "tls_ends.h"

#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/base/share.h"
#include "opal/mca/common/crypt/tls/records_object.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST    OPAL_CRYPT_TLS_RECORD_PLAIN_MAX
#define WHOLE   OPAL_CRYPT_TLS_RECORD_MAX

static opal_crypt_team_t *team;
static opal_crypt_share_t *sealing, *opening;

static void threads_start(unsigned helpers)
{
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_team_create(helpers, false, &team));
    sealing = opal_crypt_share_create(team, helpers);
    opening = opal_crypt_share_create(team, helpers);
    UNIT_REQUIRE(NULL != sealing && NULL != opening);
}

static void threads_stop(void)
{
    opal_crypt_share_destroy(sealing);
    opal_crypt_share_destroy(opening);
    opal_crypt_team_destroy(team);
}

/* ---- loops ---- */

static unsigned taken[OPAL_CRYPT_SHARE_TURNS_MAX];      /* without atomics: a turn is one thread's */
static unsigned loop_is;

static void count_turn(void *argument, unsigned index)
{
    taken[index] += *(unsigned *) argument == loop_is;
}

static void loops(void)
{
    static const unsigned turns[] = {1, 2, 3, 16, 1000, OPAL_CRYPT_SHARE_TURNS_MAX};
    unsigned number;

    UNIT_GROUP("every turn once, 20,000 loops one behind the other");
    for (unsigned loop = 1; loop <= 20000; loop++) {
        const unsigned count = turns[loop % 4];
        unsigned all = 0;

        memset(taken, 0, count * sizeof(taken[0]));
        number = loop_is = loop;
        opal_crypt_share_run(sealing, count, count_turn, &number);
        for (unsigned i = 0; i < count; i++) {
            all += 1 == taken[i];
        }
        UNIT_CHECK(all == count);
    }
    for (unsigned i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        unsigned all = 0;

        memset(taken, 0, sizeof(taken));
        number = ++loop_is;
        opal_crypt_share_run(opening, turns[i], count_turn, &number);
        for (unsigned j = 0; j < OPAL_CRYPT_SHARE_TURNS_MAX; j++) {
            all += taken[j];
        }
        UNIT_CHECK(all == turns[i] && 1 == taken[turns[i] - 1]);
    }
}

/* A helper that is in a turn is waited for; the caller is in one until another thread has begun. */
static _Atomic unsigned inside;
static _Atomic bool others_came;

static void slow_turn(void *argument, unsigned index)
{
    if (atomic_fetch_add(&inside, 1) > 0) {
        others_came = true;
    }
    while (!others_came) {
        usleep(10);
    }
    ((unsigned *) argument)[index] = 1;
}

static void helped(void)
{
    unsigned done[2] = {0, 0};

    UNIT_GROUP("another thread takes a turn, and is waited for");
    opal_crypt_share_run(sealing, 2, slow_turn, done);
    UNIT_CHECK(1 == done[0] && 1 == done[1]);
}

/* ---- records ---- */

enum { MANY = 40 };
static uint8_t data[MANY * MOST + 77], wire[2][MANY * WHOLE + 4096], back[MANY * MOST + 77];

typedef struct four {
    opal_crypt_tls_records_t *alone, *shared, *reader, *shared_reader;
} four_t;

static opal_crypt_tls_records_t *records_of(const opal_aead_module_t *aead, uint64_t renew, const uint8_t *out, const uint8_t *in)
{
    opal_crypt_tls_records_t *records;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(aead, OPAL_AEAD_AES_256_GCM, renew, out, in, &records));
    return records;
}

static four_t four_make(const opal_aead_module_t *aead, uint64_t renew)
{
    uint8_t secrets[2][48];
    four_t four;

    opal_crypt_random(secrets, sizeof(secrets));
    four.alone = records_of(aead, renew, secrets[0], secrets[1]);
    four.shared = records_of(aead, renew, secrets[0], secrets[1]);
    four.reader = records_of(aead, renew, secrets[1], secrets[0]);
    four.shared_reader = records_of(aead, renew, secrets[1], secrets[0]);
    opal_crypt_tls_records_share(four.shared, sealing, opening);
    opal_crypt_tls_records_share(four.shared_reader, sealing, opening);
    return four;
}

static void four_free(four_t *four)
{
    opal_crypt_tls_records_destroy(four->alone);
    opal_crypt_tls_records_destroy(four->shared);
    opal_crypt_tls_records_destroy(four->reader);
    opal_crypt_tls_records_destroy(four->shared_reader);
}

static void forked(void)
{
    four_t four = four_make(&opal_aead_openssl_module, OPAL_CRYPT_TLS_RECORDS_RENEW);
    unsigned number = loop_is;
    int status = 1;
    pid_t child;

    UNIT_GROUP("a forked child, where there are no helpers");
    fflush(stdout);
    memset(taken, 0, 5 * sizeof(taken[0]));
    child = fork();
    if (0 == child) {
        opal_crypt_share_run(sealing, 5, count_turn, &number);
        opal_crypt_share_destroy(sealing);
        _exit(1 == taken[0] && 1 == taken[4] ? 0 : 1);
    }
    UNIT_CHECK(child > 0 && child == waitpid(child, &status, 0) && 0 == status);
    four_free(&four);
}

/* By runs, and what is in no run one by one. */
static bool open_all(opal_crypt_tls_records_t *records, uint8_t *from, size_t bytes, size_t plain_bytes, unsigned *runs)
{
    size_t at = 0, got = 0, taken_bytes, plain, one;
    opal_crypt_tls_record_kind_t kind;

    memset(back, 0xee, sizeof(back));
    while (at < bytes) {
        if (OPAL_CRYPT_OK != opal_crypt_tls_records_open_run(records, from + at, bytes - at, back + got, plain_bytes - got, &taken_bytes, &plain)) {
            return false;
        }
        *runs += taken_bytes > 0;
        if (0 == taken_bytes) {
            if (OPAL_CRYPT_OK != opal_crypt_tls_records_next(records, from + at, bytes - at, &one)
                || OPAL_CRYPT_OK != opal_crypt_tls_records_open(records, from + at, one, back + got, plain_bytes - got, &plain, &kind)) {
                return false;
            }
            taken_bytes = one;
        }
        at += taken_bytes;
        got += plain;
    }
    return got == plain_bytes && 0 == memcmp(back, data, plain_bytes);
}

static void same(const opal_aead_module_t *aead, uint64_t renew)
{
    static const size_t lengths[] = {1, MOST, 3 * MOST + 1, 4 * MOST, 5 * MOST + 77, MANY * MOST + 77};
    four_t four = four_make(aead, renew);
    unsigned runs = 0, none = 0;

    UNIT_GROUP("%s: the same bytes as from one thread, renewed after %" PRIu64, aead->name, renew);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const size_t n = lengths[i];
        const struct iovec pieces[3] = {{data, n / 3}, {data + n / 3, 0}, {data + n / 3, n - n / 3}};
        size_t one, other;

        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(four.alone, pieces, 3, wire[0], sizeof(wire[0]), &one));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(four.shared, pieces, 3, wire[1], sizeof(wire[1]), &other));
        UNIT_CHECK(one == other && 0 == memcmp(wire[0], wire[1], one));
        UNIT_CHECK(open_all(four.shared_reader, wire[1], one, n, &runs));
        UNIT_CHECK(open_all(four.reader, wire[0], one, n, &none));
    }
    UNIT_CHECK(0 == none && (runs > 0) == (renew > 4));
    four_free(&four);
}

/* Each of the others is where it belongs, or what was there before. */
static bool others_are_whole(unsigned changed_one)
{
    static uint8_t before[MOST];
    bool whole = true;

    memset(before, 0xee, sizeof(before));
    for (size_t i = 0; i < 8; i++) {
        whole = whole && (0 == memcmp(back + i * MOST, before, MOST)
                          || (i != changed_one && 0 == memcmp(back + i * MOST, data + i * MOST, MOST)));
    }
    return whole;
}

/* Whatever is changed in one of many: nothing is written of it, and the connection has ended. */
static void changed(const opal_aead_module_t *aead)
{
    const struct iovec piece = {data, 8 * MOST};

    UNIT_GROUP("%s: a record of a run that was changed, moved, or is of another type", aead->name);
    for (unsigned at = 0; at < 8; at++) {
        for (int how = 0; how < 3; how++) {
            four_t four = four_make(aead, OPAL_CRYPT_TLS_RECORDS_RENEW);
            size_t bytes, taken_bytes, plain;

            UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(four.alone, &piece, 1, wire[0], sizeof(wire[0]), &bytes));
            if (0 == how) {
                wire[0][at * WHOLE + 5 + at * 1000] ^= 4;
            } else if (1 == how) {
                memmove(wire[0] + at * WHOLE, wire[0] + (at + 1) % 8 * WHOLE, WHOLE);
            } else {
                /* as long as a whole record, with an alert inside: a holder of the key can make it */
                uint8_t *record = wire[0] + at * WHOLE;
                opal_crypt_box_t box = {.aead = aead, .key = four.alone->out.key, .id = four.shared->out.id, .bound = record, .bound_bytes = 5};

                memset(record + 5, 0, MOST);
                record[5 + MOST] = 21;
                opal_crypt_nonce_record(four.alone->out.iv, at, box.nonce);
                UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_box_seal(&box, record + 5, MOST + 1, record + 5, record + 5 + MOST + 1));
            }
            memset(back, 0xee, sizeof(back));
            UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_tls_records_open_run(four.shared_reader, wire[0], bytes, back, sizeof(back), &taken_bytes, &plain));
            UNIT_CHECK(0 == taken_bytes && 0 == plain && others_are_whole(at) && 0xee == back[8 * MOST]);
            UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_tls_records_next(four.shared_reader, wire[0], bytes, &taken_bytes));
            four_free(&four);
        }
    }
}

/* Room for whole records only, and no more than there is; a reader's limit. */
static void bounds(void)
{
    const struct iovec piece = {data, 8 * MOST};
    four_t four = four_make(&opal_aead_openssl_module, OPAL_CRYPT_TLS_RECORDS_RENEW);
    size_t bytes, taken_bytes, plain;

    UNIT_GROUP("rooms and limits of a run");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(four.alone, &piece, 1, wire[0], sizeof(wire[0]), &bytes));
    memset(back, 0xee, sizeof(back));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_open_run(four.shared_reader, wire[0], bytes, back, 4 * MOST - 1, &taken_bytes, &plain) && 0 == taken_bytes);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_open_run(four.shared_reader, wire[0], 4 * WHOLE - 1, back, sizeof(back), &taken_bytes, &plain) && 0 == taken_bytes);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_open_run(four.shared_reader, wire[0], bytes, back, 5 * MOST + 3, &taken_bytes, &plain));
    UNIT_CHECK(5 * WHOLE == taken_bytes && 5 * MOST == plain && 0xee == back[5 * MOST] && 0 == memcmp(back, data, plain));
    four.shared_reader->in.sequence = OPAL_CRYPT_TLS_RECORDS_BEAR - 4;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_open_run(four.shared_reader, wire[0], bytes, back, sizeof(back), &taken_bytes, &plain) && 0 == taken_bytes);
    four_free(&four);
}

int main(void)
{
    providers_init();
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t) (i * 7 + i / 251);
    }
    for (unsigned helpers = 1; helpers <= 7; helpers += 3) {
        threads_start(helpers);
        loops();
        helped();
        forked();
        for (int i = 0; i < provider_count; i++) {
            same(providers[i]->module, OPAL_CRYPT_TLS_RECORDS_RENEW);
            same(providers[i]->module, 7);
            same(providers[i]->module, 3);
            changed(providers[i]->module);
        }
        bounds();
        threads_stop();
    }
    providers_fini();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An attacker between coll/cryptag and the network: sealed messages of
 * collectives pass through a host PML of ours, which changes one of them.
 *
 *     forger operation=N algorithm=N [bytes=64] [abort=KIND]
 *
 * Run with crypt_on_auth_failure=error, every rank must get our error class,
 * and zeros in its buffer; the next call must be right, and no request may stay
 * behind.  With abort=KIND only that attack is made and the job must not survive
 * it.
 */
#include "ompi_config.h"

#include "mt.h"
#include "cryptag.h"

#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/pml/pml.h"

enum { FLIP_COUNTER, FLIP_CIPHERTEXT, FLIP_TAG, ZERO, SHORTEN, LENGTHEN, REPLAY, SWITCH, KINDS };
static const char *const kind_name[KINDS] = { "counter", "ciphertext", "tag", "zeros", "shorter", "longer",
                                              "replay", "switch" };
enum { OVERHEAD = 24, ROOM = 512 };

typedef struct {
    uint8_t *bytes;
    size_t count;
    int peer;
} message_t;

/* The sealed messages of this call and of the one before. */
static message_t now[ROOM], last[ROOM];
static int now_count, last_count;

static int armed_kind = -1, armed_at;           /* change the armed_at-th message of this call */
static bool fired;
static mca_pml_base_module_t forged;
static const mca_pml_base_module_t *host;

/* ---- the attacks ---- */

static const message_t *another(const message_t *message, int to_be_found)
{
    const message_t *list = REPLAY == to_be_found ? last : now;
    const int count = REPLAY == to_be_found ? last_count : armed_at;

    for (int i = 0; i < count; i++) {
        if (list[i].count == message->count && 0 != memcmp(list[i].bytes, message->bytes, message->count)
            && (SWITCH == to_be_found || list[i].peer == message->peer)) {
            return &list[i];
        }
    }
    return NULL;
}

/* Changes a copy; returns how many bytes of it are to be sent, 0: nothing to attack. */
static size_t attack(int kind, const message_t *message, uint8_t *copy)
{
    const message_t *other = REPLAY == kind || SWITCH == kind ? another(message, kind) : NULL;

    switch (kind) {
    case FLIP_COUNTER:
        copy[7] ^= 1;
        return message->count;
    case FLIP_CIPHERTEXT:
        copy[8] ^= 0x80;
        return message->count;
    case FLIP_TAG:
        copy[message->count - 1] ^= 1;
        return message->count;
    case ZERO:
        memset(copy, 0, message->count);
        return message->count;
    case SHORTEN:
        return message->count - 1;
    case LENGTHEN:
        /* ob1 itself writes past the end of a receive for what it does not send eagerly */
        return message->count < 4000 ? message->count + 1 : 0;
    default:
        if (NULL != other) {
            memcpy(copy, other->bytes, message->count);
        }
        return NULL != other ? message->count : 0;
    }
}

static int forging_isend(const void *buffer, size_t count, ompi_datatype_t *type, int peer, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    message_t *message = &now[now_count];
    /* sent from here, so that it outlives the call; the program is short */
    uint8_t *copy = malloc(count + 1);

    MT_CHECK(now_count < ROOM && NULL != copy && count >= OVERHEAD, "a sealed message of %zu bytes", count);
    *message = (message_t) { malloc(count), count, peer };
    MT_CHECK(NULL != message->bytes, "memory");
    memcpy(message->bytes, buffer, count);
    memcpy(copy, buffer, count);
    copy[count] = 0;
    if (armed_kind >= 0 && now_count == armed_at) {
        size_t changed = attack(armed_kind, message, copy);

        fired = 0 != changed;
        count = fired ? changed : count;
    }
    now_count++;
    return host->pml_isend(copy, count, type, peer, tag, mode, comm, request);
}

static void next_call(void)
{
    for (int i = 0; i < last_count; i++) {
        free(last[i].bytes);
    }
    memcpy(last, now, sizeof(last));
    last_count = now_count;
    now_count = 0;
    fired = false;
}

static void take_over(void)
{
    host = ompi_common_cryptmpi_host();
    MT_CHECK(NULL != host, "pml/crypt is not in use");
    forged = *host;
    forged.pml_isend = forging_isend;
    ompi_common_cryptmpi_set_host(&forged, ompi_common_cryptmpi_host_name());
}

/* ---- the collectives ---- */

static int operation;
static size_t bytes;
static mt_buf_t in, out;

/* `bytes` from everybody to everybody; alltoall: a different block for each. */
static int call_it(int round)
{
    mt_buf_poison(&in);
    next_call();
    for (int i = 0; i < mt_size; i++) {
        mt_fill(out.p + (size_t) i * bytes, bytes, mt_key(round, mt_rank, 2 == operation ? i : 0, 0));
    }
    switch (operation) {
    case 0:
        return MPI_Allgather(out.p, (int) bytes, MPI_BYTE, in.p, (int) bytes, MPI_BYTE, MPI_COMM_WORLD);
    case 1:
        memcpy(in.p, out.p, bytes);
        return MPI_Bcast(in.p, (int) bytes, MPI_BYTE, mt_size - 1, MPI_COMM_WORLD);
    default:
        return MPI_Alltoall(out.p, (int) bytes, MPI_BYTE, in.p, (int) bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
}

static void check_right(int round)
{
    const int blocks = 1 == operation ? 1 : mt_size;

    for (int i = 0; i < blocks; i++) {
        const int from = 1 == operation ? mt_size - 1 : i;

        MT_SAME(in.p + (size_t) i * bytes, bytes, mt_key(round, from, 2 == operation ? mt_rank : 0, 0), "received");
    }
}

/* The root of a broadcast received nothing: it keeps what it sent. */
static void check_wiped(void)
{
    const size_t received = 1 == operation ? bytes : bytes * (size_t) mt_size;

    for (size_t i = 0; i < received && (1 != operation || mt_rank != mt_size - 1); i++) {
        MT_CHECK(0 == in.p[i], "byte %zu of %zu is not wiped", i, received);
    }
}

static void check_class(int rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class;

    MPI_Error_string(rc, text, &length);
    MT_CHECK(NULL != strstr(text, "MPI_ERR_CRYPT"), "returned %d: %s", rc, text);
    MT_MPI(MPI_Error_class(rc, &class));
    MPI_Error_string(class, text, &length);
    MT_CHECK(rc != class && NULL != strstr(text, "MPI_ERR_CRYPT"), "returned %d of class %d: %s", rc, class, text);
}

static bool anywhere(bool here)
{
    int value = here;

    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    return value;
}

/* Attack message `at` of `attacker`; false when there was nothing to attack. */
static bool make_attack(int kind, int attacker, int at, int round)
{
    bool done;
    int rc;

    armed_kind = mt_rank == attacker ? kind : -1;
    armed_at = at;
    rc = call_it(round);
    armed_kind = -1;
    done = anywhere(fired);
    if (done) {
        check_class(rc);
        check_wiped();
    } else {
        MT_CHECK(MPI_SUCCESS == rc, "an error without an attack");
        check_right(round);
    }
    return done;
}

/* First and last sealed message of each rank that sends any. */
static void all_attacks(int counts[])
{
    int done[KINDS] = { 0 }, round = 1;

    for (int attacker = 0; attacker < mt_size; attacker++) {
        for (int i = 0; i < 2 && i < counts[attacker]; i++) {
            for (int kind = 0; kind < KINDS; kind++) {
                done[kind] += make_attack(kind, attacker, 0 == i ? 0 : counts[attacker] - 1, round++);
                MT_MPI(call_it(round));
                check_right(round++);
            }
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        MT_CHECK(done[kind] > 0 || LENGTHEN == kind || SWITCH == kind, "no %s was attacked", kind_name[kind]);
        if (0 == mt_rank && done[kind] > 0) {
            printf("%s %d, ", kind_name[kind], done[kind]);
        }
    }
}

static int held(void)
{
    return ((opal_object_t *) MPI_COMM_WORLD)->obj_reference_count;
}

/* A request that is not given back holds its communicator.  The network may need
 * a moment for the last ones. */
static void check_given_back(int before)
{
    const double start = MPI_Wtime();

    for (int found; held() > before && MPI_Wtime() < start + 20;) {
        MT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
    }
    MT_CHECK(held() <= before, "requests hold the communicator %d times", held() - before);
}

int main(int argc, char **argv)
{
    static const char *const operation_name[] = { "allgather", "bcast", "alltoall" };
    int counts[MAP_RANKS];
    char parameter[64];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    operation = (int) mt_arg("operation", 0);
    bytes = (size_t) mt_arg("bytes", 64);
    mt_buf_new(&in, bytes * (size_t) mt_size);
    mt_buf_new(&out, bytes * (size_t) mt_size);
    snprintf(parameter, sizeof(parameter), "%s_algorithm", operation_name[operation]);
    cryptag_set(parameter, (int) mt_arg("algorithm", 0));
    MT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    take_over();

    /* twice: the first call sets up, and there must be one to replay */
    for (int round = 0; round < 2; round++) {
        MT_MPI(call_it(round));
        check_right(round);
    }
    cryptag_set(parameter, 0);
    const int mine = now_count, before = held();
    ompi_common_cryptmpi_set_host(host, ompi_common_cryptmpi_host_name());
    MT_MPI(MPI_Allgather(&mine, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD));
    ompi_common_cryptmpi_set_host(&forged, ompi_common_cryptmpi_host_name());
    cryptag_set(parameter, (int) mt_arg("algorithm", 0));

    if (mt_arg("abort", -1) >= 0) {
        int attacker = 0;

        while (0 == counts[attacker]) {
            attacker++;
        }
        armed_kind = attacker == mt_rank ? (int) mt_arg("abort", -1) : -1;
        MT_MPI(call_it(2));
        printf("the call returned at rank %d\n", mt_rank);
    } else {
        all_attacks(counts);
        check_given_back(before);
    }
    ompi_common_cryptmpi_set_host(host, ompi_common_cryptmpi_host_name());
    mt_group("%s, algorithm %ld, %zu bytes", operation_name[operation], mt_arg("algorithm", 0), bytes);
    cryptag_stop();
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A third member of a communicator, on a third node, is given what two others sent
 * each other in an all-to-all, and tries to open it with all that it has: it must not be
 * able to.  What is meant for all, in an all-gather, it opens: so it tries rightly.
 *
 *     third
 *
 * Three nodes with two ranks each.
 */
#include "ompi_config.h"

#include "mt.h"
#include "cryptag.h"

#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/pml/pml.h"

enum { RANKS = 6, BYTES = 40, ROOM = 64, LONGEST = 1024 };
enum { ALLGATHER = 1, ALLTOALL = 3 };                   /* as they stand in the AAD */
enum { NAIVE = 1, NODE = 2, ROWS = 4 };

typedef struct {
    uint8_t bytes[LONGEST];
    int count, peer, origin;
} message_t;

static mca_pml_base_module_t spying;
static const mca_pml_base_module_t *host;
static MPI_Comm comm;
static message_t sent[ROOM];
static int sent_count;

static int spying_isend(const void *buffer, size_t count, ompi_datatype_t *type, int peer, int tag,
                        mca_pml_base_send_mode_t mode, ompi_communicator_t *where, ompi_request_t **request)
{
    if (where == comm) {
        message_t *message = &sent[sent_count++];

        MT_CHECK(sent_count <= ROOM && count <= LONGEST, "a message of %zu bytes", count);
        memcpy(message->bytes, buffer, count);
        message->count = (int) count;
        message->peer = peer;
        message->origin = mt_rank;
    }
    return host->pml_isend(buffer, count, type, peer, tag, mode, where, request);
}

static int node_of(int rank) { return rank / 2; }

/* The piece at `sealed`, of n bytes, as one from `origin` for any destination. */
static int opened(uint64_t sequence, int operation, int algorithm, int origin, const uint8_t *sealed, size_t n)
{
    static const uint32_t to[] = { 0, 1, 2, 3, 4, 5, OPAL_CRYPT_TO_ALL };
    opal_crypt_group_t *group;
    uint8_t plain[LONGEST];
    int count = 0;

    MT_CHECK(OMPI_SUCCESS == ompi_common_cryptmpi_group(comm, &group) && NULL != group, "no group");
    for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
        const opal_crypt_piece_t piece = { .sequence = sequence, .operation = (uint8_t) operation,
                                                  .algorithm = (uint8_t) algorithm, .origin = (uint32_t) origin,
                                                  .destination = to[i], .count = 1, .plain_bytes = n };
        count += OPAL_CRYPT_OK == opal_crypt_piece_open(group, &piece, sealed, plain);
    }
    return count;
}

/* What every rank sent, given to the first rank of a node that it did not come from and
 * does not go to; returns how many pieces were opened there, of how many. */
static int eavesdrop(uint64_t sequence, int operation, int algorithm, size_t each, int *tried)
{
    int result[2] = { 0, 0 }, sum[2], counts[RANKS];

    MT_MPI(MPI_Allgather(&sent_count, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD));
    for (int from = 0; from < RANKS; from++) {
        for (int i = 0; i < counts[from]; i++) {
            message_t message = sent[i];

            MT_MPI(MPI_Bcast(&message, sizeof(message), MPI_BYTE, from, MPI_COMM_WORLD));
            if (node_of(mt_rank) == node_of(from) || node_of(mt_rank) == node_of(message.peer) || 0 != mt_rank % 2) {
                continue;
            }
            for (size_t at = 0; at + each + OPAL_CRYPT_PIECE_OVERHEAD <= (size_t) message.count;
                 at += each + OPAL_CRYPT_PIECE_OVERHEAD, result[1]++) {
                result[0] += opened(sequence, operation, algorithm, from, message.bytes + at, each);
            }
        }
    }
    MT_MPI(MPI_Allreduce(result, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    *tried = sum[1];
    return sum[0];
}

/* The sequence-th sealed collective of the communicator. */
static int call_it(uint64_t sequence, int algorithm, int *tried)
{
    uint8_t out[RANKS * BYTES], in[RANKS * BYTES];
    const bool gather = NAIVE == algorithm;

    for (int i = 0; i < RANKS; i++) {
        mt_fill(out + i * BYTES, BYTES, mt_key((int) sequence, mt_rank, gather ? 0 : i, 0));
    }
    cryptag_set(gather ? "allgather_algorithm" : "alltoall_algorithm", algorithm);
    sent_count = 0;
    if (gather) {
        MT_MPI(MPI_Allgather(out, BYTES, MPI_BYTE, in, BYTES, MPI_BYTE, comm));
    } else {
        MT_MPI(MPI_Alltoall(out, BYTES, MPI_BYTE, in, BYTES, MPI_BYTE, comm));
    }
    cryptag_set(gather ? "allgather_algorithm" : "alltoall_algorithm", 0);
    for (int i = 0; i < RANKS; i++) {
        MT_SAME(in + i * BYTES, BYTES, mt_key((int) sequence, i, gather ? 0 : mt_rank, 0), "received");
    }
    return eavesdrop(sequence, gather ? ALLGATHER : ALLTOALL, algorithm, NODE == algorithm ? 4 * BYTES : BYTES, tried);
}

int main(int argc, char **argv)
{
    int by_all, by_node, by_rows, tried[3];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    MT_CHECK(RANKS == mt_size, "%d ranks", mt_size);
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    host = ompi_common_cryptmpi_host();
    MT_CHECK(NULL != host, "pml/crypt is not in use");
    spying = *host;
    spying.pml_isend = spying_isend;
    ompi_common_cryptmpi_set_host(&spying, ompi_common_cryptmpi_host_name());
    by_all = call_it(0, NAIVE, &tried[0]);
    by_node = call_it(1, NODE, &tried[1]);
    by_rows = call_it(2, ROWS, &tried[2]);
    ompi_common_cryptmpi_set_host(host, ompi_common_cryptmpi_host_name());
    MT_CHECK(by_all > 0, "what is for all was not opened, so nothing was tried");
    MT_CHECK(0 == by_node && 0 == by_rows, "a third member opened %d of %d pieces by node, %d of %d by rows", by_node,
             tried[1], by_rows, tried[2]);
    MT_CHECK(6 == tried[1] && 24 == tried[2], "%d and %d pieces were tried", tried[1], tried[2]);
    mt_group("for all: %d of %d opened; by node and by rows: none of %d", by_all, tried[0], tried[1] + tried[2]);
    MT_MPI(MPI_Comm_free(&comm));
    cryptag_stop();
    return mt_end();
}

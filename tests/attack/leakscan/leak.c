/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * leak CANARY TRAIN LABEL GROUP... [largest=BYTES] [many] [DIRECTORY for io]
 *
 * See leak.h; leakscan.sh runs it and leakscan.py reads the captures.
 */
#include "leak.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

size_t leak_n;
int leak_root;
MPI_Comm leak_comm;
unsigned char *leak_block, *leak_out, *leak_in;

static unsigned char canary[LEAK_CANARY], train[LEAK_TRAIN];
static const char *label;

/* ---- markers ---- */

static int marker_socket = -1;      /* only where a node's first rank runs */

static void marker_open(void)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found;
    char hosts[64][MPI_MAX_PROCESSOR_NAME], mine[MPI_MAX_PROCESSOR_NAME] = "";
    int length, other = -1;
    MT_CHECK(mt_size <= 64, "%d ranks", mt_size);
    MT_MPI(MPI_Get_processor_name(mine, &length));
    MT_MPI(MPI_Allgather(mine, sizeof(mine), MPI_CHAR, hosts, sizeof(mine), MPI_CHAR, MPI_COMM_WORLD));
    for (int i = mt_size - 1; i >= 0; i--) {
        if (mt_remote(i)) {
            other = i;
        } else if (i < mt_rank) {
            return;
        }
    }
    MT_CHECK(other >= 0, "one node only");
    MT_CHECK(0 == getaddrinfo(hosts[other], "9", &hints, &found), "no address of %s", hosts[other]);
    marker_socket = socket(AF_INET, SOCK_DGRAM, 0);
    MT_CHECK(0 == connect(marker_socket, found->ai_addr, found->ai_addrlen), "connect");
    freeaddrinfo(found);
}

/* Everything before was received when the first barrier is over. */
static void mark(MPI_Comm step, const char *group, const leak_op_t *op)
{
    char text[256];
    MT_MPI(MPI_Barrier(step));
    if (marker_socket >= 0) {
        int n = NULL == op ? snprintf(text, sizeof(text), "leakscan end")
                           : snprintf(text, sizeof(text), "leakscan %s|%s|%s|%zu|%s", label, group, op->name, leak_n,
                                      op->bare ? "bare" : "payload");
        /* A refusal of the packet before comes back here; nobody listens. */
        while (n != send(marker_socket, text, (size_t) n, 0)) {
        }
    }
    MT_MPI(MPI_Barrier(step));
}

/* ---- payload ---- */

static size_t room;

static void payload_new(size_t largest)
{
    room = largest * (size_t) mt_size + LEAK_LINE;
    leak_block = malloc(largest + LEAK_LINE);
    leak_out = malloc(room);
    leak_in = malloc(room);
    MT_CHECK(NULL != leak_block && NULL != leak_out && NULL != leak_in, "memory");
}

static bool by_train(const leak_op_t *op)
{
    return leak_n < (op->splits ? LEAK_CANARY : LEAK_CANARY_LEAST);
}

static void payload(const leak_op_t *op, int i)
{
    size_t all = leak_n * (size_t) mt_size;
    if (by_train(op)) {
        memset(leak_block, train[i % LEAK_TRAIN], leak_n);
    } else if (leak_n < LEAK_CANARY) {
        memcpy(leak_block, canary, leak_n);
    } else {
        mt_fill(leak_block, leak_n, mt_key(1, 0, 0, 0));
        for (size_t at = 0; at + LEAK_CANARY <= leak_n; at += LEAK_LINE) {
            memcpy(leak_block + at, canary, LEAK_CANARY);
        }
    }
    for (int b = 0; b < mt_size; b++) {
        memcpy(leak_out + (size_t) b * leak_n, leak_block, leak_n);
    }
    memset(leak_in, 0, all);
}

/* ---- running ---- */

static const size_t sizes[] = {1, 7, 16, 1000, 65535, 65536, 65537, 4194304};
static const size_t more_sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 255, 1000, 4095, 4096, 4097, 16384, 32767,
                                    32768, 32769, 65535, 65536, 65537, 106400, 262144, 1048576, 4194303, 4194304};

static bool wanted(const leak_op_t *op, size_t n, size_t largest)
{
    if (op->bare && 0 == op->most) {
        return n == sizes[0];
    }
    if (op->splits && n >= LEAK_CANARY && n < (size_t) mt_size * LEAK_LINE) {
        return false;                   /* no piece need hold a whole canary */
    }
    return n >= op->least && n <= largest && (0 == op->most || n <= op->most);
}

void leak_run(const char *group, const leak_op_t *ops, int count, size_t largest, MPI_Comm step)
{
    bool many = mt_flag("many");
    int all = many ? LEAK_COUNT(more_sizes) : LEAK_COUNT(sizes);
    for (const leak_op_t *op = ops; op < ops + count; op++) {
        for (int s = 0; s < all; s++) {
            leak_n = many ? more_sizes[s] : sizes[s];
            if (!wanted(op, leak_n, largest)) {
                continue;
            }
            mark(step, group, op);
            for (int turn = 0; turn < (op->rooted ? 2 : 1); turn++) {
                leak_root = turn;
                for (int i = 0; i < (by_train(op) ? LEAK_TRAIN * LEAK_TRAINS : 1); i++) {
                    payload(op, i);
                    op->run(op);
                }
            }
        }
    }
    mark(step, group, NULL);
}

int leak_partner(MPI_Comm comm)
{
    int rank, size;
    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(MPI_Comm_size(comm, &size));
    return (rank + size / 2) % size;
}

/* ---- the program ---- */

static void from_hex(const char *hex, unsigned char *bytes, size_t n)
{
    MT_CHECK(strlen(hex) == 2 * n, "\"%s\" is not %zu bytes in hex", hex, n);
    for (size_t i = 0; i < n; i++) {
        unsigned value;
        MT_CHECK(1 == sscanf(hex + 2 * i, "%2x", &value), "\"%s\" is not hex", hex);
        bytes[i] = (unsigned char) value;
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    size_t largest;
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc > 4, "leak CANARY TRAIN LABEL GROUP...");
    from_hex(argv[1], canary, sizeof(canary));
    from_hex(argv[2], train, sizeof(train));
    label = argv[3];
    largest = (size_t) mt_arg("largest", 4194304);
    leak_comm = MPI_COMM_WORLD;
    payload_new(largest);
    MT_MPI(MPI_Comm_get_parent(&parent));
    if (MPI_COMM_NULL != parent) {
        leak_spawned(largest, parent);
        return mt_end();
    }
    marker_open();
    mt_flag("p2p") ? leak_p2p(largest) : (void) 0;
    mt_flag("coll") ? leak_coll(largest) : (void) 0;
    mt_flag("neighbor") ? leak_neighbor(largest) : (void) 0;
    mt_flag("inter") ? leak_inter(largest) : (void) 0;
    mt_flag("rma") ? leak_rma(largest) : (void) 0;
    mt_flag("io") ? leak_io(largest, argv[argc - 1]) : (void) 0;
    mt_flag("comms") ? leak_comms() : (void) 0;
    mt_flag("dynamic") ? leak_dynamic(largest, argv[0], argv + 1) : (void) 0;
    return mt_end();
}

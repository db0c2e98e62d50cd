/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What leakscan watches: every communicating operation of MPI, one at a time,
 * with payload that can be found again in a capture.
 *
 *   16 bytes and more   every 64 bytes begin with the 16 bytes of the canary
 *   7 to 15 bytes       as many bytes of the canary as there is room for
 *   fewer               LEAK_TRAIN messages in a row; the i-th carries the i-th
 *                       byte of the train, over and over; and that LEAK_TRAINS
 *                       times, because messages of the other direction's
 *                       operations stand between them as it comes.  So also up
 *                       to 15 bytes where a block may be cut into pieces
 *
 * Canary and train are random and given in hex on the command line, so that
 * what the launcher carries does not contain them.  Before and after each
 * operation a UDP packet to port 9 leaves every node, and names it: what is
 * captured between two of them belongs to that operation.
 */
#ifndef TESTS_ATTACK_LEAK_H
#define TESTS_ATTACK_LEAK_H

#include "mt.h"

enum { LEAK_TRAIN = 32, LEAK_TRAINS = 8, LEAK_CANARY = 16, LEAK_CANARY_LEAST = 7, LEAK_LINE = 64 };

typedef struct leak_op leak_op_t;
struct leak_op {
    const char *name;
    void (*run)(const leak_op_t *op);
    int how, with;          /* for run() */
    size_t least, most;     /* bytes of a block; most 0: as large as the group goes */
    bool bare;              /* nothing of the user's payload is on the wire */
    bool rooted;            /* again with the last rank as root */
    bool splits;            /* does not carry a block whole: maybe as many pieces as there are ranks */
};

extern size_t leak_n;               /* bytes of a block */
extern int leak_root;
extern MPI_Comm leak_comm;          /* what the operations use; the world by default */
extern unsigned char *leak_block;   /* what every block looks like */
extern unsigned char *leak_out;     /* as many blocks as there are ranks, all the same */
extern unsigned char *leak_in;      /* as much room, zero */

/* `blocks` blocks are there. */
#define LEAK_SAME(p, blocks) \
    do { MT_AT(); for (int b_ = 0; b_ < (blocks); b_++) { \
        MT_CHECK(0 == memcmp((p) + (size_t) b_ * leak_n, leak_block, leak_n), "%s: wrong bytes in block %d", op->name, b_); \
    } } while (0)

#define LEAK_COUNT(a) ((int) (sizeof(a) / sizeof(*(a))))

/* All sizes of all operations, marked, in step with everybody in `step`. */
void leak_run(const char *group, const leak_op_t *ops, int count, size_t largest, MPI_Comm step);

/* The same rank number in the other half of the communicator. */
int leak_partner(MPI_Comm comm);

void leak_p2p(size_t largest);
void leak_coll(size_t largest);
void leak_neighbor(size_t largest);
void leak_inter(size_t largest);
void leak_rma(size_t largest);
void leak_io(size_t largest, const char *directory);
void leak_comms(void);
void leak_dynamic(size_t largest, char *program, char **arguments);
void leak_spawned(size_t largest, MPI_Comm parent);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A step of the state machine's: what ranks 1 to 3 send to rank 0, how it receives, and
 * what attackers (pml/tamper) do to frames meanwhile.  As text, which is what the
 * corpus holds and a failure prints:
 *
 *     step
 *     send FROM COMM TAG BYTES MODE
 *     recv WAY COMM SOURCE TAG ROOM LAYOUT     SOURCE, TAG: a number, or *
 *     attack RANK KIND NTH COUNT ACTION ...    as in pml_tamper.h, without CELL
 *     release before|after|never               when what was kept back arrives
 *     end
 *
 * ROOM is in bytes, or "probed": as many as the probe said.  LAYOUT: flat, or gaps.
 */
#ifndef TESTS_ATTACK_MACHINE_H
#define TESTS_ATTACK_MACHINE_H

#include "mt.h"

enum { RANKS = 4, COMMS = 2, SENDS = 8, RECEIVES = 6, EXPECTED = SENDS + SENDS * RECEIVES, THREADS = 8,
       LAST_TAG = 77, PLAN = 200, TEXT = 4096 };
enum { CHOP_MIN = 4096, CHUNK = 20000 };        /* machine.sh sets pml/crypt to these */
enum { PIECE = 3, STRIDE = 5 };                 /* LAYOUT gaps: 3 bytes of every 5 */
#define PROBED ((size_t) -1)

typedef enum { ISEND, ISSEND, START, MODES } how_sent_t;
typedef enum { RECV, IRECV, TEST, PROBE, IPROBE, MPROBE, IMPROBE, PERSISTENT, SENDRECV, CANCEL, WAYS } way_t;
typedef enum { NEVER, BEFORE, AFTER, RELEASES } release_t;

typedef struct send {
    int from, comm, tag, mode;
    size_t bytes;
} send_t;

typedef struct receive {
    int way, comm, source, tag;
    size_t room;
    bool gaps;
} receive_t;

typedef struct step {
    int sends_count, receives_count, release;
    send_t sends[SENDS];
    receive_t receives[RECEIVES];
    char plans[RANKS][PLAN];    /* "": no attacker there */
} step_t;

/* ---- machine_script.c ---- */
void step_print(const step_t *step, char text[TEXT]);
/* The next step of a file; false at its end.  A line that is not understood is fatal. */
bool step_read(FILE *file, step_t *step);
bool way_probes(int way);

/* ---- machine_draw.c: the same on every machine ---- */
void step_draw(step_t *step, uint64_t seed, long number, bool ucx);

/* ---- machine_check.c: what a receive may end in ---- */

/* A message that may arrive in a step: one of step->sends, or one that nobody touches. */
typedef struct expected {
    int from, comm, tag;
    size_t bytes;
    uint64_t key;
    bool touched, seen;
} expected_t;

typedef struct landing {        /* a buffer, and what the call said of it */
    receive_t how;
    size_t room;
    unsigned char *base, *at;
    MPI_Datatype type;
    int count, rc;
    bool done, cancelled, probed;
    size_t probed_bytes;
    MPI_Request request;
    MPI_Status status;
} landing_t;

void landing_open(landing_t *landing, const receive_t *how, size_t room);
void landing_close(landing_t *landing);

/* All that may arrive: the same list at every rank. */
int expect(const step_t *step, long number, expected_t **list);
/* NULL, or what is wrong.  Marks what arrived; counts into `tally`. */
typedef struct tally { long exact, cut, refused, cancelled; } tally_t;
const char *check(landing_t *landing, expected_t *list, int count, bool in_order, int weak[], tally_t *tally);
/* Every message that nobody touched arrived, once. */
const char *check_all(const expected_t *list, int count, const int weak[]);

/* ---- machine_send.c ---- */
extern MPI_Comm control, targets[COMMS];        /* nobody touches `control` */
void plan_open(void);
bool sends(const step_t *step, int rank);
/* Everything of this rank's, then, when rank 0 asks for it, the last message on LAST_TAG. */
void send_all(const step_t *step, const expected_t *list, int count, MPI_Request *requests, void **buffers);
/* What rank 0 has `seen` ends here, too; the others are looked at again in later steps. */
void send_end(const expected_t *list, int count, MPI_Request *requests, void **buffers, const unsigned char *seen);
void send_forget(void);

/* ---- machine_receive.c ---- */
void receive_all(const step_t *step, int threads, landing_t *landings);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How two processes replace a connection by a new one: docs/transport-format.rst, "Frames", last.  model.sh runs it: as it
 * is, when nothing may be found, and with each of the errors below, when something must be.
 *
 * Each end sends MESSAGES frames of two records.  What is sealed lies in its ring until the socket takes it.  At any
 * moment an end may want another connection, or both may, up to CONNECTIONS of them.  Who has ended one connection asks for the
 * next; an end that still has the old one declines, and is asked again.  How a connection is made is in meet.pml.
 */
#define MESSAGES        3
#define CONNECTIONS     4
#define RING            4
#define SOCKET          2

#define PARTS           (2 * MESSAGES)
#define LAST            20
#define CLOSE           21
#define NONE            CONNECTIONS

chan ring[2] = [RING] of { byte };
chan wire[8] = [SOCKET] of { byte };    /* of connection c, from end e: 2 c + e */
byte link[2], made;
byte sealed[2], got[2];                 /* parts; got: by the other end */
bool wants[2], last_sent[2], last_came[2], closed_came[2];

#define other                   (1 - me)
#define within(e)               (sealed[e] % 2 == 1)

#ifdef ANSWER_WITHIN            /* error: last comes within a frame */
#define last_is_due             (!last_sent[me] && (wants[me] || last_came[me]))
#else
#define last_is_due             (!last_sent[me] && (wants[me] || last_came[me]) && !within(me))
#endif

#ifdef AFTER_LAST               /* error: an end that has said so goes on */
#define may_seal                (!last_is_due)
#else
#define may_seal                (!last_sent[me] && !last_is_due)
#endif

#if defined(CLOSED_AT_ONCE)     /* error: the old connection is left before the other end has answered */
#define is_over                 (last_sent[me] && empty(ring[me]))
#elif defined(RING_LOST)        /* error: it is left before the ring was written */
#define is_over                 (last_sent[me] && closed_came[me])
#else
#define is_over                 (last_sent[me] && closed_came[me] && empty(ring[me]))
#endif

inline say_last() {
    ring[me] ! LAST;
#ifndef NO_CLOSE                /* error: close_notify does not follow */
    ring[me] ! CLOSE;
#endif
    last_sent[me] = true
}

inline take(x) {
    if
    :: x == LAST ->
        assert(!last_came[me] && got[other] % 2 == 0);
        last_came[me] = true;
#ifdef NO_ANSWER                /* error: the other end ends without an answer */
        last_sent[me] = true
#endif
    :: x == CLOSE ->
        assert(last_came[me] && !closed_came[me]);
        closed_came[me] = true
    :: else ->
        assert(!last_came[me] && x == got[other]);      /* this one, now, and once */
        got[other]++
    fi
}

inline leave() {
    do
    :: ring[me] ? _
    :: empty(ring[me]) -> break
    od;
    link[me] = NONE;
    wants[me] = false; last_sent[me] = false; last_came[me] = false; closed_came[me] = false
}

proctype end_of(byte me) {
    byte x;

end_idle:
    do
    :: atomic { link[me] != NONE && may_seal && sealed[me] < PARTS && nfull(ring[me]) -> ring[me] ! sealed[me]; sealed[me]++ }
    :: atomic { link[me] != NONE && !last_sent[me] && !wants[me] && made < CONNECTIONS -> wants[me] = true }
    :: atomic { link[me] != NONE && last_is_due && len(ring[me]) <= RING - 2 -> say_last() }
    :: atomic { link[me] != NONE && nempty(ring[me]) && nfull(wire[2 * link[me] + me]) -> ring[me] ? x;
                wire[2 * link[me] + me] ! x; x = 0 }
    :: atomic { link[me] != NONE && nempty(wire[2 * link[me] + other]) -> wire[2 * link[me] + other] ? x; take(x); x = 0 }
    :: atomic { link[me] != NONE && is_over -> leave() }
    :: atomic { link[me] == NONE && link[other] == NONE && sealed[me] < PARTS && made < CONNECTIONS ->
                link[me] = made; link[other] = made; made++ }
    od
}

init {
    atomic { made = 1; run end_of(0); run end_of(1) };
    timeout ->
        assert(got[0] == PARTS && got[1] == PARTS);
        assert(link[0] == link[1] && !last_sent[0] && !last_sent[1] && empty(ring[0]) && empty(ring[1]))
}

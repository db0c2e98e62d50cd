/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The records of one connection of btl/crypt, both directions: docs/transport-format.rst, "Records".  model.sh runs
 * it: as it is, when nothing may be found, and with each of the errors below, when something must be.
 *
 * Direction d goes from end d to end 1 - d.  A record is known by its connection, direction, key and sequence: who
 * expects another one cannot open it.  A sender numbers its messages, renews its key when it likes and at the latest
 * at LIMIT, and ends its direction by close_notify.
 *
 * The network is the intruder's: at any moment he gives any record that was ever sent, of this connection or of an
 * earlier one, of either direction, or rubbish, to either end, and cuts where he likes, as often as he
 * likes.  To give each record once, in order, is one way of his, and as long as he has not left it (`acted`) no
 * end may fail.
 */
#define MESSAGES        3
#define LIMIT           1       /* the last sequence of a key, for KeyUpdate or close_notify; not of the last key */
#define KEYS            3
#define SEQUENCES       5

#define NOTHING         0       /* 1 .. MESSAGES: this message */
#define UPDATE          10
#define CLOSE           11
#define OLD             12      /* a message of an earlier connection */

#define at(d, k, s)     (((d) * KEYS + (k)) * SEQUENCES + (s))

typedef position { byte key, sequence }

byte wire[30];                  /* what was sent */
position tx[2], rx[2];           /* sender, receiver of a direction */
position way[2];                /* the next record in order */
byte sent[2], got[2];
bool said_end[2], saw_end[2];   /* close_notify */
bool failed[2];                 /* an end, not a direction */
bool acted;

#define finished(e)     (failed[e] || (said_end[e] && saw_end[1 - (e)]))

#ifdef SEQUENCE_IGNORED         /* error: any record of the key opens */
#define right_sequence(d, s)    (true)
#else
#define right_sequence(d, s)    (rx[d].sequence == (s))
#endif

#ifdef ONE_KEY                  /* error: both directions have the same key */
#define right_direction(d, from)  (true)
#else
#define right_direction(d, from)  ((d) == (from))
#endif

#ifdef OLD_SECRET               /* error: a new connection has the secret of the one before */
#define opens_old               (true)
#else
#define opens_old               (false)
#endif

/* ---- out ---- */

inline seal(d, content) {
    assert(wire[at(d, tx[d].key, tx[d].sequence)] == NOTHING);        /* a nonce is used once */
    wire[at(d, tx[d].key, tx[d].sequence)] = content;
    tx[d].sequence++
}

inline renew(d) {
    seal(d, UPDATE);
#ifndef KEY_KEPT                /* error: the sender begins with 0 again, under the old key */
    tx[d].key++;
#endif
    tx[d].sequence = 0
}

/* ---- in ---- */

inline fail(d) {
    assert(acted);              /* nobody else can make a receiver fail */
    failed[1 - d] = true
}

inline took_end(d) {
    assert(said_end[d] && got[d] == sent[d]);
    saw_end[d] = true
}

inline took(d, content) {
    if
    :: content == UPDATE ->
#ifndef KEY_LATE                /* error: the receiver goes on with the old key */
        rx[d].key++;
#endif
        rx[d].sequence = 0
    :: content == CLOSE -> took_end(d)
    :: else ->
        assert(content == got[d] + 1 && content <= sent[d]);    /* this one, now, and once */
        got[d]++;
        rx[d].sequence++
    fi
}

/* The record `k`, `s` of direction `of` comes to who reads direction `d`. */
inline came(d, from, k, s) {
    if
    :: !saw_end[d] && right_direction(d, from) && rx[d].key == k && right_sequence(d, s) -> took(d, wire[at(from, k, s)])
    :: else -> fail(d)
    fi
}

/* ---- processes ---- */

proctype end(byte me) {
    do
    :: atomic { !finished(me) && !said_end[me] && sent[me] < MESSAGES && (tx[me].sequence < LIMIT || tx[me].key == KEYS - 1) ->
            sent[me]++; seal(me, sent[me]) }
    :: atomic { !finished(me) && !said_end[me] && tx[me].key < KEYS - 1 -> renew(me) }
    :: atomic { !finished(me) && !said_end[me] -> seal(me, CLOSE); said_end[me] = true }
    :: finished(me) -> break
    od;
    assert(failed[me] || got[1 - me] == sent[1 - me])
}

#define next_of(d)      wire[at(d, way[d].key, way[d].sequence)]
#define reads(d)        (!finished(1 - d))

inline pass_on(d) {
    k = way[d].key;
    s = way[d].sequence;
    if
    :: next_of(d) == UPDATE -> way[d].key++; way[d].sequence = 0
    :: else -> way[d].sequence++
    fi;
    came(d, d, k, s);
    k = 0; s = 0
}

inline give_any(d) {
    acted = true;
    select(from : 0 .. 1);
    select(k : 0 .. KEYS - 1);
    select(s : 0 .. SEQUENCES - 1);
    if
    :: wire[at(from, k, s)] != NOTHING -> came(d, from, k, s)
    :: else
    fi;
    from = 0; k = 0; s = 0
}

/* Of an earlier connection, all records; or rubbish. */
inline give_strange(d) {
    acted = true;
    if
    :: opens_old && !saw_end[d] -> took(d, OLD)
    :: else -> fail(d)
    fi
}

/* The end of the socket, without the sender's. */
inline cut(d) {
#ifdef CUT_ENDS                 /* error: close_notify is not required */
    took_end(d)
#else
    fail(d)
#endif
}

#define ON(d) \
    :: atomic { reads(d) && next_of(d) != NOTHING -> pass_on(d) } \
    :: atomic { reads(d) -> give_any(d) } \
    :: atomic { reads(d) -> give_strange(d) } \
    :: atomic { reads(d) && !saw_end[d] -> acted = true; cut(d) } \
    :: atomic { reads(d) && !saw_end[d] && failed[d] -> cut(d) }

proctype network() {
    byte from, k, s;

end_of_network:
    do
    ON(0)
    ON(1)
    :: finished(0) && finished(1) -> break
    od
}

init {
    atomic { run end(0); run end(1); run network() }
}

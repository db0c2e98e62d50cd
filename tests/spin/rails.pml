/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What one end sends over several connections, and the other takes: docs/transport-format.rst, "Rails".  model.sh runs it: as
 * it is, when nothing may be found, and with each of the errors below, when something must be.
 *
 * The sender chooses MESSAGES messages: a short fragment, a short put, a long fragment over any rail, or a long put with a part
 * on every rail.  Rails are as fast or as slow as they like.  Shown: a fragment, and a short put, is taken after all that was
 * sent before it, and everything is taken.
 */
#ifndef MESSAGES
#define MESSAGES        6
#endif
#define RAILS           3
#define ROOM            (3 * MESSAGES)

#define FRAGMENT        1
#define PUT             2       /* a part of a long one */
#define FLAG            3       /* a short put */
#define JOIN            4

chan rail[RAILS] = [ROOM] of { byte, byte, byte };      /* kind; message or rail; count */
byte left[MESSAGES];            /* parts of a message that have not been taken */
byte sent[RAILS], joined[RAILS];
byte done[RAILS], awaited, until;
bool all_sent;

inline join(k) {
    if
    :: k > 0 && sent[k] != joined[k] -> rail[0] ! JOIN, k, sent[k]; joined[k] = sent[k]
    :: else
    fi
}

inline join_all() { join(1); join(2) }

inline post(k, kind) {
    rail[k] ! kind, i, 0;
    sent[k]++;
    left[i]++
}

proctype sender() {
    byte i, k;

    do
    :: atomic { i < MESSAGES ->
            if
            :: true ->                  /* a short fragment */
#ifndef NO_JOIN                 /* error: it overtakes what other rails carry */
                join_all();
#endif
                post(0, FRAGMENT)
            :: true ->                  /* a short put */
#ifndef FLAG_LOOSE              /* error: a put that is a flag is seen before the long one that it speaks of */
                join_all();
#endif
                post(0, FLAG)
            :: true ->                  /* a long put */
                post(0, PUT); post(1, PUT); post(2, PUT)
            :: true ->                  /* a long fragment */
                if
                :: k = 0 :: k = 1 :: k = 2
                fi;
#ifndef JOIN_AFTER              /* error: it does not wait for the other rails */
                join_all();
#endif
                post(k, FRAGMENT);
#ifndef JOIN_LATE               /* error: it waits for the next message, which may not come */
                join_all();
#endif
                k = 0
            fi;
            i++ }
    :: i == MESSAGES -> break
    od;
    atomic { all_sent = true; i = 0 }
}

/* All before message n has been taken. */
inline in_order(n) {
    j = 0;
    do
    :: j < n -> assert(left[j] == 0); j++
    :: else -> break
    od;
    j = 0
}

inline passed(k) {
    if
    :: awaited == k && done[k] >= until -> awaited = 0; until = 0
    :: else
    fi
}

inline count(k) {
#ifdef PUTS_UNCOUNTED           /* error: the two ends count differently */
    done[k] = done[k] + (kind == FRAGMENT -> 1 : 0);
#else
    done[k]++;
#endif
    passed(k)
}

inline take(k) {
    rail[k] ? kind, n, c;
    if
    :: kind == JOIN ->
#ifndef JOIN_IGNORED            /* error: rail 0 goes on */
        if
        :: done[n] < c -> awaited = n; until = c
        :: else
        fi;
#endif
    :: else ->
        if
        :: kind != PUT -> in_order(n)
        :: else
        fi;
        left[n]--;
        if
        :: k > 0 -> count(k)
        :: else
        fi
    fi;
    kind = 0; n = 0; c = 0
}

#if defined(HELD_NEVER)         /* error: a fragment is delivered as it comes */
#define is_due(k)       (true)
#elif defined(HELD_BLINDLY)     /* error: any join will do */
#define is_due(k)       (awaited != 0)
#elif defined(HELD_ALWAYS)      /* error: and nobody lets it go */
#define is_due(k)       (false)
#else
#define is_due(k)       (awaited == k)
#endif

proctype receiver() {
    byte kind, n, c, j;

    do
    :: atomic { awaited == 0 && nempty(rail[0]) -> take(0) }
    :: atomic { rail[1] ? [PUT, n, c] || (nempty(rail[1]) && is_due(1)) -> take(1) }
    :: atomic { rail[2] ? [PUT, n, c] || (nempty(rail[2]) && is_due(2)) -> take(2) }
    :: atomic { all_sent && empty(rail[0]) && empty(rail[1]) && empty(rail[2]) -> in_order(MESSAGES); assert(awaited == 0); break }
    od
}

init { atomic { run sender(); run receiver() } }

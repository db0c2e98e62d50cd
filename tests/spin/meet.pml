/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How two processes meet over btl/crypt: docs/design/009-transport.rst, "Who connects" and "The model".
 * model.sh runs it: as it is, when nothing may be found, and with each of the errors below, when something must be.
 *
 * Process 0 has the lower name.  Each has a message for the other, or none; afterwards both leave (del_procs), and meet
 * once more (MEETINGS).  A socket has two ends and two directions, and a direction is a set of what is on its way, which
 * arrives in a fixed order.  Everything takes any time, and each process reads its sockets in any order.
 *
 * Time: what a process waits for comes before it loses patience (`quiet`), except for DELAYS times in a run; and it tries
 * again sooner than it loses patience.
 * Every attempt uses up a number, and there are ATTEMPTS, two (addresses) for each meeting and each disturbance, and one
 * more: whoever needs more has not got on.
 *
 * The intruder: strangers at addresses of ours, who are mute, refuse, or pass on later; every ClientHello that was
 * ever sent, to be sent again; sockets that are cut, with or without what is on its way.  He has no key: there is no
 * Finished of his, and a record of his is a cut.  He acts ACTS times.
 */
#ifndef ACTS
#define ACTS            1
#endif
#ifndef DELAYS
#define DELAYS          1
#endif
#ifndef MEETINGS
#define MEETINGS        2       /* or 1 */
#endif
#define ATTEMPTS        (2 * (ACTS + DELAYS + MEETINGS) + 1)
#define SOCKETS         7
#define NONE            SOCKETS
#define INTRUDER        2

/* An end of a socket. */
#define CLOSED          0
#define SHAKING         1
#define ANSWERED        2       /* server: the ClientHello was right */
#define GREETING        3       /* client: Finished and hello are out */
#define OPEN            4

/* What is on its way, in the order in which it arrives. */
#define HANDSHAKE       1       /* ClientHello; ServerHello to Finished */
#define HELLO           2       /* with the client's Finished */
#define DATA            4
#define CLOSE           8       /* close_notify */
#define EOF             16

/* Addresses of the other process. */
#define RIGHT           0
#define STRANGE_RIGHT   1       /* two: a stranger's, and then the right one */
#define STRANGE         2

typedef socket {
    byte client, server, attempt;
    byte c, s;                  /* the ends */
    byte up, down;              /* on its way to the server, to the client */
}

socket sock[SOCKETS];
byte link[2] = NONE;            /* the connection in use */
byte trying[2] = NONE;          /* our attempt */
byte half[2] = NONE;            /* the peer's, answered and not authenticated */
byte number[2];                 /* of the last attempt */
byte seen[2];                   /* the peer's last number that was right */
byte addresses[2], next[2];
bool at_once[2] = true;         /* the next attempt need not wait */
bit turn;                       /* who tries again first: both wait for the same time */
bool want[2], flying[2];        /* a message of ours waits, is on its way */
bool left[2];
byte phase;                     /* 0: meet, 1: leave, 2: meet again */
byte acts = ACTS, delays = DELAYS;
bool cut;                       /* the intruder cut a socket */
bool over;                      /* all is done, or the job has ended with an error */

#define up_waits(k)     (sock[k].s != CLOSED && sock[k].up != 0)
#define down_waits(k)   (sock[k].c != CLOSED && sock[k].down != 0)
#define waits(k)        (up_waits(k) || down_waits(k))
#define still           (!waits(0) && !waits(1) && !waits(2) && !waits(3) && !waits(4) && !waits(5) && !waits(6))
#define may_try(p)      (want[p] && link[p] == NONE && trying[p] == NONE)
#define quiet           (still && !(may_try(0) && at_once[0]) && !(may_try(1) && at_once[1]))
#define its_turn(p)     (!may_try(1 - p) || turn == p)
#define delivered       (!want[0] && !want[1] && !flying[0] && !flying[1])
#define done            (phase == 2 * (MEETINGS - 1) && delivered && still)
#define first(set, m)   (((set) & (m)) && !((set) & ((m) - 1)))
#define to_link(p)      (link[p] != NONE && (sock[link[p]].server == p && sock[link[p]].s != CLOSED \
                                             -> up_waits(link[p]) : down_waits(link[p])))

#if defined(TIE_OLD)            /* error: an attempt counts that has authenticated nobody */
#define ours_counts(p)  (trying[p] != NONE && p == 0)
#elif defined(TIE_BLIND)        /* error: names do not matter, and the two ends keep different sockets */
#define ours_counts(p)  (false)
#elif defined(TIE_BOTH)         /* error: names do not matter, and both ends decline */
#define ours_counts(p)  (trying[p] != NONE && sock[trying[p]].c == GREETING)
#else
#define ours_counts(p)  (trying[p] != NONE && sock[trying[p]].c == GREETING && p == 0)
#endif

#ifdef NUMBER_IGNORED           /* error: a ClientHello is answered again */
#define is_new(p, k)    (true)
#else
#define is_new(p, k)    (sock[k].attempt > seen[p])
#endif

#ifdef HELLO_EXPIRES            /* error: who has said hello loses patience */
#define may_expire(p)   (trying[p] != NONE)
#else
#define may_expire(p)   (trying[p] != NONE && sock[trying[p]].c == SHAKING)
#endif

/* ---- sockets ---- */

inline send_up(k, m) {
    if
    :: sock[k].s != CLOSED && !(sock[k].up & EOF) -> sock[k].up = sock[k].up | m
    :: else
    fi
}

inline send_down(k, m) {
    if
    :: sock[k].c != CLOSED && !(sock[k].down & EOF) -> sock[k].down = sock[k].down | m
    :: else
    fi
}

inline tidy(k) {
    if
    :: sock[k].c == CLOSED && sock[k].s == CLOSED ->
        sock[k].client = 0; sock[k].server = 0; sock[k].attempt = 0; sock[k].up = 0; sock[k].down = 0
    :: else
    fi
}

inline close_client(k) { send_up(k, EOF); sock[k].c = CLOSED; sock[k].down = 0; tidy(k) }
inline close_server(k) { send_down(k, EOF); sock[k].s = CLOSED; sock[k].up = 0; tidy(k) }

inline unused(k) {
    k = 0;
    do
    :: k < SOCKETS && (sock[k].c != CLOSED || sock[k].s != CLOSED) -> k++
    :: else -> break
    od;
    assert(k < SOCKETS)
}

/* ---- a process ---- */

/* Closing may reset the connection: what we sent last may arrive, or not. */
inline drop_attempt(p) {
    if
    :: true
    :: sock[trying[p]].s != CLOSED && !(sock[trying[p]].up & EOF) ->
        sock[trying[p]].up = sock[trying[p]].up & HANDSHAKE
    fi;
    close_client(trying[p]);
    trying[p] = NONE
}

inline drop_half(p) {
    if
    :: half[p] != NONE -> close_server(half[p]); half[p] = NONE
    :: else
    fi
}

inline attempt_failed(p, declined) {
    drop_attempt(p);
    if
    :: !declined && addresses[p] == STRANGE_RIGHT && next[p] == 0 -> next[p] = 1; at_once[p] = true
    :: else -> next[p] = 0; at_once[p] = false
    fi
}

inline send_waiting(p) {
    if
    :: want[p] && link[p] != NONE ->
        want[p] = false;
        flying[p] = true;
        if
        :: sock[link[p]].client == p -> send_up(link[p], DATA)
        :: else -> send_down(link[p], DATA)
        fi
    :: else
    fi
}

inline use(p, k) {
    assert(link[p] == NONE && trying[p] == NONE);
    link[p] = k;
    next[p] = 0;
    at_once[p] = true;
    send_waiting(p)
}

/* An error that ends the job, which nobody but an intruder on the way may bring about. */
inline job_ends() {
    assert(cut);
    over = true
}

inline connect(p) {
    turn = 1 - p;
    number[p]++;
    assert(number[p] <= ATTEMPTS);      /* else they do not get on */
    unused(at);
    sock[at].client = p;
    sock[at].attempt = number[p];
    sock[at].c = SHAKING;
    sock[at].up = HANDSHAKE;
    trying[p] = at;
    at = 0;
    if
    :: addresses[p] == RIGHT || (addresses[p] == STRANGE_RIGHT && next[p] == 1) ->
        sock[trying[p]].server = 1 - p;
        sock[trying[p]].s = SHAKING
    :: else ->
        sock[trying[p]].server = INTRUDER;
        if
        :: true                         /* mute */
        :: sock[trying[p]].down = EOF   /* refuses, or speaks nonsense */
        fi
    fi
}

inline read_hello(p, k) {
    sock[k].up = sock[k].up & ~HANDSHAKE;
    if
    :: is_new(p, k) ->
        assert(sock[k].attempt > seen[p]);      /* no answer to what was recorded */
        if
        :: half[p] != NONE ->
            assert(sock[half[p]].c == CLOSED);  /* nobody loses one that he waits for */
            drop_half(p)
        :: else
        fi;
        seen[p] = sock[k].attempt;
        sock[k].s = ANSWERED;
        half[p] = k;
        send_down(k, HANDSHAKE)
    :: else -> close_server(k)
    fi
}

inline read_finished(p, k) {
    sock[k].up = sock[k].up & ~HELLO;
    half[p] = NONE;
    if
    :: link[p] != NONE || ours_counts(p) ->
        send_down(k, CLOSE);
        close_server(k)
    :: else ->
        if
        :: trying[p] != NONE -> drop_attempt(p)
        :: else
        fi;
        sock[k].s = OPEN;
        send_down(k, HELLO);
        use(p, k)
    fi
}

inline server_reads(p, k) {
    if
    :: first(sock[k].up, HANDSHAKE) -> assert(sock[k].s == SHAKING); read_hello(p, k)
    :: first(sock[k].up, HELLO) -> assert(sock[k].s == ANSWERED); read_finished(p, k)
    :: first(sock[k].up, DATA) ->
        assert(link[p] == k && flying[1 - p]);
        sock[k].up = sock[k].up & ~DATA;
        flying[1 - p] = false
    :: first(sock[k].up, CLOSE) -> assert(link[p] == k); link[p] = NONE; close_server(k)
    :: first(sock[k].up, EOF) ->
        if
        :: link[p] == k -> job_ends()
        :: else ->
            half[p] = (half[p] == k -> NONE : half[p]);
            close_server(k)
        fi
    fi
}

inline client_reads(p, k) {
    if
    :: first(sock[k].down, HANDSHAKE) ->
        assert(trying[p] == k && sock[k].c == SHAKING);
        sock[k].down = sock[k].down & ~HANDSHAKE;
        sock[k].c = GREETING;
        send_up(k, HELLO)
    :: first(sock[k].down, HELLO) ->
        assert(trying[p] == k && sock[k].c == GREETING);
        sock[k].down = sock[k].down & ~HELLO;
        sock[k].c = OPEN;
        trying[p] = NONE;
#ifndef HALF_KEPT               /* error: what the peer gave up before it kept ours may still be taken for a connection */
        drop_half(p);
#endif
        use(p, k)
    :: first(sock[k].down, DATA) ->
        assert(link[p] == k && flying[1 - p]);
        sock[k].down = sock[k].down & ~DATA;
        flying[1 - p] = false
    :: first(sock[k].down, CLOSE) ->
        if
        :: link[p] == k -> link[p] = NONE; close_client(k)
        :: else -> attempt_failed(p, true)
        fi
    :: first(sock[k].down, EOF) ->
        if
        :: link[p] == k -> job_ends()
        :: else -> attempt_failed(p, false)
        fi
    fi
}

/* Before it decides about a new connection it reads the one it has: the peer may have left that. */
#define server_may(p, k)    (sock[k].server == p && up_waits(k) \
                             && !(first(sock[k].up, HELLO) && to_link(p)))
#define client_may(p, k)    (sock[k].client == p && down_waits(k))

#define may_read(p, k)      (server_may(p, k) || client_may(p, k))
#define SOCKETS_WHERE(what, p) \
    :: what(p, 0) -> k = 0 :: what(p, 1) -> k = 1 :: what(p, 2) -> k = 2 :: what(p, 3) -> k = 3 \
    :: what(p, 4) -> k = 4 :: what(p, 5) -> k = 5 :: what(p, 6) -> k = 6
#define any(what, p) \
    (what(p, 0) || what(p, 1) || what(p, 2) || what(p, 3) || what(p, 4) || what(p, 5) || what(p, 6))

inline leave(p) {
    left[p] = true;
    if
    :: link[p] != NONE ->
        if
        :: sock[link[p]].client == p && sock[link[p]].c == OPEN -> send_up(link[p], CLOSE); close_client(link[p])
        :: else -> send_down(link[p], CLOSE); close_server(link[p])
        fi;
        link[p] = NONE
    :: else
    fi
}

inline choose_messages() {
    if
    :: want[0] = true
    :: want[1] = true
    :: want[0] = true; want[1] = true
    fi;
    /* Who has nothing but strangers' addresses waits for the other. */
    want[0] = want[0] || addresses[1] == STRANGE;
    want[1] = want[1] || addresses[0] == STRANGE
}

proctype process(byte me) {
    byte at, k;

    do
    :: atomic { !over && may_try(me) && (at_once[me] || (quiet && its_turn(me))) -> connect(me) }
    :: atomic { !over && may_try(me) && !at_once[me] && !quiet && delays > 0 -> delays--; connect(me) }
#ifndef NO_DEADLINE             /* error: an attempt waits for a mute stranger for ever */
    :: atomic { !over && may_expire(me) && quiet && !may_try(0) && !may_try(1) -> attempt_failed(me, false) }
#endif
    :: atomic { !over && may_expire(me) && !quiet && delays > 0 -> delays--; attempt_failed(me, false) }
    :: atomic { !over && any(may_read, me) ->
            if
            SOCKETS_WHERE(may_read, me)
            fi;
            if
            :: sock[k].server == me -> server_reads(me, k)
            :: else -> client_reads(me, k)
            fi;
            k = 0 }
    :: atomic { !over && phase == 0 && MEETINGS == 2 && delivered -> phase = 1 }
    :: atomic { !over && phase == 1 && !left[me] ->
            leave(me);
            if
            :: left[0] && left[1] -> phase = 2; choose_messages()
            :: else
            fi }
    :: !over && quiet && link[0] != link[1] -> assert(false)     /* different sockets, for good */
    :: atomic { !over && done -> over = true }
    :: over -> break
    od
}

/* ---- the intruder ---- */

inline disturb_up(k) {
    acts--;
    cut = true;
    if
    :: sock[k].up = sock[k].up | EOF
    :: sock[k].up = EOF
    fi
}

inline disturb_down(k) {
    acts--;
    cut = true;
    if
    :: sock[k].down = sock[k].down | EOF
    :: sock[k].down = EOF
    fi
}

/* A ClientHello of p, once more, to the other process. */
inline replay(p, n) {
    acts--;
    unused(at);
    sock[at].client = INTRUDER;
    sock[at].server = 1 - p;
    sock[at].attempt = n;
    sock[at].s = SHAKING;
    sock[at].up = HANDSHAKE;
    if
    :: true
    :: sock[at].up = HANDSHAKE | EOF
    fi;
    at = 0
}

#define has_server(p, k)    (sock[k].s != CLOSED && sock[k].client == p && !(sock[k].up & EOF))
#define has_client(p, k)    (sock[k].c != CLOSED && sock[k].server == p && !(sock[k].down & EOF))
#define is_mute(p, k)       (has_client(INTRUDER, k) && sock[k].c == SHAKING)

proctype intruder() {
    byte at, k, n;

end:
    do
    :: atomic { !over && acts > 0 && (any(has_server, 0) || any(has_server, 1)) ->
            if
            SOCKETS_WHERE(has_server, 0)
            SOCKETS_WHERE(has_server, 1)
            fi;
            disturb_up(k);
            k = 0 }
    :: atomic { !over && acts > 0 && (any(has_client, 0) || any(has_client, 1)) ->
            if
            SOCKETS_WHERE(has_client, 0)
            SOCKETS_WHERE(has_client, 1)
            fi;
            disturb_down(k);
            k = 0 }
    :: atomic { !over && acts > 0 && any(is_mute, INTRUDER) ->
            if
            SOCKETS_WHERE(is_mute, INTRUDER)
            fi;
            acts--;
            sock[k].server = 1 - sock[k].client;
            sock[k].s = SHAKING;
            k = 0 }
    :: atomic { !over && acts > 0 && number[0] > 0 -> select(n : 1 .. number[0]); replay(0, n); n = 0 }
    :: atomic { !over && acts > 0 && number[1] > 0 -> select(n : 1 .. number[1]); replay(1, n); n = 0 }
    :: over -> break
    od
}

init {
    atomic {
        if
        :: addresses[0] = RIGHT; addresses[1] = RIGHT
        :: addresses[0] = STRANGE_RIGHT
        :: addresses[1] = STRANGE_RIGHT
        :: addresses[0] = STRANGE_RIGHT; addresses[1] = STRANGE_RIGHT
        :: addresses[0] = STRANGE
        :: addresses[1] = STRANGE
        fi;
        choose_messages();
        run process(0);
        run process(1);
        run intruder()
    }
}

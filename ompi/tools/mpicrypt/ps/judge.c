/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt ps: what looks wrong with a job, from the pages of its processes.
 *
 *     gone, stopped                    others wait for it for ever
 *     a call that blocks, for long     and what its peer's page says about it
 *     requests pending for long        if no message began or ended meanwhile
 *     MPI_Init, MPI_Finalize           for long
 *     busy outside MPI                 if another process waits for it
 *
 * If none of that is found, but no process is seen to do anything either, it is unknown whether something is wrong.
 *
 * A page is filled by its process, inside MPI: an old one shows the state of that time.
 */
#include <limits.h>
#include <string.h>

#include "ps.h"

enum { LINES = 20 };            /* at most, of one job's waits that are shown */

typedef struct job {
    const opal_crypt_status_process_t *processes;
    int count;
    double after;
    FILE *out;
    int found;
    int still, asleep;      /* if no process is seen to do anything: how many inside MPI, and outside */
    int waiting;            /* processes whose wait is shown */
} job_t;

/* ---- words ---- */

const char *mpicrypt_ps_text(const char *text)
{
    static char shown[8][320];
    static unsigned next;

    next = (next + 1) % 8;
    return opal_crypt_status_text(text, shown[next], sizeof(shown[0]));
}

double mpicrypt_ps_age(const opal_crypt_status_process_t *process, int64_t since)
{
    const double age = ((double) process->now - (double) since) / 1e9;

    return age > 0 ? age : 0;
}

static void say_peer(const opal_crypt_status_wait_t *w, FILE *out)
{
    if (OPAL_CRYPT_STATUS_ANY == w->peer && OPAL_CRYPT_STATUS_COLLECTIVE == w->kind) {
        fprintf(out, "another rank of its node");
    } else if (OPAL_CRYPT_STATUS_ANY == w->peer) {
        fprintf(out, "any rank");
    } else if (OPAL_CRYPT_STATUS_FOREIGN == w->process) {
        fprintf(out, "rank %d of %s, of another job", w->peer, mpicrypt_ps_text(w->comm));
    } else if (w->peer == w->process) {
        fprintf(out, "rank %d", w->peer);
    } else {
        fprintf(out, "rank %d of %s (rank %d of the job)", w->peer, mpicrypt_ps_text(w->comm), w->process);
    }
}

static void say_tag(const opal_crypt_status_wait_t *w, FILE *out)
{
    if (INT_MIN == w->tag) {
        fprintf(out, ", any tag");
    } else {
        fprintf(out, ", tag %d", w->tag);
    }
    if ('\0' != w->comm[0] && 0 != strcmp(w->comm, "MPI_COMM_WORLD")) {
        fprintf(out, ", of %s", mpicrypt_ps_text(w->comm));
    }
}

void mpicrypt_ps_say_wait(const opal_crypt_status_wait_t *w, FILE *out)
{
    static const char *const how[OPAL_CRYPT_STATUS_PROTOCOLS] = {", in one piece", ", in segments", ", within the node", ""};
    const bool collective = '\0' != w->text[0];

    switch (w->kind) {
    case OPAL_CRYPT_STATUS_CONTACT:
        if (w->process >= 0) {
            fprintf(out, "in its first contact with rank %d, for %s", w->process, mpicrypt_ps_text(w->text));
        } else {
            fprintf(out, "in its first contact with a process of another job, for %s", mpicrypt_ps_text(w->text));
        }
        return;
    case OPAL_CRYPT_STATUS_TAKE:
        if (w->process >= 0) {
            fprintf(out, "for rank %d", w->process);
        } else {
            fprintf(out, "for a process of another job");
        }
        fprintf(out, " to take %llu bytes that were sent to it", (unsigned long long) w->bytes);
        return;
    case OPAL_CRYPT_STATUS_COLLECTIVE:
        fprintf(out, "in a collective (%s), for ", mpicrypt_ps_text(w->text));
        say_peer(w, out);
        return;
    case OPAL_CRYPT_STATUS_SEND:
        if (collective) {
            fprintf(out, "in a collective (%s), in a send to ", mpicrypt_ps_text(w->text));
            say_peer(w, out);
            return;
        }
        fprintf(out, "in a send to ");
        say_peer(w, out);
        say_tag(w, out);
        fprintf(out, " (%llu bytes%s)", (unsigned long long) w->bytes, how[w->protocol]);
        return;
    default:
        if (collective) {
            fprintf(out, "in a collective (%s), for a message from ", mpicrypt_ps_text(w->text));
            say_peer(w, out);
            return;
        }
        fprintf(out, OPAL_CRYPT_STATUS_PROBE == w->kind ? "in a probe for a message from " : "in a receive from ");
        say_peer(w, out);
        say_tag(w, out);
    }
}

static bool is_stopped(const opal_crypt_status_process_t *process) { return 'T' == process->state || 't' == process->state; }

static void begin(job_t *job, const opal_crypt_status_process_t *s)
{
    job->found++;
    fprintf(job->out, "  rank %u (%s) ", s->who.rank, mpicrypt_ps_text(s->who.host));
}

/* ---- who is who ---- */

static const opal_crypt_status_process_t *find(const job_t *job, int32_t rank)
{
    for (int i = 0; i < job->count; ++i) {
        if (rank >= 0 && (uint32_t) rank == job->processes[i].who.rank) {
            return &job->processes[i];
        }
    }
    return NULL;
}

static const opal_crypt_status_peer_t *peer_of(const opal_crypt_status_process_t *s, uint32_t rank)
{
    for (uint32_t i = 0; i < s->snapshot.peer_count; ++i) {
        if (rank == s->snapshot.peers[i].rank && !s->snapshot.peers[i].foreign) {
            return &s->snapshot.peers[i];
        }
    }
    return NULL;
}

/* The call that blocks, innermost first; or, where nothing moves, the oldest request. */
static const opal_crypt_status_wait_t *wait_of(const job_t *job, const opal_crypt_status_process_t *s)
{
    const opal_crypt_status_snapshot_t *m = &s->snapshot;

    for (uint32_t i = 0; i < m->wait_count; ++i) {
        const opal_crypt_status_wait_t *w = &m->waits[i];
        const bool long_enough = mpicrypt_ps_age(s, w->since) >= job->after;

        if (long_enough && (w->blocking || (mpicrypt_ps_age(s, m->active) >= job->after
                                            && mpicrypt_ps_age(s, m->updated) < job->after))) {
            return w;
        }
    }
    return NULL;
}

/* ---- what its peer's page says ---- */

/* For a receive: has the peer sent anything?  Its page counts sealed messages, all of them; over btl/crypt, records. */
static bool say_counts(const job_t *job, const opal_crypt_status_process_t *s, const opal_crypt_status_wait_t *w,
                       const opal_crypt_status_process_t *other)
{
    const opal_crypt_status_peer_t *to_us = peer_of(other, s->who.rank), *from_it = peer_of(s, other->who.rank);
    const uint64_t accepted = NULL == from_it ? 0 : from_it->accepted;
    unsigned long long sent;

    if (s->who.over_btl || (NULL == to_us && other->snapshot.peers_left_out > 0)
        || (NULL == from_it && s->snapshot.peers_left_out > 0) || mpicrypt_ps_age(other, other->snapshot.updated) >= mpicrypt_ps_age(s, w->since)
        || (NULL != to_us && OPAL_CRYPT_STATUS_SEALED != to_us->state && OPAL_CRYPT_STATUS_UNKNOWN != to_us->state)) {
        return false;
    }
    sent = NULL == to_us ? 0 : to_us->sent;
    if (sent > accepted) {
        fprintf(job->out, "; rank %u has sent it %llu message%s that it has not received", other->who.rank, sent - accepted,
                1 == sent - accepted ? "" : "s");
    } else if (0 == sent) {
        fprintf(job->out, "; rank %u has sent nothing to it", other->who.rank);
    } else {
        fprintf(job->out, "; rank %u has sent nothing more to it (%llu messages, all of them received)", other->who.rank, sent);
    }
    return sent > accepted;
}

static void say_unmatched(const job_t *job, const opal_crypt_status_wait_t *w, bool counted)
{
    if (w->queued_unmatched && counted) {
        fprintf(job->out, ": tag %d", w->unmatched_tag);
    } else if (w->queued_unmatched && w->unmatched_peer >= 0) {
        fprintf(job->out, "; a message of another tag is queued: rank %d, tag %d", w->unmatched_peer, w->unmatched_tag);
    } else if (w->queued_unmatched) {
        fprintf(job->out, "; a message of another tag is queued: tag %d", w->unmatched_tag);
    } else if (w->asked && !counted && w->process >= 0) {
        fprintf(job->out, "; no other message from it has arrived");
    }
}

static bool is_outside(const job_t *job, const opal_crypt_status_process_t *s)
{
    return !s->gone && !is_stopped(s) && mpicrypt_ps_age(s, s->snapshot.updated) >= job->after;
}

static void say_other(const job_t *job, const opal_crypt_status_process_t *s, const opal_crypt_status_wait_t *w)
{
    const opal_crypt_status_process_t *other = find(job, w->process);
    bool counted = false;

    if (w->process < 0) {
        say_unmatched(job, w, false);
        return;
    }
    if (NULL == other) {
        say_unmatched(job, w, false);
        fprintf(job->out, "; no page of rank %d was seen", w->process);
        return;
    }
    if (OPAL_CRYPT_STATUS_RECEIVE == w->kind || OPAL_CRYPT_STATUS_PROBE == w->kind) {
        counted = say_counts(job, s, w, other);
    }
    say_unmatched(job, w, counted);
    if (other->gone) {
        fprintf(job->out, "; rank %u is gone", other->who.rank);
    } else if (is_stopped(other)) {
        fprintf(job->out, "; rank %u is stopped", other->who.rank);
    } else if (is_outside(job, other)) {
        fprintf(job->out, "; rank %u has not been inside MPI for %.0f s", other->who.rank,
                mpicrypt_ps_age(other, other->snapshot.updated));
    } else if (OPAL_CRYPT_STATUS_ENDING == other->snapshot.phase) {
        fprintf(job->out, "; rank %u is in MPI_Finalize", other->who.rank);
    }
}

/* ---- nothing moves ---- */

/* It is inside MPI without any traffic, in a call that no page shows: one to the launcher, or a one-sided one. */
static bool is_quiet(const job_t *job, const opal_crypt_status_process_t *s)
{
    return OPAL_CRYPT_STATUS_RUNNING == s->snapshot.phase && !s->gone && !is_stopped(s) && !is_outside(job, s)
           && mpicrypt_ps_age(s, s->snapshot.active) >= job->after;
}

/* A process that computes uses its processor; one that sleeps outside MPI waits for something no page shows, such as the launcher. */
static void count_still(job_t *job)
{
    for (int i = 0; i < job->count; ++i) {
        const opal_crypt_status_process_t *s = &job->processes[i];

        if (is_quiet(job, s)) {
            ++job->still;
        } else if (is_outside(job, s) && 'R' != s->state) {
            ++job->asleep;
        } else if (!s->gone && !is_stopped(s)) {
            job->still = job->asleep = 0;
            return;
        }
    }
}

static void say_not_seen(const job_t *job, uint32_t ranks, FILE *out)
{
    if (job->still > 0) {
        fprintf(out, "whether %d process%s inside MPI go%s on: none of their messages was seen for %.0f s\n", job->still,
                1 == job->still ? "" : "es", 1 == job->still ? "es" : "", job->after);
    }
    if (job->asleep > 0) {
        fprintf(out, "whether %d process%s, asleep outside MPI, go%s on\n", job->asleep, 1 == job->asleep ? "" : "es",
                1 == job->asleep ? "es" : "");
    }
    if ((uint32_t) job->count < ranks) {
        fprintf(out, "%u of its processes: name all nodes (--host, --slurm)\n", ranks - (uint32_t) job->count);
    }
}

/* ---- the rules ---- */

static void judge_processes(job_t *job)
{
    for (int i = 0; i < job->count; ++i) {
        const opal_crypt_status_process_t *s = &job->processes[i];

        if (s->gone) {
            begin(job, s);
            fprintf(job->out, "is gone: process %u ended without MPI_Finalize\n", s->who.pid);
        } else if (is_stopped(s)) {
            begin(job, s);
            fprintf(job->out, "is stopped (state %c): 'kill -CONT %u' lets it go on\n", s->state, s->who.pid);
        }
    }
}

static bool is_awaited(const job_t *job, uint32_t rank)
{
    for (int i = 0; i < job->count; ++i) {
        const opal_crypt_status_wait_t *w = wait_of(job, &job->processes[i]);

        if (NULL != w && w->process >= 0 && rank == (uint32_t) w->process) {
            return true;
        }
    }
    return false;
}

static void judge_outside(job_t *job)
{
    for (int i = 0; i < job->count; ++i) {
        const opal_crypt_status_process_t *s = &job->processes[i];

        if (is_outside(job, s) && is_awaited(job, s->who.rank)) {
            begin(job, s);
            fprintf(job->out, "has been outside MPI for %.0f s, and others wait for it (process %u, state %c%s)\n",
                    mpicrypt_ps_age(s, s->snapshot.updated), s->who.pid, 0 == s->state ? '?' : s->state,
                    'D' == s->state ? ": it waits in the kernel, often for a file system" : "");
        }
    }
}

static void judge_waits(job_t *job)
{
    int more = 0;

    for (int i = 0; i < job->count; ++i) {
        const opal_crypt_status_process_t *s = &job->processes[i];
        const opal_crypt_status_wait_t *w = s->gone || is_stopped(s) ? NULL : wait_of(job, s);

        if (NULL == w) {
            continue;
        }
        if (job->waiting++ >= LINES) {
            ++more;
            continue;
        }
        begin(job, s);
        fprintf(job->out, "has waited %.0f s ", mpicrypt_ps_age(s, w->since));
        mpicrypt_ps_say_wait(w, job->out);
        say_other(job, s, w);
        fputc('\n', job->out);
    }
    if (more > 0) {
        fprintf(job->out, "  %d more ranks wait (--all shows them)\n", more);
        job->found += more;
    }
}

static void judge_phases(job_t *job)
{
    static const char *const where[OPAL_CRYPT_STATUS_PHASES] = {"MPI_Init", NULL, "MPI_Finalize"};

    for (int i = 0; i < job->count; ++i) {
        const opal_crypt_status_process_t *s = &job->processes[i];
        const char *in = where[s->snapshot.phase];

        if (!s->gone && NULL != in && mpicrypt_ps_age(s, s->snapshot.phase_since) >= job->after) {
            begin(job, s);
            fprintf(job->out, "has been in %s for %.0f s\n", in, mpicrypt_ps_age(s, s->snapshot.phase_since));
        }
    }
}

int mpicrypt_ps_judge(const opal_crypt_status_process_t *processes, int count, uint32_t ranks, double after, FILE *out,
                      FILE *not_seen, bool *known)
{
    job_t job = {.processes = processes, .count = count, .after = after, .out = out};

    judge_processes(&job);
    judge_outside(&job);
    judge_waits(&job);
    judge_phases(&job);
    if (0 == job.found) {
        count_still(&job);
    }
    say_not_seen(&job, ranks, not_seen);
    *known = 0 == job.still + job.asleep;
    return job.found;
}

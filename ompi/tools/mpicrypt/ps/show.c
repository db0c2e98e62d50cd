/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt ps --all and --json: everything that a page says.
 */
#include <limits.h>

#include "ps.h"

static const char *const phases[OPAL_CRYPT_STATUS_PHASES] = {"MPI_Init", "running", "MPI_Finalize"};
static const char *const kinds[OPAL_CRYPT_STATUS_KINDS] = {"", "receive", "send", "probe", "collective", "contact", "take"};
static const char *const states[OPAL_CRYPT_STATUS_STATES] = {"not met", "meeting", "on the node", "sealed", "refused"};

static unsigned long long number(uint64_t value)
{
    return value;
}

static void show_connection(const opal_crypt_status_peer_t *p, FILE *out)
{
    fprintf(out, "    rank %u%s: %s, sent %llu records, received %llu; not taken yet: %u bytes\n", p->rank,
            p->foreign ? " of another job" : "", states[p->state], number(p->sent), number(p->accepted), p->ahead_bytes);
}

static void show_peer(const opal_crypt_status_peer_t *p, FILE *out)
{
    fprintf(out, "    rank %u%s: %s", p->rank, p->foreign ? " of another job" : "", states[p->state]);
    if (OPAL_CRYPT_STATUS_SEALED == p->state) {
        fprintf(out, ", sent %llu, received %llu of %llu, epochs %llu and %llu, window from %llu (%llu bytes)",
                number(p->sent), number(p->accepted), number(p->highest), number(p->epoch_out), number(p->epoch_in),
                number(p->missing), number(p->window_bytes));
    }
    fprintf(out, "; pending: %u sends (%u with segments left), %u receives; held %u; ahead %u bytes\n", p->sends, p->queued,
            p->receives, p->held, p->ahead_bytes);
}

static void show_pending(const opal_crypt_status_process_t *s, FILE *out)
{
    const opal_crypt_status_snapshot_t *m = &s->snapshot;

    if (s->who.over_btl) {
        fprintf(out, "    %u connections; pending: %u receives, %u sends; last message %.1f s ago\n", m->sealed, m->receives,
                m->sends[OPAL_CRYPT_STATUS_BELOW], mpicrypt_ps_age(s, m->active));
    } else {
        fprintf(out, "    pending: %u receives, %u sends in one piece, %u in segments, %u within the node; last message %.1f s "
                "ago\n", m->receives, m->sends[OPAL_CRYPT_STATUS_FRAME], m->sends[OPAL_CRYPT_STATUS_CHOPPED],
                m->sends[OPAL_CRYPT_STATUS_LOCAL], mpicrypt_ps_age(s, m->active));
    }
    if (m->incomplete) {
        fprintf(out, "    and more requests than it looked at\n");
    }
}

void mpicrypt_ps_show(const opal_crypt_status_process_t *s, FILE *out)
{
    const opal_crypt_status_snapshot_t *m = &s->snapshot;

    fprintf(out, "  rank %u on %s: process %u, %s, state %c, inside MPI %.1f s ago; %s over %s%s%s\n", s->who.rank,
            mpicrypt_ps_text(s->who.host), s->who.pid, s->gone ? "gone" : phases[m->phase], 0 == s->state ? '?' : s->state,
            mpicrypt_ps_age(s, m->updated), mpicrypt_ps_text(s->who.method), mpicrypt_ps_text(s->who.pml),
            '\0' == m->aead[0] ? "" : ", ", mpicrypt_ps_text(m->aead));
    show_pending(s, out);
    for (uint32_t i = 0; i < m->wait_count; ++i) {
        fprintf(out, "    waits %.1f s ", mpicrypt_ps_age(s, m->waits[i].since));
        mpicrypt_ps_say_wait(&m->waits[i], out);
        if (m->waits[i].queued_unmatched) {
            fprintf(out, "; a message with tag %d is queued", m->waits[i].unmatched_tag);
        }
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < m->peer_count; ++i) {
        (s->who.over_btl ? show_connection : show_peer)(&m->peers[i], out);
    }
    if (m->peers_left_out > 0) {
        fprintf(out, "    and %u peers that the page has no room for\n", m->peers_left_out);
    }
}

/* ---- JSON ---- */

static void text(const char *name, const char *value, FILE *out)
{
    fprintf(out, "\"%s\": ", name);
    mpicrypt_json_text(out, mpicrypt_ps_text(value));
    fputs(", ", out);
}

static void json_wait(const opal_crypt_status_process_t *s, const opal_crypt_status_wait_t *w, FILE *out)
{
    fputc('{', out);
    text("kind", kinds[w->kind], out);
    text("communicator", w->comm, out);
    text("what", w->text, out);
    fprintf(out, "\"seconds\": %.3f, \"blocking\": %s, \"bytes\": %llu, \"peer\": %d, \"process\": %d, ",
            mpicrypt_ps_age(s, w->since), w->blocking ? "true" : "false", number(w->bytes), w->peer, w->process);
    if (INT_MIN == w->tag) {
        fputs("\"tag\": null, ", out);
    } else {
        fprintf(out, "\"tag\": %d, ", w->tag);
    }
    if (w->queued_unmatched) {
        fprintf(out, "\"instead\": {\"peer\": %d, \"tag\": %d, \"bytes\": %llu}}", w->unmatched_peer, w->unmatched_tag,
                number(w->unmatched_bytes));
    } else {
        fputs("\"instead\": null}", out);
    }
}

static void json_peer(const opal_crypt_status_peer_t *p, FILE *out)
{
    fprintf(out, "{\"rank\": %u, \"another_job\": %s, \"state\": \"%s\", \"sent\": %llu, \"highest\": %llu, \"received\": %llu, "
            "\"missing\": %llu, \"window_bytes\": %llu, \"epoch_out\": %llu, \"epoch_in\": %llu, ", p->rank,
            p->foreign ? "true" : "false", states[p->state], number(p->sent), number(p->highest), number(p->accepted),
            number(p->missing), number(p->window_bytes), number(p->epoch_out), number(p->epoch_in));
    fprintf(out, "\"sends\": %u, \"queued\": %u, \"receives\": %u, \"held\": %u, \"ahead_bytes\": %u}", p->sends, p->queued,
            p->receives, p->held, p->ahead_bytes);
}

void mpicrypt_ps_json(const opal_crypt_status_process_t *s, FILE *out)
{
    const opal_crypt_status_snapshot_t *m = &s->snapshot;
    const char state[2] = {s->state, '\0'};

    fprintf(out, "{\"rank\": %u, \"pid\": %u, \"uid\": %u, \"gone\": %s, ", s->who.rank, s->who.pid, s->who.uid,
            s->gone ? "true" : "false");
    text("host", s->who.host, out);
    text("method", s->who.method, out);
    text("pml", s->who.pml, out);
    text("transport", s->who.over_btl ? "btl" : "pml", out);
    text("protection", s->who.protection, out);
    text("aead", m->aead, out);
    text("state", state, out);
    text("phase", phases[m->phase], out);
    fprintf(out, "\"age\": %.3f, \"idle\": %.3f, \"receives\": %u, \"sends\": {\"frame\": %u, \"segments\": %u, \"node\": %u, \"ob1\": %u}, "
            "\"held\": %u, \"incomplete\": %s, \"peers_left_out\": %u,\n     \"waits\": [", mpicrypt_ps_age(s, m->updated),
            mpicrypt_ps_age(s, m->active), m->receives, m->sends[OPAL_CRYPT_STATUS_FRAME], m->sends[OPAL_CRYPT_STATUS_CHOPPED],
            m->sends[OPAL_CRYPT_STATUS_LOCAL], m->sends[OPAL_CRYPT_STATUS_BELOW], m->held, m->incomplete ? "true" : "false", m->peers_left_out);
    for (uint32_t i = 0; i < m->wait_count; ++i) {
        fputs(0 == i ? "" : ", ", out);
        json_wait(s, &m->waits[i], out);
    }
    fputs("],\n     \"peers\": [", out);
    for (uint32_t i = 0; i < m->peer_count; ++i) {
        fputs(0 == i ? "" : ", ", out);
        json_peer(&m->peers[i], out);
    }
    fputs("]}", out);
}

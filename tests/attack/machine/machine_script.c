/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Steps as text (machine.h).
 */
#include "machine.h"

static const char *const modes[MODES] = {"isend", "issend", "start"};
static const char *const ways[WAYS] = {"recv", "irecv", "test", "probe", "iprobe", "mprobe", "improbe", "persistent",
                                       "sendrecv", "cancel"};
static const char *const releases[RELEASES] = {"never", "before", "after"};

bool way_probes(int way)
{
    return PROBE == way || IPROBE == way || MPROBE == way || IMPROBE == way;
}

static int word_of(const char *word, const char *const words[], int count)
{
    for (int i = 0; i < count; i++) {
        if (0 == strcmp(word, words[i])) {
            return i;
        }
    }
    return -1;
}

static const char *number_or_star(int number, int star, char text[16])
{
    snprintf(text, 16, number == star ? "*" : "%d", number);
    return text;
}

void step_print(const step_t *step, char text[TEXT])
{
    char source[16], tag[16], room[32];
    int n = snprintf(text, TEXT, "step\n");

    for (int i = 0; i < step->sends_count; i++) {
        const send_t *s = &step->sends[i];
        n += snprintf(text + n, (size_t) (TEXT - n), "send %d %d %d %zu %s\n", s->from, s->comm, s->tag, s->bytes,
                      modes[s->mode]);
    }
    for (int i = 0; i < step->receives_count; i++) {
        const receive_t *r = &step->receives[i];
        snprintf(room, sizeof(room), PROBED == r->room ? "probed" : "%zu", r->room);
        n += snprintf(text + n, (size_t) (TEXT - n), "recv %s %d %s %s %s %s\n", ways[r->way], r->comm,
                      number_or_star(r->source, MPI_ANY_SOURCE, source), number_or_star(r->tag, MPI_ANY_TAG, tag), room,
                      r->gaps ? "gaps" : "flat");
    }
    for (int rank = 0; rank < RANKS; rank++) {
        if ('\0' != step->plans[rank][0]) {
            n += snprintf(text + n, (size_t) (TEXT - n), "attack %d %s\n", rank, step->plans[rank]);
        }
    }
    snprintf(text + n, (size_t) (TEXT - n), "release %s\nend\n", releases[step->release]);
}

static bool read_send(step_t *step, const char *line)
{
    send_t *s = &step->sends[step->sends_count++];
    char mode[16];

    if (step->sends_count > SENDS || 5 != sscanf(line, "send %d %d %d %zu %15s", &s->from, &s->comm, &s->tag, &s->bytes, mode)) {
        return false;
    }
    s->mode = word_of(mode, modes, MODES);
    return s->mode >= 0 && s->from > 0 && s->from < RANKS && s->comm >= 0 && s->comm < COMMS && s->tag >= 0;
}

static bool read_receive(step_t *step, const char *line)
{
    receive_t *r = &step->receives[step->receives_count++];
    char way[16], source[16], tag[16], room[32], layout[16];

    if (step->receives_count > RECEIVES
        || 6 != sscanf(line, "recv %15s %d %15s %15s %31s %15s", way, &r->comm, source, tag, room, layout)) {
        return false;
    }
    r->way = word_of(way, ways, WAYS);
    r->source = 0 == strcmp(source, "*") ? MPI_ANY_SOURCE : atoi(source);
    r->tag = 0 == strcmp(tag, "*") ? MPI_ANY_TAG : atoi(tag);
    r->room = 0 == strcmp(room, "probed") ? PROBED : strtoul(room, NULL, 10);
    r->gaps = 0 == strcmp(layout, "gaps");
    return r->way >= 0 && r->comm >= 0 && r->comm < COMMS && r->source < RANKS && (PROBED != r->room || way_probes(r->way));
}

static bool read_line(step_t *step, const char *line)
{
    char word[16] = "", plan[PLAN];
    int rank;

    if (0 == strncmp(line, "send ", 5)) {
        return read_send(step, line);
    }
    if (0 == strncmp(line, "recv ", 5)) {
        return read_receive(step, line);
    }
    if (2 == sscanf(line, "attack %d %199[^\n]", &rank, plan) && rank > 0 && rank < RANKS) {
        strcpy(step->plans[rank], plan);
        return true;
    }
    step->release = 1 == sscanf(line, "release %15s", word) ? word_of(word, releases, RELEASES) : -1;
    return step->release >= 0;
}

bool step_read(FILE *file, step_t *step)
{
    char line[512];
    bool inside = false;

    memset(step, 0, sizeof(*step));
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "#\n")] = '\0';
        if ('\0' == line[0]) {
            continue;
        }
        if (0 == strcmp(line, "step")) {
            MT_CHECK(!inside, "a step within a step");
            inside = true;
        } else if (0 == strcmp(line, "end")) {
            MT_CHECK(inside && step->receives_count > 0, "a step without receives");
            return true;
        } else {
            MT_CHECK(inside && read_line(step, line), "not understood: %s", line);
        }
    }
    MT_CHECK(!inside, "a step without an end");
    return false;
}

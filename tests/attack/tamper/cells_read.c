/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * tamper.table -> cells.
 */
#include "cells.h"

#include <ctype.h>

enum { HEADER = 8, FIRST_HEADER = 24, TAG = 16, TOKEN = 16, RANDOM_BYTES = 200 };

static const char *path;
static int line_number;
static cell_t *cells;
static int cells_count;

#define NEED(cond, what) do { if (!(cond)) { mt_fail(path, line_number, "%s", what); } } while (0)

/* What a message of this name has, and how large its frames are. */
static const struct kind {
    const char *name, *frame;
    size_t plain, header, payload, tag;
} kinds[] = {
    {"empty", "direct", 0, HEADER, 0, TAG},
    {"direct", "direct", 1000, HEADER, 1000, TAG},
    {"first", "first", 4096 + 2 * 20000 + 5000, FIRST_HEADER, 4096, TAG},
    {"segment", "segment", 4096 + 2 * 20000 + 5000, 0, 20000, TAG},
    {"local", "local", 1000, HEADER + TOKEN, 1000, 0},
    {"local-large", "local-large", 20000, HEADER + TOKEN, 0, 0},
    {"body", "body", 20000, 0, 20000, 0},
};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (0 == strcmp(kinds[i].name, name)) {
            return &kinds[i];
        }
    }
    NEED(false, "no such kind of message");
    return NULL;
}

/* FROM>TO:TAG[@COMM], ... ; a star for any. */
static int parts(char *text, part_t *list, int any_tag)
{
    int n = 0;
    for (char *word, *rest = text; NULL != (word = strtok_r(rest, ",", &rest)); n++) {
        char from[8], tag[8];
        NEED(n < CELL_PARTS, "too many messages");
        part_t *p = &list[n];
        p->comm = 0;
        NEED(sscanf(word, "%7[0-9*]>%d:%7[0-9*]@%d", from, &p->to, tag, &p->comm) >= 3, "bad message");
        p->from = '*' == from[0] ? MPI_ANY_SOURCE : atoi(from);
        p->tag = '*' == tag[0] ? any_tag : atoi(tag);
    }
    return n;
}

/* ---- rows that stand for many cells ---- */

static void add(const cell_t *like, int rank, const char *plan)
{
    cells = realloc(cells, (size_t) (cells_count + 1) * sizeof(*cells));
    MT_CHECK(NULL != cells, "memory");
    cells[cells_count] = *like;
    cells[cells_count].number = cells_count;
    if (NULL != plan) {
        snprintf(cells[cells_count].plans[rank], CELL_TEXT, "%d %s", cells_count, plan);
    }
    cells_count++;
}

static void flip(const cell_t *like, int rank, const char *before, long at, int mask)
{
    char plan[CELL_TEXT];
    snprintf(plan, sizeof(plan), "%s flip %ld %d", before, at, mask);
    add(like, rank, plan);
}

/* Every bit of the two bytes that say what a frame is, and one of every other
 * byte: or every bit there, too. */
static void flip_all(const cell_t *like, int rank, const char *before, long from, size_t n, bool all_bits)
{
    for (long at = from; at < from + (long) n; at++) {
        for (int bit = 0; bit < 8; bit++) {
            if (all_bits || at == 0 || at == 1 || bit == (at & 7)) {
                flip(like, rank, before, at, 1 << bit);
            }
        }
    }
}

/* `before` is "KIND NTH COUNT"; `what` what follows "flip". */
static void flips(const cell_t *like, int rank, const char *before, const char *what, const struct kind *kind, bool all_bits)
{
    uint64_t state = 12345;
    if (0 == strcmp(what, "header")) {
        flip_all(like, rank, before, 0, kind->header, all_bits);
    } else if (0 == strcmp(what, "tag")) {
        flip_all(like, rank, before, -(long) kind->tag, kind->tag, all_bits);
    } else if (0 == strcmp(what, "payload")) {
        for (int i = 0; i < RANDOM_BYTES; i++) {
            flip(like, rank, before, (long) (kind->header + mt_below(&state, kind->payload)), 1 << mt_below(&state, 8));
        }
    } else {
        NEED(false, "flip header, tag or payload");
    }
}

/* RANK/KIND/NTH/COUNT/ACTION[/A[/B]] [+ the same for another rank] */
static void attack(cell_t *cell, char *text, const struct kind *kind, bool all_bits)
{
    char *second = strchr(text, '+'), *p;
    int rank;
    if (NULL != second) {
        *second++ = '\0';
        for (p = second; *p; p++) {
            *p = '/' == *p ? ' ' : *p;
        }
        rank = atoi(second);
        NEED(isdigit((unsigned char) second[0]) && rank < 4, "bad rank of an attacker");
        snprintf(cell->plans[rank], CELL_TEXT, "%d %s", cells_count, strchr(second, ' ') + 1);
    }
    for (p = text; *p; p++) {
        *p = '/' == *p ? ' ' : *p;
    }
    rank = atoi(text);
    NEED(isdigit((unsigned char) text[0]) && rank < 4, "bad rank of an attacker");
    text = strchr(text, ' ') + 1;
    if (NULL != (p = strstr(text, " flip ")) && isalpha((unsigned char) p[6])) {
        *p = '\0';
        flips(cell, rank, text, p + 6, kind, all_bits);
    } else {
        add(cell, rank, text);
    }
}

cell_t *cells_read(const char *file, const char *section, bool all_bits, int *count)
{
    char line[512], name[32], sends[96], receives[96], plan[128], ends[64];
    FILE *f = fopen(file, "r");
    path = file;
    MT_CHECK(NULL != f, "cannot read %s", file);
    while (fgets(line, sizeof(line), f)) {
        cell_t cell = {.number = 0};
        const struct kind *kind;
        char *later;
        line_number++;
        line[strcspn(line, "#\n")] = '\0';
        snprintf(cell.row, sizeof(cell.row), "%s", line);
        if (1 > sscanf(line, "%31s", cell.section)) {
            continue;
        }
        NEED(7 == sscanf(line, "%31s %31s %31s %95s %95s %127s %63s", cell.section, name, cell.how, sends, receives, plan,
                         ends), "seven columns");
        if (0 != strcmp(cell.section, section)) {
            continue;
        }
        kind = kind_of(name);
        cell.bytes = kind->plain;
        cell.sends_count = parts(sends, cell.sends, 0);
        cell.receives_count = parts(receives, cell.receives, MPI_ANY_TAG);
        if ('!' == ends[strlen(ends) - 1]) {
            cell.stuck = true;
            ends[strlen(ends) - 1] = '\0';
        }
        later = strchr(ends, '>');
        if (NULL != later) {
            *later++ = '\0';
            snprintf(cell.later, sizeof(cell.later), "%s", later);
        }
        snprintf(cell.ends, sizeof(cell.ends), "%s", ends);
        NEED((int) strlen(cell.ends) == cell.receives_count, "one end for each receive");
        NEED('\0' == cell.later[0] || (int) strlen(cell.later) == cell.receives_count, "one later end for each receive");
        attack(&cell, plan, kind, all_bits);
    }
    fclose(f);
    *count = cells_count;
    return cells;
}

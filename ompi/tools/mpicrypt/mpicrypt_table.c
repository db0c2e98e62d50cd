/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A table of results, written three ways: aligned text, CSV (RFC 4180, one
 * header line), JSON (an array of objects).
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpicrypt.h"

typedef struct cell {
    enum { TEXT, NUMBER, COUNT, BYTES } kind;
    char *text;
    double number;
    size_t count;
} cell_t;

struct mpicrypt_table {
    const mpicrypt_column_t *columns;
    int column_count;
    cell_t *cells;
    size_t cell_count, cell_capacity;
};

mpicrypt_table_t *mpicrypt_table_new(const mpicrypt_column_t *columns)
{
    mpicrypt_table_t *table = mpicrypt_checked(calloc(1, sizeof(*table)));

    table->columns = columns;
    while (NULL != columns[table->column_count].name) {
        ++table->column_count;
    }
    return table;
}

void mpicrypt_table_free(mpicrypt_table_t *table)
{
    for (size_t i = 0; i < table->cell_count; ++i) {
        free(table->cells[i].text);
    }
    free(table->cells);
    free(table);
}

static void add(mpicrypt_table_t *table, cell_t cell)
{
    if (table->cell_count == table->cell_capacity) {
        table->cell_capacity = 0 == table->cell_capacity ? 256 : 2 * table->cell_capacity;
        table->cells = mpicrypt_checked(realloc(table->cells, table->cell_capacity * sizeof(cell_t)));
    }
    table->cells[table->cell_count++] = cell;
}

void mpicrypt_table_text(mpicrypt_table_t *table, const char *text)
{
    add(table, (cell_t){.kind = TEXT, .text = mpicrypt_checked(strdup(text))});
}

void mpicrypt_table_number(mpicrypt_table_t *table, double value)
{
    add(table, (cell_t){.kind = NUMBER, .number = value});
}

void mpicrypt_table_count(mpicrypt_table_t *table, size_t value)
{
    add(table, (cell_t){.kind = COUNT, .count = value});
}

void mpicrypt_table_bytes(mpicrypt_table_t *table, size_t value)
{
    add(table, (cell_t){.kind = BYTES, .count = value});
}

static size_t row_count(const mpicrypt_table_t *table)
{
    return table->cell_count / (size_t) table->column_count;
}

static const cell_t *at(const mpicrypt_table_t *table, size_t row, int column)
{
    return &table->cells[row * (size_t) table->column_count + (size_t) column];
}

/* ---- text ---- */

static const char *printed(const cell_t *cell, int decimals, char *buffer, size_t bytes)
{
    switch (cell->kind) {
    case TEXT:
        return cell->text;
    case COUNT:
        snprintf(buffer, bytes, "%zu", cell->count);
        return buffer;
    case BYTES:
        return mpicrypt_size_text(cell->count, buffer);
    default:
        if (!isfinite(cell->number)) {
            return "-";
        }
        snprintf(buffer, bytes, "%.*f", decimals, cell->number);
        return buffer;
    }
}

static int width_of(const mpicrypt_table_t *table, int column)
{
    char buffer[64];
    size_t width = strlen(table->columns[column].heading);

    for (size_t row = 0; row < row_count(table); ++row) {
        size_t bytes = strlen(printed(at(table, row, column), table->columns[column].decimals,
                                      buffer, sizeof(buffer)));
        width = bytes > width ? bytes : width;
    }
    return (int) width;
}

/* Row -1 is the heading.  Text is aligned left, numbers right. */
static void print_row(const mpicrypt_table_t *table, FILE *out, long row, const int *width)
{
    char buffer[64];
    const char *gap = "";

    for (int column = 0; column < table->column_count; ++column) {
        if (NULL == table->columns[column].heading) {
            continue;
        }
        bool left = 0 < row_count(table) && TEXT == at(table, 0, column)->kind;
        const char *text = row < 0 ? table->columns[column].heading
                         : printed(at(table, (size_t) row, column),
                                   table->columns[column].decimals, buffer, sizeof(buffer));
        fprintf(out, "%s%*s", gap, left ? -width[column] : width[column], text);
        gap = "  ";
    }
    fputc('\n', out);
}

void mpicrypt_table_print(const mpicrypt_table_t *table, FILE *out)
{
    int *width = mpicrypt_checked(calloc((size_t) table->column_count, sizeof(*width)));

    for (int column = 0; column < table->column_count; ++column) {
        if (NULL != table->columns[column].heading) {
            width[column] = width_of(table, column);
        }
    }
    for (long row = -1; row < (long) row_count(table); ++row) {
        print_row(table, out, row, width);
    }
    free(width);
}

/* ---- CSV ---- */

static void csv_text(FILE *out, const char *text)
{
    if (NULL == strpbrk(text, ",\"\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; '\0' != *text; ++text) {
        if ('"' == *text) {
            fputc('"', out);
        }
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_csv(const mpicrypt_table_t *table, FILE *out)
{
    for (int column = 0; column < table->column_count; ++column) {
        fprintf(out, "%s%s", 0 == column ? "" : ",", table->columns[column].name);
    }
    fputc('\n', out);
    for (size_t row = 0; row < row_count(table); ++row) {
        for (int column = 0; column < table->column_count; ++column) {
            const cell_t *cell = at(table, row, column);
            fputs(0 == column ? "" : ",", out);
            if (TEXT == cell->kind) {
                csv_text(out, cell->text);
            } else if (NUMBER != cell->kind) {
                fprintf(out, "%zu", cell->count);
            } else if (isfinite(cell->number)) {
                fprintf(out, "%.6g", cell->number);
            }
        }
        fputc('\n', out);
    }
}

int mpicrypt_writable(const char *path)
{
    if (NULL == path || 0 == strcmp(path, "-")) {
        return MPICRYPT_OK;
    }
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool made = file >= 0;
    file = made || EEXIST != errno ? file : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot write %s: %s", path, strerror(errno));
    }
    close(file);
    if (made) {
        unlink(path);
    }
    return MPICRYPT_OK;
}

int mpicrypt_table_csv_file(const mpicrypt_table_t *table, const char *path)
{
    if (0 == strcmp(path, "-")) {
        print_csv(table, stdout);
        return MPICRYPT_OK;
    }
    FILE *out = fopen(path, "w");
    if (NULL == out) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot write %s: %s", path, strerror(errno));
    }
    print_csv(table, out);
    bool bad = 0 != ferror(out);
    if (0 != fclose(out) || bad) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot write %s: %s", path, strerror(errno));
    }
    return MPICRYPT_OK;
}

/* ---- JSON ---- */

/* `line`: what a row begins with. */
static void json_rows(const mpicrypt_table_t *table, FILE *out, const char *line)
{
    fputc('[', out);
    for (size_t row = 0; row < row_count(table); ++row) {
        fprintf(out, "%s%s{", 0 == row ? "" : ",", line);
        for (int column = 0; column < table->column_count; ++column) {
            const cell_t *cell = at(table, row, column);
            fputs(0 == column ? "" : ", ", out);
            mpicrypt_json_text(out, table->columns[column].name);
            fputs(": ", out);
            if (TEXT == cell->kind) {
                mpicrypt_json_text(out, cell->text);
            } else if (NUMBER != cell->kind) {
                fprintf(out, "%zu", cell->count);
            } else if (isfinite(cell->number)) {
                fprintf(out, "%.6g", cell->number);
            } else {
                fputs("null", out);
            }
        }
        fputc('}', out);
    }
}

void mpicrypt_table_json(const mpicrypt_table_t *table, FILE *out)
{
    json_rows(table, out, "\n    ");
    fputs("\n  ]", out);
}

void mpicrypt_table_json_line(const mpicrypt_table_t *table, FILE *out)
{
    json_rows(table, out, "");
    fputc(']', out);
}

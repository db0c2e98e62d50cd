/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * --help: a manual page on the terminal, made from the tables that drive the
 * parser.
 */
#include <string.h>

#include "mpicrypt.h"

#define WIDTH 78

/* Every line indented. */
void mpicrypt_help_wrap(FILE *out, const char *text, size_t bytes, int indent)
{
    const char *end = text + bytes;
    int column = 0;

    while (text < end) {
        size_t word = 0;
        while (text + word < end && ' ' != text[word] && '\n' != text[word]) {
            ++word;
        }
        if (0 < word) {
            if (0 != column && column + 1 + (int) word > WIDTH) {
                fputc('\n', out);
                column = 0;
            }
            column += 0 == column ? fprintf(out, "%*s", indent, "") : fprintf(out, " ");
            column += (int) fwrite(text, 1, word, out);
        }
        text += word + (text + word < end);
    }
    fputc('\n', out);
}

static void paragraphs(FILE *out, const char *text, int indent)
{
    while ('\0' != *text) {
        const char *stop = strstr(text, "\n\n");
        size_t bytes = NULL != stop ? (size_t) (stop - text) : strlen(text);
        mpicrypt_help_wrap(out, text, bytes, indent);
        if (NULL == stop) {
            break;
        }
        fputc('\n', out);
        text = stop + 2;
    }
}

static void lines(FILE *out, const char *text)
{
    while ('\0' != *text) {
        size_t bytes = strcspn(text, "\n");
        fprintf(out, "       %.*s\n", (int) bytes, text);
        text += bytes + ('\n' == text[bytes]);
    }
}

static void exit_status(FILE *out)
{
    fputs("\nEXIT STATUS\n"
          "       0      success\n"
          "       1      the operation or a check failed\n"
          "       2      unknown verb or option, or a value that cannot be used\n"
          "       3      something required is not installed or cannot be reached\n", out);
}

void mpicrypt_help_program(FILE *out, const mpicrypt_verb_t *const *verbs)
{
    fputs("NAME\n"
          "       mpicrypt - keys, checks, files and measurements for encrypted MPI\n"
          "\nSYNOPSIS\n"
          "       mpicrypt VERB [OPTION]...\n"
          "       mpicrypt VERB --help\n"
          "       mpicrypt --version\n"
          "\nVERBS\n", out);
    for (int i = 0; NULL != verbs[i]; ++i) {
        fprintf(out, "       %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    exit_status(out);
}

void mpicrypt_help_option(FILE *out, const mpicrypt_option_t *option)
{
    fprintf(out, "\n       --%s%s%s\n", option->name, NULL != option->argument ? " " : "",
            NULL != option->argument ? option->argument : "");
    paragraphs(out, option->help, 14);
    if (NULL != option->fallback) {
        fprintf(out, "              Default: %s.\n", option->fallback);
    }
}

void mpicrypt_help_end(FILE *out)
{
    fputs("\n       --help\n              Print this page.\n", out);
    exit_status(out);
}

void mpicrypt_help_verb(FILE *out, const mpicrypt_verb_t *verb)
{
    fprintf(out, "NAME\n       mpicrypt %s - %s\n", verb->name, verb->summary);
    fprintf(out, "\nSYNOPSIS\n       mpicrypt %s %s\n", verb->name, verb->synopsis);
    fputs("\nDESCRIPTION\n", out);
    paragraphs(out, verb->description, 7);
    fputs("\nOPTIONS", out);
    for (const mpicrypt_option_t *option = verb->options; NULL != option->name; ++option) {
        mpicrypt_help_option(out, option);
    }
    mpicrypt_help_end(out);
    if (NULL != verb->examples) {
        fputs("\nEXAMPLES\n", out);
        lines(out, verb->examples);
    }
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Commands of a verb, such as "verify" of "file".  They have no table of their own: the verb's description says
 * all of it.
 *
 *     synopsis       alternatives between " | ", or on lines of their own; each | commands, with | between them | operands |
 *     description    a sentence that begins with commands ("encrypt and decrypt make ...") is about them, and so are
 *                    those after it, up to the next such sentence or the end of the paragraph
 *     options        "For new and rotate: ...": an option of these commands; without such a beginning, of all
 */
#include <string.h>

#include "mpicrypt.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define NAME LETTERS "-"

typedef struct command_words {
    const char *names, *operands;       /* operands up to `end` */
    size_t name_bytes;
    const char *end;
} command_words_t;

/* The next alternative of the synopsis that has commands. */
static bool next_alternative(const char **at, command_words_t *words)
{
    while (NULL != *at) {
        const char *begin = *at + strspn(*at, " "), *stop = strstr(begin, " | "), *line = strchr(begin, '\n');

        if (0 == strncmp(begin, "mpicrypt ", 9)) {              /* a further line: "mpicrypt VERB COMMAND ..." */
            begin += 9 + strcspn(begin + 9, " ");
            begin += strspn(begin, " ");
        }
        stop = NULL != line && (NULL == stop || line < stop) ? line : stop;
        *at = NULL == stop ? NULL : stop + ('\n' == *stop ? 1 : 3);
        words->names = begin;
        words->end = NULL == stop ? begin + strlen(begin) : stop;
        words->name_bytes = strspn(begin, NAME "|");
        words->operands = begin + words->name_bytes + (' ' == begin[words->name_bytes]);
        if (0 != strspn(begin, LETTERS) && (begin + words->name_bytes == words->end || ' ' == begin[words->name_bytes])) {
            return true;
        }
    }
    return false;
}

static bool named_in(const command_words_t *words, const char *name, size_t bytes)
{
    const char *at = words->names, *end = words->names + words->name_bytes;

    while (at < end) {
        size_t here = strcspn(at, "| ");
        here = here < (size_t) (end - at) ? here : (size_t) (end - at);
        if (here == bytes && 0 == memcmp(at, name, bytes)) {
            return true;
        }
        at += here + 1;
    }
    return false;
}

static bool command_find(const mpicrypt_verb_t *verb, const char *name, size_t bytes, command_words_t *words)
{
    const char *at = verb->synopsis;

    while (bytes > 0 && next_alternative(&at, words)) {
        if (named_in(words, name, bytes)) {
            return true;
        }
    }
    return false;
}

const char *mpicrypt_command_of(const mpicrypt_verb_t *verb, int argc, char **argv)
{
    command_words_t words;

    for (int i = 0; i < argc; ++i) {
        if (command_find(verb, argv[i], strlen(argv[i]), &words)) {
            return argv[i];
        }
    }
    return NULL;
}

/* Does the text begin with commands, among them this one?  *any: with commands at all. */
static bool list_names(const mpicrypt_verb_t *verb, const char *text, const char *command, bool *any)
{
    command_words_t words;
    bool found = false;

    *any = false;
    for (;;) {
        size_t bytes = strspn(text, NAME);
        bool joins = (3 == bytes && 0 == memcmp(text, "and", 3)) || (2 == bytes && 0 == memcmp(text, "or", 2));

        if (!joins && !command_find(verb, text, bytes, &words)) {
            return found;
        }
        *any = *any || !joins;
        found = found || (!joins && strlen(command) == bytes && 0 == memcmp(text, command, bytes));
        text += bytes + strspn(text + bytes, ", ");
    }
}

static bool command_takes(const mpicrypt_verb_t *verb, const char *command, const mpicrypt_option_t *option)
{
    bool any = false, names = 0 == strncmp(option->help, "For ", 4) && list_names(verb, option->help + 4, command, &any);

    return names || !any;
}

/* ---- wrong arguments ---- */

static int needed_operands(const command_words_t *words)
{
    int count = 0;

    for (const char *at = words->operands; at < words->end; at += strcspn(at, " "), at += strspn(at, " ")) {
        count += '[' != *at && '-' != *at;
    }
    return count;
}

/* All commands, with commas. */
static const char *command_list(const mpicrypt_verb_t *verb)
{
    static char list[512];
    const char *at = verb->synopsis;
    command_words_t words;
    size_t used = 0;

    while (next_alternative(&at, &words)) {
        for (size_t i = 0; i <= words.name_bytes && used + 4 < sizeof(list); ++i) {
            bool ends = i == words.name_bytes || '|' == words.names[i];
            list[used] = ends ? ',' : words.names[i];
            list[used + 1] = ' ';
            used += ends ? 2 : 1;
        }
    }
    list[used > 1 ? used - 2 : 0] = '\0';
    return list;
}

int mpicrypt_command_check(const mpicrypt_verb_t *verb, const bool *given, int operand_count, char **operands)
{
    command_words_t words;
    const char *at = verb->synopsis;

    if (0 == operand_count && next_alternative(&at, &words)) {
        return mpicrypt_error(MPICRYPT_USAGE, "which command? %s; see 'mpicrypt %s --help'", command_list(verb), verb->name);
    }
    if (0 == operand_count || !command_find(verb, operands[0], strlen(operands[0]), &words)) {
        return MPICRYPT_OK;             /* the verb may know more about it */
    }
    for (int i = 0; NULL != verb->options[i].name; ++i) {
        if (given[i] && !command_takes(verb, operands[0], &verb->options[i])) {
            const char *whom = verb->options[i].help + 4;
            return mpicrypt_error(MPICRYPT_USAGE, "--%s is for %.*s, not for %s", verb->options[i].name, (int) strcspn(whom, ":"),
                                  whom, operands[0]);
        }
    }
    if (operand_count - 1 < needed_operands(&words)) {
        return mpicrypt_error(MPICRYPT_USAGE, "%s needs %.*s", operands[0], (int) (words.end - words.operands), words.operands);
    }
    return MPICRYPT_OK;
}

int mpicrypt_command_wrong(const mpicrypt_verb_t *verb, int operand_count, char **operands)
{
    command_words_t words;

    if (!command_find(verb, operands[0], strlen(operands[0]), &words)) {
        return mpicrypt_error(MPICRYPT_USAGE, "there is no command '%s': %s; see 'mpicrypt %s --help'", operands[0],
                              command_list(verb), verb->name);
    }
    return mpicrypt_error(MPICRYPT_USAGE, "%d operand(s) do not fit here: %s%s%.*s; see 'mpicrypt %s %s --help'", operand_count - 1,
                          operands[0], words.operands < words.end ? " " : "", (int) (words.end - words.operands), words.operands,
                          verb->name, operands[0]);
}

/* ---- help ---- */

/* Print what the description says about the command, paragraph by paragraph; false: nothing. */
static bool command_sentences(FILE *out, const mpicrypt_verb_t *verb, const char *command)
{
    const char *at = verb->description;
    bool about = false, said = false, any;
    char text[4096];
    size_t used = 0;

    for (;;) {
        const char *stop = strstr(at, ". "), *paragraph = strstr(at, "\n\n");
        bool ends = NULL != paragraph && (NULL == stop || paragraph < stop);
        size_t bytes = ends ? (size_t) (paragraph - at) : NULL != stop ? (size_t) (stop + 1 - at) : strlen(at);
        bool names = list_names(verb, at, command, &any);

        about = any ? names : about;
        if (about && used + bytes + 1 < sizeof(text)) {
            memcpy(text + used, at, bytes);
            used += bytes;
            text[used++] = ' ';
        }
        at += bytes + (ends ? 2 : ' ' == at[bytes]);
        if (ends || '\0' == *at) {
            about = false;
            if (used > 0) {
                fputs(said ? "\n" : "", out);
                mpicrypt_help_wrap(out, text, used, 7);
                said = true;
                used = 0;
            }
        }
        if ('\0' == *at) {
            return said;
        }
    }
}

static void command_examples(FILE *out, const mpicrypt_verb_t *verb, const char *command)
{
    char start[128];
    bool any = false;

    snprintf(start, sizeof(start), "mpicrypt %s %s ", verb->name, command);
    for (const char *at = verb->examples; NULL != at && '\0' != *at; at += strcspn(at, "\n"), at += '\n' == *at) {
        const char *found = strstr(at, start);
        size_t bytes = strcspn(at, "\n");
        if (NULL != found && found < at + bytes) {
            fprintf(out, "%s       %.*s\n", any ? "" : "\nEXAMPLES\n", (int) bytes, at);
            any = true;
        }
    }
}

void mpicrypt_help_command(FILE *out, const mpicrypt_verb_t *verb, const char *command)
{
    command_words_t words;

    if (!command_find(verb, command, strlen(command), &words)) {
        mpicrypt_help_verb(out, verb);
        return;
    }
    fprintf(out, "SYNOPSIS\n       mpicrypt %s %s%s%.*s [OPTION]...\n\nDESCRIPTION\n", verb->name, command,
            words.operands < words.end ? " " : "", (int) (words.end - words.operands), words.operands);
    if (command_sentences(out, verb, command)) {
        fputc('\n', out);
    }
    fprintf(out, "       'mpicrypt %s --help' describes all commands.\n\nOPTIONS", verb->name);
    for (const mpicrypt_option_t *option = verb->options; NULL != option->name; ++option) {
        if (command_takes(verb, command, option)) {
            mpicrypt_help_option(out, option);
        }
    }
    mpicrypt_help_end(out);
    command_examples(out, verb, command);
}

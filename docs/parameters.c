/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Prints docs/parameters.rst: every parameter of the table (base/params.def), in its order, and every
 * performance variable of ours, as MPI_T tells of them.
 *
 *     mpicc -I . -o parameters docs/parameters.c
 *     mpirun -n 2 --map-by node --mca pml crypt ./parameters > docs/parameters.rst
 */
#include <mpi.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/algorithms.h"

enum { NAME_BYTES = 256, HELP_BYTES = 2048, MOST = 256, WIDTH = 88 };

typedef struct entry {
    char name[NAME_BYTES], help[HELP_BYTES], extra[HELP_BYTES];
    int level; /* 0: a performance variable */
} entry_t;

/* Every parameter.  Level 0: Open MPI's, of any BTL. */
#define ROW(name, type, least, most, words, start, level, help) {name, #type, words, start, level, help},
static const struct {
    const char *name, *type, *words, *start;
    int level;
    const char *help;
} rows[] = {
#include "opal/mca/common/crypt/base/params.def"
};

/* Whose performance variables are listed, in this order. */
static const char *const prefixes[] = {"crypt_", "coll_cryptag_"};
enum { PREFIXES = sizeof(prefixes) / sizeof(prefixes[0]) };

static const struct {
    int least, most;
    const char *title, *intro;
} groups[] = {
    {1, 3, "For users", "What a user may need (:doc:`quickstart`, :doc:`mpi-io`)."},
    {4, 6, "For sites",
     "What a site sets once: how processes authenticate each other and where keys are\n"
     "(:doc:`install`, :doc:`security`), what a failure does, how files are kept (:doc:`mpi-io`)."},
    {7, 9, "For developers",
     "How messages and collectives are cut and sent.  ``mpicrypt tune`` writes those that fit your\n"
     "nodes (:doc:`performance`, :doc:`model`, :doc:`collectives`); tests set the others."},
    {0, 0, "Performance variables", "Of one process, through MPI_T (:doc:`report`)."},
};
enum { GROUPS = sizeof(groups) / sizeof(groups[0]) };

static entry_t entries[MOST];
static int entry_count;

static void check(int rc, const char *what)
{
    if (MPI_SUCCESS != rc) {
        fprintf(stderr, "parameters: %s: %d\n", what, rc);
        exit(1);
    }
}

static int prefix_of(const char *name)
{
    for (int i = 0; i < PREFIXES; ++i) {
        if (0 == strncmp(name, prefixes[i], strlen(prefixes[i]))) {
            return i;
        }
    }
    return -1;
}

static entry_t *new_entry(const char *name, const char *help)
{
    for (int i = 0; i < entry_count; ++i) {
        if (0 == strcmp(entries[i].name, name)) {
            return NULL;
        }
    }
    if (MOST == entry_count) {
        fprintf(stderr, "parameters: more than %d\n", MOST);
        exit(1);
    }
    entry_t *entry = &entries[entry_count++];
    memset(entry, 0, sizeof(*entry));
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    snprintf(entry->help, sizeof(entry->help), "%s", help);
    return entry;
}

/* ---- values ---- */

/* Takes "(default: X)" or "Default: X" off the end of a help text.  What stands
 * there is used where the value itself says nothing, as for names of files. */
static void cut_default(char *help, char *said)
{
    static const char *const marks[] = {" (default: ", " Default: "};

    for (int i = 0; i < 2; ++i) {
        char *mark = strstr(help, marks[i]);
        if (NULL != mark) {
            snprintf(said, 2 * NAME_BYTES, "%.*s", NAME_BYTES, mark + strlen(marks[i]));
            said[strcspn(said, ")")] = '\0';
            *mark = '\0';
        }
    }
}

/* Words as a list, each in literal quotes. */
static void list_words(const char *words, char *list, size_t bytes)
{
    size_t used = (size_t) snprintf(list, bytes, "; one of ");

    for (const char *word = words; '\0' != *word; word += strcspn(word, " "), word += strspn(word, " ")) {
        used += (size_t) snprintf(list + used, bytes - used, "%s``%.*s``", word == words ? "" : ", ",
                                  (int) strcspn(word, " "), word);
    }
}

static void collect_parameters(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        char said[2 * NAME_BYTES] = "not set", list[HELP_BYTES] = "";

        if (0 == rows[i].level || 0 == strncmp(rows[i].name, "btl_crypt_", 10)) {
            continue;
        }
        entry_t *entry = new_entry(rows[i].name, rows[i].help);
        entry->level = rows[i].level;
        cut_default(entry->help, said);
        if (NULL != rows[i].start && '\0' != *rows[i].start) {
            snprintf(said, sizeof(said), "``%s``", rows[i].start);
        }
        if (NULL != rows[i].words || 0 == strcmp(rows[i].type, "FLAG")) {
            list_words(NULL != rows[i].words ? rows[i].words : "0 1", list, sizeof(list));
        }
        snprintf(entry->extra, sizeof(entry->extra), "Default: %s%.1000s; level %d.", said, list, entry->level);
    }
}

/* ---- MPI_T ---- */

static void collect_metrics(void)
{
    int count, verbosity, class, bind, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;

    check(MPI_T_pvar_get_num(&count), "MPI_T_pvar_get_num");
    for (int i = 0; i < count; ++i) {
        char name[NAME_BYTES], help[HELP_BYTES];
        int name_length = sizeof(name), help_length = sizeof(help);
        if (MPI_SUCCESS == MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &class, &type, &values, help,
                                               &help_length, &bind, &readonly, &continuous, &atomic)
            && prefix_of(name) >= 0) {
            new_entry(name, help);
        }
    }
}

/* ---- the page ---- */

/* Words that hold a star or end in an underscore mean something to Sphinx. */
static void print_word(const char *word, int bytes)
{
    for (int i = 0; i < bytes; ++i) {
        if ('*' == word[i] || ('_' == word[i] && (i + 1 == bytes || ',' == word[i + 1]))) {
            putchar('\\');
        }
        putchar(word[i]);
    }
}

static void print_wrapped(const char *text)
{
    int column = 0;

    while ('\0' != *text) {
        int bytes = (int) strcspn(text, " \n");
        if (bytes > 0) {
            bool first = 0 == column;
            if (!first && column + 1 + bytes > WIDTH) {
                putchar('\n');
                first = true;
            }
            column = (first ? 4 : column + 1) + bytes;
            printf("%s", first ? "    " : " ");
            print_word(text, bytes);
        }
        text += bytes + ('\0' != text[bytes]);
    }
    putchar('\n');
}

static void print_title(const char *title, char line)
{
    printf("\n%s\n", title);
    for (size_t i = 0; i < strlen(title); ++i) {
        putchar(line);
    }
    putchar('\n');
}

static void print_entry(entry_t *entry)
{
    size_t end = strlen(entry->help);

    while (end > 0 && ('.' == entry->help[end - 1] || ' ' == entry->help[end - 1])) {
        entry->help[--end] = '\0';
    }
    strcat(entry->help, ".");
    printf("\n``%s``\n", entry->name);
    print_wrapped(entry->help);
    if ('\0' != entry->extra[0]) {
        print_wrapped(entry->extra);
    }
}

static int by_prefix(const void *a, const void *b)
{
    const entry_t *one = a, *other = b;
    int order = prefix_of(one->name) - prefix_of(other->name);

    return 0 != order ? order : strcmp(one->name, other->name);
}

static void print_groups(void)
{
    for (int i = 0; i < GROUPS; ++i) {
        print_title(groups[i].title, '-');
        puts(groups[i].intro);
        for (int k = 0; k < entry_count; ++k) {
            if (entries[k].level >= groups[i].least && entries[k].level <= groups[i].most) {
                print_entry(&entries[k]);
            }
        }
    }
}

int main(int argc, char **argv)
{
    int provided, rank, other = -1;

    check(MPI_Init(&argc, &argv), "MPI_Init");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check(MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 0, &other, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE), "MPI_Sendrecv");
    if (0 != rank) {
        MPI_Finalize();
        return other != 1 - rank;
    }
    check(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), "MPI_T_init_thread");
    puts("..  Made by docs/parameters.c from crypt/base/params.def; a test compares.\n\n"
         "Parameters\n"
         "==========\n\n"
         "Every parameter of ompi-crypt, but those of ``btl/crypt`` (``btl_crypt_...``), which\n"
         ":doc:`transport` describes.  They are set as all of Open MPI's: ``mpirun --mca NAME\n"
         "VALUE``, ``OMPI_MCA_NAME=VALUE`` in the environment, or a line ``NAME = VALUE`` in a\n"
         "file (``examples/mca-params.conf``).  Most jobs need none but ``--mca pml crypt``.\n"
         "``ompi_info --param pml crypt --level 9`` prints those of one component.  Those that begin\n"
         "with ``crypt_`` belong to none, and ``ompi_info --all`` leaves them out; ``ompi_info --type\n"
         "string --level 9`` has them among all parameters of that type, as have the types ``int``,\n"
         "``unsigned_int`` and ``bool``.  Levels 1 to 3 are for users, 4 to 6 for sites, 7 to 9 for developers.\n"
         "A name that does not exist, or a value that cannot be read, aborts the job\n"
         "(:doc:`troubleshooting`); ``mpicrypt doctor`` finds both.");
    collect_parameters();
    const int parameters = entry_count;
    collect_metrics();
    qsort(entries + parameters, (size_t) (entry_count - parameters), sizeof(entries[0]), by_prefix);
    print_groups();
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}

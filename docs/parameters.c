/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Prints docs/parameters.rst: every parameter and every performance variable
 * of ours that Open MPI knows, as MPI_T tells of them.
 *
 *     mpicc -o parameters docs/parameters.c
 *     mpirun -n 2 --map-by node --mca pml crypt ./parameters > docs/parameters.rst
 *
 * Two processes on two nodes, as a provider is loaded when there is something to
 * seal.  What is set where it runs would stand there as a default: the key is to be at
 * its usual place, and no parameter set.
 */
#include <mpi.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256, HELP_BYTES = 2048, MOST = 256, WIDTH = 88 };

typedef struct entry {
    char name[NAME_BYTES], help[HELP_BYTES], extra[HELP_BYTES];
    int level; /* 0: a performance variable */
    bool hidden;
} entry_t;

/* Whose names are listed, in this order. */
static const char *const prefixes[] = {"crypt_", "pml_crypt_", "coll_cryptag_", "fs_crypt_", "aead"};
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

typedef union value {
    int i;
    unsigned u;
    unsigned long ul;
    unsigned long long ull;
    char text[HELP_BYTES];
} value_t;

/* The names that an enumeration allows; `chosen` gets that of `number`. */
static void enum_names(MPI_T_enum values, int number, char *names, size_t bytes, char *chosen)
{
    char name[NAME_BYTES];
    int length = sizeof(name), count, value;

    check(MPI_T_enum_get_info(values, &count, name, &length), "MPI_T_enum_get_info");
    names[0] = '\0';
    for (int i = 0; i < count; ++i) {
        length = sizeof(name);
        check(MPI_T_enum_get_item(values, i, &value, name, &length), "MPI_T_enum_get_item");
        size_t used = strlen(names);
        snprintf(names + used, bytes - used, "%s``%s``", 0 == i ? "" : ", ", name);
        if (value == number) {
            snprintf(chosen, NAME_BYTES, "%s", name);
        }
    }
}

static void number_text(MPI_Datatype type, const value_t *value, char *text, size_t bytes)
{
    if (MPI_INT == type) {
        snprintf(text, bytes, "%d", value->i);
    } else if (MPI_UNSIGNED == type) {
        snprintf(text, bytes, "%u", value->u);
    } else if (MPI_UNSIGNED_LONG == type) {
        snprintf(text, bytes, "%lu", value->ul);
    } else if (MPI_UNSIGNED_LONG_LONG == type) {
        snprintf(text, bytes, "%llu", value->ull);
    } else {
        snprintf(text, bytes, "?");
    }
}

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

static void describe(entry_t *entry, int index, MPI_Datatype type, MPI_T_enum values)
{
    char chosen[NAME_BYTES] = "", names[HELP_BYTES] = "", said[2 * NAME_BYTES] = "";
    MPI_T_cvar_handle handle;
    value_t value = {.ull = 0};
    int count;

    check(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count), "MPI_T_cvar_handle_alloc");
    check(MPI_T_cvar_read(handle, &value), "MPI_T_cvar_read");
    check(MPI_T_cvar_handle_free(&handle), "MPI_T_cvar_handle_free");
    if (MPI_T_ENUM_NULL != values) {
        enum_names(values, value.i, names, sizeof(names), chosen);
        /* As users write it, whatever a series calls the values of a boolean. */
        if (NULL != strstr(names, "``true``")) {
            snprintf(names, sizeof(names), "``0``, ``1``");
            snprintf(chosen, sizeof(chosen), "%d", value.i);
        }
    } else if (MPI_CHAR == type) {
        snprintf(chosen, sizeof(chosen), "%.*s", NAME_BYTES - 1, value.text);
    } else {
        number_text(type, &value, chosen, sizeof(chosen));
    }
    cut_default(entry->help, said);
    if ('\0' != chosen[0]) {
        snprintf(said, sizeof(said), "``%s``", chosen);
    }
    snprintf(entry->extra, sizeof(entry->extra), "Default: %s%s%.1000s; level %d.", '\0' == said[0] ? "not set" : said,
             '\0' == names[0] ? "" : "; one of ", names, entry->level);
}

/* ---- what does not belong there ---- */

static bool ends_in(const char *text, const char *end)
{
    size_t bytes = strlen(text), end_bytes = strlen(end);

    return bytes >= end_bytes && 0 == strcmp(text + bytes - end_bytes, end);
}

/* Versions of components. */
static void hide(void)
{
    for (int i = 0; i < entry_count; ++i) {
        entry_t *entry = &entries[i];
        entry->hidden = ends_in(entry->name, "_major_version") || ends_in(entry->name, "_minor_version")
                        || ends_in(entry->name, "_release_version");
        if (0 == strcmp(entry->name, "aead")) {
            snprintf(entry->help, sizeof(entry->help), "Provider: auto, the name of one, or ^NAME, which is auto "
                     "without it");
            snprintf(entry->extra, sizeof(entry->extra), "Default: auto; level 2.");
        }
    }
}

/* ---- MPI_T ---- */

/* MPI_T's nine levels, as Open MPI counts them. */
static int level_of(int verbosity)
{
    static const int levels[] = {MPI_T_VERBOSITY_USER_BASIC,    MPI_T_VERBOSITY_USER_DETAIL,   MPI_T_VERBOSITY_USER_ALL,
                                 MPI_T_VERBOSITY_TUNER_BASIC,   MPI_T_VERBOSITY_TUNER_DETAIL,  MPI_T_VERBOSITY_TUNER_ALL,
                                 MPI_T_VERBOSITY_MPIDEV_BASIC,  MPI_T_VERBOSITY_MPIDEV_DETAIL, MPI_T_VERBOSITY_MPIDEV_ALL};

    for (int i = 0; i < 9; ++i) {
        if (levels[i] == verbosity) {
            return i + 1;
        }
    }
    return 0;
}

static void collect_parameters(void)
{
    int count, verbosity, bind, scope;
    MPI_Datatype type;
    MPI_T_enum values;

    check(MPI_T_cvar_get_num(&count), "MPI_T_cvar_get_num");
    for (int i = 0; i < count; ++i) {
        char name[NAME_BYTES], help[HELP_BYTES];
        int name_length = sizeof(name), help_length = sizeof(help);
        if (MPI_SUCCESS == MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &values, help, &help_length,
                                               &bind, &scope)
            && prefix_of(name) >= 0) {
            entry_t *entry = new_entry(name, help);
            if (NULL != entry) {
                entry->level = level_of(verbosity);
                describe(entry, i, type, values);
            }
        }
    }
}

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
    hide();
    qsort(entries, (size_t) entry_count, sizeof(entries[0]), by_prefix);
    for (int i = 0; i < GROUPS; ++i) {
        print_title(groups[i].title, '-');
        puts(groups[i].intro);
        for (int k = 0; k < entry_count; ++k) {
            if (entries[k].level >= groups[i].least && entries[k].level <= groups[i].most && !entries[k].hidden) {
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
    puts("..  Made by docs/parameters.c from what the components register; a test compares.\n\n"
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
    collect_metrics();
    print_groups();
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}

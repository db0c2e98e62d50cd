/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Misspelt parameters (crypt/base/parameter.h).  Open MPI ignores names that are not registered, so
 * a job with "--mca fs_crypt_key_labl site" would write plaintext.  Here an unknown name
 *
 *     from the environment or the command line    ends the job
 *     from a parameter file                       ends a job that asks for any component of
 *                                                 ours, and is a warning in all others: a
 *                                                 site's typo must not end every job
 *
 * and so does a value that is not a number, or neither on nor off, where that is required.
 *
 * It runs before anything else of ours, in 4.1 even before the process has its runtime, and
 * also in jobs that do not encrypt.  It registers nothing: it looks for unknown names, and
 * Open MPI would treat a registered name as known from then on.
 */
#include "cryptmpi.h"
#include "cryptmpi_param_files.h"
#include "cryptmpi_spelling.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "opal/mca/base/mca_base_var.h"

#define HELP "help-ompi-common-cryptmpi.txt"

enum { TEXT_BYTES = 4096 };

typedef ompi_common_cryptmpi_param_files_t files_t;

/* ---- the names ---- */

typedef struct {
    const files_t *files;
    ompi_common_cryptmpi_spelling_visit_t visit;
    void *argument;
} walk_t;

/* The first parameter about messages that was given for this job. */
static char given[64];

/* A value that a file sets, too, came from there, or at least not from this user alone. */
static void visit_environment(const char *name, const char *value, opal_crypt_parameter_t kind,
                              const char *nearest, void *argument)
{
    const walk_t *walk = argument;
    const mca_base_var_file_value_t *said = ompi_common_cryptmpi_param_files_value(walk->files, name);

    if (NULL != said && NULL != said->mbvfv_value && 0 == strcmp(said->mbvfv_value, value)) {
        return;
    }
    if ((OPAL_CRYPT_PARAMETER_KNOWN == kind || OPAL_CRYPT_PARAMETER_RANGE == kind) && '\0' == given[0]
        && opal_crypt_parameter_of_messages(name)) {
        snprintf(given, sizeof(given), "%s", name);
    }
    if (OPAL_CRYPT_PARAMETER_KNOWN != kind) {
        walk->visit(name, value, kind, nearest, NULL, walk->argument);
    }
}

static void each(const files_t *files, ompi_common_cryptmpi_spelling_visit_t visit, void *argument)
{
    walk_t walk = {files, visit, argument};
    const mca_base_var_file_value_t *value;

    opal_crypt_parameter_environment(visit_environment, &walk);
    OPAL_LIST_FOREACH(value, &files->values, mca_base_var_file_value_t) {
        const char *nearest;
        const opal_crypt_parameter_t kind = opal_crypt_parameter(value->mbvfv_var, value->mbvfv_value, &nearest);
        if (OPAL_CRYPT_PARAMETER_FOREIGN != kind && OPAL_CRYPT_PARAMETER_KNOWN != kind) {
            visit(value->mbvfv_var, NULL == value->mbvfv_value ? "" : value->mbvfv_value, kind, nearest,
                  value->mbvfv_file, argument);
        }
    }
}

void ompi_common_cryptmpi_spelling_each(ompi_common_cryptmpi_spelling_visit_t visit, void *argument)
{
    files_t files;

    ompi_common_cryptmpi_param_files_read(&files);
    each(&files, visit, argument);
    ompi_common_cryptmpi_param_files_free(&files);
}

/* ---- does this job ask for us? ---- */

static const char *value_of(const files_t *files, const char *name)
{
    char variable[128];
    const mca_base_var_file_value_t *value = ompi_common_cryptmpi_param_files_value(files, name);

    snprintf(variable, sizeof(variable), "OMPI_MCA_%s", name);
    const char *text = getenv(variable);
    return NULL != text ? text : NULL != value && NULL != value->mbvfv_value ? value->mbvfv_value : "";
}

static bool lists(const files_t *files, const char *framework, const char *component)
{
    const char *list = value_of(files, framework);

    return '^' != *list && opal_cryptproc_listed(list, component, strlen(component));
}

static bool is_on(const char *text)
{
    return '\0' != *text && 0 != strcmp(text, "0") && 0 != strcasecmp(text, "false") && 0 != strcasecmp(text, "no")
           && 0 != strcasecmp(text, "f") && 0 != strcasecmp(text, "n") && 0 != strcasecmp(text, "disabled");
}

static bool asked_for(const files_t *files)
{
    return lists(files, "pml", "crypt") || lists(files, "btl", "crypt") || lists(files, "coll", "cryptag")
           || lists(files, "fs", "crypt") || lists(files, "fbtl", "crypt") || '\0' != *value_of(files, "fs_crypt_key_label")
           || is_on(value_of(files, "fs_crypt_require"));
}

/* ---- what a site wants ---- */

static bool required;

/* Open MPI 5.0 and later skip the override file where mpirun has read the others. */
static bool is_required(const files_t *files)
{
    static const char name[] = "crypt_required";
    const mca_base_var_file_value_t *said = ompi_common_cryptmpi_param_files_value(files, name);

    if (NULL != said && said->mbvfv_file == files->override) {
        return NULL != said->mbvfv_value && is_on(said->mbvfv_value);
    }
    return is_on(value_of(files, name));
}

bool ompi_common_cryptmpi_required(void)
{
    return required;
}

const char *ompi_common_cryptmpi_given(void)
{
    return '\0' == given[0] ? NULL : given;
}

/* ---- messages about them ---- */

typedef struct {
    bool asked_for, unknown_ends, unreadable_ends;
    char unknown[TEXT_BYTES], unreadable[TEXT_BYTES], near[TEXT_BYTES];     /* lines for each name */
} verdict_t;

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list list;

    va_start(list, format);
    vsnprintf(text + used, TEXT_BYTES - used, format, list);
    va_end(list);
}

static const char *origin(const char *file)
{
    return NULL == file ? "the environment or the command line" : file;
}

static void add_name(char *text, const char *name, const char *nearest, const char *file)
{
    add(text, "  %.200s\n", name);
    if (NULL != nearest) {
        add(text, "      did you mean %s?\n", nearest);
    }
    add(text, "      from: %.1000s\n", origin(file));
}

static void judge(const char *name, const char *value, opal_crypt_parameter_t kind, const char *nearest,
                  const char *file, void *argument)
{
    verdict_t *verdict = argument;
    const bool ends = NULL == file || verdict->asked_for;

    switch (kind) {
    case OPAL_CRYPT_PARAMETER_NEAR:
        add_name(verdict->near, name, nearest, file);
        break;
    case OPAL_CRYPT_PARAMETER_UNKNOWN:
        add_name(verdict->unknown, name, nearest, file);
        verdict->unknown_ends = verdict->unknown_ends || ends;
        break;
    case OPAL_CRYPT_PARAMETER_UNREADABLE:
        add(verdict->unreadable, "  %s = %.200s\n", name, value);
        if (NULL != nearest) {
            add(verdict->unreadable, "      is none of: %s\n", nearest);
        }
        add(verdict->unreadable, "      from: %.1000s\n", origin(file));
        verdict->unreadable_ends = verdict->unreadable_ends || ends;
        break;
    default:    /* a number out of bounds: reported by the component that uses it */
        break;
    }
}

/* Only the first process of a node shows it: there is no runtime yet that could aggregate. */
static void show(const char *topic, const char *names)
{
    (void) opal_cryptproc_show_once(HELP, topic, opal_process_info.nodename, names);
}

void ompi_common_cryptmpi_spelling_check(void)
{
    static bool checked;
    static verdict_t verdict;
    files_t files;

    if (checked) {
        return;
    }
    checked = true;
    ompi_common_cryptmpi_param_files_read(&files);
    verdict.asked_for = asked_for(&files);
    required = is_required(&files);
    each(&files, judge, &verdict);
    ompi_common_cryptmpi_param_files_free(&files);
    if ('\0' != verdict.near[0]) {
        show("parameter-near", verdict.near);
    }
    if ('\0' != verdict.unknown[0]) {
        show(verdict.unknown_ends ? "parameter-unknown" : "parameter-unknown-warning", verdict.unknown);
    }
    if ('\0' != verdict.unreadable[0]) {
        show(verdict.unreadable_ends ? "parameter-unreadable" : "parameter-unreadable-warning", verdict.unreadable);
    }
    if (verdict.unknown_ends || verdict.unreadable_ends) {
        exit(1);    /* as Open MPI does where MPI_Init fails before there is a runtime */
    }
}

void ompi_common_cryptmpi_refuse_list(void)
{
    (void) opal_cryptproc_show_once(HELP, "pml-list", opal_process_info.nodename);
    exit(1);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Are the parameters that are set here spelt right, and can their values be used?
 */
#include "check.h"

#include "ompi/mca/common/cryptmpi/cryptmpi_spelling.h"

typedef struct {
    mpicrypt_report_t *report;
    int found;
} search_t;

static const char *origin(const char *file)
{
    return NULL == file ? "the environment or the command line" : file;
}

static void visit(const char *name, const char *value, opal_crypt_parameter_t kind, const char *nearest,
                  const char *file, void *argument)
{
    search_t *search = argument;
    const char *or = NULL == nearest ? "" : "; did you mean ", *meant = NULL == nearest ? "" : nearest;

    search->found++;
    switch (kind) {
    case OPAL_CRYPT_PARAMETER_UNKNOWN:
        mpicrypt_report_add(search->report, MPICRYPT_FOUND_FAIL, "parameter",
                            "Correct the name, or remove it: encrypted jobs end because of it, and what it was to set is not "
                            "set.", "%.200s is no parameter (from %.200s)%s%s", name, origin(file), or, meant);
        break;
    case OPAL_CRYPT_PARAMETER_NEAR:
        mpicrypt_report_add(search->report, MPICRYPT_FOUND_WARN, "parameter",
                            "Correct the name if one of ompi-crypt was meant: nobody obeys this one.",
                            "%.200s (from %.200s) looks like a misspelt %s", name, origin(file), meant);
        break;
    case OPAL_CRYPT_PARAMETER_UNREADABLE:
        mpicrypt_report_add(search->report, MPICRYPT_FOUND_FAIL, "parameter",
                            NULL == nearest ? "Give a whole number (K, M or G behind it for KiB, MiB or GiB), or 0 or 1 to a switch."
                                            : "Give one of these words.",
                            "%.200s=%.200s cannot be read (from %.200s)%s%s", name, value, origin(file),
                            NULL == nearest ? "" : "; it is one of: ", meant);
        break;
    default:
        mpicrypt_report_add(search->report, MPICRYPT_FOUND_FAIL, "parameter",
                            "Choose a value within the bounds that docs/parameters.rst gives.",
                            "%.200s=%.200s is out of its bounds (from %.200s)", name, value, origin(file));
        break;
    }
}

void mpicrypt_check_names(mpicrypt_report_t *report)
{
    search_t search = {report, 0};

    ompi_common_cryptmpi_spelling_each(visit, &search);
    if (0 == search.found) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "parameter", "", "the parameters that are set exist");
    }
}

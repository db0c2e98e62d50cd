/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Does a setting here let payload bypass encryption, or turn it off?  A job's own
 * audit is in pml/crypt; this checks the same parameters before there is a
 * job.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"

#include "opal/mca/base/mca_base_var.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_names.h"

/* The parameter that chooses a framework's components, and whether the user (the
 * environment, the command line) set it, rather than a file of the site. */
static const char *selection(const char *framework, bool *by_user)
{
    static char *storage[3];
    static int next;
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    const char **value = NULL;
    int index = mca_base_var_register("ompi", framework, NULL, NULL, "Components of this framework",
                                      MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_2,
                                      MCA_BASE_VAR_SCOPE_READONLY, &storage[next++ % 3]);

    if (index < 0 || OPAL_SUCCESS != mca_base_var_get_value(index, &value, &source, NULL) || NULL == value) {
        return NULL;
    }
    *by_user = MCA_BASE_VAR_SOURCE_ENV == source || MCA_BASE_VAR_SOURCE_COMMAND_LINE == source;
    return *value;
}

/* Copies the names in an include list for which `bad` is true; false if there
 * are no such names, or the list excludes. */
static bool pick(const char *list, bool (*bad)(const char *), char *names, size_t bytes)
{
    char *text, *rest, *word;

    names[0] = '\0';
    if (NULL == list || '^' == list[0]) {
        return false;
    }
    text = rest = strdup(list);
    while (NULL != (word = strsep(&rest, ","))) {
        if ('\0' != *word && bad(word)) {
            size_t used = strlen(names);
            snprintf(names + used, bytes - used, "%s%s", 0 == used ? "" : ",", word);
        }
    }
    free(text);
    return '\0' != names[0];
}

/* osc/rdma: where it uses btl/crypt, as far as is known before the host has been selected. */
static bool bad_osc(const char *name)
{
    const bool over_btl = !ompi_common_cryptmpi_transport_is_pml() || ompi_common_cryptmpi_windows_over_btl();

    return !ompi_common_cryptmpi_osc_rides(name) && !ompi_common_cryptmpi_osc_local(name)
           && (OMPI_MAJOR_VERSION < 5 || !over_btl || 0 != strcmp("rdma", name));
}

static bool bad_coll(const char *name)
{
    return !ompi_common_cryptmpi_coll_rides(name) && !ompi_common_cryptmpi_coll_local(name);
}

static void check_pml(mpicrypt_report_t *report)
{
    bool by_user = false;
    const char *value = selection("pml", &by_user);
    bool chosen = NULL != value && 0 == strcmp(value, "crypt");

    mpicrypt_report_add(report, chosen ? MPICRYPT_FOUND_OK : MPICRYPT_FOUND_NOTE, "pml",
                        chosen ? "" : "Start jobs with: mpirun --mca pml crypt; or write pml=crypt into an MCA parameter "
                        "file ($HOME/.openmpi/mca-params.conf).",
                        chosen ? "jobs are encrypted (pml=%s)" : "jobs are not encrypted unless they ask for it (pml=%s)",
                        NULL == value ? "" : value);
}

/* Nodes that differ in this cannot talk to each other. */
static void check_transport(mpicrypt_report_t *report)
{
    const bool known = ompi_common_cryptmpi_transport_choose();
    char text[320];

    opal_cryptproc_restore_env();
    if (!known) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "transport", "See the text above.",
                            "jobs will be refused: nothing would protect their messages as they are asked for");
    } else if (ompi_common_cryptmpi_transport_is_btl()) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "transport", "", "btl/crypt encrypts what leaves the node, over TCP");
    } else if (ompi_common_cryptmpi_transport_is_pml()) {
        ompi_common_cryptmpi_windows_text(text, sizeof(text));
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "transport", "", "pml/crypt encrypts each message (%s); windows: %s",
                            ompi_common_cryptmpi_transport_why(), text);
    } else {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "transport", "", "pml/crypt encrypts each message if Open MPI selects UCX or "
                            "libfabric, and else btl/crypt what leaves the node, over TCP (%s)", ompi_common_cryptmpi_transport_why());
    }
}

/* pml/crypt replaces a site's list where it must; it obeys a user's list, and
 * windows fail. */
static void check_osc(mpicrypt_report_t *report)
{
    bool by_user = false, rides;
    const char *value = selection("osc", &by_user);
    char names[256], good[256], advice[400];

    snprintf(advice, sizeof(advice), "%s", OMPI_MAJOR_VERSION < 5
             ? "Unset osc, or set it to pt2pt,sm, which send through pml/crypt or stay on a node."
             : "Unset osc. From Open MPI 5.0 on osc/rdma uses btl/crypt, over TCP, also where messages go over UCX or libfabric "
               "(crypt_transport=auto).");
    if (OMPI_MAJOR_VERSION >= 5 && ompi_common_cryptmpi_transport_is_pml()
        && OPAL_CRYPTPROC_REFUSE == ompi_common_cryptmpi_windows()->seals) {
        snprintf(advice, sizeof(advice), "Windows between nodes are not encrypted, because of this: %s.",
                 ompi_common_cryptmpi_windows()->why);
    }
    rides = pick(value, ompi_common_cryptmpi_osc_rides, good, sizeof(good));
    if (by_user && pick(value, bad_osc, names, sizeof(names)) && !rides) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_FAIL, "osc", advice,
                            "osc=%s: %s carries one-sided communication around the encryption; windows over several "
                            "nodes will fail", value, names);
    } else {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "osc", "", "nothing forces one-sided communication around us");
    }
}

static void check_coll(mpicrypt_report_t *report)
{
    bool by_user = false;
    const char *value = selection("coll", &by_user);
    char names[256];

    if (pick(value, bad_coll, names, sizeof(names))) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_WARN, "coll", "Take it out of the list, so that the others are there.",
                            "coll=%s: %s is switched off in encrypted jobs, as it goes around the encryption", value,
                            names);
    } else {
        mpicrypt_report_add(report, MPICRYPT_FOUND_OK, "coll", "", "nothing forces collectives around us");
    }
}

void mpicrypt_check_ways_around(mpicrypt_report_t *report)
{
    check_pml(report);
    check_transport(report);
    check_osc(report);
    check_coll(report);
    if (OPAL_CRYPTPROC_AUDIT_WARN == opal_cryptproc_params.audit) {
        mpicrypt_report_add(report, MPICRYPT_FOUND_WARN, "audit", "Unset crypt_audit.",
                            "crypt_audit=warn: PLAINTEXT POSSIBLE, ways around the encryption are not closed");
    }
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Applies the policy (cryptproc_policy.h) to the choice of the transport.  First hook/crypt asks, before Open MPI opens
 * any network: if TCP may be used, btl/crypt becomes the only network in the list of BTLs.  Then pml/crypt asks again,
 * with the host that was selected.  Each process decides by itself, and its record says how: two that differ refuse
 * each other.  The list of BTLs is set as well where btl/crypt only carries windows.
 */
#include "cryptmpi.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ompi_common_cryptmpi_transport_refuse(const char *why)
{
    char text[OPAL_CRYPTPROC_ON_NODE_BYTES];

    OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "transport", opal_cryptproc_on_node(why, text));
}

static bool over_btl;
static unsigned facts = OPAL_CRYPTPROC_NO_HOOK;
static const opal_cryptproc_policy_row_t *decided, *windows;

static void decide(opal_cryptproc_host_t host)
{
    const opal_cryptproc_transport_t asked = (opal_cryptproc_transport_t) opal_cryptproc_params.transport;

    decided = opal_cryptproc_policy(asked, host, facts);
    windows = opal_cryptproc_policy_windows(asked, host, facts);
}

bool ompi_common_cryptmpi_transport_is_btl(void)
{
    return NULL != decided && OPAL_CRYPTPROC_BTL_SEALS == decided->seals;
}

bool ompi_common_cryptmpi_transport_is_pml(void)
{
    return NULL != decided && OPAL_CRYPTPROC_PML_SEALS == decided->seals;
}

const char *ompi_common_cryptmpi_transport_why(void)
{
    return NULL == decided ? "nothing was decided" : decided->why;
}

bool ompi_common_cryptmpi_windows_over_btl(void)
{
    return ompi_common_cryptmpi_transport_is_pml() && OPAL_CRYPTPROC_BTL_SEALS == windows->seals;
}

const opal_cryptproc_policy_row_t *ompi_common_cryptmpi_windows(void)
{
    return windows;
}

void ompi_common_cryptmpi_windows_text(char *text, size_t bytes)
{
    if (OPAL_CRYPTPROC_AUDIT_WARN == opal_cryptproc_params.audit && OPAL_CRYPTPROC_BTL_SEALS != windows->seals) {
        snprintf(text, bytes, "PLAINTEXT POSSIBLE, as crypt_audit=warn refuses no component");
    } else {
        snprintf(text, bytes, "%s%s", OPAL_CRYPTPROC_REFUSE == windows->seals ? "refused between nodes: " : "", windows->why);
    }
}

void ompi_common_cryptmpi_set_over_btl(bool over)
{
    over_btl = over;
}

bool ompi_common_cryptmpi_over_btl(void)
{
    return over_btl && opal_cryptproc_has_transport();
}

/* ---- the list of BTLs ---- */

/* The BTL for shared memory, called vader up to 4.1; from 5.0 on Open MPI still accepts that name for it. */
#define SHARED (OMPI_MAJOR_VERSION >= 5 ? "sm" : "vader")

static bool names_shared(const char *list)
{
    return opal_cryptproc_listed(list, SHARED, strlen(SHARED)) || (OMPI_MAJOR_VERSION >= 5 && opal_cryptproc_listed(list, "vader", 5));
}

/* Is it wanted?  Not if messages within a node are to be encrypted, too. */
static bool wants_shared(const char *named)
{
    const bool excludes = '^' == *named;

    return OPAL_CRYPTPROC_ALL != opal_cryptproc_params.scope && ('\0' == *named || excludes != names_shared(named + excludes));
}

/* Put btl/crypt in place of btl/tcp or, if none is named, of all networks.  False: Open MPI has read the list. */
static bool set_list(const char *named)
{
    char list[64], *now;
    bool set;

    snprintf(list, sizeof(list), "crypt,self%s%s", wants_shared(named) ? "," : "", wants_shared(named) ? SHARED : "");
    set = opal_cryptproc_setenv("OMPI_MCA_btl", list);
    now = opal_cryptproc_selection("opal", "btl");
    set = set && NULL != now && 0 == strcmp(list, now);
    if (!set) {
        opal_cryptproc_restore_env();
    }
    free(now);
    return set;
}

/* ---- what is asked for, and found ---- */

/* A device for RDMA, or of another fabric: with one, Open MPI has more than TCP. */
bool ompi_common_cryptmpi_fabric(void)
{
    static const char *const classes[] = {"/sys/class/infiniband", "/sys/class/cxi"};
    const struct dirent *entry = NULL;

    for (size_t i = 0; NULL == entry && i < sizeof(classes) / sizeof(classes[0]); i++) {
        DIR *directory = opendir(classes[i]);

        if (NULL != directory) {
            do {
                entry = readdir(directory);
            } while (NULL != entry && '.' == entry->d_name[0]);
            closedir(directory);
        }
    }
    return NULL != entry;
}

static opal_cryptproc_host_t host_of(const char *name)
{
    return 0 == strcmp(name, "auto") ? OPAL_CRYPTPROC_HOST_AUTO
           : 0 == strcmp(name, "ob1") ? OPAL_CRYPTPROC_HOST_OB1 : OPAL_CRYPTPROC_HOST_FABRIC;
}

/* Reads the parameter before pml/crypt has registered it. */
static opal_cryptproc_host_t host_named(void)
{
    char *storage = (char *) OMPI_COMMON_CRYPTMPI_HOST;
    opal_cryptproc_peek_t peek = {.project = "ompi", .framework = "pml", .component = "crypt", .name = "host",
                                  .help = OMPI_COMMON_CRYPTMPI_HOST_HELP, .type = MCA_BASE_VAR_TYPE_STRING,
                                  .flags = MCA_BASE_VAR_FLAG_DWG, .level = OPAL_INFO_LVL_4,
                                  .scope = MCA_BASE_VAR_SCOPE_READONLY};
    const char *const *value;
    opal_cryptproc_host_t host;

    opal_cryptproc_peek(&peek, &storage);
    value = peek.index >= 0 ? peek.value : NULL;
    host = NULL == value || NULL == *value ? OPAL_CRYPTPROC_HOST_AUTO : host_of(*value);
    opal_cryptproc_peek_end(&peek);
    return host;
}

bool ompi_common_cryptmpi_host_may_be_ob1(void)
{
    return OPAL_CRYPTPROC_HOST_FABRIC != host_named();
}

/* False: a list cannot be read. */
static bool read_facts(const char *btl, bool hooked)
{
    const opal_cryptproc_params_t *p = &opal_cryptproc_params;
    char *osc = opal_cryptproc_selection("ompi", "osc"), *coll = opal_cryptproc_selection("ompi", "coll");
    const bool read = NULL != btl && NULL != osc && NULL != coll;

    facts = (hooked ? 0 : OPAL_CRYPTPROC_NO_HOOK) | (ompi_common_cryptmpi_fabric() ? OPAL_CRYPTPROC_FABRIC : 0)
            | (OMPI_MAJOR_VERSION < 5 ? OPAL_CRYPTPROC_PT2PT : 0)
            | (192 == p->key_bits ? OPAL_CRYPTPROC_AES_192 : 0)
            | (OPAL_CRYPTPROC_ERROR == p->on_failure ? OPAL_CRYPTPROC_ERRORS : 0);
    if (read) {
        facts |= opal_cryptproc_policy_lists(btl, osc, OPAL_CRYPTPROC_OSC_OVER_BTL, coll, OPAL_CRYPTPROC_COLL_NETWORKS);
    }
    if (NULL == getenv("OMPI_MCA_osc")) {       /* then pml/crypt replaces a site's list */
        facts &= ~(unsigned) OPAL_CRYPTPROC_NO_PT2PT;
    }
    free(osc);
    free(coll);
    return read;
}

/* ---- decided twice ---- */

static bool accepted(void)
{
    if (OPAL_CRYPTPROC_REFUSE == decided->seals) {
        ompi_common_cryptmpi_transport_refuse(decided->why);
        return false;
    }
    return true;
}

bool ompi_common_cryptmpi_transport_choose(void)
{
    const opal_cryptproc_host_t host = host_named();
    char *btl = opal_cryptproc_selection("opal", "btl");
    const bool read = read_facts(btl, true);

    decide(host);
    if (read && OPAL_CRYPTPROC_REFUSE != decided->seals
        && (!ompi_common_cryptmpi_transport_is_pml() || ompi_common_cryptmpi_windows_over_btl()) && !set_list(btl)) {
        facts |= OPAL_CRYPTPROC_LIST_READ;
        decide(host);
    }
    free(btl);
    if (!read) {
        ompi_common_cryptmpi_transport_refuse("the lists of components (--mca btl, osc, coll) cannot be read");
    }
    return read && accepted();
}

bool ompi_common_cryptmpi_transport_begin(const char *host)
{
    char *btl;

    if (NULL == decided) {                      /* hook/crypt did not run */
        btl = opal_cryptproc_selection("opal", "btl");
        (void) read_facts(btl, false);
        free(btl);
        decide(host_of(host));
    }
    return accepted();
}

bool ompi_common_cryptmpi_transport_confirm(const char *host)
{
    decide(host_of(host));
    return accepted();
}

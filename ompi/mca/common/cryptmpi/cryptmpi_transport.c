/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * crypt_transport: does btl/crypt seal, below ob1, or pml/crypt?  hook/crypt asks before Open MPI opens BTLs, since the list
 * of those is then btl/crypt's; pml/crypt looks at what came of it.
 *
 * `auto` is btl where ob1 is the host, TCP the network, and nothing is asked for that btl/crypt does not have.  Every
 * process decides by itself; two that differ do not talk to each other, as the mode is in the record.
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

static bool over_btl, auto_is_btl;
static char why_pml[200] = "hook/crypt did not run";

bool ompi_common_cryptmpi_transport_is_btl(void)
{
    const int asked = opal_cryptproc_params.transport;

    return OPAL_CRYPTPROC_TRANSPORT_BTL == asked || (OPAL_CRYPTPROC_TRANSPORT_AUTO == asked && auto_is_btl);
}

const char *ompi_common_cryptmpi_transport_why_pml(void)
{
    return OPAL_CRYPTPROC_TRANSPORT_PML == opal_cryptproc_params.transport ? "crypt_transport=pml" : why_pml;
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

/* Is the BTL of shared memory wanted?  Not where messages within a node are to be encrypted, too. */
static bool wants(const char *named, const char *shared)
{
    const bool excludes = '^' == *named;

    return OPAL_CRYPTPROC_ALL != opal_cryptproc_params.scope
           && ('\0' == *named || excludes != opal_cryptproc_listed(named + excludes, shared, strlen(shared)));
}

/* Who names a network other than btl/tcp wants it.  Its word in the list, or NULL. */
static const char *another_network(const char *named)
{
    for (const char *word = named; '^' != *named && '\0' != *word; word += strspn(word, ",")) {
        const size_t length = strcspn(word, ",");

        if (!opal_cryptproc_listed("tcp,crypt,self,sm,vader", word, length)) {
            return word;
        }
        word += length;
    }
    return NULL;
}

/* btl/crypt in the place of btl/tcp, or of all networks, where none is named.  False: Open MPI has read its list. */
static bool set_list(const char *named)
{
    const char *shared = OMPI_MAJOR_VERSION >= 5 ? "sm" : "vader", *before = getenv("OMPI_MCA_btl");
    char *saved = NULL == before ? NULL : strdup(before), list[64], *now;
    bool set;

    snprintf(list, sizeof(list), "crypt,self%s%s", wants(named, shared) ? "," : "", wants(named, shared) ? shared : "");
    set = 0 == setenv("OMPI_MCA_btl", list, 1);
    now = opal_cryptproc_selection("opal", "btl");
    set = set && NULL != now && 0 == strcmp(list, now);
    if (!set && NULL == before) {
        unsetenv("OMPI_MCA_btl");
    } else if (!set && NULL != saved) {
        setenv("OMPI_MCA_btl", saved, 1);
    }
    free(now);
    free(saved);
    return set;
}

static bool choose_btl(const char *named)
{
    const char *another = another_network(named);
    char why[200];

    if (NULL != another) {
        snprintf(why, sizeof(why), "btl/%.*s is named (--mca btl), and would send in plaintext", (int) strcspn(another, ","), another);
        ompi_common_cryptmpi_transport_refuse(why);
        return false;
    }
    if (!set_list(named)) {
        ompi_common_cryptmpi_transport_refuse("the list of BTLs is set already, by MPI_T_init_thread before MPI_Init: name "
                                              "crypt, self and the one for shared memory there (--mca btl)");
        return false;
    }
    return true;
}

/* ---- auto ---- */

/* The name of a device for RDMA, or of another fabric: where there is one, Open MPI has more than TCP. */
static bool find_fabric(char *path, size_t bytes)
{
    static const char *const classes[] = {"/sys/class/infiniband", "/sys/class/cxi"};
    const struct dirent *entry = NULL;

    for (size_t i = 0; NULL == entry && i < sizeof(classes) / sizeof(classes[0]); i++) {
        DIR *directory = opendir(classes[i]);

        if (NULL != directory) {
            do {
                entry = readdir(directory);
            } while (NULL != entry && '.' == entry->d_name[0]);
            if (NULL != entry) {
                snprintf(path, bytes, "%s/%.64s", classes[i], entry->d_name);
            }
            closedir(directory);
        }
    }
    return NULL != entry;
}

/* Would ob1 have btl/tcp by this list, and no other network? */
static bool has_tcp_alone(const char *named)
{
    const bool excludes = '^' == *named;

    return '\0' == *named || (NULL == another_network(named)
                              && (excludes ? !opal_cryptproc_listed(named + 1, "tcp", 3)
                                           : opal_cryptproc_listed(named, "tcp", 3) || opal_cryptproc_listed(named, "crypt", 5)));
}

/* Are components of osc named that would go around btl/crypt? */
static bool names_other_osc(void)
{
    char *named = opal_cryptproc_selection("ompi", "osc");
    const bool other = NULL == named || ('^' != *named && !opal_cryptproc_only_of(named, OPAL_CRYPTPROC_OSC_OVER_BTL));

    free(named);
    return other;
}

/* Why pml/crypt is to seal, or NULL. */
static const char *reason_for_pml(const char *named, bool ob1)
{
    const opal_cryptproc_params_t *p = &opal_cryptproc_params;
    static char text[200];
    char path[160];

    if (find_fabric(path, sizeof(path))) {
        snprintf(text, sizeof(text), "this node has more than TCP, %s", path);
        return text;
    }
    return !ob1                                   ? "ob1 is not the host (pml_crypt_host)"
           : 192 == p->key_bits                   ? "crypt_key_bits=192, which TLS 1.3 does not have"
           : OPAL_CRYPTPROC_ERROR == p->on_failure ? "crypt_on_auth_failure=error"
           : OPAL_CRYPTPROC_ALL == p->scope       ? "crypt_scope=all, which shared memory is for"
           : !has_tcp_alone(named)                ? "the list of BTLs has another network, or no TCP (--mca btl)"
           : names_other_osc()                    ? "components for one-sided communication are named (--mca osc)"
           : !set_list(named)                     ? "the list of BTLs is set already, by MPI_T_init_thread before MPI_Init"
                                                  : NULL;
}

bool ompi_common_cryptmpi_transport_choose(bool ob1)
{
    char *named = opal_cryptproc_selection("opal", "btl");
    bool chosen = NULL != named;

    auto_is_btl = false;
    if (!chosen) {
        ompi_common_cryptmpi_transport_refuse("the list of BTLs (--mca btl) cannot be read");
    } else if (OPAL_CRYPTPROC_TRANSPORT_BTL == opal_cryptproc_params.transport) {
        chosen = choose_btl(named);
    } else if (OPAL_CRYPTPROC_TRANSPORT_AUTO == opal_cryptproc_params.transport) {
        const char *why = reason_for_pml(named, ob1);

        auto_is_btl = NULL == why;
        snprintf(why_pml, sizeof(why_pml), "%s", auto_is_btl ? "" : why);
    }
    free(named);
    return chosen;
}

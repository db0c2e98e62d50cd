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

/* The BTL of shared memory, which was called vader up to 4.1; from 5.0 on Open MPI takes that name for it, too. */
#define SHARED (OMPI_MAJOR_VERSION >= 5 ? "sm" : "vader")

static bool names_shared(const char *list)
{
    return opal_cryptproc_listed(list, SHARED, strlen(SHARED)) || (OMPI_MAJOR_VERSION >= 5 && opal_cryptproc_listed(list, "vader", 5));
}

/* Is it wanted?  Not where messages within a node are to be encrypted, too. */
static bool wants_shared(const char *named)
{
    const bool excludes = '^' == *named;

    return OPAL_CRYPTPROC_ALL != opal_cryptproc_params.scope && ('\0' == *named || excludes != names_shared(named + excludes));
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
    char list[64], *now;
    bool set;

    snprintf(list, sizeof(list), "crypt,self%s%s", wants_shared(named) ? "," : "", wants_shared(named) ? SHARED : "");
    set = opal_cryptproc_lend("OMPI_MCA_btl", list);
    now = opal_cryptproc_selection("opal", "btl");
    set = set && NULL != now && 0 == strcmp(list, now);
    if (!set) {
        opal_cryptproc_give_back();
    }
    free(now);
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

bool ompi_common_cryptmpi_host_may_be_ob1(void)
{
    char *storage = (char *) OMPI_COMMON_CRYPTMPI_HOST;
    opal_cryptproc_peek_t peek = {.project = "ompi", .framework = "pml", .component = "crypt", .name = "host",
                                  .help = OMPI_COMMON_CRYPTMPI_HOST_HELP, .type = MCA_BASE_VAR_TYPE_STRING,
                                  .flags = MCA_BASE_VAR_FLAG_DWG, .level = OPAL_INFO_LVL_4,
                                  .scope = MCA_BASE_VAR_SCOPE_READONLY};
    const char *const *value;
    bool is;

    opal_cryptproc_peek(&peek, &storage);
    value = peek.index >= 0 ? peek.value : NULL;
    is = NULL != value && NULL != *value && (0 == strcmp(*value, "ob1") || 0 == strcmp(*value, "auto"));
    opal_cryptproc_peek_end(&peek);
    return is;
}

/* Would ob1 have btl/tcp by this list, and no other network? */
static bool has_tcp_alone(const char *named)
{
    const bool excludes = '^' == *named;

    return '\0' == *named || (NULL == another_network(named)
                              && (excludes ? !opal_cryptproc_listed(named + 1, "tcp", 3)
                                           : opal_cryptproc_listed(named, "tcp", 3) || opal_cryptproc_listed(named, "crypt", 5)));
}

/* Does the list of osc leave what sends over btl/crypt, and nothing that would go around it? */
static bool osc_fits(void)
{
    char *named = opal_cryptproc_selection("ompi", "osc"), *rest;
    bool fits = NULL != named;

    if (fits && '^' == *named) {
        rest = opal_cryptproc_without(OPAL_CRYPTPROC_OSC_OVER_BTL, named + 1);
        fits = NULL != rest && '\0' != *rest;
        free(rest);
    } else if (fits) {
        fits = opal_cryptproc_only_of(named, OPAL_CRYPTPROC_OSC_OVER_BTL);
    }
    free(named);
    return fits;
}

/* Does the list of coll name one with a network of its own?  pml/crypt switches it off; btl/crypt ends the job. */
static bool coll_fits(void)
{
    char *named = opal_cryptproc_selection("ompi", "coll");
    bool fits = NULL != named;

    for (const char *word = fits && '^' != *named ? named : ""; fits && '\0' != *word; word += strspn(word, ",")) {
        const size_t length = strcspn(word, ",");

        fits = !opal_cryptproc_listed(OPAL_CRYPTPROC_COLL_NETWORKS, word, length);
        word += length;
    }
    free(named);
    return fits;
}

/* A parameter that is set and says how pml/crypt is to cut messages, or NULL: one of the environment, where mpirun puts
 * its arguments, or the one that every file of `mpicrypt tune` and every profile has. */
static const char *tuned(void)
{
    static const char *const names[] = {"chunk_size", "k", "max_in_flight", "model_comm", "model_enc", "t", "t_table", "team"};
    static const char in_files[] = "comm_threads";
    unsigned storage = 1;
    opal_cryptproc_peek_t peek = {.project = "ompi", .framework = "pml", .component = "crypt", .name = in_files,
                                  .help = OMPI_COMMON_CRYPTMPI_COMM_THREADS_HELP, .type = MCA_BASE_VAR_TYPE_UNSIGNED_INT,
                                  .flags = MCA_BASE_VAR_FLAG_DWG, .level = OPAL_INFO_LVL_7,
                                  .scope = MCA_BASE_VAR_SCOPE_READONLY};
    bool set;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char variable[64];

        snprintf(variable, sizeof(variable), "OMPI_MCA_pml_crypt_%s", names[i]);
        if (NULL != getenv(variable)) {
            return names[i];
        }
    }
    opal_cryptproc_peek(&peek, &storage);
    set = peek.index >= 0 && MCA_BASE_VAR_SOURCE_DEFAULT != peek.source;
    opal_cryptproc_peek_end(&peek);
    return set ? in_files : NULL;
}

/* Why pml/crypt is to seal, or NULL. */
static const char *reason_for_pml(const char *named)
{
    const opal_cryptproc_params_t *p = &opal_cryptproc_params;
    const char *parameter = tuned();
    static char text[200];
    char path[160];

    if (find_fabric(path, sizeof(path))) {
        snprintf(text, sizeof(text), "this node has more than TCP, %s", path);
        return text;
    }
    if (NULL != parameter) {
        snprintf(text, sizeof(text), "pml_crypt_%s is set", parameter);
        return text;
    }
    return !ompi_common_cryptmpi_host_may_be_ob1() ? "ob1 is not the host (pml_crypt_host)"
           : 192 == p->key_bits                    ? "crypt_key_bits=192, which TLS 1.3 does not have"
           : OPAL_CRYPTPROC_ERROR == p->on_failure ? "crypt_on_auth_failure=error"
           : OPAL_CRYPTPROC_ALL == p->scope        ? "crypt_scope=all, which shared memory is for"
           : !has_tcp_alone(named)                 ? "the list of BTLs has another network, or no TCP (--mca btl)"
           : !osc_fits()                           ? "the list for one-sided communication has others, or none (--mca osc)"
           : !coll_fits()                          ? "collectives with a network of their own are named (--mca coll)"
           : !set_list(named)                      ? "the list of BTLs is set already, by MPI_T_init_thread before MPI_Init, "
                                                     "or a file"
                                                   : NULL;
}

bool ompi_common_cryptmpi_transport_choose(void)
{
    char *named = opal_cryptproc_selection("opal", "btl");
    bool chosen = NULL != named;

    auto_is_btl = false;
    if (!chosen) {
        ompi_common_cryptmpi_transport_refuse("the list of BTLs (--mca btl) cannot be read");
    } else if (OPAL_CRYPTPROC_TRANSPORT_BTL == opal_cryptproc_params.transport) {
        chosen = choose_btl(named);
    } else if (OPAL_CRYPTPROC_TRANSPORT_AUTO == opal_cryptproc_params.transport) {
        const char *why = reason_for_pml(named);

        auto_is_btl = NULL == why;
        snprintf(why_pml, sizeof(why_pml), "%s", auto_is_btl ? "" : why);
    }
    free(named);
    return chosen;
}

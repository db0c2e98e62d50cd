/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * crypt_transport=btl: which BTLs Open MPI opens.  hook/crypt asks for it, before they are; pml/crypt looks at
 * what came of it.
 */
#include "cryptmpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ompi_common_cryptmpi_transport_refuse(const char *why)
{
    char text[OPAL_CRYPTPROC_ON_NODE_BYTES];

    OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "transport", opal_cryptproc_on_node(why, text));
}

static bool over_btl;

void ompi_common_cryptmpi_set_over_btl(bool over)
{
    over_btl = over;
}

bool ompi_common_cryptmpi_over_btl(void)
{
    return over_btl && opal_cryptproc_has_transport();
}

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

/* btl/crypt in the place of btl/tcp, or of all networks, where none is named. */
static bool set_list(const char *named)
{
    const char *shared = OMPI_MAJOR_VERSION >= 5 ? "sm" : "vader";
    char list[64], *now;
    bool set;

    snprintf(list, sizeof(list), "crypt,self%s%s", wants(named, shared) ? "," : "", wants(named, shared) ? shared : "");
    set = 0 == setenv("OMPI_MCA_btl", list, 1);
    now = opal_cryptproc_selection("opal", "btl");
    set = set && NULL != now && 0 == strcmp(list, now);
    free(now);
    return set;
}

bool ompi_common_cryptmpi_transport_choose(void)
{
    char *named = opal_cryptproc_selection("opal", "btl"), why[200];
    const char *another = NULL == named ? NULL : another_network(named);
    bool set = false;

    if (NULL == named) {
        ompi_common_cryptmpi_transport_refuse("the list of BTLs (--mca btl) cannot be read");
    } else if (NULL != another) {
        snprintf(why, sizeof(why), "btl/%.*s is named (--mca btl), and would send in plaintext", (int) strcspn(another, ","), another);
        ompi_common_cryptmpi_transport_refuse(why);
    } else if (!set_list(named)) {
        ompi_common_cryptmpi_transport_refuse("the list of BTLs is set already, by MPI_T_init_thread before MPI_Init: name "
                                              "crypt, self and the one for shared memory there (--mca btl)");
    } else {
        set = true;
    }
    free(named);
    return set;
}

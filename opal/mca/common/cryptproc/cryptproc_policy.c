/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The tables of cryptproc_policy.h.  docs/transport.rst shows the same rows, which tests/unit/test_policy checks.
 *
 * A performance parameter must not be among the facts, and a fact never leads to less protection than the rows without
 * it: what btl/crypt cannot do is refused, and only the user can choose crypt_transport=pml.
 */
#include "cryptproc_policy.h"

#include <stdlib.h>
#include <string.h>

#include "cryptproc_lists.h"

#define AUTO (1u << OPAL_CRYPTPROC_TRANSPORT_AUTO)
#define PML (1u << OPAL_CRYPTPROC_TRANSPORT_PML)
#define BTL (1u << OPAL_CRYPTPROC_TRANSPORT_BTL)
#define ANY_HOST (UNNAMED | OB1 | FABRIC)
#define UNNAMED (1u << OPAL_CRYPTPROC_HOST_AUTO)
#define OB1 (1u << OPAL_CRYPTPROC_HOST_OB1)
#define FABRIC (1u << OPAL_CRYPTPROC_HOST_FABRIC)

const opal_cryptproc_policy_row_t opal_cryptproc_policy_rows[] = {
    {PML, ANY_HOST, 0, OPAL_CRYPTPROC_PML_SEALS, "crypt_transport=pml", "crypt_transport=pml"},
    {BTL, FABRIC, 0, OPAL_CRYPTPROC_REFUSE, "crypt_transport=btl, and the host ucx or cm",
     "crypt_transport=btl goes over ob1, and pml_crypt_host names another: take one of the two away"},
    {AUTO, FABRIC, 0, OPAL_CRYPTPROC_PML_SEALS, "the host is ucx or cm", "the host is ucx or cm"},
    {AUTO | BTL, ANY_HOST, OPAL_CRYPTPROC_NO_HOOK, OPAL_CRYPTPROC_REFUSE, "hook/crypt did not run",
     "hook/crypt did not run, so Open MPI has opened networks of its own: install it on this node, and take ^crypt out of "
     "--mca hook"},
    {AUTO | BTL, ANY_HOST, OPAL_CRYPTPROC_OTHER_BTL, OPAL_CRYPTPROC_REFUSE, "--mca btl names another network",
     "a network is named (--mca btl) that would send in plaintext: name btl/tcp, or none; with crypt_transport=pml pml/crypt "
     "encrypts each message above it"},
    {AUTO | BTL, ANY_HOST, OPAL_CRYPTPROC_LIST_READ, OPAL_CRYPTPROC_REFUSE, "MPI_T_init_thread before MPI_Init",
     "the list of BTLs is set already, by MPI_T_init_thread before MPI_Init: name crypt, self and the one for shared memory "
     "there (--mca btl)"},
    {AUTO, UNNAMED, OPAL_CRYPTPROC_FABRIC, OPAL_CRYPTPROC_BY_HOST, "the node has a device for RDMA",
     "the node has a device for RDMA, and Open MPI selects the host"},
    {AUTO | BTL, UNNAMED | OB1, OPAL_CRYPTPROC_AES_192, OPAL_CRYPTPROC_REFUSE, "crypt_key_bits=192",
     "TLS 1.3 has no AES-192 (crypt_key_bits=192): take 128 or 256, or crypt_transport=pml"},
    {AUTO | BTL, UNNAMED | OB1, OPAL_CRYPTPROC_ERRORS, OPAL_CRYPTPROC_REFUSE, "crypt_on_auth_failure=error",
     "a connection that was cut or changed ends the job, so crypt_on_auth_failure cannot be \"error\": with crypt_transport=pml "
     "it can"},
    {AUTO | BTL, UNNAMED | OB1, OPAL_CRYPTPROC_OTHER_OSC, OPAL_CRYPTPROC_REFUSE,
     "--mca osc names components that would go around btl/crypt, or leaves out those that go through it",
     "the list of components for one-sided communication (--mca osc) has some that would go around btl/crypt, or none that goes "
     "through it: take it away; crypt_transport=pml refuses such windows when they are made"},
    {AUTO | BTL, UNNAMED | OB1, OPAL_CRYPTPROC_OTHER_COLL, OPAL_CRYPTPROC_REFUSE,
     "--mca coll names collectives with a network of their own",
     "collectives with a network of their own are named (--mca coll): take them out of the list"},
    {AUTO | BTL, UNNAMED | OB1, 0, OPAL_CRYPTPROC_BTL_SEALS, "otherwise", "TCP is the network"},
};

const opal_cryptproc_policy_row_t opal_cryptproc_policy_windows_rows[] = {
    {AUTO | PML | BTL, ANY_HOST, OPAL_CRYPTPROC_NO_PT2PT, OPAL_CRYPTPROC_REFUSE, "--mca osc leaves out 4.1's pt2pt",
     "the list of components for one-sided communication (--mca osc) leaves out pt2pt: unset it"},
    {AUTO | PML | BTL, ANY_HOST, OPAL_CRYPTPROC_PT2PT, OPAL_CRYPTPROC_PML_SEALS, "Open MPI is 4.1",
     "messages of osc/pt2pt, which pml/crypt encrypts (not with MPI_THREAD_MULTIPLE)"},
    {PML, ANY_HOST, 0, OPAL_CRYPTPROC_REFUSE, "crypt_transport=pml was set",
     "crypt_transport=pml, which covers messages only: unset it"},
    /* Here pml/crypt seals no messages, unless the host that is selected changes the first answer. */
    {AUTO | BTL, UNNAMED | OB1, 0, OPAL_CRYPTPROC_REFUSE, "", "the host is not ucx or cm"},
    {AUTO | BTL, ANY_HOST, OPAL_CRYPTPROC_NO_HOOK, OPAL_CRYPTPROC_REFUSE, "hook/crypt is missing",
     "hook/crypt did not run: install it on this node, and take ^crypt out of --mca hook"},
    {AUTO | BTL, ANY_HOST, OPAL_CRYPTPROC_OTHER_BTL | OPAL_CRYPTPROC_NO_CRYPT, OPAL_CRYPTPROC_REFUSE,
     "--mca btl names another network than TCP, or neither crypt nor tcp",
     "the list of BTLs (--mca btl) names another network than TCP, or neither crypt nor tcp: unset it"},
    {AUTO | BTL, ANY_HOST, OPAL_CRYPTPROC_LIST_READ, OPAL_CRYPTPROC_REFUSE, "MPI_T had read the list of BTLs",
     "the list of BTLs was read by MPI_T_init_thread before MPI_Init: name crypt, self and sm there (--mca btl)"},
    {AUTO | BTL, ANY_HOST, OPAL_CRYPTPROC_AES_192, OPAL_CRYPTPROC_REFUSE, "keys have 192 bits",
     "TLS 1.3 has no AES-192 (crypt_key_bits=192): take 128 or 256"},
    {AUTO | BTL, ANY_HOST, OPAL_CRYPTPROC_ERRORS, OPAL_CRYPTPROC_REFUSE, "failures are to be errors (crypt_on_auth_failure)",
     "a connection that was cut or changed ends the job, so crypt_on_auth_failure cannot be error"},
    {AUTO | BTL, ANY_HOST, OPAL_CRYPTPROC_OTHER_OSC | OPAL_CRYPTPROC_NO_RDMA, OPAL_CRYPTPROC_REFUSE,
     "--mca osc leaves out rdma, or names another component than rdma and sm",
     "the list of components for one-sided communication (--mca osc) leaves out rdma, or names another than rdma and sm: unset it"},
    {AUTO | BTL, ANY_HOST, 0, OPAL_CRYPTPROC_BTL_SEALS, "none of these applies", "btl/crypt, over TCP"},
};

static const opal_cryptproc_policy_row_t *first_of(const opal_cryptproc_policy_row_t *row, opal_cryptproc_transport_t asked,
                                                   opal_cryptproc_host_t host, unsigned facts)
{
    while (0 == (row->transports & 1u << asked) || 0 == (row->hosts & 1u << host) || (0 != row->facts && 0 == (row->facts & facts))) {
        row++;
    }
    return row;
}

const opal_cryptproc_policy_row_t *opal_cryptproc_policy(opal_cryptproc_transport_t asked, opal_cryptproc_host_t host,
                                                         unsigned facts)
{
    return first_of(opal_cryptproc_policy_rows, asked, host, facts);
}

const opal_cryptproc_policy_row_t *opal_cryptproc_policy_windows(opal_cryptproc_transport_t asked, opal_cryptproc_host_t host,
                                                                 unsigned facts)
{
    return first_of(opal_cryptproc_policy_windows_rows, asked, host, facts);
}

/* Does the list keep what sends over btl/crypt, and nothing that would bypass it? */
static bool osc_fits(const char *osc, const char *needed)
{
    char *rest;
    bool fits;

    if ('^' != *osc) {
        return opal_cryptproc_only_of(osc, needed);
    }
    rest = opal_cryptproc_without(needed, osc + 1);
    fits = NULL != rest && '\0' != *rest;
    free(rest);
    return fits;
}

static bool names_one_of(const char *list, const char *these)
{
    for (const char *word = list; '^' != *list && '\0' != *word; word += strspn(word, ",")) {
        const size_t length = strcspn(word, ",");

        if (opal_cryptproc_listed(these, word, length)) {
            return true;
        }
        word += length;
    }
    return false;
}

unsigned opal_cryptproc_policy_lists(const char *btl, const char *osc, const char *osc_needed, const char *coll,
                                     const char *coll_networks)
{
    return ('^' != *btl && !opal_cryptproc_only_of(btl, "tcp,crypt,self,sm,vader") ? OPAL_CRYPTPROC_OTHER_BTL : 0)
           | (!osc_fits(osc, osc_needed) ? OPAL_CRYPTPROC_OTHER_OSC : 0)
           | (names_one_of(coll, coll_networks) ? OPAL_CRYPTPROC_OTHER_COLL : 0)
           | (!opal_cryptproc_keeps(btl, "crypt") && !names_one_of(btl, "tcp") ? OPAL_CRYPTPROC_NO_CRYPT : 0)
           | (!opal_cryptproc_keeps(osc, "rdma") ? OPAL_CRYPTPROC_NO_RDMA : 0)
           | (names_one_of(osc_needed, "pt2pt") && !opal_cryptproc_keeps(osc, "pt2pt") ? OPAL_CRYPTPROC_NO_PT2PT : 0);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What protects the messages of a job?  One question, one table (cryptproc_policy.c):
 *
 *     TCP is sealed by btl/crypt.
 *     UCX and libfabric are sealed by pml/crypt.
 *     Anything else is refused.
 *
 * Where pml/crypt seals messages, a second table says what carries windows between nodes.
 *
 * Values in, a decision out: no environment, no OPAL, no MPI.  It is called twice: by hook/crypt, before Open MPI
 * opens any network, and by pml/crypt, once the host PML has been selected.
 */
#ifndef OPAL_MCA_COMMON_CRYPTPROC_POLICY_H
#define OPAL_MCA_COMMON_CRYPTPROC_POLICY_H

#pragma GCC visibility push(default)

typedef enum {
    OPAL_CRYPTPROC_TRANSPORT_AUTO,
    OPAL_CRYPTPROC_TRANSPORT_PML,   /* pml/crypt seals messages, above a transport that carries anything */
    OPAL_CRYPTPROC_TRANSPORT_BTL,   /* btl/crypt seals all traffic that leaves the node */
    OPAL_CRYPTPROC_TRANSPORTS
} opal_cryptproc_transport_t;

/* The PML below pml/crypt: as pml_crypt_host names it, or as it was selected. */
typedef enum {
    OPAL_CRYPTPROC_HOST_AUTO,
    OPAL_CRYPTPROC_HOST_OB1,
    OPAL_CRYPTPROC_HOST_FABRIC,     /* ucx or cm */
    OPAL_CRYPTPROC_HOSTS
} opal_cryptproc_host_t;

/* Settings and findings that affect the decision. */
enum {
    OPAL_CRYPTPROC_NO_HOOK = 1 << 0,        /* hook/crypt did not run */
    OPAL_CRYPTPROC_LIST_READ = 1 << 1,      /* Open MPI had already read its list of BTLs */
    OPAL_CRYPTPROC_OTHER_BTL = 1 << 2,      /* --mca btl names another network */
    OPAL_CRYPTPROC_FABRIC = 1 << 3,         /* the node has a device for RDMA or another fabric */
    OPAL_CRYPTPROC_AES_192 = 1 << 4,        /* crypt_key_bits=192 */
    OPAL_CRYPTPROC_ERRORS = 1 << 5,         /* crypt_on_auth_failure=error */
    OPAL_CRYPTPROC_OTHER_OSC = 1 << 6,      /* --mca osc names, or excludes, what btl/crypt needs */
    OPAL_CRYPTPROC_OTHER_COLL = 1 << 7,     /* --mca coll names a component with a network of its own */
    OPAL_CRYPTPROC_NO_CRYPT = 1 << 8,       /* --mca btl leaves out btl/crypt, and btl/tcp, which it would replace */
    OPAL_CRYPTPROC_NO_RDMA = 1 << 9,        /* --mca osc leaves out osc/rdma */
    OPAL_CRYPTPROC_PT2PT = 1 << 10,         /* Open MPI 4.1: osc/pt2pt sends messages */
    OPAL_CRYPTPROC_NO_PT2PT = 1 << 11,      /* Open MPI 4.1: --mca osc leaves out osc/pt2pt */
    OPAL_CRYPTPROC_FACTS = 1 << 12
};

typedef enum {
    OPAL_CRYPTPROC_REFUSE,         /* nothing protects the job as requested: it ends, with the reason in `why` */
    OPAL_CRYPTPROC_BY_HOST,         /* ask again with the host that was selected */
    OPAL_CRYPTPROC_BTL_SEALS,
    OPAL_CRYPTPROC_PML_SEALS
} opal_cryptproc_seals_t;

/* A row of the table.  It applies to these transports and hosts (bits), if one of its facts is present or it lists
 * none.  The first row that applies decides. */
typedef struct opal_cryptproc_policy_row {
    unsigned transports, hosts, facts;
    opal_cryptproc_seals_t seals;
    const char *when, *why;         /* for the manual ("": not there); for the user: the reason, and the way out of a refusal */
} opal_cryptproc_policy_row_t;

extern const opal_cryptproc_policy_row_t opal_cryptproc_policy_rows[];

/* Never NULL: the last row always applies. */
const opal_cryptproc_policy_row_t *opal_cryptproc_policy(opal_cryptproc_transport_t asked, opal_cryptproc_host_t host,
                                                         unsigned facts);

/* The same for windows between nodes, where pml/crypt seals messages.  BTL_SEALS: btl/crypt runs beside it, for osc/rdma
 * alone; PML_SEALS: they are messages; REFUSE: a window fails, and the job goes on. */
extern const opal_cryptproc_policy_row_t opal_cryptproc_policy_windows_rows[];
const opal_cryptproc_policy_row_t *opal_cryptproc_policy_windows(opal_cryptproc_transport_t asked, opal_cryptproc_host_t host,
                                                                 unsigned facts);

/* The facts of three lists of components, as `--mca FRAMEWORK` has them; "" where nothing is named. */
unsigned opal_cryptproc_policy_lists(const char *btl, const char *osc, const char *osc_needed, const char *coll,
                                     const char *coll_networks);

#pragma GCC visibility pop

#endif

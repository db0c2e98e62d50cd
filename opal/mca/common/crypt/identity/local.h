/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * This process as its peers see it: its key pair, its authenticated record, and how it checks the records of others.
 * docs/wire-format.rst, "Records".
 *
 *     local_create --> record bytes --> modex (common/cryptproc)
 *     peer's bytes --> schedule_create (crypt/identity/schedule.h)
 *
 * Threads: create and destroy by one thread; everything else is read-only
 * afterwards and may be used by any.
 */
#ifndef OPAL_CRYPT_IDENTITY_LOCAL_H
#define OPAL_CRYPT_IDENTITY_LOCAL_H

#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/aead/aead_module.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_PROTOCOL_VERSION 1
#define OPAL_CRYPT_RECORD_MAX       16384   /* x509 chains included */
#define OPAL_CRYPT_TRANSPORT_MAX    160     /* a record's data for a transport */

/* Used in records. */
typedef enum {
    OPAL_CRYPT_AUTH_AUTO,           /* never in a record */
    OPAL_CRYPT_AUTH_NONE,
    OPAL_CRYPT_AUTH_PSK,
    OPAL_CRYPT_AUTH_MUNGE,
    OPAL_CRYPT_AUTH_X509
} opal_crypt_auth_t;

/* The user's choices.  Strings belong to the caller and stay valid as long as the local object; NULL means the
 * default. */
typedef struct opal_crypt_options {
    opal_crypt_auth_t auth;
    const char *psk_file;           /* NULL: ~/.ompi-crypt/psk */
    const char *munge_socket;       /* NULL: munge's own default */
    unsigned munge_age;             /* seconds for which a credential is fresh, 1 .. 86400; 0: 600 */
    const char *x509_cert, *x509_key, *x509_ca, *x509_crl, *x509_peer;
    bool secret_on_netfs;           /* accept secret files on network file systems */
    bool fips;                      /* P-256 instead of X25519, FIPS provider only */

    const opal_aead_module_t *aead; /* NULL: set later by local_provide */
    opal_aead_cipher_t cipher;
    unsigned epoch_shift;           /* 20; test builds lower it */
    bool scope_all;                 /* local peers are sealed too */

    /* Parameters of upper layers on which both sides must agree, as text "name=value;name=value": must be equal, and
     * are shown if they differ. */
    const char *agreed;
#define OPAL_CRYPT_RECORD_VERSION_ITEM "ompi-crypt="    /* the version: compared first */

    /* From upper layers, for peers to know, but not to agree on: extensions of the record. */
    bool report;                    /* crypt_report is set */
    const uint8_t *transport;       /* NULL: none; copied into the record */
    size_t transport_bytes;
} opal_crypt_options_t;

/* Who we are, from the runtime. */
typedef struct opal_crypt_identity {
    const char *nspace;             /* at most 255 bytes */
    uint32_t rank;
    uint32_t instance;              /* 0, then 1 ... for a re-initialization */
    uint8_t boot_id[16];
    uint8_t node_nonce[16];
} opal_crypt_identity_t;

typedef struct opal_crypt_local opal_crypt_local_t;

/* 0, and one more at each call: for the identity.  The counter is here because this library is not unloaded between
 * the MPI sessions of a process. */
uint32_t opal_crypt_instance(void);

/* Read the method's secrets, generate a key pair, make the record.  ERR_CONFIG with `why` filled if a secret is
 * missing or not properly protected. */
int opal_crypt_local_create(const opal_crypt_options_t *options,
                            const opal_crypt_identity_t *identity,
                            opal_crypt_local_t **local,
                            opal_crypt_why_t *why);
void opal_crypt_local_destroy(opal_crypt_local_t *local);

/* If options.aead was NULL: sets the provider, before the first session or group is made with `local`.  By one thread,
 * while no other uses `local`. */
void opal_crypt_local_provide(opal_crypt_local_t *local, const opal_aead_module_t *aead);

/* The bytes to publish; they belong to `local`. */
const uint8_t *opal_crypt_local_record(const opal_crypt_local_t *local, size_t *bytes);

/* When its authenticator ages (munge's does), a record may have to be vouched for again before processes of other jobs
 * look at it (spawn, connect).  *fresh is then a renewal to publish beside the record; it belongs to `local` and is
 * replaced by the next call.  *bytes is 0 if the published data suffice.  `now` is in seconds since 1970.  Not by two
 * threads at once, nor concurrently with destroy. */
int opal_crypt_local_renew(opal_crypt_local_t *local, int64_t now,
                           const uint8_t **fresh, size_t *bytes, opal_crypt_why_t *why);

/* That renewal, made at `now`, has been published. */
void opal_crypt_local_renewed(opal_crypt_local_t *local, int64_t now);

/* The options it was made with, and the hash of our own public key. */
const opal_crypt_options_t *opal_crypt_local_options(const opal_crypt_local_t *local);
const uint8_t *opal_crypt_local_key_hash(const opal_crypt_local_t *local);

/* A warning that the user must see in every job (crypt_auth=none, a secret on a network file system), or NULL. */
const opal_crypt_why_t *opal_crypt_local_warning(const opal_crypt_local_t *local);

/* The method in use (AUTO is resolved), and its name. */
opal_crypt_auth_t opal_crypt_local_auth(const opal_crypt_local_t *local);
const char *opal_crypt_auth_name(opal_crypt_auth_t auth);

/* Boot id and node nonce of this node: the kernel's boot id, and 16 random bytes kept in a shared-memory object of
 * this user, mode 0600. */
int opal_crypt_node_identity(uint8_t boot_id[16], uint8_t node_nonce[16],
                             opal_crypt_why_t *why);

/* The contents of a peer's record. */
typedef struct opal_crypt_peer_info {
    char nspace[256];
    uint32_t rank, instance;
    bool same_node;                 /* boot id and node nonce equal ours */
    uint8_t key_hash[32];           /* SHA-256 of its public key */
    int64_t created;                /* by the peer's clock, seconds since 1970 */
    bool report;                    /* the peer's options.report, and .transport */
    uint8_t transport[OPAL_CRYPT_TRANSPORT_MAX];
    size_t transport_bytes;         /* 0: it has none */
} opal_crypt_peer_info_t;

/* Do the clocks of the two nodes seem to differ by more than an hour?  `needed` is as in expect: if it is 0, both
 * started together, else the peer may be older.  `why` then has both times, for a warning.  Never true for munge,
 * which checks the age itself. */
bool opal_crypt_clocks_differ(const opal_crypt_local_t *local,
                              const opal_crypt_peer_info_t *peer, int64_t needed,
                              opal_crypt_why_t *why);

/* The process whose record we asked the runtime for, and when we came to need it. */
typedef struct opal_crypt_expect {
    const char *nspace;             /* NULL: no expectation; else nspace, rank and instance must match */
    uint32_t rank, instance;
    int64_t needed;                 /* seconds since 1970; 0: when `local` was made.  A munge
                                     * credential must be from within options.munge_age of it */
    const uint8_t *fresh;           /* the peer's renewal, or NULL.  If set, a record that is too old gives
                                     * ERR_OLD instead of ERR_PEER */
    size_t fresh_bytes;
    const char *(*host)(const void *whom);  /* for a refusal: the peer's node, or NULL; NULL: unknown */
    const void *whom;
} opal_crypt_expect_t;

#pragma GCC visibility pop

#endif

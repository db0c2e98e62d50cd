/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading the two hellos.  Every field is fixed, has a fixed length, or is listed below as one that OpenSSL may fill
 * freely; anything else is refused.
 */
#include "hello.h"
#include "opal/mca/common/crypt/base/kdf.h"

#include <assert.h>

#define HANDSHAKE       22
#define CLIENT_HELLO    1
#define SERVER_HELLO    2
#define RANDOM          32
#define TLS_1_0         0x0301          /* of the record of a ClientHello */
#define TLS_1_2         0x0303          /* wherever TLS 1.3 has a legacy version */
#define TLS_1_3         0x0304
#define NO_RENEGOTIATION 0x00ff         /* a pseudo suite that OpenSSL may add */
#define PSK_DHE_KE      1

/* Types of extensions. */
enum {
    GROUPS = 10, POINT_FORMATS = 11, SIGNATURES = 13, ENCRYPT_THEN_MAC = 22, EXTENDED_MASTER_SECRET = 23,
    PSK = 41, VERSIONS = 43, PSK_MODES = 45, SIGNATURES_CERT = 50, SHARE = 51
};

static_assert(12 + 2 * OPAL_CRYPT_TLS_NAME_BYTES == OPAL_CRYPT_TLS_IDENTITY_BYTES, "identity");

/* ---- names ---- */

int opal_crypt_tls_name_make(const char *nspace, uint32_t rank, uint32_t instance, opal_crypt_tls_name_t *name)
{
    const opal_crypt_input_t text = {nspace, strlen(nspace)};

    name->rank = rank;
    name->instance = instance;
    return opal_crypt_sha256(&text, 1, name->nspace);
}

bool opal_crypt_tls_name_equal(const opal_crypt_tls_name_t *a, const opal_crypt_tls_name_t *b)
{
    return a->rank == b->rank && a->instance == b->instance && 0 == memcmp(a->nspace, b->nspace, sizeof(a->nspace));
}

static void name_pack(const opal_crypt_tls_name_t *name, uint8_t *bytes)
{
    memcpy(bytes, name->nspace, 32);
    opal_crypt_put32(bytes + 32, name->rank);
    opal_crypt_put32(bytes + 36, name->instance);
}

static void name_parse(const uint8_t *bytes, opal_crypt_tls_name_t *name)
{
    memcpy(name->nspace, bytes, 32);
    name->rank = opal_crypt_get32(bytes + 32);
    name->instance = opal_crypt_get32(bytes + 36);
}

static const uint8_t identity_title[6] = {'o', 'm', 'p', 'i', 1, 0};

void opal_crypt_tls_identity_pack(const opal_crypt_tls_identity_t *identity,
                                  uint8_t bytes[OPAL_CRYPT_TLS_IDENTITY_BYTES])
{
    memcpy(bytes, identity_title, sizeof(identity_title));
    opal_crypt_put16(bytes + 6, identity->link);
    opal_crypt_put32(bytes + 8, identity->attempt);
    name_pack(&identity->claimed, bytes + 12);
    name_pack(&identity->wanted, bytes + 12 + OPAL_CRYPT_TLS_NAME_BYTES);
}

static bool identity_parse(const uint8_t *bytes, opal_crypt_tls_identity_t *identity)
{
    if (0 != memcmp(bytes, identity_title, sizeof(identity_title))) {
        return false;
    }
    identity->link = opal_crypt_get16(bytes + 6);
    identity->attempt = opal_crypt_get32(bytes + 8);
    name_parse(bytes + 12, &identity->claimed);
    name_parse(bytes + 12 + OPAL_CRYPT_TLS_NAME_BYTES, &identity->wanted);
    return true;
}

/* ---- a reader that never passes the end: once short, it stays so, and returns 0 ---- */

typedef struct view {
    const uint8_t *at;
    size_t left;
    bool cut;
} view_t;

static const uint8_t *view_bytes(view_t *view, size_t bytes)
{
    static const uint8_t nothing[OPAL_CRYPT_TLS_HELLO_MAX];
    const uint8_t *here = view->at;

    if (view->cut || bytes > view->left) {
        view->cut = true;
        view->left = 0;
        return nothing;
    }
    view->at += bytes;
    view->left -= bytes;
    return here;
}

static unsigned view8(view_t *view)
{
    return *view_bytes(view, 1);
}

static unsigned view16(view_t *view)
{
    return opal_crypt_get16(view_bytes(view, 2));
}

/* A part preceded by its length. */
static view_t view_part(view_t *view, unsigned length_bytes)
{
    const size_t bytes = 1 == length_bytes ? view8(view) : view16(view);
    view_t part = {.left = bytes};

    part.at = view_bytes(view, bytes <= OPAL_CRYPT_TLS_HELLO_MAX ? bytes : SIZE_MAX);
    part.cut = view->cut;
    part.left = view->cut ? 0 : bytes;
    return part;
}

/* Does the length match all that follows? */
static bool rest_follows(view_t *view)
{
    const unsigned bytes = view16(view);

    return bytes == view->left;
}

/* The bytes sufficed, and none is left. */
static bool at_end(const view_t *view)
{
    return !view->cut && 0 == view->left;
}

/* ---- the beginning of both hellos ---- */

static const char *hello_begin(const uint8_t *record, size_t bytes, unsigned record_version, unsigned kind,
                               view_t *view)
{
    *view = (view_t) {record, bytes, false};
    if (HANDSHAKE != view8(view) || record_version != view16(view)) {
        return "not a record of a handshake";
    }
    if (bytes > OPAL_CRYPT_TLS_HEADER + OPAL_CRYPT_TLS_HELLO_MAX || !rest_follows(view)) {
        return "the record has a wrong length";
    }
    if (kind != view8(view)) {
        return "not the hello of a handshake";
    }
    /* One complete message, alone in its record. */
    if (0 != view8(view) || !rest_follows(view)) {
        return "the hello is not a whole record";
    }
    if (TLS_1_2 != view16(view)) {
        return "the hello has a wrong legacy version";
    }
    return NULL;
}

/* ---- ClientHello ---- */

static bool versions_fit(view_t body)
{
    view_t list = view_part(&body, 1);

    return TLS_1_3 == view16(&list) && at_end(&list) && at_end(&body);
}

/* From the extensions of a ClientHello. */
typedef struct client_says {
    opal_crypt_tls_identity_t identity;
    unsigned group, share_group;
    size_t share_bytes;
} client_says_t;

static bool groups_fit(view_t body, client_says_t *says)
{
    view_t list = view_part(&body, 2);

    says->group = view16(&list);
    return at_end(&list) && at_end(&body);
}

static bool client_share_fits(view_t body, client_says_t *says)
{
    view_t list = view_part(&body, 2);

    says->share_group = view16(&list);
    says->share_bytes = view_part(&list, 2).left;
    return at_end(&list) && at_end(&body);
}

static bool modes_fit(view_t body)
{
    view_t list = view_part(&body, 1);

    return PSK_DHE_KE == view8(&list) && at_end(&list) && at_end(&body);
}

/* One identity in our form, of age 0, with one binder. */
static bool psk_fits(view_t body, const opal_crypt_tls_suite_t *suite, opal_crypt_tls_identity_t *identity)
{
    view_t identities = view_part(&body, 2);
    view_t one = view_part(&identities, 2);
    const uint32_t age = opal_crypt_get32(view_bytes(&identities, 4));
    view_t binders = view_part(&body, 2);

    return OPAL_CRYPT_TLS_IDENTITY_BYTES == one.left && 0 == age && at_end(&identities)
           && suite->hash_bytes == view_part(&binders, 1).left && at_end(&binders) && at_end(&body)
           && identity_parse(one.at, identity);
}

/* Ours first, followed at most by the pseudo suite. */
static bool suites_fit(view_t list, const opal_crypt_tls_suite_t *suite)
{
    if (suite->number != view16(&list)) {
        return false;
    }
    return at_end(&list) || (NO_RENEGOTIATION == view16(&list) && at_end(&list));
}

static const char *client_extension(unsigned type, view_t body, const opal_crypt_tls_suite_t *suite, client_says_t *says)
{
    switch (type) {
    case VERSIONS:
        return versions_fit(body) ? NULL : "it offers another version than TLS 1.3";
    case GROUPS:
        return groups_fit(body, says) ? NULL : "it does not offer one group";
    case SHARE:
        return client_share_fits(body, says) ? NULL : "it does not have one key share";
    case PSK_MODES:
        return modes_fit(body) ? NULL : "it offers a PSK without key agreement";
    case PSK:
        return psk_fits(body, suite, &says->identity) ? NULL : "its identity is not one of ours";
    case POINT_FORMATS:
    case SIGNATURES:
    case SIGNATURES_CERT:
    case ENCRYPT_THEN_MAC:
    case EXTENDED_MASTER_SECRET:
        return NULL;                    /* OpenSSL adds it; meaningless here */
    default:
        return "it has an extension that we do not send";
    }
}

/* A set of the extensions seen; client_extension and server_extension pass only known ones, which are all below 64. */
static bool seen_before(uint64_t *seen, unsigned type)
{
    const uint64_t bit = UINT64_C(1) << type;
    const bool before = 0 != (*seen & bit);

    *seen |= bit;
    return before;
}

/* Checks that all required extensions are present. */
static const char *client_says_right(const client_says_t *says, uint64_t seen, const opal_crypt_tls_group_of_t **group)
{
    static const uint64_t needed = UINT64_C(1) << VERSIONS | UINT64_C(1) << GROUPS | UINT64_C(1) << SHARE
                                 | UINT64_C(1) << PSK_MODES | UINT64_C(1) << PSK;

    if (needed != (seen & needed)) {
        return "it lacks an extension";
    }
    *group = opal_crypt_tls_group((opal_crypt_tls_group_t) says->group);
    if (NULL == *group) {
        return "it offers another group";
    }
    return says->share_group == says->group && says->share_bytes == (*group)->client_bytes ? NULL : "it has another key share";
}

const char *opal_crypt_client_hello(const opal_crypt_tls_suite_t *suite, const uint8_t *record, size_t bytes,
                                    opal_crypt_tls_identity_t *identity, const opal_crypt_tls_group_of_t **group)
{
    view_t view, extensions;
    client_says_t says = {.group = 0};
    uint64_t seen = 0;
    const char *wrong = hello_begin(record, bytes, TLS_1_0, CLIENT_HELLO, &view);

    if (NULL != wrong) {
        return wrong;
    }
    (void) view_bytes(&view, RANDOM);
    if (0 != view8(&view)) {
        return "it wants a session of TLS 1.2, or middlebox mode";
    }
    if (!suites_fit(view_part(&view, 2), suite)) {
        return "it offers another cipher suite";
    }
    if (1 != view8(&view) || 0 != view8(&view)) {
        return "it offers compression";
    }
    extensions = view_part(&view, 2);
    while (extensions.left > 0) {
        const unsigned type = view16(&extensions);
        const view_t body = view_part(&extensions, 2);

        if (extensions.cut || NULL != (wrong = client_extension(type, body, suite, &says))) {
            return extensions.cut ? "its extensions are cut short" : wrong;
        }
        if (seen_before(&seen, type) || (PSK == type && 0 != extensions.left)) {
            return "its extensions are out of order";
        }
    }
    if (!at_end(&view) || !at_end(&extensions)) {
        return "its extensions are cut short";
    }
    *identity = says.identity;
    return client_says_right(&says, seen, group);
}

/* ---- ServerHello ---- */

static bool server_share_fits(view_t body, const opal_crypt_tls_group_of_t *group)
{
    return (unsigned) group->group == view16(&body) && group->server_bytes == view_part(&body, 2).left && at_end(&body);
}

static const char *server_extension(unsigned type, view_t body, const opal_crypt_tls_group_of_t *group)
{
    switch (type) {
    case VERSIONS:
        return TLS_1_3 == view16(&body) && at_end(&body) ? NULL : "it chose another version than TLS 1.3";
    case SHARE:
        return server_share_fits(body, group) ? NULL : "it chose another group";
    case PSK:
        return 0 == view16(&body) && at_end(&body) ? NULL : "it chose another identity";
    default:
        return "it has an extension that we do not ask for";
    }
}

const char *opal_crypt_server_hello(const opal_crypt_tls_suite_t *suite, const opal_crypt_tls_group_of_t *group,
                                    const uint8_t *record, size_t bytes)
{
    /* SHA-256("HelloRetryRequest"): RFC 8446, 4.1.3. */
    static const uint8_t retry[RANDOM] = {
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
        0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
    static const uint64_t needed = UINT64_C(1) << VERSIONS | UINT64_C(1) << SHARE | UINT64_C(1) << PSK;
    view_t view, extensions;
    uint64_t seen = 0;
    const char *wrong = hello_begin(record, bytes, TLS_1_2, SERVER_HELLO, &view);

    if (NULL != wrong) {
        return wrong;
    }
    if (0 == memcmp(view_bytes(&view, RANDOM), retry, RANDOM)) {
        return "it asks for another hello";
    }
    if (0 != view8(&view)) {
        return "it continues a session of TLS 1.2";
    }
    if (suite->number != view16(&view) || 0 != view8(&view)) {
        return "it chose another cipher suite";
    }
    extensions = view_part(&view, 2);
    while (extensions.left > 0) {
        const unsigned type = view16(&extensions);
        const view_t body = view_part(&extensions, 2);

        if (extensions.cut || NULL != (wrong = server_extension(type, body, group))) {
            return extensions.cut ? "its extensions are cut short" : wrong;
        }
        if (seen_before(&seen, type)) {
            return "it has an extension twice";
        }
    }
    if (!at_end(&view) || !at_end(&extensions)) {
        return "its extensions are cut short";
    }
    return needed == seen ? NULL : "it did not take our PSK";
}

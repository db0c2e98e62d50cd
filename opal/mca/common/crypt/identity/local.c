/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * This process as its peers see it: method, key pair, authenticated record.
 */
#include "local.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/library.h"
#include "local_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint32_t opal_crypt_instance(void)
{
    static uint32_t next;

    return __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
}

static int check_options(const opal_crypt_options_t *options, const opal_crypt_identity_t *identity,
                         opal_crypt_why_t *why)
{
    size_t name_bytes = NULL == identity->nspace ? 0 : strlen(identity->nspace);

    if (0 == name_bytes || name_bytes > OPAL_CRYPT_RECORD_NAME_MAX) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "record-too-long",
                                 "the name of the job has %zu bytes, where 1 to %d are possible",
                                 name_bytes, OPAL_CRYPT_RECORD_NAME_MAX);
    }
    if (NULL != options->agreed && strlen(options->agreed) > OPAL_CRYPT_RECORD_AGREED_MAX) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "record-too-long",
                                 "the agreed parameters have %zu bytes, where at most %d are possible",
                                 strlen(options->agreed), OPAL_CRYPT_RECORD_AGREED_MAX);
    }
    if (options->munge_age > OPAL_CRYPT_AGE_MOST) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "munge-age", "%u", options->munge_age);
    }
    return OPAL_CRYPT_OK;
}

/* The record: our body, and the method's authenticator over it. */
static int make_record(opal_crypt_local_t *local, const opal_crypt_identity_t *identity,
                       opal_crypt_why_t *why)
{
    const opal_crypt_options_t *options = &local->options;
    opal_crypt_record_t record = {
        .version = OPAL_CRYPT_PROTOCOL_VERSION,
        .name = identity->nspace,
        .name_bytes = strlen(identity->nspace),
        .rank = identity->rank,
        .instance = identity->instance,
        .method = (uint8_t) local->method->auth,
        .kex = (uint8_t) local->pair.kex,
        .cipher = (uint8_t) options->cipher,
        .epoch_shift = (uint8_t) options->epoch_shift,
        .flags = options->scope_all ? OPAL_CRYPT_RECORD_SCOPE_ALL : 0,
        .boot_id = identity->boot_id,
        .node_nonce = identity->node_nonce,
        .created = (uint64_t) local->created,
        .agreed = NULL == options->agreed ? "" : options->agreed,
        .agreed_bytes = NULL == options->agreed ? 0 : strlen(options->agreed),
        .public_key = local->pair.public,
    };
    const opal_crypt_extension_t report = {.type = OPAL_CRYPT_EXTENSION_REPORT};
    const opal_crypt_extension_t transport = {.type = OPAL_CRYPT_EXTENSION_TRANSPORT, .bytes = options->transport,
                                              .count = options->transport_bytes};
    uint8_t extensions[2 * OPAL_CRYPT_EXTENSION_HEAD + OPAL_CRYPT_TRANSPORT_MAX];
    size_t body_bytes, capacity, authenticator_bytes = 0;
    uint8_t *authenticator;
    int rc;

    if (options->report) {
        opal_crypt_extension_put(extensions, sizeof(extensions), &record.extensions_bytes, &report);
    }
    if (NULL != options->transport
        && !opal_crypt_extension_put(extensions, sizeof(extensions), &record.extensions_bytes, &transport)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "record-too-long",
                                 "the transport's part has %zu bytes, where at most %d are possible",
                                 options->transport_bytes, OPAL_CRYPT_TRANSPORT_MAX);
    }
    record.extensions = 0 == record.extensions_bytes ? NULL : extensions;
    local->bytes = malloc(OPAL_CRYPT_RECORD_MAX);
    if (NULL == local->bytes) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    body_bytes = opal_crypt_record_pack(&record, local->bytes, OPAL_CRYPT_RECORD_MAX - 4);
    if (0 == body_bytes) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library", "the record cannot be packed");
    }
    capacity = OPAL_CRYPT_RECORD_MAX - 4 - body_bytes;
    authenticator = local->bytes + body_bytes + 4;
    rc = local->method->sign(local->auth_state, local->bytes, body_bytes,
                             authenticator, capacity, &authenticator_bytes, why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    opal_crypt_put32(local->bytes + body_bytes, (uint32_t) authenticator_bytes);
    local->byte_count = body_bytes + 4 + authenticator_bytes;

    rc = opal_crypt_record_parse(local->bytes, local->byte_count, &local->record);
    return OPAL_CRYPT_OK == rc ? rc : opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library",
                                                        "our own record cannot be parsed");
}

int opal_crypt_local_create(const opal_crypt_options_t *options,
                            const opal_crypt_identity_t *identity,
                            opal_crypt_local_t **local,
                            opal_crypt_why_t *why)
{
    opal_crypt_local_t *made;
    int rc;

    *local = NULL;
    rc = check_options(options, identity, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_library_open(options->fips, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    made = calloc(1, sizeof(*made));
    if (NULL == made) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    made->options = *options;
    made->created = made->vouched = (int64_t) time(NULL);

    /* 1. the secrets of the method  2. the key pair  3. the record */
    rc = opal_crypt_auth_select(options, &made->method, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = made->method->open(options, &made->auth_state, &made->warning, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_keypair_make(options->fips ? OPAL_CRYPT_KEX_P256 : OPAL_CRYPT_KEX_X25519,
                                     &made->pair);
        if (OPAL_CRYPT_OK != rc) {
            opal_crypt_refuse(why, rc, OPAL_CRYPT_ERR_MEMORY == rc ? "no-secret-memory" : "library",
                              "the key pair of this process");
        }
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = make_record(made, identity, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_input_t input = {made->record.public_key, made->record.public_bytes};

        rc = opal_crypt_sha256(&input, 1, made->key_hash);
        if (OPAL_CRYPT_OK != rc) {
            opal_crypt_refuse(why, rc, "library", "SHA-256 of the public key");
        }
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_local_destroy(made);
        return rc;
    }
    *local = made;
    return OPAL_CRYPT_OK;
}

void opal_crypt_local_destroy(opal_crypt_local_t *local)
{
    if (NULL == local) {
        return;
    }
    if (NULL != local->auth_state) {
        local->method->close(local->auth_state);
    }
    opal_crypt_keypair_wipe(&local->pair);
    free(local->bytes);
    free(local->fresh);
    free(local);
}

void opal_crypt_local_provide(opal_crypt_local_t *local, const opal_aead_module_t *aead)
{
    local->options.aead = aead;
}

/* Renewed at half its age, so that it is still fresh when used a little later; also for a peer with the default age if
 * ours is higher: they need not be equal. */
int opal_crypt_local_renew(opal_crypt_local_t *local, int64_t now,
                           const uint8_t **fresh, size_t *bytes, opal_crypt_why_t *why)
{
    int64_t age_max = opal_crypt_age_max(&local->options);
    int rc;

    age_max = age_max < OPAL_CRYPT_AGE_DEFAULT ? age_max : OPAL_CRYPT_AGE_DEFAULT;
    *fresh = NULL;
    *bytes = 0;
    if (NULL == local->method->renew || now - local->vouched <= age_max / 2) {
        return OPAL_CRYPT_OK;
    }
    if (NULL == local->fresh && NULL == (local->fresh = malloc(OPAL_CRYPT_RECORD_MAX))) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    rc = local->method->renew(local->auth_state, local->bytes, local->byte_count,
                              local->fresh, OPAL_CRYPT_RECORD_MAX, bytes, why);
    *fresh = OPAL_CRYPT_OK == rc ? local->fresh : NULL;
    return rc;
}

void opal_crypt_local_renewed(opal_crypt_local_t *local, int64_t now)
{
    local->vouched = now;
}

/* ---- queries ---- */

const uint8_t *opal_crypt_local_record(const opal_crypt_local_t *local, size_t *bytes)
{
    *bytes = local->byte_count;
    return local->bytes;
}

const opal_crypt_options_t *opal_crypt_local_options(const opal_crypt_local_t *local)
{
    return &local->options;
}

const uint8_t *opal_crypt_local_key_hash(const opal_crypt_local_t *local)
{
    return local->key_hash;
}

opal_crypt_auth_t opal_crypt_local_auth(const opal_crypt_local_t *local)
{
    return local->method->auth;
}

const opal_crypt_why_t *opal_crypt_local_warning(const opal_crypt_local_t *local)
{
    return NULL == local->warning.topic ? NULL : &local->warning;
}

/* ---- clocks ---- */

static const char *utc(int64_t seconds, char text[32])
{
    const time_t time = (time_t) seconds;
    struct tm parts;

    if (NULL == gmtime_r(&time, &parts) || 0 == strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &parts)) {
        snprintf(text, 32, "in no known year");
    }
    return text;
}

bool opal_crypt_clocks_differ(const opal_crypt_local_t *local,
                              const opal_crypt_peer_info_t *peer, int64_t needed,
                              opal_crypt_why_t *why)
{
    enum { HOUR = 3600 };
    const int64_t ours = 0 != needed ? needed : local->created;
    const bool early = peer->created < ours - HOUR, late = peer->created > ours + HOUR;
    char here[32], there[32], host[65] = "";

    if (OPAL_CRYPT_AUTH_MUNGE == local->method->auth || !(late || (early && 0 == needed))) {
        return false;
    }
    gethostname(host, sizeof(host) - 1);
    opal_crypt_refuse(why, OPAL_CRYPT_OK, "clocks-differ",
                      "  this process: rank %lu, on %s: %s\n  the peer:     %.255s rank %lu: %s",
                      (unsigned long) local->record.rank, host, utc(ours, here), peer->nspace,
                      (unsigned long) peer->rank, utc(peer->created, there));
    return true;
}

/* ---- a peer's record, before it is authenticated ---- */

void opal_crypt_record_info(const opal_crypt_local_t *local,
                            const opal_crypt_record_t *record,
                            opal_crypt_peer_info_t *info)
{
    opal_crypt_input_t input = {record->public_key, record->public_bytes};
    opal_crypt_extension_t extension;

    memset(info, 0, sizeof(*info));
    memcpy(info->nspace, record->name, record->name_bytes);
    info->rank = record->rank;
    info->instance = record->instance;
    info->created = (int64_t) record->created;
    info->report = opal_crypt_record_extension(record, OPAL_CRYPT_EXTENSION_REPORT, &extension);
    if (opal_crypt_record_extension(record, OPAL_CRYPT_EXTENSION_TRANSPORT, &extension)) {
        memcpy(info->transport, extension.bytes, extension.count);
        info->transport_bytes = extension.count;
    }
    info->same_node = 0 == memcmp(record->boot_id, local->record.boot_id, 16)
                      && 0 == memcmp(record->node_nonce, local->record.node_nonce, 16);
    if (OPAL_CRYPT_OK != opal_crypt_sha256(&input, 1, info->key_hash)) {
        info->same_node = false;
    }
}

int opal_crypt_blame(const opal_crypt_local_t *local, const opal_crypt_record_t *peer,
                     const opal_crypt_expect_t *expect, int rc, opal_crypt_why_t *why)
{
    char reason[sizeof(why->detail)], here[128], there[128] = "unknown", host[65] = "";
    const char *its;

    if (NULL == why) {
        return rc;
    }
    its = NULL == expect || NULL == expect->host ? NULL : expect->host(expect->whom);
    memcpy(reason, why->detail, sizeof(reason));
    opal_crypt_record_title(&local->record, here, sizeof(here));
    gethostname(host, sizeof(host) - 1);
    if (0 != peer->name_bytes) {
        opal_crypt_record_title(peer, there, sizeof(there));
    } else if (NULL != expect && NULL != expect->nspace) {
        opal_crypt_record_t asked = {
            .name = expect->nspace, .name_bytes = strlen(expect->nspace), .rank = expect->rank,
        };

        opal_crypt_record_title(&asked, there, sizeof(there));
    }
    return opal_crypt_refuse(why, rc, why->topic, "  this process: %s, on %s\n  the peer:     %s%s%.64s\n  %.420s",
                             here, host, there, NULL == its ? "" : ", on ", NULL == its ? "" : its, reason);
}

int opal_crypt_record_read(const opal_crypt_local_t *local, const uint8_t *bytes, size_t count,
                           const opal_crypt_expect_t *expect,
                           opal_crypt_record_t *record, opal_crypt_why_t *why)
{
    int rc;

    if (0 == count) {
        memset(record, 0, sizeof(*record));
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-missing", "it published no record");
        return opal_crypt_blame(local, record, expect, rc, why);
    }
    rc = opal_crypt_record_parse(bytes, count, record);
    if (OPAL_CRYPT_OK == rc) {
        return rc;
    }
    if (OPAL_CRYPT_ERR_PEER == rc) {
        opal_crypt_refuse(why, rc, "record-version", "protocol version: %d here, %u there",
                          OPAL_CRYPT_PROTOCOL_VERSION, record->version);
    } else {
        opal_crypt_refuse(why, rc, "record-malformed", "its %zu bytes are not a record", count);
    }
    return opal_crypt_blame(local, record, expect, OPAL_CRYPT_ERR_PEER, why);
}

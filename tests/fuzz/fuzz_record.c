/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Any bytes as what a peer published.
 *
 *     | what 1 | bytes ... |
 *
 *     0  a record, as a process with crypt_auth=none sees it: all that follows
 *        authentication is reached
 *     1  the same with crypt_auth=psk, whose authenticator nobody here can make
 *     2  the authenticator of crypt_auth=x509: certificates and signature
 *
 * make_corpus_record.py writes corpus-record.
 */
#include "fuzz.h"

#include "opal/mca/common/crypt/identity/local_object.h"
#include "opal/mca/common/crypt/identity/schedule.h"
#include "opal/mca/common/crypt/identity/x509_chain.h"
#include "opal/mca/common/crypt/identity/x509_key.h"

/* How far inputs came; the replay test looks at it. */
static unsigned long fuzz_agreed, fuzz_chains;

static opal_crypt_local_t *local(opal_crypt_auth_t auth)
{
    char path[] = "/tmp/fuzz-record-XXXXXX";
    opal_crypt_options_t options = {.auth = auth, .cipher = OPAL_AEAD_AES_128_GCM, .epoch_shift = 20};
    opal_crypt_identity_t identity = {.nspace = "1234567890", .rank = 7};
    opal_crypt_local_t *made = NULL;
    int fd = mkstemp(path);

    FUZZ_CHECK(fd >= 0 && 64 == write(fd, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64));
    close(fd);
    options.psk_file = path;
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_local_create(&options, &identity, &made, NULL));
    unlink(path);
    return made;
}

static void as_record(const opal_crypt_local_t *self, const uint8_t *data, size_t size)
{
    opal_crypt_schedule_t *schedule = NULL;
    opal_crypt_record_t record;
    opal_crypt_peer_info_t info;
    opal_crypt_why_t why = {.topic = NULL};
    uint8_t again[OPAL_CRYPT_RECORD_MAX], key[32];
    char text[200];
    int rc = opal_crypt_record_parse(data, size, &record);

    if (OPAL_CRYPT_OK == rc) {
        FUZZ_CHECK(record.body == data);
        FUZZ_CHECK(record.body_bytes + 4 + record.authenticator_bytes == size);
        FUZZ_CHECK(record.body_bytes == opal_crypt_record_pack(&record, again, sizeof(again)));
        FUZZ_CHECK(0 == memcmp(again, data, record.body_bytes));
        opal_crypt_record_difference(&self->record, &record, text, sizeof(text));
        opal_crypt_record_info(self, &record, &info);
        FUZZ_CHECK(strlen(info.nspace) == record.name_bytes);
    }
    rc = opal_crypt_schedule_create(self, data, size, NULL, &schedule, &why);
    FUZZ_CHECK((OPAL_CRYPT_OK == rc) == (NULL != schedule));
    FUZZ_CHECK(OPAL_CRYPT_OK == rc || (OPAL_CRYPT_ERR_PEER == rc && NULL != why.topic));
    if (OPAL_CRYPT_OK == rc) {
        ++fuzz_agreed;
        FUZZ_CHECK(OPAL_CRYPT_AUTH_NONE == opal_crypt_local_auth(self));
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_DIRECTION,
                                                               OPAL_CRYPT_IN, key, sizeof(key)));
        opal_crypt_schedule_destroy(schedule);
    }
}

static void as_chain(const uint8_t *data, size_t size)
{
    opal_crypt_why_t why;
    size_t used = 0;
    STACK_OF(X509) *chain = opal_crypt_chain_parse(data, size, &used);
    EVP_PKEY *key;
    unsigned scheme;
    char text[300];

    if (NULL == chain) {
        return;
    }
    ++fuzz_chains;
    FUZZ_CHECK(used <= size && sk_X509_num(chain) == data[0]);
    opal_crypt_subject_text(sk_X509_value(chain, 0), text, sizeof(text));
    FUZZ_CHECK(!opal_crypt_subject_matches(sk_X509_value(chain, 0), ""));
    opal_crypt_subject_matches(sk_X509_value(chain, 0), "CN=*,OU=hpc,O=Site;*");
    key = X509_get0_pubkey(sk_X509_value(chain, 0));
    if (NULL != key && OPAL_CRYPT_OK == opal_crypt_sign_scheme(key, "it", OPAL_CRYPT_ERR_PEER, &scheme, &why)) {
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH
                   == opal_crypt_sign_verify(key, scheme, "another text", 12, data + used, size - used));
    }
    opal_crypt_chain_free(chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static opal_crypt_local_t *none, *psk;

    if (NULL == none) {
        none = local(OPAL_CRYPT_AUTH_NONE);
        psk = local(OPAL_CRYPT_AUTH_PSK);
    }
    if (size < 1) {
        return 0;
    }
    switch (data[0]) {
    case 0: as_record(none, data + 1, size - 1); break;
    case 1: as_record(psk, data + 1, size - 1); break;
    case 2: as_chain(data + 1, size - 1); break;
    default: break;
    }
    return 0;
}

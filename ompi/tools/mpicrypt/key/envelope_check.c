/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Is a message of exactly the documented form?  The order of the functions is that of the structures in
 * docs/key-exchange.rst, the inner ones first.  Lengths that libcrypto's parsers have trusted before they were checked
 * (the nonce of AES-GCM, CVE-2025-15467) have one permitted value here.
 */
#include "envelope.h"
#include "der.h"

#include <string.h>

enum { NONCE_BYTES = 12, TAG_BYTES = 16, WRAPPED_BYTES = 40, CERTIFICATE_MAX = 16384, NAME_MAX_BYTES = 2048, SERIAL_MAX = 21 };

static const uint8_t oid_signed_data[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02};
static const uint8_t oid_data[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01};
static const uint8_t oid_content_info[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x06};
static const uint8_t oid_auth_enveloped[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x17};
static const uint8_t oid_aes256_gcm[] = {0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2e};
static const uint8_t oid_aes256_wrap[] = {0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2d};
static const uint8_t oid_sha256[] = {0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01};
static const uint8_t oid_oaep[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x07};
static const uint8_t oid_mgf1[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x08};
static const uint8_t oid_rsa[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01};
static const uint8_t oid_rsa_sha256[] = {0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b};
static const uint8_t oid_ec[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01};
static const uint8_t oid_ecdsa_sha256[] = {0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02};
static const uint8_t oid_dh_sha256[] = {0x2b, 0x81, 0x04, 0x01, 0x0b, 0x01};
static const char scrypt_mark[] = "ompi-crypt\1";

static bool der_ended(const mpicrypt_der_t *der) { return der->at == der->end; }

/* ---- algorithms ---- */

/* NULL, which some write where there are no parameters; then the end. */
static bool no_parameters(mpicrypt_der_t *der)
{
    return der_ended(der) || (mpicrypt_der_is(der, MPICRYPT_DER_NULL, NULL, 0) && der_ended(der));
}

static bool algorithm_is(mpicrypt_der_t *der, const uint8_t *oid, size_t oid_bytes)
{
    mpicrypt_der_t algorithm;

    return mpicrypt_der_take(der, MPICRYPT_DER_SEQUENCE, &algorithm) && mpicrypt_der_is(&algorithm, MPICRYPT_DER_OID, oid, oid_bytes)
           && no_parameters(&algorithm);
}

static bool is_oaep(mpicrypt_der_t *der)
{
    mpicrypt_der_t algorithm, parameters, hash, mask, mgf1;

    return mpicrypt_der_take(der, MPICRYPT_DER_SEQUENCE, &algorithm) && MPICRYPT_DER_IS_OID(&algorithm, oid_oaep)
           && mpicrypt_der_take(&algorithm, MPICRYPT_DER_SEQUENCE, &parameters) && der_ended(&algorithm)
           && mpicrypt_der_take(&parameters, MPICRYPT_DER_CONTEXT + 0, &hash)
           && algorithm_is(&hash, oid_sha256, sizeof(oid_sha256)) && der_ended(&hash)
           && mpicrypt_der_take(&parameters, MPICRYPT_DER_CONTEXT + 1, &mask)
           && mpicrypt_der_take(&mask, MPICRYPT_DER_SEQUENCE, &mgf1) && der_ended(&mask) && MPICRYPT_DER_IS_OID(&mgf1, oid_mgf1)
           && algorithm_is(&mgf1, oid_sha256, sizeof(oid_sha256)) && der_ended(&mgf1) && der_ended(&parameters);
}

static bool is_agreement(mpicrypt_der_t *der)
{
    mpicrypt_der_t algorithm;

    return mpicrypt_der_take(der, MPICRYPT_DER_SEQUENCE, &algorithm) && MPICRYPT_DER_IS_OID(&algorithm, oid_dh_sha256)
           && algorithm_is(&algorithm, oid_aes256_wrap, sizeof(oid_aes256_wrap)) && der_ended(&algorithm);
}

/* ---- recipients ---- */

/* issuerAndSerialNumber, of which *from begins with the element's tag. */
static bool is_issuer_and_serial(mpicrypt_der_t *der, const uint8_t **from, size_t *bytes)
{
    mpicrypt_der_t both, serial;

    *from = der->at;
    if (!mpicrypt_der_take(der, MPICRYPT_DER_SEQUENCE, &both) || mpicrypt_der_left(&both) > NAME_MAX_BYTES
        || !mpicrypt_der_take(&both, MPICRYPT_DER_SEQUENCE, NULL) || !mpicrypt_der_take(&both, MPICRYPT_DER_INTEGER, &serial)
        || mpicrypt_der_left(&serial) < 1 || mpicrypt_der_left(&serial) > SERIAL_MAX || !der_ended(&both)) {
        return false;
    }
    *bytes = (size_t) (der->at - *from);
    return true;
}

static bool check_rsa(mpicrypt_der_t recipient, mpicrypt_envelope_t *envelope)
{
    mpicrypt_der_t wrapped;

    envelope->kind = MPICRYPT_TO_RSA;
    return mpicrypt_der_is_number(&recipient, 0)
           && is_issuer_and_serial(&recipient, &envelope->recipient, &envelope->recipient_bytes) && is_oaep(&recipient)
           && mpicrypt_der_take(&recipient, MPICRYPT_DER_OCTETS, &wrapped) && mpicrypt_der_left(&wrapped) >= 256
           && mpicrypt_der_left(&wrapped) <= 1024 && der_ended(&recipient);
}

static bool check_ec(mpicrypt_der_t recipient, mpicrypt_envelope_t *envelope)
{
    mpicrypt_der_t originator, key, point, keys, one, wrapped;

    envelope->kind = MPICRYPT_TO_EC;
    if (!mpicrypt_der_is_number(&recipient, 3) || !mpicrypt_der_take(&recipient, MPICRYPT_DER_CONTEXT + 0, &originator)
        || !mpicrypt_der_take(&originator, MPICRYPT_DER_CONTEXT + 1, &key) || !der_ended(&originator)
        || !algorithm_is(&key, oid_ec, sizeof(oid_ec)) || !mpicrypt_der_take(&key, MPICRYPT_DER_BITS, &point) || !der_ended(&key)) {
        return false;
    }
    /* No unused bits; an uncompressed point of P-256 or P-384. */
    const size_t bytes = mpicrypt_der_left(&point);
    if ((2 + 64 != bytes && 2 + 96 != bytes) || 0 != point.at[0] || 4 != point.at[1]) {
        return false;
    }
    return is_agreement(&recipient) && mpicrypt_der_take(&recipient, MPICRYPT_DER_SEQUENCE, &keys) && der_ended(&recipient)
           && mpicrypt_der_take(&keys, MPICRYPT_DER_SEQUENCE, &one) && der_ended(&keys)
           && is_issuer_and_serial(&one, &envelope->recipient, &envelope->recipient_bytes)
           && mpicrypt_der_take(&one, MPICRYPT_DER_OCTETS, &wrapped) && WRAPPED_BYTES == mpicrypt_der_left(&wrapped) && der_ended(&one);
}

bool mpicrypt_scrypt_sound(const mpicrypt_scrypt_t *scrypt)
{
    return scrypt->n >= 14 && scrypt->n <= 20 && scrypt->r >= 1 && scrypt->p >= 1 && scrypt->p <= 4
           && (UINT64_C(128) * scrypt->r << scrypt->n) <= UINT64_C(1) << 30;
}

void mpicrypt_scrypt_id(const mpicrypt_scrypt_t *scrypt, uint8_t id[MPICRYPT_SCRYPT_ID_BYTES])
{
    memcpy(id, scrypt_mark, sizeof(scrypt_mark) - 1);
    id[11] = (uint8_t) scrypt->n;
    id[12] = (uint8_t) scrypt->r;
    id[13] = (uint8_t) scrypt->p;
    memcpy(id + MPICRYPT_SCRYPT_SALT_AT, scrypt->salt, MPICRYPT_SCRYPT_SALT_BYTES);
}

static bool check_passphrase(mpicrypt_der_t recipient, mpicrypt_envelope_t *envelope)
{
    mpicrypt_der_t kekid, id, wrapped;

    envelope->kind = MPICRYPT_TO_PASSPHRASE;
    if (!mpicrypt_der_is_number(&recipient, 4) || !mpicrypt_der_take(&recipient, MPICRYPT_DER_SEQUENCE, &kekid)
        || !mpicrypt_der_take(&kekid, MPICRYPT_DER_OCTETS, &id) || !der_ended(&kekid)
        || MPICRYPT_SCRYPT_ID_BYTES != mpicrypt_der_left(&id) || 0 != memcmp(id.at, scrypt_mark, sizeof(scrypt_mark) - 1)) {
        return false;
    }
    envelope->scrypt = (mpicrypt_scrypt_t){.n = id.at[11], .r = id.at[12], .p = id.at[13]};
    memcpy(envelope->scrypt.salt, id.at + MPICRYPT_SCRYPT_SALT_AT, MPICRYPT_SCRYPT_SALT_BYTES);
    return mpicrypt_scrypt_sound(&envelope->scrypt) && algorithm_is(&recipient, oid_aes256_wrap, sizeof(oid_aes256_wrap))
           && mpicrypt_der_take(&recipient, MPICRYPT_DER_OCTETS, &wrapped) && WRAPPED_BYTES == mpicrypt_der_left(&wrapped)
           && der_ended(&recipient);
}

/* ---- AuthEnvelopedData, with its ContentInfo ---- */

static bool check_recipients(mpicrypt_der_t *der, mpicrypt_envelope_t *envelope)
{
    mpicrypt_der_t set, one;

    if (!mpicrypt_der_take(der, MPICRYPT_DER_SET, &set)) {
        return false;
    }
    return mpicrypt_der_take(&set, MPICRYPT_DER_SEQUENCE, &one) ? der_ended(&set) && check_rsa(one, envelope)
           : mpicrypt_der_take(&set, MPICRYPT_DER_CONTEXT + 1, &one) ? der_ended(&set) && check_ec(one, envelope)
           : mpicrypt_der_take(&set, MPICRYPT_DER_CONTEXT + 2, &one) && der_ended(&set) && check_passphrase(one, envelope);
}

static bool check_contents(mpicrypt_der_t *der, mpicrypt_envelope_t *envelope)
{
    mpicrypt_der_t contents, algorithm, parameters, nonce, cipher;

    if (!mpicrypt_der_take(der, MPICRYPT_DER_SEQUENCE, &contents) || !MPICRYPT_DER_IS_OID(&contents, oid_data)
        || !mpicrypt_der_take(&contents, MPICRYPT_DER_SEQUENCE, &algorithm) || !MPICRYPT_DER_IS_OID(&algorithm, oid_aes256_gcm)
        || !mpicrypt_der_take(&algorithm, MPICRYPT_DER_SEQUENCE, &parameters) || !der_ended(&algorithm)
        || !mpicrypt_der_take(&parameters, MPICRYPT_DER_OCTETS, &nonce) || NONCE_BYTES != mpicrypt_der_left(&nonce)
        || !mpicrypt_der_is_number(&parameters, TAG_BYTES) || !der_ended(&parameters)
        || !mpicrypt_der_take(&contents, 0x80, &cipher) || mpicrypt_der_left(&cipher) < 1 || !der_ended(&contents)) {
        return false;
    }
    envelope->cipher_bytes = mpicrypt_der_left(&cipher);
    return true;
}

static bool check_inner(mpicrypt_der_t message, mpicrypt_envelope_t *envelope)
{
    mpicrypt_der_t whole = message, info, explicit, data, tag;

    envelope->inner = message.at;
    envelope->inner_bytes = mpicrypt_der_left(&message);
    return mpicrypt_der_take(&whole, MPICRYPT_DER_SEQUENCE, &info) && der_ended(&whole) && MPICRYPT_DER_IS_OID(&info, oid_auth_enveloped)
           && mpicrypt_der_take(&info, MPICRYPT_DER_CONTEXT + 0, &explicit) && der_ended(&info)
           && mpicrypt_der_take(&explicit, MPICRYPT_DER_SEQUENCE, &data) && der_ended(&explicit) && mpicrypt_der_is_number(&data, 0)
           && check_recipients(&data, envelope) && check_contents(&data, envelope)
           && mpicrypt_der_take(&data, MPICRYPT_DER_OCTETS, &tag) && TAG_BYTES == mpicrypt_der_left(&tag) && der_ended(&data);
}

/* ---- SignedData ---- */

static bool check_signer(mpicrypt_der_t *der)
{
    mpicrypt_der_t set, signer, signature;
    const uint8_t *who;
    size_t who_bytes;

    if (!mpicrypt_der_take(der, MPICRYPT_DER_SET, &set) || !mpicrypt_der_take(&set, MPICRYPT_DER_SEQUENCE, &signer) || !der_ended(&set)
        || !mpicrypt_der_is_number(&signer, 1) || !is_issuer_and_serial(&signer, &who, &who_bytes)
        || !algorithm_is(&signer, oid_sha256, sizeof(oid_sha256)) || !mpicrypt_der_take(&signer, MPICRYPT_DER_CONTEXT + 0, NULL)) {
        return false;
    }
    const mpicrypt_der_t here = signer;
    if (!algorithm_is(&signer, oid_rsa, sizeof(oid_rsa)) && (signer = here, !algorithm_is(&signer, oid_rsa_sha256, sizeof(oid_rsa_sha256)))
        && (signer = here, !algorithm_is(&signer, oid_ecdsa_sha256, sizeof(oid_ecdsa_sha256)))) {
        return false;
    }
    return mpicrypt_der_take(&signer, MPICRYPT_DER_OCTETS, &signature) && mpicrypt_der_left(&signature) <= 1024 && der_ended(&signer);
}

/* Of SignedData with its ContentInfo, `inner` gets what is signed. */
static bool check_signed(mpicrypt_der_t info, mpicrypt_envelope_t *envelope, mpicrypt_der_t *inner)
{
    mpicrypt_der_t explicit, data, digests, contents, wrapped, certificates, certificate;

    if (!mpicrypt_der_take(&info, MPICRYPT_DER_CONTEXT + 0, &explicit) || !der_ended(&info)
        || !mpicrypt_der_take(&explicit, MPICRYPT_DER_SEQUENCE, &data) || !der_ended(&explicit) || !mpicrypt_der_is_number(&data, 3)
        || !mpicrypt_der_take(&data, MPICRYPT_DER_SET, &digests) || !algorithm_is(&digests, oid_sha256, sizeof(oid_sha256))
        || !der_ended(&digests) || !mpicrypt_der_take(&data, MPICRYPT_DER_SEQUENCE, &contents)
        || !MPICRYPT_DER_IS_OID(&contents, oid_content_info) || !mpicrypt_der_take(&contents, MPICRYPT_DER_CONTEXT + 0, &wrapped)
        || !der_ended(&contents) || !mpicrypt_der_take(&wrapped, MPICRYPT_DER_OCTETS, inner) || !der_ended(&wrapped)
        || !mpicrypt_der_take(&data, MPICRYPT_DER_CONTEXT + 0, &certificates)) {
        return false;
    }
    envelope->certificate = certificates.at;
    envelope->certificate_bytes = mpicrypt_der_left(&certificates);
    return mpicrypt_der_take(&certificates, MPICRYPT_DER_SEQUENCE, &certificate) && der_ended(&certificates)
           && envelope->certificate_bytes <= CERTIFICATE_MAX && check_signer(&data) && der_ended(&data);
}

int mpicrypt_envelope_check(const uint8_t *message, size_t bytes, mpicrypt_envelope_t *envelope, opal_crypt_why_t *why)
{
    mpicrypt_der_t all = {message, message + bytes}, info, inner = all;

    memset(envelope, 0, sizeof(*envelope));
    if (bytes > MPICRYPT_ENVELOPE_MAX) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "envelope-form", "it is longer than 1 MiB");
    }
    if (!mpicrypt_der_take(&all, MPICRYPT_DER_SEQUENCE, &info) || !der_ended(&all)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "envelope-form", "it is cut, or another kind of file");
    }
    if (MPICRYPT_DER_IS_OID(&info, oid_signed_data) && !check_signed(info, envelope, &inner)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "envelope-form", "its signed part departs from the format");
    }
    if (!check_inner(inner, envelope)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "envelope-form", "%s",
                                 MPICRYPT_TO_PASSPHRASE == envelope->kind && !mpicrypt_scrypt_sound(&envelope->scrypt) && 0 != envelope->scrypt.n
                                     ? "its parameters of scrypt are out of bounds" : "its encrypted part departs from the format");
    }
    return OPAL_CRYPT_OK;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One line for a refusal of the core, for programs without help files: jobs show an entry of one for the same
 * topics.  The topic itself is never printed.
 */
#include <string.h>

#include "opal/mca/common/crypt/base/base.h"
#include "lib/mpicrypt_file/sentences.h"

static const struct {
    const char *topic, *sentence;
} sentences[] = {
    {"envelope-closed", "the message cannot be decrypted"},
    {"envelope-form", "this is no message of 'mpicrypt key export' or 'backup'"},
    {"envelope-signature", "the signature does not hold"},
    {"envelope-signer", "it is signed with another certificate than that of --from"},
    {"exchange-key-type", "the certificate's key is neither RSA of 2048 to 8192 bits nor EC P-256 or P-384"},
    {"exchange-key-usage", "the certificate does not permit this use"},
    {"exchange-memory", "there is not enough memory for scrypt"},
    {"exchange-no-scrypt", "scrypt is not available (OpenSSL's FIPS provider lacks it: use certificates)"},
    {"file-algorithm-refused", "this algorithm would not protect the file"},
    {"file-algorithm-unknown", "unknown algorithm (choose aes-128-gcm, aes-192-gcm, aes-256-gcm or chacha20-poly1305)"},
    {"file-block-size", "the block size must be a power of two from 512 to 16777216"},
    {"file-label", "a label has 1 to 64 letters, digits, dots, dashes and underscores, and does not begin with a dot"},
    {"file-map-contradicts", "a region of the map differs from what the file already says"},
    {"file-map-damaged", "the encryption map cannot be read"},
    {"file-map-extension", "the file needs a feature that this version does not have"},
    {"file-map-forged", "the encryption map does not authenticate"},
    {"file-map-older", "an older encryption map was put in the place of a newer one"},
    {"file-map-other-key", "the key of this label is not the one that encrypted the file"},
    {"file-map-overlap", "two regions of the map overlap"},
    {"file-map-size", "the encryption map is too large"},
    {"file-no-label", "the keystore holds no key for the file ('mpicrypt key list' shows what it holds)"},
    {"file-region", "this cannot be a region of an encryption map"},
    {"file-seal", "the seal does not hold"},
    {"file-seal-foreign", "the file holds something that was not there when it was sealed"},
    {"fips-no-provider", "--fips needs OpenSSL's FIPS provider, which cannot be loaded here"},
    {"fips-too-late", "crypt_fips cannot be changed while keys are in use"},
    {"keystore-at-server", "this is done at the key server, by its policies and commands"},
    {"keystore-blob", "the wrapped key in the file is damaged"},
    {"keystore-bundle", "the message was decrypted, but its contents depart from the format"},
    {"keystore-directory", "the keystore's directory cannot be used"},
    {"keystore-expired", "the key has expired, and only decrypts"},
    {"keystore-file", "a file of the keystore cannot be used"},
    {"keystore-in-token", "the keys of a token or key server cannot leave it, be put into it, or be deleted here"},
    {"keystore-label-exists", "there is a key for this label already ('mpicrypt key rotate' replaces it)"},
    {"keystore-log", "the keystore's log cannot be written"},
    {"keystore-machine-key", "the machine key does not open the keystore, or is not set (--machine-key)"},
    {"keystore-missing", "there is no keystore ('mpicrypt key new LABEL' makes one)"},
    {"keystore-no-escrow", "this is no escrowed key"},
    {"keystore-no-label", "the keystore has no such key ('mpicrypt key list' shows what it has)"},
    {"keystore-not-after", "a new key cannot have a last day that has passed"},
    {"keystore-other-key", "the keystore has another key of this label, which stays"},
    {"keystore-pkcs11", "the PKCS#11 token cannot be used"},
    {"keystore-plain", "the key is in the clear, and a machine key is set ('mpicrypt key protect' wraps it)"},
    {"keystore-recovery-key", "the recovery key cannot be used"},
    {"keystore-refused", "the keystore refuses the use of this key"},
    {"keystore-too-many", "there are too many keys for one message"},
    {"keystore-unwrap", "the key does not open this file's key"},
    {"keystore-vault", "the key server cannot be used"},
    {"keystore-versions", "the label has as many versions as there can be"},
    {"library", "a call of the cryptographic library failed"},
    {"no-home", "the home directory is not known: set HOME, or name the place"},
    {"no-secret-memory", "there is no memory for secret keys (ulimit -l)"},
    {"secret-directory", "other users can rename files in the directory of this secret (chmod go-w DIRECTORY)"},
    {"secret-group", "the keystore is not one that this group shares and only its owner changes"},
    {"secret-keystore", "keys would be in the clear on a network file system, or on one of unknown type (--machine-key FILE wraps them: docs/keys.rst)"},
    {"secret-length", "a file with a secret has the wrong length"},
    {"secret-missing", "a file with a secret does not exist"},
    {"secret-mode", "other users can read or change a file with a secret (chmod 600 FILE, if nobody did)"},
    {"secret-netfs", "a file with a secret is on a network file system, or on one of unknown type (docs/keys.rst says where it belongs)"},
    {"secret-not-hex", "a file with a secret does not hold hexadecimal digits"},
    {"secret-not-regular", "the path of a secret is not a regular file"},
    {"secret-open", "a file with a secret cannot be read (docs/keys.rst, if it is on NFS)"},
    {"secret-owner", "a file with a secret belongs to another user (docs/keys.rst, if it is on NFS)"},
    {"secret-symlink", "a file with a secret is a symbolic link"},
    {"secret-zero", "a secret consists of zeros only"},
    {"tls-keylog", "OpenSSL may write the keys of every connection to a file (unset SSLKEYLOGFILE)"},
    {"tls-library", "OpenSSL's libssl cannot be loaded"},
    {"trust-directory", "other users can put another file in the place of this one"},
    {"trust-length", "the file is too long, or changed while it was read"},
    {"trust-mode", "other users can change this file (chmod go-w FILE, if nobody did)"},
    {"trust-netfs", "the file is on a network file system, or on one of unknown type (--allow-netfs)"},
    {"trust-not-regular", "this is not a regular file"},
    {"trust-owner", "the file belongs to another user, who can change it"},
    {"x509-ca", "the CA's file cannot be used"},
    {"x509-cert", "the certificate cannot be used"},
    {"x509-expired", "the certificate has expired"},
    {"x509-foreign-ca", "the certificate was not issued by this CA"},
    {"x509-invalid", "the certificate cannot be verified"},
    {"x509-key-encrypted", "the private key is encrypted; decrypt it into a file of mode 0600"},
    {"x509-key-mismatch", "the private key is not that of the certificate"},
    {"x509-key-unreadable", "the file holds no private key"},
    {"x509-key-usage", "the certificate does not permit this use"},
    {"x509-not-yet-valid", "the certificate is not valid yet"},
    {"x509-weak-key", "a key of the chain is too weak"},
};

const char *mpicrypt_sentence(const char *topic)
{
    for (size_t i = 0; NULL != topic && i < sizeof(sentences) / sizeof(sentences[0]); ++i) {
        if (0 == strcmp(sentences[i].topic, topic)) {
            return sentences[i].sentence;
        }
    }
    return NULL;
}

const char *mpicrypt_sentence_of(int rc)
{
    switch (rc) {
    case OPAL_CRYPT_ERR_AUTH:
        return "bytes were changed, moved or cut: no holder of the key wrote this block";
    case OPAL_CRYPT_ERR_TORN:
        return "torn block: its first write was cut short, so it was never complete";
    case OPAL_CRYPT_ERR_ACCESS:
        return "no key for these bytes";
    default:
        return opal_crypt_strerror(rc);
    }
}

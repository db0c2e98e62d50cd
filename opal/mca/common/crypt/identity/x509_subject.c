/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Subjects: as text for people, and against patterns.
 */
#include "x509_chain.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include <openssl/bio.h>

void opal_crypt_subject_text(X509 *leaf, char *text, size_t text_bytes)
{
    BIO *memory = BIO_new(BIO_s_mem());
    int got = 0;

    if (NULL != memory && X509_NAME_print_ex(memory, X509_get_subject_name(leaf), 0, XN_FLAG_RFC2253) >= 0) {
        got = BIO_read(memory, text, (int) text_bytes - 1);
    }
    text[got > 0 ? got : 0] = 0;
    BIO_free(memory);
}

/* One part of a name as "TYPE=value" in UTF-8; false if it cannot be converted. */
static bool part_text(const X509_NAME_ENTRY *entry, char *text, size_t text_bytes)
{
    int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    unsigned char *value = NULL;
    int bytes = ASN1_STRING_to_UTF8(&value, X509_NAME_ENTRY_get_data(entry));
    bool good = NID_undef != nid && bytes >= 0 && NULL == memchr(value, 0, (size_t) bytes)
                && snprintf(text, text_bytes, "%s=%.*s", OBJ_nid2sn(nid), bytes, (const char *) value)
                       < (int) text_bytes;

    if (bytes >= 0) {
        OPENSSL_free(value);
    }
    return good;
}

/* One pattern of `bytes` bytes: it has as many parts as the subject, and each one matches. */
static bool pattern_matches(const X509_NAME *name, const char *pattern, size_t bytes)
{
    const char *at = pattern, *end = pattern + bytes;
    int entries = X509_NAME_entry_count(name);
    char part[512], text[512];

    for (int i = entries - 1; i >= 0; --i) {        /* RFC 2253 begins with the last */
        const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, i);
        const char *comma = NULL == at ? NULL : memchr(at, ',', (size_t) (end - at));
        size_t part_bytes;

        /* The values of a multi-valued part have no order that a pattern could follow. */
        if (NULL == at || X509_NAME_ENTRY_set(entry) != i) {
            return false;
        }
        part_bytes = (size_t) ((NULL == comma ? end : comma) - at);
        if (part_bytes >= sizeof(part) || !part_text(entry, text, sizeof(text))) {
            return false;
        }
        memcpy(part, at, part_bytes);
        part[part_bytes] = 0;
        if (0 != fnmatch(part, text, 0)) {
            return false;
        }
        at = NULL == comma ? NULL : comma + 1;
    }
    return entries > 0 && NULL == at;
}

bool opal_crypt_subject_matches(X509 *leaf, const char *patterns)
{
    const X509_NAME *name = X509_get_subject_name(leaf);

    while (0 != patterns[0]) {
        size_t bytes = strcspn(patterns, ";");

        if (pattern_matches(name, patterns, bytes)) {
            return true;
        }
        patterns += bytes + (';' == patterns[bytes]);
    }
    return false;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * RECORDS, version 1: what a process publishes before any contact. docs/wire-format.rst, "Records", is the
 * specification.  Big-endian.
 *
 *     | version 2 | n 1 | name n | rank 4 | instance 4 |      the same in every version
 *     | method 1 | key agreement 1 | cipher 1 | epoch shift 1 | flags 2 |
 *     | boot id 16 | node nonce 16 | created 8 |
 *     | a 2 | agreed a | public key 32 or 65 | e 2 | extensions e |
 *     ------------------------------------------------------- end of the body
 *     | m 4 | authenticator m |                               over the body
 *
 * An incoming record is an attacker's input.  Parsing copies nothing and trusts nothing: it returns views into the
 * caller's bytes, all of them inside the record, and accepts no byte that it does not account for.
 *
 * Extensions: | type 2, its upper bit: critical | length 2 | bytes |, types without that bit in ascending order.  A
 * process that does not know a critical one refuses the record.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_IDENTITY_RECORD_H
#define OPAL_CRYPT_IDENTITY_RECORD_H

#include "opal/mca/common/crypt/base/base.h"
#include "local.h"

#define OPAL_CRYPT_RECORD_NAME_MAX      255
#define OPAL_CRYPT_RECORD_AGREED_MAX    1024
#define OPAL_CRYPT_RECORD_EXTENSIONS_MAX 4096
#define OPAL_CRYPT_RECORD_SCOPE_ALL     0x0001
#define OPAL_CRYPT_RECORD_FLAGS         0x0001      /* all defined bits */

/* Bytes of a body without its name, agreed parameters, public key and extensions. */
#define OPAL_CRYPT_RECORD_FIXED         61

typedef struct opal_crypt_record {
    uint16_t version;
    const char *name;                   /* name_bytes long, without a final zero */
    size_t name_bytes;
    uint32_t rank, instance;
    /* The rest is filled only if version is ours. */
    uint8_t method, kex, cipher, epoch_shift;
    uint16_t flags;
    const uint8_t *boot_id, *node_nonce;
    uint64_t created;                   /* seconds since 1970 */
    const char *agreed;
    size_t agreed_bytes;
    const uint8_t *public_key;
    size_t public_bytes;
    const uint8_t *extensions;          /* the whole list, well formed */
    size_t extensions_bytes;
    const uint8_t *body;                /* the record's first byte */
    size_t body_bytes;
    const uint8_t *authenticator;
    size_t authenticator_bytes;
} opal_crypt_record_t;

/* ERR_AUTH if the bytes are not a record, ERR_PEER if they are one of another version (then only the first fields are
 * filled). */
int opal_crypt_record_parse(const uint8_t *bytes, size_t count, opal_crypt_record_t *record);

/* ---- extensions (crypt/identity/record_extension.c) ---- */

typedef struct opal_crypt_extension {
    uint16_t type;                      /* 1 .. 0x7fff */
    bool critical;
    const uint8_t *bytes;
    size_t count;
} opal_crypt_extension_t;

#define OPAL_CRYPT_EXTENSION_CRITICAL   0x8000
#define OPAL_CRYPT_EXTENSION_HEAD       4           /* type, length */

/* Types that this version knows. */
#define OPAL_CRYPT_EXTENSION_REPORT     1           /* no bytes: crypt_report is set */
#define OPAL_CRYPT_EXTENSION_TRANSPORT  16          /* what a transport of the process needs */

/* Is the list valid: complete, types in ascending order, known ones of the right length? */
bool opal_crypt_extensions_good(const uint8_t *list, size_t bytes);

/* Append one to the list of *used bytes; false if it does not fit into `capacity`, or its type is not above the last
 * one's. */
bool opal_crypt_extension_put(uint8_t *list, size_t capacity, size_t *used,
                              const opal_crypt_extension_t *extension);

/* Find the one of this type; false: there is none. */
bool opal_crypt_record_extension(const opal_crypt_record_t *record, uint16_t type, opal_crypt_extension_t *extension);

/* The type of a critical extension that this version does not know, or 0. */
uint16_t opal_crypt_record_unknown(const opal_crypt_record_t *record);

/* ---- the record ---- */

/* Write the body of `record` (version, pointers and lengths are read, body and authenticator are not) to `out`;
 * returns its length, or 0 if it does not fit into `capacity` or a field is out of bounds. */
size_t opal_crypt_record_pack(const opal_crypt_record_t *record, uint8_t *out, size_t capacity);

/* The first difference in what both sides must agree on, as text for people ("cipher: AES-128-GCM here, AES-256-GCM
 * there"); returns the help topic, or NULL if they agree.  The version of ompi-crypt is compared first. */
const char *opal_crypt_record_difference(const opal_crypt_record_t *ours,
                                         const opal_crypt_record_t *theirs,
                                         char *text, size_t text_bytes);

/* "NAME rank R", unprintable characters as '?'. */
void opal_crypt_record_title(const opal_crypt_record_t *record, char *text, size_t text_bytes);

#endif

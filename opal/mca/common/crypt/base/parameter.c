/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Names of MCA parameters, ours and those that look like ours, and whether their values can be read, according to the
 * table (params.def); shell/parameters compares it with what Open MPI knows, in every series.
 */
#include "parameter.h"
#include "algorithms.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define ROW(name, type, ...) {name, OPAL_CRYPT_PARAMETER_##type, __VA_ARGS__},
static const opal_crypt_parameter_row_t entries[] = {
#include "params.def"
};
#undef ROW
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

/* Names that a user may expect, and the parameters that serve instead. */
static const struct {
    const char *name, *meant;
} expected[] = {
    {"crypt_algorithm", "crypt_key_bits (of AES-GCM)"},
    {"crypt_bits", "crypt_key_bits"},
    {"crypt_cipher", "crypt_key_bits (of AES-GCM), or aead (which library)"},
    {"crypt_debug", "crypt_verbose"},
    {"crypt_enable", "pml=crypt"},
    {"crypt_enabled", "pml=crypt"},
    {"crypt_key", "crypt_psk_file"},
    {"crypt_key_file", "crypt_psk_file"},
    {"crypt_key_length", "crypt_key_bits"},
    {"crypt_key_size", "crypt_key_bits"},
    {"crypt_library", "aead"},
    {"crypt_method", "crypt_auth"},
    {"crypt_provider", "aead"},
    {"crypt_psk", "crypt_psk_file"},
    {"crypt_timeout", "crypt_connect_timeout"},
};

/* Prefixes of parameters that also serve files or set a policy: a job may set them and send no encrypted message. */
static const char *const not_of_messages[] = {"crypt_fips", "crypt_keystore", "crypt_pkcs11_", "crypt_required",
                                              "crypt_secret_on_netfs", "crypt_verbose"};

/* Prefixes that only we use.  fbtl_crypt and hook_crypt have no parameter today. */
static const char *const prefixes[] = {"aead_",     "btl_crypt_", "coll_cryptag_", "crypt_",
                                       "fs_crypt_", "fbtl_crypt_", "hook_crypt_",  "pml_crypt_"};
enum { PREFIXES = sizeof(prefixes) / sizeof(prefixes[0]) };

/* A name longer than LONGEST by more than EDITS matches none of ours; one shorter than SHORTEST is close to too many
 * others. */
enum { LONGEST = 63, SHORTEST = 8, EDITS = 2 };

/* The number of letters to insert, delete or replace to turn `a` into `b`, which has no capitals, if at most `most`;
 * otherwise more than `most`.  Case is ignored. */
static unsigned edits(const char *a, const char *b, unsigned most)
{
    const size_t a_bytes = strlen(a), b_bytes = strlen(b);
    unsigned row[LONGEST + 1];

    if (a_bytes > LONGEST || b_bytes > LONGEST
        || (a_bytes > b_bytes ? a_bytes - b_bytes : b_bytes - a_bytes) > most) {
        return most + 1;
    }
    for (size_t j = 0; j <= b_bytes; j++) {
        row[j] = (unsigned) j;
    }
    for (size_t i = 1; i <= a_bytes; i++) {
        unsigned corner = row[0], least = row[0] = (unsigned) i;
        for (size_t j = 1; j <= b_bytes; j++) {
            const unsigned replaced = corner + (tolower((unsigned char) a[i - 1]) != b[j - 1]);
            unsigned best = (row[j - 1] < row[j] ? row[j - 1] : row[j]) + 1;

            best = replaced < best ? replaced : best;
            corner = row[j];
            row[j] = best;
            least = best < least ? best : least;
        }
        if (least > most) {
            return most + 1;
        }
    }
    return row[b_bytes];
}

/* The closest of ours within `most` edits; the first of equals. */
static const opal_crypt_parameter_row_t *find_parameter(const char *name, unsigned most)
{
    const opal_crypt_parameter_row_t *best = NULL;

    for (int i = 0; i < ENTRIES; i++) {
        const unsigned distance = edits(name, entries[i].name, most);
        if (distance <= most) {
            best = &entries[i];
            if (0 == distance) {
                return best;
            }
            most = distance - 1;
        }
    }
    return best;
}

/* The prefix of ours that it has, or NULL. */
static const char *prefix_of(const char *name)
{
    for (int i = 0; i < PREFIXES; i++) {
        if (0 == strncmp(name, prefixes[i], strlen(prefixes[i]))) {
            return prefixes[i];
        }
    }
    return NULL;
}

/* The parameter of this name under another prefix, if there is only one. */
static const char *elsewhere(const char *rest)
{
    const char *found = NULL;

    for (int i = 0; i < ENTRIES && '\0' != *rest; i++) {
        const char *prefix = prefix_of(entries[i].name);

        if (NULL != prefix && 0 == strcmp(rest, entries[i].name + strlen(prefix))) {
            if (NULL != found) {
                return NULL;
            }
            found = entries[i].name;
        }
    }
    return found;
}

/* The parameter that a misspelt name with one of our prefixes probably means, or NULL.  Up to a third of the letters
 * after the prefix may be wrong; with more, the user meant another word. */
static const char *meant_by(const char *name, const char *prefix)
{
    const char *rest = name + strlen(prefix), *other;
    const unsigned third = (unsigned) strlen(rest) / 3;

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        if (0 == strcmp(name, expected[i].name)) {
            return expected[i].meant;
        }
    }
    other = elsewhere(rest);
    if (NULL == other) {
        const opal_crypt_parameter_row_t *entry = find_parameter(name, third > EDITS ? third : EDITS);

        other = NULL == entry ? NULL : entry->name;
    }
    return other;
}

/* Parsed like Open MPI: a number in any base of C, and one letter for KiB, MiB or GiB.  Open MPI ignores what follows,
 * so 1e30 is 1 to it; here that is invalid. */
static opal_crypt_parameter_t judge_number(const opal_crypt_parameter_row_t *entry, const char *text)
{
    const bool negative = NULL != strchr(text, '-');
    const char *letters = "kmg", *letter;
    unsigned shift = 0;
    char *end;

    errno = 0;
    const uint64_t value = strtoull(text + (negative ? strspn(text, " -") : 0), &end, 0);
    if ('\0' != *end && NULL != (letter = strchr(letters, *end | 0x20))) {
        shift = 10 * (unsigned) (letter - letters + 1);
        end++;
    }
    if (end == text || '\0' != end[strspn(end, " \t")] || (end > text && NULL == strpbrk(text, "0123456789"))) {
        return OPAL_CRYPT_PARAMETER_UNREADABLE;
    }
    if (negative || 0 != errno || value > (OPAL_CRYPT_PARAMETER_SIZE == entry->type ? UINT64_MAX : UINT32_MAX) >> shift) {
        return OPAL_CRYPT_PARAMETER_UNREADABLE;
    }
    return value << shift < entry->least || value << shift > entry->most ? OPAL_CRYPT_PARAMETER_RANGE
                                                                         : OPAL_CRYPT_PARAMETER_KNOWN;
}

static opal_crypt_parameter_t judge_flag(const char *text)
{
    static const char *const words[] = {"true", "t", "enabled", "yes", "y", "false", "f", "disabled", "no", "n"};
    char *end;

    (void) strtol(text, &end, 0);
    if (end > text && '\0' == *end) {
        return OPAL_CRYPT_PARAMETER_KNOWN;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (0 == strcasecmp(text, words[i])) {
            return OPAL_CRYPT_PARAMETER_KNOWN;
        }
    }
    return OPAL_CRYPT_PARAMETER_UNREADABLE;
}

/* Open MPI also accepts a word's number, and itself refuses a number without a word. */
static opal_crypt_parameter_t judge_word(const char *words, const char *text)
{
    const size_t bytes = strlen(text);

    if (strspn(text, "0123456789") == bytes) {
        return OPAL_CRYPT_PARAMETER_KNOWN;
    }
    for (const char *word = words; '\0' != *word; word += strcspn(word, " "), word += strspn(word, " ")) {
        if (strcspn(word, " ") == bytes && 0 == strncmp(word, text, bytes)) {
            return OPAL_CRYPT_PARAMETER_KNOWN;
        }
    }
    return OPAL_CRYPT_PARAMETER_UNREADABLE;
}

static opal_crypt_parameter_t judge_value(const opal_crypt_parameter_row_t *entry, const char *text)
{
    if (NULL == text || '\0' == *text) {
        return OPAL_CRYPT_PARAMETER_KNOWN;
    }
    switch (entry->type) {
    case OPAL_CRYPT_PARAMETER_TEXT:
        return OPAL_CRYPT_PARAMETER_KNOWN;
    case OPAL_CRYPT_PARAMETER_WORD:
    case OPAL_CRYPT_PARAMETER_CHOICE:
        return judge_word(entry->words, text);
    case OPAL_CRYPT_PARAMETER_FLAG:
        return judge_flag(text);
    default:
        return judge_number(entry, text);
    }
}

opal_crypt_parameter_t opal_crypt_parameter(const char *name, const char *value, const char **nearest)
{
    const char *prefix = 0 == strcmp(name, "aead") ? "" : prefix_of(name);
    const opal_crypt_parameter_row_t *entry;

    entry = NULL != prefix ? find_parameter(name, 0) : strlen(name) >= SHORTEST ? find_parameter(name, EDITS) : NULL;
    *nearest = NULL == entry ? NULL : entry->name;
    if (NULL != entry && 0 == strcmp(name, entry->name)) {
        const opal_crypt_parameter_t kind = judge_value(entry, value);
        if (OPAL_CRYPT_PARAMETER_UNREADABLE == kind) {
            *nearest = entry->words;
        }
        return kind;
    }
    if (NULL != prefix) {
        *nearest = meant_by(name, prefix);
        return OPAL_CRYPT_PARAMETER_UNKNOWN;
    }
    return NULL != entry ? OPAL_CRYPT_PARAMETER_NEAR : OPAL_CRYPT_PARAMETER_FOREIGN;
}

bool opal_crypt_parameter_of_messages(const char *name)
{
    for (size_t i = 0; i < sizeof(not_of_messages) / sizeof(not_of_messages[0]); i++) {
        if (0 == strncmp(name, not_of_messages[i], strlen(not_of_messages[i]))) {
            return false;
        }
    }
    return 0 == strncmp(name, "crypt_", 6) || 0 == strncmp(name, "btl_crypt_", 10) || 0 == strncmp(name, "pml_crypt_", 10)
           || 0 == strncmp(name, "coll_cryptag_", 13);
}

const opal_crypt_parameter_row_t *opal_crypt_parameter_at(size_t index)
{
    return index < ENTRIES ? &entries[index] : NULL;
}

const opal_crypt_parameter_row_t *opal_crypt_parameter_row(const char *name)
{
    return find_parameter(name, 0);
}

void opal_crypt_parameter_environment(opal_crypt_parameter_visit_t visit, void *argument)
{
    static const char mark[] = "OMPI_MCA_";
    char name[256];

    for (char **at = environ; NULL != at && NULL != *at; at++) {
        const char *from = *at + sizeof(mark) - 1, *nearest;
        size_t bytes;

        if (0 != strncmp(*at, mark, sizeof(mark) - 1) || (bytes = strcspn(from, "=")) >= sizeof(name) || '=' != from[bytes]) {
            continue;
        }
        memcpy(name, from, bytes);
        name[bytes] = '\0';
        const opal_crypt_parameter_t kind = opal_crypt_parameter(name, from + bytes + 1, &nearest);
        if (OPAL_CRYPT_PARAMETER_FOREIGN != kind) {
            visit(name, from + bytes + 1, kind, nearest, argument);
        }
    }
}

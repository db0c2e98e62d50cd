/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Names of MCA parameters, ours and what looks like them, and whether their values can be
 * read.  The table is what the components register; shell/parameters compares it with what
 * Open MPI knows, in every series.
 */
#include "parameter.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "frame.h"

/* What a value is: any text; one of the `words`; on or off; a number from `least` to `most`; one
 * that may be negative, up to `most`. */
typedef enum { TEXT, WORD, FLAG, NUMBER, SIGNED } type_t;

enum { MIB64 = 64 << 20 };

static const struct entry {
    const char *name;
    type_t type;
    uint64_t least, most;
    const char *words;      /* with a space between them */
} entries[] = {
    {"aead", TEXT, 0, 0, NULL},
    {"aead_base_verbose", TEXT, 0, 0, NULL},
    {"btl_crypt_accelerator_max_send_size", NUMBER, 0, UINT64_MAX, NULL},
    {"btl_crypt_atomic_flags", TEXT, 0, 0, NULL},
    {"btl_crypt_bandwidth", NUMBER, 0, UINT32_MAX, NULL},
    {"btl_crypt_eager_limit", NUMBER, 1, 1 << 20, NULL},
    {"btl_crypt_exclusivity", NUMBER, 0, UINT32_MAX, NULL},
    {"btl_crypt_flags", TEXT, 0, 0, NULL},
    {"btl_crypt_if_exclude", TEXT, 0, 0, NULL},
    {"btl_crypt_if_include", TEXT, 0, 0, NULL},
    {"btl_crypt_ktls", WORD, 0, 0, "off auto"},
    {"btl_crypt_latency", NUMBER, 0, UINT32_MAX, NULL},
    {"btl_crypt_max_send_size", NUMBER, 1, 1 << 20, NULL},
    {"btl_crypt_min_rdma_pipeline_size", NUMBER, 0, UINT64_MAX, NULL},
    {"btl_crypt_port_min", NUMBER, 0, UINT16_MAX, NULL},
    {"btl_crypt_port_range", NUMBER, 1, UINT32_MAX, NULL},
    {"btl_crypt_pq", WORD, 0, 0, "auto off require"},
    {"btl_crypt_put_alignment", NUMBER, 0, UINT64_MAX, NULL},
    {"btl_crypt_put_limit", NUMBER, 0, UINT64_MAX, NULL},
    {"btl_crypt_rdma_pipeline_frag_size", NUMBER, 0, UINT64_MAX, NULL},
    {"btl_crypt_rdma_pipeline_send_length", NUMBER, 0, UINT64_MAX, NULL},
    {"btl_crypt_replace_after", NUMBER, 0, UINT32_MAX, NULL},
    {"btl_crypt_rndv_eager_limit", NUMBER, 0, 1 << 20, NULL},
    {"btl_crypt_verbose", NUMBER, 0, UINT32_MAX, NULL},
    {"coll_cryptag_allgather_algorithm", WORD, 0, 0, "auto naive o-ring o-rd o-rd2 c-ring c-rd hs1 hs2 hs3 hop"},
    {"coll_cryptag_alltoall_algorithm", WORD, 0, 0, "auto hop node pairs rows"},
    {"coll_cryptag_bcast_algorithm", WORD, 0, 0, "auto hop binomial chain"},
    {"coll_cryptag_bcast_segment", NUMBER, 1024, MIB64, NULL},
    {"coll_cryptag_fragment", NUMBER, 4096, MIB64, NULL},
    {"coll_cryptag_leaders", WORD, 0, 0, "auto ring rd"},
    {"coll_cryptag_piece_max", NUMBER, 4096, MIB64, NULL},
    {"coll_cryptag_priority", SIGNED, 0, INT32_MAX, NULL},
    {"coll_cryptag_rules_file", TEXT, 0, 0, NULL},
    {"coll_cryptag_shm_max", NUMBER, 0, UINT64_MAX, NULL},
    {"coll_cryptag_verbose", NUMBER, 0, UINT32_MAX, NULL},
    {"crypt_audit", WORD, 0, 0, "abort warn"},
    {"crypt_auth", WORD, 0, 0, "auto psk munge x509 none"},
    {"crypt_connect_timeout", NUMBER, 0, UINT32_MAX, NULL},
    {"crypt_fips", FLAG, 0, 0, NULL},
    {"crypt_key_bits", NUMBER, 128, 256, NULL},
    {"crypt_keystore", WORD, 0, 0, "file pkcs11"},
    {"crypt_keystore_dir", TEXT, 0, 0, NULL},
    {"crypt_keystore_log", TEXT, 0, 0, NULL},
    {"crypt_keystore_machine_key", TEXT, 0, 0, NULL},
    {"crypt_munge_age", NUMBER, 1, 86400, NULL},
    {"crypt_munge_socket", TEXT, 0, 0, NULL},
    {"crypt_on_auth_failure", WORD, 0, 0, "abort error"},
    {"crypt_on_missing", WORD, 0, 0, "warn abort"},
    {"crypt_pkcs11_module", TEXT, 0, 0, NULL},
    {"crypt_pkcs11_pin_file", TEXT, 0, 0, NULL},
    {"crypt_pkcs11_token", TEXT, 0, 0, NULL},
    {"crypt_psk_file", TEXT, 0, 0, NULL},
    {"crypt_report", TEXT, 0, 0, NULL},
    {"crypt_required", FLAG, 0, 0, NULL},
    {"crypt_scope", WORD, 0, 0, "internode all"},
    {"crypt_secret_on_netfs", FLAG, 0, 0, NULL},
    {"crypt_threads", NUMBER, 0, UINT32_MAX, NULL},
    {"crypt_transport", WORD, 0, 0, "auto pml btl"},
    {"crypt_x509_ca", TEXT, 0, 0, NULL},
    {"crypt_x509_cert", TEXT, 0, 0, NULL},
    {"crypt_x509_crl", TEXT, 0, 0, NULL},
    {"crypt_x509_key", TEXT, 0, 0, NULL},
    {"crypt_x509_peer", TEXT, 0, 0, NULL},
    {"fs_crypt_algorithm", TEXT, 0, 0, NULL},
    {"fs_crypt_block_size", NUMBER, 512, 16777216, NULL},
    {"fs_crypt_durable", FLAG, 0, 0, NULL},
    {"fs_crypt_key_label", TEXT, 0, 0, NULL},
    {"fs_crypt_nfs", WORD, 0, 0, "refuse allow"},
    {"fs_crypt_plain_paths", TEXT, 0, 0, NULL},
    {"fs_crypt_require", FLAG, 0, 0, NULL},
    {"fs_crypt_seal", FLAG, 0, 0, NULL},
    {"fs_crypt_trust_locks", FLAG, 0, 0, NULL},
    {"fs_crypt_verbose", NUMBER, 0, UINT32_MAX, NULL},
    {"pml_crypt_chop_min", NUMBER, 1, OPAL_CRYPT_DIRECT_MAX, NULL},
    {"pml_crypt_chunk_size", NUMBER, OPAL_CRYPT_CHUNK_MIN, OPAL_CRYPT_CHUNK_MAX, NULL},
    {"pml_crypt_comm_threads", NUMBER, 0, UINT32_MAX, NULL},
    {"pml_crypt_host", TEXT, 0, 0, NULL},
    {"pml_crypt_k", NUMBER, 0, OPAL_CRYPT_CHUNKS_MAX, NULL},
    {"pml_crypt_max_in_flight", NUMBER, 1, UINT32_MAX, NULL},
    {"pml_crypt_max_outstanding", NUMBER, 0, UINT32_MAX, NULL},
    {"pml_crypt_model_comm", TEXT, 0, 0, NULL},
    {"pml_crypt_model_enc", TEXT, 0, 0, NULL},
    {"pml_crypt_raise_limits", FLAG, 0, 0, NULL},
    {"pml_crypt_t", NUMBER, 0, UINT32_MAX, NULL},
    {"pml_crypt_t_table", TEXT, 0, 0, NULL},
    {"pml_crypt_team", TEXT, 0, 0, NULL},
    {"pml_crypt_verbose", NUMBER, 0, UINT32_MAX, NULL},
#ifdef OPAL_CRYPT_TEST_RECORD
    {"crypt_epoch_shift", NUMBER, 0, UINT32_MAX, NULL},
#endif
};
enum { ENTRIES = sizeof(entries) / sizeof(entries[0]) };

/* What a user may look for under another name, and what does it. */
static const struct {
    const char *name, *meant;
} expected[] = {
    {"crypt_algorithm", "crypt_key_bits (of AES-GCM)"},
    {"crypt_bits", "crypt_key_bits"},
    {"crypt_cipher", "crypt_key_bits (of AES-GCM), or aead (which library)"},
    {"crypt_debug", "pml_crypt_verbose"},
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
    {"crypt_verbose", "pml_crypt_verbose"},
};

/* Begin those that also serve files, and those of a policy: a job may have them and send no message encrypted. */
static const char *const not_of_messages[] = {"crypt_fips", "crypt_keystore", "crypt_pkcs11_", "crypt_required", "crypt_secret_on_netfs"};

/* Nobody else's name begins so.  fbtl_crypt and hook_crypt have no parameter today. */
static const char *const prefixes[] = {"aead_",     "btl_crypt_", "coll_cryptag_", "crypt_",
                                       "fs_crypt_", "fbtl_crypt_", "hook_crypt_",  "pml_crypt_"};
enum { PREFIXES = sizeof(prefixes) / sizeof(prefixes[0]) };

/* A name that is longer than any of ours by more than EDITS is like none of them; shorter
 * ones than SHORTEST are like too many of others. */
enum { LONGEST = 63, SHORTEST = 8, EDITS = 2 };

/* Letters to put in, take out or replace to make `b`, which has no capitals, of `a`, where that is at most `most`; else
 * more than `most`.  Capitals do not count. */
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

/* The one of ours that takes the fewest edits, if `most` do; the first of equals. */
static const struct entry *find_parameter(const char *name, unsigned most)
{
    const struct entry *best = NULL;

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

/* Our prefix of it, or NULL. */
static const char *prefix_of(const char *name)
{
    for (int i = 0; i < PREFIXES; i++) {
        if (0 == strncmp(name, prefixes[i], strlen(prefixes[i]))) {
            return prefixes[i];
        }
    }
    return NULL;
}

/* A parameter that is called so behind another prefix, if only one is. */
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

/* The parameter that a misspelt name with one of our prefixes probably means, or NULL.  Up to a third of the letters behind
 * the prefix may be wrong; with more, the user meant another word. */
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
        const struct entry *entry = find_parameter(name, third > EDITS ? third : EDITS);

        other = NULL == entry ? NULL : entry->name;
    }
    return other;
}

/* As Open MPI reads it: a number in any base of C, and one letter for KiB, MiB or GiB.  What
 * stands behind that Open MPI ignores, so that 1e30 is 1; here it makes no number. */
static opal_crypt_parameter_t judge_number(const struct entry *entry, const char *text)
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
    if (negative) {
        return SIGNED == entry->type ? OPAL_CRYPT_PARAMETER_KNOWN : OPAL_CRYPT_PARAMETER_UNREADABLE;
    }
    if (0 != errno || value > (entry->most > UINT32_MAX ? UINT64_MAX : UINT32_MAX) >> shift) {
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

/* Open MPI takes the number of a word, too, and says itself if there is none. */
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

static opal_crypt_parameter_t judge_value(const struct entry *entry, const char *text)
{
    if (NULL == text || '\0' == *text || TEXT == entry->type) {
        return OPAL_CRYPT_PARAMETER_KNOWN;
    }
    return WORD == entry->type   ? judge_word(entry->words, text)
           : FLAG == entry->type ? judge_flag(text)
                                 : judge_number(entry, text);
}

opal_crypt_parameter_t opal_crypt_parameter(const char *name, const char *value, const char **nearest)
{
    const char *prefix = 0 == strcmp(name, "aead") ? "" : prefix_of(name);
    const struct entry *entry;

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

const char *opal_crypt_parameter_at(size_t index, const char **type)
{
    static const char *const types[] = {[TEXT] = "text", [FLAG] = "flag", [NUMBER] = "number", [SIGNED] = "signed"};

    if (index >= ENTRIES) {
        return NULL;
    }
    *type = NULL == entries[index].words ? types[entries[index].type] : entries[index].words;
    return entries[index].name;
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

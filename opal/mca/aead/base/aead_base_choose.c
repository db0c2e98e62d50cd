/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The rules for choosing a provider.  Nothing is timed: priorities come from CPU features and library versions, so
 * that all processes on one kind of node choose the same.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "opal/mca/aead/base/aead_base_choose.h"

bool opal_aead_base_is_auto(const char *wanted)
{
    return NULL == wanted || '\0' == wanted[0] || 0 == strcmp("auto", wanted);
}

__attribute__((format(printf, 3, 4)))
static int refuse(opal_aead_why_t *why, const char *topic, const char *format, ...)
{
    va_list arguments;

    why->topic = topic;
    va_start(arguments, format);
    vsnprintf(why->detail, sizeof(why->detail), format, arguments);
    va_end(arguments);
    return OPAL_AEAD_ERROR;
}

/* Append to a comma-separated list, if there is room. */
static void list_add(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);

    snprintf(list + used, size - used, "%s%s", 0 == used ? "" : ", ", name);
}

static bool can(const opal_aead_candidate_t *candidate, opal_aead_cipher_t cipher)
{
    return 0 != (candidate->module->ciphers & OPAL_AEAD_BIT(cipher)) && 0 <= candidate->priority(cipher);
}

static bool is_fips(const opal_aead_candidate_t *candidate)
{
    return NULL != candidate->is_fips && candidate->is_fips();
}

static int choose_named(const opal_aead_candidate_t *candidates, size_t count,
                        const char *wanted, opal_aead_cipher_t cipher, bool fips,
                        const opal_aead_module_t **module, opal_aead_why_t *why)
{
    char have[512] = "";

    for (size_t i = 0; i < count; ++i) {
        const opal_aead_candidate_t *candidate = &candidates[i];

        if (0 != strcmp(wanted, candidate->module->name)) {
            list_add(have, sizeof(have), candidate->module->name);
            continue;
        }
        if (fips && !is_fips(candidate)) {
            return refuse(why, "not fips", "%s (%s)", wanted, candidate->module->version());
        }
        if (!can(candidate, cipher)) {
            return refuse(why, "cannot", "%s, %s", wanted, opal_aead_cipher_name(cipher));
        }
        if (OPAL_AEAD_OK != opal_aead_base_selftest(candidate->module, cipher)) {
            return refuse(why, "selftest", "%s (%s), %s", wanted, candidate->module->version(), opal_aead_cipher_name(cipher));
        }
        *module = candidate->module;
        return OPAL_AEAD_OK;
    }
    return refuse(why, "unknown", "\"%.64s\" (available: auto%s%s)", wanted, '\0' == have[0] ? "" : ", ", have);
}

/* The best candidate whose bit in `tried` is not set. */
static const opal_aead_candidate_t *best(const opal_aead_candidate_t *candidates, size_t count,
                                         opal_aead_cipher_t cipher, bool fips, uint64_t *tried)
{
    size_t at = count;

    for (size_t i = 0; i < count && i < 64; ++i) {
        if (0 == (*tried & UINT64_C(1) << i) && can(&candidates[i], cipher) && (!fips || is_fips(&candidates[i]))
            && (at == count || candidates[i].priority(cipher) > candidates[at].priority(cipher))) {
            at = i;
        }
    }
    if (at == count) {
        return NULL;
    }
    *tried |= UINT64_C(1) << at;
    return &candidates[at];
}

static int choose_auto(const opal_aead_candidate_t *candidates, size_t count,
                       opal_aead_cipher_t cipher, bool fips,
                       const opal_aead_module_t **module, opal_aead_why_t *why)
{
    const opal_aead_candidate_t *candidate;
    char failed[512] = "", have[512] = "";
    uint64_t tried = 0;

    while (NULL != (candidate = best(candidates, count, cipher, fips, &tried))) {
        if (OPAL_AEAD_OK == opal_aead_base_selftest(candidate->module, cipher)) {
            *module = candidate->module;
            if ('\0' != failed[0]) {
                refuse(why, "passed over", "%s failed with %s; %s is used", failed, opal_aead_cipher_name(cipher),
                       candidate->module->name);
            }
            return OPAL_AEAD_OK;
        }
        list_add(failed, sizeof(failed), candidate->module->name);
    }
    if ('\0' != failed[0]) {
        return refuse(why, "selftest", "%s, %s", failed, opal_aead_cipher_name(cipher));
    }
    for (size_t i = 0; i < count; ++i) {
        list_add(have, sizeof(have), candidates[i].module->name);
    }
    return refuse(why, fips ? "no fips" : "none", "%s (providers here: %s)", opal_aead_cipher_name(cipher),
                  '\0' == have[0] ? "none" : have);
}

int opal_aead_base_choose(const opal_aead_candidate_t *candidates, size_t count,
                          const char *wanted, opal_aead_cipher_t cipher, bool fips,
                          const opal_aead_module_t **module, opal_aead_why_t *why)
{
    *module = NULL;
    *why = (opal_aead_why_t) { .topic = NULL };
    if (fips && OPAL_AEAD_CHACHA20_POLY1305 == cipher) {
        return refuse(why, "fips cipher", "%s", opal_aead_cipher_name(cipher));
    }
    if (opal_aead_base_is_auto(wanted)) {
        return choose_auto(candidates, count, cipher, fips, module, why);
    }
    return choose_named(candidates, count, wanted, cipher, fips, module, why);
}

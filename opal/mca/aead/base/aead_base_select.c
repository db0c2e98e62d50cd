/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Selection: offers the open components to aead_base_choose.c as candidates, and adds the reasons that only the
 * framework knows.
 */
#include "opal_config.h"

#include <stdio.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/util/output.h"

#include "opal/mca/aead/base/aead_base_compat.h"
#include "opal/mca/aead/base/aead_base_help.h"
#include "opal/mca/aead/base/base.h"

#define CANDIDATES_MOST 32

static size_t candidates_of_framework(opal_aead_candidate_t *candidates)
{
    mca_base_component_list_item_t *item;
    size_t count = 0;

    if (!mca_base_framework_is_open(&opal_aead_base_framework)) {
        return 0;
    }
    OPAL_LIST_FOREACH(item, &opal_aead_base_framework.framework_components, mca_base_component_list_item_t) {
        const opal_aead_component_t *component = (const opal_aead_component_t *) item->cli_component;

        if (count < CANDIDATES_MOST) {
            candidates[count++] = (opal_aead_candidate_t) {
                component->module, component->priority, component->is_fips
            };
        }
    }
    return count;
}

static bool is_in_list(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = list; '\0' != *at; at += strcspn(at, ","), at += strspn(at, ", ")) {
        if (length == strcspn(at, ",") && 0 == strncmp(at, name, length)) {
            return true;
        }
    }
    return false;
}

/* For what choose reports as unknown or absent: name what is installed, and distinguish a provider that could not be
 * loaded here from a misspelt one. */
static void explain(const char *wanted, opal_aead_why_t *why)
{
    char installed[512];

    opal_aead_base_installed(installed, sizeof(installed));
    if (0 == strcmp("unknown", why->topic) && is_in_list(installed, wanted)) {
        why->topic = "not loaded";
        snprintf(why->detail, sizeof(why->detail), "%.64s", wanted);
    } else if (0 == strcmp("unknown", why->topic)) {
        snprintf(why->detail, sizeof(why->detail), "\"%.64s\" (available: auto%s%s)", wanted,
                 '\0' == installed[0] ? "" : ", ", installed);
    }
}

int opal_aead_base_select(const char *wanted, opal_aead_cipher_t cipher, bool fips,
                          const opal_aead_module_t **module, opal_aead_why_t *why)
{
    opal_aead_candidate_t candidates[CANDIDATES_MOST];
    const size_t count = candidates_of_framework(candidates);

    if (NULL == wanted && NULL != opal_aead_base_wanted && '^' != opal_aead_base_wanted[0]) {
        wanted = opal_aead_base_wanted;
    }
    if (OPAL_AEAD_OK != opal_aead_base_choose(candidates, count, wanted, cipher, fips, module, why)) {
        explain(wanted, why);
        opal_output_verbose(10, opal_aead_base_framework.framework_output, "aead: %s: %s: %s",
                            opal_aead_cipher_name(cipher), why->topic, why->detail);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    opal_output_verbose(10, opal_aead_base_framework.framework_output, "aead: %s by %s (%s)",
                        opal_aead_cipher_name(cipher), (*module)->name, (*module)->version());
    return OPAL_SUCCESS;
}

int opal_aead_base_open_and_select(opal_aead_cipher_t cipher, bool fips,
                                   const opal_aead_module_t **module, opal_aead_why_t *why)
{
    /* ChaCha20-Poly1305 needs the second one as well. */
    size_t first = OPAL_AEAD_CHACHA20_POLY1305 == cipher ? OPAL_AEAD_BASE_FIRST_MOST : 1;
    int rc;

    for (;;) {
        opal_aead_base_first = first;
        rc = mca_base_framework_open(&opal_aead_base_framework, 0);
        opal_aead_base_first = 0;
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        rc = opal_aead_base_select(NULL, cipher, fips, module, why);
        if (OPAL_SUCCESS == rc || 0 == first || !opal_aead_base_is_auto(opal_aead_base_wanted)) {
            return rc;
        }
        first = first < OPAL_AEAD_BASE_FIRST_MOST ? first + 1 : 0;
        (void) mca_base_framework_close(&opal_aead_base_framework);
    }
}

/* Open MPI registers the parameter with the framework, and thereby loads its components: so it is registered briefly,
 * read, and deregistered again. */
static bool wanted_is_auto(void)
{
    char *value = NULL;
    int index = mca_base_var_register("opal", "aead", NULL, NULL, "Default selection set of components for the aead "
                                      "framework", MCA_BASE_VAR_TYPE_STRING, NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE,
                                      OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_ALL_EQ, &value);
    const bool is = index >= 0 && opal_aead_base_is_auto(value);

    if (index >= 0) {
        mca_base_var_deregister(index);
    }
    return is;
}

bool opal_aead_base_may_wait(opal_aead_cipher_t cipher, bool fips)
{
    const char *first;

    if (mca_base_framework_is_registered(&opal_aead_base_framework)) {
        return false;       /* the libraries are loaded */
    }
    first = opal_aead_base_first_installed();
    return !fips && OPAL_AEAD_CHACHA20_POLY1305 != cipher && NULL != first && 0 != strcmp("openssl", first)
           && wanted_is_auto();
}

void opal_aead_base_show(const opal_aead_why_t *why)
{
    if (NULL != why->topic) {
        OPAL_AEAD_BASE_HELP("help-opal-aead-base.txt", why->topic, why->detail);
    }
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The framework: register, open, close.
 *
 * Open MPI registers a parameter of its name for every framework, and loads only components that it lists.  `--mca
 * aead NAME` and `--mca aead ^NAME` work by this filter: no other provider's library enters the process. "auto", and
 * names that are not installed, are kept from the filter, which would make opening the framework fail with an
 * uninformative error.
 *
 * A job that lets `auto` choose needs few of the libraries: see first_of_auto.
 */
#include "opal_config.h"

#include <stdio.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_component_repository.h"

#include "opal/mca/aead/base/aead_base_compat.h"
#include "opal/mca/aead/base/base.h"
#include "opal/mca/aead/base/static-components.h"

const char *opal_aead_base_wanted;

size_t opal_aead_base_first = 0;

/* The order of `auto` begins like this for AES-GCM on every CPU (docs/providers.rst), and with these two for every
 * cipher.  Loading all providers would cost each process of a job as much as the rest of MPI_Init. */
static const char *const first_of_auto[OPAL_AEAD_BASE_FIRST_MOST] = { "ipsecmb", "openssl" };

static char *parameter;            /* the parameter's string, while the filter replaces it */
static char first_filter[32];
static bool filtered;

/* Calls `visit` for each installed component, static or not, loaded or not. */
static void each_installed(void (*visit)(const char *name, void *argument), void *argument)
{
    opal_list_t *components;
    mca_base_component_repository_item_t *item;

    for (int i = 0; NULL != mca_aead_base_static_components[i]; ++i) {
        visit(OPAL_AEAD_BASE_STATIC(mca_aead_base_static_components[i])->mca_component_name, argument);
    }
    if (OPAL_SUCCESS == mca_base_component_repository_get_components(&opal_aead_base_framework, &components)) {
        OPAL_LIST_FOREACH(item, components, mca_base_component_repository_item_t) {
            visit(item->ri_name, argument);
        }
    }
}

typedef struct {
    char *text;
    size_t size;
} text_t;

static void add_name(const char *name, void *argument)
{
    const text_t *list = argument;
    const size_t used = strlen(list->text);

    snprintf(list->text + used, list->size - used, "%s%s", 0 == used ? "" : ", ", name);
}

void opal_aead_base_installed(char *list, size_t size)
{
    text_t text = { list, size };

    list[0] = '\0';
    each_installed(add_name, &text);
}

typedef struct {
    const char *name;
    bool found;
} search_t;

static void compare_name(const char *name, void *argument)
{
    search_t *search = argument;

    search->found |= 0 == strcmp(name, search->name);
}

static bool is_installed(const char *name)
{
    search_t search = { name, false };

    each_installed(compare_name, &search);
    return search.found;
}

const char *opal_aead_base_first_installed(void)
{
    for (size_t i = 0; i < OPAL_AEAD_BASE_FIRST_MOST; i++) {
        if (is_installed(first_of_auto[i])) {
            return first_of_auto[i];
        }
    }
    return NULL;
}

/* The filter for the first `count` of `auto`, or the next installed one if none of these is; NULL if none is installed
 * at all. */
static char *filter_of_first(size_t count)
{
    first_filter[0] = '\0';
    for (size_t i = 0; i < count || ('\0' == first_filter[0] && i < OPAL_AEAD_BASE_FIRST_MOST); i++) {
        const size_t used = strlen(first_filter);

        if (is_installed(first_of_auto[i])) {
            snprintf(first_filter + used, sizeof(first_filter) - used, "%s%s", 0 == used ? "" : ",",
                     first_of_auto[i]);
        }
    }
    return '\0' == first_filter[0] ? NULL : first_filter;
}

/* ompi_info registers everything (REGISTER_ALL) and needs no filter. */
static int aead_base_register(mca_base_register_flag_t flags)
{
    char *wanted = opal_aead_base_framework.framework_selection;
    const bool is_auto = opal_aead_base_is_auto(wanted);

    opal_aead_base_wanted = wanted;
    if (0 != (flags & MCA_BASE_REGISTER_ALL) || (NULL != wanted && '^' == wanted[0])
        || (!is_auto && is_installed(wanted)) || (NULL == wanted && 0 == opal_aead_base_first)) {
        return OPAL_SUCCESS;
    }
    parameter = wanted;
    filtered = true;
    opal_aead_base_framework.framework_selection = is_auto && opal_aead_base_first > 0
        ? filter_of_first(opal_aead_base_first) : NULL;
    return OPAL_SUCCESS;
}

/* The parameter's string is put back; Open MPI frees it with the parameter.  Whatever fails here, select finds no
 * component and gives the reason. */
static int aead_base_open(mca_base_open_flag_t flags)
{
    if (!filtered || opal_aead_base_is_auto(opal_aead_base_wanted)) {
        (void) mca_base_framework_components_open(&opal_aead_base_framework, flags);
    }
    if (filtered) {
        opal_aead_base_framework.framework_selection = parameter;
        filtered = false;
    }
    return OPAL_SUCCESS;
}

static int aead_base_close(void)
{
    opal_aead_base_wanted = NULL;
    return mca_base_framework_components_close(&opal_aead_base_framework, NULL);
}

MCA_BASE_FRAMEWORK_DECLARE(opal, aead, "Authenticated encryption", aead_base_register,
                           aead_base_open, aead_base_close, mca_aead_base_static_components, 0);

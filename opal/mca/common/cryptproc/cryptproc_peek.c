/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Other components' parameters, before they are registered, and the values they will have.
 */
#include "cryptproc.h"
#include "opal/mca/common/crypt/base/environment.h"

#include <stdlib.h>
#include <string.h>

void opal_cryptproc_peek(opal_cryptproc_peek_t *peek, void *storage)
{
    char name[200];

    snprintf(name, sizeof(name), "%s%s%s%s%s", peek->framework, NULL == peek->component ? "" : "_",
             NULL == peek->component ? "" : peek->component, NULL == peek->name ? "" : "_",
             NULL == peek->name ? "" : peek->name);
    peek->there = OPAL_SUCCESS == mca_base_var_find_by_name(name, &peek->index);
    if (!peek->there) {
        peek->index = mca_base_var_register(peek->project, peek->framework, peek->component, peek->name, peek->help,
                                            peek->type, NULL, 0, peek->flags, peek->level, peek->scope, storage);
    }
    if (peek->index >= 0
        && OPAL_SUCCESS != mca_base_var_get_value(peek->index, &peek->value, &peek->source, NULL)) {
        opal_cryptproc_peek_end(peek);
    }
}

void opal_cryptproc_peek_end(opal_cryptproc_peek_t *peek)
{
    if (peek->index >= 0 && !peek->there) {
        mca_base_var_deregister(peek->index);
    }
    peek->index = -1;
}

char *opal_cryptproc_selection(const char *project, const char *framework)
{
    char *storage = NULL, *copy;
    opal_cryptproc_peek_t peek = {.project = project, .framework = framework, .help = "Default selection set of components",
                                  .type = MCA_BASE_VAR_TYPE_STRING, .flags = MCA_BASE_VAR_FLAG_SETTABLE,
                                  .level = OPAL_INFO_LVL_2, .scope = MCA_BASE_VAR_SCOPE_ALL_EQ};
    const char *const *value;

    opal_cryptproc_peek(&peek, &storage);
    if (peek.index < 0) {
        return NULL;
    }
    value = peek.value;
    copy = strdup(NULL != value && NULL != *value ? *value : "");
    opal_cryptproc_peek_end(&peek);
    return copy;
}

/* ---- environment set for Open MPI ---- */

enum { SAVED = 8 };

static struct saved {
    char *variable, *before;            /* NULL: it was unset */
} saved[SAVED];

bool opal_cryptproc_setenv(const char *variable, const char *value)
{
    const char *before;
    int i = 0;

    while (i < SAVED && NULL != saved[i].variable && 0 != strcmp(saved[i].variable, variable)) {
        ++i;
    }
    if (SAVED == i) {
        return false;
    }
    if (NULL == saved[i].variable) {
        before = getenv(variable);
        saved[i].before = NULL == before ? NULL : strdup(before);
        saved[i].variable = strdup(variable);
        if (NULL == saved[i].variable || (NULL != before && NULL == saved[i].before)) {
            return false;
        }
    }
    return opal_crypt_environment_set(variable, value);
}

/* A variable that cannot be restored, for lack of memory, is tried again next time. */
void opal_cryptproc_restore_env(void)
{
    int kept = 0;

    for (int i = 0; i < SAVED && NULL != saved[i].variable; i++) {
        const struct saved one = saved[i];

        saved[i] = (struct saved) {NULL, NULL};
        if (!opal_crypt_environment_set(one.variable, one.before)) {
            saved[kept++] = one;
            continue;
        }
        free(one.variable);
        free(one.before);
    }
}

bool opal_cryptproc_opens(const char *framework, const char *name, bool must_be_named)
{
    char *list = opal_cryptproc_selection("ompi", framework);
    const bool opens = NULL != list && opal_cryptproc_keeps(list, name)
                       && !(must_be_named && ('\0' == *list || '^' == *list));

    free(list);
    return opens;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a user or a site has said to btl/tcp of interfaces and ports: defaults of ours, as btl/crypt takes its place.
 * btl/tcp itself is not opened then, so its parameters are read for it.
 */
#include "btl_crypt.h"

#include <stdlib.h>
#include <string.h>

/* False: nobody has set it. */
static bool is_set(const char *name, mca_base_var_type_t type, void *storage, opal_cryptproc_peek_t *peek)
{
    *peek = (opal_cryptproc_peek_t) {.project = "opal", .framework = "btl", .component = "tcp", .name = name, .help = "",
                                     .type = type, .level = OPAL_INFO_LVL_1, .scope = MCA_BASE_VAR_SCOPE_READONLY};
    opal_cryptproc_peek(peek, storage);
    return peek->index >= 0 && MCA_BASE_VAR_SOURCE_DEFAULT != peek->source;
}

/* NULL: nobody has set it, or to nothing. */
static const char *text(const char *name)
{
    char *storage = NULL, *copy = NULL;
    opal_cryptproc_peek_t peek;

    if (is_set(name, MCA_BASE_VAR_TYPE_STRING, &storage, &peek)) {
        const char *const *value = peek.value;

        copy = NULL == *value || '\0' == **value ? NULL : strdup(*value);
    }
    opal_cryptproc_peek_end(&peek);
    return copy;
}

static void number(const char *name, unsigned *value)
{
    int storage = 0;
    opal_cryptproc_peek_t peek;

    if (is_set(name, MCA_BASE_VAR_TYPE_INT, &storage, &peek) && *(const int *) peek.value > 0) {
        *value = (unsigned) *(const int *) peek.value;
    }
    opal_cryptproc_peek_end(&peek);
}

void opal_btl_crypt_like_tcp(opal_btl_crypt_module_t *m)
{
    static const char *include, *exclude;       /* until they are registered, which copies them */

    free((char *) include);
    free((char *) exclude);
    include = text("if_include");
    exclude = text("if_exclude");
    m->include = (char *) include;
    if (NULL != exclude) {
        m->exclude = (char *) exclude;
    }
    number("port_min_v4", &m->port_min);
    number("port_range_v4", &m->port_range);
}

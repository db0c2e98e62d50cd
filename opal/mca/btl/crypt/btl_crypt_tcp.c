/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Interfaces and ports: what a user or a site has set for btl/tcp, which we replace; our own port parameters come
 * first.  btl/tcp is not opened then, so we read its parameters here.
 */
#include "btl_crypt.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_LOWEST = 1024 };            /* btl/tcp's default, where only a range is set */

static bool is_set(opal_cryptproc_peek_t *peek, void *storage)
{
    peek->project = "opal";
    peek->framework = "btl";
    peek->component = "tcp";
    peek->scope = MCA_BASE_VAR_SCOPE_READONLY;
    opal_cryptproc_peek(peek, storage);
    return peek->index >= 0 && MCA_BASE_VAR_SOURCE_DEFAULT != peek->source;
}

/* To be freed; NULL: unset or empty. */
static char *text(const char *name, const char *help)
{
    char *storage = NULL, *copy = NULL;
    opal_cryptproc_peek_t peek = {.name = name, .help = help, .type = MCA_BASE_VAR_TYPE_STRING, .level = OPAL_INFO_LVL_1};

    if (is_set(&peek, &storage)) {
        const char *const *value = peek.value;

        copy = NULL == *value || '\0' == **value ? NULL : strdup(*value);
    }
    opal_cryptproc_peek_end(&peek);
    return copy;
}

/* Returns 0 if unset or not a valid port. */
static unsigned number(const char *name, const char *help)
{
    int storage = 0;
    opal_cryptproc_peek_t peek = {.name = name, .help = help, .type = MCA_BASE_VAR_TYPE_INT, .level = OPAL_INFO_LVL_2};
    unsigned value = 0;

    if (is_set(&peek, &storage) && *(const int *) peek.value > 0 && *(const int *) peek.value <= UINT16_MAX) {
        value = (unsigned) *(const int *) peek.value;
    }
    opal_cryptproc_peek_end(&peek);
    return value;
}

void opal_btl_crypt_listen_options(const opal_btl_crypt_module_t *m, opal_btl_crypt_listen_options_t *options)
{
    unsigned port_min = number("port_min_v4", "The minimum port where the TCP BTL will try to bind");
    const unsigned port_range = number("port_range_v4", "The number of ports where the TCP BTL will try to bind");

    *options = (opal_btl_crypt_listen_options_t) {
        .include = text("if_include", "Interfaces and networks that the TCP BTL uses"),
        .exclude = text("if_exclude", "Interfaces and networks that the TCP BTL does not use"),
        .port_min = m->port_min, .port_range = m->port_range};
    if (0 == m->port_min && port_min + port_range > 0) {
        options->port_min = 0 == port_min ? PORT_LOWEST : port_min;
        options->port_range = 0 == port_range ? UINT16_MAX - options->port_min + 1 : port_range;
    }
}

void opal_btl_crypt_listen_options_free(opal_btl_crypt_listen_options_t *options)
{
    free(options->include);
    free(options->exclude);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Return codes as text, and the reason of a refusal.
 */
#include "crypt_base.h"

#include <stdarg.h>
#include <stdio.h>

int opal_common_crypt_refuse(opal_common_crypt_why_t *why, int rc, const char *topic,
                             const char *format, ...)
{
    va_list arguments;

    if (NULL == why) {
        return rc;
    }
    why->topic = topic;
    va_start(arguments, format);
    vsnprintf(why->detail, sizeof(why->detail), format, arguments);
    va_end(arguments);
    return rc;
}

const char *opal_common_crypt_strerror(int rc)
{
    switch (rc) {
    case OPAL_CRYPT_OK:
        return "success";
    case OPAL_CRYPT_ERR_AUTH:
        return "not authentic";
    case OPAL_CRYPT_ERR_REPLAY:
        return "seen before";
    case OPAL_CRYPT_ERR_ORDER:
        return "out of order";
    case OPAL_CRYPT_ERR_EXHAUSTED:
        return "the counter of this session is at its end";
    case OPAL_CRYPT_ERR_FORKED:
        return "a fork'd child has no keys";
    case OPAL_CRYPT_ERR_CONFIG:
        return "a parameter or a key file is wrong";
    case OPAL_CRYPT_ERR_PEER:
        return "the peer's record is refused";
    case OPAL_CRYPT_ERR_MEMORY:
        return "out of memory";
    case OPAL_CRYPT_ERR_LIBRARY:
        return "a library call failed";
    default:
        return "unknown error";
    }
}

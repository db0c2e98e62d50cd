/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Return codes in words, and the reason of a refusal.
 */
#include "base.h"

#include <stdarg.h>
#include <stdio.h>

int opal_crypt_refuse(opal_crypt_why_t *why, int rc, const char *topic,
                      const char *format, ...)
{
    va_list arguments;

    if (NULL != why) {
        why->topic = topic;
        va_start(arguments, format);
        vsnprintf(why->detail, sizeof(why->detail), format, arguments);
        va_end(arguments);
    }
    return rc;
}

const char *opal_crypt_strerror(int rc)
{
    switch (rc) {
    case OPAL_CRYPT_OK:
        return "success";
    case OPAL_CRYPT_ERR_AUTH:
        return "authentication failure";
    case OPAL_CRYPT_ERR_REPLAY:
        return "replayed message";
    case OPAL_CRYPT_ERR_ORDER:
        return "reordered message";
    case OPAL_CRYPT_ERR_EXHAUSTED:
        return "counter exhausted";
    case OPAL_CRYPT_ERR_FORKED:
        return "used in a fork'd child";
    case OPAL_CRYPT_ERR_CONFIG:
        return "configuration refused";
    case OPAL_CRYPT_ERR_PEER:
        return "peer refused";
    case OPAL_CRYPT_ERR_MEMORY:
        return "out of memory";
    case OPAL_CRYPT_ERR_LIBRARY:
        return "library failure";
    case OPAL_CRYPT_ERR_STORAGE:
        return "storage failure";
    case OPAL_CRYPT_ERR_TORN:
        return "torn block";
    case OPAL_CRYPT_ERR_ACCESS:
        return "no key for these bytes";
    case OPAL_CRYPT_ERR_OLD:
        return "record too old";
    }
    return "unknown error";
}

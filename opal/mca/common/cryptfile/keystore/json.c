/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * JSON that is read where it lies.  See cryptfile/keystore/json.h.
 */
#include "json.h"

#include <string.h>

enum { JSON_DEPTH = 16 };

static const char *json_value(const char *at, const char *stop, unsigned depth);

static bool json_is(char c, const char *set)
{
    return '\0' != c && NULL != strchr(set, c);
}

static const char *json_space(const char *at, const char *stop)
{
    while (at < stop && json_is(*at, " \t\r\n")) {
        ++at;
    }
    return at;
}

static const char *json_digits(const char *at, const char *stop)
{
    const char *first = at;

    while (at < stop && *at >= '0' && *at <= '9') {
        ++at;
    }
    return at == first ? NULL : at;
}

/* ---- each returns where its value ends, or NULL ---- */

static const char *json_text(const char *at, const char *stop)
{
    for (++at; at < stop && '"' != *at; ++at) {
        if ((unsigned char) *at < 0x20) {
            return NULL;
        }
        if ('\\' != *at) {
            continue;
        }
        if (++at == stop || !json_is(*at, "\"\\/bfnrtu")) {
            return NULL;
        }
        for (int i = 0; 'u' == *at && i < 4; ++i) {
            if (stop - at <= i + 1 || !json_is(at[i + 1], "0123456789abcdefABCDEF")) {
                return NULL;
            }
        }
    }
    return at < stop ? at + 1 : NULL;
}

static const char *json_figure(const char *at, const char *stop)
{
    at += at < stop && '-' == *at;
    at = at < stop && '0' == *at ? at + 1 : json_digits(at, stop);
    if (NULL != at && at < stop && '.' == *at) {
        at = json_digits(at + 1, stop);
    }
    if (NULL != at && at < stop && json_is(*at, "eE")) {
        at += 1 + (at + 1 < stop && json_is(at[1], "+-"));
        at = json_digits(at, stop);
    }
    return at;
}

static const char *json_word(const char *at, const char *stop)
{
    static const char *const words[] = {"true", "false", "null"};

    for (int i = 0; i < 3; ++i) {
        const size_t bytes = strlen(words[i]);
        if ((size_t) (stop - at) >= bytes && 0 == memcmp(at, words[i], bytes)) {
            return at + bytes;
        }
    }
    return NULL;
}

static const char *json_name(const char *at, const char *stop)
{
    at = at < stop && '"' == *at ? json_text(at, stop) : NULL;
    at = NULL == at ? NULL : json_space(at, stop);
    return NULL != at && at < stop && ':' == *at ? json_space(at + 1, stop) : NULL;
}

static const char *json_items(const char *at, const char *stop, unsigned depth)
{
    const bool named = '{' == *at;
    const char close = named ? '}' : ']';

    at = json_space(at + 1, stop);
    if (at < stop && close == *at) {
        return at + 1;
    }
    for (;;) {
        at = named ? json_name(at, stop) : at;
        at = NULL == at ? NULL : json_value(at, stop, depth + 1);
        at = NULL == at ? NULL : json_space(at, stop);
        if (NULL == at || at == stop || (close != *at && ',' != *at)) {
            return NULL;
        }
        if (close == *at) {
            return at + 1;
        }
        at = json_space(at + 1, stop);
    }
}

static const char *json_value(const char *at, const char *stop, unsigned depth)
{
    if (at == stop || depth > JSON_DEPTH) {
        return NULL;
    }
    return '{' == *at || '[' == *at ? json_items(at, stop, depth)
           : '"' == *at             ? json_text(at, stop)
           : json_is(*at, "tfn")    ? json_word(at, stop)
                                    : json_figure(at, stop);
}

/* ---- values of a text that was checked ---- */

bool opal_cryptfile_json_check(const char *text, size_t bytes, opal_cryptfile_json_t *value)
{
    const char *stop = text + bytes;

    value->at = json_space(text, stop);
    value->end = json_value(value->at, stop, 1);
    return NULL != value->end && stop == json_space(value->end, stop);
}

bool opal_cryptfile_json_next(opal_cryptfile_json_t *rest, opal_cryptfile_json_t *name, opal_cryptfile_json_t *value)
{
    const char *stop = rest->end, *at;

    if (stop - rest->at < 2) {                  /* the closing bracket */
        return false;
    }
    at = json_space(rest->at + 1, stop);        /* behind the opening bracket or a comma */
    if (at == stop - 1) {
        return false;
    }
    *value = (opal_cryptfile_json_t){at, json_value(at, stop, 1)};
    *name = *value;
    at = json_space(value->end, stop);
    if (':' == *at) {
        at = json_space(at + 1, stop);
        *value = (opal_cryptfile_json_t){at, json_value(at, stop, 1)};
        at = json_space(value->end, stop);
    }
    rest->at = at;
    return true;
}

bool opal_cryptfile_json_equals(const opal_cryptfile_json_t *value, const char *text)
{
    const char *found;
    size_t bytes;

    return opal_cryptfile_json_string(value, &found, &bytes) && strlen(text) == bytes && 0 == memcmp(found, text, bytes);
}

bool opal_cryptfile_json_member(const opal_cryptfile_json_t *object, const char *name, opal_cryptfile_json_t *value)
{
    opal_cryptfile_json_t rest = *object, found;

    while ('{' == *object->at && opal_cryptfile_json_next(&rest, &found, value)) {
        if (opal_cryptfile_json_equals(&found, name)) {
            return true;
        }
    }
    return false;
}

bool opal_cryptfile_json_string(const opal_cryptfile_json_t *value, const char **text, size_t *bytes)
{
    *text = value->at + 1;
    *bytes = '"' == *value->at ? (size_t) (value->end - value->at) - 2 : 0;
    return '"' == *value->at && NULL == memchr(*text, '\\', *bytes);
}

bool opal_cryptfile_json_number(const opal_cryptfile_json_t *value, uint64_t max, uint64_t *number)
{
    *number = 0;
    for (const char *at = value->at; at < value->end; ++at) {
        const unsigned digit = (unsigned char) *at - '0';
        if (digit > 9 || digit > max || *number > (max - digit) / 10) {
            return false;
        }
        *number = 10 * *number + digit;
    }
    return true;
}

bool opal_cryptfile_json_true(const opal_cryptfile_json_t *value)
{
    return 't' == *value->at;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Comma lists of sizes ("1,64,64K,4M") and of names ("openssl,ipsecmb").
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpicrypt.h"

static unsigned suffix_shift(char suffix)
{
    switch (toupper((unsigned char) suffix)) {
    case 'K': return 10;
    case 'M': return 20;
    case 'G': return 30;
    default: return 0;
    }
}

int mpicrypt_size_parse(const char *text, size_t *bytes)
{
    char *end;

    if (!isdigit((unsigned char) text[0])) {
        return -1;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (0 != errno) {
        return -1;
    }
    unsigned shift = suffix_shift(*end);
    if (0 != shift) {
        ++end;
    }
    if ('\0' != *end || value > (SIZE_MAX >> shift)) {
        return -1;
    }
    *bytes = (size_t) value << shift;
    return 0;
}

const char *mpicrypt_size_text(size_t bytes, char *text)
{
    static const char suffix[] = {'\0', 'K', 'M', 'G'};
    int level = 0;

    while (level < 3 && bytes >= 1024 && 0 == bytes % 1024) {
        bytes /= 1024;
        ++level;
    }
    snprintf(text, 24, "%zu%c", bytes, suffix[level]);
    return text;
}

void *mpicrypt_checked(void *block)
{
    if (NULL == block) {
        exit(mpicrypt_error(MPICRYPT_FAILED, "out of memory"));
    }
    return block;
}

void mpicrypt_names_add(mpicrypt_names_t *list, char *name)
{
    if (0 == (list->count & (list->count - 1))) {       /* 0, or a power of two: space for as many again, and the NULL */
        list->value = mpicrypt_checked(realloc(list->value, 2 * ((size_t) list->count + 1) * sizeof(*list->value)));
    }
    list->value[list->count++] = mpicrypt_checked(name);
    list->value[list->count] = NULL;
}

int mpicrypt_names_parse(const char *text, mpicrypt_names_t *list, char *error, size_t error_bytes)
{
    size_t bytes;

    *list = (mpicrypt_names_t){NULL, 0};
    for (const char *at = text;; at += bytes + 1) {
        bytes = strcspn(at, ",");
        if (0 == bytes) {
            snprintf(error, error_bytes, "'%s' has an empty entry", text);
            mpicrypt_names_free(list);
            return -1;
        }
        mpicrypt_names_add(list, strndup(at, bytes));
        if ('\0' == at[bytes]) {
            return 0;
        }
    }
}

int mpicrypt_sizes_parse(const char *text, mpicrypt_sizes_t *list, char *error, size_t error_bytes)
{
    mpicrypt_names_t words;
    int rc = mpicrypt_names_parse(text, &words, error, error_bytes);

    *list = (mpicrypt_sizes_t){NULL, 0};
    if (0 == rc) {
        list->value = mpicrypt_checked(calloc((size_t) words.count, sizeof(*list->value)));
    }
    for (; 0 == rc && list->count < words.count; ++list->count) {
        rc = mpicrypt_size_parse(words.value[list->count], &list->value[list->count]);
        if (0 != rc) {
            snprintf(error, error_bytes, "'%s' is not a number (with K, M or G for powers of 1024)", words.value[list->count]);
        }
    }
    if (0 != rc) {
        mpicrypt_sizes_free(list);
    }
    mpicrypt_names_free(&words);
    return rc;
}

void mpicrypt_sizes_free(mpicrypt_sizes_t *list)
{
    free(list->value);
    *list = (mpicrypt_sizes_t){NULL, 0};
}

void mpicrypt_names_free(mpicrypt_names_t *list)
{
    for (int i = 0; i < list->count; ++i) {
        free(list->value[i]);
    }
    free(list->value);
    *list = (mpicrypt_names_t){NULL, 0};
}

bool mpicrypt_names_contain(const mpicrypt_names_t *list, const char *name)
{
    for (int i = 0; i < list->count; ++i) {
        if (0 == strcmp(list->value[i], name)) {
            return true;
        }
    }
    return false;
}

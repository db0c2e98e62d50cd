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

int mpicrypt_names_parse(const char *text, mpicrypt_names_t *list, char *error, size_t error_bytes)
{
    int capacity = 1;
    const char *start = text;

    for (const char *p = text; '\0' != *p; ++p) {
        capacity += ',' == *p;
    }
    list->count = 0;
    list->value = calloc((size_t) capacity, sizeof(*list->value));
    if (NULL == list->value) {
        snprintf(error, error_bytes, "out of memory");
        return -1;
    }
    for (int i = 0; i < capacity; ++i) {
        size_t bytes = strcspn(start, ",");
        if (0 == bytes) {
            snprintf(error, error_bytes, "'%s' has an empty entry", text);
            mpicrypt_names_free(list);
            return -1;
        }
        list->value[i] = strndup(start, bytes);
        if (NULL == list->value[i]) {
            snprintf(error, error_bytes, "out of memory");
            mpicrypt_names_free(list);
            return -1;
        }
        ++list->count;
        start += bytes + 1;
    }
    return 0;
}

int mpicrypt_sizes_parse(const char *text, mpicrypt_sizes_t *list, char *error, size_t error_bytes)
{
    mpicrypt_names_t words;
    int rc = -1;

    list->count = 0;
    list->value = NULL;
    if (0 != mpicrypt_names_parse(text, &words, error, error_bytes)) {
        return -1;
    }
    list->value = calloc((size_t) words.count, sizeof(*list->value));
    if (NULL == list->value) {
        snprintf(error, error_bytes, "out of memory");
        goto free_words;
    }
    for (int i = 0; i < words.count; ++i) {
        if (0 != mpicrypt_size_parse(words.value[i], &list->value[i])) {
            snprintf(error, error_bytes, "'%s' is not a number (with K, M or G for powers of 1024)",
                     words.value[i]);
            mpicrypt_sizes_free(list);
            goto free_words;
        }
        ++list->count;
    }
    rc = 0;

free_words:
    mpicrypt_names_free(&words);
    return rc;
}

void mpicrypt_sizes_free(mpicrypt_sizes_t *list)
{
    free(list->value);
    list->value = NULL;
    list->count = 0;
}

void mpicrypt_names_free(mpicrypt_names_t *list)
{
    for (int i = 0; i < list->count; ++i) {
        free(list->value[i]);
    }
    free(list->value);
    list->value = NULL;
    list->count = 0;
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

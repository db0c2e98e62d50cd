/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Lists of hosts as the resource managers write them: "node[01-64,70],login1", also with
 * several brackets in a name.  Every name is one that a program like ssh takes for a host,
 * never for an option.
 */
#include <stdlib.h>
#include <string.h>

#include "mpicrypt.h"

enum { HOSTS_MAX = 65536, NAME_MAX_BYTES = 255, DIGITS_MAX = 9 };

/* What is being expanded, and where the texts of errors go. */
typedef struct {
    mpicrypt_names_t *list;
    char *error;
    size_t error_bytes;
} hosts_t;

static int refuse(const hosts_t *h, const char *format, const char *text, int bytes)
{
    snprintf(h->error, h->error_bytes, format, bytes, text);
    return -1;
}

/* False if a program could take it, or its part behind the user's name, for an option. */
static bool is_host(const char *host)
{
    const char *name = strrchr(host, '@');

    name = NULL == name ? host : name + 1;
    for (const char *c = host; '\0' != *c; ++c) {
        if ((unsigned char) *c <= ' ' || 0x7f == *c) {
            return false;
        }
    }
    return '\0' != *name && '-' != *name && '-' != *host;
}

static int add(hosts_t *h, const char *name)
{
    if (!is_host(name)) {
        return refuse(h, "'%.*s' is no host", name, NAME_MAX_BYTES);
    }
    if (HOSTS_MAX == h->list->count) {
        snprintf(h->error, h->error_bytes, "these are more than %d hosts", HOSTS_MAX);
        return -1;
    }
    mpicrypt_names_add(h->list, strdup(name));
    return 0;
}

static int expand(hosts_t *h, const char *before, const char *text, size_t bytes);

/* "7", "01-64": at most nine digits.  Numbers have at least as many digits as the first. */
static int range(const char *text, size_t bytes, unsigned long *low, unsigned long *high, int *width)
{
    size_t first = strspn(text, "0123456789"), second = 0;

    if (0 == first || first > DIGITS_MAX) {
        return -1;
    }
    *low = *high = strtoul(text, NULL, 10);
    *width = (int) first;
    if (first < bytes && '-' == text[first]) {
        second = strspn(text + first + 1, "0123456789");
        if (0 == second || second > DIGITS_MAX || second < first || ('0' == text[first + 1] && second != first)) {
            return -1;
        }
        *high = strtoul(text + first + 1, NULL, 10);
        second += 1;
    }
    return first + second == bytes && *low <= *high ? 0 : -1;
}

/* One bracket: each of its numbers between what is before it and the expansion of the rest. */
static int bracket(hosts_t *h, const char *before, const char *numbers, size_t bytes, const char *rest, size_t rest_bytes)
{
    char name[NAME_MAX_BYTES + DIGITS_MAX + 2];
    size_t item;

    for (const char *at = numbers; at <= numbers + bytes; at += item + 1) {
        unsigned long low, high;
        int width;

        item = strcspn(at, ",]");
        if (0 != range(at, item, &low, &high, &width)) {
            return refuse(h, "'[%.*s]' is no list of numbers and ranges, as in node[1-3,7] or node[01-64]", numbers, (int) bytes);
        }
        for (unsigned long number = low; number <= high; ++number) {
            snprintf(name, sizeof(name), "%s%0*lu", before, width, number);
            if (0 != expand(h, name, rest, rest_bytes)) {
                return -1;
            }
        }
    }
    return 0;
}

/* `before` is done; the `bytes` of text are still to be expanded. */
static int expand(hosts_t *h, const char *before, const char *text, size_t bytes)
{
    char name[NAME_MAX_BYTES + 1];
    size_t plain = strcspn(text, "[],");

    plain = plain < bytes ? plain : bytes;
    if (snprintf(name, sizeof(name), "%s%.*s", before, (int) plain, text) >= (int) sizeof(name)) {
        return refuse(h, "a name is too long: '%.*s'", text, 40);
    }
    if (plain == bytes) {
        return add(h, name);
    }
    size_t inside = '[' == text[plain] ? strcspn(text + plain + 1, "[]") : 0;
    if ('[' != text[plain] || plain + 1 + inside >= bytes || ']' != text[plain + 1 + inside]) {
        return refuse(h, "the brackets of '%.*s' do not match; one inside another has no meaning", text, (int) bytes);
    }
    return bracket(h, name, text + plain + 1, inside, text + plain + inside + 2, bytes - plain - inside - 2);
}

/* The length of the entry, whose commas may be in brackets. */
static size_t entry_bytes(const char *text)
{
    size_t bytes = 0;

    for (int depth = 0; '\0' != text[bytes] && (depth > 0 || ',' != text[bytes]); ++bytes) {
        depth += '[' == text[bytes] ? 1 : ']' == text[bytes] && depth > 0 ? -1 : 0;
    }
    return bytes;
}

static int by_name(const void *a, const void *b)
{
    const char *const *one = *(const char *const *const *) a, *const *other = *(const char *const *const *) b;
    int order = strcmp(*one, *other);

    return 0 != order ? order : (one > other) - (one < other);
}

/* A host that is named twice stays where it is named first. */
static void keep_first(hosts_t *h)
{
    char ***sorted = mpicrypt_checked(calloc((size_t) h->list->count, sizeof(*sorted))), *last = NULL;
    int kept = 0;

    for (int i = 0; i < h->list->count; ++i) {
        sorted[i] = &h->list->value[i];
    }
    qsort(sorted, (size_t) h->list->count, sizeof(*sorted), by_name);
    for (int i = 0; i < h->list->count; ++i) {
        if (NULL != last && 0 == strcmp(last, *sorted[i])) {
            free(*sorted[i]);
            *sorted[i] = NULL;
        } else {
            last = *sorted[i];
        }
    }
    free(sorted);
    for (int i = 0; i < h->list->count; ++i) {
        if (NULL != h->list->value[i]) {
            h->list->value[kept++] = h->list->value[i];
        }
    }
    h->list->count = kept;
}

int mpicrypt_hosts_parse(const char *text, mpicrypt_names_t *list, char *error, size_t error_bytes)
{
    hosts_t h = {.list = list, .error = error, .error_bytes = error_bytes};
    size_t bytes;
    int rc = 0;

    *list = (mpicrypt_names_t){NULL, 0};
    for (const char *at = text; 0 == rc; at += bytes + 1) {
        bytes = entry_bytes(at);
        rc = 0 == bytes ? refuse(&h, "'%.*s' has an empty entry", text, (int) strlen(text)) : expand(&h, "", at, bytes);
        if ('\0' == at[bytes]) {
            break;
        }
    }
    if (0 == rc) {
        keep_first(&h);
    } else {
        mpicrypt_names_free(list);
    }
    return rc;
}

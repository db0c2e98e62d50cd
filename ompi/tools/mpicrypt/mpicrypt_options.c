/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Options of a verb, parsed by its table: --name VALUE and --name=VALUE, flags
 * without a value, "--" ends the options, everything else is an operand.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpicrypt.h"

static const mpicrypt_option_t *find(const mpicrypt_verb_t *verb, const char *name, size_t bytes)
{
    for (const mpicrypt_option_t *option = verb->options; NULL != option->name; ++option) {
        if (strlen(option->name) == bytes && 0 == memcmp(option->name, name, bytes)) {
            return option;
        }
    }
    return NULL;
}

static void release(const mpicrypt_option_t *option)
{
    if (MPICRYPT_SIZES == option->kind) {
        mpicrypt_sizes_free(option->target);
    } else if (MPICRYPT_NAMES == option->kind || MPICRYPT_HOSTS == option->kind) {
        mpicrypt_names_free(option->target);
    }
}

static int parse_count(const char *text, size_t *value)
{
    size_t digits = strspn(text, "0123456789");
    return 0 == digits || '\0' != text[digits] ? -1 : mpicrypt_size_parse(text, value);
}

static int parse_real(const char *text, double *value)
{
    char *end;

    errno = 0;
    *value = strtod(text, &end);
    return end == text || '\0' != *end || 0 != errno || !isfinite(*value) ? -1 : 0;
}

/* Sets the target.  Lists replace what the default put there. */
static int assign(const mpicrypt_option_t *option, const char *text)
{
    char error[256] = "";
    int rc = 0;

    release(option);
    switch (option->kind) {
    case MPICRYPT_FLAG:
        *(bool *) option->target = NULL != text;
        return MPICRYPT_OK;
    case MPICRYPT_TEXT:
        *(const char **) option->target = text;
        rc = NULL != text && '\0' == text[0] ? -1 : 0;
        snprintf(error, sizeof(error), "it is empty");
        break;
    case MPICRYPT_COUNT:
        rc = parse_count(text, option->target);
        snprintf(error, sizeof(error), "'%s' is not a whole number", text);
        break;
    case MPICRYPT_REAL:
        rc = parse_real(text, option->target);
        snprintf(error, sizeof(error), "'%s' is not a number", text);
        break;
    case MPICRYPT_SIZES:
        rc = mpicrypt_sizes_parse(text, option->target, error, sizeof(error));
        break;
    case MPICRYPT_NAMES:
        rc = mpicrypt_names_parse(text, option->target, error, sizeof(error));
        break;
    case MPICRYPT_HOSTS:
        rc = mpicrypt_hosts_parse(text, option->target, error, sizeof(error));
        break;
    }
    return 0 == rc ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_USAGE, "--%s: %s", option->name, error);
}

static int assign_default(const mpicrypt_option_t *option)
{
    switch (option->kind) {
    case MPICRYPT_SIZES:
        *(mpicrypt_sizes_t *) option->target = (mpicrypt_sizes_t){NULL, 0};
        break;
    case MPICRYPT_NAMES:
    case MPICRYPT_HOSTS:
        *(mpicrypt_names_t *) option->target = (mpicrypt_names_t){NULL, 0};
        break;
    default:
        break;
    }
    if (NULL == option->fallback && MPICRYPT_FLAG != option->kind && MPICRYPT_TEXT != option->kind) {
        return MPICRYPT_OK;
    }
    return assign(option, option->fallback);
}

/* One word that begins with "--"; *i moves on when the value is the next word. */
static int parse_word(const mpicrypt_verb_t *verb, int argc, char **argv, int *i, bool *given)
{
    const char *name = argv[*i] + 2;
    const char *equals = strchr(name, '=');
    size_t bytes = NULL != equals ? (size_t) (equals - name) : strlen(name);
    const mpicrypt_option_t *option = find(verb, name, bytes);

    if (NULL == option) {
        return mpicrypt_error(MPICRYPT_USAGE, "unknown option '%s'; see 'mpicrypt %s --help'",
                              argv[*i], verb->name);
    }
    given[option - verb->options] = true;
    if (MPICRYPT_FLAG == option->kind) {
        return NULL != equals
             ? mpicrypt_error(MPICRYPT_USAGE, "--%s takes no value", option->name)
             : assign(option, "");
    }
    if (NULL != equals) {
        return assign(option, equals + 1);
    }
    if (*i + 1 >= argc) {
        return mpicrypt_error(MPICRYPT_USAGE, "--%s needs a value: --%s %s", option->name,
                              option->name, option->argument);
    }
    return assign(option, argv[++*i]);
}

int mpicrypt_options_parse(const mpicrypt_verb_t *verb, int argc, char **argv, bool *given, int *operand_count)
{
    bool options_end = false;

    memset(given, 0, MPICRYPT_OPTIONS_MAX * sizeof(*given));
    *operand_count = 0;
    for (const mpicrypt_option_t *option = verb->options; NULL != option->name; ++option) {
        assert(option - verb->options < MPICRYPT_OPTIONS_MAX);
        int rc = assign_default(option);
        if (MPICRYPT_OK != rc) {
            return rc;
        }
    }
    for (int i = 0; i < argc; ++i) {
        if (!options_end && 0 == strcmp(argv[i], "--")) {
            options_end = true;
        } else if (!options_end && 0 == strncmp(argv[i], "--", 2)) {
            int rc = parse_word(verb, argc, argv, &i, given);
            if (MPICRYPT_OK != rc) {
                return rc;
            }
        } else if (!options_end && '-' == argv[i][0] && '\0' != argv[i][1]) {
            return mpicrypt_error(MPICRYPT_USAGE, "unknown option '%s'; see 'mpicrypt %s --help'",
                                  argv[i], verb->name);
        } else if (!verb->takes_operands) {
            return mpicrypt_error(MPICRYPT_USAGE, "unexpected word '%s'; see 'mpicrypt %s --help'",
                                  argv[i], verb->name);
        } else {
            argv[(*operand_count)++] = argv[i];
        }
    }
    return MPICRYPT_OK;
}

void mpicrypt_options_free(const mpicrypt_verb_t *verb)
{
    for (const mpicrypt_option_t *option = verb->options; NULL != option->name; ++option) {
        release(option);
    }
}

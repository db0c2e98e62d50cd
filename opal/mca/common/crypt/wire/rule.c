/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * (k,t) for a message from a table of sizes.  The paper's constraints hold: no more threads than the rank has beside
 * those for communication, one chunk if many sends are outstanding.
 */
#include <math.h>
#include <stdlib.h>

#include "points.h"
#include "rule.h"

unsigned opal_crypt_rule_max_threads(const opal_crypt_limits_t *limits)
{
    return limits->threads > limits->comm_threads + 1 ? limits->threads - limits->comm_threads : 1;
}

opal_crypt_choice_t opal_crypt_rule_choose(const opal_crypt_rule_t *rule,
                                           const opal_crypt_limits_t *limits,
                                           size_t bytes, unsigned outstanding)
{
    int i = rule->count - 1;

    while (0 <= i && bytes < rule->step[i].from_bytes) {
        --i;
    }
    if (i < 0 || bytes < limits->chop_min) {
        return (opal_crypt_choice_t){1, 1};
    }
    const opal_crypt_rule_step_t *step = &rule->step[i];
    unsigned max_threads = opal_crypt_rule_max_threads(limits);
    size_t k = 0 < step->chunk_bytes && bytes > step->chunk_bytes ? bytes / step->chunk_bytes : 1;

    if (outstanding >= limits->max_outstanding) {
        k = 1;
    }
    return (opal_crypt_choice_t){
        k < UINT32_MAX ? (unsigned) k : UINT32_MAX,
        step->threads < max_threads ? step->threads : max_threads
    };
}

/* ---- as text ---- */

/* Parse "12", "1.5", "64K" at *text, and move behind it. */
static bool parse_number(const char **text, double *value)
{
    locale_t before = opal_crypt_points();
    char *end;

    *value = strtod(*text, &end);
    opal_crypt_points_end(before);
    if (end == *text) {
        return false;
    }
    switch (*end) {
    case 'k': case 'K': *value *= 1024.0; ++end; break;
    case 'm': case 'M': *value *= 1024.0 * 1024; ++end; break;
    case 'g': case 'G': *value *= 1024.0 * 1024 * 1024; ++end; break;
    default: break;
    }
    *text = end;
    return isfinite(*value) && 0 <= *value;
}

/* Parse the two or three fields of one entry, and move behind its comma.  Returns -1 or their number. */
static int entry(const char **text, double fields[3])
{
    int count = 0;

    do {
        if (count == 3 || !parse_number(text, &fields[count++])) {
            return -1;
        }
    } while (':' == **text && *(*text)++);
    if (count < 2 || (',' != **text && '\0' != **text) || (',' == **text && '\0' == (*text)[1])) {
        return -1;
    }
    *text += ',' == **text;
    return count;
}

static bool whole(double value, double most)
{
    return value <= most && value == (double) (uint64_t) value;
}

static int refuse_text(opal_crypt_why_t *why, const char *text, const char *reason)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "rule", "'%s': %s", text, reason);
}

int opal_crypt_rule_parse(opal_crypt_rule_t *rule, const char *text, size_t chunk_bytes,
                          opal_crypt_why_t *why)
{
    opal_crypt_rule_t parsed = {.count = 0};
    const char *rest = text;
    double field[3];

    do {
        if (OPAL_CRYPT_RULE_STEPS == parsed.count) {
            return refuse_text(why, text, "there are more than 32 steps");
        }
        int fields = entry(&rest, field);
        if (fields < 0 || !whole(field[0], 0x1p53) || (3 == fields && !whole(field[2], 0x1p53))) {
            return refuse_text(why, text, "an entry is not FROM:T or FROM:T:CHUNK");
        }
        if (field[1] < 1 || !whole(field[1], 65536)) {
            return refuse_text(why, text, "T must be a whole number of threads, at least 1");
        }
        if (0 < parsed.count && field[0] <= (double) parsed.step[parsed.count - 1].from_bytes) {
            return refuse_text(why, text, "sizes must rise");
        }
        parsed.step[parsed.count++] = (opal_crypt_rule_step_t){
            (size_t) field[0], 3 == fields ? (size_t) field[2] : chunk_bytes, (unsigned) field[1]};
    } while ('\0' != *rest);
    *rule = parsed;
    return OPAL_CRYPT_OK;
}

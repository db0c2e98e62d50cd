/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The model and the size-to-t table as text, for profile files and an MCA
 * parameter: entries separated by commas, fields by colons.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "points.h"

/* "12", "1.5e-5", "64K" from *text on; moves behind it. */
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

/* One entry of `least` to `most` fields; moves behind its comma.  -1 or the
 * number of fields. */
static int entry(const char **text, double *fields, int least, int most)
{
    int count = 0;

    do {
        if (count == most || !parse_number(text, &fields[count++])) {
            return -1;
        }
    } while (':' == **text && *(*text)++);
    if (count < least || (',' != **text && '\0' != **text) || (',' == **text && '\0' == (*text)[1])) {
        return -1;
    }
    *text += ',' == **text;
    return count;
}

static int refuse_text(opal_crypt_why_t *why, const char *text, const char *reason)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "model", "'%s': %s", text, reason);
}

/* Pieces of `fields` numbers each; the number of pieces, or a negative code. */
static int pieces(const char *text, int fields, const char *form, double piece[OPAL_CRYPT_MODEL_PIECES][4],
                  opal_crypt_why_t *why)
{
    const char *rest = text;
    int count = 0;

    do {
        if (OPAL_CRYPT_MODEL_PIECES == count) {
            return refuse_text(why, text, "there are more than four pieces");
        }
        if (entry(&rest, piece[count], fields, fields) < 0) {
            return refuse_text(why, text, form);
        }
        if (0 == count ? 0 != piece[0][0] : piece[count][0] <= piece[count - 1][0]) {
            return refuse_text(why, text, "sizes must rise, and the first must be 0");
        }
        ++count;
    } while ('\0' != *rest);
    return count;
}

int opal_crypt_model_parse_comm(opal_crypt_model_t *model, const char *text,
                                opal_crypt_why_t *why)
{
    double piece[OPAL_CRYPT_MODEL_PIECES][4];
    int count = pieces(text, 3, "an entry is not FROM:ALPHA:BETA", piece, why);

    if (count < 0) {
        return count;
    }
    for (int i = 0; i < count; ++i) {
        model->comm[i] = (opal_crypt_comm_piece_t){piece[i][0], piece[i][1], piece[i][2]};
    }
    model->comm_count = count;
    return OPAL_CRYPT_OK;
}

int opal_crypt_model_parse_enc(opal_crypt_model_t *model, const char *text,
                               opal_crypt_why_t *why)
{
    double piece[OPAL_CRYPT_MODEL_PIECES][4];
    int count = pieces(text, 4, "an entry is not FROM:ALPHA:A:B", piece, why);

    for (int i = 0; i < count; ++i) {
        if (0 == piece[i][2]) {
            return refuse_text(why, text, "the rate A must be positive");
        }
    }
    if (count < 0) {
        return count;
    }
    for (int i = 0; i < count; ++i) {
        model->enc[i] = (opal_crypt_enc_piece_t){piece[i][0], piece[i][1], piece[i][2], piece[i][3]};
    }
    model->enc_count = count;
    return OPAL_CRYPT_OK;
}

static bool whole(double value, double most)
{
    return value <= most && value == (double) (uint64_t) value;
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
        int fields = entry(&rest, field, 2, 3);
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

/* ---- printing ---- */

typedef struct room {
    char *text;
    size_t bytes, used;
} room_t;

static void put_number(room_t *room, double value, const char *after)
{
    if (room->used < room->bytes) {
        locale_t before = opal_crypt_points();
        int n = snprintf(room->text + room->used, room->bytes - room->used, "%.9g%s", value, after);
        opal_crypt_points_end(before);
        room->used += n < 0 ? room->bytes : (size_t) n;
    }
}

bool opal_crypt_model_print_comm(const opal_crypt_model_t *model, char *text, size_t bytes)
{
    room_t room = {text, bytes, 0};

    for (int i = 0; i < model->comm_count; ++i) {
        put_number(&room, model->comm[i].from_bytes, ":");
        put_number(&room, model->comm[i].alpha_us, ":");
        put_number(&room, model->comm[i].beta_us, i + 1 < model->comm_count ? "," : "");
    }
    return room.used < bytes;
}

bool opal_crypt_model_print_enc(const opal_crypt_model_t *model, char *text, size_t bytes)
{
    room_t room = {text, bytes, 0};

    for (int i = 0; i < model->enc_count; ++i) {
        put_number(&room, model->enc[i].from_bytes, ":");
        put_number(&room, model->enc[i].alpha_us, ":");
        put_number(&room, model->enc[i].first_rate, ":");
        put_number(&room, model->enc[i].next_rate, i + 1 < model->enc_count ? "," : "");
    }
    return room.used < bytes;
}

bool opal_crypt_rule_print(const opal_crypt_rule_t *rule, char *text, size_t bytes)
{
    room_t room = {text, bytes, 0};

    for (int i = 0; i < rule->count; ++i) {
        put_number(&room, (double) rule->step[i].from_bytes, ":");
        put_number(&room, rule->step[i].threads, ":");
        put_number(&room, (double) rule->step[i].chunk_bytes, i + 1 < rule->count ? "," : "");
    }
    return room.used < bytes;
}

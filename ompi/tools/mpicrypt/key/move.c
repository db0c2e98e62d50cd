/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The verbs of `mpicrypt key` that move keys: which there are, and which options belong together.
 */
#include <string.h>

#include "move.h"

static int take_backup(const mpicrypt_key_move_t *move, const char *none)
{
    (void) none;
    return mpicrypt_key_export(move, NULL);
}

static const struct moving {
    const char *verb, *operand;         /* NULL: none */
    bool of_label, opens;               /* the operand is a label; the verb reads a message */
    int (*run)(const mpicrypt_key_move_t *move, const char *operand);
} moving[] = {
    {"export", "LABEL", true, false, mpicrypt_key_export}, {"import", "FILE", false, true, mpicrypt_key_import},
    {"push", "LABEL", true, false, mpicrypt_key_push},     {"backup", NULL, false, false, take_backup},
    {"restore", "FILE", false, true, mpicrypt_key_import}, {"delete", "LABEL", true, false, mpicrypt_key_delete},
};

static const struct moving *moving_of(const char *verb)
{
    for (size_t i = 0; i < sizeof(moving) / sizeof(moving[0]); ++i) {
        if (0 == strcmp(moving[i].verb, verb)) {
            return &moving[i];
        }
    }
    return NULL;
}

bool mpicrypt_key_moves(const char *verb)
{
    return NULL != moving_of(verb);
}

static int check_options(const struct moving *it, const mpicrypt_key_move_t *move)
{
    const bool makes = mpicrypt_key_export == it->run || take_backup == it->run;
    const bool passphrase = move->passphrase || (makes && NULL != move->passphrase_file);

    if ((NULL == move->certificate) != (NULL == move->private_key)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--cert and --key go together");
    }
    if (makes && (NULL != move->to) == passphrase) {
        return mpicrypt_error(MPICRYPT_USAGE, "%s needs either --to CERT or --passphrase", it->verb);
    }
    if (makes && NULL == move->to && NULL != move->ca) {
        return mpicrypt_error(MPICRYPT_USAGE, "--ca goes with --to");
    }
    if (it->opens && move->without_signature && (NULL != move->from || NULL != move->ca)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--unsigned goes with neither --from nor --ca");
    }
    if (mpicrypt_key_push == it->run && 0 == move->hosts.count) {
        return mpicrypt_error(MPICRYPT_USAGE, "push needs --hosts LIST");
    }
    if (mpicrypt_key_push == it->run && (move->at_once < 1 || move->at_once > 256)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--at-once is from 1 to 256");
    }
    return MPICRYPT_OK;
}

int mpicrypt_key_move(const mpicrypt_key_move_t *move, int count, char **words)
{
    const struct moving *it = moving_of(words[0]);
    const char *operand = count > 1 ? words[1] : NULL;

    if ((NULL == it->operand ? 1 : 2) != count) {
        return mpicrypt_error(MPICRYPT_USAGE, "key %s takes %s%s", it->verb, NULL == it->operand ? "no operand" : "one ",
                              NULL == it->operand ? "" : it->operand);
    }
    if (it->of_label && !opal_cryptfile_key_label_valid(operand)) {
        return mpicrypt_error(MPICRYPT_USAGE, "a label is 1 to %d letters, digits, dots, dashes and underscores: '%s'",
                              OPAL_CRYPTFILE_KEY_LABEL_MAX, operand);
    }
    mpicrypt_keystore_t settings = mpicrypt_settings(move->where);
    mpicrypt_key_move_t with = *move;
    with.where = &settings;
    int code = check_options(it, move);
    return MPICRYPT_OK == code ? it->run(&with, operand) : code;
}

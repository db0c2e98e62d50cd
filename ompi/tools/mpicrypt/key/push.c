/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key push: a label's keys into the keystores of many hosts, by `mpicrypt key import - --pushed` there.
 *
 *     standard input of ssh      | passphrase: 64 random digits and a newline | message |
 *
 * ssh protects both on the way.  The message is encrypted all the same: no program between here and the import has the keys
 * in the clear.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "keygen.h"
#include "move.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

enum { PUSH_N = 14, PUSH_DIGITS = 64, PUSH_COMMAND_BYTES = 8 * PATH_MAX };      /* the passphrase needs no stretching */

/* A host's import says what is wrong by itself. */
static const char *no_refusal(int status)
{
    (void) status;
    return NULL;
}

/* Add " NAME 'VALUE'" to a command; nothing if the value is NULL.  False: too long. */
static bool add_option(char *text, size_t bytes, const char *name, const char *value)
{
    size_t used = strlen(text);

    if (NULL == value) {
        return true;
    }
    if (bytes - used <= strlen(name) + 3) {
        return false;
    }
    used += (size_t) sprintf(text + used, " %s ", name);
    return mpicrypt_keygen_quote(value, text + used, bytes - used) >= 0;
}

/* What runs on a host: this very program, at the same place, for the same keystore. */
static int push_command(const mpicrypt_key_move_t *move, char *text, size_t bytes)
{
    const mpicrypt_keystore_t *where = move->where;
    char self[PATH_MAX] = "", script[5 * PATH_MAX] = "exec", quoted[6 * PATH_MAX];

    if ((NULL != where->directory && '/' != where->directory[0]) || (NULL != where->machine_key_file && '/' != where->machine_key_file[0])) {
        return mpicrypt_error(MPICRYPT_USAGE, "push needs --keystore-dir and --machine-key to begin with '/': the place is that on every host");
    }
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
        return mpicrypt_error(MPICRYPT_FAILED, "/proc/self/exe: %s", strerror(errno));
    }
    bool fits = add_option(script, sizeof(script), "", self);
    const size_t used = strlen(script);
    snprintf(script + used, sizeof(script) - used, " key import - --pushed%s", where->netfs ? " --allow-netfs" : "");
    fits = fits && add_option(script, sizeof(script), "--keystore-dir", where->directory)
           && add_option(script, sizeof(script), "--keystore-group", where->group)
           && add_option(script, sizeof(script), "--machine-key", where->machine_key_file)
           && mpicrypt_keygen_quote(script, quoted, sizeof(quoted)) >= 0;
    return fits && snprintf(text, bytes, "exec sh -c %s", quoted) < (int) bytes
               ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_USAGE, "the names of the keystore and of this program are too long");
}

/* A passphrase of 256 bits as the first line of `input`. */
static int draw_passphrase(char *input, mpicrypt_passphrase_t *passphrase)
{
    uint8_t *random = opal_crypt_secmem_alloc(PUSH_DIGITS / 2);
    int rc = NULL == random ? OPAL_CRYPT_ERR_MEMORY : opal_crypt_draw(random, PUSH_DIGITS / 2);

    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_hex_write(random, PUSH_DIGITS / 2, input);
        input[PUSH_DIGITS] = '\n';
        *passphrase = (mpicrypt_passphrase_t){input, PUSH_DIGITS};
    }
    opal_crypt_secmem_free(random);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s", opal_crypt_strerror(rc));
}

/* The input of every host, in secret memory. */
static int make_input(const mpicrypt_key_move_t *move, const char *label, char **input, size_t *bytes)
{
    mpicrypt_passphrase_t passphrase;
    mpicrypt_recipient_t recipient;
    mpicrypt_message_t message;
    char *made = opal_crypt_secmem_alloc(MPICRYPT_ENVELOPE_MAX);
    int code = NULL == made ? mpicrypt_error(MPICRYPT_FAILED, "there is no memory for secret keys (ulimit -l)")
                            : draw_passphrase(made, &passphrase);

    code = code ? code : mpicrypt_key_for_passphrase(&passphrase, PUSH_N, &recipient);
    if (MPICRYPT_OK == code) {
        code = mpicrypt_key_seal(move, label, &recipient, &message);
        opal_crypt_secmem_free((void *) (uintptr_t) recipient.kek);
    }
    if (MPICRYPT_OK == code) {
        *bytes = PUSH_DIGITS + 1 + message.count;
        if (*bytes <= MPICRYPT_ENVELOPE_MAX) {
            memcpy(made + PUSH_DIGITS + 1, message.bytes, message.count);
        } else {
            code = mpicrypt_error(MPICRYPT_FAILED, "%s has too many versions for one message", label);
        }
        OPENSSL_free(message.bytes);
    }
    if (MPICRYPT_OK != code) {
        opal_crypt_secmem_free(made);
        return code;
    }
    *input = made;
    return MPICRYPT_OK;
}

int mpicrypt_key_push(const mpicrypt_key_move_t *move, const char *label)
{
    char text[PUSH_COMMAND_BYTES], *input = NULL;
    size_t bytes = 0;
    int code = mpicrypt_keystore_begin(move->where);

    code = code ? code : push_command(move, text, sizeof(text));
    code = code ? code : make_input(move, label, &input, &bytes);
    if (MPICRYPT_OK == code) {
        const mpicrypt_keygen_job_t job = {
            .hosts = &move->hosts, .at_once = move->at_once, .rsh = move->rsh, .command = text,
            .input = (const unsigned char *) input, .input_bytes = bytes, .verb = "key push", .refusal = no_refusal,
            .advice = "When the cause is gone, push again: hosts that have the key are left as they are."};
        code = mpicrypt_keygen_install(&job);
        opal_crypt_secmem_free(input);
    }
    return code;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One request of a key server's API, tried again where the failure says nothing about it.
 */
#include "vault.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/text.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

enum {
    VAULT_TRIES = 5,
    VAULT_PAUSE_MS = 100
};

/* ---- the body ---- */

opal_cryptfile_vault_exchange_t *opal_cryptfile_vault_exchange(void)
{
    return opal_crypt_secmem_alloc(sizeof(opal_cryptfile_vault_exchange_t));
}

void opal_cryptfile_vault_put(opal_cryptfile_vault_exchange_t *exchange, const char *text)
{
    const size_t bytes = strlen(text);

    if (exchange->body_bytes <= sizeof(exchange->body) && bytes <= sizeof(exchange->body) - exchange->body_bytes) {
        memcpy(exchange->body + exchange->body_bytes, text, bytes);
        exchange->body_bytes += bytes;
    } else {
        exchange->body_bytes = sizeof(exchange->body) + 1;
    }
}

void opal_cryptfile_vault_put_base64(opal_cryptfile_vault_exchange_t *exchange, const uint8_t *bytes, size_t count)
{
    const size_t digits = (count + 2) / 3 * 4;

    if (exchange->body_bytes + digits < sizeof(exchange->body)) {
        EVP_EncodeBlock((unsigned char *) exchange->body + exchange->body_bytes, bytes, (int) count);   /* and a zero */
        exchange->body_bytes += digits;
    } else {
        exchange->body_bytes = sizeof(exchange->body) + 1;
    }
}

/* ---- the request ---- */

static int vault_request(const opal_cryptfile_vault_t *vault, const char *token, const char *method, const char *path,
                         opal_cryptfile_vault_exchange_t *exchange, size_t *bytes, opal_crypt_why_t *why)
{
    const opal_cryptfile_vault_settings_t *s = &vault->settings;
    const bool socket = NULL != s->to.socket, six = !socket && NULL != strchr(s->to.host, ':');
    const size_t max = sizeof(exchange->request);
    int head = snprintf(exchange->request, max,
                        "%s /v1/%s HTTP/1.0\r\nHost: %s%s%s\r\nUser-Agent: ompi-crypt\r\nAccept: application/json\r\n"
                        "X-Vault-Request: true\r\n%s%s%s%s%s%sContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                        method, path, six ? "[" : "", socket ? "localhost" : s->to.host, six ? "]" : "",
                        NULL == s->space ? "" : "X-Vault-Namespace: ", NULL == s->space ? "" : s->space, NULL == s->space ? "" : "\r\n",
                        NULL == token ? "" : "X-Vault-Token: ", NULL == token ? "" : token, NULL == token ? "" : "\r\n", exchange->body_bytes);

    if (head < 0 || (size_t) head >= max || exchange->body_bytes > sizeof(exchange->body) || exchange->body_bytes > max - (size_t) head) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%s: the request is too long", s->address);
    }
    memcpy(exchange->request + head, exchange->body, exchange->body_bytes);
    *bytes = (size_t) head + exchange->body_bytes;
    return OPAL_CRYPT_OK;
}

/* Wait, each process for another time: those that were refused together do not come back together. */
static void vault_pause(unsigned round, opal_crypt_patience_t *patience)
{
    const int base = VAULT_PAUSE_MS << round;
    uint32_t drawn;
    opal_crypt_random(&drawn, sizeof(drawn));
    int64_t left = base / 2 + (int64_t) (drawn % (unsigned) base);
    opal_crypt_patience_t pause = opal_crypt_patience(left);

    while ((left = opal_crypt_patience_left(&pause)) > 0 && opal_crypt_patience_left(patience) > 0) {
        (void) poll(NULL, 0, left < 50 ? (int) left : 50);
    }
}

/* ---- the answer ---- */

const char *opal_cryptfile_vault_words(const opal_cryptfile_vault_exchange_t *exchange, char text[256])
{
    opal_cryptfile_json_t errors, name, first;

    strcpy(text, "no reason");
    if (NULL != exchange->json.at && opal_cryptfile_json_member(&exchange->json, "errors", &errors) && '[' == *errors.at &&
        opal_cryptfile_json_next(&errors, &name, &first) && '"' == *first.at) {
        size_t used = 0;

        for (const char *at = first.at + 1; at < first.end - 1 && used < 255; ++at) {
            const bool space = '\\' == *at || ' ' == *at;         /* for an escape; of \u, the digits stay */
            at += '\\' == *at;
            if (!space || (used > 0 && ' ' != text[used - 1])) {
                text[used++] = space ? ' ' : *at;
            }
        }
        used -= used > 0 && ' ' == text[used - 1];
        text[used] = '\0';
        opal_crypt_harmless(text, "");
    }
    return text;
}

int opal_cryptfile_vault_strange(const opal_cryptfile_vault_t *vault, const char *path, opal_crypt_why_t *why)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%.200s: the answer to %.200s is not what the API describes",
                             vault->settings.address, path);
}

/* ERR_PEER: try it again. */
static int vault_judge(const opal_cryptfile_vault_t *vault, const char *path, opal_cryptfile_vault_exchange_t *exchange,
                       const opal_cryptfile_https_answer_t *answer, bool *forbidden, opal_crypt_why_t *why)
{
    static const unsigned passing[] = {412, 429, 500, 502, 503, 504};
    const char *address = vault->settings.address;
    const unsigned status = exchange->status = answer->status;
    char words[256];

    const bool json = opal_cryptfile_json_check(answer->body, answer->body_bytes, &exchange->json) && '{' == *exchange->json.at;
    if (!json) {
        (void) opal_cryptfile_json_check("{}", 2, &exchange->json);
    }
    if (200 == status || 204 == status || 400 == status || 404 == status) {
        return json || (204 == status && 0 == answer->body_bytes) ? OPAL_CRYPT_OK : opal_cryptfile_vault_strange(vault, path, why);
    }
    if (status >= 300 && status < 400) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%.200s: it redirects to another address (%u), which is not followed",
                                 address, status);
    }
    if (403 == status) {
        *forbidden = true;
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-refused", "%.200s: it forbids %.200s (%s): the policy does not allow it, or the token is not valid",
                                 address, path, opal_cryptfile_vault_words(exchange, words));
    }
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); ++i) {
        if (passing[i] == status) {
            opal_cryptfile_vault_words(exchange, words);
            return 503 == status && NULL != strstr(words, "sealed")
                       ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "keystore-vault", "%.200s: it is sealed", address)
                       : opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "keystore-vault", "%.200s: it answers %u to %.200s: %s", address, status, path, words);
        }
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%.200s: it answers %u to %.200s: %s", address, status, path,
                             opal_cryptfile_vault_words(exchange, words));
}

static int vault_try(const opal_cryptfile_vault_t *vault, const char *path, opal_cryptfile_vault_exchange_t *exchange, size_t bytes,
                     opal_crypt_patience_t *patience, bool *sent, bool *forbidden, opal_crypt_why_t *why)
{
    opal_cryptfile_https_answer_t answer = {.bytes = exchange->answer, .max = sizeof(exchange->answer)};
    opal_crypt_why_t one = {.topic = NULL};
    int rc = opal_cryptfile_https_exchange(vault->https, exchange->request, bytes, &answer, patience, &one);

    *sent = answer.sent;
    exchange->status = 0;
    if (OPAL_CRYPT_OK == rc) {
        return vault_judge(vault, path, exchange, &answer, forbidden, why);
    }
    return NULL != one.topic && 0 == strcmp("keystore-vault", one.topic)
               ? opal_crypt_refuse(why, rc, one.topic, "%.200s: %.400s", vault->settings.address, one.detail)
               : opal_crypt_refuse(why, rc, NULL == one.topic ? "library" : one.topic, "%s", one.detail);
}

/* Until the patience ends if the server is only busy.  What must not be carried out twice is sent again if it cannot have been once. */
static int vault_send(opal_cryptfile_vault_t *vault, const char *path, opal_cryptfile_vault_exchange_t *exchange, size_t bytes, bool *forbidden,
                      opal_crypt_why_t *why)
{
    bool sent, again;
    int rc = vault_try(vault, path, exchange, bytes, &vault->patience, &sent, forbidden, why);

    for (unsigned round = 0; OPAL_CRYPT_ERR_PEER == rc; ++round) {
        again = 429 == exchange->status || (round < VAULT_TRIES - 1 && (!exchange->once || !sent || 503 == exchange->status));
        if (again) {
            vault_pause(round < VAULT_TRIES - 1 ? round : VAULT_TRIES - 2, &vault->patience);
        }
        if (!again || 0 == opal_crypt_patience_left(&vault->patience)) {
            break;
        }
        const opal_crypt_why_t before = *why;
        rc = vault_try(vault, path, exchange, bytes, &vault->patience, &sent, forbidden, why);
        if (OPAL_CRYPT_ERR_PEER == rc && 0 == exchange->status && 0 == opal_crypt_patience_left(&vault->patience)) {
            *why = before;                      /* says more than that the time is over */
            break;
        }
    }
    return rc;
}

int opal_cryptfile_vault_call_with(opal_cryptfile_vault_t *vault, const char *token, const char *method, const char *path,
                                   opal_cryptfile_vault_exchange_t *exchange, bool *forbidden, opal_crypt_why_t *why)
{
    opal_crypt_why_t mine = {.topic = NULL};
    size_t bytes = 0;
    int rc = vault_request(vault, token, method, path, exchange, &bytes, &mine);

    exchange->status = 0;
    rc = OPAL_CRYPT_OK == rc ? vault_send(vault, path, exchange, bytes, forbidden, &mine) : rc;
    opal_crypt_wipe(exchange->request, bytes);
    if (OPAL_CRYPT_OK != rc && NULL != why && NULL != mine.topic) {
        *why = mine;
    }
    return rc;
}

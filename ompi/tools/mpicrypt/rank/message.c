/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages of the benchmarks: plain, or sealed by this program, under every MPI
 * library, before they are sent, and opened after they have arrived:
 *
 *     | nonce 12 | ciphertext | tag 16 |
 *
 * As the papers' naive library did it, with OpenSSL, a new context and a random
 * nonce for every message; or bare, with the provider that pml/crypt chooses, one
 * context and a counter, which shows the cost of the cipher alone.  Buffers are
 * allocated beforehand, which the papers' library could not do.  The key is a
 * constant: nothing is protected.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "rank.h"
#include "ompi/tools/mpicrypt/speed/speed.h"

#include "opal/mca/common/crypt/wire/session.h"
#include "opal/mca/common/crypt/base/thread.h"

enum { OVERHEAD = OPAL_AEAD_NONCE_BYTES + OPAL_AEAD_TAG_BYTES };

static const opal_aead_module_t *aead = &mpicrypt_speed_naive;
static opal_aead_context_t *context = NULL;     /* bare */
static uint64_t counter = 0;
static void *key = NULL;

static const uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES] = "a benchmark key guards nothing";

static opal_aead_cipher_t cipher_of(size_t seal_bits)
{
    int cipher = opal_aead_aes_gcm(seal_bits);

    if (cipher < 0) {
        mpicrypt_mpi_abort(MPICRYPT_USAGE, "--seal: %zu is not one of 128, 192, 256", seal_bits);
    }
    return (opal_aead_cipher_t) cipher;
}

const opal_aead_module_t *mpicrypt_mpi_bare(size_t seal_bits, opal_aead_context_t **made, void **with)
{
    const opal_aead_module_t *provider = mpicrypt_mpi_provider(cipher_of(seal_bits), raw, with);

    *made = opal_crypt_context(provider);
    if (NULL == *made) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "out of memory");
    }
    return provider;
}

void mpicrypt_mpi_messages_start(size_t seal_bits, bool bare)
{
    if (0 != seal_bits && bare) {
        aead = mpicrypt_mpi_bare(seal_bits, &context, &key);
    } else if (0 != seal_bits) {
        key = mpicrypt_mpi_memory(aead->key_bytes);
        aead->key_init(cipher_of(seal_bits), raw, key);
    }
}

mpicrypt_mpi_message_t mpicrypt_mpi_message_new(size_t bytes, int peer, int tag)
{
    if (bytes > (size_t) INT_MAX - OVERHEAD) {
        mpicrypt_mpi_abort(MPICRYPT_USAGE, "messages of %zu bytes: the most are %d", bytes, INT_MAX - OVERHEAD);
    }
    return (mpicrypt_mpi_message_t){
        .plain = mpicrypt_mpi_memory(bytes),
        .sealed = NULL == key ? NULL : mpicrypt_mpi_memory(bytes + OVERHEAD),
        .bytes = bytes, .peer = peer, .tag = tag};
}

void mpicrypt_mpi_message_free(mpicrypt_mpi_message_t *message)
{
    free(message->plain);
    free(message->sealed);
    *message = (mpicrypt_mpi_message_t){.peer = MPI_PROC_NULL};
}

/* ---- what travels ---- */

static int wire_bytes(const mpicrypt_mpi_message_t *message)
{
    return (int) (message->bytes + (NULL == message->sealed ? 0 : OVERHEAD));
}

static void *wire(const mpicrypt_mpi_message_t *message)
{
    return NULL == message->sealed ? message->plain : message->sealed;
}

static bool make_nonce(uint8_t nonce[OPAL_AEAD_NONCE_BYTES])
{
    if (NULL == context) {
        return 1 == RAND_bytes(nonce, OPAL_AEAD_NONCE_BYTES);
    }
    memset(nonce, 0, OPAL_AEAD_NONCE_BYTES);
    memcpy(nonce, &counter, sizeof(counter));
    ++counter;
    return true;
}

static void seal(const mpicrypt_mpi_message_t *message)
{
    uint8_t *nonce = message->sealed, *text = nonce + OPAL_AEAD_NONCE_BYTES;

    if (NULL == message->sealed) {
        return;
    }
    if (!make_nonce(nonce)
        || OPAL_AEAD_OK != aead->seal(context, key, nonce, NULL, 0, message->plain, message->bytes, text,
                                      text + message->bytes)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "%s cannot seal %zu bytes", aead->name, message->bytes);
    }
}

void mpicrypt_mpi_received(const mpicrypt_mpi_message_t *message)
{
    const uint8_t *nonce = message->sealed, *text = nonce + OPAL_AEAD_NONCE_BYTES;

    if (NULL != message->sealed
        && OPAL_AEAD_OK != aead->open(context, key, nonce, NULL, 0, text, message->bytes, text + message->bytes,
                                      message->plain)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "a message of %zu bytes from rank %d does not open", message->bytes,
                           message->peer);
    }
}

void mpicrypt_mpi_send(const mpicrypt_mpi_message_t *message)
{
    seal(message);
    MPI_Send(wire(message), wire_bytes(message), MPI_BYTE, message->peer, message->tag, MPI_COMM_WORLD);
}

void mpicrypt_mpi_recv(const mpicrypt_mpi_message_t *message)
{
    MPI_Recv(wire(message), wire_bytes(message), MPI_BYTE, message->peer, message->tag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    mpicrypt_mpi_received(message);
}

void mpicrypt_mpi_isend(const mpicrypt_mpi_message_t *message, MPI_Request *request)
{
    seal(message);
    MPI_Isend(wire(message), wire_bytes(message), MPI_BYTE, message->peer, message->tag, MPI_COMM_WORLD, request);
}

void mpicrypt_mpi_irecv(const mpicrypt_mpi_message_t *message, MPI_Request *request)
{
    MPI_Irecv(wire(message), wire_bytes(message), MPI_BYTE, message->peer, message->tag, MPI_COMM_WORLD, request);
}

/* ---- contents ---- */

static uint8_t content(size_t i, int from, int number)
{
    return (uint8_t) (i ^ (i >> 8) ^ (i >> 16) ^ (size_t) (31 * from + 7 * number + 1));
}

void mpicrypt_mpi_fill(const mpicrypt_mpi_message_t *message, int from, int number)
{
    for (size_t i = 0; i < message->bytes; ++i) {
        message->plain[i] = content(i, from, number);
    }
}

void mpicrypt_mpi_check_filled(const mpicrypt_mpi_message_t *message, int from, int number)
{
    for (size_t i = 0; i < message->bytes; ++i) {
        if (message->plain[i] != content(i, from, number)) {
            mpicrypt_mpi_abort(MPICRYPT_FAILED, "wrong byte %zu of %zu in message %d of rank %d", i, message->bytes,
                               number, from);
        }
    }
}

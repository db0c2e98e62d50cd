/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The data keys of a file, once a node.  docs/design/021-ranks.rst, "Keys".
 *
 *     first of the node    listen |                  | keystore |               | answer all that have connected, or close
 *     others               -      | nobody is asked  |          | connect, ask  | take keys, or ask the keystore
 *
 * A vertical line is an agreement of all processes.  Each question is a datagram with a hash of what decides which keystore is asked;
 * each answer is one with all keys: for each region | grant 1 | data key 32 |.
 *
 * Both ends ask the kernel what the other one is: a process that reads the same files with the same rights could as well read
 * the keystore.  So no process gets a key that the keystore would not have given it, or accepts a map on the word of a process that
 * lacks the key.  The keys go from process to process in the kernel's memory only.
 */
#include "cryptmpio_internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/reads_alike.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"
#include "opal/runtime/opal_progress.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"

enum { KEY_BYTES = 1 + OPAL_CRYPTFILE_DATA_KEY_BYTES };

#define WAIT_NANOSECONDS UINT64_C(10000000000)

/* ---- which keystore ---- */

/* False: this process must ask itself.  A key server may know processes apart, and a token has sessions. */
static bool hash_keystore(uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    const ompi_common_cryptmpio_params_t *p = &ompi_common_cryptmpio_params;
    const uint32_t numbers[] = {opal_cryptproc_params.options.secret_on_netfs, opal_cryptproc_params.options.fips};
    const char *texts[] = {p->keystore_dir, p->keystore_group, p->keystore_log, p->machine_key};
    enum { DIRECTORY, GROUP, TEXTS = sizeof(texts) / sizeof(texts[0]) };
    opal_crypt_input_t pieces[1 + TEXTS] = {{numbers, sizeof(numbers)}};
    char home[PATH_MAX];
    opal_crypt_why_t why;
    bool good = OPAL_CRYPTFILE_KEYSTORE_FILE == p->keystore;

    if (NULL == texts[DIRECTORY] || '\0' == texts[DIRECTORY][0]) {
        good = good && OPAL_CRYPT_OK == opal_crypt_home_path("keys", home, sizeof(home), &why);
        texts[DIRECTORY] = home;
    }
    for (int i = 0; good && i < TEXTS; ++i) {
        texts[i] = NULL == texts[i] ? "" : texts[i];
        good = GROUP == i || '\0' == texts[i][0] || '/' == texts[i][0];
        pieces[1 + i] = (opal_crypt_input_t){texts[i], strlen(texts[i]) + 1};
    }
    return good && OPAL_CRYPT_OK == opal_crypt_sha256(pieces, 1 + TEXTS, hash);
}

/* ---- where processes of a node meet ---- */

/* A socket and its name, which is no file's: for processes that open the file by one path. */
static int open_node_socket(const ompi_common_cryptmpio_file_t *state, int first, struct sockaddr_un *address)
{
    const opal_crypt_input_t pieces[] = {{&state->meeting, sizeof(state->meeting)}, {&first, sizeof(first)},
                                         {state->named, sizeof(state->named)}};
    static const char name[] = "mpicrypt";
    char *path = address->sun_path + 1;

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    static_assert(sizeof(name) + OPAL_CRYPT_HASH_BYTES < sizeof(address->sun_path), "the name fits");
    memcpy(path, name, sizeof(name));
    return OPAL_CRYPT_OK != opal_crypt_sha256(pieces, 3, (uint8_t *) path + sizeof(name)) ? -1
           : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* A process that this one has forked may have the socket, too: then close() alone would not end the other side's wait. */
static void hang_up(int fd)
{
    (void) shutdown(fd, SHUT_RDWR);
    close(fd);
}

void ompi_common_cryptmpio_node_end(ompi_common_cryptmpio_file_t *state)
{
    int fd;

    if (state->node_fd >= 0) {
        (void) shutdown(state->node_fd, SHUT_RDWR);         /* from now on, nobody can connect */
        while (state->gives && (fd = accept4(state->node_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
            hang_up(fd);
        }
        close(state->node_fd);
    }
    state->node_fd = -1;
    state->given = state->gives = false;
}

void ompi_common_cryptmpio_node_init(ompi_common_cryptmpio_file_t *state)
{
    const opal_crypt_input_t path = {state->path, NULL == state->path ? 0 : strlen(state->path)};

    state->node_fd = -1;
    state->began = opal_crypt_since_boot();
    (void) opal_crypt_sha256(&path, 1, state->named);       /* if this fails, so does that of the socket's name */
}

void ompi_common_cryptmpio_node_begin(ompi_common_cryptmpio_file_t *state, uint64_t meeting)
{
    const int first = ompi_common_cryptmpio_first_here(state->fh, 0);
    const bool can = NULL != state->path && hash_keystore(state->keystore);
    struct sockaddr_un address;

    ompi_common_cryptmpio_node_end(state);
    state->meeting = meeting;
    state->met = false;
    state->given = can && first != state->fh->f_rank;
    state->gives = first == state->fh->f_rank && ompi_common_cryptmpio_first_here(state->fh, first + 1) < state->fh->f_size;
    if (!can || !state->gives) {
        return;
    }
    state->node_fd = open_node_socket(state, first, &address);
    if (state->node_fd >= 0 && (0 != bind(state->node_fd, (const struct sockaddr *) &address, sizeof(address))
                                || 0 != listen(state->node_fd, state->fh->f_size))) {
        close(state->node_fd);
        state->node_fd = -1;
    }
}

/* If the first one cannot be asked, has no room for the question, or sees other files, this process asks the keystore. */
void ompi_common_cryptmpio_node_ask(ompi_common_cryptmpio_file_t *state)
{
    const size_t bytes = sizeof(state->keystore);
    struct sockaddr_un address;

    if (!state->given) {
        return;
    }
    state->node_fd = open_node_socket(state, ompi_common_cryptmpio_first_here(state->fh, 0), &address);
    state->met = state->node_fd >= 0 && 0 == connect(state->node_fd, (const struct sockaddr *) &address, sizeof(address))
                 && opal_crypt_reads_alike(state->node_fd, state->began)
                 && (ssize_t) bytes == send(state->node_fd, state->keystore, bytes, MSG_NOSIGNAL);
}

/* ---- the first one ---- */

bool ompi_common_cryptmpio_has_all_keys(const opal_cryptfile_map_t *map, const opal_cryptfile_key_t *keys)
{
    uint32_t i = 0;

    while (NULL != keys && i < map->region_count && (!map->regions[i].encrypted || NULL != keys[i].data_key)) {
        ++i;
    }
    return NULL != keys && i == map->region_count;
}

static uint8_t *pack_keys(const opal_cryptfile_map_t *map, const opal_cryptfile_key_t *keys)
{
    uint8_t *bytes = opal_crypt_secmem_alloc((size_t) map->region_count * KEY_BYTES);        /* zeros */

    for (uint32_t i = 0; NULL != bytes && i < map->region_count; ++i) {
        if (map->regions[i].encrypted) {
            bytes[i * KEY_BYTES] = (uint8_t) keys[i].grant;
            memcpy(bytes + i * KEY_BYTES + 1, keys[i].data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
        }
    }
    return bytes;
}

/* All questions have arrived.  Other processes of this machine can connect, too: they get no answer, but count. */
static void answer_all(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map, const opal_cryptfile_key_t *keys)
{
    uint8_t *bytes = ompi_common_cryptmpio_has_all_keys(map, keys) ? pack_keys(map, keys) : NULL;
    uint8_t hash[OPAL_CRYPT_HASH_BYTES + 1];
    int fd = -1;

    for (int i = 1; NULL != bytes && i < state->fh->f_size
                    && (fd = accept4(state->node_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0; ++i) {
        if (sizeof(state->keystore) == recv(fd, hash, sizeof(hash), 0) && 0 == memcmp(state->keystore, hash, sizeof(state->keystore))
            && opal_crypt_reads_alike(fd, state->began)) {
            (void) send(fd, bytes, (size_t) map->region_count * KEY_BYTES, MSG_NOSIGNAL);
        }
        hang_up(fd);                    /* what was sent can still be read */
    }
    opal_crypt_secmem_free(bytes);
}

/* ---- the others ---- */

static int unpack_keys(const opal_cryptfile_map_t *map, const uint8_t *bytes, opal_cryptfile_key_t *keys)
{
    opal_crypt_input_t body = {NULL, 0};
    int rc = opal_cryptfile_map_body(map, &body);

    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < map->region_count; ++i, bytes += KEY_BYTES) {
        const bool encrypted = map->regions[i].encrypted;
        if (!encrypted) {
            continue;
        }
        if (OPAL_CRYPTFILE_GRANT_OPEN != bytes[0] && OPAL_CRYPTFILE_GRANT_SEAL != bytes[0]) {
            rc = OPAL_CRYPT_ERR_AUTH;
            break;
        }
        keys[i] = (opal_cryptfile_key_t){opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES), (opal_cryptfile_grant_t) bytes[0]};
        if (NULL == keys[i].data_key) {
            rc = OPAL_CRYPT_ERR_MEMORY;
            break;
        }
        memcpy(keys[i].data_key, bytes + 1, OPAL_CRYPTFILE_DATA_KEY_BYTES);
        rc = opal_cryptfile_map_body_check(map, &body, i, keys[i].data_key);
    }
    free((void *) (uintptr_t) body.base);
    return rc;
}

static void wipe_keys(const opal_cryptfile_map_t *map, opal_cryptfile_key_t *keys)
{
    for (uint32_t i = 0; i < map->region_count; ++i) {
        opal_crypt_secmem_free(keys[i].data_key);
        keys[i] = (opal_cryptfile_key_t){.data_key = NULL};
    }
}

/* Neither happens if both processes and their memory are sound. */
static void show_no_keys(const ompi_common_cryptmpio_file_t *state, bool came)
{
    opal_crypt_why_t why;

    (void) opal_crypt_refuse(&why, OPAL_CRYPT_OK, "file-node-keys", "%s",
                             came ? "it sent other keys than those of the file" : "it did not answer in 10 seconds");
    ompi_common_cryptmpio_show(state, &why);
}

/* The first one may still be agreeing, and need what this process has sent: so messages go on.  It has all that it needs for an answer;
 * if it can neither give one nor hang up, this process does without. */
static bool take_keys(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map, opal_cryptfile_key_t *keys)
{
    const size_t count = (size_t) map->region_count * KEY_BYTES;
    const uint64_t until = opal_crypt_since_boot() + WAIT_NANOSECONDS;
    uint8_t *bytes = state->met ? opal_crypt_secmem_alloc(count + 1) : NULL;
    ssize_t got = 0;
    bool late = false;

    while (NULL != bytes && !late && (got = recv(state->node_fd, bytes, count + 1, MSG_DONTWAIT)) < 0
           && (EAGAIN == errno || EINTR == errno)) {
        opal_progress();
        late = opal_crypt_since_boot() >= until;
    }
    const int rc = NULL == bytes || got <= 0 ? OPAL_CRYPT_ERR_ACCESS
                   : got != (ssize_t) count  ? OPAL_CRYPT_ERR_AUTH : unpack_keys(map, bytes, keys);
    opal_crypt_secmem_free(bytes);
    if (OPAL_CRYPT_OK != rc) {
        opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, ompi_common_cryptmpio_stream,
                            "fs:crypt: %s: no keys from the first process of this node", state->path);
        wipe_keys(map, keys);
    }
    if (OPAL_CRYPT_ERR_AUTH == rc || (got < 0 && late)) {
        show_no_keys(state, got > 0);
    }
    return OPAL_CRYPT_OK == rc;
}

int ompi_common_cryptmpio_node_keys(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map, opal_cryptfile_key_t *keys,
                                    bool *has)
{
    opal_crypt_why_t why = {.topic = NULL};
    int rc = OPAL_CRYPT_OK;

    *has = NULL != keys;
    if (state->gives && state->node_fd >= 0) {
        answer_all(state, map, keys);
    } else if (state->given && !take_keys(state, map, keys)) {
        rc = opal_cryptfile_map_unlock(map, ompi_common_cryptmpio_keystore(), keys, &why);
        if (OPAL_CRYPT_OK != rc) {
            wipe_keys(map, keys);
            *has = false;
        }
    }
    ompi_common_cryptmpio_node_end(state);
    return OPAL_CRYPT_ERR_ACCESS == rc ? MPI_SUCCESS : ompi_common_cryptmpio_told(state, rc, &why);
}

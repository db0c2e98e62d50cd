/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a process says of a peer that it waits for over btl/crypt, and when: btl_crypt_meet.c, with a clock that is set here
 * and connections that come to nothing.  The link edits (--wrap) put what follows in the place of the connection and of the
 * peer's record.
 */
#include <mpi.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "said.h"

enum { SECOND_US = 1000000, STEP_US = 100000 };

static opal_btl_crypt_link_t silent;            /* a connection that the peer's node has not answered */
static opal_crypt_peer_info_t peer;
static bool refuses;                            /* its address */

/* ---- in the place of the connection ---- */

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t bytes);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
    errno = ECONNREFUSED;
    return refuses ? -1 : 0;
}

const opal_crypt_peer_info_t *__wrap_opal_crypt_schedule_peer(const opal_crypt_schedule_t *schedule);
const opal_crypt_peer_info_t *__wrap_opal_crypt_schedule_peer(const opal_crypt_schedule_t *schedule)
{
    return &peer;
}

int __wrap_opal_crypt_tls_psk(opal_crypt_tls_t *tls, const opal_crypt_schedule_t *schedule, opal_crypt_direction_t direction,
                              opal_crypt_tls_psk_t *psk);
int __wrap_opal_crypt_tls_psk(opal_crypt_tls_t *tls, const opal_crypt_schedule_t *schedule, opal_crypt_direction_t direction,
                              opal_crypt_tls_psk_t *psk)
{
    return OPAL_CRYPT_OK;
}

opal_btl_crypt_link_t *__wrap_opal_btl_crypt_link_connect(opal_btl_crypt_engine_t *engine, int fd, opal_crypt_tls_group_t group,
                                                          const opal_crypt_tls_identity_t *identity, const opal_crypt_tls_psk_t *psk);
opal_btl_crypt_link_t *__wrap_opal_btl_crypt_link_connect(opal_btl_crypt_engine_t *engine, int fd, opal_crypt_tls_group_t group,
                                                          const opal_crypt_tls_identity_t *identity, const opal_crypt_tls_psk_t *psk)
{
    close(fd);
    memset(&silent, 0, sizeof(silent));
    silent.fd = -1;
    silent.state = OPAL_BTL_CRYPT_CONNECTING;
    return &silent;
}

void __wrap_opal_btl_crypt_link_drive(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_link_drive(opal_btl_crypt_link_t *link)
{
}

void __wrap_opal_btl_crypt_link_destroy(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_link_destroy(opal_btl_crypt_link_t *link)
{
}

void __wrap_opal_btl_crypt_watch(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_watch(opal_btl_crypt_link_t *link)
{
}

void __wrap_opal_btl_crypt_unwatch(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_unwatch(opal_btl_crypt_link_t *link)
{
}

bool __wrap_opal_btl_crypt_endpoint_ask(opal_btl_crypt_endpoint_t *endpoint);
bool __wrap_opal_btl_crypt_endpoint_ask(opal_btl_crypt_endpoint_t *endpoint)
{
    return true;
}

/* ---- the clock ---- */

static void until(opal_btl_crypt_endpoint_t *endpoint, uint64_t time)
{
    while (opal_btl_crypt.listener.polled < time) {
        opal_btl_crypt.listener.polled += STEP_US;
        opal_btl_crypt_seek(endpoint);
    }
}

/* One address. */
static void say_address(void)
{
    opal_btl_crypt_addresses_t addresses = {.port = 4711, .count = 1, .list = {{.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}}}};

    peer.transport_bytes = opal_btl_crypt_address_pack(&addresses, peer.transport);
}

static opal_btl_crypt_endpoint_t *new_peer(opal_proc_t *proc)
{
    opal_btl_crypt_endpoint_t *endpoint = OBJ_NEW(opal_btl_crypt_endpoint_t);

    endpoint->name = (opal_process_name_t) {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = 41};
    endpoint->proc = proc;
    endpoint->schedule = (opal_crypt_schedule_t *) (void *) &peer;
    opal_btl_crypt_begin_anew(endpoint);
    opal_btl_crypt.listener.polled = SECOND_US;
    hear_anew();
    return endpoint;
}

/* Who does not answer: one text after 120 seconds. */
static void awaited(opal_btl_crypt_endpoint_t *endpoint, const char *ours)
{
    const uint64_t begin = opal_btl_crypt.listener.polled;
    char words[600], job[OPAL_CRYPTPROC_NSPACE_BYTES];
    size_t bytes;

    opal_cryptproc_job_name(&endpoint->name, job);
    until(endpoint, begin + 119 * (uint64_t) SECOND_US);
    CHECK('\0' == said()[0]);
    until(endpoint, begin + 122 * (uint64_t) SECOND_US);
    CHECK(says("WARNING: a process has been waiting for 120 seconds"));
    snprintf(words, sizeof(words), "this process: %s rank %lu, on %s, in the first contact with the peer", ours,
             (unsigned long) OPAL_PROC_MY_NAME.vpid, opal_process_info.nodename);
    CHECK(says(words));
    snprintf(words, sizeof(words), "the peer:     %s rank 41, of this job", job);
    CHECK(says(words));
    CHECK(says("awaited:      a connection (its node does not answer)"));
    bytes = strlen(said());
    until(endpoint, begin + 400 * (uint64_t) SECOND_US);
    CHECK(bytes == strlen(said()));
    printf("ok: 120 seconds without an answer: said, once\n");
}

/* All addresses refuse us: one text after 10 seconds.  After a minute the job would end; the test stops before that. */
static void refused(opal_btl_crypt_endpoint_t *endpoint, const char *ours)
{
    const uint64_t begin = opal_btl_crypt.listener.polled;
    char words[600];
    size_t bytes;

    until(endpoint, begin + 10 * (uint64_t) SECOND_US);
    CHECK('\0' == said()[0]);
    until(endpoint, begin + 11 * (uint64_t) SECOND_US);
    CHECK(says("WARNING: a process has been refused by another one for 10 seconds"));
    snprintf(words, sizeof(words), "this process: on %s, rank %lu", opal_process_info.nodename, (unsigned long) OPAL_PROC_MY_NAME.vpid);
    CHECK(says(words));
    snprintf(words, sizeof(words), "the peer:     %s rank 41, on elsewhere", ours);
    CHECK(says(words));
    CHECK(says("reason:       no address of it can be reached"));
    bytes = strlen(said());
    until(endpoint, begin + 59 * (uint64_t) SECOND_US);
    CHECK(bytes == strlen(said()));
    printf("ok: 10 seconds of refusals: said, once\n");
}

int main(int argc, char **argv)
{
    char ours[OPAL_CRYPTPROC_NSPACE_BYTES];
    opal_proc_t *proc;

    MPI_Init(&argc, &argv);
    opal_cryptproc_job_name(&OPAL_PROC_MY_NAME, ours);
    listen_to_stderr();
    pthread_mutex_init(&opal_btl_crypt.lock, NULL);
    opal_btl_crypt.stream = -1;
    proc = proc_elsewhere();

    say_address();
    awaited(new_peer(proc), ours);
    refuses = true;
    refused(new_peer(proc), ours);
    MPI_Finalize();
    return 0;
}

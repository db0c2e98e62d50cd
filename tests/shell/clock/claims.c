/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What strangers who say hello in the names of peers leave behind in btl/crypt, and what becomes of the peers: btl_crypt_claim.c
 * and the other half of btl_crypt_meet.c, with a clock that is set here.  The link edits (--wrap) put what follows in the place of
 * the runtime, which has any record, and of the connection.
 */
#include <mpi.h>

#include "said.h"

enum { SECOND_US = 1000000, MOST = OPAL_BTL_CRYPT_CLAIMED, JOB = 1000 };

static unsigned begun, kept;                    /* searches; schedules that were found, and not destroyed */
static unsigned greeted, declined;
static const char *refusal;                     /* of every record, such as a help topic; NULL: each is right */
static bool answers = true;                     /* the runtime */
static char job[OPAL_CRYPTPROC_NSPACE_BYTES];

struct opal_cryptproc_search {
    uint32_t rank;
};

/* ---- in the place of the runtime ---- */

static int found(uint32_t rank, opal_crypt_schedule_t **schedule, opal_crypt_why_t *why)
{
    opal_btl_crypt_addresses_t addresses = {.groups = opal_btl_crypt.own.groups, .port = 4711, .count = 1,
                                            .list = {{.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}}}};
    opal_crypt_peer_info_t *peer;

    if (NULL != refusal) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, refusal, "rank %u", (unsigned) rank);
    }
    peer = calloc(1, sizeof(*peer));
    CHECK(NULL != peer);
    strcpy(peer->nspace, job);
    peer->rank = rank;
    peer->transport_bytes = opal_btl_crypt_address_pack(&addresses, peer->transport);
    *schedule = (opal_crypt_schedule_t *) (void *) peer;
    kept++;
    return OPAL_CRYPT_OK;
}

int __wrap_opal_cryptproc_schedule(const opal_process_name_t *name, int64_t met, opal_crypt_schedule_t **schedule,
                                   opal_crypt_why_t *why);
int __wrap_opal_cryptproc_schedule(const opal_process_name_t *name, int64_t met, opal_crypt_schedule_t **schedule,
                                   opal_crypt_why_t *why)
{
    return found(name->vpid, schedule, why);
}

opal_cryptproc_search_t *__wrap_opal_cryptproc_search_begin(const opal_process_name_t *name, int64_t met);
opal_cryptproc_search_t *__wrap_opal_cryptproc_search_begin(const opal_process_name_t *name, int64_t met)
{
    opal_cryptproc_search_t *search = malloc(sizeof(*search));

    CHECK(NULL != search);
    search->rank = name->vpid;
    begun++;
    return search;
}

bool __wrap_opal_cryptproc_search_go(opal_cryptproc_search_t *search, opal_crypt_schedule_t **schedule, int *rc, opal_crypt_why_t *why);
bool __wrap_opal_cryptproc_search_go(opal_cryptproc_search_t *search, opal_crypt_schedule_t **schedule, int *rc, opal_crypt_why_t *why)
{
    *rc = answers ? found(search->rank, schedule, why) : OPAL_CRYPT_OK;
    return answers;
}

void __wrap_opal_cryptproc_search_wait(opal_cryptproc_search_t *search, unsigned milliseconds);
void __wrap_opal_cryptproc_search_wait(opal_cryptproc_search_t *search, unsigned milliseconds)
{
    CHECK(milliseconds < 100);
}

void __wrap_opal_cryptproc_search_end(opal_cryptproc_search_t *search);
void __wrap_opal_cryptproc_search_end(opal_cryptproc_search_t *search)
{
    free(search);
}

void __wrap_opal_crypt_schedule_destroy(opal_crypt_schedule_t *schedule);
void __wrap_opal_crypt_schedule_destroy(opal_crypt_schedule_t *schedule)
{
    kept -= NULL != schedule;
    free(schedule);
}

const opal_crypt_peer_info_t *__wrap_opal_crypt_schedule_peer(const opal_crypt_schedule_t *schedule);
const opal_crypt_peer_info_t *__wrap_opal_crypt_schedule_peer(const opal_crypt_schedule_t *schedule)
{
    return (const opal_crypt_peer_info_t *) (const void *) schedule;
}

/* ---- in the place of the connection ---- */

int __wrap_opal_crypt_tls_psk(opal_crypt_tls_t *tls, const opal_crypt_schedule_t *schedule, opal_crypt_direction_t direction,
                              opal_crypt_tls_psk_t *psk);
int __wrap_opal_crypt_tls_psk(opal_crypt_tls_t *tls, const opal_crypt_schedule_t *schedule, opal_crypt_direction_t direction,
                              opal_crypt_tls_psk_t *psk)
{
    return OPAL_CRYPT_OK;
}

void __wrap_opal_btl_crypt_watch(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_watch(opal_btl_crypt_link_t *link)
{
}

void __wrap_opal_btl_crypt_unwatch(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_unwatch(opal_btl_crypt_link_t *link)
{
}

void __wrap_opal_btl_crypt_link_pump(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_link_pump(opal_btl_crypt_link_t *link)
{
}

void __wrap_opal_btl_crypt_link_destroy(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_link_destroy(opal_btl_crypt_link_t *link)
{
}

void __wrap_opal_btl_crypt_link_send_hello(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_link_send_hello(opal_btl_crypt_link_t *link)
{
    greeted++;
}

void __wrap_opal_btl_crypt_link_decline(opal_btl_crypt_link_t *link);
void __wrap_opal_btl_crypt_link_decline(opal_btl_crypt_link_t *link)
{
    declined++;
}

/* ---- who says hello ---- */

static opal_crypt_tls_identity_t identity_of(uint32_t rank, uint32_t attempt)
{
    opal_crypt_tls_identity_t identity = {.attempt = attempt};

    CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make(job, rank, 0, &identity.claimed));
    return identity;
}

/* Is there a key for it, so that the hello can be looked at? */
static bool says_hello(uint32_t rank, uint32_t attempt)
{
    const opal_crypt_tls_identity_t identity = identity_of(rank, attempt);
    opal_crypt_tls_group_t group;
    opal_crypt_tls_psk_t psk;

    return OPAL_CRYPT_OK == opal_btl_crypt_find(NULL, &identity, &group, &psk);
}

/* A connection that it has begun gets as far as that. */
static void handles(uint32_t rank, uint32_t attempt, opal_btl_crypt_state_t state)
{
    static opal_btl_crypt_link_t link;

    memset(&link, 0, sizeof(link));
    link.fd = -1;
    link.identity = identity_of(rank, attempt);
    link.state = state;
    opal_btl_crypt_handle_state(&link);
    opal_btl_crypt_listen_remove(&opal_btl_crypt.listener, &link);
}

static opal_btl_crypt_endpoint_t *known(uint32_t rank)
{
    const opal_crypt_tls_identity_t identity = identity_of(rank, 1);

    return opal_btl_crypt_endpoint_claimed(&identity, false);
}

static size_t endpoints(void) { return opal_list_get_size(&opal_btl_crypt.endpoints); }
static void pass(uint64_t time) { opal_btl_crypt.listener.last = opal_btl_crypt.listener.polled += time; }

/* Nobody was here, as in a process that has just started. */
static void begin_anew(void)
{
    opal_list_item_t *item;

    while (NULL != (item = opal_list_remove_first(&opal_btl_crypt.endpoints))) {
        OBJ_RELEASE(item);
    }
    CHECK(0 == kept);
    opal_btl_crypt.claimed_count = 0;
    begun = greeted = declined = 0;
    refusal = NULL;
    answers = true;
    pass(100 * (uint64_t) SECOND_US);
    hear_anew();
}

/* ---- what is checked ---- */

/* Of as many names as there are; the runtime does not answer for some of them. */
static void bounded(bool answered)
{
    begin_anew();
    answers = answered;
    for (uint32_t rank = 1; rank < JOB; rank++) {
        CHECK((answered && rank <= MOST) == says_hello(rank, 1));
        CHECK(endpoints() <= MOST && kept <= MOST && begun <= MOST);
    }
    CHECK(MOST == endpoints() && MOST == begun && (answered ? MOST : 0) == kept);
    pass(SECOND_US - 1);
    CHECK(!says_hello(JOB - 1, 1) && MOST == begun);
    pass(1);                                    /* the oldest goes, and there are no more than so many again in this second */
    for (uint32_t rank = JOB - 1; rank > 0; rank--) {
        (void) says_hello(rank, 1);
        CHECK(endpoints() <= MOST && kept <= MOST && begun <= 2 * MOST);
    }
    CHECK(2 * MOST == begun && NULL != known(JOB - 1) && NULL == known(1));
    CHECK('\0' == said()[0]);
}

/* Not the peers that we know, or need. */
static void others_stay(opal_proc_t *proc)
{
    begin_anew();
    CHECK(says_hello(1, 1) && says_hello(2, 1) && says_hello(3, 1));
    handles(1, 1, OPAL_BTL_CRYPT_SHAKING);      /* its hello was right */
    CHECK(opal_btl_crypt_endpoint_ask(known(2)));
    known(3)->proc = proc;
    CHECK(1 == opal_btl_crypt.claimed_count);
    for (int second = 0; second < 3; second++) {
        pass(SECOND_US);
        for (uint32_t rank = 10; rank < JOB; rank++) {
            (void) says_hello(rank + (uint32_t) second, 1);
        }
    }
    CHECK(MOST + 3 == endpoints() && MOST + 2 == kept);
    CHECK(NULL != known(1)->schedule && NULL != known(2)->schedule && NULL == known(3)->schedule);
    CHECK(!says_hello(1, 1) && says_hello(1, 2));       /* the same hello again, and the peer's next one */
    CHECK(opal_btl_crypt_endpoint_ask(known(3)) && MOST + 3 == kept);
    known(3)->proc = NULL;
}

/* munged restarts: what it vouched for cannot be checked for a while. */
static void looked_at_again(void)
{
    const unsigned first = 1;

    begin_anew();
    refusal = "record-authenticator";
    CHECK(!says_hello(7, 1) && first == begun);
    pass(10 * (uint64_t) SECOND_US - 1);
    refusal = NULL;
    CHECK(!says_hello(7, 2) && first == begun);
    pass(1);
    CHECK(says_hello(7, 3) && first + 1 == begun && NULL == known(7)->why);
    CHECK('\0' == said()[0]);

    begin_anew();                               /* and if we need it ourselves there is nothing to wait for */
    refusal = "record-authenticator";
    CHECK(!says_hello(7, 1));
    refusal = NULL;
    CHECK(opal_btl_crypt_endpoint_ask(known(7)) && says_hello(7, 2));

    begin_anew();                               /* one that stays wrong is said, once */
    refusal = "record-authenticator";
    for (uint32_t attempt = 1; attempt < 10; attempt++) {
        CHECK(!says_hello(7, attempt) && attempt == begun && says("Peer authentication failed") == (attempt > 1));
        pass(10 * (uint64_t) SECOND_US);
    }
    CHECK(NULL == strstr(strstr(said(), "Peer authentication failed") + 1, "Peer authentication failed"));
}

static bool dead;
static bool is_dead(opal_proc_t *proc) { return dead; }

/* With fault tolerance: Open MPI learns that it has failed while it connects to us. */
static void stays_dead(opal_proc_t *proc)
{
    begin_anew();
    opal_btl_crypt.tolerant = true;
    opal_cryptproc_has_failed = is_dead;
    CHECK(says_hello(5, 1));
    known(5)->proc = proc;
    handles(5, 1, OPAL_BTL_CRYPT_SHAKING);
    dead = true;
    handles(5, 1, OPAL_BTL_CRYPT_AUTHENTICATED);
    CHECK(1 == declined && 0 == greeted && NULL == known(5)->link);
    CHECK(!says_hello(5, 2));
    dead = false;
    CHECK(says_hello(5, 2));
    handles(5, 2, OPAL_BTL_CRYPT_AUTHENTICATED);
    CHECK(1 == declined && 1 == greeted && NULL != known(5)->link);
    known(5)->link = NULL;
    known(5)->proc = NULL;
    opal_cryptproc_has_failed = NULL;
}

int main(int argc, char **argv)
{
    opal_proc_t *proc;

    MPI_Init(&argc, &argv);
    opal_cryptproc_job_name(&OPAL_PROC_MY_NAME, job);
    listen_to_stderr();
    pthread_mutex_init(&opal_btl_crypt.lock, NULL);
    OBJ_CONSTRUCT(&opal_btl_crypt.endpoints, opal_list_t);
    CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make(job, OPAL_PROC_MY_NAME.vpid, 0, &opal_btl_crypt.engine.own));
    opal_btl_crypt.own.groups = opal_crypt_tls_group_bit(OPAL_CRYPT_TLS_X25519);
    opal_btl_crypt.job_size = JOB + 10;
    opal_btl_crypt.stream = -1;
    proc = proc_elsewhere();

    bounded(true);
    bounded(false);
    printf("ok: claims in %d names: %d kept, and %d looks a second\n", JOB - 1, MOST, MOST);
    others_stay(proc);
    printf("ok: peers that are none stay\n");
    looked_at_again();
    printf("ok: a record that was refused is looked at again\n");
    stays_dead(proc);
    printf("ok: who has failed does not come back\n");
    begin_anew();
    MPI_Finalize();
    return 0;
}

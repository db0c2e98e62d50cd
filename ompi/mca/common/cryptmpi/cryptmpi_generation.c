/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How often a context id has been used.
 *
 * Open MPI reuses the id of a communicator that was freed.  A message that an attacker
 * held back meanwhile must not be accepted in the new one, so envelopes contain a
 * generation: the number of communicators with this id that both processes have been
 * members of, this one included.  Both count the same without communication: all members
 * make a communicator together, and a process uses an id in one at a time.
 *
 *     id --> the groups that had it, each with the number of times
 *
 * A communicator is counted when it is made; for a peer, the groups are searched at its
 * first message there.  The group of MPI_COMM_WORLD is stored as a count instead of a list,
 * and when an id has had more than GROUPS others, the next one adds them up by process.
 * All of this lives as long as our key pair: with new keys, counting may start again.
 *
 * Threads: one lock, never held across a call of Open MPI that could wait.
 */
#include "cryptmpi_internal.h"

#include <stdlib.h>
#include <string.h>

#include "opal/class/opal_hash_table.h"

enum { GROUPS = 8 };

typedef struct {
    uint64_t *names;                    /* ascending */
    size_t count;
    uint32_t times;
} members_t;

typedef struct past {
    struct past *next;
    uint64_t context[2];                /* its key in the table */
    uint32_t times, of_world;           /* in all; with the group of MPI_COMM_WORLD */
    members_t groups[GROUPS];
    int group_count;
    opal_hash_table_t *by_name;         /* times, from groups that were added up; or NULL */
} past_t;

static opal_hash_table_t by_context;
static past_t *pasts;                   /* the same, as a list; not NULL: the table exists */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* all of the above */

static uint64_t key_of(opal_process_name_t name)
{
    uint64_t key;

    memcpy(&key, &name, sizeof(key));
    return key;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return x < y ? -1 : x > y;
}

/* ---- groups ---- */

/* The processes from which a message in this communicator may come. */
static ompi_group_t *group_of(const ompi_communicator_t *comm)
{
    return comm->c_remote_group;
}

static bool is_world(const ompi_communicator_t *comm)
{
    return NULL != ompi_mpi_comm_world.comm.c_remote_group
           && group_of(comm) == ompi_mpi_comm_world.comm.c_remote_group;
}

static bool in_world(opal_process_name_t name)
{
    return name.jobid == OPAL_PROC_MY_NAME.jobid
           && name.vpid < (uint32_t) ompi_group_size(ompi_mpi_comm_world.comm.c_remote_group);
}

static int members_make(const ompi_communicator_t *comm, members_t *members)
{
    const int count = ompi_group_size(group_of(comm));

    members->count = (size_t) count;
    members->times = 1;
    members->names = malloc((members->count + 1) * sizeof(uint64_t));
    if (NULL == members->names) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < count; i++) {
        members->names[i] = key_of(ompi_group_get_proc_name(group_of(comm), i));
    }
    qsort(members->names, members->count, sizeof(uint64_t), ascending);
    return OMPI_SUCCESS;
}

static bool members_equal(const members_t *a, const members_t *b)
{
    return a->count == b->count && 0 == memcmp(a->names, b->names, a->count * sizeof(uint64_t));
}

/* ---- the groups of an id ---- */

static int add_up(past_t *past)
{
    if (NULL == past->by_name) {
        past->by_name = OBJ_NEW(opal_hash_table_t);
        if (OPAL_SUCCESS != opal_hash_table_init(past->by_name, 64)) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
    }
    for (; past->group_count > 0; past->group_count--) {
        const members_t *members = &past->groups[past->group_count - 1];

        for (size_t i = 0; i < members->count; i++) {
            void *times = NULL;

            (void) opal_hash_table_get_value_uint64(past->by_name, members->names[i], &times);
            if (OPAL_SUCCESS != opal_hash_table_set_value_uint64(past->by_name, members->names[i],
                                                                 (void *) ((uintptr_t) times + members->times))) {
                return OMPI_ERR_OUT_OF_RESOURCE;
            }
        }
        free(members->names);
    }
    return OMPI_SUCCESS;
}

static int count_group(past_t *past, const ompi_communicator_t *comm)
{
    members_t members;
    int rc = members_make(comm, &members);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    for (int i = 0; i < past->group_count; i++) {
        if (members_equal(&past->groups[i], &members)) {
            past->groups[i].times++;
            free(members.names);
            return OMPI_SUCCESS;
        }
    }
    if (GROUPS == past->group_count && OMPI_SUCCESS != (rc = add_up(past))) {
        free(members.names);
        return rc;
    }
    past->groups[past->group_count++] = members;
    return OMPI_SUCCESS;
}

static uint32_t times_of(const past_t *past, opal_process_name_t name)
{
    const uint64_t key = key_of(name);
    uint32_t times = past->of_world > 0 && in_world(name) ? past->of_world : 0;
    void *added = NULL;

    for (int i = 0; i < past->group_count; i++) {
        const members_t *members = &past->groups[i];

        if (NULL != bsearch(&key, members->names, members->count, sizeof(uint64_t), ascending)) {
            times += members->times;
        }
    }
    if (NULL != past->by_name
        && OPAL_SUCCESS == opal_hash_table_get_value_uint64(past->by_name, key, &added)) {
        times += (uint32_t) (uintptr_t) added;
    }
    return times;
}

/* ---- all ids ---- */

static past_t *past_of(const ompi_common_cryptmpi_comm_t *c)
{
    const uint64_t context[2] = {c->context_high, c->context_low};
    void *past = NULL;

    return NULL != pasts
           && OPAL_SUCCESS == opal_hash_table_get_value_ptr(&by_context, context, sizeof(context), &past) ? past : NULL;
}

static past_t *past_make(const ompi_common_cryptmpi_comm_t *c)
{
    past_t *past = calloc(1, sizeof(*past));

    if (NULL == past) {
        return NULL;
    }
    if (NULL == pasts) {
        OBJ_CONSTRUCT(&by_context, opal_hash_table_t);
        opal_hash_table_init(&by_context, 64);
    }
    past->context[0] = c->context_high;
    past->context[1] = c->context_low;
    past->next = pasts;
    pasts = past;
    return OPAL_SUCCESS == opal_hash_table_set_value_ptr(&by_context, past->context, sizeof(past->context), past)
               ? past : NULL;
}

/* Ids assigned by PMIx (5.0: MPI_Comm_create_from_group) are used once; remembering each would
 * be a leak. */
static bool never_comes_back(const ompi_common_cryptmpi_comm_t *c)
{
    return 0 != c->context_high;
}

int ompi_common_cryptmpi_generation_count(const ompi_common_cryptmpi_comm_t *c)
{
    past_t *past;
    int rc = OMPI_ERR_OUT_OF_RESOURCE;

    if (never_comes_back(c)) {
        return OMPI_SUCCESS;
    }
    pthread_mutex_lock(&lock);
    past = past_of(c);
    past = NULL != past ? past : past_make(c);
    if (NULL != past && past->times < UINT32_MAX) {
        if (is_world(c->comm)) {
            past->of_world++;
            rc = OMPI_SUCCESS;
        } else {
            rc = count_group(past, c->comm);
        }
        past->times++;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

uint32_t ompi_common_cryptmpi_generation(const ompi_common_cryptmpi_comm_t *c, opal_process_name_t name)
{
    const past_t *past;
    uint32_t times = 0;

    if (never_comes_back(c)) {
        return 1;
    }
    pthread_mutex_lock(&lock);
    past = past_of(c);
    if (NULL != past) {
        times = times_of(past, name);
    }
    pthread_mutex_unlock(&lock);
    return times;
}

void ompi_common_cryptmpi_generations_stop(void)
{
    past_t *past;

    if (NULL != pasts) {
        OBJ_DESTRUCT(&by_context);
    }
    while (NULL != (past = pasts)) {
        pasts = past->next;
        while (past->group_count > 0) {
            free(past->groups[--past->group_count].names);
        }
        if (NULL != past->by_name) {
            OBJ_RELEASE(past->by_name);
        }
        free(past);
    }
}

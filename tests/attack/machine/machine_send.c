/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The sending side of a step: ranks 1 to 3, each with its attacker (pml/tamper).
 */
#include "machine.h"

/* A send that was not done when its step was over; perhaps it never is. */
typedef struct left {
    MPI_Request request;
    void *buffer;
    struct left *next;
} left_t;

static MPI_T_cvar_handle plan_handle;
static long plans_made;
static left_t *left;

/* ---- the attacker ---- */

void plan_open(void)
{
    int given, index, count;

    MT_CHECK(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_SINGLE, &given), "MPI_T_init_thread");
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_get_index("pml_tamper_plan", &index), "pml/tamper is not there");
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_handle_alloc(index, NULL, &plan_handle, &count), "MPI_T_cvar_handle_alloc");
}

static void set_plan(const char *plan)
{
    char text[PLAN + 32] = "";

    if ('\0' != plan[0]) {
        snprintf(text, sizeof(text), "%ld %s", ++plans_made, plan);
    }
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_write(plan_handle, text), "MPI_T_cvar_write");
}

/* ---- a sender ---- */

static void sweep(void)
{
    for (left_t **at = &left; NULL != *at;) {
        left_t *one = *at;
        int done;
        MT_MPI(MPI_Test(&one->request, &done, MPI_STATUS_IGNORE));
        if (!done) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        if (MPI_REQUEST_NULL != one->request) {         /* a persistent one */
            MT_MPI(MPI_Request_free(&one->request));
        }
        free(one->buffer);
        free(one);
    }
}

static void keep(MPI_Request request, void *buffer)
{
    left_t *one = malloc(sizeof(*one));

    MT_CHECK(NULL != one, "memory");
    *one = (left_t){request, buffer, left};
    left = one;
}

static MPI_Request send_one(const expected_t *e, int mode, void **buffer)
{
    MPI_Request request;
    MPI_Comm comm = targets[e->comm];

    *buffer = malloc(e->bytes + 1);
    MT_CHECK(NULL != *buffer, "memory");
    mt_fill(*buffer, e->bytes, e->key);
    if (ISSEND == mode) {
        MT_MPI(MPI_Issend(*buffer, (int) e->bytes, MPI_BYTE, 0, e->tag, comm, &request));
    } else if (START == mode) {
        MT_MPI(MPI_Send_init(*buffer, (int) e->bytes, MPI_BYTE, 0, e->tag, comm, &request));
        MT_MPI(MPI_Start(&request));
    } else {
        MT_MPI(MPI_Isend(*buffer, (int) e->bytes, MPI_BYTE, 0, e->tag, comm, &request));
    }
    return request;
}

/* The attacker looks at his plan when something is sent. */
static void release(void)
{
    MPI_Request request;

    set_plan("any 0 0 release");
    MT_MPI(MPI_Isend(NULL, 0, MPI_BYTE, mt_rank, 0, control, &request));
    MT_MPI(MPI_Recv(NULL, 0, MPI_BYTE, mt_rank, 0, control, MPI_STATUS_IGNORE));
    MT_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    set_plan("");
}

bool sends(const step_t *step, int rank)
{
    for (int i = 0; i < step->sends_count; i++) {
        if (step->sends[i].from == rank) {
            return true;
        }
    }
    return false;
}

void send_all(const step_t *step, const expected_t *list, int count, MPI_Request *requests, void **buffers)
{
    set_plan(step->plans[mt_rank]);
    for (int i = 0; i < count; i++) {
        if (i == step->sends_count) {
            set_plan("");
            if (BEFORE == step->release) {
                release();
            }
        }
        requests[i] = MPI_REQUEST_NULL;
        buffers[i] = NULL;
        if (list[i].from == mt_rank) {
            requests[i] = send_one(&list[i], i < step->sends_count ? step->sends[i].mode : ISEND, &buffers[i]);
        }
    }
    if (AFTER == step->release) {
        release();
    }
    MT_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 0, LAST_TAG, control, MPI_STATUS_IGNORE));
    for (int comm = 0; comm < COMMS; comm++) {
        MT_MPI(MPI_Send(NULL, 0, MPI_BYTE, 0, LAST_TAG, targets[comm]));
    }
}

void send_end(const expected_t *list, int count, MPI_Request *requests, void **buffers, const unsigned char *seen)
{
    for (int i = 0; i < count; i++) {
        if (list[i].from != mt_rank) {
            continue;
        }
        if (seen[i]) {
            MT_MPI(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        }
        keep(requests[i], buffers[i]);
    }
    sweep();
}

void send_forget(void)
{
    while (NULL != left) {
        left_t *one = left;
        left = one->next;
        if (MPI_REQUEST_NULL != one->request) {
            MT_MPI(MPI_Request_free(&one->request));    /* what it reads stays */
        }
        free(one);
    }
}

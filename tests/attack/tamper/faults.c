/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * faults [cm]: what a program sees when pml/crypt's host refuses an operation, or ends
 * one with an error (pml/tamper, `refuse` and `fail`); with MPI_THREAD_MULTIPLE if
 * FAULTS_THREADS is in the environment.
 *
 * By 4 ranks on two nodes: rank 0 receives, from rank 2 sealed messages and from
 * rank 1, its neighbor, plain ones (not over cm).  crypt_on_auth_failure is what it is by
 * default: no fault is a forgery, and the job goes on.
 */
#include "mt.h"

enum { POISON = 0xa7, TAG = 5, LARGEST = 49096 };

/* What a message is, and the frames that it takes. */
static const struct kind {
    const char *first, *rest;
    int from, bytes;
} kinds[] = {
    {"direct", NULL, 2, 1000},
    {"direct", NULL, 2, 0},
    {"first", "segment", 2, LARGEST},
    {"local", NULL, 1, 1000},
    {"local-large", "body", 1, 20000},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds), SEALED_KINDS = 3 };

enum { ISEND, ISSEND, IBSEND, SEND, START, START_BSEND, WAYS };
static const char *const ways[WAYS] = {"Isend", "Issend", "Ibsend", "Send", "Start", "Start of Bsend_init"};

static MPI_Comm comm;
static MPI_T_cvar_handle plan_handle;
static int cell, handler_calls;
static bool threads;
static MPI_Errhandler handler;
static unsigned char out[LARGEST], in[LARGEST];

/* Every plan is a new one; "" for none. */
static void set_plan(const char *kind, int nth, const char *action)
{
    char text[160] = "";

    if ('\0' != kind[0]) {
        snprintf(text, sizeof(text), "%d %s %d 1 %s", ++cell, kind, nth, action);
    }
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_write(plan_handle, text), "MPI_T_cvar_write");
}

static void count_calls(MPI_Comm *failed, int *code, ...)
{
    (void) failed;
    (void) code;
    handler_calls++;
}

static void set_up(void)
{
    int given, index, count;

    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MT_MPI(MPI_Comm_set_name(comm, "target0"));
    MT_MPI(MPI_Comm_create_errhandler(count_calls, &handler));
    MT_MPI(MPI_Comm_set_errhandler(comm, handler));
    MT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)); /* MPI_Start of 5.0 calls its handler, too */
    MT_CHECK(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_SINGLE, &given), "MPI_T_init_thread");
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_get_index("pml_tamper_plan", &index), "pml/tamper is not there");
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_handle_alloc(index, NULL, &plan_handle, &count), "MPI_T_cvar_handle_alloc");
}

/* An error of the host is shown as its own class, never as ours. */
static void expect(int code, int expected, const char *what, const struct kind *k)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;

    MT_CHECK(code >= 0, "%s of %d bytes, rank %d sends: the code of Open MPI's inside %d", what, k->bytes, k->from, code);
    MT_CHECK(1 == handler_calls, "%s of %d bytes, rank %d sends: the handler was called %d times", what, k->bytes, k->from,
             handler_calls);
    handler_calls = 0;
    MT_MPI(MPI_Error_class(code, &class));
    MT_MPI(MPI_Error_string(code, text, &length));
    MT_CHECK(expected == class, "%s of %d bytes, rank %d sends: class %d (%s) instead of %d", what, k->bytes, k->from, class, text,
             expected);
}

/* The code of a request that ends with an error.  With threads Open MPI 4.1.4's own
 * MPI_Waitall never returns when it ended before the call. */
static int code_of(MPI_Request *request, MPI_Status *status)
{
    int rc;

    if (threads) {
        return MPI_Wait(request, status);
    }
    rc = MPI_Waitall(1, request, status);
    MT_CHECK(MPI_ERR_IN_STATUS == rc, "MPI_Waitall over a request with an error: %d", rc);
    return status->MPI_ERROR;
}

/* ---- a send that the host refuses: the call says so, and nothing is left of it ---- */

static int send_once(int way, int bytes, MPI_Request *request)
{
    switch (way) {
    case ISEND:  return MPI_Isend(out, bytes, MPI_BYTE, 0, TAG, comm, request);
    case ISSEND: return MPI_Issend(out, bytes, MPI_BYTE, 0, TAG, comm, request);
    case IBSEND: return MPI_Ibsend(out, bytes, MPI_BYTE, 0, TAG, comm, request);
    case SEND:   return MPI_Send(out, bytes, MPI_BYTE, 0, TAG, comm);
    default:     return MPI_Start(request);
    }
}

static void refused_at(const struct kind *k, int way, uint64_t key)
{
    static unsigned char attached[4 * LARGEST];
    MPI_Request request = MPI_REQUEST_NULL;
    void *detached;
    int size;

    MT_MPI(MPI_Buffer_attach(attached, sizeof(attached)));
    if (START == way) {
        MT_MPI(MPI_Send_init(out, k->bytes, MPI_BYTE, 0, TAG, comm, &request));
    } else if (START_BSEND == way) {
        MT_MPI(MPI_Bsend_init(out, k->bytes, MPI_BYTE, 0, TAG, comm, &request));
    }
    /* What is synchronous is a first part, however short, unless it stays in the node. */
    set_plan(ISSEND == way && 0 == strcmp(k->first, "direct") ? "first" : k->first, 0, "refuse 0");
    mt_fill(out, (size_t) k->bytes, ~key);
    expect(send_once(way, k->bytes, &request), MPI_ERR_BUFFER, ways[way], k);
    set_plan("", 0, "");
    mt_fill(out, (size_t) k->bytes, key);
    MT_MPI(send_once(way, k->bytes, &request));
    if (SEND != way) {
        MT_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    if (MPI_REQUEST_NULL != request) {
        MT_MPI(MPI_Request_free(&request));
    }
    MT_MPI(MPI_Buffer_detach(&detached, &size));    /* waits for what is left in it */
}

/* ---- a send that the host took, and then has an error ---- */

/* The frame with the fault arrives all the same, so that the receiver has a message. */
static void fails_at(const struct kind *k, const char *frame, int nth, const char *action, int expected, uint64_t key)
{
    MPI_Request request;
    MPI_Status status;

    set_plan(frame, nth, action);
    mt_fill(out, (size_t) k->bytes, key);
    MT_MPI(MPI_Isend(out, k->bytes, MPI_BYTE, 0, TAG, comm, &request));
    expect(code_of(&request, &status), expected, action, k);
    set_plan("", 0, "");
}

static void gets(const struct kind *k, uint64_t key)
{
    MPI_Status status;

    memset(in, POISON, sizeof(in));
    MT_MPI(MPI_Recv(in, sizeof(in), MPI_BYTE, k->from, TAG, comm, &status));
    MT_STATUS(&status, k->from, TAG, (size_t) k->bytes);
    MT_SAME(in, (size_t) k->bytes, key, k->first);
}

/* ---- receives ---- */

/* A receive that the host refuses at once, or of a part of the message. */
static void receive(const struct kind *k, const char *posted, int nth, const char *action, int expected, uint64_t key)
{
    MPI_Request request;
    MPI_Status status;
    bool first = 0 == strcmp(posted, "receive");
    int n, rc;

    set_plan(posted, nth, action);
    memset(in, POISON, sizeof(in));
    rc = MPI_Irecv(in, sizeof(in), MPI_BYTE, k->from, TAG, comm, &request);
    if (MPI_SUCCESS == rc) {
        rc = code_of(&request, &status);
        MT_MPI(MPI_Get_count(&status, MPI_BYTE, &n));
        MT_CHECK(0 == n, "%s: a count of %d", posted, n);
    } else {
        MT_CHECK(first, "MPI_Irecv, for a fault of %s", posted);
    }
    expect(rc, expected, posted, k);
    for (int i = 0; i < k->bytes; i++) {
        MT_CHECK(0 == in[i] || POISON == in[i], "%s: byte %d of the message was left", posted, i);
    }
    set_plan("", 0, "");
    if (first) {
        gets(k, key);       /* the message is still there */
    }
}

/* Over cm a probe takes the message by a receive.  What failed took none, and left no gap in their order. */
static void probe(const struct kind *k, const char *action, int expected, uint64_t key)
{
    MPI_Status status;

    set_plan("receive", 0, action);
    expect(MPI_Probe(k->from, TAG, comm, &status), expected, "probe", k);
    set_plan("", 0, "");
    MT_MPI(MPI_Probe(k->from, TAG, comm, &status));
    MT_STATUS(&status, k->from, TAG, (size_t) k->bytes);
    gets(k, key);
}

static void sends(const struct kind *k, uint64_t key)
{
    mt_fill(out, (size_t) k->bytes, key);
    MT_MPI(MPI_Send(out, k->bytes, MPI_BYTE, 0, TAG, comm));
}

static const struct { const char *action; int expected; } faults[] = {
    {"refuse 0", MPI_ERR_BUFFER}, {"fail 0", MPI_ERR_NO_SPACE}};

static void probes(const struct kind *k, int message)
{
    for (int i = 0; i < 2; i++) {
        uint64_t key = mt_key(message, i, 0, 4);
        if (mt_rank == k->from) {
            sends(k, key);
        } else if (0 == mt_rank) {
            probe(k, faults[i].action, faults[i].expected, key);
        }
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void receives(const struct kind *k, int message)
{
    for (int i = 0; i < 2; i++) {
        for (int part = 0; part < (NULL == k->rest ? 1 : 2); part++) {
            uint64_t key = mt_key(message, i, part, 3);
            char posted[32] = "receive";
            if (part > 0) {
                snprintf(posted, sizeof(posted), "receive-%s", k->rest);
            }
            if (mt_rank == k->from) {
                sends(k, key);
            } else if (0 == mt_rank) {
                receive(k, posted, 0, faults[i].action, faults[i].expected, key);
            }
            MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
}

/* ---- */

static void sends_refused(const struct kind *k, int message)
{
    for (int way = 0; way < WAYS; way++) {
        uint64_t key = mt_key(message, way, 0, 1);
        if (mt_rank == k->from) {
            refused_at(k, way, key);
        } else if (0 == mt_rank) {
            gets(k, key);
        }
    }
}

static void sends_failed(const struct kind *k, int message)
{
    static const struct { int part; const char *action; int expected; } parts[] = {
        {0, "fail 1", MPI_ERR_NO_SPACE}, {1, "fail 1", MPI_ERR_NO_SPACE}, {1, "refuse 1", MPI_ERR_BUFFER}};

    for (int i = 0; i < (NULL == k->rest ? 1 : 3); i++) {
        uint64_t key = mt_key(message, i, 0, 2);
        if (mt_rank == k->from) {
            fails_at(k, 0 == parts[i].part ? k->first : k->rest, 0, parts[i].action, parts[i].expected, key);
        } else if (0 == mt_rank) {
            gets(k, key);
        }
    }
}

int main(int argc, char **argv)
{
    bool cm;

    threads = NULL != getenv("FAULTS_THREADS");
    mt_start(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    MT_CHECK(4 == mt_size, "faults: by 4 ranks");
    set_up();
    cm = mt_flag("cm");
    for (int i = 0; i < (cm ? SEALED_KINDS : KINDS); i++) {
        sends_refused(&kinds[i], i);
        mt_group("%s, %d bytes: sends refused", kinds[i].first, kinds[i].bytes);
        sends_failed(&kinds[i], i);
        mt_group("%s, %d bytes: sends failed", kinds[i].first, kinds[i].bytes);
        receives(&kinds[i], i);
        mt_group("%s, %d bytes: receives refused and failed", kinds[i].first, kinds[i].bytes);
        if (cm) {
            probes(&kinds[i], i);
            mt_group("%s, %d bytes: receives of a probe refused and failed", kinds[i].first, kinds[i].bytes);
        }
    }
    MT_MPI(MPI_Comm_free(&comm));
    MT_MPI(MPI_Errhandler_free(&handler));
    return mt_end();
}

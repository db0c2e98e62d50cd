/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Open MPI gives the context id of a communicator that was freed to the next one.
 * An attacker keeps a message of the old communicator back, and lets it go into the
 * new one, with the same envelope: it must be refused, and what was sent in the new one
 * must arrive.  Run under pml/tamper with crypt_on_auth_failure=error, by 4 ranks.
 *
 * In between, the id may have belonged to communicators with one of the two alone,
 * which must not count for the other.
 */
#include "ompi_config.h"

#include "mt.h"

#include "ompi/communicator/communicator.h"

enum { FROM = 2, TO = 0, TAG = 1, SMALL = 100, LONG = 50000 };

static MPI_Comm control;
static MPI_Errhandler handler;
static MPI_T_cvar_handle plan_handle;
static int refused, reused;

static void count_calls(MPI_Comm *comm, int *code, ...)
{
    (void) comm;
    (void) code;
    refused++;
}

static void set_plan(const char *plan)
{
    char text[160];
    snprintf(text, sizeof(text), "%s", plan);
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_write(plan_handle, text), "MPI_T_cvar_write");
}

static void target(MPI_Comm comm)
{
    MT_MPI(MPI_Comm_set_name(comm, "target0"));
    MT_MPI(MPI_Comm_set_errhandler(comm, handler));
}

static MPI_Comm make(bool everybody)
{
    MPI_Comm comm;
    if (everybody) {
        MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    } else {
        MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, mt_rank % 2, -mt_rank, &comm));       /* 2, 0 and 3, 1 */
    }
    target(comm);
    return comm;
}

static int rank_of(int world_rank, bool everybody)
{
    return everybody ? world_rank : 1 - world_rank / 2;
}

static void send_one(MPI_Comm comm, bool everybody, size_t bytes, int message)
{
    unsigned char *p = malloc(bytes);
    mt_fill(p, bytes, mt_key(message, FROM, TAG, (int) bytes));
    MT_MPI(MPI_Send(p, (int) bytes, MPI_BYTE, rank_of(TO, everybody), TAG, comm));
    free(p);
}

/* What a receive got: the number of a message, or 'E'. */
static char receive(MPI_Comm comm, bool everybody, size_t bytes)
{
    MPI_Status status;
    mt_buf_t buf;
    char got = 'C';
    int rc;
    mt_buf_new(&buf, bytes);
    rc = MPI_Recv(buf.p, (int) bytes, MPI_BYTE, rank_of(FROM, everybody), TAG, comm, &status);
    for (int message = 0; message < 2; message++) {
        if (bytes == mt_differs(buf.p, bytes, mt_key(message, FROM, TAG, (int) bytes))) {
            got = (char) ('0' + message);
        }
    }
    if (MPI_SUCCESS != rc) {
        got = '0' == got || '1' == got ? '!' : 'E';
    }
    mt_buf_free(&buf);
    return got;
}

/* What the id is used for while the message is kept back. */
static void between(int how)
{
    for (int i = 0; i < how; i++) {
        MPI_Comm comm;
        MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? mt_rank / 2 : (FROM == mt_rank ? MPI_UNDEFINED : 0), 0, &comm));
        if (MPI_COMM_NULL != comm) {
            MT_MPI(MPI_Comm_free(&comm));
        }
    }
}

static void attack(bool everybody, int how, size_t bytes)
{
    unsigned char was[sizeof(((ompi_communicator_t *) NULL)->c_contextid)];
    char got[3] = "";
    MPI_Comm old = make(everybody), new;
    memcpy(was, &((ompi_communicator_t *) old)->c_contextid, sizeof(was));
    MT_MPI(MPI_Barrier(control));
    set_plan(FROM != mt_rank ? "" : bytes > SMALL ? "1 first 0 1 drop" : "1 direct 0 1 drop");
    if (FROM == mt_rank) {
        send_one(old, everybody, bytes, 0);
    }
    MT_MPI(MPI_Barrier(control));
    set_plan("");
    MT_MPI(MPI_Barrier(control));
    MT_MPI(MPI_Comm_free(&old));
    between(how);
    new = make(everybody);
    reused += 0 == memcmp(was, &((ompi_communicator_t *) new)->c_contextid, sizeof(was));
    MT_MPI(MPI_Barrier(control));
    set_plan("2 any 0 0 release");
    MT_MPI(MPI_Barrier(control));       /* any message makes the attacker look at his plan */
    if (FROM == mt_rank) {
        send_one(new, everybody, bytes, 1);
    } else if (TO == mt_rank) {
        got[0] = receive(new, everybody, bytes);
        got[1] = receive(new, everybody, bytes);
        MT_CHECK(0 == strcmp(got, "E1"), "%zu bytes, %s, %d in between: %s instead of E1", bytes,
                 everybody ? "dup" : "split", how, got);
    }
    MT_MPI(MPI_Barrier(control));
    set_plan("");
    MT_MPI(MPI_Comm_free(&new));
}

int main(int argc, char **argv)
{
    int given, index, count, attacks = 0;
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(4 == mt_size, "by 4 ranks");
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &control));
    MT_MPI(MPI_Comm_create_errhandler(count_calls, &handler));
    MT_CHECK(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_SINGLE, &given), "MPI_T_init_thread");
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_get_index("pml_tamper_plan", &index), "pml/tamper is not there");
    MT_CHECK(MPI_SUCCESS == MPI_T_cvar_handle_alloc(index, NULL, &plan_handle, &count), "MPI_T_cvar_handle_alloc");
    for (int everybody = 0; everybody < 2; everybody++) {
        for (int how = 0; how < 24; how += 1 + how) {
            attack(everybody, how, SMALL);
            attack(everybody, how, LONG);
            attacks += 2;
        }
        mt_group("%s", everybody ? "dup" : "split");
    }
    MT_CHECK(attacks == reused, "the context id came back %d times in %d", reused, attacks);
    MT_CHECK(refused == (TO == mt_rank ? attacks : 0), "%d of %d attacks were refused", refused, attacks);
    MT_MPI(MPI_Comm_free(&control));
    return mt_end();
}

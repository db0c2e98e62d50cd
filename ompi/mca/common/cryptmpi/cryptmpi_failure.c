/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What happens when a message, or a peer, does not authenticate: the one place
 * that decides between ending the job and returning an error.  Also our MPI
 * error classes, including those for files.
 */
#include "cryptmpi.h"
#include "cryptmpi_classes.h"
#include "cryptmpi_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/stats.h"
#include "ompi/runtime/mpiruntime.h"

static pthread_mutex_t class_lock = PTHREAD_MUTEX_INITIALIZER;
static int error_code = MPI_SUCCESS;            /* of a class of its own */

/* A class, and a code of it, which is what functions return: Open MPI does not accept a class as a code, and reports
 * the class of such a one as unknown.  The class comes first. */
static bool add_with_text(const char *text, int *code)
{
    int class;

    if (!ompi_common_cryptmpi_add_class(&class) || !ompi_common_cryptmpi_add_code(class, code)) {
        return false;
    }
    ompi_common_cryptmpi_add_text(class, text);
    ompi_common_cryptmpi_add_text(*code, text);
    return true;
}

/* Made at the first failure, so that MPI_LASTUSEDCODE does not change in programs
 * without one. */
int ompi_common_cryptmpi_error(void)
{
    static const char text[] = "MPI_ERR_CRYPT: a message, or a peer, failed authentication";
    int code;

    pthread_mutex_lock(&class_lock);
    if (MPI_SUCCESS == error_code) {
        error_code = add_with_text(text, &code) ? code : MPI_ERR_OTHER;
    }
    code = error_code;
    pthread_mutex_unlock(&class_lock);
    return code;
}

static const char *reason(int rc)
{
    switch (rc) {
    case OPAL_CRYPT_ERR_REPLAY:
        return "the message was delivered before (replay)";
    case OPAL_CRYPT_ERR_ORDER:
        return "the message was moved out of its order";
    case OPAL_CRYPT_ERR_EXHAUSTED:
        return "the message counter of this pair of processes is used up; restart the job";
    case OPAL_CRYPT_ERR_FORKED:
        return "a fork'd child tried to communicate";
    case OPAL_CRYPT_ERR_LIBRARY:
    case OPAL_CRYPT_ERR_MEMORY:
    case OPAL_CRYPT_ERR_CONFIG:
        return opal_crypt_strerror(rc);
    default:
        return "the message was changed on its way, or was not sent by this peer";
    }
}

static const char help_file[] = "help-ompi-common-cryptmpi.txt";

/* Failures in this process, not on the network, have messages of their own. */
static bool fault_of_ours(int rc)
{
    return OPAL_CRYPT_ERR_LIBRARY == rc || OPAL_CRYPT_ERR_MEMORY == rc || OPAL_CRYPT_ERR_CONFIG == rc;
}

static const char *this_process(char who[128])
{
    snprintf(who, 128, "%s on %s", OPAL_NAME_PRINT(OPAL_PROC_MY_NAME), opal_process_info.nodename);
    return who;
}

void ompi_common_cryptmpi_end_job(ompi_communicator_t *comm, int rank, int tag, int rc)
{
    char who[128];

    opal_cryptproc_show_here(help_file, fault_of_ours(rc) ? "crypt-fault-abort" : "auth-failure-abort", this_process(who),
                                   ompi_comm_rank(comm), rank, comm->c_name, tag, reason(rc));
    ompi_mpi_abort(comm, 1);
}

int ompi_common_cryptmpi_auth_failure(ompi_communicator_t *comm, int rank, int tag, int rc)
{
    bool fatal = OPAL_CRYPTPROC_ABORT == opal_cryptproc_params.on_failure
                 || OPAL_CRYPT_ERR_FORKED == rc || OPAL_CRYPT_ERR_EXHAUSTED == rc
                 || opal_crypt_too_many_failures();
    char who[128];

    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_cryptproc_stream,
                        "pml:crypt: refused: %s, rank %d, tag %d: %s", comm->c_name, rank, tag, reason(rc));
    opal_cryptproc_happened(OPAL_CRYPTPROC_REFUSED, rank, tag, 0);
    if (fatal) {
        ompi_common_cryptmpi_end_job(comm, rank, tag, rc);
    }
    OPAL_CRYPTPROC_COUNT(help_file, fault_of_ours(rc) ? "crypt-fault-error" : "auth-failure-error", this_process(who),
                              ompi_comm_rank(comm), rank, comm->c_name, tag, reason(rc));
    return ompi_common_cryptmpi_error();
}

/* Regardless of the communicator's error handler: the caller may be a collective, or
 * be creating a window or a connection, and these hang, or crash, when one of their
 * messages fails.  The whole job ends, as there may be no communicator yet. */
int ompi_common_cryptmpi_peer_refused(const char *file, const char *topic, const char *detail)
{
    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_cryptproc_stream, "pml:crypt: refused a peer: %s", topic);
    opal_cryptproc_happened(OPAL_CRYPTPROC_REFUSED, -1, -1, 0);
    if (OPAL_CRYPTPROC_ABORT != opal_cryptproc_params.on_failure) {
        opal_cryptproc_show_here(file, topic, detail);
        return ompi_common_cryptmpi_error();
    }
    /* Often every process of a node refuses one, for the same reason. */
    (void) opal_cryptproc_show_once(file, topic, detail);
    ompi_mpi_abort(NULL, 1);
    return OMPI_ERR_UNREACH;        /* another thread is already ending the job */
}

/* ---- the error classes of encrypted files ----
 *
 * They are added when MPI_Init ends, before the program can add any: so they have the same
 * numbers in all processes, and an error found by one can be sent to the others.
 * libmpi_crypt, and a program without it, finds them by the start of their texts, which
 * therefore never changes.
 */

static const struct {
    const char *text;
    int otherwise;                      /* where it was not added */
} kinds[OMPI_CRYPTMPI_CLASSES] = {
    [OMPI_CRYPTMPI_TORN] = {OMPI_CRYPTMPI_TORN_NAME ": the first write of a block of an encrypted file was cut short", MPI_ERR_IO},
    [OMPI_CRYPTMPI_FORGED] = {OMPI_CRYPTMPI_FORGED_NAME ": something of an encrypted file is not what a holder of the key wrote: "
                              "it was changed, replaced or damaged", MPI_ERR_IO},
    [OMPI_CRYPTMPI_NO_KEY] = {OMPI_CRYPTMPI_NO_KEY_NAME ": this process has no key for a part of an encrypted file", MPI_ERR_ACCESS},
};

static int codes[OMPI_CRYPTMPI_CLASSES];        /* MPI_SUCCESS: not yet */

static void add_class(ompi_common_cryptmpi_class_t kind)
{
    int code;

    if (MPI_SUCCESS == codes[kind] && add_with_text(kinds[kind].text, &code)) {
        codes[kind] = code;
    }
}

void ompi_common_cryptmpi_classes_add(int argc, char **argv, int requested, int *provided)
{
    (void) argc;
    (void) argv;
    (void) requested;
    (void) provided;
    for (int i = 0; i < OMPI_CRYPTMPI_CLASSES; ++i) {
        add_class((ompi_common_cryptmpi_class_t) i);
    }
}

void ompi_common_cryptmpi_classes_forget(void)
{
    for (int i = 0; i < OMPI_CRYPTMPI_CLASSES; ++i) {
        codes[i] = MPI_SUCCESS;
    }
    pthread_mutex_lock(&class_lock);
    error_code = MPI_SUCCESS;
    pthread_mutex_unlock(&class_lock);
}

int ompi_common_cryptmpi_code(ompi_common_cryptmpi_class_t kind)
{
    return MPI_SUCCESS != codes[kind] ? codes[kind] : kinds[kind].otherwise;
}

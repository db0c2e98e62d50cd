/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Two ranks on two nodes exchange messages of known sizes.  The performance
 * variables of MPI_T, category crypt, count them; tests/shell/report.sh compares
 * what crypt_report says of the same job.
 */
#include "mt.h"

enum { SMALL = 1000, LARGE = 1000000, MESSAGES = 10 };

static MPI_T_pvar_session session;

enum { SEALED, OPENED, SENT, RECEIVED, EPOCHS, FAILURES, VARIABLES };
static const char *const names[VARIABLES] = {
    "crypt_sealed_bytes", "crypt_opened_bytes", "crypt_chopped_sent", "crypt_chopped_received",
    "crypt_epochs", "crypt_authentication_failures",
};
static MPI_T_pvar_handle handles[VARIABLES];
static char protection[1024];                   /* what protects the messages, a line */

static void read_protection(int index)
{
    MPI_T_pvar_handle handle;
    int elements;

    MT_MPI(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &elements));
    MT_CHECK(elements > 80 && elements < (int) sizeof(protection), "crypt_protection: %d elements", elements);
    memset(protection, 'x', sizeof(protection));
    MT_MPI(MPI_T_pvar_read(session, handle, protection));
    MT_CHECK(NULL != memchr(protection, 0, (size_t) elements), "crypt_protection: it does not end");
    MT_MPI(MPI_T_pvar_handle_free(session, &handle));
}

/* From here on the variables count. */
static void bind_variables(void)
{
    int count, found = 0;

    MT_MPI(MPI_T_pvar_get_num(&count));
    for (int i = 0; i < count; i++) {
        char name[128], help[512];
        int name_bytes = sizeof(name), help_bytes = sizeof(help), verbosity, class, bind, readonly, continuous, atomic;
        int elements;
        MPI_Datatype type;
        MPI_T_enum values;

        if (MPI_SUCCESS != MPI_T_pvar_get_info(i, name, &name_bytes, &verbosity, &class, &type, &values, help,
                                               &help_bytes, &bind, &readonly, &continuous, &atomic)) {
            continue;           /* of a component that is gone */
        }
        if (0 == strcmp(name, "crypt_protection")) {
            MT_CHECK(MPI_CHAR == type && readonly, "%s: not as it was registered", name);
            read_protection(i);
        }
        for (int v = 0; v < VARIABLES; v++) {
            if (0 == strcmp(name, names[v])) {
                MT_CHECK(MPI_UNSIGNED_LONG_LONG == type && readonly && 0 != help[0], "%s: not as it was registered", name);
                MT_MPI(MPI_T_pvar_handle_alloc(session, i, NULL, &handles[v], &elements));
                MT_CHECK(1 == elements, "%s: %d elements", name, elements);
                found++;
            }
        }
    }
    MT_CHECK(VARIABLES == found, "%d of %d variables", found, VARIABLES);
}

static unsigned long long value_of(int v)
{
    unsigned long long value = 0;

    MT_MPI(MPI_T_pvar_read(session, handles[v], &value));
    return value;
}

/* The variables that a tool finds through the category. */
static int in_category(const char *wanted)
{
    int count;

    MT_MPI(MPI_T_category_get_num(&count));
    for (int i = 0; i < count; i++) {
        char name[128], help[512];
        int name_bytes = sizeof(name), help_bytes = sizeof(help), cvars, pvars, categories;

        if (MPI_SUCCESS == MPI_T_category_get_info(i, name, &name_bytes, help, &help_bytes, &cvars, &pvars, &categories)
            && 0 == strcmp(name, wanted)) {
            return pvars;
        }
    }
    return -1;
}

static void exchange(char *buffer, int bytes)
{
    for (int i = 0; i < MESSAGES; i++) {
        if (0 == mt_rank) {
            MT_MPI(MPI_Send(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        } else {
            MT_MPI(MPI_Recv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
}

int main(int argc, char **argv)
{
    static char buffer[LARGE];
    const unsigned long long wanted = (unsigned long long) MESSAGES * (SMALL + LARGE);
    unsigned long long bytes, before, chopped;
    int provided, pml;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(2 == mt_size, "for two ranks");
    MT_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MT_MPI(MPI_T_pvar_session_create(&session));
    MT_CHECK(10 == in_category("crypt"), "the category has %d variables", in_category("crypt"));
    bind_variables();
    pml = 0 == strncmp(protection, "pml/crypt seals ", 16);
    MT_CHECK(pml || 0 == strncmp(protection, "btl/crypt seals ", 16), "what protects the job: %s", protection);

    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));        /* over btl/crypt messages are opened before they are received */
    before = pml ? value_of(0 == mt_rank ? SEALED : OPENED) : 0;        /* 5.0's barrier has 4 bytes */
    exchange(buffer, SMALL);
    exchange(buffer, 0);
    exchange(buffer, LARGE);
    bytes = value_of(0 == mt_rank ? SEALED : OPENED) - before;
    chopped = value_of(0 == mt_rank ? SENT : RECEIVED);
    /* Over btl/crypt headers are sealed, too, and nothing is chopped. */
    MT_CHECK(pml ? wanted == bytes : wanted < bytes, "%llu bytes instead of %llu", bytes, wanted);
    MT_CHECK((pml ? MESSAGES : 0) == chopped, "%llu chopped messages", chopped);
    MT_CHECK(0 == value_of(FAILURES), "failures");

    for (int v = 0; v < VARIABLES; v++) {
        MT_MPI(MPI_T_pvar_handle_free(session, &handles[v]));
    }
    MT_MPI(MPI_T_pvar_session_free(&session));
    MT_MPI(MPI_T_finalize());
    mt_group("performance variables: %llu bytes; %s", bytes, protection);
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The error classes of encrypted files.  They are added when MPI_Init ends, before the
 * program can add any: so they have the same numbers in all processes, and what one found
 * can be told to the others.  libmpi_crypt, and a program without it, finds them by how their
 * texts begin, which therefore never changes.
 *
 * A class of its own is no error code to Open MPI: asked for the class of one it says that it
 * is unknown.  So each has a code, which is what functions return, and the class comes first.
 */
#include "cryptmpi_classes.h"

static const struct {
    const char *text;
    int otherwise;                      /* where nobody has added it */
} kinds[OMPI_CRYPTMPI_CLASSES] = {
    [OMPI_CRYPTMPI_TORN] = {OMPI_CRYPTMPI_TORN_NAME ": the first write of a block of an encrypted file was cut short", MPI_ERR_IO},
    [OMPI_CRYPTMPI_FORGED] = {OMPI_CRYPTMPI_FORGED_NAME ": something of an encrypted file is not what a holder of the key wrote: "
                              "it was changed, replaced or damaged", MPI_ERR_IO},
    [OMPI_CRYPTMPI_NO_KEY] = {OMPI_CRYPTMPI_NO_KEY_NAME ": this process has no key for a part of an encrypted file", MPI_ERR_ACCESS},
};

static int codes[OMPI_CRYPTMPI_CLASSES];        /* MPI_SUCCESS: not yet */

static void add(ompi_common_cryptmpi_class_t kind)
{
    int class, code;

    if (MPI_SUCCESS == codes[kind] && MPI_SUCCESS == PMPI_Add_error_class(&class) && MPI_SUCCESS == PMPI_Add_error_code(class, &code)) {
        (void) PMPI_Add_error_string(class, kinds[kind].text);
        (void) PMPI_Add_error_string(code, kinds[kind].text);
        codes[kind] = code;
    }
}

/* The public calls are the only ones that every build of Open MPI exports. */
void ompi_common_cryptmpi_classes_add(int argc, char **argv, int requested, int *provided)
{
    (void) argc;
    (void) argv;
    (void) requested;
    (void) provided;
    for (int i = 0; i < OMPI_CRYPTMPI_CLASSES; ++i) {
        add((ompi_common_cryptmpi_class_t) i);
    }
}

void ompi_common_cryptmpi_classes_forget(void)
{
    for (int i = 0; i < OMPI_CRYPTMPI_CLASSES; ++i) {
        codes[i] = MPI_SUCCESS;
    }
}

int ompi_common_cryptmpi_code(ompi_common_cryptmpi_class_t kind)
{
    return MPI_SUCCESS != codes[kind] ? codes[kind] : kinds[kind].otherwise;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Parameters of Open MPI that must be in force in every rank: NAME=VALUE...
 */
#include "mt.h"

int main(int argc, char **argv)
{
    int count = 0;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &count));
    count = 0;
    for (int i = 1; i < argc; i++) {
        char name[128];
        unsigned long wanted;
        size_t value = 0;
        int index, elements;
        MPI_T_cvar_handle handle;

        MT_CHECK(2 == sscanf(argv[i], "%127[^=]=%lu", name, &wanted), "'%s' is not NAME=NUMBER", argv[i]);
        MT_MPI(MPI_T_cvar_get_index(name, &index));
        MT_MPI(MPI_T_cvar_handle_alloc(index, NULL, &handle, &elements));
        MT_MPI(MPI_T_cvar_read(handle, &value));
        MT_MPI(MPI_T_cvar_handle_free(&handle));
        MT_CHECK(wanted == value, "%s is %zu, not %lu", name, value, wanted);
        count++;
    }
    MT_MPI(MPI_T_finalize());
    MT_CHECK(count > 0, "no parameter named");
    mt_group("%d parameters as they should be", count);
    return mt_end();
}

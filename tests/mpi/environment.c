/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * environment NAME...: variables that no rank may have after MPI_Init.
 */
#include "mt.h"

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc > 1, "no variable named");
    for (int i = 1; i < argc; i++) {
        const char *value = getenv(argv[i]);

        MT_CHECK(NULL == value, "%s is %s", argv[i], value);
    }
    mt_group("%d variables that are not there", argc - 1);
    return mt_end();
}

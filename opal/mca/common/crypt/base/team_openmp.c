/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * OpenMP as the carrier of a team.  Its run-time library is looked up only on request, so that other processes do not
 * load it: the one that the application uses if there is one, else GNU's.  All of them export GNU's entry point, to
 * which a compiler translates `#pragma omp parallel`.
 *
 * A thread of our own is the master of the parallel region: the application's threads and regions are not involved.
 */
#include "team_openmp.h"

#include <dlfcn.h>

typedef void (*parallel_t)(void (*loop)(void *), void *argument, unsigned threads, unsigned flags);

static parallel_t entry_of(const char *library, int flags)
{
    void *handle = dlopen(library, RTLD_NOW | flags);

    /* Never closed: its threads may outlive the region. */
    return NULL == handle ? NULL : (parallel_t) dlsym(handle, "GOMP_parallel");
}

static parallel_t find_entry(void)
{
    static const char *const libraries[] = {"libgomp.so.1", "libiomp5.so", "libomp.so.5", "libomp.so", NULL};
    parallel_t entry = NULL;

    for (int i = 0; NULL != libraries[i] && NULL == entry; ++i) {
        entry = entry_of(libraries[i], RTLD_NOLOAD);
    }
    return NULL != entry ? entry : entry_of(libraries[0], 0);
}

bool opal_crypt_openmp_there(void)
{
    return NULL != find_entry();
}

void opal_crypt_openmp_run(void (*loop)(void *), void *argument, unsigned threads)
{
    parallel_t parallel = find_entry();

    if (NULL == parallel) {
        loop(argument);
        return;
    }
    parallel(loop, argument, threads, 0);
}

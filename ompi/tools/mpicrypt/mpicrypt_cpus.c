/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The processors that threads of a measurement are pinned to: what the launcher
 * or taskset left us, distinct cores first; and what they are called.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/tools/mpicrypt/speed/speed.h"

/* True if `cpu` is the lowest allowed hardware thread of its core.  The kernel
 * writes siblings as "0,64" or "0-1"; without that file every one is a core. */
static bool first_of_core(int cpu, const cpu_set_t *allowed, size_t set_bytes)
{
    char path[128];
    int sibling, last;
    char separator = ',';
    bool first = true;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *in = fopen(path, "r");
    if (NULL == in) {
        return true;
    }
    while (',' == separator && 1 == fscanf(in, "%d", &sibling)) {
        last = sibling;
        if (1 == fscanf(in, "%c", &separator) && '-' == separator) {
            if (1 != fscanf(in, "%d%c", &last, &separator)) {
                last = sibling;
            }
        }
        for (; sibling <= last; ++sibling) {
            if (sibling < cpu && CPU_ISSET_S((size_t) sibling, set_bytes, allowed)) {
                first = false;
            }
        }
    }
    fclose(in);
    return first;
}

int mpicrypt_cpus(int **cpus)
{
    enum { MOST = 8192 };
    size_t set_bytes = CPU_ALLOC_SIZE(MOST);
    cpu_set_t *allowed = CPU_ALLOC(MOST);
    int count = 0;

    *cpus = NULL;
    if (NULL == allowed || 0 != sched_getaffinity(0, set_bytes, allowed)) {
        goto free_set;
    }
    *cpus = calloc((size_t) CPU_COUNT_S(set_bytes, allowed), sizeof(**cpus));
    if (NULL == *cpus) {
        goto free_set;
    }
    for (int pass = 0; pass < 2; ++pass) {
        for (int cpu = 0; cpu < MOST; ++cpu) {
            if (CPU_ISSET_S((size_t) cpu, set_bytes, allowed)
                && (0 == pass) == first_of_core(cpu, allowed, set_bytes)) {
                (*cpus)[count++] = cpu;
            }
        }
    }

free_set:
    CPU_FREE(allowed);
    return count;
}

void mpicrypt_processor(char *name, size_t bytes)
{
    FILE *in = fopen("/proc/cpuinfo", "r");
    char line[512];

    snprintf(name, bytes, "unknown processor");
    while (NULL != in && NULL != fgets(line, sizeof(line), in)) {
        char *colon = strchr(line, ':');
        if (NULL != colon && 0 == strncmp(line, "model name", 10)) {
            colon[strcspn(colon, "\n")] = '\0';
            snprintf(name, bytes, "%.200s", colon + 2);
            break;
        }
    }
    if (NULL != in) {
        fclose(in);
    }
}

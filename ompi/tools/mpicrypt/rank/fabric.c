/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * For `mpicrypt doctor --fabric`: the networks of this node, as the kernel lists them, and the libraries of networks that
 * Open MPI has loaded into this process, with their files, since a site may have several.
 */
#include <dlfcn.h>
#include <glob.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "rank.h"

static void __attribute__((format(printf, 3, 4))) add_text(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;

    va_start(list, format);
    vsnprintf(text + used, bytes - used, format, list);
    va_end(list);
}

/* ---- what the kernel lists ---- */

#define CLASS "/sys/class/"

static const struct {
    const char *pattern, *file[3], *unit[3];
} classes[] = {
    {CLASS "infiniband/*/ports/*", {"link_layer", "state", "rate"}, {"", "", ""}},
    {CLASS "cxi/*", {NULL}, {NULL}},
    {CLASS "net/*", {"operstate", "speed", NULL}, {"", " Mb/s", NULL}},
};

/* What cannot be read, or is unknown, such as the speed of an interface that is down (or -1), is left out. */
static void add_device(char *text, size_t bytes, size_t class, const char *path)
{
    char name[512], line[64];
    const char *before = ": ";

    add_text(text, bytes, "\n@mpicrypt has %d %s", mpicrypt_mpi_rank, path + strlen(CLASS));
    for (int i = 0; i < 3 && NULL != classes[class].file[i]; ++i) {
        snprintf(name, sizeof(name), "%s/%s", path, classes[class].file[i]);
        FILE *in = fopen(name, "r");
        if (NULL != in && NULL != fgets(line, sizeof(line), in) && '-' != line[0]) {
            add_text(text, bytes, "%s%.*s%s", before, (int) strcspn(line, "\n"), line, classes[class].unit[i]);
            before = ", ";
        }
        if (NULL != in) {
            fclose(in);
        }
    }
}

/* ---- libraries ---- */

static void add_library(char *text, size_t bytes, const char *file, const char *function)
{
    void *library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD), *found = NULL == library ? NULL : dlsym(library, function);
    const char *(*ucx)(void);
    uint32_t (*libfabric)(void);
    Dl_info info;

    if (NULL != found && 0 != dladdr(found, &info)) {
        add_text(text, bytes, "\n@mpicrypt has %d ", mpicrypt_mpi_rank);
        if (0 == strcmp(function, "fi_version")) {
            *(void **) &libfabric = found;
            add_text(text, bytes, "libfabric %u.%u: %s", libfabric() >> 16, libfabric() & 0xffff, info.dli_fname);
        } else {
            *(void **) &ucx = found;
            add_text(text, bytes, "UCX %s: %s", ucx(), info.dli_fname);
        }
    }
    if (NULL != library) {
        dlclose(library);
    }
}

void mpicrypt_mpi_describe_fabric(char *text, size_t bytes)
{
    glob_t found;

    for (size_t class = 0; class < sizeof(classes) / sizeof(classes[0]); ++class) {
        if (0 != glob(classes[class].pattern, 0, NULL, &found)) {
            continue;
        }
        for (size_t i = 0; i < found.gl_pathc; ++i) {
            if (0 != strcmp(found.gl_pathv[i], CLASS "net/lo")) {
                add_device(text, bytes, class, found.gl_pathv[i]);
            }
        }
        globfree(&found);
    }
    add_library(text, bytes, "libucp.so.0", "ucp_get_version_string");
    add_library(text, bytes, "libfabric.so.1", "fi_version");
}

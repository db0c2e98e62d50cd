/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Files, used in every way that has processes tell each other something, again and again: each time another one of these
 * messages is a lie (preload/lie_preload.c).  Whatever comes of it, an error or a file, no process crashes.
 *
 *   lie DIR
 */
#define _GNU_SOURCE
#include "mt.h"

#include <dlfcn.h>

#include "mpi_crypt.h"

static void (*arm)(int call, int byte);
static int (*calls)(void);

/* Did it succeed everywhere?  What some have and others have not is left as it is. */
static int all_have(int rc)
{
    int mine = MPI_SUCCESS == rc, least;

    MT_MPI(MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    return least;
}

/* Each of two processes asks for a region, and the second one for the rest. */
static int set_map(MPI_File f)
{
    MPI_Datatype type;
    MPI_Info info;
    int rc;

    MT_MPI(MPI_Type_contiguous(1000, MPI_BYTE, &type));
    MT_MPI(MPI_Type_commit(&type));
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", 0 == mt_rank ? "lab" : "other"));
    MT_MPI(MPI_Info_set(info, "crypt_repeat", "once"));
    if (1 == mt_rank) {
        MT_MPI(MPI_Info_set(info, "crypt_rest", "plain"));
    }
    rc = MPIX_File_set_encryption_map(f, mt_rank > 0 ? 4096 : 0, MPI_BYTE, type, "native", info);
    MT_MPI(MPI_Info_free(&info));
    MT_MPI(MPI_Type_free(&type));
    return rc;
}

static void use(const char *name, int amode, const char *label, int maps)
{
    char bytes[100] = "bytes";
    MPI_Info info;
    MPI_File f;
    int rc;

    MT_MPI(MPI_Info_create(&info));
    if (NULL != label) {
        MT_MPI(MPI_Info_set(info, "crypt_key_label", label));
    }
    MT_AT();
    rc = MPI_File_open(MPI_COMM_WORLD, name, amode, info, &f);
    MT_MPI(MPI_Info_free(&info));
    if (!all_have(rc)) {
        return;
    }
    for (int i = 0; i < maps; i++) {
        MT_AT();
        if (!all_have(set_map(f))) {
            return;
        }
    }
    MT_AT();
    if (0 != (amode & MPI_MODE_RDWR)) {
        rc = MPI_File_write_at_all(f, 100 * mt_rank, bytes, sizeof(bytes), MPI_BYTE, MPI_STATUS_IGNORE);
        rc = all_have(rc) ? MPI_File_set_size(f, 5000) : rc;
    } else {
        rc = MPI_File_read_at_all(f, 100 * mt_rank, bytes, sizeof(bytes), MPI_BYTE, MPI_STATUS_IGNORE);
    }
    if (all_have(rc)) {
        MT_AT();
        (void) all_have(MPI_File_close(&f));
    }
}

/* A file by a label; one by a map, and once more; the same, to write to it and to read it. */
static int all_ways(const char *directory, int call, int byte)
{
    static int round;
    char first[4096], second[4096];

    snprintf(first, sizeof(first), "%s/first.%d", directory, round);
    snprintf(second, sizeof(second), "%s/second.%d", directory, round++);
    arm(call, byte);
    use(first, MPI_MODE_CREATE | MPI_MODE_RDWR, "lab", 0);
    use(second, MPI_MODE_CREATE | MPI_MODE_RDWR, NULL, 2);
    use(first, MPI_MODE_RDWR, NULL, 0);
    use(first, MPI_MODE_RDONLY, NULL, 0);
    const int made = calls();
    arm(-1, 0);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        (void) MPI_File_delete(first, MPI_INFO_NULL);
        (void) MPI_File_delete(second, MPI_INFO_NULL);
    }
    return made;
}

int main(int argc, char **argv)
{
    static const int bytes[] = {0xff, 0x7f, 0x01};

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named");
    }
    arm = (void (*)(int, int)) dlsym(RTLD_DEFAULT, "lie_arm");
    calls = (int (*)(void)) dlsym(RTLD_DEFAULT, "lie_calls");
    MT_CHECK(NULL != arm && NULL != calls, "nobody lies");
    const int most = all_ways(argv[1], -1, 0);
    mt_group("%d messages about files, and no lie", most);
    MT_CHECK(most > 40, "they tell each other little: %d", most);
    for (int call = (int) mt_arg("from", 0); call < (int) mt_arg("to", most); call++) {
        for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
            mt_group("message %d is 0x%02x", call, (unsigned) bytes[i]);
            (void) all_ways(argv[1], call, bytes[i]);
        }
    }
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One process has no memory left while processes agree on something: all get an error, and
 * no process waits for ever.  memory DIR [every=N] [anew].  Labels lab and other are in the keystore.
 *
 * This program replaces malloc and calloc: the n-th call from common/cryptmpio fails,
 * for every N-th n, at one rank or another.  With "anew" also every one from common/cryptfile, at each rank, while
 * a map replaces the default one; what is written after that is not lost.
 */
#define _GNU_SOURCE
#include "mt.h"

#include <dlfcn.h>

#include "mpi_crypt.h"

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);

static __thread bool within;            /* dladdr may allocate */
static bool armed, anew;
static long calls, failing;             /* from the library, while armed */
static int victim;                      /* the rank */

static bool fails(const void *caller)
{
    Dl_info info;

    if (!armed || within) {
        return false;
    }
    within = true;
    const bool ours = 0 != dladdr(caller, &info) && (NULL != strstr(info.dli_fname, "mca_common_cryptmpio") ||
                                                     (anew && NULL != strstr(info.dli_fname, "mca_common_cryptfile")));
    within = false;
    return ours && failing == calls++;
}

void *malloc(size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

static MPI_Info info_of(const char *label)
{
    MPI_Info info;

    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", label));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    return info;
}

/* Two regions of two labels: all processes have the keys of one, so that every agreement takes
 * place. */
static int use(const char *path)
{
    MPI_Info lab = info_of("lab"), other = info_of("other");
    MPI_Datatype run;
    MPI_File f;

    MT_MPI(MPI_Info_set(other, "crypt_repeat", "once"));
    MT_MPI(MPI_Type_contiguous(5000, MPI_BYTE, &run));
    MT_MPI(MPI_Type_commit(&run));
    int rc = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    if (MPI_SUCCESS == rc) {
        rc = MPIX_File_set_encryption_map(f, 0, MPI_BYTE, run, "native", other);
        if (MPI_SUCCESS == rc) {
            rc = MPIX_File_set_encryption_map(f, 5000, MPI_BYTE, run, "native", lab);
        }
        armed = false;                  /* closing is no place for an error */
        MT_MPI(MPI_File_close(&f));
    }
    armed = false;
    MT_MPI(MPI_Type_free(&run));
    MT_MPI(MPI_Info_free(&lab));
    MT_MPI(MPI_Info_free(&other));
    return rc;
}

/* Another map instead of the default one. */
static int use_anew(const char *path)
{
    MPI_Info lab = info_of("lab"), other = info_of("other");
    char bytes[100], back[100];
    MPI_Datatype run;
    MPI_File f;

    armed = false;
    MT_MPI(MPI_Type_contiguous(5000, MPI_BYTE, &run));
    MT_MPI(MPI_Type_commit(&run));
    MT_MPI(MPI_Info_set(other, "crypt_repeat", "once"));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, lab, &f));
    armed = victim == mt_rank;
    int rc = MPIX_File_set_encryption_map(f, 0, MPI_BYTE, run, "native", other);
    armed = false;
    memset(bytes, 'a' + mt_rank, sizeof(bytes));
    const bool wrote = MPI_SUCCESS == MPI_File_write_at(f, 1000 * mt_rank, bytes, sizeof(bytes), MPI_BYTE, MPI_STATUS_IGNORE);
    MT_MPI(MPI_File_close(&f));
    if (wrote) {
        MT_MPI(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
        MT_CHECK(MPI_SUCCESS == MPI_File_read_at(f, 1000 * mt_rank, back, sizeof(back), MPI_BYTE, MPI_STATUS_IGNORE)
                     && 0 == memcmp(back, bytes, sizeof(back)), "call %ld: what was written is lost", failing);
        MT_MPI(MPI_File_close(&f));
    }
    MT_CHECK(wrote || MPI_SUCCESS != rc, "it cannot be written");
    MT_MPI(MPI_Type_free(&run));
    MT_MPI(MPI_Info_free(&lab));
    MT_MPI(MPI_Info_free(&other));
    return rc;
}

/* The n-th call fails at `victim`.  Returns whether there was one. */
static bool try_one(const char *path, long n)
{
    int failed, most, least, there;

    if (0 == mt_rank) {
        (void) MPI_File_delete(path, MPI_INFO_NULL);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    calls = 0;
    failing = n;
    armed = victim == mt_rank;
    failed = MPI_SUCCESS != (anew ? use_anew(path) : use(path));
    there = victim == mt_rank && calls > n;
    MT_MPI(MPI_Allreduce(&failed, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    MT_MPI(MPI_Allreduce(&failed, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    MT_CHECK(most == least, "call %ld at rank %d: some processes got an error, and others none", n, victim);
    MT_CHECK(there || !most, "an error without a reason");
    return there;
}

int main(int argc, char **argv)
{
    char path[1024];
    long tried = 0;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc > 1, "which directory?");
    MT_MPI(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    snprintf(path, sizeof(path), "%s/memory", argv[1]);
    const long every = mt_arg("every", 1);
    for (int round = 0; round < (mt_flag("anew") ? 2 : 1); round++) {
        anew = 1 == round;
        tried = 0;
        for (long n = 0; victim = (int) (tried % mt_size), try_one(path, n); n += anew ? victim == mt_size - 1 : every) {
            tried++;
        }
        MT_CHECK(tried > 10 / every, "only %ld calls failed", tried);
        mt_group("%ld calls failed, each at one rank%s", tried, anew ? ": a map instead of the default one" : "");
    }
    return mt_end();
}

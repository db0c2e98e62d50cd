/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Encryption that is requested after a file was opened without a label, whichever components handle the file:
 *
 *     request DIR REQUEST...      each of: map (MPIX_File_set_encryption_map), view, view-one (rank 1 alone asks),
 *                              info, info-one (MPI_File_set_info)
 *
 * The request fails on every rank, or is served; if it fails, so does every later call that
 * moves data, on every rank, without waiting for another.  Nothing written then is in a file.
 */
#define _GNU_SOURCE
#include "clear.h"

#include "mpi_crypt.h"

enum { BYTES = 64, AT = 4096 };

static unsigned char secret[BYTES], buffer[BYTES];
static char path[1024];
static const char *request;

static void fails(const char *call, int rc)
{
    MT_CHECK(MPI_SUCCESS != rc, "%s: %s after the request was refused", request, call);
}

static int wait_for(int rc, MPI_Request *pending)
{
    return MPI_SUCCESS == rc ? MPI_Wait(pending, MPI_STATUS_IGNORE) : rc;
}

#define NOW(call)       fails(#call, call)
#define LATER(call)     (pending = MPI_REQUEST_NULL, fails(#call, wait_for(call, &pending)))
#define SPLIT(begin, end) (rc = begin, fails(#begin, MPI_SUCCESS == rc ? end : rc))

#define DATA secret, BYTES, MPI_BYTE
#define ROOM buffer, BYTES, MPI_BYTE

static void every_write_fails(MPI_File f)
{
    const MPI_Offset at = AT + BYTES * mt_rank;
    MPI_Request pending;
    int rc;

    NOW(MPI_File_write(f, DATA, MPI_STATUS_IGNORE));
    NOW(MPI_File_write_at(f, at, DATA, MPI_STATUS_IGNORE));
    NOW(MPI_File_write_all(f, DATA, MPI_STATUS_IGNORE));
    NOW(MPI_File_write_at_all(f, at, DATA, MPI_STATUS_IGNORE));
    NOW(MPI_File_write_shared(f, DATA, MPI_STATUS_IGNORE));
    NOW(MPI_File_write_ordered(f, DATA, MPI_STATUS_IGNORE));
    LATER(MPI_File_iwrite(f, DATA, &pending));
    LATER(MPI_File_iwrite_at(f, at, DATA, &pending));
    LATER(MPI_File_iwrite_all(f, DATA, &pending));
    LATER(MPI_File_iwrite_at_all(f, at, DATA, &pending));
    LATER(MPI_File_iwrite_shared(f, DATA, &pending));
    SPLIT(MPI_File_write_all_begin(f, DATA), MPI_File_write_all_end(f, secret, MPI_STATUS_IGNORE));
    SPLIT(MPI_File_write_at_all_begin(f, at, DATA), MPI_File_write_at_all_end(f, secret, MPI_STATUS_IGNORE));
    SPLIT(MPI_File_write_ordered_begin(f, DATA), MPI_File_write_ordered_end(f, secret, MPI_STATUS_IGNORE));
    NOW(MPI_File_preallocate(f, 2 * AT));
}

static void every_read_fails(MPI_File f)
{
    const MPI_Offset at = BYTES * mt_rank;
    MPI_Request pending;
    int rc;

    NOW(MPI_File_read(f, ROOM, MPI_STATUS_IGNORE));
    NOW(MPI_File_read_at(f, at, ROOM, MPI_STATUS_IGNORE));
    NOW(MPI_File_read_all(f, ROOM, MPI_STATUS_IGNORE));
    NOW(MPI_File_read_at_all(f, at, ROOM, MPI_STATUS_IGNORE));
    NOW(MPI_File_read_shared(f, ROOM, MPI_STATUS_IGNORE));
    NOW(MPI_File_read_ordered(f, ROOM, MPI_STATUS_IGNORE));
    LATER(MPI_File_iread(f, ROOM, &pending));
    LATER(MPI_File_iread_at(f, at, ROOM, &pending));
    LATER(MPI_File_iread_all(f, ROOM, &pending));
    LATER(MPI_File_iread_at_all(f, at, ROOM, &pending));
    LATER(MPI_File_iread_shared(f, ROOM, &pending));
    SPLIT(MPI_File_read_all_begin(f, ROOM), MPI_File_read_all_end(f, buffer, MPI_STATUS_IGNORE));
    SPLIT(MPI_File_read_at_all_begin(f, at, ROOM), MPI_File_read_at_all_end(f, buffer, MPI_STATUS_IGNORE));
    SPLIT(MPI_File_read_ordered_begin(f, ROOM), MPI_File_read_ordered_end(f, buffer, MPI_STATUS_IGNORE));
}

static int ask(MPI_File f, const char *how)
{
    const bool asks = NULL == strstr(how, "-one") || 1 == mt_rank;
    MPI_Info info;
    int rc;

    MT_MPI(MPI_Info_create(&info));
    if (asks) {
        MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    }
    rc = 0 == strcmp(how, "map") ? MPIX_File_set_encryption_map(f, 0, MPI_BYTE, MPI_BYTE, "native", info)
         : 0 == strncmp(how, "view", 4) ? MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", info) : MPI_File_set_info(f, info);
    MT_MPI(MPI_Info_free(&info));
    return rc;
}

/* `used`: there is plain data already. */
static void try(const char *directory, bool used)
{
    MPI_File f;

    snprintf(path, sizeof(path), "%s/%s%s", directory, request, used ? "-used" : "");
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    memset(buffer, 0, sizeof(buffer));
    if (used) {
        MT_MPI(MPI_File_write_at_all(f, BYTES * mt_rank, ROOM, MPI_STATUS_IGNORE));
    }
    int rc = ask(f, request);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));        /* the one that asked may end the job */
    if (MPI_SUCCESS == rc && 0 == strcmp(request, "map") && !used) {
        MT_MPI(MPI_File_write_at_all(f, AT + BYTES * mt_rank, DATA, MPI_STATUS_IGNORE));
    } else {
        MT_CHECK(MPI_SUCCESS != rc, "%s: MPI_SUCCESS", request);
        every_write_fails(f);
        every_read_fails(f);
        MT_MPI(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        every_write_fails(f);
    }
    MT_MPI(MPI_File_close(&f));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {                         /* neither in this file, nor in those that OMPIO makes beside it */
        MT_CHECK(!clear_below(directory, secret, BYTES), "%s: the secret is there", request);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc > 2, "usage");
    mt_fill(secret, sizeof(secret), mt_key(5, 0, 0, 0));
    for (int i = 2; i < argc; i++) {
        request = argv[i];
        try(argv[1], false);
        try(argv[1], true);
        mt_group("%s", request);
    }
    return mt_end();
}

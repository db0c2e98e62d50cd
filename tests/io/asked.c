/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A program gets the encryption that it asked for, or an error: asked DIR.  Labels
 * lab and other are in the keystore.  "asked DIR require": under fs_crypt_require.
 * "asked DIR input": under fs_crypt_key_label=lab and fs_crypt_plain_paths=DIR/input-*.
 *
 * The storage server may put any encrypted file of the same user in the place of
 * another; a call may fail, and a name may be misspelt.  Then no file may have the
 * bytes that were to be secret: rank 0 looks.
 */
#define _GNU_SOURCE
#include "clear.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi_crypt.h"

enum { REGION = 1000, BEHIND = 5000, SECRET = 64 };

static char path[1024];
static unsigned char secret[SECRET], again[SECRET];

static MPI_Info info_of(const char *label, const char *algorithm, const char *block_size)
{
    MPI_Info info;

    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", label));
    MT_MPI(MPI_Info_set(info, "crypt_algorithm", algorithm));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", block_size));
    return info;
}

static const char *named(const char *directory, const char *name)
{
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static MPI_File open_as(const char *directory, const char *name, const char *label)
{
    MPI_Info info = NULL == label ? MPI_INFO_NULL : info_of(label, "aes-128-gcm", "4096");
    MPI_File f;

    MT_MPI(MPI_File_open(MPI_COMM_WORLD, named(directory, name), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    if (NULL != label) {
        MT_MPI(MPI_Info_free(&info));
    }
    return f;
}

static void class_is(int rc, int wanted, const char *what)
{
    int class = MPI_SUCCESS;

    if (MPI_SUCCESS != rc) {
        MT_MPI(MPI_Error_class(rc, &class));
    }
    MT_CHECK(class == wanted, "%s: error class %d instead of %d", what, class, wanted);
}

/* One run of bytes, once; `rest`: all others are plain. */
static int set_run(MPI_File f, MPI_Offset at, int bytes, const char *label, const char *algorithm, bool rest)
{
    MPI_Info info = info_of(label, algorithm, "4096");
    MPI_Datatype run;

    MT_MPI(MPI_Info_set(info, "crypt_repeat", "once"));
    if (rest) {
        MT_MPI(MPI_Info_set(info, "crypt_rest", "plain"));
    }
    MT_MPI(MPI_Type_contiguous(bytes, MPI_BYTE, &run));
    MT_MPI(MPI_Type_commit(&run));
    int rc = MPIX_File_set_encryption_map(f, at, MPI_BYTE, run, "native", info);
    MT_MPI(MPI_Type_free(&run));
    MT_MPI(MPI_Info_free(&info));
    return rc;
}

/* Rank 0 writes the secret, by each kind of call: all have this result. */
static void write_is(MPI_File f, MPI_Offset at, int wanted, const char *what)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int rc;

    if (0 == mt_rank) {
        class_is(MPI_File_write_at(f, at, secret, SECRET, MPI_BYTE, MPI_STATUS_IGNORE), wanted, what);
        rc = MPI_File_iwrite_at(f, at, secret, SECRET, MPI_BYTE, &request);
        class_is(MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc, wanted, what);
    }
    rc = MPI_File_write_at_all(f, at + SECRET * mt_rank, secret, SECRET, MPI_BYTE, MPI_STATUS_IGNORE);
    class_is(rc, wanted, what);
}

static void read_is(MPI_File f, MPI_Offset at, int wanted, const char *what)
{
    memset(again, 7, sizeof(again));
    class_is(MPI_File_read_at(f, at, again, SECRET, MPI_BYTE, MPI_STATUS_IGNORE), wanted, what);
}

static void close_and_look(MPI_File *f, const char *directory, const char *name, const char *what)
{
    MT_MPI(MPI_File_close(f));
    if (0 == mt_rank) {
        MT_CHECK(!clear_in(named(directory, name), secret, SECRET / 2), "%s: plaintext in the file", what);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* What a storage server can do. */
static void put_in_place(const char *directory, const char *decoy, const char *name)
{
    char from[1024], to[1024];

    snprintf(from, sizeof(from), "%s/%s", directory, decoy);
    snprintf(to, sizeof(to), "%s/%s", directory, name);
    MT_CHECK(0 != mt_rank || 0 == rename(from, to), "rename %s", from);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* A file with a region of this label, `rest` or not, and one byte at its end or none. */
static void make(const char *directory, const char *name, const char *label, bool rest, bool filled)
{
    MPI_File f = open_as(directory, name, NULL);

    MT_MPI(set_run(f, 0, REGION, label, "aes-128-gcm", rest));
    if (filled && 0 == mt_rank) {
        MT_MPI(MPI_File_write_at(f, rest ? BEHIND + SECRET : SECRET, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MT_MPI(MPI_File_close(&f));
}

/* ---- one file replaced by another ---- */

static void another_map(const char *directory)
{
    make(directory, "decoy", "lab", true, true);
    put_in_place(directory, "decoy", "wanted");
    MPI_File f = open_as(directory, "wanted", "lab");
    write_is(f, BEHIND, MPI_ERR_ACCESS, "writing where the other file is plain");
    read_is(f, BEHIND, MPI_ERR_ACCESS, "reading there");
    write_is(f, 0, MPI_SUCCESS, "writing where it is encrypted as asked for");
    read_is(f, 0, MPI_SUCCESS, "reading there");
    close_and_look(&f, directory, "wanted", "another file's map");

    f = open_as(directory, "wanted", "lab");
    MT_MPI(set_run(f, 0, REGION, "lab", "aes-128-gcm", true));
    read_is(f, BEHIND, MPI_SUCCESS, "reading what the program itself wants plain");
    MT_MPI(MPI_File_close(&f));
    f = open_as(directory, "wanted", NULL);
    read_is(f, BEHIND, MPI_SUCCESS, "reading where no label is asked for");
    MT_MPI(MPI_File_close(&f));
    mt_group("a map with plain bytes, in the place of one that has none");
}

static void another_label(const char *directory)
{
    make(directory, "decoy", "other", false, true);
    put_in_place(directory, "decoy", "labeled");
    MPI_Info info = info_of("lab", "aes-128-gcm", "4096");
    MPI_File f;

    class_is(MPI_File_open(MPI_COMM_WORLD, named(directory, "labeled"), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f), MPI_ERR_ACCESS,
             "opening for writing under another label");
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, named(directory, "labeled"), MPI_MODE_RDONLY, info, &f));
    MT_MPI(MPI_Info_free(&info));
    read_is(f, 0, MPI_SUCCESS, "reading what somebody with a key of ours wrote");
    close_and_look(&f, directory, "labeled", "another label");

    f = open_as(directory, "labeled", NULL);
    MT_MPI(set_run(f, BEHIND, REGION, "lab", "aes-128-gcm", false));
    MT_MPI(MPI_File_close(&f));
    f = open_as(directory, "labeled", "lab");
    write_is(f, 0, MPI_ERR_ACCESS, "writing under another label");
    read_is(f, 0, MPI_SUCCESS, "reading there");
    write_is(f, BEHIND, MPI_SUCCESS, "writing under the label that was asked for");
    close_and_look(&f, directory, "labeled", "two labels");
    mt_group("a map of another label");
}

static void empty_map(const char *directory)
{
    make(directory, "decoy", "lab", false, false);
    put_in_place(directory, "decoy", "empty");
    MPI_File f = open_as(directory, "empty", "lab");
    write_is(f, 0, MPI_ERR_ACCESS, "an empty file with another map than was asked for");
    MT_MPI(set_run(f, 0, REGION, "lab", "aes-128-gcm", false));
    write_is(f, 0, MPI_SUCCESS, "an empty file with the map that the program asks for");
    close_and_look(&f, directory, "empty", "an empty file");

    f = open_as(directory, "default", "lab");
    MT_MPI(MPI_File_close(&f));
    f = open_as(directory, "default", "lab");
    write_is(f, BEHIND, MPI_SUCCESS, "an empty file with the map that is asked for");
    close_and_look(&f, directory, "default", "an empty file");
    mt_group("an empty file has exactly the map that is asked for");
}

/* What another handle writes is not lost, and the map can be chosen while no other is there. */
static void default_map(const char *directory)
{
    MPI_File f = open_as(directory, "chosen", "lab"), other;

    for (int round = 0; round < 2; round++) {
        if (0 == mt_rank) {
            MT_MPI(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &other));
        }
        class_is(set_run(f, 0, REGION, "lab", "aes-128-gcm", true), MPI_ERR_ARG, "another map, while another handle has the file");
        if (0 == mt_rank) {
            if (1 == round) {
                MT_MPI(MPI_File_write_at(other, BEHIND, secret, SECRET, MPI_BYTE, MPI_STATUS_IGNORE));
            }
            MT_MPI(MPI_File_close(&other));
        }
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        if (0 == round) {
            MT_MPI(set_run(f, 0, REGION, "lab", "aes-128-gcm", true));
            write_is(f, 0, MPI_SUCCESS, "writing with the map that was chosen");
            close_and_look(&f, directory, "chosen", "a map that was chosen");
            f = open_as(directory, "kept", "lab");
        }
    }
    class_is(set_run(f, 0, REGION, "lab", "aes-128-gcm", true), MPI_ERR_ARG, "another map than the data has");
    close_and_look(&f, directory, "kept", "a map that was kept");
    f = open_as(directory, "kept", NULL);
    read_is(f, BEHIND, MPI_SUCCESS, "reading what the other handle wrote");
    MT_CHECK(0 == memcmp(again, secret, SECRET), "the other handle's bytes are lost");
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_CHECK(0 != mt_rank || 0 == truncate(path, 0), "truncate");
    MPI_Info info = info_of("lab", "aes-128-gcm", "4096");
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    class_is(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &other), MPI_ERR_FILE_IN_USE, "one that was emptied while it was open");
    MT_MPI(MPI_Info_free(&info));
    MT_MPI(MPI_File_close(&f));
    f = open_as(directory, "kept", "lab");
    write_is(f, 0, MPI_SUCCESS, "one that was emptied");
    close_and_look(&f, directory, "kept", "one that was emptied");
    mt_group("a default map is replaced while nobody else has the file");
}

/* ---- an older map ---- */

/* The link by which the file was opened leads elsewhere when the map is stored. */
static void relinked(const char *directory)
{
    char link[1024];

    MPI_File f = open_as(directory, "linked", NULL);
    MT_MPI(MPI_File_close(&f));
    snprintf(link, sizeof(link), "%s/link", directory);
    MT_CHECK(0 != mt_rank || 0 == symlink(path, link), "no link");
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    f = open_as(directory, "link", "lab");
    MT_CHECK(0 != mt_rank || (0 == unlink(link) && 0 == symlink("nowhere", link)), "no other link");
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(set_run(f, 0, REGION, "lab", "aes-128-gcm", true));
    write_is(f, 0, MPI_SUCCESS, "writing after the link was changed");
    close_and_look(&f, directory, "linked", "a file behind a link");
    f = open_as(directory, "linked", NULL);
    read_is(f, 0, MPI_SUCCESS, "reading what was behind the link");
    MT_CHECK(0 == memcmp(again, secret, SECRET), "other bytes behind the link");
    MT_MPI(MPI_File_close(&f));
    mt_group("a link that is changed while the file is open");
}

static void rest_is_last(const char *directory)
{
    MPI_File f = open_as(directory, "rest", NULL);

    MT_MPI(set_run(f, 0, REGION, "lab", "aes-128-gcm", true));
    class_is(set_run(f, BEHIND, REGION, "lab", "aes-128-gcm", false), MPI_ERR_ARG, "a region of what an older map has plain");
    write_is(f, BEHIND, MPI_ERR_ACCESS, "plain bytes that were to be a region");
    close_and_look(&f, directory, "rest", "a region behind a rest");
    mt_group("no map follows one with a rest");
}

/* ---- calls that fail ---- */

static void failed_map(const char *directory)
{
    MPI_File f = open_as(directory, "failed", NULL);

    class_is(set_run(f, 0, REGION, "lab", "aes-128-cbc", false), MPI_ERR_INFO_VALUE, "an algorithm that is none");
    write_is(f, 0, MPI_ERR_ACCESS, "writing after a map was refused");
    read_is(f, 0, MPI_ERR_ACCESS, "reading after a map was refused");
    class_is(MPI_File_write_shared(f, secret, SECRET, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ACCESS, "the shared pointer");
    MT_MPI(set_run(f, 0, REGION, "lab", "aes-128-gcm", true));
    write_is(f, 0, MPI_SUCCESS, "writing after a map was taken");
    close_and_look(&f, directory, "failed", "a map that was refused");
    mt_group("after a map that was refused nothing is written or read");
}

/* Make a file with rank 0's `info`, which is freed.  A refused call leaves no file, with MPI_MODE_EXCL or without. */
static void valued(const char *directory, MPI_Info info, int wanted, const char *what)
{
    for (int excl = 0; excl <= MPI_MODE_EXCL; excl += MPI_MODE_EXCL) {
        MPI_File f;
        int rc = MPI_File_open(MPI_COMM_WORLD, named(directory, "valued"),
                               MPI_MODE_CREATE | excl | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                               0 == mt_rank ? info : MPI_INFO_NULL, &f);

        class_is(rc, wanted, what);
        if (MPI_SUCCESS == rc) {
            MT_MPI(MPI_File_close(&f));
        }
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        MT_CHECK(0 != access(path, F_OK), "%s: the file is there", what);
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    MT_MPI(MPI_Info_free(&info));
}

static void misspelt(const char *directory)
{
    const char *const keys[] = {"crypt_key_labl", "crypt_algoritm", "crypt_"};
    MPI_Info info;
    MPI_File f;

    const bool input = fcntl(0, F_GETFD) >= 0;

    for (int i = 0; i < 3; i++) {
        MT_MPI(MPI_Info_create(&info));
        MT_MPI(MPI_Info_set(info, keys[i], "lab"));
        class_is(MPI_File_open(MPI_COMM_WORLD, named(directory, "misspelt"), MPI_MODE_CREATE | MPI_MODE_RDWR,
                               0 == mt_rank ? info : MPI_INFO_NULL, &f), MPI_ERR_INFO_KEY, keys[i]);
        MT_CHECK(0 != access(path, F_OK), "the file that was refused is there");
        MT_CHECK(input && fcntl(0, F_GETFD) >= 0, "standard input is closed");
        f = open_as(directory, "spelt", NULL);
        class_is(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", 0 == mt_rank ? info : MPI_INFO_NULL), MPI_ERR_INFO_KEY, keys[i]);
        class_is(MPIX_File_set_encryption_map(f, 0, MPI_BYTE, MPI_BYTE, "native", info), MPI_ERR_INFO_KEY, keys[i]);
        write_is(f, 0, MPI_ERR_ACCESS, "writing after that");
        close_and_look(&f, directory, "spelt", keys[i]);
        MT_MPI(MPI_Info_free(&info));
    }
    info = info_of("lab", "aes-128-gcm", "4096x");
    valued(directory, info, MPI_ERR_INFO_VALUE, "a number that is none");
    info = info_of("lab", "aes-128-cbc", "4096");
    valued(directory, info, MPI_ERR_INFO_VALUE, "an algorithm that is none, at opening");
    info = info_of("lab", "aes-128-gcm", "4096");
    MT_MPI(MPI_Info_delete(info, "crypt_key_label"));
    valued(directory, info, MPI_ERR_INFO_VALUE, "an algorithm and no label");
    info = info_of("nobody", "aes-128-gcm", "4096");
    valued(directory, info, MPIX_ERR_CRYPT_NO_KEY, "a label of which there is no key");
    info = info_of("lab", "plain", "4096");
    valued(directory, info, MPI_ERR_ARG, "a label, and in clear");
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_algorithm", "plain"));
    valued(directory, info, MPI_SUCCESS, "a plain file, asked for as one");
    mt_group("misspelt info keys, and values that are none");
}

/* In a view, a key sets nothing new: what it asks for must be there already. */
static void in_view(const char *directory)
{
    MPI_Info info = info_of("lab", "aes-128-gcm", "4096"), has;
    MPI_File f = open_as(directory, "viewed", NULL);

    class_is(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", info), MPI_ERR_INFO_VALUE, "a label for a view of a plain file");
    MT_MPI(MPI_File_close(&f));
#if OMPI_MAJOR_VERSION >= 5             /* 4.1 ends the job there (io/late) */
    f = open_as(directory, "viewed", NULL);
    class_is(MPI_File_set_info(f, info), MPI_ERR_INFO_VALUE, "a label for a plain file that is open");
    write_is(f, 0, MPI_ERR_ACCESS, "writing after that");
    MT_MPI(MPI_Info_create(&has));
    MT_MPI(MPI_File_set_info(f, has));
    MT_MPI(MPI_Info_free(&has));
    write_is(f, 0, MPI_ERR_ACCESS, "writing after info without a label");
    MT_MPI(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    write_is(f, 0, MPI_ERR_ACCESS, "writing after a view without a label");
    MT_MPI(MPI_File_close(&f));
    MT_CHECK(0 != mt_rank || 0 == unlink(path), "the file is not there");
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
#endif
    f = open_as(directory, "viewed", "lab");
    MT_MPI(MPI_File_get_info(f, &has));
    MT_MPI(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", info));
    MT_MPI(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", has));
    write_is(f, 0, MPI_SUCCESS, "writing in a view");
    close_and_look(&f, directory, "viewed", "a view");
    MT_MPI(MPI_Info_free(&info));
    MT_MPI(MPI_Info_free(&has));
    mt_group("info keys of a view");
}

/* ---- fs_crypt_require ---- */

static void required(const char *directory)
{
    MPI_File f = open_as(directory, "required", NULL);

    write_is(f, 0, MPI_ERR_ACCESS, "a plain file");
    MT_MPI(set_run(f, 0, REGION, "lab", "aes-128-gcm", true));
    write_is(f, BEHIND, MPI_ERR_ACCESS, "the rest, which is plain");
    write_is(f, 0, MPI_SUCCESS, "an encrypted region");
    read_is(f, BEHIND, MPI_SUCCESS, "reading the rest");
    close_and_look(&f, directory, "required", "fs_crypt_require");
    mt_group("fs_crypt_require: no plain byte is written");
}

/* ---- fs_crypt_plain_paths ---- */

static void plain_at(const char *directory, const char *name)
{
    if (0 == mt_rank) {
        int fd = open(named(directory, name), O_CREAT | O_TRUNC | O_WRONLY, 0600);
        MT_CHECK(fd >= 0 && SECRET == write(fd, secret, SECRET) && 0 == close(fd), "no plain file %s", path);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void opening_is(const char *directory, const char *name, int amode, int wanted, const char *what)
{
    MPI_File f = MPI_FILE_NULL;
    int rc = MPI_File_open(MPI_COMM_WORLD, named(directory, name), amode, MPI_INFO_NULL, &f);

    class_is(rc, wanted, what);
    if (MPI_SUCCESS == rc) {
        memset(again, 0, sizeof(again));
        MT_MPI(MPI_File_read_at_all(f, 0, again, SECRET, MPI_BYTE, MPI_STATUS_IGNORE));
        MT_CHECK(0 == memcmp(again, secret, SECRET), "%s: other bytes", what);
        MT_MPI(MPI_File_close(&f));
    }
}

static void inputs(const char *directory)
{
    char link[1024];

    plain_at(directory, "input-a");
    plain_at(directory, "output");
    snprintf(link, sizeof(link), "%s/output-link", directory);
    MT_CHECK(0 != mt_rank || 0 == symlink(named(directory, "input-a"), link), "no link");
    if (0 == mt_rank) {
        snprintf(link, sizeof(link), "%s/input-d", directory);
        MT_CHECK(0 == mkdir(link, 0700), "no directory");
    }
    plain_at(directory, "input-d/file");
    opening_is(directory, "input-a", MPI_MODE_RDONLY, MPI_SUCCESS, "a plain input");
    opening_is(directory, "input-a", MPI_MODE_RDWR, MPI_ERR_ACCESS, "a plain input for writing");
    opening_is(directory, "output", MPI_MODE_RDONLY, MPI_ERR_ACCESS, "a plain file that nobody means to be plain");
    opening_is(directory, "output-link", MPI_MODE_RDONLY, MPI_ERR_ACCESS, "a link to a plain input");
    opening_is(directory, "input-d/file", MPI_MODE_RDONLY, MPI_ERR_ACCESS, "a plain file below what matches");
    opening_is(directory, "input-d/../output", MPI_MODE_RDONLY, MPI_ERR_ACCESS, "a way out of what matches");
    MPI_File f = open_as(directory, "output-new", "lab");
    write_is(f, 0, MPI_SUCCESS, "an encrypted output");
    close_and_look(&f, directory, "output-new", "an output beside a plain input");
    mt_group("plain inputs and encrypted outputs in one job");
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that all nodes share");
    }
    mt_fill(secret, sizeof(secret), mt_key(5, 0, 0, 0));
    if (mt_flag("require")) {
        required(argv[1]);
        return mt_end();
    }
    if (mt_flag("input")) {
        inputs(argv[1]);
        return mt_end();
    }
    another_map(argv[1]);
    another_label(argv[1]);
    empty_map(argv[1]);
    default_map(argv[1]);
    relinked(argv[1]);
    rest_is_last(argv[1]);
    failed_map(argv[1]);
    misspelt(argv[1]);
    in_view(argv[1]);
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A program tells by the class of an error, and by its text, whether a block was cut short, is
 * forged, or only lacks a key here.
 *
 *   errors MPIX_ERR_CRYPT_... FILE OFFSET      reading there gives that class, however it is read
 *   errors MPIX_ERR_CRYPT_... FILE             opening does
 *
 * The class is asked for by the extension, and found as any program finds it: by its text.
 */
#include "mt.h"

#include "mpi_crypt.h"

enum { COUNT = 3 };

static const char *const names[COUNT] = {"MPIX_ERR_CRYPT_TORN", "MPIX_ERR_CRYPT_FORGED", "MPIX_ERR_CRYPT_NO_KEY"};

static void is_class(int rc, int wanted, const char *name, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;

    MT_MPI(MPI_Error_class(rc, &class));
    MT_MPI(MPI_Error_string(rc, text, &length));
    MT_CHECK(wanted == class, "%s: error class %d, wanted %d; \"%s\"", what, class, wanted, text);
    MT_CHECK(0 == strncmp(text, name, strlen(name)) && ':' == text[strlen(name)] && (int) strlen(text) == length,
             "%s: \"%s\"", what, text);
}

/* Three distinct classes, the same on all processes, and none of them a program's own. */
static void look_at_classes(const int classes[COUNT])
{
    int most[2 * COUNT], *last, flag, added;

    MT_MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
    for (int i = 0; i < COUNT; i++) {
        MT_CHECK(classes[i] > MPI_ERR_LASTCODE && classes[i] <= *last, "%s is %d, the last code %d", names[i], classes[i], *last);
        MT_CHECK(classes[i] != classes[(i + 1) % COUNT], "two classes are %d", classes[i]);
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MT_MPI(MPI_Error_string(classes[i], text, &length));
        MT_CHECK(0 == strncmp(text, names[i], strlen(names[i])), "the text of %s is \"%s\"", names[i], text);
        most[i] = classes[i];
        most[COUNT + i] = -classes[i];
    }
    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, most, 2 * COUNT, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    for (int i = 0; i < COUNT; i++) {
        MT_CHECK(most[i] == -most[COUNT + i], "%s is not the same on all", names[i]);
    }
    MT_MPI(MPI_Add_error_class(&added));
    MT_CHECK(added != classes[0] && added != classes[1] && added != classes[2], "a program's own class is %d", added);
}

static void look_at_reading(const char *path, MPI_Offset at, int wanted, const char *name)
{
    unsigned char bytes[16];
    MPI_Request request;
    MPI_File f;

    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    is_class(MPI_File_read_at(f, at, bytes, sizeof(bytes), MPI_BYTE, MPI_STATUS_IGNORE), wanted, name, "read_at");
    is_class(MPI_File_read_at_all(f, at, bytes, sizeof(bytes), MPI_BYTE, MPI_STATUS_IGNORE), wanted, name, "read_at_all");
    MT_MPI(MPI_File_iread_at(f, at, bytes, sizeof(bytes), MPI_BYTE, &request));
    is_class(MPI_Wait(&request, MPI_STATUS_IGNORE), wanted, name, "iread_at");
    MT_MPI(MPI_File_close(&f));
}

int main(int argc, char **argv)
{
    MPI_File f;
    int which = 0;

    MT_CHECK(MPI_UNDEFINED == MPIX_ERR_CRYPT_TORN, "a class before MPI_Init");
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 3) {
        mt_skip("no class and file named");
    }
    const int classes[COUNT] = {MPIX_ERR_CRYPT_TORN, MPIX_ERR_CRYPT_FORGED, MPIX_ERR_CRYPT_NO_KEY};
    while (which < COUNT && 0 != strcmp(argv[1], names[which])) {
        which++;
    }
    MT_CHECK(which < COUNT, "%s", argv[1]);
    look_at_classes(classes);
    if (argc > 3) {
        look_at_reading(argv[2], atoll(argv[3]), classes[which], names[which]);
    } else {
        is_class(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_RDONLY, MPI_INFO_NULL, &f), classes[which], names[which], "open");
    }
    mt_group("%s", argv[1]);
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The component below fbtl/crypt has no requests, and its blocking call fails: a plain
 * file's request must end with an error, and not with a count of -1.
 *
 *     negative DIR
 */
#include "ompi_config.h"

#include "mt.h"

#include "ompi/file/file.h"
#include "ompi/mca/fbtl/crypt/fbtl_crypt.h"

static mca_fbtl_base_module_t poor;
static int called;

static ssize_t fails(ompio_file_t *fh)
{
    called++;
    return OMPI_ERROR;
}

static int class_of(int rc)
{
    int class = MPI_SUCCESS;

    if (MPI_SUCCESS != rc) {
        MT_MPI(MPI_Error_class(rc, &class));
    }
    return class;
}

static void try_one(MPI_File f, bool writing)
{
    char bytes[10] = "";
    MPI_Request request;
    MPI_Status status;

    memset(&status, 0, sizeof(status));
    MT_MPI(writing ? MPI_File_iwrite_at(f, 0, bytes, 10, MPI_BYTE, &request) : MPI_File_iread_at(f, 0, bytes, 10, MPI_BYTE, &request));
    const int class = class_of(MPI_Wait(&request, &status));
    MT_CHECK(MPI_ERR_IO == class, "%s: class %d, %zd bytes", writing ? "write" : "read", class, (ssize_t) status._ucount);
    MT_CHECK(0 == status._ucount, "%s: %zd bytes", writing ? "write" : "read", (ssize_t) status._ucount);
}

int main(int argc, char **argv)
{
    char path[1024];
    MPI_File f;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    snprintf(path, sizeof(path), "%s/negative", argv[1]);
    MT_MPI(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    MT_MPI(MPI_File_set_errhandler(f, MPI_ERRORS_RETURN));
    MT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));

    ompio_file_t *fh = &((mca_common_ompio_data_t *) ((ompi_file_t *) f)->f_io_selected_data)->ompio_fh;
    ompi_fbtl_crypt_module_t *module = (ompi_fbtl_crypt_module_t *) fh->f_fbtl;
    mca_fbtl_base_module_t *rich = module->under;
    poor = *rich;
    poor.fbtl_ipreadv = NULL;
    poor.fbtl_ipwritev = NULL;
    poor.fbtl_preadv = fails;
    poor.fbtl_pwritev = fails;
    module->under = &poor;
    try_one(f, true);
    try_one(f, false);
    module->under = rich;
    MT_CHECK(2 == called, "%d calls reached the component below", called);
    MT_MPI(MPI_File_close(&f));
    mt_group("requests of a component that fails");
    return mt_end();
}

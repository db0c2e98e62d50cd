/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Functions for a file that moves no data any more.
 */
#include "cryptmpio_shut.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/file/file.h"
#include "ompi/request/request.h"

/* None of the functions uses its arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

typedef OMPI_MPI_OFFSET_TYPE offset_t;
typedef ompi_common_cryptmpi_count_t count_t;
typedef ompi_status_public_t status_t;

static int refuse(status_t *status)
{
    if (MPI_STATUS_IGNORE != status) {
        status->_ucount = 0;
    }
    return MPI_ERR_ACCESS;
}

/* If the program waits for the request all the same, it is complete. */
static int refuse_later(ompi_request_t **request)
{
    *request = MPI_REQUEST_NULL;
    return MPI_ERR_ACCESS;
}

static int read_at(ompi_file_t *fh, offset_t at, void *buf, count_t count, ompi_datatype_t *type, status_t *status)
{
    return refuse(status);
}

static int write_at(ompi_file_t *fh, offset_t at, const void *buf, count_t count, ompi_datatype_t *type, status_t *status)
{
    return refuse(status);
}

static int iread_at(ompi_file_t *fh, offset_t at, void *buf, count_t count, ompi_datatype_t *type, ompi_request_t **request)
{
    return refuse_later(request);
}

static int iwrite_at(ompi_file_t *fh, offset_t at, const void *buf, count_t count, ompi_datatype_t *type, ompi_request_t **request)
{
    return refuse_later(request);
}

static int read_next(ompi_file_t *fh, void *buf, count_t count, ompi_datatype_t *type, status_t *status)
{
    return refuse(status);
}

static int write_next(ompi_file_t *fh, const void *buf, count_t count, ompi_datatype_t *type, status_t *status)
{
    return refuse(status);
}

static int iread_next(ompi_file_t *fh, void *buf, count_t count, ompi_datatype_t *type, ompi_request_t **request)
{
    return refuse_later(request);
}

static int iwrite_next(ompi_file_t *fh, const void *buf, count_t count, ompi_datatype_t *type, ompi_request_t **request)
{
    return refuse_later(request);
}

static int read_at_begin(ompi_file_t *fh, offset_t at, void *buf, count_t count, ompi_datatype_t *type) { return MPI_ERR_ACCESS; }

static int write_at_begin(ompi_file_t *fh, offset_t at, const void *buf, count_t count, ompi_datatype_t *type)
{
    return MPI_ERR_ACCESS;
}

static int read_begin(ompi_file_t *fh, void *buf, count_t count, ompi_datatype_t *type) { return MPI_ERR_ACCESS; }

static int write_begin(ompi_file_t *fh, const void *buf, count_t count, ompi_datatype_t *type) { return MPI_ERR_ACCESS; }

static int read_end(ompi_file_t *fh, void *buf, status_t *status) { return refuse(status); }

static int write_end(ompi_file_t *fh, const void *buf, status_t *status) { return refuse(status); }

static int preallocate(ompi_file_t *fh, offset_t bytes) { return MPI_ERR_ACCESS; }

void ompi_common_cryptmpio_shut(ompi_common_cryptmpi_io_module_t *io)
{
    io->io_module_file_read_at = io->io_module_file_read_at_all = read_at;
    io->io_module_file_write_at = io->io_module_file_write_at_all = write_at;
    io->io_module_file_iread_at = io->io_module_file_iread_at_all = iread_at;
    io->io_module_file_iwrite_at = io->io_module_file_iwrite_at_all = iwrite_at;
    io->io_module_file_read = io->io_module_file_read_all = read_next;
    io->io_module_file_read_shared = io->io_module_file_read_ordered = read_next;
    io->io_module_file_write = io->io_module_file_write_all = write_next;
    io->io_module_file_write_shared = io->io_module_file_write_ordered = write_next;
    io->io_module_file_iread = io->io_module_file_iread_all = io->io_module_file_iread_shared = iread_next;
    io->io_module_file_iwrite = io->io_module_file_iwrite_all = io->io_module_file_iwrite_shared = iwrite_next;
    io->io_module_file_read_at_all_begin = read_at_begin;
    io->io_module_file_write_at_all_begin = write_at_begin;
    io->io_module_file_read_all_begin = io->io_module_file_read_ordered_begin = read_begin;
    io->io_module_file_write_all_begin = io->io_module_file_write_ordered_begin = write_begin;
    io->io_module_file_read_at_all_end = io->io_module_file_read_all_end = io->io_module_file_read_ordered_end = read_end;
    io->io_module_file_write_at_all_end = io->io_module_file_write_all_end = io->io_module_file_write_ordered_end = write_end;
    io->io_module_file_preallocate = preallocate;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Wrappers of OMPIO's functions, for encrypted files only.  OMPIO returns
 * success whatever became of the data; these return the error that fbtl/crypt
 * noted or, after a collective call in which processes moved one another's data,
 * the error that any of them noted.  A note belongs to the calling thread.
 *
 * MPI_File copies its table of functions, so ours is this file's alone.
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static __thread int first_error;
static __thread bool noting, exchanging;

void ompi_common_cryptmpio_notes_begin(void)
{
    first_error = MPI_SUCCESS;
    noting = true;
}

bool ompi_common_cryptmpio_noting(void)
{
    return noting;
}

bool ompi_common_cryptmpio_exchanging(void)
{
    return exchanging;
}

void ompi_common_cryptmpio_note(int error)
{
    if (MPI_SUCCESS == first_error) {
        first_error = error;
    }
}

int ompi_common_cryptmpio_noted(void)
{
    noting = exchanging = false;
    return first_error;
}

static ompi_common_cryptmpio_file_t *state_of(const ompi_file_t *fh)
{
    return ompi_common_cryptmpio_module(&((mca_common_ompio_data_t *) fh->f_io_selected_data)->ompio_fh)->state;
}

/* OMPIO's functions; clears this thread's note. */
static const ompi_common_cryptmpi_io_module_t *begin(const ompi_file_t *fh)
{
    ompi_common_cryptmpio_notes_begin();
    return &state_of(fh)->io;
}

static int end(int rc, ompi_status_public_t *status)
{
    int error = ompi_common_cryptmpio_noted();

    if (MPI_SUCCESS != error && MPI_STATUS_IGNORE != status) {
        status->_ucount = 0;
    }
    return OMPI_SUCCESS == rc ? error : rc;
}

static bool exchanges(const ompi_file_t *fh)
{
    return 0 != strcmp(state_of(fh)->fh->f_fcoll_component->mca_component_name, "individual");
}

/* The exchange algorithm belongs to the view, which may be new. */
static int begin_all(const ompi_file_t *fh, const ompi_common_cryptmpi_io_module_t **io)
{
    int rc = ompi_common_cryptmpio_steer(state_of(fh));

    *io = MPI_SUCCESS == rc ? begin(fh) : NULL;
    exchanging = MPI_SUCCESS == rc && exchanges(fh);
    return rc;
}

/* If each process did its own I/O, each returns its own error, and the others go on. */
static int end_all(const ompi_file_t *fh, int rc, ompi_status_public_t *status)
{
    int error = end(rc, status);

    if (exchanges(fh)) {
        error = ompi_common_cryptmpio_agree(state_of(fh)->fh, error);
    }
    if (MPI_SUCCESS != error && MPI_STATUS_IGNORE != status) {
        status->_ucount = 0;
    }
    return error;
}

/* ---- independent ---- */

static int file_read_at(ompi_file_t *fh, OMPI_MPI_OFFSET_TYPE offset, void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    return end(begin(fh)->io_module_file_read_at(fh, offset, buf, count, datatype, status), status);
}

static int file_write_at(ompi_file_t *fh, OMPI_MPI_OFFSET_TYPE offset, const void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    return end(begin(fh)->io_module_file_write_at(fh, offset, buf, count, datatype, status), status);
}

static int file_read(ompi_file_t *fh, void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    return end(begin(fh)->io_module_file_read(fh, buf, count, datatype, status), status);
}

static int file_write(ompi_file_t *fh, const void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    return end(begin(fh)->io_module_file_write(fh, buf, count, datatype, status), status);
}

static int file_read_shared(ompi_file_t *fh, void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    return end(begin(fh)->io_module_file_read_shared(fh, buf, count, datatype, status), status);
}

static int file_write_shared(ompi_file_t *fh, const void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    return end(begin(fh)->io_module_file_write_shared(fh, buf, count, datatype, status), status);
}

/* ---- collective ---- */

static int file_read_at_all(ompi_file_t *fh, OMPI_MPI_OFFSET_TYPE offset, void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    const ompi_common_cryptmpi_io_module_t *io;
    int rc = begin_all(fh, &io);

    return MPI_SUCCESS != rc ? rc : end_all(fh, io->io_module_file_read_at_all(fh, offset, buf, count, datatype, status), status);
}

static int file_write_at_all(ompi_file_t *fh, OMPI_MPI_OFFSET_TYPE offset, const void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    const ompi_common_cryptmpi_io_module_t *io;
    int rc = begin_all(fh, &io);

    return MPI_SUCCESS != rc ? rc : end_all(fh, io->io_module_file_write_at_all(fh, offset, buf, count, datatype, status), status);
}

static int file_read_all(ompi_file_t *fh, void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    const ompi_common_cryptmpi_io_module_t *io;
    int rc = begin_all(fh, &io);

    return MPI_SUCCESS != rc ? rc : end_all(fh, io->io_module_file_read_all(fh, buf, count, datatype, status), status);
}

static int file_write_all(ompi_file_t *fh, const void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    const ompi_common_cryptmpi_io_module_t *io;
    int rc = begin_all(fh, &io);

    return MPI_SUCCESS != rc ? rc : end_all(fh, io->io_module_file_write_all(fh, buf, count, datatype, status), status);
}

static int file_read_ordered(ompi_file_t *fh, void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    const ompi_common_cryptmpi_io_module_t *io;
    int rc = begin_all(fh, &io);

    return MPI_SUCCESS != rc ? rc : end_all(fh, io->io_module_file_read_ordered(fh, buf, count, datatype, status), status);
}

static int file_write_ordered(ompi_file_t *fh, const void *buf, ompi_common_cryptmpi_count_t count, ompi_datatype_t *datatype, ompi_status_public_t *status)
{
    const ompi_common_cryptmpi_io_module_t *io;
    int rc = begin_all(fh, &io);

    return MPI_SUCCESS != rc ? rc : end_all(fh, io->io_module_file_write_ordered(fh, buf, count, datatype, status), status);
}

/* ---- split collective, second half ---- */

/* OMPIO leaves a failed request on its list.  MPI_File_sync checks that list, and would return
 * early on this process while the others wait for it. */
static int end_split(const ompi_file_t *fh, int rc)
{
    ompi_request_t **request = &state_of(fh)->fh->f_split_coll_req;

    if (MPI_SUCCESS != rc && NULL != *request && MPI_REQUEST_NULL != *request) {
        (void) ompi_request_free(request);
    }
    return rc;
}

static int file_read_all_end(ompi_file_t *fh, void *buf, ompi_status_public_t *status)
{
    return end_split(fh, state_of(fh)->io.io_module_file_read_all_end(fh, buf, status));
}

static int file_write_all_end(ompi_file_t *fh, const void *buf, ompi_status_public_t *status)
{
    return end_split(fh, state_of(fh)->io.io_module_file_write_all_end(fh, buf, status));
}

static int file_read_at_all_end(ompi_file_t *fh, void *buf, ompi_status_public_t *status)
{
    return end_split(fh, state_of(fh)->io.io_module_file_read_at_all_end(fh, buf, status));
}

static int file_write_at_all_end(ompi_file_t *fh, const void *buf, ompi_status_public_t *status)
{
    return end_split(fh, state_of(fh)->io.io_module_file_write_at_all_end(fh, buf, status));
}

static int file_read_ordered_end(ompi_file_t *fh, void *buf, ompi_status_public_t *status)
{
    return end_split(fh, state_of(fh)->io.io_module_file_read_ordered_end(fh, buf, status));
}

static int file_write_ordered_end(ompi_file_t *fh, const void *buf, ompi_status_public_t *status)
{
    return end_split(fh, state_of(fh)->io.io_module_file_write_ordered_end(fh, buf, status));
}

/* ---- the file's size ---- */

/* Reserve space up to the end, if the file system can.  posix_fallocate() would write zeros, over what others write
 * meanwhile, and would lengthen a file that others cut meanwhile, past void entries. */
static int reserve(int fd, off_t end)
{
    int error;

    do {
        error = 0 == fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, end) ? 0 : errno;
    } while (EINTR == error);
    return 0 == error || EOPNOTSUPP == error || ENOSYS == error ? MPI_SUCCESS : ompi_common_cryptmpio_error(OPAL_CRYPT_ERR_STORAGE, error);
}

/* Lengthens the file like set_size, but never cuts it. */
static int preallocate_encrypted(ompi_common_cryptmpio_file_t *state, OMPI_MPI_OFFSET_TYPE bytes)
{
    OMPI_MPI_OFFSET_TYPE now = 0;
    bool root = 0 == state->fh->f_rank, longer = false;

    (void) ompi_common_cryptmpio_posix_refresh(&state->posix);     /* as in set_size */
    int rc = state->fh->f_fs->fs_file_get_size(state->fh, &now);

    longer = root && MPI_SUCCESS == rc && bytes > now;
    rc = ompi_common_cryptmpio_agree_any(state->fh, rc, &longer);
    if (MPI_SUCCESS == rc && longer) {
        rc = ompi_common_cryptmpio_set_size(state, bytes);
    }
    if (MPI_SUCCESS == rc && root && bytes > 0) {
        rc = reserve(state->posix.data_fd, (off_t) opal_cryptfile_geometry_end(&state->beginning.geometry, (uint64_t) bytes));
    }
    return ompi_common_cryptmpio_agree(state->fh, rc);
}

/* OMPIO would read and write everything through the view of rank 0. */
static int preallocate(ompi_file_t *fh, OMPI_MPI_OFFSET_TYPE bytes)
{
    const opal_cryptfile_outcome_t refused = {.rc = OPAL_CRYPT_ERR_ACCESS, .region = UINT32_MAX};
    ompi_common_cryptmpio_file_t *state = state_of(fh);

    if (state->encrypted) {
        return state->posix.may_write ? preallocate_encrypted(state, bytes) : MPI_ERR_READ_ONLY;
    }
    return ompi_common_cryptmpio_refuses(state, true) ? ompi_common_cryptmpio_report(state, true, &refused)
                                                      : state->io.io_module_file_preallocate(fh, bytes);
}

void ompi_common_cryptmpio_hook(ompi_common_cryptmpio_file_t *state)
{
    ompi_file_t *fh = ompi_common_cryptmpio_handle(state->fh);

    if (NULL == fh || state->hooked) {          /* no handle: not a file of the application */
        return;
    }
    ompi_common_cryptmpi_io_module_t *io = &OMPI_COMMON_CRYPTMPI_IO(fh->f_io_selected_module);
    state->io = *io;
    state->hooked = true;
    io->io_module_file_read_at = file_read_at;
    io->io_module_file_write_at = file_write_at;
    io->io_module_file_read = file_read;
    io->io_module_file_write = file_write;
    io->io_module_file_read_shared = file_read_shared;
    io->io_module_file_write_shared = file_write_shared;
    io->io_module_file_read_at_all = file_read_at_all;
    io->io_module_file_write_at_all = file_write_at_all;
    io->io_module_file_read_all = file_read_all;
    io->io_module_file_write_all = file_write_all;
    io->io_module_file_read_ordered = file_read_ordered;
    io->io_module_file_write_ordered = file_write_ordered;
    io->io_module_file_read_all_end = file_read_all_end;
    io->io_module_file_write_all_end = file_write_all_end;
    io->io_module_file_read_at_all_end = file_read_at_all_end;
    io->io_module_file_write_at_all_end = file_write_at_all_end;
    io->io_module_file_read_ordered_end = file_read_ordered_end;
    io->io_module_file_write_ordered_end = file_write_ordered_end;
    io->io_module_file_preallocate = preallocate;
}

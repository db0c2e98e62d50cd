/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A file that was opened without a label, by components that cannot encrypt (io/romio; io/ompio with
 * another fs than ours): if MPI_File_set_view or MPI_File_set_info ask for encryption afterwards, it is
 * too late.  They fail on every process, as does every later call that moves data.
 *
 *     MPI_File_open -> component's query -> a table with file_open from here -> component's file_open
 *         -> not fs/crypt's? -> set_view, set_info and close from here, in the file's own table
 *
 * A single process may ask, so all are asked each time.  Collective calls on a file need a communicator
 * of their own, and io/romio does not show its own: such a file gets one here.
 */
#include "ompi_config.h"

#include "ompi/file/file.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/common/cryptmpio/cryptmpio.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_shut.h"

#include "hook_crypt.h"

typedef ompi_common_cryptmpi_io_module_t table_t;

static table_t *table_of(ompi_file_t *fh) { return &OMPI_COMMON_CRYPTMPI_IO(fh->f_io_selected_module); }

static bool is_everywhere(const ompi_file_t *fh)
{
    int lacks;

    return OMPI_COMMON_CRYPTMPI_EVERYWHERE == ompi_common_cryptmpi_everywhere(fh->f_comm, &lacks);
}

/* ---- a request ---- */

static int shut(ompi_file_t *fh, int error)
{
    ompi_common_cryptmpio_shut(table_of(fh));
    return error;
}

/* Collective, with the same answer on every process; if some lack this component, only a process that asks can
 * act, and it ends the job. */
static int refuse(ompi_file_t *fh, opal_info_t *info)
{
    int asks = ompi_common_cryptmpio_info_asks(info), any = asks, lacks;
    ompi_common_cryptmpi_everywhere_t where = ompi_common_cryptmpi_everywhere(fh->f_comm, &lacks);

    if (OMPI_COMMON_CRYPTMPI_EVERYWHERE != where) {
        if (asks) {
            ompi_common_cryptmpi_everywhere_abort(where, fh->f_filename, fh->f_comm, lacks);
        }
        return MPI_SUCCESS;
    }
    if (OMPI_SUCCESS != fh->f_comm->c_coll->coll_allreduce(&asks, &any, 1, MPI_INT, MPI_MAX, fh->f_comm,
                                                           fh->f_comm->c_coll->coll_allreduce_module)) {
        return shut(fh, MPI_ERR_INTERN);
    }
    if (any && 0 == ompi_comm_rank(fh->f_comm)) {
        opal_cryptproc_show_here("help-mpi-hook-crypt.txt", "late", fh->f_filename, opal_process_info.nodename);
    }
    return any ? shut(fh, MPI_ERR_INFO_VALUE) : MPI_SUCCESS;
}

static int file_set_view(ompi_file_t *fh, OMPI_MPI_OFFSET_TYPE displacement, ompi_datatype_t *etype, ompi_datatype_t *filetype,
                         const char *datarep, opal_info_t *info)
{
    int error = refuse(fh, info);

    return MPI_SUCCESS != error ? error : ompi_hook_crypt_files_under(fh)->io_module_file_set_view(fh, displacement, etype, filetype,
                                                                                                  datarep, info);
}

static int file_set_info(ompi_file_t *fh, ompi_info_t *info)
{
    ompi_common_cryptmpi_set_info_fn_t own = ompi_common_cryptmpi_set_info_of(ompi_hook_crypt_files_under(fh));
    int error = refuse(fh, &info->super);

    if (MPI_SUCCESS != error) {
        return error;
    }
    return NULL != own ? own(fh, info) : opal_infosubscribe_change_info(&fh->super, &info->super);
}

/* Before 5.0. */
static ompi_common_cryptmpi_info_char_t *heard(opal_infosubscriber_t *object, ompi_common_cryptmpi_info_char_t *key,
                                               ompi_common_cryptmpi_info_char_t *value)
{
    if (NULL != value && '\0' != *value) {
        ompi_common_cryptmpi_late_info_abort(((const ompi_file_t *) object)->f_filename, key);
    }
    return value;
}

/* ---- a file ---- */

static int file_close(ompi_file_t *fh)
{
    const table_t *under = ompi_hook_crypt_files_under(fh);
    int rc = NULL == under ? OMPI_SUCCESS : under->io_module_file_close(fh);

    (void) ompi_comm_free(&fh->f_comm);
    fh->f_comm = NULL;
    return rc;
}

static int watch(ompi_file_t *fh)
{
    static const char *const keys[] = {OMPI_CRYPTMPIO_INFO_KEYS};
    ompi_communicator_t *own;

    if (ompi_comm_size(fh->f_comm) > 1 && is_everywhere(fh)) {
        int rc = ompi_comm_split(fh->f_comm, 0, ompi_comm_rank(fh->f_comm), &own, false);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        OBJ_RELEASE(fh->f_comm);
        fh->f_comm = own;
        table_of(fh)->io_module_file_close = file_close;
    }
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
        ompi_common_cryptmpi_hear_info(&fh->super, keys[i], heard);
    }
    table_of(fh)->io_module_file_set_view = file_set_view;
    (void) ompi_common_cryptmpi_watch_info(table_of(fh), file_set_info);
    return OMPI_SUCCESS;
}

static bool has_fs_crypt(const ompi_file_t *fh)
{
    const ompio_file_t *ompio = ompi_common_cryptmpio_ompio(fh);

    return NULL != ompio && NULL != ompi_common_cryptmpio_module(ompio);
}

static int file_open(ompi_communicator_t *comm, const char *filename, int amode, opal_info_t *info, ompi_file_t *fh)
{
    int rc = ompi_hook_crypt_files_under(fh)->io_module_file_open(comm, filename, amode, info, fh);

    return OMPI_SUCCESS != rc || has_fs_crypt(fh) ? rc : watch(fh);
}

const ompi_common_cryptmpi_io_module_t *ompi_hook_crypt_late_watched(const ompi_common_cryptmpi_io_module_t *under)
{
    static __thread table_t offered;        /* Open MPI copies it at once */

    offered = *under;
    offered.io_module_file_open = file_open;
    return &offered;
}

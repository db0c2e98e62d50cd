/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Encrypted files are opened by io/ompio with fs/crypt and fbtl/crypt, or not at
 * all.  io/romio does not know about them: it would read ciphertext, and write
 * plaintext in the middle of it; so would ompio without the two.
 *
 *     MPI_File_open -> io framework opens (here) -> every io component is asked
 *     whether it wants the file (here) -> ... -> fs/crypt
 *
 * The io framework is opened by the first call about a file.  From MPI_Init on,
 * its open function is ours, which wraps each component's query function.  For a
 * component that must not have a file we answer that it does not want it; if no
 * component is left, the call fails after a message.
 *
 * Open MPI asks in every process separately, and a file may appear in between.  So before
 * the first component is asked, the processes exchange what they see, want and have: if
 * one of them sees an encrypted file, or wants one, all open it with the same components,
 * or none does.  Only a process looks that could take other components: by default none, and
 * then a file costs no look here.
 */
#include "ompi_config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "opal/mca/base/mca_base_framework.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/common/cryptfile/file/header.h"
#include "opal/util/info.h"
#include "ompi/file/file.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_compat.h"
#include "ompi/mca/common/cryptmpio/cryptmpio.h"
#include "ompi/mca/fbtl/base/base.h"
#include "ompi/mca/fs/base/base.h"
#include "ompi/mca/io/base/base.h"

#include "hook_crypt.h"

#define HELP "help-mpi-hook-crypt.txt"

enum { GUARDS = 4 };                    /* Open MPI has two io components */

static struct guard {
    ompi_common_cryptmpi_io_component_t *component;   /* NULL: unused */
    ompi_common_cryptmpi_io_query_fn_t query;
    mca_io_base_component_file_delete_query_fn_t delete_query;
    const ompi_common_cryptmpi_io_module_t *_Atomic under;      /* its functions, the same for every file */
} guards[GUARDS];

static mca_base_framework_open_fn_t framework_open;
static mca_base_framework_close_fn_t framework_close;
static bool guarding, always;           /* always: new files are encrypted, or plain ones refused */

/* ---- which files ---- */

/* `path`, or the target of a link of this name.  An error counts as "yes": fs/crypt reports it.  Without the right to
 * read, a process sees only the names of the attributes. */
static bool has_attribute(const char *path)
{
    char names[XATTR_LIST_MAX];

    if (getxattr(path, OMPI_CRYPTMPIO_ATTRIBUTE, NULL, 0) >= 0) {
        return true;
    }
    return EACCES == errno ? ompi_common_cryptmpio_lists(names, listxattr(path, names, sizeof(names)))
                           : ENODATA != errno && ENOTSUP != errno && EPERM != errno;
}

/* It may have come without its attribute. */
static bool begins_as_one(const char *path)
{
    char bytes[OPAL_CRYPTFILE_FILE_MAGIC_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        return EACCES != errno;
    }
    ssize_t got = pread(fd, bytes, sizeof(bytes), 0);
    close(fd);
    return got < 0 || (sizeof(bytes) == (size_t) got && 0 == memcmp(bytes, OPAL_CRYPTFILE_FILE_MAGIC, sizeof(bytes)));
}

/* (To open a pipe would let a writer go on that waits for a reader.) */
static bool is_encrypted(const char *path)
{
    struct stat status;
    bool is_file = 0 == stat(path, &status) && S_ISREG(status.st_mode);

    return is_file && (has_attribute(path) || (status.st_size > 0 && begins_as_one(path)));
}

/* ROMIO takes "ufs:/dir/file" for /dir/file. */
static bool leads_to_encrypted(const char *path)
{
    const char *colon = strchr(path, ':');

    return is_encrypted(path) || (NULL != colon && is_encrypted(colon + 1));
}

static bool asks(opal_info_t *info) { return always || ompi_common_cryptmpio_info_asks(info); }

/* ---- which components may have them ---- */

static const mca_base_component_t *find(mca_base_framework_t *framework, const char *name)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &framework->framework_components, mca_base_component_list_item_t) {
        if (0 == strcmp(item->cli_component->mca_component_name, name)) {
            return item->cli_component;
        }
    }
    return NULL;
}

/* Open MPI's, which holds it while it opens these frameworks for every file; it leaves them open. */
extern opal_mutex_t ompi_mpi_ompio_bootstrap_mutex;

static bool has_crypt(mca_base_framework_t *framework)
{
    opal_mutex_lock(&ompi_mpi_ompio_bootstrap_mutex);
    bool has = OPAL_SUCCESS == mca_base_framework_open(framework, 0) && NULL != find(framework, "crypt");
    opal_mutex_unlock(&ompi_mpi_ompio_bootstrap_mutex);
    return has;
}

typedef enum { NOTHING, IO_OMPIO, FS_CRYPT, FBTL_CRYPT } missing_t;

static missing_t find_components(void)
{
    return NULL == find(&ompi_io_base_framework, "ompio") ? IO_OMPIO : !has_crypt(&ompi_fs_base_framework) ? FS_CRYPT
           : !has_crypt(&ompi_fbtl_base_framework) ? FBTL_CRYPT : NOTHING;
}

static const char *const names[] = {"-", "io/ompio", "fs/crypt", "fbtl/crypt"};

/* One process prints it for every file.  The others of a node print it once: each may be the last that
 * can before the job ends.  `rank` of the file lacks it, or this process if it is less than 0. */
static void show(const char *topic, const char *path, missing_t missing, int rank, bool always_says)
{
    char where[64] = "in this process";

    if (rank >= 0) {
        snprintf(where, sizeof(where), "in rank %d of the file's communicator", rank);
    }
    if (!opal_cryptproc_show_once(HELP, topic, path, opal_process_info.nodename, names[missing], where) && always_says) {
        opal_cryptproc_show_here(HELP, topic, path, opal_process_info.nodename, names[missing], where);
    }
}

typedef enum { ANYBODY, OMPIO, NOBODY } who_t;

/* A component's `priority` or `delete_priority`, as Open MPI compares it; false: unknown. */
static bool find_priority(const char *component, const char *which, int *priority)
{
    const mca_base_var_storage_t *value = NULL;
    int index = mca_base_var_find("ompi", "io", component, which);

    if (index < 0 || OPAL_SUCCESS != mca_base_var_get_value(index, &value, NULL, NULL) || NULL == value) {
        return false;
    }
    *priority = value->intval < 0 ? 0 : value->intval > 100 ? 100 : value->intval;
    return true;
}

/* Could this process take another component than io/ompio?  (Of those with the same priority, Open MPI's order decides.)
 * If not, fs/crypt gets every file and looks into it after it was opened: on one process, through the descriptor that is used. */
static bool may_go_past(const char *which)
{
    int ours, other;

    if (!find_priority("ompio", which, &ours)) {
        return true;
    }
    for (int i = 0; i < GUARDS && NULL != guards[i].component; ++i) {
        const char *name = guards[i].component->io_version.mca_component_name;
        if (0 != strcmp(name, "ompio") && (!find_priority(name, which, &other) || other >= ours)) {
            return true;
        }
    }
    return false;
}

/* Which components may have the file?  Prints the reason if none may. */
static who_t decide(const char *path, bool ours, missing_t most, missing_t least, int rank, bool always_says)
{
    bool differ = most != least;

    if ((ours && NOTHING != most) || differ) {
        show(ours ? "no-component" : "components-differ", path, most, rank, always_says);
    }
    return ours ? (NOTHING == most ? OMPIO : NOBODY) : differ ? NOBODY : ANYBODY;
}

/* A process without this component would not take part in what follows.  A plain file is opened
 * as if we were not installed (fs/crypt steps aside, too); if this process needs more, or it is not
 * known whether another one lacks the component, the job ends. */
static who_t alone(struct ompi_file_t *file, ompi_common_cryptmpi_everywhere_t where, int lacks)
{
    if (OMPI_COMMON_CRYPTMPI_SILENT == where || asks(file->super.s_info) || leads_to_encrypted(file->f_filename)) {
        ompi_common_cryptmpi_everywhere_abort(where, file->f_filename, file->f_comm, lacks);
        return NOBODY;
    }
    return ANYBODY;
}

enum { OURS, MOST, LEAST, LACKS, VALUES };      /* LEAST: negated, as the maximum is taken */

/* Could `most` be the combined answer of processes that all open a file?  A program whose collective calls do not
 * match may produce any numbers here. */
static bool is_said(const int most[VALUES], const int mine[VALUES], int ranks)
{
    for (int i = 0; i < VALUES; ++i) {
        if (most[i] < mine[i]) {
            return false;
        }
    }
    return most[OURS] <= 1 && most[MOST] <= FBTL_CRYPT && most[LEAST] <= NOTHING && -most[LEAST] <= most[MOST]
           && (NOTHING == most[MOST]) == (most[LACKS] < 0) && most[LACKS] < ranks;
}

/* Collective over the communicator of a file that is being opened; the same result on all processes. */
static who_t agree(struct ompi_file_t *file)
{
    struct ompi_communicator_t *comm = file->f_comm;
    const char *path = file->f_filename;
    int lacks;
    ompi_common_cryptmpi_everywhere_t where = ompi_common_cryptmpi_everywhere(comm, &lacks);

    if (OMPI_COMMON_CRYPTMPI_EVERYWHERE != where) {
        return alone(file, where, lacks);
    }
    missing_t missing = find_components();
    const bool inspects = NOTHING != missing || may_go_past("priority");
    const bool ours = asks(file->super.s_info) || (inspects && leads_to_encrypted(path));
    const int mine[VALUES] = {ours, (int) missing, -(int) missing, NOTHING == missing ? -1 : ompi_comm_rank(comm)};
    int most[VALUES];

    if (OMPI_SUCCESS != comm->c_coll->coll_allreduce(mine, most, VALUES, MPI_INT, MPI_MAX, comm,
                                                     comm->c_coll->coll_allreduce_module)) {
        return NOBODY;
    }
    if (!is_said(most, mine, ompi_comm_size(comm))) {
        (void) opal_cryptproc_show_once(HELP, "calls-differ", path, opal_process_info.nodename, ompi_comm_rank(comm));
        return NOBODY;
    }
    who_t who = decide(path, 0 != most[OURS], (missing_t) most[MOST], (missing_t) -most[LEAST], most[LACKS],
                       0 == ompi_comm_rank(comm));
    return ANYBODY == who && !inspects ? OMPIO : who;      /* also if io/ompio does not want it */
}

static bool may_have(const struct guard *guard, who_t who)
{
    return ANYBODY == who || (OMPIO == who && 0 == strcmp(guard->component->io_version.mca_component_name, "ompio"));
}

/* Components are asked one after the other, in order. */
static __thread who_t agreed;

static const ompi_common_cryptmpi_io_module_t *query(struct guard *guard, struct ompi_file_t *file,
                                                      struct mca_io_base_file_t **data, int *priority)
{
    if (guard == guards) {
        agreed = agree(file);
    }
    if (!may_have(guard, agreed)) {
        *data = NULL;
        return NULL;
    }
    const ompi_common_cryptmpi_io_module_t *under = guard->query(file, data, priority);

    if (NULL == under) {
        return NULL;
    }
    guard->under = under;
    return ompi_hook_crypt_late_watched(under);
}

const ompi_common_cryptmpi_io_module_t *ompi_hook_crypt_files_under(const ompi_file_t *fh)
{
    const char *name = OMPI_COMMON_CRYPTMPI_IO(fh->f_io_selected_component).io_version.mca_component_name;

    for (int i = 0; i < GUARDS; ++i) {
        if (NULL != guards[i].component && 0 == strcmp(guards[i].component->io_version.mca_component_name, name)) {
            return guards[i].under;
        }
    }
    return NULL;
}

static int delete_query(struct guard *guard, const char *path, struct opal_info_t *info,
                        struct mca_io_base_delete_t **data, bool *usable, int *priority)
{
    missing_t missing = find_components();

    const bool inspects = NOTHING != missing || may_go_past("delete_priority");
    who_t who = inspects && !leads_to_encrypted(path) ? ANYBODY : NOTHING == missing ? OMPIO : NOBODY;

    if (!may_have(guard, who)) {
        if (guard == guards && NOBODY == who) {
            show("no-component", path, missing, -1, true);
        }
        *usable = false;
        return OMPI_SUCCESS;
    }
    return guard->delete_query(path, info, data, usable, priority);
}

/* A function is not told which component it is called for: so a pair of functions for each. */
#define FUNCTIONS(i)                                                                                                     \
    static const ompi_common_cryptmpi_io_module_t *query_##i(struct ompi_file_t *file, struct mca_io_base_file_t **data,  \
                                                             int *priority)                                             \
    {                                                                                                                    \
        return query(&guards[i], file, data, priority);                                                                  \
    }                                                                                                                    \
    static int delete_query_##i(const char *path, struct opal_info_t *info, struct mca_io_base_delete_t **data,          \
                                bool *usable, int *priority)                                                             \
    {                                                                                                                    \
        return delete_query(&guards[i], path, info, data, usable, priority);                                             \
    }
FUNCTIONS(0)
FUNCTIONS(1)
FUNCTIONS(2)
FUNCTIONS(3)

static const ompi_common_cryptmpi_io_query_fn_t queries[GUARDS] = {query_0, query_1, query_2, query_3};
static const mca_io_base_component_file_delete_query_fn_t delete_queries[GUARDS] = {delete_query_0, delete_query_1,
                                                                                   delete_query_2, delete_query_3};

/* ---- the io framework ---- */

static int guard_components(void)
{
    mca_base_component_list_item_t *item;
    int i = 0;

    OPAL_LIST_FOREACH(item, &ompi_io_base_framework.framework_components, mca_base_component_list_item_t) {
        ompi_common_cryptmpi_io_component_t *component = (ompi_common_cryptmpi_io_component_t *) item->cli_component;
        if (GUARDS == i) {
            return OMPI_ERR_NOT_SUPPORTED;
        }
        guards[i] = (struct guard){component, component->io_file_query, component->io_delete_query, NULL};
        component->io_file_query = queries[i];
        component->io_delete_query = delete_queries[i];
        ++i;
    }
    return OMPI_SUCCESS;
}

/* Give components that are still loaded their functions back. */
static void unguard_components(void)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_io_base_framework.framework_components, mca_base_component_list_item_t) {
        for (int i = 0; i < GUARDS; ++i) {
            if ((ompi_common_cryptmpi_io_component_t *) item->cli_component == guards[i].component) {
                guards[i].component->io_file_query = guards[i].query;
                guards[i].component->io_delete_query = guards[i].delete_query;
            }
        }
    }
    memset(guards, 0, sizeof(guards));
}

/* A parameter of fs/crypt, which has registered it already or will do so. */
static bool is_set(const char *name, mca_base_var_type_t type)
{
    const mca_base_var_storage_t *value = NULL;
    union {
        char *text;
        bool flag;
    } storage = {.text = NULL};
    int known = -1, index;
    (void) mca_base_var_find_by_name(name, &known);
    index = known >= 0 ? known : opal_cryptproc_register_one(name, &storage);
    bool set = index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) && NULL != value
               && (MCA_BASE_VAR_TYPE_BOOL == type ? value->boolval : NULL != value->stringval && '\0' != *value->stringval);

    if (known < 0 && index >= 0) {
        mca_base_var_deregister(index);
    }
    return set;
}

static int io_open(mca_base_open_flag_t flags)
{
    int rc = NULL != framework_open ? framework_open(flags) : mca_base_framework_components_open(&ompi_io_base_framework, flags);

    if (OMPI_SUCCESS == rc) {
        always = is_set("fs_crypt_key_label", MCA_BASE_VAR_TYPE_STRING)
                 || is_set("fs_crypt_require", MCA_BASE_VAR_TYPE_BOOL);
        rc = guard_components();
    }
    return rc;
}

/* Open MPI opens these for each file, and never closes them, but unloads fs/crypt and fbtl/crypt when MPI is
 * finalized: if MPI is initialized again, their names would still be in the lists, with nothing behind them. */
static void close_at_last(mca_base_framework_t *framework)
{
    if (mca_base_framework_is_open(framework)) {
        framework->framework_refcnt = 1;
        (void) mca_base_framework_close(framework);
    }
}

static int io_close(void)
{
    unguard_components();
    int rc = NULL != framework_close ? framework_close() : mca_base_framework_components_close(&ompi_io_base_framework, NULL);

    close_at_last(&ompi_fbtl_base_framework);
    close_at_last(&ompi_fs_base_framework);
    return rc;
}

void ompi_hook_crypt_files_guard(void)
{
    mca_base_framework_t *io = &ompi_io_base_framework;

    if (!guarding) {
        framework_open = io->framework_open;
        framework_close = io->framework_close;
        io->framework_open = io_open;
        io->framework_close = io_close;
        guarding = true;
    }
}

void ompi_hook_crypt_files_unguard(void)
{
    mca_base_framework_t *io = &ompi_io_base_framework;

    if (guarding) {
        if (mca_base_framework_is_open(io)) {
            unguard_components();
        }
        io->framework_open = framework_open;
        io->framework_close = framework_close;
        guarding = false;
    }
}

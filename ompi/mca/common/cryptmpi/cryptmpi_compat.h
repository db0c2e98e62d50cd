/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where Open MPI 4.1, 5.0 and 6.0 differ: every #if on a version is here or, for OPAL alone,
 * in opal/mca/common/cryptproc/cryptproc_compat.h.
 */
#ifndef OMPI_COMMON_CRYPTMPI_COMPAT_H
#define OMPI_COMMON_CRYPTMPI_COMPAT_H

#include "ompi_config.h"

#include "opal/mca/aead/base/aead_base_compat.h"
#include "opal/mca/common/cryptproc/cryptproc_compat.h"
#include "opal/util/info.h"
#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/errhandler/errcode.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/io/io.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/params.h"

#ifdef MCA_ompi_pml_DIRECT_CALL
#    if MCA_ompi_pml_DIRECT_CALL
#        error "a direct-call PML cannot be wrapped: build Open MPI without --enable-mca-direct=pml-..."
#    endif
#endif

#if OMPI_MAJOR_VERSION >= 5

#    include "opal/mca/accelerator/accelerator.h"
#    include "opal/mca/accelerator/base/base.h"

#    define OMPI_COMMON_CRYPTMPI_ACCELERATOR 1
#    define OMPI_COMMON_CRYPTMPI_RUNTIME_TABLE 0      /* calls of the runtime that can be replaced: opal_pmix */

/* The framework that Open MPI opens next, once it has selected the PML; NULL: none. */
extern OMPI_DECLSPEC mca_base_framework_t ompi_part_base_framework;

static inline mca_base_framework_t *ompi_common_cryptmpi_opened_after_pml(void)
{
    return &ompi_part_base_framework;
}

typedef mca_pml_base_component_2_1_0_t ompi_common_cryptmpi_pml_component_t;
#    define OMPI_COMMON_CRYPTMPI_PML_VERSION MCA_PML_BASE_VERSION_2_1_0
#    if OMPI_MAJOR_VERSION >= 6
#        define OMPI_COMMON_CRYPTMPI_COLL_VERSION MCA_COLL_BASE_VERSION_3_0_0
#        define ompi_common_cryptmpi_create_event(device, event) opal_accelerator.create_event(device, event, false)
#    else
#        define OMPI_COMMON_CRYPTMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#        define ompi_common_cryptmpi_create_event opal_accelerator.create_event
#    endif

typedef opal_atomic_int32_t ompi_common_cryptmpi_atomic32_t;

static inline uint32_t ompi_common_cryptmpi_comm_index(const ompi_communicator_t *comm)
{
    return comm->c_index;
}

static inline void ompi_common_cryptmpi_context(const ompi_communicator_t *comm, uint64_t *high, uint64_t *low)
{
    *high = comm->c_contextid.cid_base;
    *low = comm->c_contextid.cid_sub.u64;
}

#else /* 4.1 */

#    if OPAL_CUDA_SUPPORT
#        include "opal/datatype/opal_datatype_cuda.h"
#    endif

#    define OMPI_COMMON_CRYPTMPI_ACCELERATOR 0
#    define OMPI_COMMON_CRYPTMPI_RUNTIME_TABLE 1

static inline mca_base_framework_t *ompi_common_cryptmpi_opened_after_pml(void)
{
    return NULL;
}

typedef mca_pml_base_component_2_0_0_t ompi_common_cryptmpi_pml_component_t;
#    define OMPI_COMMON_CRYPTMPI_PML_VERSION MCA_PML_BASE_VERSION_2_0_0
#    define OMPI_COMMON_CRYPTMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0

typedef volatile int32_t ompi_common_cryptmpi_atomic32_t;

static inline uint32_t ompi_common_cryptmpi_comm_index(const ompi_communicator_t *comm)
{
    return comm->c_contextid;
}

static inline void ompi_common_cryptmpi_context(const ompi_communicator_t *comm, uint64_t *high, uint64_t *low)
{
    *high = 0;
    *low = comm->c_contextid;
}

#endif

/* Arguments of collectives: the count and, for the vector ones, the counts and displacements by rank.
 * 6.0 passes the latter as one of two kinds of array; ! tests for a null one. */
#if OMPI_MAJOR_VERSION >= 6
typedef size_t ompi_common_cryptmpi_count_t;
typedef ompi_count_array_t ompi_common_cryptmpi_counts_t;
typedef ompi_disp_array_t ompi_common_cryptmpi_disps_t;
#    define OMPI_COMMON_CRYPTMPI_COLL_INSTALLS 1      /* a module puts its functions into the communicator itself */
#    define ompi_common_cryptmpi_count(counts, rank) ompi_count_array_get((counts), (size_t) (rank))
#    define ompi_common_cryptmpi_disp(disps, rank)   ompi_disp_array_get((disps), (size_t) (rank))
#    define ompi_common_cryptmpi_counts(ints)        ompi_count_array_create(ints)
#    define ompi_common_cryptmpi_disps(ints)         ompi_disp_array_create(ints)
#else
typedef int ompi_common_cryptmpi_count_t;
typedef const int *ompi_common_cryptmpi_counts_t;
typedef const int *ompi_common_cryptmpi_disps_t;
#    define OMPI_COMMON_CRYPTMPI_COLL_INSTALLS 0
#    define ompi_common_cryptmpi_count(counts, rank) ((size_t) (counts)[rank])
#    define ompi_common_cryptmpi_disp(disps, rank)   ((ptrdiff_t) (disps)[rank])
#    define ompi_common_cryptmpi_counts(ints)        (ints)
#    define ompi_common_cryptmpi_disps(ints)         (ints)
#endif

/* Does coll/han, in an all-to-all, read the send buffers of other ranks on the node in place (smsc)? */
enum { OMPI_COMMON_CRYPTMPI_HAN_MAPS = OMPI_MAJOR_VERSION >= 6 };

/* Does mtl/ofi read completions into one array, even while it is working on those in there? */
enum { OMPI_COMMON_CRYPTMPI_OFI_ONE_ARRAY = OMPI_MAJOR_VERSION < 5 };

/* The interfaces of MPI-IO and of windows, as far as we wrap them. */
#if OMPI_MAJOR_VERSION >= 6
typedef mca_io_base_module_3_0_0_t ompi_common_cryptmpi_io_module_t;
typedef mca_io_base_component_3_0_0_t ompi_common_cryptmpi_io_component_t;
typedef mca_io_base_component_file_query_3_0_0_fn_t ompi_common_cryptmpi_io_query_fn_t;
#    define OMPI_COMMON_CRYPTMPI_IO(either) ((either).v3_0_0)
typedef ptrdiff_t ompi_common_cryptmpi_win_unit_t;
#else
typedef mca_io_base_module_2_0_0_t ompi_common_cryptmpi_io_module_t;
typedef mca_io_base_component_2_0_0_t ompi_common_cryptmpi_io_component_t;
typedef mca_io_base_component_file_query_2_0_0_fn_t ompi_common_cryptmpi_io_query_fn_t;
#    define OMPI_COMMON_CRYPTMPI_IO(either) ((either).v2_0_0)
typedef int ompi_common_cryptmpi_win_unit_t;
#endif

/* MPI_File_set_info: put `ours` in front of the file's own function, which is returned.  NULL: it has none, and MPI
 * itself does the work; in 4.1 always, without calling us. */
#if OMPI_MAJOR_VERSION >= 5
typedef mca_io_base_module_file_set_info_fn_t ompi_common_cryptmpi_set_info_fn_t;

static inline ompi_common_cryptmpi_set_info_fn_t ompi_common_cryptmpi_watch_info(ompi_common_cryptmpi_io_module_t *io,
                                                                                 ompi_common_cryptmpi_set_info_fn_t ours)
{
    ompi_common_cryptmpi_set_info_fn_t was = io->io_module_file_set_info;

    io->io_module_file_set_info = ours;
    return was;
}
#    define ompi_common_cryptmpi_set_info_of(io) ((io)->io_module_file_set_info)
#else
typedef int (*ompi_common_cryptmpi_set_info_fn_t)(struct ompi_file_t *fh, struct ompi_info_t *info);
#    define ompi_common_cryptmpi_watch_info(io, ours) ((void) (io), (void) (ours), (ompi_common_cryptmpi_set_info_fn_t) NULL)
#    define ompi_common_cryptmpi_set_info_of(io) ((void) (io), (ompi_common_cryptmpi_set_info_fn_t) NULL)
#endif

/* Non-blocking requests of OMPIO.  6.0 splits one that converts, or copies from a GPU, into pieces, each of them a
 * request whose parent the application has; it does not set a piece's file, but reads it if there are threads. */
#if OMPI_MAJOR_VERSION >= 6
#    define ompi_common_cryptmpi_io_whole(request) ((request)->req_parent)
#    define ompi_common_cryptmpi_io_piece_of(request, fh) ((void) ((request)->req_fh = (fh)))
#    define ompi_common_cryptmpi_io_counted(piece)  ((piece)->req_post_followup)     /* not taken over yet */
#    define ompi_common_cryptmpi_io_has_all(request) ((request)->req_num_subreqs == (request)->req_subreqs_completed)
#else
#    define ompi_common_cryptmpi_io_whole(request) ((void) (request), (mca_ompio_request_t *) NULL)
#    define ompi_common_cryptmpi_io_piece_of(request, fh) ((void) (request), (void) (fh))
#    define ompi_common_cryptmpi_io_counted(piece)  ((void) (piece), false)
#    define ompi_common_cryptmpi_io_has_all(request) ((void) (request), true)
#endif
/* Does it go on as if a non-blocking call whose start failed had begun?  Then we have to complete its request. */
enum { OMPI_COMMON_CRYPTMPI_IO_FORGETS_ERRORS = OMPI_MAJOR_VERSION < 6 };
/* Does a file's info show OMPIO's default for a hint that was not given? */
enum { OMPI_COMMON_CRYPTMPI_IO_SHOWS_HINTS = OMPI_MAJOR_VERSION >= 6 };

/* Space in the user's attached buffer: from 6.0 on perhaps attached to a communicator or its session. */
#if OMPI_MAJOR_VERSION >= 6
#    define ompi_common_cryptmpi_bsend_alloc(comm, bytes)  mca_pml_base_bsend_request_alloc_buf((comm), (bytes))
#    define ompi_common_cryptmpi_bsend_free(comm, buffer)  ((void) mca_pml_base_bsend_request_free((comm), (buffer)))
#else
#    define ompi_common_cryptmpi_bsend_alloc(comm, bytes)  mca_pml_base_bsend_request_alloc_buf(bytes)
#    define ompi_common_cryptmpi_bsend_free(comm, buffer)  ((void) mca_pml_base_bsend_request_free(buffer))
#endif

/* Error classes and codes that a component adds.  Up to 5.0 only the public calls are exported by every
 * build of Open MPI; in 6.0 a component cannot link to these, but libopen_mpi exports the functions below
 * them.  False: no more can be added. */
#if OMPI_MAJOR_VERSION >= 6
static inline bool ompi_common_cryptmpi_add_last(int added)
{
    return added >= 0
           && OMPI_SUCCESS == ompi_attr_set_fint(COMM_ATTR, MPI_COMM_WORLD, &MPI_COMM_WORLD->c_keyhash, MPI_LASTUSEDCODE,
                                                 added, true);
}

static inline bool ompi_common_cryptmpi_add_class(int *class)
{
    return ompi_common_cryptmpi_add_last(*class = ompi_mpi_errclass_add());
}

static inline bool ompi_common_cryptmpi_add_code(int class, int *code)
{
    return ompi_common_cryptmpi_add_last(*code = ompi_mpi_errcode_add(class));
}

static inline void ompi_common_cryptmpi_add_text(int code, const char *text)
{
    (void) ompi_mpi_errnum_add_string(code, text, (int) strlen(text) + 1);
}
#else
static inline bool ompi_common_cryptmpi_add_class(int *class)
{
    return MPI_SUCCESS == PMPI_Add_error_class(class);
}

static inline bool ompi_common_cryptmpi_add_code(int class, int *code)
{
    return MPI_SUCCESS == PMPI_Add_error_code(class, code);
}

static inline void ompi_common_cryptmpi_add_text(int code, const char *text)
{
    (void) PMPI_Add_error_string(code, text);
}
#endif

/* Members of a PML module that only one of the series has. */
#if OMPI_MAJOR_VERSION >= 5
#    define OMPI_COMMON_CRYPTMPI_COPY_PML_EXTRAS(to, from)              \
        do {                                                            \
            (to)->pml_revoke_comm = (from)->pml_revoke_comm;            \
            (to)->pml_get_transports = (from)->pml_get_transports;      \
        } while (0)
#else
#    define OMPI_COMMON_CRYPTMPI_COPY_PML_EXTRAS(to, from) ((to)->pml_ft_event = (from)->pml_ft_event)
#endif

/* Does the job go on without processes that have failed (ULFM)? */
static inline bool ompi_common_cryptmpi_fault_tolerant(void)
{
#if defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
    return ompi_ftmpi_enabled;
#else
    return false;
#endif
}

/* Is it known that this process, of an ompi_proc_t, has failed? */
static inline bool ompi_common_cryptmpi_has_failed(opal_proc_t *proc)
{
#if defined(OPAL_ENABLE_FT_MPI) && OPAL_ENABLE_FT_MPI
    return !ompi_proc_is_active((ompi_proc_t *) proc);
#else
    (void) proc;
    return false;
#endif
}

/* The function that 5.0 calls in an fbtl before it sets atomic mode. */
#if OMPI_MAJOR_VERSION >= 5
#    define OMPI_COMMON_CRYPTMPI_FBTL_EXTRAS(check) .fbtl_check_atomicity = (check),
#    define OMPI_COMMON_CRYPTMPI_FBTL_IS_ATOMIC(fbtl, fh) \
        (NULL != (fbtl)->fbtl_check_atomicity && (fbtl)->fbtl_check_atomicity(fh))
#else
#    define OMPI_COMMON_CRYPTMPI_FBTL_EXTRAS(check)
#    define OMPI_COMMON_CRYPTMPI_FBTL_IS_ATOMIC(fbtl, fh) (NULL == (fbtl))
#endif

/* The value of an info key, cut to size - 1 characters; false if there is none.
 * 4.1 copies values, 5.0 hands out objects. */
static inline bool ompi_common_cryptmpi_info_get(opal_info_t *info, const char *key, char *value, size_t size)
{
    int found = 0;

    if (NULL == info) {
        return false;
    }
#if OMPI_MAJOR_VERSION >= 5
    opal_cstring_t *text;
    if (OPAL_SUCCESS == opal_info_get(info, key, &text, &found) && found) {
        opal_cryptproc_cut(value, size, text->string);
        OBJ_RELEASE(text);
    }
#else
    char text[MPI_MAX_INFO_VAL + 1];
    if (OPAL_SUCCESS == opal_info_get(info, (char *) (uintptr_t) key, MPI_MAX_INFO_VAL, text, &found) && found) {
        opal_cryptproc_cut(value, size, text);
    }
#endif
    return 0 != found;
}

/* The type of what a subscriber of an info key is told, and answers. */
#if OMPI_MAJOR_VERSION >= 5
typedef const char ompi_common_cryptmpi_info_char_t;
#else
typedef char ompi_common_cryptmpi_info_char_t;
#endif

/* The name of info key number `n`, cut to size - 1 characters; false if there are no more. */
static inline bool ompi_common_cryptmpi_info_key(opal_info_t *info, int n, char *name, size_t size)
{
    int keys = 0;

    if (NULL == info || OPAL_SUCCESS != opal_info_get_nkeys(info, &keys) || n >= keys) {
        return false;
    }
#if OMPI_MAJOR_VERSION >= 5
    opal_cstring_t *text;
    if (OPAL_SUCCESS != opal_info_get_nthkey(info, n, &text)) {
        return false;
    }
    opal_cryptproc_cut(name, size, text->string);
    OBJ_RELEASE(text);
#else
    char text[MPI_MAX_INFO_KEY + 1];
    if (OPAL_SUCCESS != opal_info_get_nthkey(info, n, text)) {
        return false;
    }
    opal_cryptproc_cut(name, size, text);
#endif
    return true;
}

/* Where MPI_File_set_info calls no function of the file (4.1): call `heard` with each value that a key is set to, first
 * with the current one, or "".  It returns the value for the file's info. */
static inline void ompi_common_cryptmpi_hear_info(opal_infosubscriber_t *object, const char *key, opal_key_interest_callback_t *heard)
{
#if OMPI_MAJOR_VERSION < 5
    char saved[MPI_MAX_INFO_KEY + sizeof(OPAL_INFO_SAVE_PREFIX)], value[2];

    snprintf(saved, sizeof(saved), OPAL_INFO_SAVE_PREFIX "%s", key);
    (void) opal_infosubscribe_subscribe(object, (char *) (uintptr_t) key, (char *) (uintptr_t) "", heard);
    (void) opal_info_delete(object->s_info, saved);
    if (ompi_common_cryptmpi_info_get(object->s_info, key, value, sizeof(value)) && '\0' == *value) {
        (void) opal_info_delete(object->s_info, (char *) (uintptr_t) key);
    }
#else
    (void) object;
    (void) key;
    (void) heard;
#endif
}

/* A lock that costs one test while the application has a single thread.  The
 * threads framework's own header is not part of every devel package. */
typedef pthread_mutex_t ompi_common_cryptmpi_lock_t;

static inline void ompi_common_cryptmpi_lock_acquire(ompi_common_cryptmpi_lock_t *lock)
{
    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        pthread_mutex_lock(lock);
    }
}

static inline void ompi_common_cryptmpi_lock_release(ompi_common_cryptmpi_lock_t *lock)
{
    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        pthread_mutex_unlock(lock);
    }
}

/* Counters that only callers of MPI change (the team's workers do not): atomic once there
 * are several threads, plain until then, because a locked instruction waits for the stores
 * of a whole message.  Here and with the locks, a session that brings threads at the
 * very moment when another thread is at such a place is not covered, just as in Open MPI's
 * own OPAL_THREAD_ADD_FETCH32.
 *
 * Acquire and release: the thread that counts down to zero completes what others wrote, and the one that
 * finds a bit set gives back what another thread had.  Open MPI's opal_atomic_add_fetch_32 is relaxed,
 * which suffices only on a processor with strong memory ordering (x86, not arm64). */
static inline int32_t ompi_common_cryptmpi_add(ompi_common_cryptmpi_atomic32_t *at, int32_t more)
{
    volatile int32_t *plain = (volatile int32_t *) at;

    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        return __atomic_add_fetch(plain, more, __ATOMIC_ACQ_REL);
    }
    return *plain = *plain + more;
}

/* Returns what was there before. */
static inline int32_t ompi_common_cryptmpi_set_bits(ompi_common_cryptmpi_atomic32_t *at, int32_t bits)
{
    volatile int32_t *plain = (volatile int32_t *) at;
    int32_t before;

    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        return __atomic_fetch_or(plain, bits, __ATOMIC_ACQ_REL);
    }
    before = *plain;
    *plain = before | bits;
    return before;
}

#endif

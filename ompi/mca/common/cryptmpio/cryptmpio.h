/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where fs/crypt, fbtl/crypt and libmpi_crypt meet: an encrypted file of a
 * communicator.
 *
 *     MPI_File_open -> fs/crypt -> open  rank 0 looks, everybody judges, all agree
 *     MPIX_File_set_encryption_map -> set_map  all ask, label holders seal the map
 *     MPI_File_read -> hooks -> OMPIO -> fbtl/crypt -> the block engine
 *
 * OMPIO loses the error that an fbtl returns, and a collective call hangs
 * when one process leaves it.  So fbtl/crypt never fails: it notes the error in
 * its thread, and the functions that we put in front of OMPIO's (hooks) return
 * it, after all processes of a collective call have agreed.
 */
#ifndef OMPI_COMMON_CRYPTMPIO_H
#define OMPI_COMMON_CRYPTMPIO_H

#include "ompi/mca/common/cryptmpi/cryptmpi_compat.h"

#include "opal/mca/common/cryptfile/file/header.h"
#include "ompi/file/file.h"
#include "ompi/info/info.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_posix.h"
#include "ompi/mca/common/ompio/common_ompio.h"
#include "ompi/mca/fs/base/base.h"
#include "ompi/mca/fs/fs.h"

#include <sys/stat.h>

BEGIN_C_DECLS

/* ---- parameters: fs_crypt_*, and crypt_keystore_* for the keystore ---- */

typedef struct ompi_common_cryptmpio_params {
    char *key_label;                    /* "": new files stay plain */
    char *algorithm;
    unsigned block_size;
    char *plain_paths;                  /* patterns of files that are meant to be plain */
    char *one_node_paths;               /* directories in which several nodes must not write */
    bool require, seal;
    bool trust_locks, durable;
    unsigned lock_timeout;              /* seconds; 0: none */
    int keystore;                       /* opal_cryptfile_keystore_backend_t */
    char *keystore_dir, *keystore_group, *keystore_log, *machine_key, *pkcs11_module, *pkcs11_token, *pkcs11_pin_file;
} ompi_common_cryptmpio_params_t;

extern OMPI_DECLSPEC ompi_common_cryptmpio_params_t ompi_common_cryptmpio_params;
extern OMPI_DECLSPEC int ompi_common_cryptmpio_stream;      /* of crypt_verbose; -1: no output */

OMPI_DECLSPEC int ompi_common_cryptmpio_params_register(void);

/* The last user of the provider framework and the keystore closes them. */
OMPI_DECLSPEC int ompi_common_cryptmpio_start(void);
OMPI_DECLSPEC void ompi_common_cryptmpio_stop(void);

/* ---- files ---- */

typedef struct ompi_common_cryptmpio_file {
    ompio_file_t *fh;
    ompi_common_cryptmpio_posix_t posix;
    char *path;                         /* absolute, as the program named it */
    opal_cryptfile_header_t beginning;  /* its header, once it is made */
    opal_cryptfile_t *file;             /* NULL: not encrypted, or nothing could be verified */
    opal_cryptfile_key_t *keys; /* of its regions */
    bool inspected;                        /* more than that it is plain had to be found out: there may be locks */
    bool encrypted;                     /* the file is, on every process */
    bool fresh;                         /* this open made its map, from defaults, and nothing is written yet */
    /* cryptmpio_node.c, while it is being opened */
    uint64_t began;                     /* the opening; opal_crypt_since_boot */
    uint8_t named[OPAL_CRYPT_HASH_BYTES];       /* a hash of `path` as it was at first */
    uint8_t keystore[OPAL_CRYPT_HASH_BYTES];    /* of what decides which one is asked */
    uint64_t meeting;                   /* the same on all processes: where those of a node meet */
    int node_fd;                        /* a socket there; -1: none */
    bool gives, given;                  /* the first process of a node with others; one of those, which has not asked the keystore */
    bool met;                           /* this process has found the first one, and the kernel says that both see the same files */
    bool making;                        /* by this communicator, whose rank 0 holds the maker's lock */
    bool joined;                        /* other processes have made its map since this open */
    bool untested;                      /* on several nodes: whether they see one another's bytes could not be probed */
    bool bare;                          /* plain and empty at opening, where plain bytes are refused, or emptied: none are read */
    bool must;                          /* fs_crypt_require, of rank 0: plain bytes are not written */
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 2];  /* asked for at opening; "": none */
    bool fits;                          /* regions with that label fit what was asked for */
    bool asked[OPAL_CRYPTFILE_REGIONS_MAX]; /* regions that the program itself requested */
    unsigned denied;                    /* ompi_common_cryptmpio_denied_t: plain bytes are neither read nor written */
    bool seal;                          /* fs_crypt_seal, of rank 0 */
    uint32_t region_count;              /* in the map, on every process */
    bool uniform;                       /* all processes may do the same in all regions */
    int resizer;                        /* the lowest rank that may do everything, or 0 */
    bool hooked;
    ompi_common_cryptmpi_io_module_t io;      /* OMPIO's functions */
    bool shut;                          /* a plain file for which encryption was requested: no data is moved */
    ompi_common_cryptmpi_io_module_t before_shut;
    mca_io_base_module_file_set_view_fn_t set_view;     /* the same, for every file */
    ompi_common_cryptmpi_set_info_fn_t set_info;
} ompi_common_cryptmpio_file_t;

/* The module that fs/crypt attaches to a file; it leads to the state.  The
 * library for applications recognizes it by magic and version alone. */
#define OMPI_CRYPTMPIO_MAGIC    0x4d504331u
#define OMPI_CRYPTMPIO_ABI      1

typedef struct ompi_common_cryptmpio_map_ask {
    OMPI_MPI_OFFSET_TYPE displacement;
    ompi_datatype_t *etype, *filetype;
    const char *datarep;
    ompi_info_t *info;
} ompi_common_cryptmpio_map_ask_t;

typedef struct ompi_common_cryptmpio_module {
    mca_fs_base_module_t super;
    uint32_t magic;
    int abi;
    mca_fs_base_module_t *under;        /* what the file system's own component offers */
    mca_fs_base_component_t *under_component;
    ompi_common_cryptmpio_file_t *state;        /* NULL until the file is open */
    int (*set_map)(ompio_file_t *fh, const ompi_common_cryptmpio_map_ask_t *ask);
    const opal_cryptfile_map_t *(*get_map)(ompio_file_t *fh);           /* NULL: none that could be verified */
} ompi_common_cryptmpio_module_t;

/* NULL unless the file is fs/crypt's. */
static inline ompi_common_cryptmpio_module_t *ompi_common_cryptmpio_module(const ompio_file_t *fh)
{
    ompi_common_cryptmpio_module_t *module = (ompi_common_cryptmpio_module_t *) fh->f_fs;

    return NULL != module && NULL != fh->f_fs_component && 0 == strcmp(fh->f_fs_component->mca_component_name, "crypt")
                   && OMPI_CRYPTMPIO_MAGIC == module->magic && OMPI_CRYPTMPIO_ABI == module->abi
               ? module : NULL;
}

/* OMPIO's part of a handle; NULL: another component has the file. */
static inline ompio_file_t *ompi_common_cryptmpio_ompio(const ompi_file_t *fh)
{
    return 0 == strcmp(OMPI_COMMON_CRYPTMPI_IO(fh->f_io_selected_component).io_version.mca_component_name, "ompio")
               ? &((mca_common_ompio_data_t *) fh->f_io_selected_data)->ompio_fh : NULL;
}

/* Does an info ask for encryption, in whatever spelling? */
static inline bool ompi_common_cryptmpio_info_asks(opal_info_t *info)
{
    char key[MPI_MAX_INFO_KEY + 1];

    for (int i = 0; ompi_common_cryptmpi_info_key(info, i, key, sizeof(key)); ++i) {
        if (0 == strncmp(key, OMPI_CRYPTMPIO_INFO_PREFIX, strlen(OMPI_CRYPTMPIO_INFO_PREFIX))) {
            return true;
        }
    }
    return false;
}

/* The application's handle.  NULL: the file is one of sharedfp's own, whose f_fh nobody has set. */
static inline ompi_file_t *ompi_common_cryptmpio_handle(const ompio_file_t *fh)
{
    return 0 == (fh->f_flags & OMPIO_SHAREDFP_IS_SET) ? fh->f_fh : NULL;
}

/* Collective, before anything is opened: reports and refuses unknown keys with our prefix, and
 * invalid values.  To ignore them would be to write plaintext.  *require: does any process have fs_crypt_require? */
OMPI_DECLSPEC int ompi_common_cryptmpio_open_begin(ompio_file_t *fh, const char *filename, int amode, opal_info_t *info, bool *require);

/* Collective: after the file system's component has opened the file (`rc`: what
 * it returned here).  Reports what it refuses; returns an MPI error. */
OMPI_DECLSPEC int ompi_common_cryptmpio_open(ompio_file_t *fh, const char *filename, int amode, opal_info_t *info,
                                             int rc, bool require, ompi_common_cryptmpio_file_t **state);
OMPI_DECLSPEC void ompi_common_cryptmpio_close(ompi_common_cryptmpio_file_t *state);       /* local; NULL allowed */

/* Collective: add the regions that the processes ask for. */
OMPI_DECLSPEC int ompi_common_cryptmpio_set_map(ompio_file_t *fh, const ompi_common_cryptmpio_map_ask_t *ask);
/* Local. */
OMPI_DECLSPEC const opal_cryptfile_map_t *ompi_common_cryptmpio_get_map(ompio_file_t *fh);

/* Collective. */
OMPI_DECLSPEC int ompi_common_cryptmpio_set_size(ompi_common_cryptmpio_file_t *state, OMPI_MPI_OFFSET_TYPE size);
/* Turn a size reported by the storage into the file's; if a seal is required, any size but the sealed one is FORGED. */
OMPI_DECLSPEC int ompi_common_cryptmpio_size_sealed(const ompi_common_cryptmpio_file_t *state, OMPI_MPI_OFFSET_TYPE *size);

/* Collective, before closing a file that was written: seal it, and print the hash
 * that the user can keep. */
OMPI_DECLSPEC int ompi_common_cryptmpio_seal(ompi_common_cryptmpio_file_t *state);

/* Collective: this process's own MPI error code if it has one, else the largest
 * of all. */
OMPI_DECLSPEC int ompi_common_cryptmpio_agree(const ompio_file_t *fh, int error);

/* ---- the data path ---- */

/* A plain file: is this access refused (fs_crypt_require, or an earlier failed request for encryption)? */
OMPI_DECLSPEC bool ompi_common_cryptmpio_refuses(const ompi_common_cryptmpio_file_t *state, bool writing);

/* Report what went wrong, if anything; returns an MPI error code.  Not for
 * our own threads. */
OMPI_DECLSPEC int ompi_common_cryptmpio_report(const ompi_common_cryptmpio_file_t *state, bool writing,
                                               const opal_cryptfile_outcome_t *outcome);

/* The first error of this thread between notes_begin and noted. */
OMPI_DECLSPEC void ompi_common_cryptmpio_notes_begin(void);
OMPI_DECLSPEC void ompi_common_cryptmpio_note(int error);
OMPI_DECLSPEC int ompi_common_cryptmpio_noted(void);
/* Is this thread between the two, that is, in a blocking call? */
OMPI_DECLSPEC bool ompi_common_cryptmpio_noting(void);
/* And in one that reads or writes for other processes, too? */
OMPI_DECLSPEC bool ompi_common_cryptmpio_exchanging(void);

END_C_DECLS

#endif

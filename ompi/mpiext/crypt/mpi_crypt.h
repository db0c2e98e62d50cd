/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Encryption maps of MPI files.  Link with -lmpi_crypt.
 *
 * The file must have been opened by OMPIO with fs/crypt; otherwise the functions
 * return MPI_ERR_UNSUPPORTED_OPERATION, and after MPIX_File_set_encryption_map
 * every read and write through the handle fails.
 */
#ifndef MPI_CRYPT_H
#define MPI_CRYPT_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Error classes of file functions, in addition to those of MPI (MPI_Error_class).  They are
 * the same in all processes, but they are function calls, so `case` cannot use them.  Their
 * value is MPI_UNDEFINED, which is not a class, before MPI_Init and in jobs without ompi-crypt.
 *
 *   MPIX_ERR_CRYPT_TORN     the first write of a block was cut short and never completed; the
 *                           next write of the block starts from zeros
 *   MPIX_ERR_CRYPT_FORGED   the data is not what a holder of the key wrote there
 *   MPIX_ERR_CRYPT_NO_KEY   this process has no key for the data, or may not use it
 */
#define MPIX_ERR_CRYPT_TORN   MPIX_Err_crypt_torn()
#define MPIX_ERR_CRYPT_FORGED MPIX_Err_crypt_forged()
#define MPIX_ERR_CRYPT_NO_KEY MPIX_Err_crypt_no_key()
int MPIX_Err_crypt_torn(void);
int MPIX_Err_crypt_forged(void);
int MPIX_Err_crypt_no_key(void);

/* Collective: from now on, the bytes that `disp` and `filetype` describe, as in a file
 * view, are encrypted; this cannot be undone.  Processes may pass different
 * filetypes.  A process whose filetype has no bytes takes part without adding a region.
 * The file must be new or empty, or already have this region.  datarep is
 * "native".
 *
 * Info keys, with the parameters that set their defaults:
 *   crypt_key_label     label of the key            (fs_crypt_key_label)
 *   crypt_algorithm     aes-128-gcm, aes-192-gcm, aes-256-gcm,
 *                       chacha20-poly1305, or plain (fs_crypt_algorithm)
 *   crypt_block_size    bytes in an encrypted block (fs_crypt_block_size)
 *   crypt_repeat        once: the filetype is not repeated
 *   crypt_rest          plain: bytes outside of all regions are read and written in plaintext
 */
int MPIX_File_set_encryption_map(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                                 const char *datarep, MPI_Info info);

/* Local: the number of regions of the file; 0 if it is not encrypted. */
int MPIX_File_get_encryption_regions(MPI_File fh, int *regions);

/* Local: one region, 0 <= region < regions.  etype is MPI_BYTE.  filetype (which has no
 * bytes for the rest of the file) and info are new; the caller frees them.
 * datarep has room for MPI_MAX_DATAREP_STRING characters, or is NULL. */
int MPIX_File_get_encryption_map(MPI_File fh, int region, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype,
                                 char *datarep, MPI_Info *info);

#ifdef __cplusplus
}
#endif

#endif

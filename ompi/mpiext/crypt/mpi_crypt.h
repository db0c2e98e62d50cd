/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Encryption maps of MPI files.  Link with -lmpi_crypt.
 *
 * The file must have been opened by OMPIO with fs/crypt; anything else is
 * MPI_ERR_UNSUPPORTED_OPERATION.
 */
#ifndef MPI_CRYPT_H
#define MPI_CRYPT_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Classes of errors that functions of files return, besides those of MPI (MPI_Error_class);
 * the same in all processes.  They are calls: no constants for `case`.  Before MPI_Init, and
 * in a job without ompi-crypt, MPI_UNDEFINED, which is no class.
 *
 *   MPIX_ERR_CRYPT_TORN     the first write of a block was cut short: nothing of it was ever
 *                           finished, and who writes it anew starts from zeros
 *   MPIX_ERR_CRYPT_FORGED   what is there is not what a holder of the key wrote there
 *   MPIX_ERR_CRYPT_NO_KEY   this process has no key for it, or may not use it
 */
#define MPIX_ERR_CRYPT_TORN   MPIX_Err_crypt_torn()
#define MPIX_ERR_CRYPT_FORGED MPIX_Err_crypt_forged()
#define MPIX_ERR_CRYPT_NO_KEY MPIX_Err_crypt_no_key()
int MPIX_Err_crypt_torn(void);
int MPIX_Err_crypt_forged(void);
int MPIX_Err_crypt_no_key(void);

/* Collective: the bytes that `disp` and `filetype` describe, as in a file view,
 * are encrypted from now on and for ever.  Processes may give different
 * filetypes; one with a filetype of no bytes takes part without adding a region.
 * The file must be new or empty, or have this region already.  datarep is
 * "native".
 *
 * Keys of info, each with a parameter that is its default:
 *   crypt_key_label     label of the key            (fs_crypt_key_label)
 *   crypt_algorithm     aes-128-gcm, aes-192-gcm, aes-256-gcm,
 *                       chacha20-poly1305, or plain (fs_crypt_algorithm)
 *   crypt_block_size    bytes sealed together       (fs_crypt_block_size)
 *   crypt_repeat        once: the filetype is not repeated
 *   crypt_rest          plain: bytes of no region are read and written as they are
 */
int MPIX_File_set_encryption_map(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                                 const char *datarep, MPI_Info info);

/* Local: how many regions the file has; 0 if it is not encrypted. */
int MPIX_File_get_encryption_regions(MPI_File fh, int *regions);

/* Local: one region, 0 <= region < regions.  etype is MPI_BYTE; filetype (of no
 * bytes for the rest of the file) and info are new, and the caller's to free.
 * datarep has room for MPI_MAX_DATAREP_STRING characters, or is NULL. */
int MPIX_File_get_encryption_map(MPI_File fh, int region, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype,
                                 char *datarep, MPI_Info *info);

#ifdef __cplusplus
}
#endif

#endif

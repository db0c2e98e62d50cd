/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Before the first message: the host PML and its limits, or ob1 above btl/crypt, and the audit of other components.
 */
#ifndef MCA_PML_CRYPT_HOST_H
#define MCA_PML_CRYPT_HOST_H

#include "pml_crypt.h"

/* ---- the host, and its limits ---- */

/* `name`: the host that is wanted; on return, the one that was loaded. */
mca_pml_base_module_t *ompi_pml_crypt_host_load(const char **name, bool progress_threads, bool mpi_threads);
int ompi_pml_crypt_host_finalize(void);
bool ompi_pml_crypt_is_set(const char *project, const char *framework, const char *component, const char *name);    /* a parameter */
void ompi_pml_crypt_limits_ucx_raise(void); /* before host_load; restore after it */
void ompi_pml_crypt_limits_ucx_restore(const char *host);
bool ompi_pml_crypt_limits_ucx_raised(void);
void ompi_pml_crypt_limits_raise(void);     /* after host_load, before the host has peers */
bool ompi_pml_crypt_limits_eager(size_t wire_bytes);    /* a message of this length leaves eagerly; after raise */
void ompi_pml_crypt_host_close(void);
bool ompi_pml_crypt_fault_tolerant(void);   /* true: refused, with a message */

/* ---- the host cm: mtl.c ---- */

enum { OMPI_PML_CRYPT_MTL_CAPACITY = 1 << 16 };
bool ompi_pml_crypt_mtl_fit(void);          /* false after a message */
const char *ompi_pml_crypt_mtl_name(void);  /* NULL: another host */
int ompi_pml_crypt_mtl_send(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                            mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);

/* ---- pml_crypt_transport.c: crypt_transport=btl ---- */

/* NULL after a message. */
mca_pml_base_module_t *ompi_pml_crypt_transport_start(const mca_pml_base_module_t *host);
/* Start btl/crypt, if it waits for that, and check that no other network was opened.  `agreed`: as for
 * opal_cryptproc_transport_go.  False after a message. */
bool ompi_pml_crypt_transport_go(const char *agreed);
bool ompi_pml_crypt_transport_covers(const ompi_proc_t *proc);      /* no other BTL leads to it */

/* ---- pml_crypt_windows.c: btl/crypt for windows alone ---- */

bool ompi_pml_crypt_windows_start(const char *agreed, bool mpi_threads);    /* false after a message */
void ompi_pml_crypt_windows_reach(ompi_communicator_t *comm);       /* before a window is made; ends the job on failure */
void ompi_pml_crypt_windows_stop(ompi_proc_t **procs, size_t count);        /* after the host has left them */

/* ---- before the first message ---- */

void ompi_pml_crypt_find_threads(bool mpi_threads);
const char *ompi_pml_crypt_agreed(void);    /* the parameters that must be the same in all processes */
bool ompi_pml_crypt_cryptag_here(void);
int ompi_pml_crypt_audit(void);
int ompi_pml_crypt_audit_transport(void);   /* only what btl/crypt does not check itself */
void ompi_pml_crypt_audit_osc(void);
void ompi_pml_crypt_audit_osc_end(void);
bool ompi_pml_crypt_audit_osc_makes_window(void);       /* this thread, in a component that sends through the PML */
/* True: act on it.  Shown if fatal, or if crypt_audit is warn (then false). */
bool ompi_pml_crypt_audit_finding(const char *component, const char *remedy, bool fatal);
void ompi_pml_crypt_disable(void);
void ompi_pml_crypt_lists_stop(void);       /* after the host has finished: it may use some of them until then */

#endif

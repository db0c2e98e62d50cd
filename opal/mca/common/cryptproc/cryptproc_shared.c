/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Watches Open MPI's shared memory.  Transports, windows and collectives within a node all get it from the framework
 * shmem, which opens files with predictable names, and accepts what it finds: another user who was faster, or who owns
 * a parent directory, could read and write what is exchanged there.
 *
 *     segment_create  1. make the file ourselves, or check the existing one   2. call the component's own function
 *                     3. map the checked file in place of what it has mapped
 *     segment_attach  2. and 3.: a peer's segment
 *
 * So every segment is checked before it holds data, for any component at any time, before its maker removes its
 * name, and what was checked is what is used.  A peer's segment is the one that the peer made: only we and root can
 * replace a file of ours in a directory that passed the check.
 *
 * XPMEM, CMA and the like share no file.  PMIx has its own shared memory, without payload; the launcher is trusted.
 */
#include "cryptproc.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "opal/mca/btl/base/base.h"
#include "opal/mca/common/crypt/base/shared_file.h"
#include "opal/mca/shmem/base/base.h"

static int users;
static opal_shmem_base_module_t *theirs, ours;

/* Ends the job, unless crypt_audit is warn. */
static void refuse(const opal_crypt_why_t *why)
{
    const bool warn = OPAL_CRYPTPROC_AUDIT_WARN == opal_cryptproc_params.audit;
    char text[OPAL_CRYPTPROC_ON_NODE_BYTES];

    if (warn) {
        opal_cryptproc_found();
    }
    OPAL_CRYPTPROC_SHOW(warn ? "help-opal-common-cryptproc.txt" : "help-opal-common-crypt.txt",
                        warn ? "shared-memory-possible" : why->topic, opal_cryptproc_on_node(why->detail, text));
    if (!warn) {
        opal_cryptproc_end();
    }
}

static bool kept_by(const char *component)
{
    return 0 == strcmp(component, opal_shmem_base_component->base_version.mca_component_name);
}

/* Open the segment's file: names for POSIX are those of shm_open(3). */
static int open_file(const opal_shmem_ds_t *segment, int *fd, opal_crypt_why_t *why)
{
    char path[sizeof(segment->seg_name) + sizeof("/dev/shm/")];

    snprintf(path, sizeof(path), "%s%s", kept_by("posix") ? "/dev/shm/" : "", segment->seg_name);
    return opal_crypt_shared_file_open(path, segment->seg_size, fd, why);
}

static int map_file(const opal_shmem_ds_t *segment, opal_crypt_why_t *why)
{
    int fd, rc = open_file(segment, &fd, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (MAP_FAILED == mmap(segment->seg_base_addr, segment->seg_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                           fd, 0)) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "shared-memory", "%s: %s", segment->seg_name, strerror(errno));
    }
    close(fd);
    return rc;
}

static void judge_segment(const opal_shmem_ds_t *segment)
{
    const char *component = opal_shmem_base_component->base_version.mca_component_name;
    opal_crypt_why_t why = {0};
    int rc = kept_by("mmap") || kept_by("posix") ? map_file(segment, &why)
             : kept_by("sysv")                   ? opal_crypt_shared_segment(segment->seg_id, &why)
                                                 : opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "shared-memory",
                                                                     "the component shmem/%s is not known", component);

    if (OPAL_CRYPT_OK != rc) {
        refuse(&why);
    }
}

/* ---- replacements of the component's functions ---- */

static int segment_create(opal_shmem_ds_t *segment, const char *name, size_t bytes)
{
    opal_crypt_why_t why = {0};
    bool made = false;
    int rc;

    if (kept_by("mmap") && OPAL_CRYPT_OK != opal_crypt_shared_file_make(name, &made, &why)) {
        refuse(&why);
    }
    rc = theirs->segment_create(segment, name, bytes);
    if (made && (OPAL_SUCCESS != rc || 0 != strcmp(name, segment->seg_name))) {     /* shmem_mmap_relocate_backing_file */
        unlink(name);
    }
    if (OPAL_SUCCESS == rc) {
        judge_segment(segment);
    }
    return rc;
}

/* The maker has mapped it already. */
static void *segment_attach(opal_shmem_ds_t *segment)
{
    void *base = theirs->segment_attach(segment);

    if (NULL != base && getpid() != segment->seg_cpid) {
        judge_segment(segment);
    }
    return base;
}

/* ---- start and stop ---- */

static void judge_directory(const char *path)
{
    opal_crypt_why_t why = {0};

    if (NULL != path && OPAL_CRYPT_OK != opal_crypt_shared_file_directory(path, &why)) {
        refuse(&why);
    }
}

/* Up to 4.1 BTLs start before any PML, and hook/crypt, which precedes both, may be switched off: then their segments
 * are already mapped. */
static void judge_what_is_mapped(void)
{
    opal_crypt_why_t why = {0};

    if (mca_base_framework_is_open(&opal_btl_base_framework) && !opal_list_is_empty(&mca_btl_base_modules_initialized)
        && OPAL_CRYPT_OK != opal_crypt_shared_mappings("/proc/self/maps", &why)) {
        refuse(&why);
    }
}

/* The framework may have been closed and opened again since. */
void opal_cryptproc_shared_start(void)
{
    users++;
    if (!opal_shmem_base_selected || &ours == opal_shmem_base_module) {
        return;
    }
    theirs = opal_shmem_base_module;
    ours = *theirs;
    ours.segment_create = segment_create;
    ours.segment_attach = segment_attach;
    opal_shmem_base_module = &ours;
    judge_directory(opal_process_info.job_session_dir);     /* sharedfp/sm has its file there, without the framework */
    judge_directory(opal_process_info.proc_session_dir);
    judge_what_is_mapped();
}

void opal_cryptproc_shared_stop(void)
{
    if (0 == --users && &ours == opal_shmem_base_module) {
        opal_shmem_base_module = theirs;
    }
}

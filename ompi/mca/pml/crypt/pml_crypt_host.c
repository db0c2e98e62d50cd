/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loading the host PML.
 *
 * With `--mca pml crypt` Open MPI loads no other PML, so the host is found and
 * opened here: among the static components of the framework, or in the
 * component repository.  Any failure returns NULL, which ends the job: there is
 * no other PML to take over.
 *
 * "auto" is what Open MPI itself would choose among those that can be wrapped: each is asked for its
 * priority, as by pml/base.  But ucx and libfabric carry messages over plain TCP and UDP, too, by protocols that let an
 * attacker write into memory: so on a node without another network auto means ob1, and elsewhere a host that may use
 * software transports is passed over.  A host that is named is always used.
 */
#include "pml_crypt_host.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/mca/base/mca_base_var.h"
#include "ompi/mca/pml/base/base.h"

/* ob1 comes last: it starts no transports where a better one was found. */
static const char *const hosts[] = {"ucx", "cm", "ob1"};
enum { HOSTS = sizeof(hosts) / sizeof(hosts[0]) };

/* A PML that was found, and how far it was started. */
typedef struct host_candidate {
    mca_pml_base_component_t *component;
    mca_pml_base_module_t *module;      /* NULL: not initialized */
    int priority;
} host_t;

static host_t chosen;

/* Hosts may fail on several nodes, each for a reason of its own, and the first to fail ends the job:
 * the text names its node. */
static void refuse(const char *topic, const char *name)
{
    OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", topic, name, opal_process_info.nodename);
}

static mca_base_component_t *among_static(const char *name)
{
    const opal_aead_base_static_t *all = ompi_pml_base_framework.framework_static_components;

    for (int i = 0; NULL != all && NULL != all[i]; i++) {
        if (0 == strcmp(OPAL_AEAD_BASE_STATIC(all[i])->mca_component_name, name)) {
            return (mca_base_component_t *) OPAL_AEAD_BASE_STATIC(all[i]);
        }
    }
    return NULL;
}

/* The repository opens a component into a framework's list; it gets a private
 * framework, so that the PML framework does not see a second component. */
static mca_base_component_t *open_item(mca_base_component_repository_item_t *item)
{
    mca_base_component_t *found = NULL;
    bool already = NULL != item->ri_dlhandle;
    mca_base_framework_t shadow;

    memset(&shadow, 0, sizeof(shadow));
    shadow.framework_project = "ompi";
    shadow.framework_name = "pml";
    shadow.framework_output = -1;
    OBJ_CONSTRUCT(&shadow.framework_components, opal_list_t);
    OBJ_CONSTRUCT(&shadow.framework_failed_components, opal_list_t);
    if (OPAL_SUCCESS == mca_base_component_repository_open(&shadow, item)) {
        mca_base_component_list_item_t *entry = (mca_base_component_list_item_t *)
            opal_list_remove_first(&shadow.framework_components);
        if (NULL != entry) {
            found = (mca_base_component_t *) entry->cli_component;
            OBJ_RELEASE(entry);
        }
        if (already && NULL != found) {
            mca_base_component_repository_retain_component("pml", found->mca_component_name);
        }
    }
    OBJ_DESTRUCT(&shadow.framework_components);
    OBJ_DESTRUCT(&shadow.framework_failed_components);
    return found;
}

static mca_base_component_t *in_repository(const char *name)
{
    mca_base_component_repository_item_t *item;
    opal_list_t *items;

    if (OPAL_SUCCESS != mca_base_component_repository_get_components(&ompi_pml_base_framework, &items)) {
        return NULL;
    }
    OPAL_LIST_FOREACH(item, items, mca_base_component_repository_item_t) {
        if (0 == strcmp(item->ri_name, name)) {
            return open_item(item);
        }
    }
    return NULL;
}

static bool same_interface(const mca_base_component_t *host)
{
    const mca_base_component_t *ours = &mca_pml_crypt_component.pmlm_version;

    return host->mca_type_major_version == ours->mca_type_major_version
           && host->mca_type_minor_version == ours->mca_type_minor_version
           && OMPI_MAJOR_VERSION == host->mca_component_major_version
           && OMPI_MINOR_VERSION == host->mca_component_minor_version;
}

static bool allowed(const char *name)
{
#ifdef OMPI_PML_CRYPT_TEST_HOSTS    /* test builds: a PML between us and ob1 that attacks */
    if (0 == strcmp(name, "tamper")) {
        return true;
    }
#endif
    for (int i = 0; i < HOSTS; i++) {
        if (0 == strcmp(name, hosts[i])) {
            return true;
        }
    }
    return false;
}

/* ---- one of them ---- */

static bool has_text(const char *name)
{
    const mca_base_var_storage_t *value = NULL;
    int index = mca_base_var_find("opal", "opal_common", "ucx", name);

    return index < 0 || (OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) && NULL != value && NULL != value->stringval);
}

/* When MPI is initialized again (sessions), ucx of Open MPI 5.0 has lost its defaults, and would crash. */
static bool is_lost(const char *name)
{
    return 0 == strcmp(name, "ucx") && !(has_text("tls") && has_text("devices"));
}

/* NULL: it is initialized.  Else why it is not, a topic of the help file. */
static const char *host_start(host_t *host, const char *name, int best, bool progress_threads, bool mpi_threads)
{
    mca_base_component_t *base = among_static(name);

    *host = (host_t){.priority = best};
    base = NULL != base ? base : in_repository(name);
    if (NULL == base) {
        return "host-missing";
    }
    if (!same_interface(base)) {
        return "host-other-version";
    }
    host->component = (mca_pml_base_component_t *) base;        /* closed even if it does not open, as in pml/base */
    if ((NULL != base->mca_register_component_params && OMPI_SUCCESS != base->mca_register_component_params())
        || (NULL != base->mca_open_component && OMPI_SUCCESS != base->mca_open_component())) {
        return "host-failed";
    }
    if (is_lost(name)) {
        return "host-failed";
    }
    host->module = host->component->pmlm_init(&host->priority, progress_threads, mpi_threads);
    return NULL == host->module ? "host-failed" : NULL;
}

static int host_finish(host_t *host)
{
    int rc = NULL != host->module && NULL != host->component->pmlm_finalize ? host->component->pmlm_finalize()
                                                                            : OMPI_SUCCESS;

    host->module = NULL;
    return rc;
}

static void host_leave(host_t *host)
{
    if (NULL != host->component) {
        mca_base_component_close(&host->component->pmlm_version, -1);
    }
    host->component = NULL;
}

/* ---- over TCP and UDP: not by auto ---- */

bool ompi_pml_crypt_is_set(const char *project, const char *framework, const char *component, const char *name)
{
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    int index = mca_base_var_find(project, framework, component, name);

    return index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, NULL, &source, NULL)
           && MCA_BASE_VAR_SOURCE_DEFAULT != source;
}

/* By default pml/ucx looks for devices itself; these parameters may name any network. */
static bool ucx_is_told(void)
{
    return ompi_pml_crypt_is_set("opal", "opal_common", "ucx", "tls") || ompi_pml_crypt_is_set("opal", "opal_common", "ucx", "devices");
}

/* A provider of libfabric: "core;layer".  A layer alone may use any core. */
static bool is_software(const char *provider, size_t bytes)
{
    static const char software[] = "tcp,udp,net,sockets,shm,rstream,ofi_rxm,ofi_rxd,ofi_mrail";
    const size_t core = strcspn(provider, ";");

    return opal_cryptproc_listed(software, provider, core < bytes ? core : bytes);
}

/* Unless it is set which providers mtl/ofi may use, exclude software before it opens. */
static void leave_software_out(void)
{
    if (NULL == getenv("OMPI_MCA_mtl_ofi_provider_include") && NULL == getenv("OMPI_MCA_mtl_ofi_provider_exclude")) {
        (void) opal_cryptproc_setenv("OMPI_MCA_mtl_ofi_provider_exclude", "shm,sockets,tcp,udp,net,rstream,usnic");
    }
}

/* Once it is open: does one of its lists allow software? */
static bool ofi_is_told(void)
{
    const char *const *value = NULL;
    int index = mca_base_var_find("ompi", "mtl", "ofi", "provider_include");
    const bool named = index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) && NULL != value
                       && NULL != *value && '\0' != **value;

    for (const char *at = named ? *value : ""; '\0' != *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");

        if (is_software(at, length)) {
            return true;
        }
        at += length;
    }
    value = NULL;
    index = mca_base_var_find("ompi", "mtl", "ofi", "provider_exclude");
    return !named && index >= 0
           && (OPAL_SUCCESS != mca_base_var_get_value(index, &value, NULL, NULL) || NULL == value || NULL == *value
               || !opal_cryptproc_listed(*value, "tcp", 3) || !opal_cryptproc_listed(*value, "net", 3));
}

/* ---- all of them ---- */

/* As pml/base does it: the first of the highest priority.  A host that is missing, or has no network,
 * is not an error here. */
static const char *host_choose(bool progress_threads, bool mpi_threads)
{
    const char *name = NULL;

    leave_software_out();
    for (int i = 0; i < HOSTS; i++) {
        host_t host;
        const char *why = host_start(&host, hosts[i], NULL == name ? -1 : chosen.priority, progress_threads, mpi_threads);
        const bool told = 0 == strcmp(hosts[i], "ucx") ? ucx_is_told() : 0 == strcmp(hosts[i], "cm") && ofi_is_told();
        const bool better = NULL == why && !told && (NULL == name || host.priority > chosen.priority);
        host_t *loser = better ? &chosen : &host;

        (void) host_finish(loser);
        host_leave(loser);
        if (better) {
            chosen = host;
            name = hosts[i];
        }
    }
    return name;
}

mca_pml_base_module_t *ompi_pml_crypt_host_load(const char **name, bool progress_threads, bool mpi_threads)
{
    const char *why;

    chosen = (host_t){.component = NULL};
    if (0 == strcmp(*name, "auto") && !ompi_common_cryptmpi_fabric()) {
        *name = "ob1";
    }
    if (0 == strcmp(*name, "auto")) {
        const char *found = host_choose(progress_threads, mpi_threads);

        why = NULL == found ? "host-failed" : NULL;
        *name = NULL == found ? *name : found;
    } else {
        why = allowed(*name) ? host_start(&chosen, *name, -1, progress_threads, mpi_threads) : "host-refused";
    }
    if (NULL != why) {
        refuse(why, *name);
        return NULL;
    }
    return chosen.module;
}

int ompi_pml_crypt_host_finalize(void)
{
    return host_finish(&chosen);
}

void ompi_pml_crypt_host_close(void)
{
    host_leave(&chosen);
}

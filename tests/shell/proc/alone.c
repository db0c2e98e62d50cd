/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * alone [silent]: what a transport in OPAL does before there is any PML, in a process without
 * libmpi.  It registers the parameters, starts twice and more, publishes, and agrees on keys with
 * the other rank, by its name alone; then once more, in a second life.  `silent`: rank 1
 * publishes nothing, and rank 0 asks all the same.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "opal/mca/common/cryptproc/cryptproc.h"
#include "opal/runtime/opal.h"

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

static unsigned published;              /* how often anything was */

#if OPAL_MAJOR_VERSION >= 5

enum { KEYS = 2 };                      /* "record" and "life" */

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value);
pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value)
{
    pmix_status_t (*next)(pmix_scope_t, const char[], pmix_value_t *) = dlsym(RTLD_NEXT, "PMIx_Put");

    published++;
    return next(scope, key, value);
}

static void runtime_begin(void)
{
    opal_process_name_t name;
    int rc;

    CHECK(OPAL_SUCCESS == opal_init(NULL, NULL));
    opal_pmix_setup_nspace_tracker();
    CHECK(PMIX_SUCCESS == PMIx_Init(&opal_process_info.myprocid, NULL, 0));
    OPAL_PMIX_CONVERT_PROCT(rc, &name, &opal_process_info.myprocid);
    CHECK(OPAL_SUCCESS == rc);
    OPAL_PROC_MY_NAME = opal_process_info.my_name = name;
}

static void fence(void)
{
    bool collect = true;
    pmix_info_t info;

    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    CHECK(PMIX_SUCCESS == PMIx_Fence(NULL, 0, &info, 1));
}

static void runtime_end(void)
{
    CHECK(PMIX_SUCCESS == PMIx_Finalize(NULL, 0));
}

#else

#include "opal/mca/pmix/base/base.h"

enum { KEYS = 1 };

static opal_pmix_base_module_put_fn_t put;

static int counted_put(opal_pmix_scope_t scope, opal_value_t *value)
{
    published++;
    return put(scope, value);
}

static void runtime_begin(void)
{
    CHECK(OPAL_SUCCESS == opal_init(NULL, NULL));
    CHECK(OPAL_SUCCESS == mca_base_framework_open(&opal_pmix_base_framework, 0));
    CHECK(OPAL_SUCCESS == opal_pmix_base_select());
    CHECK(OPAL_SUCCESS == opal_pmix.init(NULL));
    put = opal_pmix.put;
    opal_pmix.put = counted_put;
}

static void fence(void)
{
    CHECK(OPAL_SUCCESS == opal_pmix.fence(NULL, 1));
}

static void runtime_end(void)
{
    CHECK(OPAL_SUCCESS == opal_pmix.finalize());
}

#endif

static void show(const char *what, const uint8_t *bytes)
{
    printf(" %s ", what);
    for (int i = 0; i < 32; ++i) {
        printf("%02x", bytes[i]);
    }
}

/* One life of this process; its record's first bytes come back in `head`. */
static void live(unsigned number, uint8_t head[256])
{
    const opal_process_name_t peer = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = 1 - OPAL_PROC_MY_NAME.vpid};
    const unsigned before = published;
    const uint8_t where[] = {(uint8_t) (2 - OPAL_PROC_MY_NAME.vpid), 1, 2};
    opal_crypt_schedule_t *schedule = NULL;
    const opal_crypt_peer_info_t *info;
    opal_crypt_identity_t own;
    opal_crypt_why_t why = {0};
    opal_crypt_local_t *local;
    const uint8_t *record;
    uint8_t out[32], in[32];
    size_t bytes;
    int rc;

    /* 1. whoever comes first makes the record; whoever comes later finds it */
    CHECK(NULL == opal_cryptproc_local());
    CHECK(OPAL_SUCCESS == opal_cryptproc_start_transport("mode=alone", true, where, sizeof(where)));
    local = opal_cryptproc_local();
    record = opal_crypt_local_record(local, &bytes);
    CHECK(NULL != local && before + KEYS == published);
    CHECK(OPAL_SUCCESS == opal_cryptproc_start(NULL));
    CHECK(OPAL_SUCCESS == opal_cryptproc_start("mode=alone"));
    CHECK(OPAL_SUCCESS != opal_cryptproc_start("mode=other"));
    CHECK(OPAL_SUCCESS != opal_cryptproc_start_transport("mode=alone", true, where, sizeof(where)));
    opal_cryptproc_own(&own);
    CHECK(own.rank == OPAL_PROC_MY_NAME.vpid && own.instance == number && '\0' != own.nspace[0]);
    CHECK(local == opal_cryptproc_local() && record == opal_crypt_local_record(local, &bytes));
    CHECK(before + KEYS == published);
    memcpy(head, record, bytes < 256 ? bytes : 256);

    /* 2. the other one */
    CHECK(OPAL_SUCCESS == opal_cryptproc_commit());
    fence();
    rc = opal_cryptproc_schedule(&peer, 0, &schedule, &why);
    if (OPAL_CRYPT_OK != rc) {
        fprintf(stderr, "%s: %s\n", NULL == why.topic ? "no topic" : why.topic, why.detail);
        exit(1);
    }
    info = opal_crypt_schedule_peer(schedule);
    CHECK(sizeof(where) == info->transport_bytes && 2 - peer.vpid == info->transport[0]);
    CHECK(OPAL_SUCCESS == opal_cryptproc_provider_needed());
    CHECK(OPAL_CRYPT_OK == opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_OUT, out, 32));
    CHECK(OPAL_CRYPT_OK == opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_IN, in, 32));
    printf("life %u rank %lu", number, (unsigned long) OPAL_PROC_MY_NAME.vpid);
    show("out", out);
    show("in", in);
    printf("\n");
    fflush(stdout);
    opal_crypt_schedule_destroy(schedule);
    fence();

    /* 3. whoever goes last destroys it */
    opal_cryptproc_stop();
    opal_cryptproc_stop();
    CHECK(local == opal_cryptproc_local());
    opal_cryptproc_stop();
    CHECK(NULL == opal_cryptproc_local());
    opal_cryptproc_stop();
    CHECK(NULL == opal_cryptproc_local());
}

static void ask_who_is_silent(void)
{
    const opal_process_name_t peer = {.jobid = OPAL_PROC_MY_NAME.jobid, .vpid = 1};
    opal_crypt_schedule_t *schedule = NULL;
    opal_crypt_why_t why = {0};

    if (0 == OPAL_PROC_MY_NAME.vpid) {
        CHECK(OPAL_SUCCESS == opal_cryptproc_start(NULL));
        CHECK(OPAL_SUCCESS == opal_cryptproc_commit());
    }
    fence();
    if (0 == OPAL_PROC_MY_NAME.vpid) {
        CHECK(OPAL_CRYPT_ERR_PEER == opal_cryptproc_schedule(&peer, 0, &schedule, &why) && NULL == schedule);
        printf("refused: %s\n", why.topic);
        fflush(stdout);
        opal_cryptproc_stop();
    }
    fence();
}

int main(int argc, char **argv)
{
    uint8_t first[256] = {0}, second[256] = {0};

    runtime_begin();
    CHECK(OPAL_SUCCESS == opal_cryptproc_params_register());
    if (argc > 1 && 0 == strcmp(argv[1], "silent")) {
        ask_who_is_silent();
    } else {
        live(0, first);
        live(1, second);
        CHECK(0 != memcmp(first, second, sizeof(first)));
    }
    runtime_end();
    return 0;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Events of MPI_T, which Open MPI has from 6.0 on: a tool is told at once of what the performance variables only
 * count.  They carry numbers, and nothing of a message.
 */
#include "cryptproc_internal.h"

#if OPAL_CRYPTPROC_HAS_EVENTS
#    include "opal/mca/base/mca_base_pvar.h"

enum { NUMBERS = 3 };       /* the most that an event carries */

static const struct {
    const char *name, *help;
    int numbers;
} kinds[OPAL_CRYPTPROC_EVENTS] = {
    [OPAL_CRYPTPROC_REFUSED] = {"refused", "A message, or a peer, did not authenticate: its rank in the communicator, and "
                                "the tag; of a peer -1 and -1", 2},
    [OPAL_CRYPTPROC_REKEYED] = {"rekeyed", "New keys with a process, looked for once a second: its rank in MPI_COMM_WORLD, "
                                "and the epochs of what is sent and received", 3},
    [OPAL_CRYPTPROC_AUDITED] = {"audit", "Plaintext is possible through a component, and crypt_audit allows it: how many "
                                "were found so far", 1},
};
static mca_base_event_t *events[OPAL_CRYPTPROC_EVENTS];

/* Named like the metrics: crypt_NAME, category crypt; Open MPI prepends "ompi.". */
int opal_cryptproc_events_register(void)
{
    static const mca_base_var_type_t types[NUMBERS] = {MCA_BASE_VAR_TYPE_INT, MCA_BASE_VAR_TYPE_INT, MCA_BASE_VAR_TYPE_INT};
    static const ptrdiff_t offsets[NUMBERS] = {0, sizeof(int), 2 * sizeof(int)};
    mca_base_event_source_t *source;
    int at = mca_base_event_source_register("ompi.crypt", "What ompi-crypt sees", MCA_BASE_EVENT_SOURCE_ORDERED, 1000000000,
                                            OPAL_COUNT_MAX, NULL, true, NULL);
    int rc = at < 0 ? at : mca_base_event_source_get_by_index(at, &source);

    for (int i = 0; i < OPAL_CRYPTPROC_EVENTS && OPAL_SUCCESS == rc; i++) {
        at = mca_base_event_register(NULL, "crypt", NULL, kinds[i].name, kinds[i].help, OPAL_INFO_LVL_4, kinds[i].numbers, types,
                                     offsets, NULL, MCA_BASE_VAR_BIND_NO_OBJECT, (mca_base_event_flag_t) 0, source, NULL);
        rc = at < 0 ? at : mca_base_event_get_by_index(at, &events[i]);
    }
    return rc;
}

/* Callbacks run in the middle of a call, so we call only those that promised not to call MPI. */
void opal_cryptproc_happened(opal_cryptproc_event_t what, int first, int second, int third)
{
    const int numbers[NUMBERS] = {first, second, third};
    mca_base_event_t *event = events[what];

    if (NULL != event && mca_base_event_active(event)) {
        mca_base_event_raise_internal(event, NULL, NULL, numbers, MCA_BASE_EVENT_CB_REQUIRE_MPI_RESTRICTED);
    }
}
#else
int opal_cryptproc_events_register(void)
{
    return OPAL_SUCCESS;
}

void opal_cryptproc_happened(opal_cryptproc_event_t what, int first, int second, int third)
{
    (void) what, (void) first, (void) second, (void) third;
}
#endif

void opal_cryptproc_found(void)
{
    static int found;

    opal_cryptproc_happened(OPAL_CRYPTPROC_AUDITED, __atomic_add_fetch(&found, 1, __ATOMIC_RELAXED), 0, 0);
}

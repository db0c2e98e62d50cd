/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * This process in its job, for any component that encrypts: a PML, or a transport that starts before any PML.  OPAL
 * only, no MPI.
 *
 *     parameters --start--> record, published once per MPI session
 *     a peer's name --schedule--> its record, checked; the secrets of the pair
 *
 * Life cycle: register in a component's register function, start in its init, stop in its finalize.  Several
 * components may do so: the first start creates, the last stop destroys.
 */
#ifndef OPAL_MCA_COMMON_CRYPTPROC_H
#define OPAL_MCA_COMMON_CRYPTPROC_H

#include "cryptproc_compat.h"
#include "cryptproc_lists.h"
#include "cryptproc_policy.h"

#include <stdarg.h>

#include "opal/mca/base/base.h"
#include "opal/util/output.h"
#include "opal/mca/aead/base/aead_base_help.h"

#include "opal/mca/common/crypt/base/status.h"
#include "opal/mca/common/crypt/identity/local.h"
#include "opal/mca/common/crypt/identity/schedule.h"

BEGIN_C_DECLS

/* ---- parameters: crypt_* ---- */

typedef enum { OPAL_CRYPTPROC_INTERNODE, OPAL_CRYPTPROC_ALL } opal_cryptproc_scope_t;
typedef enum { OPAL_CRYPTPROC_ABORT, OPAL_CRYPTPROC_ERROR } opal_cryptproc_on_failure_t;
typedef enum { OPAL_CRYPTPROC_AUDIT_ABORT, OPAL_CRYPTPROC_AUDIT_WARN } opal_cryptproc_audit_t;
typedef enum { OPAL_CRYPTPROC_MISSING_WARN, OPAL_CRYPTPROC_MISSING_ABORT } opal_cryptproc_missing_t;

typedef struct opal_cryptproc_params {
    opal_crypt_options_t options;
    unsigned key_bits;
    unsigned threads;
    int scope, on_failure, audit, on_missing, transport;    /* enums above */
    unsigned connect_timeout;       /* seconds; 0: none */
    bool required;
    unsigned verbose;
    char *report;
} opal_cryptproc_params_t;

extern OPAL_DECLSPEC opal_cryptproc_params_t opal_cryptproc_params;

/* Register parameters of params.def, of any component; the first that fails is *failed.  Storage gets the default,
 * unless the parameter is registered already.  register_one: returns its index, or an error. */
typedef struct {
    const char *name;
    void *storage;      /* char *, int (also for words), bool, unsigned, size_t or int, by its type */
} opal_cryptproc_parameter_t;
OPAL_DECLSPEC int opal_cryptproc_register(const opal_cryptproc_parameter_t *list, size_t count, const char **failed);
OPAL_DECLSPEC int opal_cryptproc_register_one(const char *name, void *storage);

/* Also registers the MPI_T variables of category crypt. */
OPAL_DECLSPEC int opal_cryptproc_params_register(void);

/* Was crypt_report set? */
OPAL_DECLSPEC bool opal_cryptproc_report_wanted(void);

/* ---- start and stop ---- */

/* Choose the provider, create the record and publish it; does nothing more if that is done in this session.  `agreed`
 * is the text of the caller's own parameters that both sides must share ("name=value;..."), or NULL.  Reports its
 * errors, except one: the text is in the record, so a later start with another text gets OPAL_ERR_BAD_PARAM, and must
 * not go on. */
OPAL_DECLSPEC int opal_cryptproc_start(const char *agreed);
/* The same for a transport, with what its peers need to know (at most OPAL_CRYPT_TRANSPORT_MAX bytes), as an extension
 * of the record; hence OPAL_ERR_BAD_PARAM if the record is published.  Peers find it in opal_crypt_schedule_peer.
 * `seals_all`: messages, too, not only windows. */
OPAL_DECLSPEC int opal_cryptproc_start_transport(const char *agreed, bool seals_all, const uint8_t *transport, size_t bytes);
/* Starts a transport that pml/crypt decides about: set if one was opened and waits.  Called before processes exchange
 * what they publish.  `agreed`: NULL, or the text of pml/crypt, which seals messages beside it.  Reports its errors. */
extern OPAL_DECLSPEC bool (*opal_cryptproc_transport_go)(const char *agreed);
/* Does a transport run in this process that seals all traffic that leaves the node? */
OPAL_DECLSPEC bool opal_cryptproc_has_transport(void);
/* Its description for a report, in its own memory ("TLS 1.3 ..."), and how many processes it has met. */
extern OPAL_DECLSPEC const char *opal_cryptproc_transport_is;
extern OPAL_DECLSPEC const char *opal_cryptproc_transport_keys;     /* the key agreements that it may use */
extern OPAL_DECLSPEC uint64_t opal_cryptproc_transport_peers;
extern OPAL_DECLSPEC uint64_t opal_cryptproc_transport_pq_peers;    /* those that used X25519MLKEM768 */
extern OPAL_DECLSPEC uint64_t opal_cryptproc_transport_kernel_peers;    /* sealed or opened by the kernel */
/* For status pages: visits the transport's peers one by one, each with what it is waited for, or NULL.  False: another
 * thread is busy with them. */
typedef void (*opal_cryptproc_peer_visit_t)(const opal_crypt_status_peer_t *peer, const opal_crypt_status_wait_t *wait,
                                            void *context);
extern OPAL_DECLSPEC bool (*opal_cryptproc_transport_snapshot)(int64_t now, opal_cryptproc_peer_visit_t visit, void *context);
/* Set params.options.cipher from the user's choice; start calls it, or an earlier user.  Reports its errors. */
OPAL_DECLSPEC int opal_cryptproc_choose_cipher(void);
/* Once for each successful start. */
OPAL_DECLSPEC void opal_cryptproc_stop(void);

/* The identity in our record, after start. */
OPAL_DECLSPEC void opal_cryptproc_own(opal_crypt_identity_t *identity);

/* Our key pair and record; NULL before start and after stop. */
OPAL_DECLSPEC opal_crypt_local_t *opal_cryptproc_local(void);

/* Make sure of an encryption provider (cryptproc_provider.c): chosen in start, or here, when something is first to be
 * sealed.  Reports an error once; nothing can be sealed then. */
OPAL_DECLSPEC int opal_cryptproc_provider_needed(void);

/* False in a build whose messages are NOT encrypted (cryptproc_plaintext.c). */
OPAL_DECLSPEC bool opal_cryptproc_encrypts(void);

/* ---- events of MPI_T ---- */

/* Tell listening tools, where Open MPI has events, that one has happened, with its numbers (cryptproc_event.c).  The
 * caller is a thread of MPI's, and may hold locks of ours. */
typedef enum { OPAL_CRYPTPROC_REFUSED, OPAL_CRYPTPROC_REKEYED, OPAL_CRYPTPROC_AUDITED, OPAL_CRYPTPROC_EVENTS } opal_cryptproc_event_t;
OPAL_DECLSPEC void opal_cryptproc_happened(opal_cryptproc_event_t what, int first, int second, int third);

/* Something could bypass encryption, and crypt_audit=warn allows it: raise the event, with the count so far. */
OPAL_DECLSPEC void opal_cryptproc_found(void);

/* ---- shared memory ---- */

/* From here on Open MPI's shared memory is checked (cryptproc_shared.c), including what exists already.  Called before
 * the first BTL starts, if possible; stopped once for each start. */
OPAL_DECLSPEC void opal_cryptproc_shared_start(void);
OPAL_DECLSPEC void opal_cryptproc_shared_stop(void);

/* ---- other components' parameters ---- */

/* Read a parameter before its owner registers it, by registering it for a moment.  After an early MPI_T_init_thread it
 * is registered already, and stays: its framework would not register it again, and would go on as if it had never been
 * set. */
typedef struct opal_cryptproc_peek {
    const char *project, *framework, *component, *name, *help;
    mca_base_var_type_t type;
    mca_base_var_flag_t flags;
    mca_base_var_info_lvl_t level;
    mca_base_var_scope_t scope;
    /* out */
    int index;                              /* below 0: cannot be read */
    bool there;                             /* registered already */
    mca_base_var_source_t source;
    const void *value;                      /* until peek_end */
} opal_cryptproc_peek_t;

/* `storage` holds the default, and must live until peek_end. */
OPAL_DECLSPEC void opal_cryptproc_peek(opal_cryptproc_peek_t *peek, void *storage);
OPAL_DECLSPEC void opal_cryptproc_peek_end(opal_cryptproc_peek_t *peek);

/* The value of `--mca FRAMEWORK` from any source: to be freed; "" if unset, NULL if it cannot be read. */
OPAL_DECLSPEC char *opal_cryptproc_selection(const char *project, const char *framework);

/* Have Open MPI read `value` from this environment variable until all are restored: the change must not reach children
 * of this process, nor later MPI sessions.  By one thread.  False: no memory. */
OPAL_DECLSPEC bool opal_cryptproc_setenv(const char *variable, const char *value);
OPAL_DECLSPEC void opal_cryptproc_restore_env(void);

/* Will that framework of ompi open a component of this name, if there is one? */
OPAL_DECLSPEC bool opal_cryptproc_opens(const char *framework, const char *name, bool must_be_named);

/* ---- peers ---- */

/* Fetch the record of a process that came to be needed at `met` (0: at our start), check that it speaks for this
 * process, and agree on keys.  Returns OPAL_CRYPT_OK, or the reason in `why`, for help-opal-common-crypt.txt.  May
 * block on the runtime; by one thread at a time. */
OPAL_DECLSPEC int opal_cryptproc_schedule(const opal_process_name_t *name, int64_t met,
                                          opal_crypt_schedule_t **schedule, opal_crypt_why_t *why);

/* The same, without waiting, for a process that may not be what it claims: begin, go until finished, end. */
typedef struct opal_cryptproc_search opal_cryptproc_search_t;
OPAL_DECLSPEC opal_cryptproc_search_t *opal_cryptproc_search_begin(const opal_process_name_t *name, int64_t met);  /* NULL: no memory */
/* False: still waiting for the runtime's answer.  True: finished, *rc and the others are as above. */
OPAL_DECLSPEC bool opal_cryptproc_search_go(opal_cryptproc_search_t *search, opal_crypt_schedule_t **schedule, int *rc,
                                            opal_crypt_why_t *why);
/* Wait for that answer, up to the limit. */
OPAL_DECLSPEC void opal_cryptproc_search_wait(opal_cryptproc_search_t *search, unsigned milliseconds);
OPAL_DECLSPEC void opal_cryptproc_search_end(opal_cryptproc_search_t *search);     /* NULL allowed; finished or not */

/* Have our record vouched for again if needed at `now`, and publish that. */
OPAL_DECLSPEC int opal_cryptproc_renew(int64_t now);

/* The name of a job for users and in records: PMIx's, or else Open MPI's number. */
OPAL_DECLSPEC void opal_cryptproc_job_name(const opal_process_name_t *name, char text[OPAL_CRYPTPROC_NSPACE_BYTES]);

/* What `name` has published under `key`, or NULL; the caller frees it.  Reports a long wait (cryptproc_wait.c).  `how`:
 * see compat.  *nobody, which may be NULL: set if `name` is known to have published nothing; otherwise NULL may mean
 * that no answer came. */
OPAL_DECLSPEC uint8_t *opal_cryptproc_get(const opal_process_name_t *name, const char *key, opal_cryptproc_how_t how,
                                          const char *awaited, size_t *bytes, bool *nobody);

/* ---- waiting ---- */

typedef struct opal_cryptproc_wait {
    const char *doing, *awaited;        /* "in ...", and what for */
    opal_process_name_t peer;           /* jobid OPAL_JOBID_INVALID: a job that does not exist yet */
    unsigned seconds;                   /* so far */
} opal_cryptproc_wait_t;

/* Another second has passed: report a long wait, and end the job after crypt_connect_timeout. */
OPAL_DECLSPEC void opal_cryptproc_wait_tick(opal_cryptproc_wait_t *wait);
/* After an abort that returned because another thread is ending the job: allow that some seconds, then exit. */
OPAL_DECLSPEC void opal_cryptproc_exit_soon(void) __opal_attribute_noreturn__;
/* A condition for wait_second, unaffected by steps of the clock. */
OPAL_DECLSPEC void opal_cryptproc_wait_condition(pthread_cond_t *condition);
/* False: a second has passed. */
OPAL_DECLSPEC bool opal_cryptproc_wait_second(pthread_cond_t *condition, pthread_mutex_t *lock);

/* End the job, after a text. */
OPAL_DECLSPEC void opal_cryptproc_end(void) __opal_attribute_noreturn__;

/* Set by upper layers, which can do more; NULL: not set. */
/* End the job, instead of through the runtime.  May return, if another thread is doing it already. */
extern OPAL_DECLSPEC void (*opal_cryptproc_end_job)(void);
/* With fault tolerance: is this process known to have failed?  Then the requests that involve it have returned. */
extern OPAL_DECLSPEC bool (*opal_cryptproc_has_failed)(opal_proc_t *proc);
/* Show that we wait while wait(argument) runs; must call it once. */
extern OPAL_DECLSPEC void (*opal_cryptproc_show_wait)(const opal_process_name_t *peer, const char *awaited,
                                                      void (*wait)(void *argument), void *argument);
/* Called once a second during a wait, when no other thread makes progress, and by hook/crypt when MPI_Init ends. */
extern OPAL_DECLSPEC void (*opal_cryptproc_still_here)(void);

/* ---- help texts ---- */

/* For what one process alone may have to report: show an entry of a help file on standard error. */
OPAL_DECLSPEC void opal_cryptproc_show_here(const char *file, const char *topic, ...);
OPAL_DECLSPEC void opal_cryptproc_vshow_here(const char *file, const char *topic, va_list list);

/* The detail of an error that may concern one node only: "on node1: pre-shared key ...". */
enum { OPAL_CRYPTPROC_ON_NODE_BYTES = 1200 };
OPAL_DECLSPEC const char *opal_cryptproc_on_node(const char *detail, char text[OPAL_CRYPTPROC_ON_NODE_BYTES]);

/* For what many processes may report: only the first of a node shows it.  False: another one has.  `name` identifies
 * the message; by default the topic. */
OPAL_DECLSPEC bool opal_cryptproc_show_once(const char *file, const char *topic, ...);
OPAL_DECLSPEC bool opal_cryptproc_vshow_once(const char *name, const char *file, const char *topic, va_list list);

/* The first process shows it itself, the others through Open MPI, which counts them. */
#define OPAL_CRYPTPROC_SHOW(file, topic, ...)                   \
    do {                                                        \
        if (!opal_cryptproc_show_once(file, topic, ##__VA_ARGS__)) { \
            OPAL_CRYPTPROC_COUNT(file, topic, ##__VA_ARGS__);   \
        }                                                       \
    } while (0)

/* For what a process may report many times: Open MPI counts them all. */
#define OPAL_CRYPTPROC_COUNT(file, topic, ...)              \
    do {                                                    \
        opal_cryptproc_show_begin();                        \
        OPAL_AEAD_BASE_HELP(file, topic, ##__VA_ARGS__);    \
        opal_cryptproc_show_end();                          \
    } while (0)

/* Around any use of Open MPI's help files. */
OPAL_DECLSPEC void opal_cryptproc_show_begin(void);
OPAL_DECLSPEC void opal_cryptproc_show_end(void);

/* ---- verbose streams ---- */

/* Levels.  The last prints a line per message. */
enum {
    OPAL_CRYPTPROC_SAY_PEERS = 10,      /* method, provider, who met whom, refusals, files */
    OPAL_CRYPTPROC_SAY_CHOICES = 20,    /* epochs; the algorithm of each collective */
    OPAL_CRYPTPROC_SAY_MESSAGES = 40    /* how each message is sent */
};

/* pml/crypt's stream, to which this library writes too; -1: off. */
extern OPAL_DECLSPEC int opal_cryptproc_stream;

OPAL_DECLSPEC int opal_cryptproc_verbose_open(void);        /* a stream, or -1 */
OPAL_DECLSPEC void opal_cryptproc_verbose_close(int *stream);

END_C_DECLS

#endif

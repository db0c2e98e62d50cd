/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * This process in its job, for whoever encrypts in it: a PML, or a transport that starts before
 * any PML.  OPAL, and no MPI.
 *
 *     parameters --start--> record, published once a life
 *     a peer's name --schedule--> its record, checked; the secrets of the pair
 *
 * Life cycle: register in a component's register function, start in its init, stop in its
 * finalize.  Several components may; the first start makes, the last stop destroys.
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

/* Registers those of params.def, whatever component has them; the first one that does not register is *failed.  Storage
 * gets the default, unless somebody has registered it already.  One: its index, or an error. */
typedef struct {
    const char *name;
    void *storage;      /* char *, int of words, bool, unsigned, size_t or int, as its type says */
} opal_cryptproc_parameter_t;
OPAL_DECLSPEC int opal_cryptproc_register(const opal_cryptproc_parameter_t *list, size_t count, const char **failed);
OPAL_DECLSPEC int opal_cryptproc_register_one(const char *name, void *storage);

/* With them the MPI_T variables of category crypt. */
OPAL_DECLSPEC int opal_cryptproc_params_register(void);

/* Was crypt_report set? */
OPAL_DECLSPEC bool opal_cryptproc_report_wanted(void);

/* ---- life ---- */

/* Choose the provider, make the record, publish it; where that was done in this life, no more.
 * `agreed` is the text of the caller's own parameters that both sides must share
 * ("name=value;..."), or NULL.  Says itself what went wrong, but for one thing: the text is in the
 * record, so who starts later with another one gets OPAL_ERR_BAD_PARAM, and must not go on. */
OPAL_DECLSPEC int opal_cryptproc_start(const char *agreed);
/* The same for a transport, with what its peers need to know (at most OPAL_CRYPT_TRANSPORT_MAX bytes): an extension
 * of the record, so OPAL_ERR_BAD_PARAM if that is out.  Peers find it in opal_crypt_schedule_peer. */
OPAL_DECLSPEC int opal_cryptproc_start_transport(const char *agreed, const uint8_t *transport, size_t bytes);
/* Starts a transport that pml/crypt is to decide about: set where one was opened, and waits.  Before the exchange of what
 * processes publish.  Says itself what went wrong. */
extern OPAL_DECLSPEC bool (*opal_cryptproc_transport_go)(void);
/* Does one run in this process?  Then all that leaves the node is sealed by it. */
OPAL_DECLSPEC bool opal_cryptproc_has_transport(void);
/* What it says of itself for a report, its to keep ("TLS 1.3 ..."), and with how many processes it has been connected. */
extern OPAL_DECLSPEC const char *opal_cryptproc_transport_is;
extern OPAL_DECLSPEC const char *opal_cryptproc_transport_keys;     /* the ways to agree on them that it may use */
extern OPAL_DECLSPEC uint64_t opal_cryptproc_transport_peers;
extern OPAL_DECLSPEC uint64_t opal_cryptproc_transport_pq_peers;    /* of those by X25519MLKEM768 */
extern OPAL_DECLSPEC uint64_t opal_cryptproc_transport_kernel_peers;    /* sealed or opened by the kernel */
/* For status pages: what it knows of its peers, one by one, with what they are waited for, or NULL.  False: not now, another
 * thread is at it. */
typedef void (*opal_cryptproc_peer_visit_t)(const opal_crypt_status_peer_t *peer, const opal_crypt_status_wait_t *wait,
                                            void *context);
extern OPAL_DECLSPEC bool (*opal_cryptproc_transport_look)(int64_t now, opal_cryptproc_peer_visit_t visit, void *context);
/* params.options.cipher, of what the user chose; start does it, and who needs it before.  Says itself what is wrong. */
OPAL_DECLSPEC int opal_cryptproc_choose_cipher(void);
/* Once for each start that succeeded. */
OPAL_DECLSPEC void opal_cryptproc_stop(void);

/* How our record names us, after start. */
OPAL_DECLSPEC void opal_cryptproc_own(opal_crypt_identity_t *identity);

/* Our key pair and record; NULL before start and after stop. */
OPAL_DECLSPEC opal_crypt_local_t *opal_cryptproc_local(void);

/* The provider of encryption (cryptproc_provider.c): chosen in start, or when something
 * is first to be sealed, for which this asks.  Says itself what went wrong, once;
 * nothing can be sealed then. */
OPAL_DECLSPEC int opal_cryptproc_provider_needed(void);

/* False in a build whose messages are NOT encrypted (cryptproc_plaintext.c). */
OPAL_DECLSPEC bool opal_cryptproc_encrypts(void);

/* ---- events of MPI_T ---- */

/* For tools that listen, where Open MPI has events: one has happened, with its numbers (cryptproc_event.c). Who calls
 * it is a thread of MPI's, and may hold locks of ours. */
typedef enum { OPAL_CRYPTPROC_REFUSED, OPAL_CRYPTPROC_REKEYED, OPAL_CRYPTPROC_AUDITED, OPAL_CRYPTPROC_EVENTS } opal_cryptproc_event_t;
OPAL_DECLSPEC void opal_cryptproc_happened(opal_cryptproc_event_t what, int first, int second, int third);

/* Something could bypass encryption, and crypt_audit=warn lets it: the event, with how many there were. */
OPAL_DECLSPEC void opal_cryptproc_found(void);

/* ---- shared memory ---- */

/* From here on Open MPI's shared memory is judged (cryptproc_shared.c), and what it has already.  Before the first BTL starts,
 * where that can be.  Stopped once for each start. */
OPAL_DECLSPEC void opal_cryptproc_shared_start(void);
OPAL_DECLSPEC void opal_cryptproc_shared_stop(void);

/* ---- parameters of others ---- */

/* What is read before whoever has it registers it: it is registered for a moment.  After an
 * early MPI_T_init_thread it is there already, and stays: its framework would not register it again, and go
 * on as if it had never been set. */
typedef struct opal_cryptproc_peek {
    const char *project, *framework, *component, *name, *help;
    mca_base_var_type_t type;
    mca_base_var_flag_t flags;
    mca_base_var_info_lvl_t level;
    mca_base_var_scope_t scope;
    /* out */
    int index;                              /* below 0: it cannot be read */
    bool there;                             /* registered by somebody else */
    mca_base_var_source_t source;
    const void *value;                      /* until peek_end */
} opal_cryptproc_peek_t;

/* `storage` holds the default, and has to last until peek_end. */
OPAL_DECLSPEC void opal_cryptproc_peek(opal_cryptproc_peek_t *peek, void *storage);
OPAL_DECLSPEC void opal_cryptproc_peek_end(opal_cryptproc_peek_t *peek);

/* What `--mca FRAMEWORK` says, or a file: to be freed; "" if nothing does, NULL: it cannot be read. */
OPAL_DECLSPEC char *opal_cryptproc_selection(const char *project, const char *framework);

/* Have Open MPI read `value` in this variable of the environment, until all is given back as it was: for children of this
 * process and for later lives of MPI.  By one thread.  False: no memory. */
OPAL_DECLSPEC bool opal_cryptproc_lend(const char *variable, const char *value);
OPAL_DECLSPEC void opal_cryptproc_give_back(void);

/* Will that framework of ompi open a component that is there? */
OPAL_DECLSPEC bool opal_cryptproc_opens(const char *framework, const char *name, bool must_be_named);

/* ---- peers ---- */

/* Fetch the record of a process, which came to be needed at `met` (0: when we
 * started), check that it speaks for this process, agree on keys.  OPAL_CRYPT_OK, or the reason in
 * `why`, for help-opal-common-crypt.txt.  May block on the runtime; by one thread at a time. */
OPAL_DECLSPEC int opal_cryptproc_schedule(const opal_process_name_t *name, int64_t met,
                                          opal_crypt_schedule_t **schedule, opal_crypt_why_t *why);

/* The same for a process that may not be who it says, without waiting: begin, go until it is over, end. */
typedef struct opal_cryptproc_search opal_cryptproc_search_t;
OPAL_DECLSPEC opal_cryptproc_search_t *opal_cryptproc_search_begin(const opal_process_name_t *name, int64_t met);  /* NULL: no memory */
/* False: an answer of the runtime is awaited.  True: it is over, *rc and the others are as above. */
OPAL_DECLSPEC bool opal_cryptproc_search_go(opal_cryptproc_search_t *search, opal_crypt_schedule_t **schedule, int *rc,
                                            opal_crypt_why_t *why);
/* For that answer, but no longer. */
OPAL_DECLSPEC void opal_cryptproc_search_wait(opal_cryptproc_search_t *search, unsigned milliseconds);
OPAL_DECLSPEC void opal_cryptproc_search_end(opal_cryptproc_search_t *search);     /* NULL allowed; over or not */

/* Have our record vouched for again, if that is needed `now`, and publish it. */
OPAL_DECLSPEC int opal_cryptproc_renew(int64_t now);

/* How a job is named to its user, and in records: by PMIx, or by Open MPI's number. */
OPAL_DECLSPEC void opal_cryptproc_job_name(const opal_process_name_t *name, char text[OPAL_CRYPTPROC_NSPACE_BYTES]);

/* What `name` has published under `key`, or NULL; the caller's to free.  Says so when it waits for
 * long (cryptproc_wait.c).  `how`: see compat.  *nobody, which may be NULL: it is known that `name`
 * has published nothing; otherwise NULL may mean that no answer came. */
OPAL_DECLSPEC uint8_t *opal_cryptproc_get(const opal_process_name_t *name, const char *key, opal_cryptproc_how_t how,
                                          const char *awaited, size_t *bytes, bool *nobody);

/* ---- waiting ---- */

typedef struct opal_cryptproc_wait {
    const char *doing, *awaited;        /* "in ...", and what for */
    opal_process_name_t peer;           /* jobid OPAL_JOBID_INVALID: a job that is not there yet */
    unsigned seconds;                   /* so far */
} opal_cryptproc_wait_t;

/* Another second has passed: say so after many, end the job after crypt_connect_timeout. */
OPAL_DECLSPEC void opal_cryptproc_wait_tick(opal_cryptproc_wait_t *wait);
/* Behind an abort, which returns where another thread ends the job: that has some seconds for it. */
OPAL_DECLSPEC void opal_cryptproc_exit_soon(void) __opal_attribute_noreturn__;
/* A condition for wait_second: steps of the clock do not count. */
OPAL_DECLSPEC void opal_cryptproc_wait_condition(pthread_cond_t *condition);
/* False: a second has passed. */
OPAL_DECLSPEC bool opal_cryptproc_wait_second(pthread_cond_t *condition, pthread_mutex_t *lock);

/* End the job, after a text. */
OPAL_DECLSPEC void opal_cryptproc_end(void) __opal_attribute_noreturn__;

/* Set by layers above, which can do more; NULL: by nobody. */
/* End the job.  May return, if another thread does it already.  Instead of the runtime's way. */
extern OPAL_DECLSPEC void (*opal_cryptproc_end_job)(void);
/* With fault tolerance: is this process known to have failed?  Then requests have returned that it had a part in. */
extern OPAL_DECLSPEC bool (*opal_cryptproc_has_failed)(opal_proc_t *proc);
/* Show that we wait, while wait(argument) does, which is to be called once. */
extern OPAL_DECLSPEC void (*opal_cryptproc_show_wait)(const opal_process_name_t *peer, const char *awaited,
                                                      void (*wait)(void *argument), void *argument);
/* Called once a second while it does, when nobody else makes progress, and by hook/crypt when MPI_Init ends. */
extern OPAL_DECLSPEC void (*opal_cryptproc_still_here)(void);

/* ---- help texts ---- */

/* What only this process may have to say: an entry of a help file, on standard error. */
OPAL_DECLSPEC void opal_cryptproc_show_here(const char *file, const char *topic, ...);
OPAL_DECLSPEC void opal_cryptproc_vshow_here(const char *file, const char *topic, va_list list);

/* The detail of a refusal that may be one node's alone: "on node1: pre-shared key ...". */
enum { OPAL_CRYPTPROC_ON_NODE_BYTES = 1200 };
OPAL_DECLSPEC const char *opal_cryptproc_on_node(const char *detail, char text[OPAL_CRYPTPROC_ON_NODE_BYTES]);

/* What many processes may have to say: the first one of a node to come here.  False: another one has
 * said it.  `name`: of what is the same; the topic, otherwise. */
OPAL_DECLSPEC bool opal_cryptproc_show_once(const char *file, const char *topic, ...);
OPAL_DECLSPEC bool opal_cryptproc_vshow_once(const char *name, const char *file, const char *topic, va_list list);

/* The first one says it itself, the others through Open MPI, which counts them. */
#define OPAL_CRYPTPROC_SHOW(file, topic, ...)                   \
    do {                                                        \
        if (!opal_cryptproc_show_once(file, topic, ##__VA_ARGS__)) { \
            OPAL_CRYPTPROC_COUNT(file, topic, ##__VA_ARGS__);   \
        }                                                       \
    } while (0)

/* What a process may have to say many times: Open MPI counts all of them. */
#define OPAL_CRYPTPROC_COUNT(file, topic, ...)              \
    do {                                                    \
        opal_cryptproc_show_begin();                        \
        OPAL_AEAD_BASE_HELP(file, topic, ##__VA_ARGS__);    \
        opal_cryptproc_show_end();                          \
    } while (0)

/* Around whatever reads Open MPI's help files. */
OPAL_DECLSPEC void opal_cryptproc_show_begin(void);
OPAL_DECLSPEC void opal_cryptproc_show_end(void);

/* ---- verbose streams ---- */

/* Levels.  The last is a line a message. */
enum {
    OPAL_CRYPTPROC_SAY_PEERS = 10,      /* method, provider, who met whom, refusals, files */
    OPAL_CRYPTPROC_SAY_CHOICES = 20,    /* epochs; the algorithm of each collective */
    OPAL_CRYPTPROC_SAY_MESSAGES = 40    /* how each message is sent */
};

/* pml/crypt's, which this library writes to, too; -1: nothing is wanted. */
extern OPAL_DECLSPEC int opal_cryptproc_stream;

OPAL_DECLSPEC int opal_cryptproc_verbose_open(void);        /* a stream, or -1 */
OPAL_DECLSPEC void opal_cryptproc_verbose_close(int *stream);

END_C_DECLS

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The addresses of a server.  A name is looked up by a thread of libc, as a name server that does not answer must not outlast
 * the caller's patience.  None of our code runs there: the thread may still wait for an answer when our library is unloaded.
 */
#include "https_context.h"

#include <netdb.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_WAIT_NS = 100000000 };

#ifdef __GLIBC__
#    if __GLIBC_PREREQ(2, 34)           /* an older one has it in a library of its own */
#        define HTTPS_NAME_BY_THREAD 1
#    endif
#endif

#ifdef HTTPS_NAME_BY_THREAD
/* What the thread reads and writes. */
typedef struct https_name {
    struct gaicb request;
    struct addrinfo hints;
    char text[];                        /* host and port */
} https_name_t;

/* EAI_INPROGRESS: not in time.  The request is then the thread's for good: it cannot be told to give it back. */
static int https_name_look_up(const opal_cryptfile_https_to_t *to, const struct addrinfo *hints, opal_crypt_patience_t *patience,
                              struct addrinfo **found)
{
    const struct timespec wait = {.tv_nsec = NAME_WAIT_NS};
    const size_t host_bytes = strlen(to->host) + 1, port_bytes = strlen(to->port) + 1;
    https_name_t *name = calloc(1, sizeof(*name) + host_bytes + port_bytes);

    if (NULL == name) {
        return EAI_MEMORY;
    }
    memcpy(name->text, to->host, host_bytes);
    memcpy(name->text + host_bytes, to->port, port_bytes);
    name->hints = *hints;
    name->request = (struct gaicb){.ar_name = name->text, .ar_service = name->text + host_bytes, .ar_request = &name->hints};
    struct gaicb *list[] = {&name->request};
    int error = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
    if (0 == error) {
        while (EAI_INPROGRESS == gai_error(&name->request) && opal_crypt_patience_left(patience) > 0) {
            (void) gai_suspend((const struct gaicb *const *) list, 1, &wait);
        }
        while (EAI_NOTCANCELED == gai_cancel(&name->request)) {         /* until the thread has let go of a request with an answer */
            if (EAI_INPROGRESS == gai_error(&name->request)) {
                return EAI_INPROGRESS;
            }
            sched_yield();
        }
        error = gai_error(&name->request);
        *found = 0 == error ? name->request.ar_result : NULL;
    }
    free(name);
    return EAI_CANCELED == error ? EAI_INPROGRESS : error;
}
#else
/* Bounded by the limits of resolv.conf alone. */
static int https_name_look_up(const opal_cryptfile_https_to_t *to, const struct addrinfo *hints, opal_crypt_patience_t *patience,
                              struct addrinfo **found)
{
    (void) patience;
    return getaddrinfo(to->host, to->port, hints, found);
}
#endif

int opal_cryptfile_https_find(const opal_cryptfile_https_to_t *to, opal_crypt_patience_t *patience, struct addrinfo **found,
                              opal_crypt_why_t *why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST};

    *found = NULL;
    if (0 == getaddrinfo(to->host, to->port, &hints, found)) {          /* an address needs neither a server nor a thread */
        return OPAL_CRYPT_OK;
    }
    hints.ai_flags = AI_NUMERICSERV;
    const int error = https_name_look_up(to, &hints, patience, found);
    return 0 == error ? OPAL_CRYPT_OK
           : EAI_INPROGRESS == error
               ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "keystore-vault", "its name is not found: no name server answered in time")
               : opal_crypt_refuse(why, EAI_AGAIN == error ? OPAL_CRYPT_ERR_PEER : OPAL_CRYPT_ERR_CONFIG, "keystore-vault",
                                   "its name is not found: %s", gai_strerror(error));
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which calls of this process block, for whoever looks from outside.  The list lies on the
 * stacks of those who wait.  With one thread, entering and leaving are stores (cryptmpi.h); with
 * several they are done here, under a lock, in any order.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"

ompi_common_cryptmpi_inside_t *ompi_common_cryptmpi_innermost;
void (*ompi_common_cryptmpi_still_here)(void);
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

void ompi_common_cryptmpi_inside_threaded(ompi_common_cryptmpi_inside_t *inside, bool enter)
{
    ompi_common_cryptmpi_inside_t **place = &ompi_common_cryptmpi_innermost;

    pthread_mutex_lock(&list_lock);
    if (enter) {
        inside->outer = *place;
        *place = inside;
    } else {
        while (NULL != *place && inside != *place) {
            place = &(*place)->outer;
        }
        if (NULL != *place) {
            *place = inside->outer;
        }
    }
    pthread_mutex_unlock(&list_lock);
}

void ompi_common_cryptmpi_insides_look(void (*look)(ompi_common_cryptmpi_inside_t *inside, void *context), void *context)
{
    pthread_mutex_lock(&list_lock);
    for (ompi_common_cryptmpi_inside_t *i = ompi_common_cryptmpi_innermost; NULL != i; i = i->outer) {
        look(i, context);
    }
    pthread_mutex_unlock(&list_lock);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keystores of the files that are open.  One keystore serves one call at a time, so threads would wait for each
 * other; each open file has its own, and the next file gets it after that.  A token is opened once, as it
 * counts who is logged in, and so is a key server, for one login; all files share it.
 */
#include <pthread.h>
#include <stdlib.h>

#include "crew.h"
#include "file.h"

enum { KEYSTORES = 2 * MPICRYPT_FILE_THREADS_MAX };     /* a thread may have two files open */

static struct {
    opal_cryptfile_keystore_t *keystore;        /* NULL: not opened yet */
    bool taken;
} keystores[KEYSTORES];
static pthread_mutex_t keystores_lock = PTHREAD_MUTEX_INITIALIZER;
static int first_opened = MPICRYPT_OK;          /* if the first cannot be opened, no other is tried */

/* Under the lock. */
static int take_or_open(const mpicrypt_file_choices_t *options, size_t number, opal_cryptfile_keystore_t **keystore)
{
    if (NULL == keystores[number].keystore) {
        int code = mpicrypt_keystore_open(&options->keystore, &keystores[number].keystore);
        if (MPICRYPT_OK != code) {
            keystores[number].keystore = NULL;
            first_opened = 0 == number ? code : first_opened;
            return code;
        }
    }
    keystores[number].taken = true;
    *keystore = keystores[number].keystore;
    return MPICRYPT_OK;
}

int mpicrypt_file_keystore(const mpicrypt_file_choices_t *options, opal_cryptfile_keystore_t **keystore)
{
    size_t number = 0;

    *keystore = NULL;
    pthread_mutex_lock(&keystores_lock);
    int code = first_opened;
    if (!mpicrypt_keystore_shared(&options->keystore)) {
        while (number < KEYSTORES - 1 && keystores[number].taken) {
            ++number;
        }
    }
    code = MPICRYPT_OK == code ? take_or_open(options, number, keystore) : code;
    pthread_mutex_unlock(&keystores_lock);
    return code;
}

void mpicrypt_file_keystore_give(opal_cryptfile_keystore_t *keystore)
{
    pthread_mutex_lock(&keystores_lock);
    for (size_t i = 0; NULL != keystore && i < KEYSTORES; ++i) {
        keystores[i].taken = keystores[i].taken && keystores[i].keystore != keystore;
    }
    pthread_mutex_unlock(&keystores_lock);
}

void mpicrypt_file_keystores_close(void)
{
    for (size_t i = 0; i < KEYSTORES; ++i) {
        opal_cryptfile_keystore_close(keystores[i].keystore);
        keystores[i].keystore = NULL;
    }
}

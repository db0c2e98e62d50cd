/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Preloaded into the processes of a job: writes down what each derives, for second.py.  The key schedule is one function
 * of libcrypto, EVP_KDF_derive, which stands here before that of the library.  A line for each call:
 *
 *     extract SALT KEY OUT        expand KEY INFO OUT         in hexadecimal digits, "-" for none
 *
 * to a file of this process in the directory that SECOND_KEYS names.  The product has no such path (shell/symbols).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#define FIELD 2048

static bool octets_of(char text[FIELD], const OSSL_PARAM params[], const char *name)
{
    const OSSL_PARAM *param = OSSL_PARAM_locate_const(params, name);
    const void *bytes = NULL;
    size_t count = 0;

    strcpy(text, "-");
    if (NULL == param) {
        return true;
    }
    if (1 != OSSL_PARAM_get_octet_string_ptr(param, &bytes, &count) || 2 * count >= FIELD) {
        return false;
    }
    for (size_t i = 0; i < count; ++i) {
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *) bytes)[i]);
    }
    return true;
}

static void note_derivation(const OSSL_PARAM params[], const unsigned char *out, size_t bytes)
{
    const OSSL_PARAM *how = OSSL_PARAM_locate_const(params, OSSL_KDF_PARAM_MODE);
    const char *directory = getenv("SECOND_KEYS");
    char path[4096], host[256] = "", key[FIELD], other[FIELD], line[3 * FIELD + 16], *at;
    int mode = -1, fd;

    if (NULL == how || 1 != OSSL_PARAM_get_int(how, &mode)) {
        return;                                 /* another function than HKDF */
    }
    const bool extract = EVP_KDF_HKDF_MODE_EXTRACT_ONLY == mode;
    if (NULL == directory || 2 * bytes >= FIELD || 0 != gethostname(host, sizeof(host) - 1)
        || !octets_of(key, params, OSSL_KDF_PARAM_KEY)
        || !octets_of(other, params, extract ? OSSL_KDF_PARAM_SALT : OSSL_KDF_PARAM_INFO)) {
        abort();
    }
    at = line + sprintf(line, "%s %s %s ", extract ? "extract" : "expand", extract ? other : key, extract ? key : other);
    for (size_t i = 0; i < bytes; ++i) {
        at += sprintf(at, "%02x", out[i]);
    }
    *at++ = '\n';
    snprintf(path, sizeof(path), "%s/%s.%ld", directory, host, (long) getpid());
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || at - line != write(fd, line, (size_t) (at - line)) || 0 != close(fd)) {
        abort();
    }
}

int EVP_KDF_derive(EVP_KDF_CTX *context, unsigned char *out, size_t bytes, const OSSL_PARAM params[])
{
    int (*derive)(EVP_KDF_CTX *, unsigned char *, size_t, const OSSL_PARAM[]);

    *(void **) &derive = dlsym(RTLD_NEXT, "EVP_KDF_derive");
    const int rc = derive(context, out, bytes, params);
    if (1 == rc && NULL != params) {
        note_derivation(params, out, bytes);
    }
    return rc;
}

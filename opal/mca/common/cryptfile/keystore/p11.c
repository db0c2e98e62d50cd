/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A login session with a PKCS#11 token.  See cryptfile/keystore/p11.h.
 */
#include "p11.h"

#ifdef OMPI_CRYPT_HAVE_PKCS11

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/secmem.h"

enum { SLOTS = 64 };

typedef opal_cryptfile_p11_t token_t;

int opal_cryptfile_p11_refuse(opal_crypt_why_t *why, const char *what, CK_RV rv)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%.512s: 0x%lx", what,
                             (unsigned long) rv);
}

/* ---- open and close ---- */

static int load_library(token_t *token, const char *path, opal_crypt_why_t *why)
{
    CK_C_INITIALIZE_ARGS threads = {.flags = CKF_OS_LOCKING_OK};

    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (NULL == library) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%.512s", dlerror());
    }
    CK_C_GetFunctionList get = NULL;
    *(void **) &get = dlsym(library, "C_GetFunctionList");
    if (NULL == get || CKR_OK != get(&token->call)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "%.512s: not a PKCS#11 module", path);
    }
    CK_RV rv = token->call->C_Initialize(&threads);
    if (CKR_OK != rv && CKR_CRYPTOKI_ALREADY_INITIALIZED != rv) {
        return opal_cryptfile_p11_refuse(why, "C_Initialize", rv);
    }
    return OPAL_CRYPT_OK;
}

/* Token labels are padded with spaces to 32. */
static bool label_is(const CK_TOKEN_INFO *info, const char *label)
{
    size_t bytes = strlen(label);

    if (bytes > sizeof(info->label) || 0 != memcmp(info->label, label, bytes)) {
        return false;
    }
    for (; bytes < sizeof(info->label); ++bytes) {
        if (' ' != info->label[bytes]) {
            return false;
        }
    }
    return true;
}

static int find_slot(token_t *token, const char *label, CK_SLOT_ID *slot, opal_crypt_why_t *why)
{
    CK_SLOT_ID slots[SLOTS];
    CK_ULONG count = SLOTS;
    CK_TOKEN_INFO info;
    CK_RV rv = token->call->C_GetSlotList(CK_TRUE, slots, &count);

    if (CKR_OK != rv) {
        return opal_cryptfile_p11_refuse(why, "C_GetSlotList", rv);
    }
    for (CK_ULONG i = 0; i < count; ++i) {
        if (CKR_OK == token->call->C_GetTokenInfo(slots[i], &info) && label_is(&info, label)) {
            *slot = slots[i];
            return OPAL_CRYPT_OK;
        }
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11", "there is no token %.64s", label);
}

static int login(token_t *token, CK_SLOT_ID slot, const opal_cryptfile_keystore_options_t *options,
                 opal_crypt_why_t *why)
{
    opal_crypt_secret_file_t pin;
    int rc = opal_crypt_secret_file_read(options->pkcs11_pin_file, "PIN", 1, 256, options->secret_on_netfs,
                                         &pin, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    CK_RV rv = token->call->C_OpenSession(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &token->session);
    token->in_session = CKR_OK == rv;
    if (token->in_session) {
        size_t bytes = pin.count - ('\n' == pin.bytes[pin.count - 1]);
        rv = token->call->C_Login(token->session, CKU_USER, pin.bytes, bytes);
    }
    opal_crypt_secmem_free(pin.bytes);
    return CKR_OK == rv || CKR_USER_ALREADY_LOGGED_IN == rv ? OPAL_CRYPT_OK
                                                            : opal_cryptfile_p11_refuse(why, "C_Login", rv);
}

/* Close only our session.  The login and the initialized module are shared by the whole
 * process: the application may use either by now.  With the last session, the token logs
 * out by itself. */
void opal_cryptfile_p11_close(opal_cryptfile_p11_t *token)
{
    if (NULL != token && token->in_session) {
        token->call->C_CloseSession(token->session);
    }
    free(token);
}

int opal_cryptfile_p11_open(const opal_cryptfile_keystore_options_t *options,
                            opal_cryptfile_p11_t **made, opal_crypt_why_t *why)
{
    CK_SLOT_ID slot;

    *made = NULL;
    if (NULL == options->pkcs11_module || NULL == options->pkcs11_token || NULL == options->pkcs11_pin_file) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-pkcs11",
                                 "module, token and PIN file must all be named");
    }
    token_t *token = calloc(1, sizeof(*token));
    if (NULL == token) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    int rc = load_library(token, options->pkcs11_module, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = find_slot(token, options->pkcs11_token, &slot, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = login(token, slot, options, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_cryptfile_p11_close(token);
        return rc;
    }
    *made = token;
    return OPAL_CRYPT_OK;
}

/* ---- objects ---- */

int opal_cryptfile_p11_find(opal_cryptfile_p11_t *token, CK_ATTRIBUTE *attributes, CK_ULONG count,
                            CK_OBJECT_HANDLE *handles, CK_ULONG max, CK_ULONG *found,
                            opal_crypt_why_t *why)
{
    CK_RV rv = token->call->C_FindObjectsInit(token->session, attributes, count);

    *found = 0;
    while (CKR_OK == rv && *found < max) {
        CK_ULONG more = 0;
        rv = token->call->C_FindObjects(token->session, handles + *found, max - *found, &more);
        if (0 == more) {
            break;
        }
        *found += more;
    }
    token->call->C_FindObjectsFinal(token->session);
    return CKR_OK == rv ? OPAL_CRYPT_OK : opal_cryptfile_p11_refuse(why, "C_FindObjects", rv);
}

#endif

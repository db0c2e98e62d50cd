/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The base of the aead framework.
 */
#ifndef OPAL_AEAD_BASE_H
#define OPAL_AEAD_BASE_H

#include "opal/mca/aead/aead.h"
#include "opal/mca/aead/aead_version.h"
#include "opal/mca/aead/base/aead_base_choose.h"

BEGIN_C_DECLS

/* Opening succeeds even if no provider can be used: select gives the reason. */
OPAL_DECLSPEC extern mca_base_framework_t opal_aead_base_framework;

/* The provider for `cipher`, from the components that the open framework has.  `wanted` NULL: as --mca aead says; a
 * name there limits what was loaded.  OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with the reason in `why`; a success may
 * come with a warning there (why->topic is not NULL). */
OPAL_DECLSPEC int opal_aead_base_select(const char *wanted, opal_aead_cipher_t cipher, bool fips,
                                        const opal_aead_module_t **module, opal_aead_why_t *why);

/* Open the framework and select as --mca aead says.  If that is `auto`, providers are loaded only until one is
 * usable.  In any case the framework is open afterwards, unless opening it failed. */
OPAL_DECLSPEC int opal_aead_base_open_and_select(opal_aead_cipher_t cipher, bool fips,
                                                 const opal_aead_module_t **module, opal_aead_why_t *why);

/* Before the framework is open: may open_and_select wait until the provider is needed?  Yes if `auto` begins with one
 * that brings its own library.  Not if the user named or excluded one, and wants to know at once whether it is usable;
 * not with `fips`; and not if openssl comes first, which keeps keys out of core files best if it is loaded before
 * libcrypto is used. */
OPAL_DECLSPEC bool opal_aead_base_may_wait(opal_aead_cipher_t cipher, bool fips);

/* Show `why` from help-opal-aead-base.txt; nothing if its topic is NULL. */
OPAL_DECLSPEC void opal_aead_base_show(const opal_aead_why_t *why);

/* The names of all installed providers, loaded or not, as text. */
OPAL_DECLSPEC void opal_aead_base_installed(char *list, size_t size);

/* The first installed provider that `auto` would try, NULL if none of the usual ones is.  Used by the framework's own
 * files. */
const char *opal_aead_base_first_installed(void);

/* The value of --mca aead; NULL: not set.  Used by the framework's own files. */
extern const char *opal_aead_base_wanted;

/* For `auto`, how many of those tried first does opening the framework load?  0: all. */
enum { OPAL_AEAD_BASE_FIRST_MOST = 2 };
extern size_t opal_aead_base_first;

/* The series guard.  `built` is OPAL_AEAD_BUILT as `component` was compiled: does it have this library's version of
 * ompi-crypt?  Does `running`, the version string of a library in this process, belong to the series (MAJOR.MINOR) of
 * its Open MPI headers?  If not, show why and return OPAL_ERR_NOT_SUPPORTED; the component must then not be used, as
 * the structs of another version or series have other layouts.  Callers use the macro. */
OPAL_DECLSPEC int opal_aead_base_series(const char *component, const char *built, const char *running);

#define OPAL_AEAD_BUILT OPAL_CRYPT_BUILT OPAL_IDENT_STRING

/* First statement of every component's register function. */
#define OPAL_AEAD_SERIES_OK(component) \
    (OPAL_SUCCESS == opal_aead_base_series((component), OPAL_AEAD_BUILT, opal_version_string))

END_C_DECLS

#endif

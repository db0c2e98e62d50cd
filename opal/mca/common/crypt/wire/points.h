/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Numbers are read and written with decimal points, whatever the program's locale:
 *
 *     locale_t before = opal_crypt_points();  ...  opal_crypt_points_end(before);
 */
#ifndef OPAL_CRYPT_POINTS_H
#define OPAL_CRYPT_POINTS_H

#include <locale.h>

static inline locale_t opal_crypt_points(void)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t) 0);

    return (locale_t) 0 == plain ? (locale_t) 0 : uselocale(plain);
}

static inline void opal_crypt_points_end(locale_t before)
{
    if ((locale_t) 0 != before) {
        freelocale(uselocale(before));
    }
}

#endif

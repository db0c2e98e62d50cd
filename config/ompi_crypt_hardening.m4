dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl OMPI_CRYPT_HARDENING: what compiler and linker have against faults in memory, as far as they have it.
dnl It stands before the user's own flags, so that those win.

dnl OMPI_CRYPT_HARDEN(compiler flags, linker flags, [condition for the preprocessor]): keep them if a program
dnl links with them, without a warning.
AC_DEFUN([OMPI_CRYPT_HARDEN], [
    AC_MSG_CHECKING([whether m4_normalize([$1 $2]) works])
    ompi_crypt_save_CFLAGS=$CFLAGS
    ompi_crypt_save_LDFLAGS=$LDFLAGS
    CFLAGS="$1 $CFLAGS -Werror"
    LDFLAGS="$2 $LDFLAGS"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <stdlib.h>
#if !($3 + 0)
#error not here
#endif
int main(void)
{
    return NULL == getenv("PATH");
}]])],
        [AC_MSG_RESULT([yes])
         ompi_crypt_harden_compiler="$ompi_crypt_harden_compiler $1"
         ompi_crypt_harden_linker="$ompi_crypt_harden_linker $2"
         ompi_crypt_hardened=yes],
        [AC_MSG_RESULT([no])
         ompi_crypt_hardened=no])
    CFLAGS=$ompi_crypt_save_CFLAGS
    LDFLAGS=$ompi_crypt_save_LDFLAGS
])

dnl Checks in the functions of the C library.  They need an optimizer, sanitizers have their own, and a
dnl level that the user names stays.  -U: some compilers define it themselves.
AC_DEFUN([OMPI_CRYPT_FORTIFY], [
    AS_CASE(["$CPPFLAGS $CFLAGS;$enable_asan$enable_ubsan$enable_tsan"],
            [*_FORTIFY_SOURCE*|*\;*yes*], [],
            [OMPI_CRYPT_HARDEN([-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3], [], [defined(__OPTIMIZE__) && __USE_FORTIFY_LEVEL >= 3])
             AS_IF([test $ompi_crypt_hardened = no],
                   [OMPI_CRYPT_HARDEN([-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2], [],
                                      [defined(__OPTIMIZE__) && __USE_FORTIFY_LEVEL >= 2])])])
])

AC_DEFUN([OMPI_CRYPT_HARDENING], [
    AC_ARG_ENABLE([hardening], [AS_HELP_STRING([--disable-hardening],
        [none of the compiler's and linker's protection against faults in memory])])
    ompi_crypt_harden_compiler=
    ompi_crypt_harden_linker=
    AS_IF([test "x$enable_hardening" != xno], [
        OMPI_CRYPT_HARDEN([-Wformat -Wformat-security], [], [1])
        OMPI_CRYPT_HARDEN([-fstack-protector-strong], [], [1])
        OMPI_CRYPT_HARDEN([-fstack-clash-protection], [], [1])
        AS_CASE([$host_cpu],
                [x86_64|i?86], [OMPI_CRYPT_HARDEN([-fcf-protection], [], [1])],
                [aarch64],     [OMPI_CRYPT_HARDEN([-mbranch-protection=standard], [], [1])])
        OMPI_CRYPT_HARDEN([], [-Wl,-z,relro], [1])
        OMPI_CRYPT_HARDEN([], [-Wl,-z,noexecstack], [1])
        OMPI_CRYPT_FORTIFY
        CFLAGS="$ompi_crypt_harden_compiler $CFLAGS"
        CXXFLAGS="$ompi_crypt_harden_compiler $CXXFLAGS"
        LDFLAGS="$ompi_crypt_harden_linker $LDFLAGS"
    ], [ompi_crypt_switches="$ompi_crypt_switches without-hardening"])
])

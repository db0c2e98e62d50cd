dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl Compiler and linker flags.  As in Open MPI they go into CFLAGS, CPPFLAGS and
dnl LDFLAGS, so that a Makefile.am of a component needs none of its own.

dnl OMPI_CRYPT_TRY_FLAGS(what, compiler flags, linker flags): keep them when a
dnl program can be compiled AND linked with them, else stop.  Those that begin
dnl with -f and -g are for C++ too.
AC_DEFUN([OMPI_CRYPT_TRY_FLAGS], [
    ompi_crypt_save_CFLAGS=$CFLAGS
    ompi_crypt_save_LDFLAGS=$LDFLAGS
    CFLAGS="$CFLAGS $2"
    LDFLAGS="$LDFLAGS $3"
    AC_MSG_CHECKING([whether $1 links])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdlib.h>]], [[return NULL == getenv("PATH");]])],
                   [AC_MSG_RESULT([yes])],
                   [AC_MSG_RESULT([no])
                    AC_MSG_ERROR([the compiler cannot link with $1 ($2 $3)])])
    for ompi_crypt_flag in $2; do
        AS_CASE([$ompi_crypt_flag], [-f*|-g], [CXXFLAGS="$CXXFLAGS $ompi_crypt_flag"])
    done
])

AC_DEFUN([OMPI_CRYPT_SWITCH], [
    AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2])], [],
                  [m4_translit([enable_$1], [-], [_])=no])
    AS_IF([test "x$m4_translit([enable_$1], [-], [_])" = xyes], [ompi_crypt_switches="$ompi_crypt_switches $1"])
])

dnl OMPI_CRYPT_LTO: link-time optimization of C with GCC (docs/design/001-build.rst says
dnl what for).  The objects are fat so that any ar, nm and ranlib will do.  C++ has none: its
dnl compiler may be another one, or another version, and it is one file.
AC_DEFUN([OMPI_CRYPT_LTO], [
    AC_ARG_ENABLE([lto], [AS_HELP_STRING([--disable-lto],
                                         [no link-time optimization (default: with GCC, but no sanitizer)])])
    ompi_crypt_lto_asked=$enable_lto
    AS_CASE([$enable_asan$enable_ubsan$enable_tsan], [*yes*], [enable_lto=no])
    AS_CASE([" $CFLAGS "], [*" -fno-lto "*], [enable_lto=no])
    AS_IF([test "x$enable_lto" != xno], [
        ompi_crypt_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS -flto=auto -ffat-lto-objects -fno-semantic-interposition -fno-plt"
        AC_MSG_CHECKING([whether link-time optimization works])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#if !defined(__GNUC__) || defined(__clang__)
#error not GCC
#endif
#include <stdlib.h>]], [[return NULL == getenv("PATH");]])],
                       [AC_MSG_RESULT([yes])],
                       [AC_MSG_RESULT([no])
                        enable_lto=no
                        CFLAGS=$ompi_crypt_save_CFLAGS])
    ])
    AS_IF([test "x$ompi_crypt_lto_asked$enable_lto" = xyesno],
          [AC_MSG_ERROR([--enable-lto needs GCC 10 or later, no sanitizer, and no -fno-lto in CFLAGS])])
])

AC_DEFUN([OMPI_CRYPT_FLAGS], [
    OMPI_CRYPT_SWITCH([asan], [build with AddressSanitizer])
    OMPI_CRYPT_SWITCH([ubsan], [build with UndefinedBehaviorSanitizer])
    OMPI_CRYPT_SWITCH([tsan], [build with ThreadSanitizer])
    OMPI_CRYPT_SWITCH([record], [test builds: abort when a (key, nonce) pair seals twice, allow short epochs])
    OMPI_CRYPT_SWITCH([no-crypto], [builds that measure: messages are NOT encrypted])
    OMPI_CRYPT_SWITCH([werror], [turn warnings into errors])
    AS_IF([test "x$enable_asan$enable_tsan" = xyesyes],
          [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])

    OMPI_CRYPT_HARDENING

    dnl -z now: a component that lacks a symbol is refused when it is loaded, and does not end a job later.
    dnl -mcx16: opal's 128-bit compare-and-swap stays undefined without it.
    OMPI_CRYPT_TRY_FLAGS([what every component needs],
        [-std=gnu11 -Wall -Wextra -Wshadow -fvisibility=hidden -fno-strict-aliasing],
        [-Wl,-z,now])
    AS_CASE([$host_cpu], [x86_64], [OMPI_CRYPT_TRY_FLAGS([-mcx16], [-mcx16], [])])

    AS_IF([test "x$enable_asan" = xyes],
          [OMPI_CRYPT_TRY_FLAGS([--enable-asan], [-fsanitize=address -fno-omit-frame-pointer -g],
                                [-fsanitize=address])])
    AS_IF([test "x$enable_ubsan" = xyes],
          [OMPI_CRYPT_TRY_FLAGS([--enable-ubsan],
                                [-fsanitize=undefined -fno-sanitize-recover=undefined -g],
                                [-fsanitize=undefined])])
    AS_IF([test "x$enable_tsan" = xyes],
          [OMPI_CRYPT_TRY_FLAGS([--enable-tsan], [-fsanitize=thread -g], [-fsanitize=thread])])

    OMPI_CRYPT_LTO

    AS_IF([test "x$enable_record" = xyes], [CPPFLAGS="$CPPFLAGS -DOPAL_CRYPT_TEST_RECORD"])
    AS_IF([test "x$enable_no_crypto" = xyes], [CPPFLAGS="$CPPFLAGS -DOPAL_CRYPT_TEST_NO_CRYPTO"])

    dnl A sanitizer's runtime belongs to the program, its symbols are undefined
    dnl in a shared object.
    AS_CASE(["$enable_asan$enable_ubsan$enable_tsan"],
            [*yes*], [],
            [OMPI_CRYPT_TRY_FLAGS([-z defs], [], [-Wl,-z,defs])])

    dnl -isystem: warnings about Open MPI's headers are not ours.
    for ompi_crypt_dir in $ompi_crypt_incdirs; do
        ompi_crypt_includes="$ompi_crypt_includes -isystem $ompi_crypt_dir"
    done
    CPPFLAGS="-I\$(top_srcdir) -I\$(top_builddir) $CPPFLAGS $ompi_crypt_includes"

    dnl Last: configure's own tests must not run with it.
    AS_IF([test "x$enable_werror" = xyes], [OMPI_CRYPT_TRY_FLAGS([-Werror], [-Werror], [])
        dnl From GCC 15 on -Wextra warns of bytes of a fixed length that are written as text, without room for its end.
        ompi_crypt_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS -Wno-unterminated-string-initialization"
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int one;]])], [], [CFLAGS=$ompi_crypt_save_CFLAGS])])
])

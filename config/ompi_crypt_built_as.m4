dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl What the installed Open MPI was built with, as its ompi_info says: whether it can load
dnl components at all, and whether the headers are of a tree that was configured alike.

dnl Without dlopen only what is part of libmpi is a component: so it is with the wheel of PyPI.
AC_DEFUN([OMPI_CRYPT_CHECK_DLOPEN], [
    AC_MSG_CHECKING([whether Open MPI loads components])
    AS_CASE([`$OMPI_INFO --parsable --config 2>/dev/null | $SED -n 's/^option:dlopen://p'`],
            [no], [AC_MSG_RESULT([no])
                   AC_MSG_ERROR([this Open MPI was configured with --disable-dlopen: it loads no component that is not
  part of it, and so none of ompi-crypt.  The Open MPI of PyPI is built so.  Use another one, by --with-ompi=DIR])],
            [AC_MSG_RESULT([yes])])
])

dnl Macros that lay out what components share with Open MPI.  ompi_info says "yes" or "no"; an
dnl older one does not know every option.
AC_DEFUN([OMPI_CRYPT_CHECK_LAYOUT], [
    AC_MSG_CHECKING([whether their structures are those of Open MPI])
    ompi_crypt_differs=
    ompi_crypt_pairs="OPAL_ENABLE_DEBUG=option:debug OMPI_GROUP_SPARSE=option:sparse:groups
        OPAL_ENABLE_HETEROGENEOUS_SUPPORT=options:heterogeneous OPAL_ENABLE_FT_MPI=options:ft_mpi_support
        OPAL_CUDA_SUPPORT=mca:opal:base:param:opal_built_with_cuda_support:value"
    ompi_crypt_says=`$OMPI_INFO --parsable --config 2>/dev/null; $OMPI_INFO --parsable --param opal base --level 9 2>/dev/null`
    for ompi_crypt_pair in $ompi_crypt_pairs; do
        ompi_crypt_macro=`echo $ompi_crypt_pair | $SED 's/=.*//'`
        ompi_crypt_option=`echo $ompi_crypt_pair | $SED 's/.*=//'`
        AS_CASE([`echo "$ompi_crypt_says" | $SED -n "s/^$ompi_crypt_option://p"`],
                [yes|true], [ompi_crypt_value=1], [no|false], [ompi_crypt_value=0], [continue])
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
            #include "opal_config.h"
            #if $ompi_crypt_macro != $ompi_crypt_value
            #error other structures
            #endif
            ]])], [], [ompi_crypt_differs="$ompi_crypt_differs $ompi_crypt_macro"])
    done
    AS_IF([test -z "$ompi_crypt_differs"], [AC_MSG_RESULT([yes])],
          [AC_MSG_RESULT([no])
           AC_MSG_ERROR([the headers ($ompi_crypt_ompi_from) were configured with other options than
  $OMPI_INFO:$ompi_crypt_differs.
  A component built with them would not find things where this Open MPI has them.  If it is a source tree:
  packaging/configure-ompi configures one as the installed Open MPI was])])
])

dnl The switches of the source tree, beside those of the installed Open MPI.  Most do not matter to
dnl us, but only who knows both can tell: so they are shown.
AC_DEFUN([OMPI_CRYPT_COMPARE_SWITCHES], [
    AC_MSG_CHECKING([whether that tree was configured as Open MPI was])
    ompi_crypt_sorted() {
        eval "set x $[1]"
        shift
        printf '%s\n' "$[@]" | $SED -e '/^[[A-Za-z0-9_]]*=/d' -e '/^--\(exec-\)\{0,1\}prefix=/d' -e '/^--[[a-z]]*dir=/d' \
            -e '/^--\(build\|host\|target\)=/d' -e '/-\(silent-rules\|dependency-tracking\|option-checking\|maintainer-mode\)$/d' \
            -e '/-\(devel-headers\|package-string\|mpi-fortran\|man-pages\|sphinx\|shared\|static\)\(=.*\)\{0,1\}$/d' | sort -u
    }
    ompi_crypt_sorted "`$OMPI_INFO --config 2>/dev/null | $SED -n 's/^ *Configure command line: *//p'`" > conftest.installed
    ompi_crypt_sorted "`cd "$ompi_crypt_source" && ./config.status --config 2>/dev/null`" > conftest.tree
    ompi_crypt_less=`comm -23 conftest.installed conftest.tree | tr '\n' ' '`
    ompi_crypt_more=`comm -13 conftest.installed conftest.tree | tr '\n' ' '`
    rm -f conftest.installed conftest.tree
    AS_IF([test -z "$ompi_crypt_less$ompi_crypt_more"], [AC_MSG_RESULT([yes])],
          [AC_MSG_RESULT([no])
           AC_MSG_WARN([the source tree was configured with other switches than the installed Open MPI
  only the installed one has: ${ompi_crypt_less:-none}
  only the tree has:          ${ompi_crypt_more:-none}
  Headers that differ make components that crash.  packaging/configure-ompi configures a tree alike])
           ompi_crypt_ompi_from="$ompi_crypt_ompi_from, with other switches"])
])

dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl Find an installed Open MPI 4.1, 5.0 or 6.0 and the internal headers that a
dnl component needs.
dnl
dnl Sets MPICC, OMPI_INFO, ompi_crypt_version, _series, _incdirs, _libdirs and the
dnl directories ompi_crypt_ompi_{prefix,libdir,pkglibdir,pkgdatadir}.

AC_DEFUN([OMPI_CRYPT_FIND_OMPI], [
    AC_ARG_WITH([ompi],
        [AS_HELP_STRING([--with-ompi=DIR], [the Open MPI to build for (default: the one whose mpicc is in PATH)])])
    AC_ARG_WITH([ompi-source],
        [AS_HELP_STRING([--with-ompi-source=DIR],
                        [its source tree, configured as it was built: for an installation without
                         development headers])])
    AC_ARG_ENABLE([mca-no-build],
        [AS_HELP_STRING([--enable-mca-no-build=LIST], [components not to build: FRAMEWORK-NAME,...])])

    # 1. the programs
    AS_CASE([$with_ompi],
            [no], [AC_MSG_ERROR([ompi-crypt cannot be built without Open MPI])],
            [''|yes], [ompi_crypt_path=$PATH],
            [ompi_crypt_path=$with_ompi/bin])
    dnl On Debian mpicc may be that of another MPI, beside which Open MPI's has a name of its own.
    AC_PATH_PROG([MPICC], [mpicc], [no], [$ompi_crypt_path])
    AS_CASE([`$MPICC --showme:version 2>/dev/null`], [*"Open MPI"*], [],
            [AC_PATH_PROG([ompi_crypt_mpicc], [mpicc.openmpi], [$MPICC], [$ompi_crypt_path])
             MPICC=$ompi_crypt_mpicc])
    AC_PATH_PROGS([OMPI_INFO], [ompi_info], [no], [$ompi_crypt_path])
    AS_IF([test "$MPICC" = no || test "$OMPI_INFO" = no],
          [AC_MSG_ERROR([no Open MPI found (mpicc: $MPICC, ompi_info: $OMPI_INFO).
  On Debian and Ubuntu: apt install openmpi-bin libopenmpi-dev
  Elsewhere: --with-ompi=DIR, where DIR/bin/mpicc is Open MPI's])])

    # 2. its version
    AC_MSG_CHECKING([for the version of Open MPI])
    ompi_crypt_version=`$OMPI_INFO --version 2>/dev/null \
        | $SED -n 's/^Open MPI v\([[0-9]]*\.[[0-9]]*\.[[0-9]]*\).*/\1/p'`
    dnl Such as rc2, as OPAL_GREEK_VERSION has it.
    ompi_crypt_greek=`$OMPI_INFO --version 2>/dev/null \
        | $SED -n 's/^Open MPI v[[0-9.]]*\([[a-z]]*[[0-9]]*\).*/\1/p'`
    AC_MSG_RESULT([${ompi_crypt_version:-unknown}$ompi_crypt_greek])
    ompi_crypt_series=`echo "$ompi_crypt_version" | $SED 's/^\([[0-9]]*\.[[0-9]]*\)\..*/\1/'`
    AS_CASE([$ompi_crypt_series],
            [4.1|5.0|6.0], [],
            [AC_MSG_ERROR([Open MPI ${ompi_crypt_version:-of an unknown version} is not supported, only 4.1, 5.0 and 6.0
  ($OMPI_INFO).  Give another one by --with-ompi=DIR])])
    AS_CASE([`$MPICC --showme:version 2>/dev/null`],
            [*"Open MPI $ompi_crypt_version"*], [],
            [AC_MSG_ERROR([$MPICC and $OMPI_INFO are not of the same Open MPI; give it by --with-ompi=DIR])])

    OMPI_CRYPT_CHECK_DLOPEN

    # 3. its directories
    ompi_crypt_paths=`$OMPI_INFO --parsable --path all 2>/dev/null`
    m4_foreach_w([ompi_crypt_place], [prefix libdir pkglibdir pkgdatadir pkgincludedir], [
        ompi_crypt_ompi_[]ompi_crypt_place=`echo "$ompi_crypt_paths" \
            | $SED -n 's/^path:ompi_crypt_place://p' | tail -n 1`])
    ompi_crypt_libdirs=`$MPICC --showme:libdirs`
    OMPI_CRYPT_CHECK_LIBDIR
    OMPI_CRYPT_FIND_HEADERS
    OMPI_CRYPT_CHECK_HEADERS
    AS_IF([test -n "$ompi_crypt_source"], [OMPI_CRYPT_COMPARE_SWITCHES])
    AC_SUBST([ompi_crypt_version])
    AC_SUBST([ompi_crypt_series])
    AC_SUBST([ompi_crypt_ompi_prefix])
    AC_SUBST([ompi_crypt_ompi_pkglibdir])
])

dnl Two installations of one version can be mixed up in the PATH: mpicc must not link another libmpi.
AC_DEFUN([OMPI_CRYPT_CHECK_LIBDIR], [
    AC_MSG_CHECKING([whether mpicc and ompi_info are of one installation])
    ompi_crypt_wanted=`cd "$ompi_crypt_ompi_libdir" 2>/dev/null && pwd -P`
    ompi_crypt_other=
    for ompi_crypt_dir in $ompi_crypt_libdirs; do
        ompi_crypt_dir=`cd "$ompi_crypt_dir" 2>/dev/null && pwd -P`
        AS_IF([test -z "$ompi_crypt_wanted" || test "$ompi_crypt_dir" = "$ompi_crypt_wanted"], [break],
              [test -n "$ompi_crypt_dir" && test -f "$ompi_crypt_dir/libmpi.so"], [ompi_crypt_other=$ompi_crypt_dir; break])
    done
    AS_IF([test -z "$ompi_crypt_other"], [AC_MSG_RESULT([yes])],
          [AC_MSG_RESULT([no])
           AC_MSG_ERROR([$MPICC links $ompi_crypt_other/libmpi.so, and $OMPI_INFO is of the
  Open MPI in $ompi_crypt_wanted; give one of them by --with-ompi=DIR])])
])

dnl Installed headers, or those of a configured source tree.
AC_DEFUN([OMPI_CRYPT_FIND_HEADERS], [
    AC_MSG_CHECKING([for Open MPI's internal headers])
    ompi_crypt_source=
    AS_IF([test -n "$with_ompi_source" && test "$with_ompi_source" != no],
        [AS_IF([test ! -f "$with_ompi_source/ompi/mca/pml/pml.h"],
               [AC_MSG_RESULT([no])
                AC_MSG_ERROR([--with-ompi-source=$with_ompi_source is not a source tree of Open MPI])])
         AS_IF([test ! -f "$with_ompi_source/opal/include/opal_config.h"],
               [AC_MSG_RESULT([no])
                AC_MSG_ERROR([$with_ompi_source has not been configured.  Run its ./configure there with the
  switches of the installed Open MPI, as packaging/configure-ompi does, then come back])])
         ompi_crypt_source=`cd "$with_ompi_source" && pwd`
         dnl What its own makefiles have: hwloc and libevent may be in the tree or not.
         ompi_crypt_flags=`$SED -n 's/^CPPFLAGS = //p' "$ompi_crypt_source/ompi/Makefile" \
             | $SED "s|\\$(top_[[a-z]]*dir)|$ompi_crypt_source|g"`
         ompi_crypt_incdirs="$ompi_crypt_source $ompi_crypt_source/opal/include $ompi_crypt_source/ompi/include"
         for ompi_crypt_flag in $ompi_crypt_flags; do
             AS_CASE([$ompi_crypt_flag],
                     [-I*], [ompi_crypt_incdirs="$ompi_crypt_incdirs `echo $ompi_crypt_flag | $SED s/^-I//`"])
         done
         dnl The tree's mpi.h includes a header that only make would put beside it.
         ompi_crypt_incdirs="$ompi_crypt_incdirs `$MPICC --showme:incdirs`"
         ompi_crypt_ompi_from="sources in $ompi_crypt_source"],
        [ompi_crypt_dir=$ompi_crypt_ompi_pkgincludedir
         AS_IF([test ! -f "$ompi_crypt_dir/ompi/mca/pml/pml.h"],
               [AC_MSG_RESULT([no])
                AC_MSG_ERROR([Open MPI $ompi_crypt_version is installed without its internal headers ($ompi_crypt_dir).
  On Debian and Ubuntu: apt install libopenmpi-dev
  Own build: configure Open MPI with --with-devel-headers and install it again, or give its
  configured source tree by --with-ompi-source=DIR])])
         ompi_crypt_incdirs="$ompi_crypt_dir `$MPICC --showme:incdirs`"
         ompi_crypt_ompi_from=$ompi_crypt_dir])
    AC_MSG_RESULT([$ompi_crypt_ompi_from])
])

dnl They must belong to the library, not be of a direct-call build, and compile.
AC_DEFUN([OMPI_CRYPT_CHECK_HEADERS], [
    ompi_crypt_save_CPPFLAGS=$CPPFLAGS
    ompi_crypt_save_CFLAGS=$CFLAGS
    dnl Debian's 5.0.7 and 6.0.0 leave out the headers of threads/pthreads.
    AS_CASE([$ompi_crypt_series],
            [5.0|6.0], [ompi_crypt_dir=opal/mca/threads/pthreads/threads_pthreads_mutex.h
                    ompi_crypt_shim=`cd "$srcdir" && pwd`/standalone/include-5.0
                    for ompi_crypt_where in $ompi_crypt_incdirs; do
                        test ! -f $ompi_crypt_where/$ompi_crypt_dir || ompi_crypt_shim=
                    done
                    ompi_crypt_incdirs="$ompi_crypt_incdirs $ompi_crypt_shim"])
    for ompi_crypt_dir in $ompi_crypt_incdirs; do CPPFLAGS="$CPPFLAGS -I$ompi_crypt_dir"; done
    CFLAGS="$CFLAGS -std=gnu11"

    AC_MSG_CHECKING([whether they are of Open MPI $ompi_crypt_version$ompi_crypt_greek])
    ompi_crypt_commas=`echo $ompi_crypt_version | tr . ,`
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
        #include "opal_config.h"
        #define WANTED(major, minor, release) \
            (OPAL_MAJOR_VERSION == major && OPAL_MINOR_VERSION == minor && OPAL_RELEASE_VERSION == release)
        #if !WANTED($ompi_crypt_commas)
        #error other version
        #endif
        extern char same@<:@2 * !__builtin_strcmp(OPAL_GREEK_VERSION, "$ompi_crypt_greek") - 1@:>@;
        ]])], [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([the headers ($ompi_crypt_ompi_from) are of another Open MPI than $OMPI_INFO ($ompi_crypt_version$ompi_crypt_greek)])])

    OMPI_CRYPT_CHECK_LAYOUT

    AC_MSG_CHECKING([whether the pml is called directly])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
        #include "opal_config.h"
        #if MCA_ompi_pml_DIRECT_CALL
        #error the pml framework is called directly
        #endif
        ]])], [AC_MSG_RESULT([no])],
        [AC_MSG_RESULT([yes])
         AC_MSG_ERROR([this Open MPI was configured with --enable-mca-direct=pml-...: its messages cannot pass
  through another pml.  Build Open MPI without that switch])])

    dnl PMIx may live in a directory of its own that only pkg-config knows.
    AC_MSG_CHECKING([whether they compile])
    ompi_crypt_compiles=no
    for ompi_crypt_dir in '' `$PKG_CONFIG --variable=includedir pmix 2>/dev/null` \
                          /usr/lib/*/pmix2/include /usr/lib/*/pmix/include; do
        test -z "$ompi_crypt_dir" || CPPFLAGS="$CPPFLAGS -I$ompi_crypt_dir"
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
            #include "ompi_config.h"
            #include "ompi/proc/proc.h"
            #include "ompi/mca/pml/base/base.h"
            #include "ompi/mca/coll/coll.h"
            #include "ompi/communicator/communicator.h"
            ]])], [ompi_crypt_compiles=yes])
        test $ompi_crypt_compiles = no || break
    done
    test -z "$ompi_crypt_dir" || ompi_crypt_incdirs="$ompi_crypt_incdirs $ompi_crypt_dir"
    AC_MSG_RESULT([$ompi_crypt_compiles])
    AS_IF([test $ompi_crypt_compiles = no],
          [AC_MSG_ERROR([Open MPI's internal headers do not compile; config.log has the compiler's words.
  Usually the headers of hwloc, libevent or PMIx are missing (Debian: libhwloc-dev libevent-dev libpmix-dev)])])
    CPPFLAGS=$ompi_crypt_save_CPPFLAGS
    CFLAGS=$ompi_crypt_save_CFLAGS
])

dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl Where things are installed.  Two layouts:
dnl
dnl   private prefix P    components P/lib/ompi-crypt, libraries P/lib, help
dnl                       files P/share/ompi-crypt; env.sh makes Open MPI look there
dnl   in Open MPI         components and help files in Open MPI's own directories,
dnl                       found without any setting
dnl
dnl The makefiles of the components use Open MPI's names for these directories.

AC_DEFUN([OMPI_CRYPT_INSTALL_PLACES], [
    AC_ARG_WITH([components-in-ompi],
        [AS_HELP_STRING([--with-components-in-ompi],
                        [install components and help files into Open MPI's own directories
                         (default when --prefix is Open MPI's prefix)])],
        [], [with_components_in_ompi=default])
    AS_IF([test "$with_components_in_ompi" = default],
          [with_components_in_ompi=no
           ompi_crypt_prefix=$prefix
           test "$ompi_crypt_prefix" != NONE || ompi_crypt_prefix=$ac_default_prefix
           test "$ompi_crypt_prefix" != "$ompi_crypt_ompi_prefix" || with_components_in_ompi=yes])

    AS_IF([test "$with_components_in_ompi" = yes],
          [ompilibdir=$ompi_crypt_ompi_pkglibdir
           ompidatadir=$ompi_crypt_ompi_pkgdatadir
           dnl Beside Open MPI's own libmca_common_*.so, if the prefix is the same.
           test "x$prefix" != "x$ompi_crypt_ompi_prefix" || test "x$libdir" != 'x${exec_prefix}/lib' \
               || libdir=$ompi_crypt_ompi_libdir],
          [ompilibdir='${libdir}/ompi-crypt'
           ompidatadir='${datadir}/ompi-crypt'
           OMPI_CRYPT_HELP_DIR='-DOMPI_CRYPT_HELP_DIR=\"$(opaldatadir)\"'])
    AS_CASE([$ompi_crypt_series], [4.1|5.0], [ompi_crypt_table=no],
            [ompi_crypt_table=yes
             OMPI_CRYPT_HELP_DIR=-DOMPI_CRYPT_HELP_TEXTS])
    AM_CONDITIONAL([OMPI_CRYPT_HELP_TABLE], [test $ompi_crypt_table = yes])
    opallibdir=$ompilibdir
    opaldatadir=$ompidatadir
    AC_SUBST([ompilibdir])
    AC_SUBST([opallibdir])
    AC_SUBST([ompidatadir])
    AC_SUBST([opaldatadir])
    AC_SUBST([OMPI_CRYPT_HELP_DIR])
    AM_CONDITIONAL([OMPI_CRYPT_PRIVATE], [test "$with_components_in_ompi" != yes])
    AM_CONDITIONAL([OMPI_CRYPT_FROM_50], [test "$ompi_crypt_series" != 4.1])
])

dnl The libraries to which components link; in Open MPI's tree the same
dnl variables name its .la files (opal/mca/common/crypt/configure.m4).
AC_DEFUN([OMPI_CRYPT_STANDALONE_LIBS], [
    ompi_crypt_ldflags=
    for ompi_crypt_dir in $ompi_crypt_libdirs; do
        ompi_crypt_ldflags="$ompi_crypt_ldflags -L$ompi_crypt_dir"
    done
    dnl The framework's base is in libopen-pal in Open MPI's tree, here it is a
    dnl library of its own (docs/design/001-build.rst).
    OMPI_CRYPT_OPAL_LIBS="\$(top_builddir)/standalone/libmca_aead_base.la $ompi_crypt_ldflags -lopen-pal"
    OMPI_CRYPT_FIND_PMIX
    dnl In 6.0 libmpi has the calls alone, and a program may have libmpi_abi in its place:
    dnl what is inside is in libopen_mpi, and only programs and what they link to want more.
    AS_CASE([$ompi_crypt_series], [4.1|5.0], [ompi_crypt_libmpi=-lmpi], [ompi_crypt_libmpi=-lopen_mpi])
    OMPI_CRYPT_MPI_LIBS="$ompi_crypt_ldflags $ompi_crypt_libmpi -lopen-pal $ompi_crypt_pmix"
    OMPI_CRYPT_CALLS_LIBS="$ompi_crypt_ldflags -lmpi"
    AC_SUBST([OMPI_CRYPT_CALLS_LIBS])
    OMPI_CRYPT_OPAL_NAME=
    AC_SUBST([OMPI_CRYPT_OPAL_LIBS])
    OMPI_CRYPT_PMIX_LIBS="$ompi_crypt_ldflags $ompi_crypt_pmix"
    AC_SUBST([OMPI_CRYPT_MPI_LIBS])
    AC_SUBST([OMPI_CRYPT_PMIX_LIBS])
    AC_SUBST([OMPI_CRYPT_OPAL_NAME])
    dnl btl_crypt_series.c; in Open MPI's tree there is one series only.
    OMPI_CRYPT_SERIES_OBJECT=btl_crypt_series.lo
    OMPI_CRYPT_SERIES_LIBS="$ompi_crypt_ldflags $ompi_crypt_libmpi"
    AC_SUBST([OMPI_CRYPT_SERIES_OBJECT])
    AC_SUBST([OMPI_CRYPT_SERIES_LIBS])
    OMPI_CRYPT_BARE_OPAL_LIBS="$ompi_crypt_ldflags -lopen-pal"
    AC_SUBST([OMPI_CRYPT_BARE_OPAL_LIBS])
])

dnl The modex macros of Open MPI 5.0 and later call PMIx: the one of its own build, or the one
dnl that it was built with.
AC_DEFUN([OMPI_CRYPT_FIND_PMIX], [
    ompi_crypt_pmix=
    AS_IF([test "$ompi_crypt_series" != 4.1],
        [AC_MSG_CHECKING([for the PMIx of Open MPI])
         ompi_crypt_save_LIBS=$LIBS
         for ompi_crypt_try in "-lpmix" "`$PKG_CONFIG --libs-only-L --libs-only-l pmix 2>/dev/null`"; do
             test -z "$ompi_crypt_pmix" || break
             LIBS="$ompi_crypt_save_LIBS $ompi_crypt_ldflags $ompi_crypt_try"
             AC_LINK_IFELSE([AC_LANG_SOURCE([[int PMIx_Commit(void); int main(void) { return PMIx_Commit(); }]])],
                            [ompi_crypt_pmix=$ompi_crypt_try])
         done
         LIBS=$ompi_crypt_save_LIBS
         AC_MSG_RESULT([${ompi_crypt_pmix:-no}])
         AS_IF([test -z "$ompi_crypt_pmix"],
               [AC_MSG_ERROR([PMIx cannot be linked (Debian: libpmix-dev)])])])
])

dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl The core needs libcrypto (OpenSSL 3.0 or newer).
dnl
dnl This is the first of our components that Open MPI's configure reaches, so it
dnl also names the libraries to which the others link.  A stand-alone build has
dnl set the same variables before.

dnl The .la files of Open MPI's tree: 4.1 has libPREFIXopen-pal.la, 5.0 libNAME.la.
AC_DEFUN([OMPI_CRYPT_IN_TREE], [
    AS_IF([test -z "$OMPI_CRYPT_OPAL_LIBS"],
          [AS_IF([test -n "$OPAL_LIB_NAME"],
                 [OMPI_CRYPT_OPAL_NAME=$OPAL_LIB_NAME
                  OMPI_CRYPT_OPAL_LIBS='$(top_builddir)/opal/lib$(OPAL_LIB_NAME).la'],
                 [OMPI_CRYPT_OPAL_NAME=$OPAL_LIB_PREFIX
                  OMPI_CRYPT_OPAL_LIBS='$(top_builddir)/opal/lib$(OPAL_LIB_PREFIX)open-pal.la'])
           OMPI_CRYPT_MPI_LIBS='$(top_builddir)/ompi/lib$(OMPI_LIBMPI_NAME).la '$OMPI_CRYPT_OPAL_LIBS
           OMPI_CRYPT_SERIES_OBJECT= OMPI_CRYPT_SERIES_LIBS=
           AC_SUBST([OMPI_CRYPT_SERIES_OBJECT])
           AC_SUBST([OMPI_CRYPT_SERIES_LIBS])
           AC_SUBST([OMPI_CRYPT_OPAL_LIBS])
           AC_SUBST([OMPI_CRYPT_OPAL_NAME])
           AC_SUBST([OMPI_CRYPT_MPI_LIBS])])
])

dnl For a COMPILE_MODE macro.  5.0.7's opal_mca.m4 then wants the value of the
dnl variable that has the mode for a name.
AC_DEFUN([OMPI_CRYPT_ALWAYS_DSO], [
    $1=dso
    dso=dso
])

AC_DEFUN([MCA_opal_common_crypt_CONFIG], [
    AC_CONFIG_FILES([opal/mca/common/crypt/Makefile])
    OMPI_CRYPT_IN_TREE

    libmca_opal_common_crypt_so_version=0:0:0
    AC_SUBST([libmca_opal_common_crypt_so_version])

    common_crypt_happy=no
    AC_CHECK_HEADER([openssl/kdf.h],
                    [AC_CHECK_LIB([crypto], [EVP_KDF_fetch],
                                  [common_crypt_happy=yes
                                   common_crypt_LIBS=-lcrypto])])
    AC_SUBST([common_crypt_LIBS])

    dnl crypt/identity/munge.h looks for it itself.
    AC_CHECK_HEADER([munge.h], [],
                    [ompi_crypt_without="$ompi_crypt_without; crypt_auth=munge (Debian: libmunge-dev)"])
    AS_IF([test $common_crypt_happy = yes],
          [$1],
          [ompi_crypt_why="libcrypto of OpenSSL 3.0 or newer is missing (Debian: libssl-dev)"
           $2])
])

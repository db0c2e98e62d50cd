dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl Encrypted files need what the core needs (common/crypt), and p11-kit's header
dnl for keys in hardware.

AC_DEFUN([MCA_opal_common_cryptfile_CONFIG], [
    AC_CONFIG_FILES([opal/mca/common/cryptfile/Makefile])

    libmca_opal_common_cryptfile_so_version=0:0:0
    AC_SUBST([libmca_opal_common_cryptfile_so_version])

    common_cryptfile_LIBS=$common_crypt_LIBS
    AC_SUBST([common_cryptfile_LIBS])

    dnl The keystore's pkcs11 backend needs nothing but this header to build.
    AC_CHECK_HEADER([p11-kit-1/p11-kit/pkcs11.h],
                    [common_cryptfile_CPPFLAGS=-DOMPI_CRYPT_HAVE_PKCS11],
                    [ompi_crypt_without="$ompi_crypt_without; crypt_keystore=pkcs11 (Debian: libp11-kit-dev)"])
    AC_SUBST([common_cryptfile_CPPFLAGS])
    AS_IF([test "$common_crypt_happy" = yes],
          [$1],
          [ompi_crypt_why="common/crypt is not built"
           $2])
])

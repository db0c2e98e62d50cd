dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.

AC_DEFUN([MCA_opal_aead_ipsecmb_CONFIG], [
    AC_CONFIG_FILES([opal/mca/aead/ipsecmb/Makefile])

    aead_ipsecmb_happy=no
    AC_CHECK_HEADER([intel-ipsec-mb.h],
                    [AC_CHECK_LIB([IPSec_MB], [init_mb_mgr_auto],
                                  [aead_ipsecmb_happy=yes
                                   aead_ipsecmb_LIBS=-lIPSec_MB])])
    AC_SUBST([aead_ipsecmb_LIBS])
    AS_IF([test $aead_ipsecmb_happy = yes],
          [$1],
          [ompi_crypt_why="libIPSec_MB 1.3 or newer is missing (Debian: libipsec-mb-dev)"
           $2])
])

dnl A provider is always a DSO: the symbols of two of them must never meet.
AC_DEFUN([MCA_opal_aead_ipsecmb_COMPILE_MODE], [OMPI_CRYPT_ALWAYS_DSO([$4])])

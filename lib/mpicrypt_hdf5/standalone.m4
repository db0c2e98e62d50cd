dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl HDF5 has drivers that are plugins since 1.14.  Any build of it will do, as only its headers are used.
AC_DEFUN([OMPI_CRYPT_CONFIG_lib_mpicrypt_hdf5], [
    AC_ARG_VAR([HDF5_CFLAGS], [where the headers of HDF5 1.14 or later are])
    AS_IF([test -z "$HDF5_CFLAGS"],
          [for ompi_crypt_try in hdf5-serial hdf5 hdf5-openmpi; do
               AS_IF([test -z "$HDF5_CFLAGS" && $PKG_CONFIG --exists "$ompi_crypt_try >= 1.14.0" 2>/dev/null],
                     [HDF5_CFLAGS=`$PKG_CONFIG --cflags $ompi_crypt_try`])
           done])
    AC_MSG_CHECKING([whether HDF5 has drivers that are plugins])
    ompi_crypt_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $HDF5_CFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <hdf5.h>
#include <H5FDdevelop.h>
#include <H5PLextern.h>
#if H5FD_CLASS_VERSION != 1
#error another H5FD_class_t
#endif
H5PL_type_t type = H5PL_TYPE_VFD;]])],
        [AC_MSG_RESULT([yes])
         $1],
        [AC_MSG_RESULT([no])
         ompi_crypt_why="hdf5.h of 1.14 or later is missing (Debian 13: libhdf5-dev)"
         $2])
    CPPFLAGS=$ompi_crypt_save_CPPFLAGS
])

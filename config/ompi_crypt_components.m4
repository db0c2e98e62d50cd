dnl Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
dnl
dnl What Open MPI's config/opal_mca.m4 does for a component, as far as our own
dnl configure.m4 files rely on it.  The lists come from autogen.pl.

dnl OMPI_CRYPT_FRAMEWORK(project, framework): its base, and the file that lists
dnl static components: there are none when built against an installed Open MPI.
AC_DEFUN([OMPI_CRYPT_FRAMEWORK], [
    AC_CONFIG_FILES([$1/mca/$2/Makefile])
    AC_CONFIG_COMMANDS([$1/mca/$2/base/static-components.h], [
        AS_MKDIR_P([$1/mca/$2/base])
        cat > $1/mca/$2/base/static-components.h.new <<_EOF
opal_$2_base_static_t mca_$2_base_static_components[[]] = { NULL };
_EOF
        cmp -s $1/mca/$2/base/static-components.h.new $1/mca/$2/base/static-components.h \
            && rm -f $1/mca/$2/base/static-components.h.new \
            || mv $1/mca/$2/base/static-components.h.new $1/mca/$2/base/static-components.h])
    OMPI_CRYPT_FRAMEWORK_SUBDIRS="$OMPI_CRYPT_FRAMEWORK_SUBDIRS $1/mca/$2"
    AC_SUBST([OMPI_CRYPT_FRAMEWORK_SUBDIRS])
])

dnl OMPI_CRYPT_COMPONENT(project, framework, component)
dnl
dnl A component's configure.m4 may set ompi_crypt_why to the reason why it
dnl cannot be built, or add "; FEATURE" to ompi_crypt_without; the summary shows it.
AC_DEFUN([OMPI_CRYPT_COMPONENT], [
    AC_MSG_NOTICE([--- $2/$3])
    ompi_crypt_why=
    ompi_crypt_without=
    ompi_crypt_build=yes
    case ",$enable_mca_no_build," in
        *,$2,*|*,$2-$3,*) ompi_crypt_build=no; ompi_crypt_why="--enable-mca-no-build" ;;
    esac
    MCA_$1_$2_$3_CONFIG([ompi_crypt_build=$ompi_crypt_build], [ompi_crypt_build=no])
    m4_ifdef([MCA_$1_$2_$3_POST_CONFIG],
             [AS_IF([test $ompi_crypt_build = yes], [ompi_crypt_flag=1], [ompi_crypt_flag=0])
              MCA_$1_$2_$3_POST_CONFIG([$ompi_crypt_flag])])
    AM_CONDITIONAL([MCA_BUILD_$1_$2_$3_DSO], [true])
    OMPI_CRYPT_ALL_SUBDIRS="$OMPI_CRYPT_ALL_SUBDIRS $1/mca/$2/$3"
    AS_IF([test $ompi_crypt_build = yes],
          [m4_if([$2], [common],
                 [OMPI_CRYPT_$1_COMMON_SUBDIRS="$OMPI_CRYPT_$1_COMMON_SUBDIRS $1/mca/$2/$3"],
                 [OMPI_CRYPT_COMPONENT_SUBDIRS="$OMPI_CRYPT_COMPONENT_SUBDIRS $1/mca/$2/$3"])
           m4_if([$2], [aead],
                 [dnl For unit tests: the module without the component.
                  OMPI_CRYPT_MODULE_$3="\$(top_builddir)/opal/mca/aead/$3/libaead_$3_module.la"
                  AC_DEFINE([OMPI_CRYPT_HAVE_AEAD_]m4_toupper([$3]), [1], [provider $3 is built])])
           OMPI_CRYPT_SUMMARIZE([$2/$3], [yes${ompi_crypt_without:+, without${ompi_crypt_without#;}}])],
          [OMPI_CRYPT_SUMMARIZE([$2/$3], [no${ompi_crypt_why:+: $ompi_crypt_why}])])
    AC_SUBST([OMPI_CRYPT_opal_COMMON_SUBDIRS])
    AC_SUBST([OMPI_CRYPT_ompi_COMMON_SUBDIRS])
    AC_SUBST([OMPI_CRYPT_COMPONENT_SUBDIRS])
    AC_SUBST([OMPI_CRYPT_ALL_SUBDIRS])
    m4_if([$2], [aead], [AC_SUBST([OMPI_CRYPT_MODULE_$3])])
])

dnl OMPI_CRYPT_OTHER(directory): an extension or a tool.  Its standalone.m4, if
dnl there is one, defines OMPI_CRYPT_CONFIG_<directory with _>([yes], [no]).
AC_DEFUN([OMPI_CRYPT_OTHER], [
    m4_pushdef([ompi_crypt_macro], [OMPI_CRYPT_CONFIG_]m4_translit([$1], [/-], [__]))
    AC_CONFIG_FILES([$1/Makefile])
    ompi_crypt_why=
    ompi_crypt_without=
    ompi_crypt_build=yes
    dnl Its name, and not yet what it expands to.
    m4_ifdef(m4_defn([ompi_crypt_macro]),
             [m4_indir(m4_defn([ompi_crypt_macro]), [ompi_crypt_build=yes], [ompi_crypt_build=no])])
    OMPI_CRYPT_ALL_OTHER_SUBDIRS="$OMPI_CRYPT_ALL_OTHER_SUBDIRS $1"
    AS_IF([test $ompi_crypt_build = yes],
          [OMPI_CRYPT_OTHER_SUBDIRS="$OMPI_CRYPT_OTHER_SUBDIRS $1"
           OMPI_CRYPT_SUMMARIZE([$1], [yes${ompi_crypt_without:+, without${ompi_crypt_without#;}}])],
          [OMPI_CRYPT_SUMMARIZE([$1], [no${ompi_crypt_why:+: $ompi_crypt_why}])])
    AC_SUBST([OMPI_CRYPT_OTHER_SUBDIRS])
    AC_SUBST([OMPI_CRYPT_ALL_OTHER_SUBDIRS])
    m4_popdef([ompi_crypt_macro])
])

AC_DEFUN([OMPI_CRYPT_SUMMARIZE], [
    ompi_crypt_line=`printf '  %-26s %s' "$1" "$2"`
    OMPI_CRYPT_SUMMARY="$OMPI_CRYPT_SUMMARY
$ompi_crypt_line"
])

AC_DEFUN([OMPI_CRYPT_PRINT_SUMMARY], [
    test "$prefix" != NONE || prefix=$ac_default_prefix
    test "$exec_prefix" != NONE || exec_prefix=$prefix
    cat <<_EOF

ompi-crypt $PACKAGE_VERSION for Open MPI $ompi_crypt_version ($ompi_crypt_ompi_from)
  libraries                  `eval eval echo "$libdir"`
  components                 `eval eval eval echo "$ompilibdir"`
  help files                 `eval eval eval echo "$ompidatadir"`
  switches                   ${ompi_crypt_switches:-none}
$OMPI_CRYPT_SUMMARY

_EOF
])

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# check.sh [inside]: `make check` in run.sh's build tree, beside the source, but for the unit tests, which
# are cases themselves.  inside: all of it, in a copy of the source tree that is configured itself.
set -eu
. "$SRC/tests/lib.sh"
unset ${!OMPI_MCA_*} ${!PMIX_MCA_*}                 # a user has sourced no env.sh yet

if [ $# = 0 ]; then
    ( flock 6; must in_variant make -C "$BUILD" check TESTS= ) 6>"$VARIANT_DIR/make_check.lock"
    exit 0
fi
[ -e "$SRC/.git" ] || skip "$SRC is not a git repository"
git -C "$SRC" -c safe.directory="$SRC" ls-files -z --cached --others --exclude-standard |
    tar -C "$SRC" --null -T - -cf - | tar -C "$CASE_DIR" -xf -
cd "$CASE_DIR"
must ./autogen.pl
must ./configure --prefix="$CASE_DIR/prefix"
must make -j"$(nproc)" check

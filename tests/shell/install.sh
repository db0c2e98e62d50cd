# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# make install puts files below the prefix only, and make uninstall takes all of
# them away, also with DESTDIR.
set -eu
. "$SRC/tests/lib.sh"

stage=$CASE_DIR/stage
cd "$BUILD"
# libtool links libraries again in the build tree, whose programs shell/check runs.
( flock 6; must make -s install DESTDIR="$stage" ) 6>"$VARIANT_DIR/make_check.lock"
(cd "$stage" && find . ! -type d | sort) > "$CASE_DIR/files"
must test -s "$CASE_DIR/files"
if grep -v "^\.$PREFIX/" "$CASE_DIR/files"; then
    fail "these are outside of $PREFIX"
fi

# What is in use is the same.
(cd / && find ".$PREFIX" ! -type d | sort) | diff - "$CASE_DIR/files" || fail "two installations differ"
for file in bin/mpicrypt share/ompi-crypt/env.sh share/ompi-crypt/modulefiles/ompi-crypt \
            lib/ompi-crypt/mca_aead_openssl.so share/ompi-crypt/help-opal-aead-base.txt; do
    must grep -qxF ".$PREFIX/$file" "$CASE_DIR/files"
done
if grep -rlF "$stage" "$stage"; then
    fail "these name the staging directory"
fi

must make -s uninstall DESTDIR="$stage"
left=$(cd "$stage" && find . ! -type d)
[ -z "$left" ] || fail "make uninstall left: $left"

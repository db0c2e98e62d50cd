# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A fresh copy of what is under version control (or would be) makes a tarball,
# which holds what it takes to build, check, install, uninstall and make a tarball
# again, from a source directory that cannot be written to.
set -eu
. "$SRC/tests/lib.sh"

[ -e "$SRC/.git" ] || skip "$SRC is not a git repository"
mkdir "$CASE_DIR/source" "$CASE_DIR/build"
git -C "$SRC" -c safe.directory="$SRC" ls-files --cached --others --exclude-standard > "$CASE_DIR/files"
must tar -C "$SRC" -cf "$CASE_DIR/source.tar" -T "$CASE_DIR/files"
must tar -C "$CASE_DIR/source" -xf "$CASE_DIR/source.tar"
cd "$CASE_DIR/source"
must ./autogen.pl
cd "$CASE_DIR/build"
must ../source/configure --prefix="$CASE_DIR/prefix"
must make -j"$(nproc)" distcheck DISTCHECK_CONFIGURE_FLAGS=--enable-werror
tar -tf ompi-crypt-*.tar.gz | sed 's|^[^/]*/||' | sort > "$CASE_DIR/packed"

# Nothing that is under version control is missing but what only git needs.
sort "$CASE_DIR/files" | comm -23 - "$CASE_DIR/packed" | grep -vE '^\.git|/\.git' > "$CASE_DIR/missing" || true
[ ! -s "$CASE_DIR/missing" ] || fail "not in the tarball: $(cat "$CASE_DIR/missing")"

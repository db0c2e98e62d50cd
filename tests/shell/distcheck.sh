# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The tarball holds what it takes to build, check, install, uninstall and make
# a tarball again, from a source directory that cannot be written to.
set -eu
. "$SRC/tests/lib.sh"

mkdir "$CASE_DIR/build"
cd "$CASE_DIR/build"
must "$SRC/configure" --prefix="$CASE_DIR/prefix" --enable-werror
must make -j"$(nproc)" distcheck DISTCHECK_CONFIGURE_FLAGS=--enable-werror
must ls -l ompi-crypt-*.tar.gz

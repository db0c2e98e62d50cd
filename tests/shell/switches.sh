# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The developer's switches: each builds, links and does what its name says.
# A build of the core, of a provider and of one unit test shows it.
set -eu
. "$SRC/tests/lib.sh"

# build_with NAME SWITCH...: in a tree of its own, which becomes the directory.
build_with() {
    local name=$1; shift
    mkdir "$CASE_DIR/$name"
    cd "$CASE_DIR/$name"
    must "$SRC/configure" --prefix="$CASE_DIR/prefix" "$@" >configure.out
    says "$name" grep switches configure.out
    for directory in opal/mca/common/crypt opal/mca/common/cryptfile opal/mca/aead standalone opal/mca/aead/*/; do
        [ ! -e "$directory/Makefile" ] || must make -s -j"$(nproc)" -C "$directory"
    done
    must make -s -C tests/unit test_frame
}

# needs SYMBOL: the core and the test call this run-time library.
needs() {
    local file
    for file in opal/mca/common/crypt/.libs/libmca_common_crypt.so tests/unit/test_frame; do
        nm "$file" | grep -q " U $1" || fail "$file does not use $1"
    done
    must env srcdir="$SRC/tests/unit" tests/unit/test_frame
}

build_with asan --enable-asan
needs __asan_init
build_with ubsan --enable-ubsan
needs __ubsan_handle
build_with tsan --enable-tsan
needs __tsan_init

# A warning in a file of the build tree, which make takes before the source's.
build_with werror --enable-werror
{ cat "$SRC/opal/mca/common/crypt/base/base.c"; echo 'static int nobody_uses_me;'; } \
    > opal/mca/common/crypt/base/base.c
says '-Werror=unused-variable' make -C opal/mca/common/crypt

says 'exclude each other' "$SRC/configure" --enable-asan --enable-tsan

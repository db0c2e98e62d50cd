# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What processes tell each other about a file is a lie (lie/lie.c): they get errors, or a file, and never use it as an
# index or a length.  lie.sh [from=N] [to=N]: of these messages.
. "$SRC/tests/io/common.sh"

mkdir "$CASE_DIR/files"
cluster_up 2 --slots 1
keys_in "$CASE_DIR/keys" lab other
make_check tests/attack/lie/preload
program=$(mpi_program attack/lie lie)
must run_io 2 --mca fs_crypt_seal 1 -x LD_PRELOAD="${LD_PRELOAD-}${LD_PRELOAD:+:}$BUILD/tests/attack/lie/preload/.libs/lie.so" \
    -x ASAN_OPTIONS -x UBSAN_OPTIONS "$program" "$CASE_DIR/files" "$@" > "$CASE_DIR/out" 2>&1 || {
    grep -a '^ok' "$CASE_DIR/out" | tail -n 1
    tail -n 60 "$CASE_DIR/out"
    fail "a process crashed, or waited for the others"
}
grep -a 'no lie' "$CASE_DIR/out"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A digest in the attribute is never ahead of the file: the map that it refers to is on
# the storage first.  (Otherwise a power cut could make the file refused for ever: it looks as
# if an older map had replaced a newer one.)
. "$SRC/tests/io/common.sh"

cluster_up 1
keys_in "$CASE_DIR/keys" lab other
program=$(mpi_program io convert)
cd "$CASE_DIR"
head -c 20000 /dev/urandom > plain
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/ahead.so" "$SRC/tests/io/preload/ahead.c" -ldl
noted() { # noted COUNT COMMAND...: it wrote at least COUNT digests, none ahead
    local count=$1; shift
    rm -f log
    must "$@"
    [ -s log ] && [ "$(wc -l < log)" -ge "$count" ] || fail "too few digests: $*"
    ! grep -q ahead log || fail "a digest was ahead of the map: $*"
}
watched=(env LD_PRELOAD="$CASE_DIR/ahead.so" AHEAD_LOG="$CASE_DIR/log")
preloaded() { run_io 2 "${watched[@]}" "$program" "$@"; }
file() { in_variant "${watched[@]}" mpicrypt file --keystore-dir "$CASE_DIR/keys" "$@"; }
python3 -c "import os; open('f', 'w'); os.setxattr('f', 'user.x', b'')" 2>/dev/null || skip "the file system has no extended attributes"

noted 2 preloaded write "$CASE_DIR/plain" "$CASE_DIR/made"      # two regions, one after the other
must run_io 2 "$program" read "$CASE_DIR/plain" "$CASE_DIR/made"
must in_variant mpicrypt key rotate lab --keystore-dir "$CASE_DIR/keys"
noted 1 file rekey "$CASE_DIR/made"
noted 1 file encrypt "$CASE_DIR/plain" "$CASE_DIR/new" --label lab
is_encrypted made && is_encrypted new || fail "not the kind of file that is meant"
must run_io 2 "$program" read "$CASE_DIR/plain" "$CASE_DIR/new"

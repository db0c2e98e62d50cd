# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Where things lie in the files of the tests of mpicrypt file.  BLOCK and OFFSET are in the first group, and blocks those
# of region 0.

file() { in_variant mpicrypt file --keystore-dir "$CASE_DIR/keys" "$@"; }
# number FILE AT BYTES
number() { od -An "-tu$3" -j"$2" -N"$3" "$1" | tr -d ' '; }

uuid() { od -An -tx1 -j24 -N16 "$1"; }
data_at() { echo $(($(number "$1" 56 8) + $(number "$1" 48 8) + $2)); }
# The entry of a block, and the map (place 0).
entry_at() { echo $(($(number "$1" 56 8) + $(number "$1" 48 8) - 128 * $(number "$1" 68 4) + 128 * $2)); }
copy() { rm -f "$2"; cp -a "$1" "$2"; }
map_at() { echo 1024; }
map_bytes() { number "$1" $((1024 + 44)) 4; }

# poke FILE AT: change the byte there.
poke() { printf "\\$(printf %03o $(($(number "$1" "$2" 1) ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
# zero FILE AT BYTES
zero() { dd if=/dev/zero of="$1" bs=1 seek="$2" count="$3" conv=notrunc status=none; }

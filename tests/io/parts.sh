# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Where things lie in the files of the tests of mpicrypt file: in one file (with "one"), or in FILE and its sidecar.
# BLOCK and OFFSET are in the first group, and blocks those of region 0.

file() { in_variant ${AS_ONE:+env LD_PRELOAD="$AS_ONE"} mpicrypt file --keystore-dir "$CASE_DIR/keys" "$@"; }
is_one() { [ -n "${AS_ONE-}" ]; }
# number FILE AT BYTES
number() { od -An "-tu$3" -j"$2" -N"$3" "$1" | tr -d ' '; }

# The parts of files; the one with map, entries and seal.
parts() { local name; for name; do is_one && echo "$name" || printf '%s\n' "$name" "$name.mpicrypt"; done; }
book() { parts "$1" | tail -n 1; }
copy() { rm -f "$2" "$2.mpicrypt"; cp -a "$1" "$2"; is_one || cp -a "$1.mpicrypt" "$2.mpicrypt"; }
discard() { rm -f $(parts "$@"); }
sums() { cksum $(parts "$@"); }

uuid() { od -An -tx1 -j"$(is_one && echo 24 || echo 16)" -N16 "$(book "$1")"; }
# In FILE.
data_at() { is_one && echo $(($(number "$1" 56 8) + $(number "$1" 48 8) + $2)) || echo "$2"; }
# In book FILE: the entry of a block, and the map (place 0).
entry_at() { is_one && echo $(($(number "$1" 56 8) + $(number "$1" 48 8) - 128 * $(number "$1" 68 4) + 128 * $2)) ||
    echo $(($(number "$1.mpicrypt" 4096 8) + 96 * $2)); }
entry_bytes() { is_one && echo 128 || echo 96; }
map_at() { is_one && echo 1024 || number "$1.mpicrypt" 32 8; }
map_bytes() { is_one && number "$1" $((1024 + 44)) 4 || number "$1.mpicrypt" 40 8; }

# poke FILE AT: change the byte there.
poke() { printf "\\$(printf %03o $(($(number "$1" "$2" 1) ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
# zero FILE AT BYTES
zero() { dd if=/dev/zero of="$1" bs=1 seek="$2" count="$3" conv=notrunc status=none; }

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What the scripts here share: a keystore, programs linked to the installed library, files.
set -eu
. "$SRC/tests/lib.sh"

export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig

# As in tests/lib.sh, but what it runs goes to standard error: most outputs here go to files.
must() { echo "+ $*" >&2; "$@" || fail "status $?: $*"; }

# program NAME [FLAG...]: compiled as a user compiles it, by what pkg-config says.
program() {
    local name=$1; shift
    must cc -std=gnu11 -Wall -Wextra -Werror -g -O1 $VARIANT_CFLAGS "$SRC/tests/library/programs/$name.c" -o "$CASE_DIR/$name" \
        $(pkg-config --cflags --libs mpicrypt_file) -Wl,-rpath,"$PREFIX/lib" -lpthread "$@"
}

reader() { "$CASE_DIR/reader" "$@"; }

# keys LABEL...
keys() {
    local label
    for label; do must mpicrypt key new "$label"; done
}

# encrypt PLAIN FILE [OPTION...]: under label lab, in blocks of 4 KiB.
encrypt() { must mpicrypt file encrypt "$1" "$2" --label lab --block-size 4K "${@:3}"; }

# refused STATUS TEXT READER-ARGUMENT...: with this status, and a sentence with this text.
refused() {
    local status=$1 text=$2 rc=0; shift 2
    echo "+ ! reader $*"
    reader "$@" > "$CASE_DIR/said" 2>&1 || rc=$?
    cat "$CASE_DIR/said"
    [ $rc = "$status" ] || fail "status $rc instead of $status: reader $*"
    grep -qF -- "$text" "$CASE_DIR/said" || fail "\"$text\" is not in what it says: reader $*"
}

# another_version FILE: its header says version 9, and has the right CRC-32C.
another_version() {
    python3 - "$1" <<'END'
import struct, sys
with open(sys.argv[1], "r+b") as f:
    head = bytearray(f.read(80))
    head[16] = 9
    crc = 0xffffffff
    for byte in head:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    f.seek(0)
    f.write(head + struct.pack("<I", crc ^ 0xffffffff))
END
}

# being_made FILE: as its maker leaves it who is killed.
being_made() { truncate -s 1024 "$1"; dd if=/dev/zero of="$1" bs=1 seek=512 count=4 conv=notrunc status=none; }

# The statuses of mpicrypt_file.h.
PLAIN=1 FORGED=2 TORN=3 KEY=4 UNEXPECTED=5 UNFINISHED=6 FORMAT=7 SETUP=8 IO=9 MEMORY=10 FORKED=11 ARGUMENT=12

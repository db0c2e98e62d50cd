# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What a program learns about a block that was cut short, one that is forged, and one without a
# key: three classes of errors, and the two that MPI has where ompi-crypt is missing.
. "$SRC/tests/io/common.sh"

cluster_up 1
keys_in "$CASE_DIR/keys" lab other
mkdir -m 700 "$CASE_DIR/part" "$CASE_DIR/none"
keys_in "$CASE_DIR/none" else
cp -p "$CASE_DIR/keys/lab.1" "$CASE_DIR/part"
program=$(mpi_program io convert)
errors=$(mpi_program io errors)
cd "$CASE_DIR"
here() { echo "$CASE_DIR/$1"; }
file() { in_variant mpicrypt file --keystore-dir "$CASE_DIR/keys" "$@"; }
# by KEYSTORE COMMAND...: two processes have the keys of that directory.
by() {
    local keys=$1; shift
    vcluster mpirun -n 2 env OMPI_MCA_crypt_keystore_dir="$CASE_DIR/$keys" MT_WATCHDOG=$((LIMIT - 10)) "$@"
}
number() { od -An -tu"$3" -j"$2" -N"$3" "$1"; }         # number FILE OFFSET BYTES
data_of() { number "$1" 48 8; }
# clear_entry FILE BLOCK: as if it had never been finished
clear_entry() {
    local file=$1 entries bytes=128
    entries=$(($(data_of "$1") - 128 * $(number "$1" 68 4)))
    dd if=/dev/zero of="$file" bs=1 seek=$((entries + bytes * $2)) count=$bytes conv=notrunc status=none
}
head -c 100000 /dev/urandom > plain
must file encrypt "$(here plain)" "$(here bad)" --label lab --block-size 4K
poke bad $(($(data_of bad) + 5 * 4096 + 7))
clear_entry bad 20
must by keys "$errors" MPIX_ERR_CRYPT_FORGED "$(here bad)" $((5 * 4096))
must by keys "$errors" MPIX_ERR_CRYPT_TORN "$(here bad)" $((20 * 4096))
must by none "$errors" MPIX_ERR_CRYPT_NO_KEY "$(here bad)"

must run_io 2 "$program" write-once "$(here plain)" "$(here two)"       # rows of two labels
must by part "$errors" MPIX_ERR_CRYPT_NO_KEY "$(here two)" 1000

# A seal, and a map, that do not authenticate.
must file encrypt "$(here plain)" "$(here sealed)" --label lab
must file seal "$(here sealed)"
poke sealed $(($(data_of sealed) + 50000))
must by keys env OMPI_MCA_fs_crypt_seal=1 "$errors" MPIX_ERR_CRYPT_FORGED "$(here sealed)" 50000
cp -a two swapped
python3 - swapped <<'END'
import os, sys

def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff

name = sys.argv[1]
with open(name, "r+b") as f:
    for place in (1024, 4096):
        f.seek(place)
        map_ = bytearray(f.read(3072))
        total = int.from_bytes(map_[44:48], "little")
        map_[total - 1] ^= 1
        f.seek(place)
        f.write(map_[:total] + crc32c(map_[:total]).to_bytes(4, "little"))
os.removexattr(name, "user.mpicrypt.map")
END
must by keys "$errors" MPIX_ERR_CRYPT_FORGED "$(here swapped)"

# As text, without the library, for programs that print it.
says "MPIX_ERR_CRYPT_NO_KEY: " by none "$program" read "$(here plain)" "$(here two)"

if in_variant sh -c 'command -v gfortran' > /dev/null; then
    must in_variant mpifort -Wall -Wextra -o "$CASE_DIR/fortran" "$SRC/tests/io/classes.f90" -I"$PREFIX/include" -L"$PREFIX/lib" \
        -Wl,-rpath,"$PREFIX/lib" -lmpi_crypt
    must by keys "$CASE_DIR/fortran"
else
    echo "not tried: Fortran is missing (Debian: gfortran)"
fi

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What readers of encrypted files leave: no plaintext and no key in a core file, in arguments and environment, in open or
# temporary files, in logs.  What is planted in each of these places is found.
. "$SRC/tests/io/common.sh"
unset ${!HDF5_*}

[ "$(cat /proc/sys/kernel/core_pattern)" = core ] || skip "core files go elsewhere (kernel.core_pattern)"
python3 -c 'import cryptography' 2> /dev/null || skip "python3 has no module cryptography"
cluster_up 1
cd "$CASE_DIR"
in_variant python3 -c '' > null 2>&1 || skip "python3 is missing where this Open MPI is"
keys_in "$CASE_DIR/keys" lab
ulimit -c unlimited
mkdir dump tmp home mnt data
export HOME=$CASE_DIR/home HDF5_PLUGIN_PATH=$PREFIX/lib/ompi-crypt/hdf5

# A file of HDF5 in one block: a reader of `seen` has no reason to have `hidden`.  With h5py, or lines if there is none.
canary=the-canary-sings-in-clear-text
driver=
! in_variant python3 -c 'import h5py' 2> null || driver=$(ls "$HDF5_PLUGIN_PATH"/libmpicrypt_hdf5.so 2> null || true)
if [ -n "$driver" ]; then
    in_variant python3 - $canary <<'END' || fail "h5py"
import h5py, numpy, sys
with h5py.File("plain", "w") as file:
    file["hidden"] = numpy.frombuffer((sys.argv[1] * 1024).encode(), "u1")
    file["seen"] = numpy.arange(30000, dtype="u2")
END
else
    yes $canary | head -n 4000 > plain
fi
must in_variant mpicrypt file encrypt "$CASE_DIR/plain" "$CASE_DIR/data/sealed" --label lab --block-size 1M
key=$(sed -n 's/^key plain //p' keys/lab.1)
python3 -B - "$SRC/tests/vectors" data/sealed "$key" > data.key <<'END' || fail "the data key"
import sys
sys.path.insert(0, sys.argv[1])
from onefile_map import header_of, whole_map
image = open(sys.argv[2], "rb").read()
uuid, geometry = header_of(image[:512])
print(whole_map(image[1024:], uuid).unlock({"lab": bytes.fromhex(sys.argv[3])})[0].hex())
END
hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }
{
    echo "plaintext $(hex $canary)"
    echo "key $key"
    echo "data-key $(cat data.key)"
    echo "control-path $(hex "$CASE_DIR/data")"
} > needles
rm data.key
remains() { in_variant env TMPDIR="$CASE_DIR/tmp" python3 -B "$SRC/tests/io/readers/remains.py" "$CASE_DIR/needles" "$@"; }
# leaves_nothing NAME COMMAND...
leaves_nothing() { echo "--- $1"; must remains process "$CASE_DIR/dump" "${@:2}"; }
# is_found PLACE COMMAND...: what is planted
is_found() {
    local place=$1 rc=0; shift
    echo "--- planted: $place"
    remains "$@" > found || rc=$?
    cat found
    [ $rc = 1 ] && grep -q "^$place: .*plaintext" found || fail "what is planted in $place is not found: status $rc"
}
file=$CASE_DIR/data/sealed

cat > reads.c <<'END'
/* reads FILE [keep]: all of it is read, in one piece and in small ones, and wiped; then it fills its standard output. */
#include <mpicrypt_file.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char memory[1 << 20];
int main(int argc, char **argv)
{
    mpicrypt_file_t *file;
    size_t got = 0;
    if (0 != mpicrypt_file_open(argv[1], NULL, &file, NULL) || 0 != mpicrypt_file_read(file, 0, memory, sizeof(memory), &got, NULL)) {
        return 1;
    }
    for (size_t at = 0; at < got; at += 10000) {
        size_t part;
        if (0 != mpicrypt_file_read(file, at, memory, 3000, &part, NULL)) {
            return 1;
        }
    }
    if (argc < 3) {
        explicit_bzero(memory, sizeof(memory));
    }
    while (write(1, argv[0], strlen(argv[0])) > 0) {
    }
    return 1;
}
END
cat > reads.py <<'END'
import os, sys
import ompi_crypt
file = ompi_crypt.open(sys.argv[1])
memory = bytearray(file.size)
file.readinto_at(0, memory)
for at in range(0, len(memory), 10000):
    with memoryview(memory)[at:at + 3000] as part:
        file.readinto_at(at, part)
if len(sys.argv) < 3:
    memory[:] = bytes(len(memory))
while True:
    os.write(1, b"full")
END
cat > reads_h5.py <<'END'
import os, sys
import h5py
file = h5py.File(sys.argv[1], "r")
dataset = file["hidden"]
assert file["seen"][7] == 7 and dataset.shape
kept = dataset[()] if len(sys.argv) > 2 else None
while True:
    os.write(1, b"full")
END
must in_variant cc -std=gnu11 -O1 -D_GNU_SOURCE -o reads reads.c -I"$PREFIX/include" -L"$PREFIX/lib" -lmpicrypt_file -Wl,-rpath,"$PREFIX/lib"
in_python=(env "PYTHONPATH=$PREFIX/share/ompi-crypt/python" python3 -B)

leaves_nothing "library" "$CASE_DIR/reads" "$file"
is_found core process "$CASE_DIR/dump" "$CASE_DIR/reads" "$file" keep
is_found memory process "$CASE_DIR/dump" "$CASE_DIR/reads" "$file" keep
is_found cmdline process "$CASE_DIR/dump" "$CASE_DIR/reads" "$file" keep $canary
is_found environ process "$CASE_DIR/dump" env PLANTED=$canary "$CASE_DIR/reads" "$file"
leaves_nothing "Python" "${in_python[@]}" "$CASE_DIR/reads.py" "$file"
is_found core process "$CASE_DIR/dump" "${in_python[@]}" "$CASE_DIR/reads.py" "$file" keep
leaves_nothing "mpicrypt file cat" mpicrypt file cat "$file"
leaves_nothing "mpicrypt file decrypt" mpicrypt file decrypt "$file" -
if [ -n "$driver" ]; then
    leaves_nothing "h5dump, by the driver" env HDF5_DRIVER=mpicrypt h5dump -d /seen "$file"
    leaves_nothing "h5py, by the driver" env HDF5_DRIVER=mpicrypt python3 -B "$CASE_DIR/reads_h5.py" "$file"
    is_found memory process "$CASE_DIR/dump" env HDF5_DRIVER=mpicrypt python3 -B "$CASE_DIR/reads_h5.py" "$file" keep
else
    echo "not tried: the driver of HDF5, which this build does not have"
fi

echo "--- mount"
if [ -x "$PREFIX/libexec/ompi-crypt/mpicrypt-mount" ] && [ -w /dev/fuse ]; then
    # up: $mount is the process
    up() {
        : > mounted
        in_variant sh -c 'echo $$ > pid; TMPDIR=$1/tmp exec mpicrypt mount $1/data $1/mnt' - "$CASE_DIR" > mounted 2> mount.log &
        until grep -q '^mounted ' mounted; do kill -0 $! || fail "mpicrypt mount: $(cat mount.log)"; done
        mount=$(cat pid)
    }
    # pages: how many of the file the kernel has
    pages() {
        in_variant python3 - <<'END'
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
libc.mincore.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
file = os.open("mnt/sealed", os.O_RDONLY)
size = os.fstat(file).st_size
there = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
assert 0 == libc.mincore(libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0), size, there), ctypes.get_errno()
print(sum(byte & 1 for byte in there.raw))
END
    }
    up
    must in_variant cmp plain mnt/sealed
    must remains pid $mount > found
    cat found
    grep -qx 'core: limit 0' found || fail "a mount has core files"
    # The kernel's pages of it: there while it is mounted, and not found by a mount after that.
    [ "$(pages)" -gt 10 ] || fail "the kernel has $(pages) pages of a file that was read"
    must in_variant fusermount3 -u "$CASE_DIR/mnt"
    wait
    up
    [ "$(pages)" = 0 ] || fail "the kernel has $(pages) pages of the mount before"
    kill -SEGV $mount
    wait
    in_variant fusermount3 -u "$CASE_DIR/mnt"
    [ -z "$(find . -name 'core*')" ] || fail "a mount left a core file"
else
    echo "not tried: this build has no mpicrypt-mount, or /dev/fuse cannot be opened"
fi

echo "--- files: logs, temporary ones, what was printed"
must remains files tmp home dump mnt data keys/log mount.log mounted
echo $canary > tmp/planted
is_found tmp/planted files tmp

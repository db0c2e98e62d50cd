# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mount.sh [MIB [ROUNDS]]: how fast files are read through `mpicrypt mount`, and plain ones through libfuse's example
# passthrough_ll: all of a file in 1 MiB reads, with one program and with two at a time, and 4 KiB at random places, also of a
# file that was encrypted in blocks of 4 KiB (`small`).  In each round the mounts take turns, and the kernel has no page of
# the file before a read.  Nothing is judged.  The target is a median of at least 0.8 of passthrough_ll.
set -eu
. "$SRC/tests/lib.sh"
PATH=$PREFIX/bin:$PATH
mib=${1:-512} rounds=${2:-9}
example=/usr/share/doc/libfuse3-dev/examples

[ -x "$PREFIX/libexec/ompi-crypt/mpicrypt-mount" ] || skip "this build has no mpicrypt-mount (Debian: libfuse3-dev)"
[ -w /dev/fuse ] && [ -w /proc/sys/vm/drop_caches ] || skip "/dev/fuse or drop_caches cannot be opened"
[ -e $example/passthrough_ll.c ] || skip "$example/passthrough_ll.c is missing (Debian: libfuse3-dev)"
[ -n "${OMPI_CRYPT_MOUNTS-}" ] || exec unshare --mount env OMPI_CRYPT_MOUNTS=1 bash "$0" "$@"

export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
cd "$CASE_DIR"
gcc -O2 -D_GNU_SOURCE $(pkg-config --cflags fuse3) -o passthrough_ll $example/passthrough_ll.c $(pkg-config --libs fuse3) || fail "passthrough_ll"
mkdir plain sealed through mounted
head -c ${mib}M /dev/urandom > plain/file
must mpicrypt key new lab
must mpicrypt file encrypt plain/file sealed/file --label lab
must mpicrypt file encrypt plain/file sealed/small --label lab --block-size 4K
ln plain/file plain/small
trap 'umount -l through mounted 2> "$CASE_DIR/null" || true; wait' EXIT
# Its default cache timeouts are those of the mount here.
./passthrough_ll -f -o source="$CASE_DIR/plain" through > pass.log 2>&1 &
mpicrypt mount sealed mounted > mount.log 2>&1 &
until mountpoint -q through && mountpoint -q mounted; do sleep 0.05; done
must cmp plain/file mounted/file

cat > read.py <<'END'
import os, random, sys, threading, time
path, how = sys.argv[1:]
size = os.stat(path).st_size

def whole(first, last):
    file = os.open(path, os.O_RDONLY)
    for at in range(first, last, 1 << 20):
        os.pread(file, 1 << 20, at)
    os.close(file)

def places():
    random.seed(1)
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    for _ in range(4000):
        os.pread(file, 4096, random.randrange(size // 4096) * 4096)

work = {"one": [lambda: whole(0, size)], "two": [lambda: whole(0, size // 2), lambda: whole(size // 2, size)],
        "random": [places], "small": [places]}[how]
bytes_ = 4000 * 4096 if work == [places] else size
threads = [threading.Thread(target=each) for each in work]
start = time.monotonic()
for thread in threads: thread.start()
for thread in threads: thread.join()
print("%.1f" % (bytes_ / (time.monotonic() - start) / 1e6))
END
# The files below stay in the page cache, or both mounts would be measured with the disk.
# Dropping what the kernel has of one mount: the files are opened anew, without their pages.
drop() {
    python3 -c 'import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)' "$1"
}
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg); $(nproc) processors, $mib MiB, $rounds rounds"
cat plain/file sealed/* > null
for ((i = 0; i < rounds; i++)); do
    for how in one two random small; do
        file=$([ $how = small ] && echo small || echo file)
        for ((j = 0; j < 2; j++)); do
            where=$([ $(((i + j) % 2)) = 0 ] && echo through || echo mounted)
            drop $where/$file
            echo "$how $where $(python3 read.py $where/$file $how)"
        done
    done
done > figures
python3 - figures <<'END'
import statistics, sys
rows = {}
for line in open(sys.argv[1]):
    how, where, rate = line.split()
    rows.setdefault(how, {}).setdefault(where, []).append(float(rate))
for how, of in rows.items():
    ratios = [mounted / through for through, mounted in zip(of["through"], of["mounted"])]
    print("%-7s passthrough_ll %7.1f MB/s   mpicrypt mount %7.1f MB/s   median ratio %.2f (%.2f to %.2f)" % (
        how, statistics.median(of["through"]), statistics.median(of["mounted"]), statistics.median(ratios), min(ratios), max(ratios)))
END

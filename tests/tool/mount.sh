# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# `mpicrypt mount`: what is below the mountpoint is byte for byte what was encrypted, by read, mmap and many threads;
# what was damaged is an error and a line; links lead nowhere else; another user sees nothing; and when it ends, no mount,
# no descriptor and no file is left.
. "$SRC/tests/lib.sh"
PATH=$PREFIX/bin:$PATH
set -eu

[ -x "$PREFIX/libexec/ompi-crypt/mpicrypt-mount" ] || skip "this build has no mpicrypt-mount (Debian: libfuse3-dev)"
[ -c /dev/fuse ] && [ -r /dev/fuse ] && [ -w /dev/fuse ] || skip "/dev/fuse cannot be opened"
command -v fusermount3 > /dev/null || skip "fusermount3 is missing (Debian: fuse3)"
# Mounts of our own, which end with us.
[ -n "${OMPI_CRYPT_MOUNTS-}" ] || exec unshare --mount env OMPI_CRYPT_MOUNTS=1 bash "$0" "$@"

export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys TMPDIR=$CASE_DIR/tmp
cd "$CASE_DIR"
# Another user may come as far as the mountpoint.
place=$(mktemp -d /tmp/ompi-crypt-test-XXXXXX)
chmod 755 "$place"
trap 'kill "$mount" 2> "$CASE_DIR/null" || true; wait; rm -rf --one-file-system "$place"' EXIT
mount=0
mkdir tmp plain data data/sub data/sub/deep "$place/mnt" "$place/nobody"
mnt=$place/mnt
must mpicrypt key new lab
must mpicrypt key new other

# ---- what the cases share ----

# The shell's background jobs ignore SIGINT; a user's program does not.
cat > default.py <<'END'
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
END

# up [OPTION...]: `data` is mounted, by `user` if it is set; $mount is the process.
user=()
up() {
    : > out                             # not the line of the mount before
    ${user[@]+"${user[@]}"} python3 "$PWD/default.py" mpicrypt mount "$@" data "$mnt" > out 2> log & mount=$!
    until grep -qxF "mounted data on $mnt" out; do
        kill -0 $mount 2> null || fail "mpicrypt mount $* ended: $(cat log)"
        sleep 0.02
    done
}

mounts() { grep -cF " $mnt " /proc/self/mounts || true; }

# down STATUS COMMAND...: ends it, and it ends with this status.
down() {
    local wanted=$1 status=0; shift
    echo "+ $*"
    "$@"
    wait $mount || status=$?
    [ $status = "$wanted" ] || fail "status $status after $*: $(cat log)"
    [ "$(mounts)" = 0 ] || fail "$mnt is still mounted after $*"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "left in TMPDIR: $(ls -A "$TMPDIR")"
}

# logged COUNT TEXT: so many lines of the log have it.
logged() { [ "$(grep -cF -- "$2" log || true)" = "$1" ] || fail "not $1 times \"$2\" in the log: $(cat log)"; }

# error TEXT COMMAND...: it fails and says so.
error() {
    local text=$1 status=0; shift
    "$@" > got 2> err || status=$?
    [ $status != 0 ] && grep -qF -- "$text" err || fail "status $status, not \"$text\", from $*: $(cat err)"
}

sizes=(0 1 511 512 513 65535 65536 65537 1000000)
python3 - "${sizes[@]}" <<'END'
import random, sys
random.seed(1)
for size in map(int, sys.argv[1:]):
    open(f"plain/s{size}", "wb").write(random.randbytes(size))
open("plain/big", "wb").write(random.randbytes(20_000_003))
END
for size in "${sizes[@]}"; do mpicrypt file encrypt "plain/s$size" "data/s$size" --label lab > null; done
mpicrypt file encrypt plain/big data/big --label lab > null
cp data/s65537 data/sub/one
cp data/s1000000 data/sub/deep/two
echo plaintext > data/plain
echo plaintext > data/sub/plain
mkfifo data/fifo

echo "contents"
up
[ "$(ls -A "$mnt")" = "$(printf '%s\n' big "${sizes[@]/#/s}" sub | sort)" ] || fail "listed: $(ls -A "$mnt")"
[ "$(ls -A "$mnt/sub" | tr '\n' ' ')" = "deep one " ] || fail "listed: $(ls -A "$mnt/sub")"
for size in "${sizes[@]}"; do
    must cmp "plain/s$size" "$mnt/s$size"
    [ "$(stat -c '%s %a %u' "$mnt/s$size")" = "$size 400 $(id -u)" ] || fail "$(stat "$mnt/s$size")"
done
must cmp plain/s65537 "$mnt/sub/one"
must cmp plain/s1000000 "$mnt/sub/deep/two"
must cmp plain/big "$mnt/big"
error "No such file or directory" cat "$mnt/plain"
error "No such file or directory" cat "$mnt/fifo"
error "Read-only file system" touch "$mnt/s1"
error "Read-only file system" rm "$mnt/s1"
grep -F " $mnt " /proc/self/mounts | grep -qE ' fuse\.mpicrypt ro,nosuid,nodev,.*default_permissions' || fail "$(grep -F " $mnt " /proc/self/mounts)"
must_fail grep -E "^[^ ]+ $mnt .*allow_(other|root)" /proc/self/mounts
cat > read.py <<'END'
import mmap, os, random, sys, threading
plain = open("plain/big", "rb").read()
path = sys.argv[1]

def offsets(seed, count):
    random.seed(seed)
    return [(random.randrange(len(plain) + 10), random.choice((1, 100, 4096, 65536, 300_000))) for _ in range(count)]

def by_pread(file, places):
    for at, count in places:
        assert os.pread(file.fileno(), count, at) == plain[at:at + count], (at, count)

def by_mmap(file, places):
    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        assert len(memory) == len(plain)
        for at, count in places:
            assert memory[at:at + count] == plain[at:at + count], (at, count)

wrong = []
def run(what, places):
    try:
        with open(path, "rb") as file:
            what(file, places)
    except BaseException as exception:
        wrong.append(repr(exception))

threads = [threading.Thread(target=run, args=((by_pread, by_mmap)[i % 2], offsets(i, 150))) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong
END
must python3 read.py "$mnt/big"
echo 3 > /proc/sys/vm/drop_caches 2> null || true
must dd if="$mnt/big" of=part bs=1 skip=12345678 count=1000 status=none
must cmp part <(tail -c +12345679 plain/big | head -c 1000)
[ ! -s log ] || fail "in the log: $(cat log)"

echo "its process: no core, no descriptor of a file that nobody has open"
grep -qE '^Max core file size +0 +0 ' "/proc/$mount/limits" || fail "$(cat "/proc/$mount/limits")"
tr '\0' '\n' < "/proc/$mount/cmdline" | must grep -qx -- data
until [ -z "$(find "/proc/$mount/fd" -lname "$CASE_DIR/data/*" 2> null)" ]; do sleep 0.1; done
must mpicrypt key rotate lab
must mpicrypt file rekey data/sub/one
must cmp plain/s65537 "$mnt/sub/one"
down 0 fusermount3 -u "$mnt"

echo "many files: their number does not count"
mkdir data/many
for ((i = 0; i < 300; i++)); do cp data/s513 data/many/$i; done
up
cat "$mnt"/many/* > got
[ "$(stat -c %s got)" = $((300 * 513)) ] || fail "$(stat -c %s got) bytes"
open=$(find "/proc/$mount/fd" -lname "$CASE_DIR/data/*" | wc -l)
[ "$open" -le 200 ] || fail "$open descriptors"
exec 5< "$mnt/many/7"
must cmp plain/s513 - <&5
down 143 kill -TERM $mount
exec 5<&-
rm -r data/many

echo "other ends"
up; down 130 kill -INT $mount
up; down 129 kill -HUP $mount

echo "plain files, if asked for"
up --with-plain
[ "$(cat "$mnt/plain" "$mnt/sub/plain")" = "$(printf 'plaintext\nplaintext')" ] || fail "plain files differ"
must cmp plain/s513 "$mnt/s513"
error "No such file or directory" cat "$mnt/fifo"
down 0 fusermount3 -u "$mnt"

echo "links"
ln -s ../big data/sub/inside
ln -s sub data/linked
ln -s ../.. data/sub/deep/up
ln -s /etc/passwd data/absolute
ln -s ../plain/big data/outside
ln -s "$CASE_DIR/data/big" data/absolute-inside
ln -s /proc/self/root data/sub/root
ln -s none data/dangling
mkdir "$place/elsewhere" data/other-fs
up --with-plain
must mount -t tmpfs none data/other-fs
cp data/s1 data/other-fs/file
must cmp plain/big "$mnt/sub/inside"
must cmp plain/s1000000 "$mnt/linked/deep/two"
for name in absolute outside absolute-inside sub/root other-fs other-fs/file; do
    error "Permission denied" cat "$mnt/$name"
done
error "Too many levels of symbolic links" ls "$mnt/sub/deep/up/"
error "No such file or directory" cat "$mnt/dangling"
[ "$(ls -A "$mnt" | tr '\n' ' ')" = "$(printf '%s\n' big linked plain "${sizes[@]/#/s}" sub | sort | tr '\n' ' ')" ] || fail "listed: $(ls -A "$mnt")"
[ -z "$(find "$mnt" -type l)" ] || fail "the kernel sees links"
logged 1 "mpicrypt mount: outside: leads out of the directory, or to another file system"
logged 1 "mpicrypt mount: absolute: leads out of the directory, or to another file system"
umount data/other-fs
down 0 fusermount3 -u "$mnt"
rm -r data/absolute data/outside data/absolute-inside data/sub/root data/dangling data/sub/deep/up data/linked data/other-fs

echo "damage: an error, one line, and no wrong byte"
cp data/big data/flipped
python3 - data/flipped <<'END'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(10_000_000)
    byte = file.read(1)[0]
    file.seek(10_000_000)
    file.write(bytes([byte ^ 1]))
END
head -c 700000 data/s1000000 > data/cut
{ head -c 100 data/s65536; printf X; tail -c +102 data/s65536; } > data/header
head -c 300 data/s65536 > data/short
cp data/s512 data/nomap
dd if=/dev/zero of=data/nomap bs=1 seek=600 count=40000 conv=notrunc status=none
mpicrypt file encrypt plain/s65537 data/foreign --label other > null
up --label lab
cat > damaged.py <<'END'
import errno, os, sys
plain = open("plain/big", "rb").read()
file = os.open(sys.argv[1], os.O_RDONLY)
refused = 0
for at in range(0, len(plain), 4096):
    try:
        assert os.pread(file, 4096, at) == plain[at:at + 4096], at
    except OSError as exception:
        assert exception.errno == errno.EIO, exception
        refused += 4096
print(refused)
assert 0 < refused <= 1 << 20, refused
END
for time in 1 2 3; do must python3 damaged.py "$mnt/flipped"; done
error "Input/output error" cat "$mnt/flipped"
logged 1 "mpicrypt mount: flipped: at offset "
# By mmap it is SIGBUS.
status=0
python3 -c 'import mmap, sys
with open(sys.argv[1], "rb") as file: bytes(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))' "$mnt/flipped" 2> err || status=$?
[ $status = 135 ] || fail "status $status by mmap"
for name in header nomap short; do
    for time in 1 2 3; do error "Input/output error" cat "$mnt/$name"; done
    logged 1 "mpicrypt mount: $name: "
done
error "Input/output error" cat "$mnt/cut"
error "Input/output error" cat "$mnt/foreign"
logged 1 "mpicrypt mount: foreign: "
# A plain file in the place of an encrypted one: the attribute tells, unless it is another file.
cp plain/s511 data/s511
error "Input/output error" cat "$mnt/s511"
rm data/s512
cp plain/s512 data/s512
error "No such file or directory" cat "$mnt/s512"
down 0 fusermount3 -u "$mnt"
mv keys/lab.1 lab.1
up
error "Permission denied" cat "$mnt/s513"
logged 1 "mpicrypt mount: s513: "
must cmp plain/s65537 "$mnt/foreign"
down 0 fusermount3 -u "$mnt"
mv lab.1 keys/lab.1
rm data/flipped data/cut data/header data/short data/nomap data/foreign data/s511 data/s512

echo "files that change"
up
exec 5< "$mnt/s1000000"
head -c 10 <&5 > got
cp data/big data/new
mv data/new data/s1000000
{ cat got; cat <&5; } > all
must cmp plain/s1000000 all
exec 5<&-
must cmp plain/big "$mnt/s1000000"
# In its place: the kernel's pages of it are not used again.
cat data/s65537 > data/s1000000
until [ "$(stat -c %s "$mnt/s1000000")" = 65537 ]; do sleep 0.05; done
must cmp plain/s65537 "$mnt/s1000000"
mv data/sub data/moved
must cmp plain/s65537 "$mnt/moved/one"
error "No such file or directory" cat "$mnt/sub/one"
down 0 fusermount3 -u "$mnt"

echo "another user"
up
must setpriv --reuid 65534 --regid 65534 --clear-groups ls "$place" > null
error "Permission denied" setpriv --reuid 65534 --regid 65534 --clear-groups ls "$mnt"
error "Permission denied" setpriv --reuid 65534 --regid 65534 --clear-groups cat "$mnt/s1"
down 0 fusermount3 -u "$mnt"

echo "a mount of somebody who is not root, from which root is kept"
user=(setpriv --reuid 65534 --regid 65534 --clear-groups env "HOME=$place/nobody")
if mknod -m 666 "$place/fuse" c 10 229 2> null && mount --bind "$place/fuse" /dev/fuse && "${user[@]}" sh -c ': <> /dev/fuse' 2> null &&
    "${user[@]}" test -x "$PREFIX/libexec/ompi-crypt/mpicrypt-mount" -a -r /usr/bin/python3; then
    cp -r data keys default.py "$place/nobody"
    chown -R 65534:65534 "$place/nobody"
    before=$PWD
    cd "$place/nobody"
    mkdir mnt
    chown 65534 mnt
    mnt=$place/nobody/mnt
    export OMPI_MCA_crypt_keystore_dir=$place/nobody/keys
    up
    "${user[@]}" cat "$mnt/big" | must cmp - "$before/plain/big"
    error "Permission denied" ls "$mnt"
    # Nor can another process of this user look into it: what /proc has of it is root's.
    [ "$(stat -c %u "/proc/$mount/mem") $(awk '/^Uid:/ { print $2 }' "/proc/$mount/status")" = "0 65534" ] || fail "$(stat "/proc/$mount/mem")"
    must_fail "${user[@]}" cat "/proc/$mount/mem" 2> err
    must grep -q "Permission denied" err
    down 143 kill -TERM $mount
    up; down 0 "${user[@]}" fusermount3 -u "$mnt"
    cd "$before"
    mnt=$place/mnt
else
    echo "not tried: nobody cannot open /dev/fuse here, or this build"
fi
user=()

echo "words"
says "mpicrypt mount: DIR MOUNTPOINT; see --help" mpicrypt mount data
says "mpicrypt mount: none: No such file or directory" mpicrypt mount none "$mnt"
must_fail mpicrypt mount data "$place/none"
[ "$(mounts)" = 0 ] || fail "$mnt is mounted"

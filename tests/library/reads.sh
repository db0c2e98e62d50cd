# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Reading: random ranges of files with one region, many regions, holes, no bytes, more than 2 GiB; written by mpicrypt and
# by a job; with and without cache and threads.  Few system calls for many blocks.  What the file is like: regions, seal.
. "$SRC/tests/library/common.sh"

cd "$CASE_DIR"
program reader
cluster_up 1
keys lab other
head -c 5000123 /dev/urandom > plain
encrypt plain made
encrypt plain large --block-size 1M --algorithm chacha20-poly1305

echo "--- ranges"
for name in made large; do
    must reader cat $name > again
    must cmp plain again
    must reader random $name plain 150
    must reader cache=1 random $name plain 60           # no block fits
    must reader cache=20000 random $name plain 60       # a few do, of 4 KiB
    must reader threads=4 random $name plain 60
    must reader fd=1 label=lab random $name plain 10
    refused 0 "text " verify $name
    must reader stop $name > said
done
must reader at made 4999999 1000000 > again
must cmp <(tail -c +5000000 plain) again
must reader at made 5000123 10 > again
must test ! -s again

echo "--- no bytes, holes, more than 2 GiB"
: > empty
encrypt empty empty.made
must reader cat empty.made > again
must test ! -s again
refused 0 "text " verify empty.made
truncate -s 2200M sparse
printf 'at the end' | dd of=sparse bs=1 seek=2306867190 conv=notrunc status=none
must mpicrypt file encrypt sparse sparse.made --label lab --sparse --block-size 16M
must reader at sparse.made 2306867190 100 > again
must cmp <(printf 'at the end') again
must reader at sparse.made 2147483600 300000 > again
must cmp <(head -c 300000 /dev/zero) again
rm sparse sparse.made

echo "--- regions of two labels in turn, written by a job"
head -c 300000 plain > some
convert=$(mpi_program io convert)
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys must vcluster mpirun -n 2 "$convert" write "$CASE_DIR/some" "$CASE_DIR/ours"
must reader cat ours > again
must cmp some again
must reader random ours some 150
must reader cache=1 random ours some 50
must reader about ours
says "region 0 encrypted 1 readable 1 aes-" reader about ours
says " once 0 runs 0+1000" reader about ours
# With one of the keys, its rows can be read, and no others.
mkdir -m 700 half
cp -a keys/log keys/lock keys/lab.1 half/
must reader keystore=half at ours 0 1000 > again
must cmp -n 1000 some again
refused $KEY "ours: at offset 1000: no key for these bytes (label other)" keystore=half at ours 0 1001
refused $KEY "ours: at offset 1000: no key for these bytes (label other)" keystore=half verify ours
must reader keystore=half at ours 2000 1000 > again
must cmp <(tail -c +2001 some | head -c 1000) again
says "readable 0" reader keystore=half about ours

echo "--- sealed"
root=$(mpicrypt file seal made | grep -oE '[0-9a-f]{64}' | head -n 1)
must reader root="$root" label=lab cat made > again
must cmp plain again
says "sealed 1 $root" reader about made
must reader root="$root" random made plain 50

[ "$VARIANT" != asan ] || exit 0      # LeakSanitizer and strace exclude each other
echo "--- system calls"
must strace -f -e trace=pread64,preadv,preadv2,read,fcntl -o calls "$CASE_DIR/reader" at large 0 4194304 > again
must cmp <(head -c 4194304 plain) again
must strace -f -e trace=pread64,preadv,preadv2,read,fcntl -o calls.none "$CASE_DIR/reader" at large 0 0 > again
echo "calls for 4 MiB: $(wc -l < calls) with opening, $(wc -l < calls.none) of them opening"
[ $(($(wc -l < calls) - $(wc -l < calls.none))) -le 12 ] || fail "too many system calls: $(cat calls)"
# Fewer bytes, in small blocks.
must strace -f -e trace=pread64,preadv,preadv2,read,fcntl -o calls.small "$CASE_DIR/reader" at made 4000 200000 > again
must cmp <(tail -c +4001 plain | head -c 200000) again
must strace -f -e trace=pread64,preadv,preadv2,read,fcntl -o calls.made "$CASE_DIR/reader" at made 0 0 > again
[ $(($(wc -l < calls.small) - $(wc -l < calls.made))) -le 8 ] || fail "too many system calls: $(cat calls.small)"
must_fail grep F_OFD_SETLKW calls calls.small
# No lock is taken for it: opening and closing take and release what they do without reading.
[ "$(grep -c SETLK calls)" = "$(grep -c SETLK calls.none)" ] || fail "a read took a lock"

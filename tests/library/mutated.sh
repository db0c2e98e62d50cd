# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mutated.sh N: files whose bytes were changed N times at random are opened and read: an error and zeros, or the right
# bytes.  With AddressSanitizer and UndefinedBehaviorSanitizer.  `libfuzzer library` of tests/fuzz makes better inputs.
. "$SRC/tests/library/common.sh"

cd "$CASE_DIR"
keys lab
head -c 150000 /dev/urandom > plain
encrypt plain made
sources=$(ls "$SRC"/opal/mca/common/{crypt/base,cryptfile/*}/*.c "$SRC"/opal/mca/aead/openssl/*.c \
    "$SRC"/opal/mca/aead/base/aead_base_{choose,selftest}.c "$SRC"/ompi/mca/common/cryptmpio/cryptmpio_{old,posix*}.c \
    "$SRC"/lib/mpicrypt_file/*.c | grep -v _component.c)
mkdir o
for source in $sources; do echo "-o o/$(cksum <<<"$source" | cut -d ' ' -f 1).o $source"; done |
    xargs -P 2 -L 1 cc -std=gnu11 -D_GNU_SOURCE -DPACKAGE_VERSION='"mutated"' -O1 -g -fno-strict-aliasing -fsanitize=address,undefined \
        -fno-sanitize-recover=all -I"$SRC" -c
must cc -std=gnu11 -O1 -g -fsanitize=address,undefined -I"$SRC/lib/mpicrypt_file" "$SRC/tests/library/programs/mutate.c" o/*.o -o mutate \
    -lcrypto -lpthread
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1
must ./mutate made plain "$1" "$(od -An -tu4 -N4 /dev/urandom)"

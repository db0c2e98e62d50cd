# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# threads.sh [tsan]: 8 threads read ranges of one open file, by way of its cache and beside it, and with threads of the
# library's own.  tsan: the library is compiled with ThreadSanitizer.
. "$SRC/tests/library/common.sh"

cd "$CASE_DIR"
keys lab
head -c 3000000 /dev/urandom > plain
encrypt plain made
sleep 3                                 # a file that was changed this second is not kept in the cache
if [ "${1-}" = tsan ]; then
    sources=$(ls "$SRC"/opal/mca/common/{crypt/base,cryptfile/*}/*.c "$SRC"/opal/mca/aead/openssl/*.c \
        "$SRC"/opal/mca/aead/base/aead_base_{choose,selftest}.c "$SRC"/ompi/mca/common/cryptmpio/cryptmpio_{old,posix*}.c \
        "$SRC"/lib/mpicrypt_file/*.c | grep -v _component.c)
    mkdir o
    for source in $sources; do echo "-o o/$(cksum <<<"$source" | cut -d ' ' -f 1).o $source"; done |
        xargs -P 2 -L 1 cc -std=gnu11 -D_GNU_SOURCE -DPACKAGE_VERSION='"tsan"' -O1 -g -fno-strict-aliasing -mcx16 -fsanitize=thread -I"$SRC" -c
    must cc -std=gnu11 -O1 -g -fsanitize=thread -I"$SRC/lib/mpicrypt_file" "$SRC/tests/library/programs/reader.c" o/*.o -o reader -lcrypto -lpthread
    export TSAN_OPTIONS="halt_on_error=1 exitcode=66"
    must reader threads made plain 10
    must reader cache=40000 threads=3 threads made plain 10
    exit
fi
program reader
must reader threads made plain 60
must reader cache=40000 threads made plain 60
must reader threads=3 threads made plain 30
must reader threads=8 random made plain 100

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# libfuzzer.sh TARGET [SECONDS [afl]]: fuzz_TARGET.c under clang's libFuzzer, or afl++, with
# AddressSanitizer and UndefinedBehaviorSanitizer, from the inputs in
# corpus-TARGET or those that seeds.py makes.  What it finds beyond them is kept
# and used again.
set -eu
. "$SRC/tests/lib.sh"

target=$1 seconds=${2:-60} cc=${3:+$3-}clang${3:+-fast}
here=$SRC/tests/fuzz
flags="-std=gnu11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all"
sanitize=address,undefined
found=${FUZZ_FOUND:-$VARIANT_DIR/fuzz/$target}

command -v "$cc" >/dev/null || skip "$cc is not installed"
echo 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n); int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return n && !p; }' \
    > "$CASE_DIR/probe.c"
"$cc" -fsanitize=fuzzer "$CASE_DIR/probe.c" -o "$CASE_DIR/probe" 2>/dev/null ||
    skip "clang has no libFuzzer (Debian: libclang-rt-14-dev)"

# The core, one provider, and the half of btl/crypt that unit tests take; nothing here needs Open MPI.
sources=$(ls "$SRC"/opal/mca/common/crypt*/*/*.c "$SRC"/opal/mca/aead/openssl/*.c \
    "$SRC"/opal/mca/btl/crypt/btl_crypt_{address,frame,in,kernel,link,listen,out}.c | grep -v _component.c)
program=$here/fuzz_$target.c
if [ "$target" = library ]; then        # libmpicrypt_file: any change of the bytes of a file
    sources="$sources $(ls "$SRC"/lib/mpicrypt_file/*.c "$SRC"/ompi/mca/common/cryptmpio/cryptmpio_{old,posix*}.c \
        "$SRC"/opal/mca/aead/base/aead_base_{choose,selftest}.c)"
    program=$SRC/tests/library/programs/mutate.c
    flags="$flags -DLIBFUZZER -DPACKAGE_VERSION=\"fuzz\" -I$SRC/lib/mpicrypt_file"
    export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys MUTATE_FILE=$CASE_DIR/made MUTATE_PLAIN=$CASE_DIR/plain
    unset OMPI_MCA_crypt_psk_file
    must mpicrypt key new lab
    head -c 60000 /dev/urandom > "$MUTATE_PLAIN"
    must mpicrypt file encrypt "$MUTATE_PLAIN" "$MUTATE_FILE" --label lab --block-size 4K
fi
mkdir "$CASE_DIR/o"
# Rooms may have files of one name: each object is called by its path.
object() { local path=${1#"$SRC"/}; echo "$CASE_DIR/o/${path//\//.}.o"; }
for source in $sources "$program"; do echo "-o $(object "$source") $source"; done |
    xargs -P 2 -L 1 "$cc" $flags -fsanitize=$sanitize -fsanitize=fuzzer-no-link -I"$SRC" -c
"$cc" $flags -fsanitize=$sanitize -fsanitize=fuzzer "$CASE_DIR"/o/*.o -o "$CASE_DIR/fuzz" -lcrypto -lpthread

corpus=$here/corpus-$target
if [ "$target" = library ]; then
    corpus=$CASE_DIR/seeds
    mkdir "$corpus"
    for kind in 0 1 2 3 4 5 6; do printf "\\$(printf %03o $kind)\10\2\0\1\2\3\4" > "$corpus/$kind"; done
elif [ ! -d "$corpus" ]; then
    python3 "$here/seeds.py" "$CASE_DIR/seeds"
    corpus=$CASE_DIR/seeds/${target#file_}
fi
mkdir -p "$found"
cd "$CASE_DIR"
if [ "$cc" != clang ]; then
    must env AFL_NO_UI=1 AFL_NO_AFFINITY=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 \
        "ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}symbolize=0:abort_on_error=1" afl-fuzz -m none -t 20000 -V "$seconds" -i "$corpus" -o afl -- ./fuzz
    ls afl/default/crashes afl/default/hangs
    must_fail compgen -G 'afl/default/crashes/id*'
    exit
fi
# (Its own status for a find is 77, which is ours for a case that was skipped.)
UBSAN_OPTIONS=print_stacktrace=1 ./fuzz -error_exitcode=1 -max_total_time="$seconds" -max_len=4096 -timeout=20 \
    -print_final_stats=1 "$found" "$corpus"

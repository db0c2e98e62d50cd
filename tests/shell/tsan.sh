# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# ThreadSanitizer over the unit tests that have threads: first calls, the worker team with 2,
# 4 and 8 threads forced, sessions, epochs, groups, a connection of btl/crypt; and over mpicrypt file with four
# threads, on many files and on a large one.  The core and
# the openssl provider are compiled again for it, with every (key, nonce) pair on record.
set -eu
. "$SRC/tests/lib.sh"

printf 'int main(void) { return 0; }\n' > "$CASE_DIR/probe.c"
gcc -fsanitize=thread -o "$CASE_DIR/probe" "$CASE_DIR/probe.c" && "$CASE_DIR/probe" ||
    skip "gcc has no ThreadSanitizer here"

# Compile as the build tree does, but for the sanitizer.
cp -r "$BUILD" "$CASE_DIR/build"
cd "$CASE_DIR/build"
find . -name '*.lo' -o -name '*.o' -o -name '*.la' -o -name '*.a' -type f | xargs rm -f
tests='test_first_use test_team test_share test_session_threads test_btl_threads'
flags='-g -O1 -fsanitize=thread'
must make -s -C opal/mca/common/crypt check TESTS= CFLAGS="$flags -std=gnu11 -fno-strict-aliasing"
must make -s -C opal/mca/common/cryptfile check TESTS= CFLAGS="$flags -std=gnu11 -fno-strict-aliasing"
must make -s -C opal/mca/aead CFLAGS="$flags -std=gnu11 -fno-strict-aliasing" libaead_rules.la
must make -s -C opal/mca/aead/openssl CFLAGS="$flags -std=gnu11 -fno-strict-aliasing" libaead_openssl_module.la
must make -s -C opal/mca/btl/crypt CFLAGS="$flags -std=gnu11 -fno-strict-aliasing" libbtl_crypt_engine.la
(cd tests/unit && rm -f $tests && must make -s $tests CFLAGS="$flags -std=gnu11 -fno-strict-aliasing")
for test in $tests; do
    must env TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 "tests/unit/$test"
    nm "tests/unit/$test" | grep -q __tsan_func_entry || fail "$test was built without ThreadSanitizer"
done

make_for() { must make -s -C "$1" CFLAGS="$flags -std=gnu11 -fno-strict-aliasing" "$2"; }
[ ! -e standalone/Makefile ] || make_for standalone libmca_aead_base.la
make_for ompi/mca/common/cryptmpio libcryptmpio_posix.la
make_for ompi/tools/mpicrypt mpicrypt
cd "$CASE_DIR"
# Of the providers openssl only: others are libraries that are loaded in a way that the sanitizer refuses.
export OMPI_MCA_aead=openssl OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
tool() { must "$CASE_DIR/build/ompi/tools/mpicrypt/mpicrypt" "$@"; }
nm build/ompi/tools/mpicrypt/.libs/mpicrypt | grep -q __tsan_func_entry || fail "mpicrypt was built without ThreadSanitizer"
tool key new lab
mkdir -p tree/a
head -c 30000000 /dev/urandom > tree/large
for ((i = 1; i <= 20; i++)); do head -c $((i * 3000)) /dev/urandom > tree/a/$i; done
tool file encrypt --threads 4 --recursive --to made tree --label lab
for verb in verify check seal rekey reencrypt; do tool file $verb --threads 4 --recursive made; done
tool file verify --threads 4 made/tree/large
tool file decrypt --threads 4 --recursive --to plain made/tree
must diff -r tree plain/tree
tool file decrypt --threads 4 --recursive --in-place made
must diff -r tree made/tree

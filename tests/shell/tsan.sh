# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# ThreadSanitizer over the unit tests that have threads: first calls, the worker team with 2,
# 4 and 8 threads forced, sessions, epochs, groups, a connection of btl/crypt.  The core and
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

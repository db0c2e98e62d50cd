# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The unit tests, linked with the optimizer: of the same objects, the half that
# the installed libraries are made of.  Elsewhere they are linked without it.
set -eu
. "$SRC/tests/lib.sh"

grep -q '^CFLAGS = .*-flto' "$BUILD/Makefile" || skip "this build has no link-time optimization"

# Beside the other one: the makefile names what it links by relative paths.
place=$BUILD/tests/unit-optimized
rm -rf "$place"
trap 'rm -rf "$place"' EXIT
cp -a "$BUILD/tests/unit" "$place"
cd "$place"
for test in test_*; do
    case $test in *.*) ;; *) rm "$test" ;; esac
done
# Over all files at once GCC supposes uninitialized variables where there are none.
must make -j"$(nproc)" AM_LDFLAGS='-no-install -Wno-error' check TESTS= > made
export srcdir=$SRC/tests/unit
count=0
for test in test_*; do
    case $test in *.*) continue ;; esac
    must "./$test" > said || fail "$test: $(tail -5 said)"
    count=$((count + 1))
done
[ "$count" -ge 50 ] || fail "only $count tests"
nm test_aead_forged | grep -q 'lto_priv' || fail "linked without the optimizer"
echo "$count unit tests"

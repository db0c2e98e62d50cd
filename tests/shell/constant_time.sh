# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# unit/test_constant under memcheck, to which secrets are uninitialized: no branch and no address of ours depends on
# one.  A branch and a table that do are found.
set -eu
. "$SRC/tests/lib.sh"

command -v valgrind >/dev/null || skip "valgrind is not installed"
test=$BUILD/tests/unit/test_constant
[ -x "$test" ] || make_check tests/unit
nm "$test" | grep -q __asan_init && skip "valgrind cannot run a program with AddressSanitizer"
rc=0
"$test" --only planted || rc=$?
[ $rc != 77 ] || skip "this build did not find valgrind/memcheck.h"
must test $rc = 0
# None of ours is left out.
must_fail grep -E 'fun:(opal|ompi)_' "$SRC/tests/shell/constant/handshake.supp"

# memcheck FILE ARGUMENT...: under valgrind; the report goes to FILE.
memcheck() {
    local report=$1; shift
    echo "+ $*"
    valgrind --error-exitcode=9 --leak-check=no --num-callers=40 --gen-suppressions=all --log-file="$report" \
        --suppressions="$SRC/tests/shell/constant/public.supp" "$@"
}

# caught WORD TEXT: the planted leak of this name is found in the function that has it.
caught() {
    local report=$CASE_DIR/planted.$1
    if memcheck "$report" "$test" --only "planted $1"; then fail "the planted $1 is not noticed"; fi
    grep -A1 -F "$2" "$report" | grep -F "plant_$1" || fail "another error than the planted $1: $(cat "$report")"
}
caught branch 'Conditional jump or move depends on uninitialised value'
caught table 'Use of uninitialised value of size'

for group in 'comparison of tags' 'hexadecimal digits' 'other characters' psk 'files that are no keys' keystores 'records of a connection'; do
    memcheck "$CASE_DIR/report" "$test" --only "$group" || fail "$group: $(cat "$CASE_DIR/report")"
done
memcheck "$CASE_DIR/report" --suppressions="$SRC/tests/shell/constant/handshake.supp" "$test" --only 'TLS handshake' ||
    fail "TLS handshake: $(cat "$CASE_DIR/report")"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# model.sh MODEL [SWITCH...]: SPIN on MODEL.pml, all that can happen in it.  Nothing may be found.  Without switches (its
# bounds), also with each of the errors in it ("#ifdef NAME  /* error: ..."), when something must be found.
set -eu
. "$SRC/tests/lib.sh"

model=$SRC/tests/spin/$1.pml; shift
must command -v spin
cd "$CASE_DIR"

# check NAME OPTIMIZE [SWITCH...]: runs through, or as far as the first error -> NAME/out
check() {
    local name=$1 optimize=$2; shift 2
    mkdir "$name"
    echo "$name: $*"
    (cd "$name" && spin -a "$@" "$model" && gcc "$optimize" -w -DSAFETY -DCOLLAPSE -DMEMLIM=2048 -o pan pan.c &&
        ./pan -m100000) > "$name/out" 2>&1 || { cat "$name/out"; fail "$name did not run"; }
    sed -n '/^pan:1:/p; /errors:/p; /states, stored/p; /total actual/p; /pan: elapsed/p' "$name/out"
    must_fail grep -E 'too small|out of memory|aborting' "$name/out"
}

check right -O2 "$@"
must grep -q 'errors: 0$' right/out
(($# == 0)) || exit 0

errors=$(sed -nE 's/^#(if|elif|ifdef|ifndef) *(defined\()?([A-Z_]+)\)? +\/\* error: .*/\3/p' "$model")
must test "$(wc -w <<<"$errors")" -ge 6
for error in $errors; do
    check "$error" -O1 "-D$error"
    must grep -q 'errors: 1$' "$error/out"
done

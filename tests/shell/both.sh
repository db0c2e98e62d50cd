# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# both.sh COUNT: so many files that are one file, of random maps: the engine reads what Python wrote, overwrites, cuts and
# seals it, and Python reads that.  The two share no code.
set -eu
. "$SRC/tests/lib.sh"

python3 -c 'import cryptography' || skip "Python has no cryptography (Debian: python3-cryptography)"
make_check tests/unit
count=$1
both() { python3 -B "$SRC/tests/vectors/onefile_both.py" "$@"; }
for ((from = 0; from < count; from += 100)); do
    here=$((count - from < 100 ? count - from : 100)) names=()
    rm -rf "$CASE_DIR/files"; mkdir "$CASE_DIR/files"
    must both write "$CASE_DIR/files" $here $from
    for ((i = 0; i < here; i++)); do names+=("$CASE_DIR/files/$i"); done
    "$BUILD/tests/unit/test_file_both" "${names[@]}" || fail "the engine, files from $from on"
    must both read "$CASE_DIR/files" $here
done

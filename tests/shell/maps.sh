# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Files that are one file: their arithmetic on 10,000 random maps, of which shell/vectors tries some, and what the
# engine wrote at random, read by the other reader.
set -eu
. "$SRC/tests/lib.sh"

must python3 -B "$SRC/tests/vectors/onefile_maps.py" 10000

python3 -c 'import cryptography' || skip "Python has no cryptography (Debian: python3-cryptography)"
make_check tests/unit
key=$(printf 'the key of a label, of 32 bytes\0' | od -An -v -tx1 | tr -d ' \n')
for seed in 1 2 3 4 5 6 7 8 9 10; do
    must "$BUILD/tests/unit/test_file_one" "$CASE_DIR" $seed
    for name in whole rows parts; do
        must python3 -B "$SRC/tests/vectors/onefile_v1.py" compare "$CASE_DIR/$name.plain" "$CASE_DIR/$name.one" "lab=$key"
        [ "$(python3 -B "$SRC/tests/vectors/onefile_v1.py" root "$CASE_DIR/$name.one" "lab=$key")" = "$(cat "$CASE_DIR/$name.root")" ] ||
            fail "$name, seed $seed: the seal is another"
    done
done

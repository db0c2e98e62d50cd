# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The golden files are what the independent scripts make, which use Python's
# `cryptography` and share nothing with the C code: nobody has changed one.
set -eu
. "$SRC/tests/lib.sh"

python3 -c 'import cryptography' || skip "Python has no cryptography (Debian: python3-cryptography)"
vectors=$SRC/tests/vectors
(cd "$vectors" && must sha256sum -c frozen.sha256)
must python3 -B "$vectors/make_frame_v1.py" --check
must python3 -B "$vectors/make_transport_v1.py" --check
must python3 -B "$vectors/make_refused_v1.py" --check
python3 -B "$vectors/records-v1.py" > "$CASE_DIR/records-v1.txt"
must cmp "$CASE_DIR/records-v1.txt" "$vectors/records-v1.txt"
mkdir "$CASE_DIR/file"
must python3 -B "$vectors/make_map_v1.py" "$CASE_DIR/file"
for made in "$CASE_DIR/file"/*; do
    must cmp "$made" "$vectors/$(basename "$made")"
done
must test -e "$CASE_DIR/file/block-v1.txt"
must python3 -B "$vectors/make_onefile_v1.py" "$CASE_DIR"
must cmp "$CASE_DIR/onefile-v1.txt" "$vectors/onefile-v1.txt"
must python3 -B "$vectors/key_exchange_v1.py" make "$CASE_DIR"
must cmp "$CASE_DIR/key-exchange-v1.txt" "$vectors/key-exchange-v1.txt"
must python3 -B "$vectors/onefile_maps.py" 300

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What becomes of an encrypted file that is copied or moved by programs that know
# nothing of its two parts: the table of docs/mpi-io.rst, line by line.
. "$SRC/tests/io/common.sh"

cluster_up 1 --slots 2
keys_in "$CASE_DIR/keys" lab other
program=$(mpi_program io convert)
cd "$CASE_DIR"
head -c 200000 /dev/urandom > plain
mkdir there
reads() { run_io 2 "$program" read "$CASE_DIR/plain" "$CASE_DIR/$1" "${@:2}"; }
has_attribute() { python3 -c "import os, sys; sys.exit('user.mpicrypt.map' not in os.listxattr('$1'))"; }
must run_io 2 "$program" write "$CASE_DIR/plain" "$CASE_DIR/made"
must has_attribute made || skip "the file system has no extended attributes"

echo "--- both parts, attributes kept"
cp -a made made.mpicrypt there/
must has_attribute there/made
must reads there/made
mkdir synced unpacked
must rsync -aX made made.mpicrypt synced/
must has_attribute synced/made
must reads synced/made
must tar --xattrs -cf both.tar made made.mpicrypt
must tar --xattrs --xattrs-include='user.*' -xf both.tar -C unpacked
must has_attribute unpacked/made
must reads unpacked/made
mv there/made there/made.mpicrypt .
must reads made

echo "--- both parts, no attributes"
rm -rf synced unpacked; mkdir synced unpacked copied
must cp made made.mpicrypt copied/
must rsync -a made made.mpicrypt synced/
must tar -cf both.tar made made.mpicrypt
must tar -xf both.tar -C unpacked
for where in copied synced unpacked; do
    must_fail has_attribute $where/made
    must reads $where/made
done

echo "--- without the sidecar"
mkdir alone
cp -a made alone/made
says "of an encrypted file is missing" reads alone/made
must_fail reads alone/made
mkdir bare
cp made bare/made                       # no attribute either: nothing says what it is
says "differ" reads bare/made
must_fail reads bare/made
says "fs_crypt_require" run_io 2 --mca fs_crypt_require 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/bare/made"
must_fail run_io 2 --mca fs_crypt_require 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/bare/made"

echo "--- a sidecar of another file"
must run_io 2 "$program" write "$CASE_DIR/plain" "$CASE_DIR/second"
cp -a made mixed
cp -a second.mpicrypt mixed.mpicrypt
must_fail reads mixed

echo "--- a new file beside a sidecar that was left over"
cp -a made new; cp -a made.mpicrypt new.mpicrypt
mv new moved                            # its sidecar stays behind
says "was set aside" run_io 2 "$program" write "$CASE_DIR/plain" "$CASE_DIR/new"
must reads new
mv new.mpic-old moved.mpicrypt          # nothing of the other is lost
must reads moved

echo "--- an older sidecar"
cp -a made old; cp -a made.mpicrypt old.mpicrypt; cp -a old.mpicrypt kept
head -c 200000 /dev/urandom > plain2
must run_io 2 "$program" write "$CASE_DIR/plain2" "$CASE_DIR/old"
must run_io 2 "$program" read "$CASE_DIR/plain2" "$CASE_DIR/old"
cp -a kept old.mpicrypt
must_fail run_io 2 "$program" read "$CASE_DIR/plain2" "$CASE_DIR/old"
must in_variant mpicrypt key rotate lab --keystore-dir "$CASE_DIR/keys"
cp -a made newer; cp -a made.mpicrypt newer.mpicrypt
must in_variant mpicrypt file rekey "$CASE_DIR/newer" --keystore-dir "$CASE_DIR/keys"
must reads newer
cp -a made.mpicrypt newer.mpicrypt      # an older map; the attribute has the newer one
must in_variant mpicrypt key revoke lab --yes --version 1 --keystore-dir "$CASE_DIR/keys"
must reads newer
must_fail reads made

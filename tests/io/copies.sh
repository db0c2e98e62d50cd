# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# An encrypted file that is copied or moved by programs that know nothing of it, and older bytes that come back.  io/life
# has more.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/offsets.sh"

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

echo "--- all of it, attributes kept"
cp -a made there/
must has_attribute there/made
must reads there/made
mkdir synced unpacked
must rsync -aX made synced/
must has_attribute synced/made
must reads synced/made
must tar --xattrs -cf both.tar made
must tar --xattrs --xattrs-include='user.*' -xf both.tar -C unpacked
must has_attribute unpacked/made
must reads unpacked/made
mv there/made .
must reads made

echo "--- all of it, no attributes"
rm -rf synced unpacked; mkdir synced unpacked copied
must cp made copied/
must rsync -a made synced/
must tar -cf both.tar made
must tar -xf both.tar -C unpacked
for where in copied synced unpacked; do
    must_fail has_attribute $where/made
    must reads $where/made
done


echo "--- written under one name, then renamed"
for n in 0 1 2 3; do
    head -c 200000 /dev/urandom > plain.$n
    must run_io 2 "$program" write "$CASE_DIR/plain.$n" "$CASE_DIR/ck.tmp"
    must mv ck.tmp ck.$n
done
must in_variant mpicrypt file verify "$CASE_DIR/ck.3" --keystore-dir "$CASE_DIR/keys"
for n in 0 1 2 3; do
    must run_io 2 "$program" read "$CASE_DIR/plain.$n" "$CASE_DIR/ck.$n"
    must in_variant mpicrypt file verify "$CASE_DIR/ck.$n" --keystore-dir "$CASE_DIR/keys"
done

echo "--- names change hands"
must mv ck.0 ck.spare
must mv ck.1 ck.0
must mv ck.spare ck.1
must run_io 2 "$program" read "$CASE_DIR/plain.1" "$CASE_DIR/ck.0"
must run_io 2 "$program" read "$CASE_DIR/plain.0" "$CASE_DIR/ck.1"

echo "--- deleted under the name of another"
must mv ck.2 ck.kept
must mv ck.3 ck.2
must run_io 1 "$program" delete "$CASE_DIR/plain.3" "$CASE_DIR/ck.2"
must run_io 2 "$program" read "$CASE_DIR/plain.2" "$CASE_DIR/ck.kept"


echo "--- an older copy of a part comes back"
# An older map; the attribute has the newer one.  (One file whose places have keys for a part of it is read by these.)
was=single
must file encrypt "$CASE_DIR/plain" "$CASE_DIR/single" --label lab
must in_variant mpicrypt key rotate lab --keystore-dir "$CASE_DIR/keys"
copy $was newer
must file rekey "$CASE_DIR/newer"
must reads newer
cat single > newer
must has_attribute newer
must in_variant mpicrypt key revoke lab --yes --version 1 --keystore-dir "$CASE_DIR/keys"
must reads newer
must_fail reads $was

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# An encrypted file that is copied or moved by programs that know nothing
# of its two parts: the table of docs/mpi-io.rst, line by line.  Of one file, io/life has more.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/parts.sh"

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
cp -a $(parts made) there/
must has_attribute there/made
must reads there/made
mkdir synced unpacked
must rsync -aX $(parts made) synced/
must has_attribute synced/made
must reads synced/made
must tar --xattrs -cf both.tar $(parts made)
must tar --xattrs --xattrs-include='user.*' -xf both.tar -C unpacked
must has_attribute unpacked/made
must reads unpacked/made
mv $(parts there/made) .
must reads made

echo "--- all of it, no attributes"
rm -rf synced unpacked; mkdir synced unpacked copied
must cp $(parts made) copied/
must rsync -a $(parts made) synced/
must tar -cf both.tar $(parts made)
must tar -xf both.tar -C unpacked
for where in copied synced unpacked; do
    must_fail has_attribute $where/made
    must reads $where/made
done

if ! is_one; then
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
    must reads moved                        # it was set aside, under its UUID: nothing is lost
    [ -e moved.mpicrypt ] && [ -z "$(compgen -G '*.mpic-old')" ] || fail "moved: its sidecar was not found"
fi

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
    is_one || [ -e ck.$n.mpicrypt ] || fail "ck.$n has no sidecar of its own"
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

if ! is_one; then
    echo "--- of a copy, the sidecar belongs to the file that it was copied from"
    cp -a ck.kept ck.copy
    says "ck.kept.mpicrypt" run_io 2 "$program" read "$CASE_DIR/plain.2" "$CASE_DIR/ck.copy"
    must_fail run_io 2 "$program" read "$CASE_DIR/plain.2" "$CASE_DIR/ck.copy"
    says "ck.kept.mpicrypt" in_variant mpicrypt file verify "$CASE_DIR/ck.copy" --keystore-dir "$CASE_DIR/keys"
    must run_io 2 "$program" read "$CASE_DIR/plain.2" "$CASE_DIR/ck.kept"

    echo "--- two sidecars have its UUID"
    cp -a ck.kept.mpicrypt a.mpicrypt
    mv ck.kept.mpicrypt b.mpicrypt
    must_fail run_io 2 "$program" read "$CASE_DIR/plain.2" "$CASE_DIR/ck.kept"
    rm a.mpicrypt
    must run_io 2 "$program" read "$CASE_DIR/plain.2" "$CASE_DIR/ck.kept"
    [ -z "$(compgen -G '?.mpicrypt')" ] || fail "left: $(compgen -G '?.mpicrypt')"
fi

echo "--- an older copy of a part comes back"
if ! is_one; then
    copy made old
    cp -a old.mpicrypt kept
    head -c 200000 /dev/urandom > plain2
    must run_io 2 "$program" write "$CASE_DIR/plain2" "$CASE_DIR/old"
    must run_io 2 "$program" read "$CASE_DIR/plain2" "$CASE_DIR/old"
    cp -a kept old.mpicrypt
    must_fail run_io 2 "$program" read "$CASE_DIR/plain2" "$CASE_DIR/old"
fi
# An older map; the attribute has the newer one.  (One file whose places have keys for a part of it is read by these.)
was=made
if is_one; then was=single; must file encrypt "$CASE_DIR/plain" "$CASE_DIR/single" --label lab; fi
must in_variant mpicrypt key rotate lab --keystore-dir "$CASE_DIR/keys"
copy $was newer
must file rekey "$CASE_DIR/newer"
must reads newer
if is_one; then cat single > newer; else cp -a made.mpicrypt newer.mpicrypt; fi
must has_attribute newer
must in_variant mpicrypt key revoke lab --yes --version 1 --keystore-dir "$CASE_DIR/keys"
must reads newer
must_fail reads $was

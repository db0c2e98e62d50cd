# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt key export, import, push, backup, restore, delete: what is read by others, what is refused, and that nothing
# goes back.
set -eu
. "$SRC/tests/tool/key/common.sh"

both=digitalSignature,keyEncipherment,keyAgreement
certificate alice P-256 digitalSignature
certificate bob rsa keyEncipherment
certificate carol P-384 keyAgreement
certificate mallory P-256 $both
mkdir a
at a 0 "lab, version 1" new lab
at a 0 "lab, version 2" rotate lab --not-after 2099-12-31
at a 0 "other, version 1" new other

echo "== a passphrase"
at a 0 "lab.cms: " export lab --passphrase-file pass
must test "$(stat -c %a lab.cms)" = 600
at a 1 "lab.cms: it exists, and is not replaced" export lab --passphrase-file pass
must_fail grep -qaF "$(secret_of a lab.1)" lab.cms
[ "$("${exchange[@]}" info lab.cms)" = "recipient a2 nonce 12 tag 16 signed no scrypt 17 8 1" ] || fail "the form"
"${exchange[@]}" open lab.cms --passphrase pass > contents
must grep -qx "key $(secret_of a lab.1)" contents
must grep -qx "key $(secret_of a lab.2)" contents
at b 0 "Nothing was changed; it would be: 2 added, 0 revoked, 0 as before, 0 refused" import lab.cms --passphrase-file pass --dry-run
must test ! -e b
at b 0 "2 added, 0 revoked, 0 as before, 0 refused" import lab.cms --passphrase-file pass
must grep -qF "$(sed -n 's/^fingerprint \(.\{16\}\).*/\1/p' a/lab.2)" out
same_key a b lab.1
same_key a b lab.2
must cmp a/lab.2 b/lab.2
at b 0 "0 added, 0 revoked, 2 as before, 0 refused" import lab.cms --passphrase-file pass
at c 1 "the passphrase is another one, or the message was changed" import lab.cms --passphrase-file pass.other
must test ! -e c
key 2 "export needs either --to CERT or --passphrase" export lab
key 2 "export needs either --to CERT or --passphrase" export lab --to bob.pem --passphrase
echo short > pass.short
at a 2 "a passphrase has at least 12 characters" export other --passphrase-file pass.short
chmod 644 pass.short
at a 1 "other users can read or change a file with a secret" export other --passphrase-file pass.short
key 2 "no terminal on which to type" import lab.cms

echo "== a message of the script"
"${exchange[@]}" seal contents --passphrase pass > script.cms
at d 0 "2 added" import script.cms --passphrase-file pass
must cmp a/lab.1 d/lab.1

echo "== certificates"
for to in bob carol; do
    at a 0 "encrypted to CN=$to,O=Test" export lab --to $to.pem --out to.$to --cert alice.pem --key alice.key
    must grep -qF "SHA-256 $(openssl x509 -in $to.pem -noout -fingerprint -sha256 | cut -d= -f2)" out
    must grep -qF "signed by CN=alice,O=Test" out
    "${exchange[@]}" open to.$to --cert $to.pem --key $to.key | cmp - <(sed "s/^exported .*/$("${exchange[@]}" open to.$to --cert $to.pem --key $to.key | grep ^exported)/" contents)
    must openssl cms -verify -noverify -binary -inform DER -in to.$to -certfile alice.pem -out inner.$to
    must openssl cms -decrypt -binary -inform DER -in inner.$to -recip $to.pem -inkey $to.key -out decrypted
    must grep -qx "key $(secret_of a lab.2)" decrypted
    at from.$to 0 "2 added" import to.$to --cert $to.pem --key $to.key --from alice.pem
    must cmp a/lab.2 from.$to/lab.2
    "${exchange[@]}" seal contents --cert $to.pem > script.$to
    at e.$to 1 "it is not signed, and anyone can encrypt to your certificate" import script.$to --cert $to.pem --key $to.key
    at e.$to 1 "it is not signed" import script.$to --cert $to.pem --key $to.key --from alice.pem
    at e.$to 0 "2 added" import script.$to --cert $to.pem --key $to.key --unsigned
    must cmp a/lab.1 e.$to/lab.1
done
at f 1 "it is encrypted to another certificate than carol.pem" import to.bob --cert carol.pem --key carol.key --from alice.pem
at f 1 "signed with another certificate than that of --from" import to.bob --cert bob.pem --key bob.key --from mallory.pem
at f 1 "name the certificate of the sender (--from)" import to.bob --cert bob.pem --key bob.key
at f 0 "anyone can have made this certificate" import to.bob --cert bob.pem --key bob.key --unsigned
at f 2 "name yours and its key" import to.bob --from alice.pem
key 2 "--cert and --key go together" import to.bob --cert bob.pem
key 2 "--unsigned goes with neither --from nor --ca" import to.bob --unsigned --from alice.pem
at f 1 "the private key is not that of the certificate" import to.bob --cert bob.pem --key carol.key --unsigned
# The same recipient, another signer's signature around alice's message.
openssl cms -sign -binary -nodetach -nosmimecap -econtent_type 1.2.840.113549.1.9.16.1.6 -in inner.bob -outform DER -out mallory.cms \
    -signer mallory.pem -inkey mallory.key
at f 1 "signed with another certificate than that of --from" import mallory.cms --cert bob.pem --key bob.key --from alice.pem
openssl cms -sign -binary -nodetach -nosmimecap -in inner.bob -outform DER -out data.cms -signer alice.pem -inkey alice.key
at f 1 "its signed part departs from the format" import data.cms --cert bob.pem --key bob.key --from alice.pem
# Another message of alice's to bob under the signature of this one.
at a 0 "encrypted to CN=bob" export lab --to bob.pem --out to.bob.2 --cert alice.pem --key alice.key
must openssl cms -verify -noverify -binary -inform DER -in to.bob.2 -certfile alice.pem -out inner.bob.2
python3 - > swapped.cms <<'END'
import sys
whole, inner, other = (open(name, "rb").read() for name in ("to.bob", "inner.bob", "inner.bob.2"))
assert inner in whole and inner != other and len(inner) == len(other)
sys.stdout.buffer.write(whole.replace(inner, other))
END
at f 1 "the signature does not hold" import swapped.cms --cert bob.pem --key bob.key --from alice.pem

echo "== certificates that do not suit"
certificate signs P-256 digitalSignature
certificate small rsa1k $both
days=-1 certificate late P-256 $both
certificate ca P-256 keyCertSign
printf 'basicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign\n' > ca.ext
openssl x509 -req -in ca.csr -days 30 -extfile ca.ext -signkey ca.key -out ca.pem 2> /dev/null
certificate dave P-256 $both ca
at a 1 "it lacks keyAgreement" export lab --to signs.pem --out no
at a 1 "it lacks digitalSignature" export lab --to bob.pem --cert carol.pem --key carol.key --out no
at a 1 "neither RSA of 2048 to 8192 bits nor EC" export lab --to small.pem --out no
at a 1 "the certificate has expired" export lab --to late.pem --out no
at a 1 "was not issued by this CA" export lab --to bob.pem --ca ca.pem --out no
must test ! -e no
at a 0 "encrypted to CN=dave" export lab --to dave.pem --ca ca.pem --cert dave.pem --key dave.key --out dave.cms
at g 0 "2 added" import dave.cms --cert dave.pem --key dave.key --ca ca.pem
at g 1 "was not issued by this CA" import to.bob --cert bob.pem --key bob.key --ca ca.pem

echo "== nothing goes back, and no label is replaced"
cp lab.cms old.cms
at a 0 "revoked" revoke lab --version 1 --yes
at a 0 "version 3" rotate lab
at a 0 "new.cms" export lab --passphrase-file pass --out new.cms
at b 0 "1 added, 1 revoked, 1 as before, 0 refused" import new.cms --passphrase-file pass
must grep -qx "state revoked" b/lab.1
must grep -q " revoke label=lab version=1 " b/log
state b > before
at b 0 "0 added, 0 revoked, 2 as before, 0 refused" import old.cms --passphrase-file pass
must grep -q "^lab .* stays revoked *$" out
must cmp before <(state b)
mkdir h
at h 0 "" new lab
at h 0 "" new own
state h > before
at h 1 "the keystore has another key of this label, which stays: lab, version 1" import new.cms --passphrase-file pass
must cmp before <(state h)
must grep -q "import label=lab .* refused: another key has this label" h/log

echo "== backup and restore"
at a 0 "keystore.cms" backup --passphrase-file pass
at i 0 "4 added, 0 revoked, 0 as before, 0 refused" restore keystore.cms --passphrase-file pass
must cmp <(state a) <(state i)
at h 1 "1 added, 0 revoked, 0 as before, 3 refused" restore keystore.cms --passphrase-file pass
must test -e h/other.1
at i 0 "it would be: 0 added, 0 revoked, 4 as before, 0 refused" restore keystore.cms --passphrase-file pass --dry-run

echo "== every cut, every byte, two messages joined"
python3 - > cuts <<'END'
data = open("old.cms", "rb").read()
for at in list(range(64)) + [at * len(data) // 40 for at in range(2, 40)]:
    open("cut.%d" % at, "wb").write(data[:at])
    print("cut.%d" % at)
END
for cut in $(cat cuts); do
    at j 1 "this is no message of 'mpicrypt key export' or 'backup'" import $cut --passphrase-file pass > /dev/null
done
head -c 1100000 /dev/zero > long
at j 1 "it is longer than 1 MiB" import long --passphrase-file pass
# With the cheapest scrypt, so that all bytes can be tried; each is a message for itself.
python3 - "$SRC/tests/vectors" <<'END'
import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True
import key_exchange_v1 as it
data = it.seal(it.contents(it.record("lab", 1)), lambda cek: it.to_passphrase(cek, b"five random words of nobody"))
import os; os.mkdir("flips"); open("flips/good", "wb").write(data)
for at in range(len(data)):
    open("flips/%03d" % at, "wb").write(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:])
other = it.seal(it.contents(it.record("lab", 1)), lambda cek: it.to_passphrase(cek, b"five random words of nobody"))
joined = {data[:at] + other[at:] for at in range(len(data))} - {data, other}
assert len(other) == len(data) and len(joined) > 80
for number, message in enumerate(sorted(joined)[::3]):
    open("flips/9%03d" % number, "wb").write(message)
END
at k 0 "1 added" import flips/good --passphrase-file pass
for flip in flips/[0-9]*; do
    rc=0
    mpicrypt key import $flip --passphrase-file pass --keystore-dir "$CASE_DIR/j" --allow-netfs > out 2> err || rc=$?
    [ $rc = 1 ] || { cat out err; fail "$flip: status $rc"; }
done
must test ! -e j

echo "== hosts"
cat > rsh <<'END'
#!/bin/sh
host=$1
shift
echo "$host $*" >> calls
[ "$host" != down ] || exit 255
[ "$host" != cut ] || { head -c 100 | sh -c "$*"; exit; }
HOME=$PWD/hosts/$host
export HOME
mkdir -p "$HOME"
exec sh -c "$*"
END
chmod +x rsh
HOME=$CASE_DIR/home
export HOME
mkdir -p "$HOME"
cp -r a "$HOME/.keys"
mkdir "$HOME/.ompi-crypt"
mv "$HOME/.keys" "$HOME/.ompi-crypt/keys"
key 0 "2 hosts and this node have the key" push lab --rsh ./rsh --hosts one,two
for host in one two; do
    must cmp a/lab.3 hosts/$host/.ompi-crypt/keys/lab.3
    must cmp a/lab.1 hosts/$host/.ompi-crypt/keys/lab.1
done
must_fail grep -qF "$(secret_of a lab.1)" calls
key 0 "one: installed" push lab --rsh ./rsh --hosts one
mkdir -p hosts/three/.ompi-crypt/keys
cp h/lab.1 hosts/three/.ompi-crypt/keys
key 1 "the keystore has another key of this label, which stays" push lab --rsh ./rsh --hosts three,down,four
must grep -qF "mpicrypt key push: 1 of 3 hosts has the key of this node" err
must grep -qF "down: the key was not installed" err
must cmp a/lab.3 hosts/four/.ompi-crypt/keys/lab.3
must cmp h/lab.1 hosts/three/.ompi-crypt/keys/lab.1
key 1 "it is cut, or another kind of file" push lab --rsh ./rsh --hosts cut
# Where jobs look, by the environment; and under the machine key that every host has.
head -c 32 /dev/zero | tr '\0' k | od -An -v -tx1 | tr -d ' \n' > machine
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/a key 1 "it exists, and is not replaced" export lab --passphrase-file pass
mkdir place
cp -r a/lab.* place
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/place key 0 "five: installed" push lab --rsh ./rsh --hosts five
must test ! -e hosts/five/.ompi-crypt
must mpicrypt key protect lab --keystore-dir "$CASE_DIR/place" --machine-key "$CASE_DIR/machine" --allow-netfs
key 2 "push needs --keystore-dir and --machine-key to begin with '/'" push lab --rsh ./rsh --hosts six --machine-key machine
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/place key 0 "six: installed" push lab --rsh ./rsh --hosts six --machine-key "$CASE_DIR/machine"
must test -z "$(secret_of place lab.1)"
key 2 "push needs --hosts LIST" push lab
key 2 "--pushed reads standard input" import old.cms --pushed

echo "== delete"
mkdir -p files/deep/er
seq 1 1000 > plain
for name in files/one files/deep/two files/deep/er/three; do
    must mpicrypt file encrypt plain $name --label lab --keystore-dir "$CASE_DIR/a" --allow-netfs
done
must mpicrypt file encrypt plain files/theirs --label other --keystore-dir "$CASE_DIR/a" --allow-netfs
cp plain files/plain
: > files/empty
echo short > files/short
ln -s "$CASE_DIR/outside" files/out
mkdir outside
cp -p files/one outside/
mkfifo files/fifo
at a 2 "Say --yes" delete lab
at a 1 "the keystore has no such key" delete nobody --yes
at a 1 "nothing was deleted, since files need it" delete lab --yes --scan files
must grep -qxE "files: 7 files, 4 encrypted, 3 under lab, one is (one|two|three)" out
must test -e a/lab.3
at a 0 "files: 7 files, 4 encrypted, 3 under lab" delete lab --yes --scan files --yes-lose-files
must grep -qF "lab: deleted, 3 versions.  Backups and other hosts may still have the key" out
must test -z "$(ls a | grep '^lab')"
must test "$(grep -c ' delete label=lab .* granted' a/log)" = 3
must test "$(find a -name '*.revoked' -size 0 | wc -l)" = 1
at a 0 "3 added" restore keystore.cms --passphrase-file pass --dry-run
# The message of before the revocation: version 1 was deleted here when it was revoked.
at a 0 "2 added, 0 revoked, 0 as before, 0 refused" import old.cms --passphrase-file pass
must grep -q "^lab  *1 .* revoked  *added, stays revoked *$" out
must grep -qx "state revoked" a/lab.1
must grep -qx "state active" a/lab.2
at a 0 "lab: deleted, 2 versions" delete lab --yes
at a 0 "gone, version 1" new gone
at a 0 "0 under gone" delete gone --yes --scan files
at a 0 "3 added, 0 revoked, 1 as before, 0 refused" restore keystore.cms --passphrase-file pass
must mpicrypt file decrypt files/one back --keystore-dir "$CASE_DIR/a" --allow-netfs
must cmp plain back

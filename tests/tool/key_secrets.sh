# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Keys that move are nowhere in the clear: arguments, environment, memory that a core file has, files, a terminal.  What
# another user has is refused, and another user gets nothing.
set -eu
. "$SRC/tests/tool/key/common.sh"

certificate alice P-256 digitalSignature
certificate bob P-256 keyAgreement
certificate ron rsa keyEncipherment
mkdir a
at a 0 "lab, version 1" new lab
at a 0 "lab, version 2" rotate lab
terminal=(python3 -B "$SRC/tests/tool/key/terminal.py")
memory=(python3 -B "$SRC/tests/tool/key/memory.py")
passphrase=$(cat pass)
hex() { od -An -v -tx1 | tr -d ' \n'; }
scalar() { openssl pkey -in "$1" -outform DER 2> /dev/null | python3 -c '
import sys; data = sys.stdin.buffer.read(); at = data.find(b"\x02\x01\x01\x04"); print(data[at + 5:at + 5 + data[at + 4]].hex())'; }
prime() { openssl rsa -in "$1" -noout -text 2> /dev/null | sed -n '/^prime1:/,/^prime2:/p' | grep '^ ' | tr -d ' :\n' | sed 's/^00//'; }

{
    for version in 1 2; do
        echo "key-$version $(secret_of a lab.$version)"
    done
    echo "passphrase $(printf %s "$passphrase" | hex)"
    for name in alice bob; do
        echo "scalar-of-$name $(scalar $name.key)"
    done
    echo "prime-of-ron $(prime ron.key)"
    for name in alice bob ron; do
        echo "pem-of-$name $(sed -n 2p $name.key | tr -d '\n' | hex)"
    done
} > needles
[ "$(awk '{ print (length($2) > 40) }' needles | sort -u)" = 1 ] || fail "needles: $(cut -c1-60 needles)"

echo "== memory, arguments, environment"
export CONTROL=the-control-of-this-test
keys=(--allow-netfs --keystore-dir "$CASE_DIR/a" --out -)
search() { must "${memory[@]}" needles the-control-of-this-test "$@"; }
search sealed -- mpicrypt key export lab --passphrase-file pass "${keys[@]}"
search to.bob -- mpicrypt key export lab --to bob.pem --cert alice.pem --key alice.key "${keys[@]}"
search to.ron -- mpicrypt key export lab --to ron.pem --cert alice.pem --key alice.key "${keys[@]}"
search backup -- mpicrypt key backup --passphrase-file pass "${keys[@]}"
keys=(--allow-netfs)
search out -- mpicrypt key import sealed --passphrase-file pass --keystore-dir "$CASE_DIR/b" "${keys[@]}"
must cmp a/lab.2 b/lab.2
search out -- mpicrypt key import to.bob --cert bob.pem --key bob.key --from alice.pem --keystore-dir "$CASE_DIR/c" "${keys[@]}"
must cmp a/lab.2 c/lab.2
search out -- mpicrypt key import to.ron --cert ron.pem --key ron.key --from alice.pem --keystore-dir "$CASE_DIR/d" "${keys[@]}"
must cmp a/lab.2 d/lab.2
# A secret that is there is found: one whose bytes are the control.
{ cat needles; echo "planted $(printf %s the-control-of-this-test | hex)"; } > needles.more
must_fail "${memory[@]}" needles.more the-control-of-this-test out -- mpicrypt key backup --passphrase-file pass --keystore-dir "$CASE_DIR/a" \
    --allow-netfs --out - > planted
grep -q "planted is in memory" planted || fail "what is planted is not found"

echo "== every verb"
command -v strace > "$CASE_DIR/null" || skip "strace is missing"
traced=(python3 -B "$SRC/tests/tool/key/traced.py")
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out site.key 2> "$CASE_DIR/null"
must openssl pkey -in site.key -pubout -out site.pem
head -c 32 /dev/zero | tr '\0' k | hex > machine
chmod 600 machine
mkdir tmp hosts
export HOME=$CASE_DIR/home TMPDIR=$CASE_DIR/tmp
mkdir -m 700 "$HOME"
# A stand-in for ssh: what a host's import has in memory, too.
cat > rsh <<END
#!/bin/sh
shift
env > hosts/environment
echo "\$*" >> hosts/calls
export HOME=$CASE_DIR/hosts
tee hosts/input | python3 -B "$SRC/tests/tool/key/memory.py" needles the-control-of-this-test hosts/out -- sh -c "\$*"
END
chmod +x rsh
for made in own.1 lab.3; do echo "made-$made @w/$made" >> needles; done
echo "machine $(cat machine)" >> needles
echo "psk @home/psk" >> needles
echo "pushed @hosts/input" >> needles
# verb ALLOWED ARGS...: where strace may see a secret written; once with each, on a copy of the keystore.
verb() {
    local allowed=$1 how
    shift
    for how in "${memory[*]} needles the-control-of-this-test said" "${traced[*]} needles $allowed"; do
        rm -rf w hosts/.ompi-crypt hosts/input home/psk made.cms
        cp -r "${from:-a}" w
        # shellcheck disable=SC2086
        must $how -- mpicrypt "$@" < "$CASE_DIR/null"
    done
}
w="--keystore-dir $CASE_DIR/w --allow-netfs"
store="^$CASE_DIR/w/[a-z]*\.[0-9]*\.[0-9]*\.new\$"
none=^none$
verb "$store" key new own $w
verb "$store" key rotate lab $w
verb $none key list $w
verb $none key list --json $w
verb $none key info lab $w
verb "$store" key revoke lab --yes $w
verb "$store" key escrow lab site.pem $w
verb $none key protect lab --machine-key "$CASE_DIR/machine" $w
verb $none key export lab --passphrase-file pass --out made.cms $w
verb $none key export lab --to ron.pem --cert alice.pem --key alice.key --out made.cms $w
verb $none key backup --passphrase-file pass --out made.cms $w
verb $none key delete lab --yes $w
verb "^pipe:|^$CASE_DIR/(hosts/input|hosts/.ompi-crypt/keys/lab\.[0-9.]*\.new)\$" key push lab --hosts one --rsh ./rsh $w
must_fail grep -qE "$(secret_of a lab.1)|$(secret_of a lab.2)|$(head -c 64 hosts/input)" hosts/environment hosts/calls hosts/out
must_fail grep -qaE "$(secret_of a lab.1)|$(secret_of a lab.2)" hosts/input      # the pipe has the message's passphrase only
mkdir none
from=none verb "$store" key import sealed --passphrase-file pass $w
from=none verb "$store" key import to.ron --cert ron.pem --key ron.key --from alice.pem $w
from=none verb "$store" key restore backup --passphrase-file pass $w
verb "^$CASE_DIR/home/psk\.new\.[0-9]*\$" keygen --out "$CASE_DIR/home/psk" --allow-netfs
[ -z "$(ls -A tmp)" ] || fail "temporary files: $(ls tmp)"
# What is written elsewhere is found, and so is what is in an argument or a variable.
from=a
( verb $none key rotate lab $w ) > planted 2>&1 && fail "a key in a file that may not have it is not found"
grep -q "made-lab.3 is in a call, as digits: $CASE_DIR/w/lab.3" planted || fail "$(cat planted)"
for planted in "env NAME=$(secret_of a lab.1) mpicrypt key list" "mpicrypt key info $(secret_of a lab.1)"; do
    # shellcheck disable=SC2086
    must_fail "${traced[@]}" needles $none -- $planted > planted
    grep -q "key-1 is in a call, as digits" planted || fail "not found in: $planted"
done

echo "== files"
for message in sealed to.bob to.ron backup; do
    for version in 1 2; do
        must_fail grep -qaF "$(secret_of a lab.$version)" $message
        must python3 -c 'import sys; sys.exit(bytes.fromhex(sys.argv[2]) in open(sys.argv[1], "rb").read())' $message "$(secret_of a lab.$version)"
    done
done
must_fail grep -rqaF "$(secret_of a lab.2)" a/log b/log c/log

echo "== a terminal"
# types CODE TEXT STEP... -- ARGS...
types() {
    local code=$1 text=$2 rc=0
    shift 2
    echo "+ terminal $*"
    "${terminal[@]}" "$@" > out 2> err || rc=$?
    [ $rc = "$code" ] || { cat out err; fail "status $rc, not $code"; }
    grep -qF -- "$text" out || { cat out; fail "no '$text'"; }
}
new="New passphrase: =$passphrase"
again="The same again: =$passphrase"
a=(--keystore-dir "$CASE_DIR/a" --allow-netfs)
e=(--keystore-dir "$CASE_DIR/e" --allow-netfs)
types 0 "typed.cms: " "$new" "$again" -- mpicrypt key export lab --passphrase --out typed.cms "${a[@]}"
must grep -qF "$(secret_of a lab.2)" <("${exchange[@]}" open typed.cms --passphrase pass)
types 2 "the two passphrases differ" "$new" "The same again: =$passphrase!" -- mpicrypt key export lab --passphrase --out no "${a[@]}"
types 2 "a passphrase has at least 12 characters" "New passphrase: =short" -- mpicrypt key export lab --passphrase --out no "${a[@]}"
types 2 "at most 1024 bytes" "New passphrase: =$(printf %1100d 0)" -- mpicrypt key export lab --passphrase --out no "${a[@]}"
types 130 "" "New passphrase: =^C" -- mpicrypt key export lab --passphrase --out no "${a[@]}"
types 143 "" "New passphrase: =kill" -- mpicrypt key export lab --passphrase --out no "${a[@]}"
must test ! -e no
# Corrections: the end is erased, with a character of two bytes; a line is killed.
types 0 "2 added" "Passphrase: =wrong"$'\x15'"$passphrase"$'é\x7f' -- mpicrypt key import typed.cms "${e[@]}"
must cmp a/lab.2 e/lab.2
types 1 "the passphrase is another one" "Passphrase: =$passphrase." -- mpicrypt key import typed.cms "${e[@]}"
types 2 "nothing was deleted" "Type the label: =yes" -- mpicrypt key delete lab "${e[@]}"
must test -e e/lab.2
types 0 "deleted, 2 versions" "Type the label: =lab" -- mpicrypt key delete lab "${e[@]}"
must test ! -e e/lab.2

echo "== others"
if [ "$(id -u)" = 0 ]; then
    cp pass pass.theirs
    chown 4711 pass.theirs
    at a 1 "a file with a secret belongs to another user" export lab --passphrase-file pass.theirs --out no
    cp bob.pem theirs.pem
    chown 4711 theirs.pem
    at a 1 "the file belongs to another user, who can change it" export lab --to theirs.pem --out no
    cp bob.key theirs.key
    chown 4711 theirs.key
    at f 1 "a file with a secret belongs to another user" import to.bob --cert bob.pem --key theirs.key --from alice.pem
else
    echo "not tried: another user, which root can be"
fi
( umask 0; must mpicrypt key export lab --passphrase-file pass --out open.cms "${a[@]}" )
[ "$(stat -c %a open.cms)" = 600 ] || fail "others can read a message"
chmod 666 alice.pem
at f 1 "other users can change this file" import to.bob --cert bob.pem --key bob.key --from alice.pem
must test ! -e no

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Each kind of damage has its status and its sentence, and leaves zeros; what is not damaged can still be read.  And what
# a caller expects: label, seal, no plain file.
. "$SRC/tests/library/common.sh"
. "$SRC/tests/io/offsets.sh"

cd "$CASE_DIR"
program reader
keys lab other
head -c 300000 /dev/urandom > plain
encrypt plain made

# others_can_be_read FILE: blocks 0 and 70, that have no damage.
others_can_be_read() {
    must reader at "$1" 0 4096 > again
    must cmp -n 4096 plain again
    must reader at "$1" $((70 * 4096)) 4096 > again
    must cmp <(tail -c +$((70 * 4096 + 1)) plain | head -c 4096) again
}

echo "--- data, entry, both blocks in each other's place, cut"
copy made bad
poke bad "$(data_at bad $((5 * 4096 + 7)))"
refused $FORGED "bad: at offset 20480: bytes were changed, moved or cut: no holder of the key wrote this block" at bad 20480 4096
grep -qx 'offset 20480' said || fail "no offset"
refused $FORGED "at offset 20480: " at bad 4096 200000
refused $FORGED "at offset 20480: " at bad 0 300000
refused $FORGED "at offset 20480: " threads=3 verify bad
others_can_be_read bad
copy made bad
poke bad $(($(entry_at bad 9) + 40))
refused $FORGED "at offset 36864: bytes were changed" at bad 36864 10
others_can_be_read bad
copy made bad
for i in 11 12; do dd if=made of=b$i bs=1 skip="$(data_at made $((i * 4096)))" count=4096 status=none; done
dd if=b12 of=bad bs=1 seek="$(data_at made $((11 * 4096)))" conv=notrunc status=none
dd if=b11 of=bad bs=1 seek="$(data_at made $((12 * 4096)))" conv=notrunc status=none
refused $FORGED "at offset 45056: bytes were changed" at bad 45056 10
refused $FORGED "at offset 49152: bytes were changed" at bad 49152 10
copy made bad
truncate -s -5000 bad
rc=0; reader cat bad > again 2> said || rc=$?
[ $rc = $FORGED ] || fail "a file that was cut: $rc"
must cmp -n "$(stat -c %s again)" plain again

echo "--- torn: a block without an entry"
copy made bad
zero bad "$(entry_at bad 20)" 128
refused $TORN "at offset 81920: torn block: its first write was cut short, so it was never complete" at bad 81920 1
others_can_be_read bad

echo "--- header and map"
copy made bad
poke bad 50
refused $FORGED "bad: its header is damaged" open bad
copy made bad
poke bad 3
if python3 -c 'import os; os.getxattr("made", "user.mpicrypt.map")' 2> /dev/null; then
    refused $FORGED "bad: it has the attribute of an encrypted file, but does not begin like one" open bad
    refused $FORGED "does not begin like one" flags=1 open bad
    must python3 -c 'import os; os.removexattr("bad", "user.mpicrypt.map")'
else
    echo "not tried: this file system has no attributes"
fi
refused $PLAIN "bad: it is not encrypted" open bad
copy made bad
another_version bad
refused $FORMAT "bad: another version of ompi-crypt made it" open bad
copy made bad
being_made bad
refused $UNFINISHED "bad: it is being made, or its maker was killed" open bad
copy made bad
zero bad "$(map_at)" 6144                # both places
refused $FORGED "bad: the encryption map cannot be read" open bad

echo "--- keys"
mkdir -m 700 none
refused $SETUP "there is no keystore" keystore="$CASE_DIR/nowhere" open made
mv keys kept
must mpicrypt key new other
refused $KEY "made: the keystore holds no key for the file ('mpicrypt key list' shows what it holds): lab" open made
must mpicrypt key new lab
refused $FORGED "made: the key of this label is not the one that encrypted the file" open made
rm -r keys
mv kept keys
must mpicrypt key revoke lab --yes
refused $KEY "made: " open made
rm -r keys
keys lab other

echo "--- what a caller expects"
rm -f made
encrypt plain made
refused $UNEXPECTED "made: it is encrypted under label lab, and other is expected" label=other open made
refused $PLAIN "plain: it is not encrypted" open plain
refused $PLAIN "plain: it is not encrypted" label=lab open plain
must reader flags=1 cat plain > again
must cmp plain again
refused $PLAIN "there is nothing by which it could be verified" flags=1 verify plain
root=$(printf '%064d' 7)
refused $UNEXPECTED "made: it is not sealed" root="$root" open made
root=$(mpicrypt file seal made | grep -oE '[0-9a-f]{64}' | head -n 1)
refused 0 "text " root="$root" label=lab open made
refused $UNEXPECTED "its seal has another root than is expected" root="$(printf '%064d' 7)" open made
copy made older
# A newer version, with a seal of its own; then the older one in its place.
cluster_up 1
convert=$(mpi_program io convert)
head -c 300000 /dev/urandom > plain.2
must vcluster mpirun -n 1 "$convert" over "$CASE_DIR/plain.2" "$CASE_DIR/made"
root=$(mpicrypt file seal made | grep -oE '[0-9a-f]{64}' | head -n 1)
refused 0 "text " root="$root" open made
must reader cat made > again
must cmp plain.2 again
copy older made
refused 0 "text " open made
refused $UNEXPECTED "its seal has another root than is expected" root="$root" open made
# A sealed file in which a block of the older version was put back.
copy older bad
poke bad "$(data_at bad 4100)"
refused $FORGED "at offset 4096: " at bad 4096 1
copy older bad
truncate -s -4096 bad
refused $FORGED "the seal does not hold" open bad

echo "--- arguments, files that are none"
refused $ARGUMENT "options: seal_root is not 64 hexadecimal digits" root=12 open made
refused $ARGUMENT "options: this version does not know a flag" flags=2 open made
refused $ARGUMENT "options: bytes is not sizeof(mpicrypt_file_options_t)" bytes=40 open made
refused $ARGUMENT "options: a plain file has neither label nor seal" flags=1 label=lab open made
refused $ARGUMENT "options: a label has 1 to 64 letters" label=.x open made
refused $ARGUMENT "options: at most 256 threads" threads=257 open made
refused $IO "No such file or directory" open nothing
refused $IO "it is not a regular file" open /
mkfifo fifo
refused $IO "it is not a regular file" open fifo
export OMPI_MCA_crypt_keystoredir=x
refused $SETUP "made: OMPI_MCA_crypt_keystoredir is set, and there is no such parameter; did you mean crypt_keystore_dir?" open made
unset OMPI_MCA_crypt_keystoredir
name=$(printf 'a\033[31m\303\251\n\342\200\256b\377')
refused $IO "a?[31mé????b?: No such file or directory" open "$name"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt file: jobs can read what it makes, and it reads what jobs make; it finds
# what was changed; rekey, recovery, mv, and what it refuses.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/offsets.sh"

cluster_up 1
must openssl genrsa -out "$CASE_DIR/recovery.key" 2048
must openssl rsa -in "$CASE_DIR/recovery.key" -pubout -out "$CASE_DIR/recovery.pem"
chmod 600 "$CASE_DIR/recovery.key"
key() { in_variant mpicrypt key "$@" --keystore-dir "$CASE_DIR/keys"; }
must key new lab
must key new other --recovery "$CASE_DIR/recovery.pem"
program=$(mpi_program io convert)
cd "$CASE_DIR"
here() { echo "$CASE_DIR/$1"; }
reads() { run_io 2 "$program" read "$(here plain)" "$(here "$1")"; }

echo "--- encrypt, decrypt, info, verify"
{ head -c 300000 /dev/urandom; echo canary; } > plain
must file encrypt "$(here plain)" "$(here made)" --label lab --block-size 4K --algorithm aes-256-gcm
says "made: $(stat -c %s plain) bytes" file info "$(here made)"
says "length      $(stat -c '%s bytes, of which' made) $((512 * $(stat -c %b made))) are on disk" file info "$(here made)"
must_fail grep -qa canary made
must reads made
must file decrypt "$(here made)" "$(here again)"
must cmp plain again
must vcluster mpirun -n 2 "$program" write "$(here plain)" "$(here ours)"
for name in made ours; do
    must file verify "$(here $name)"
    must file info "$(here $name)"
    must file decrypt "$(here $name)" "$(here $name.plain)"
    must cmp plain $name.plain
done
says '"good": 74,' file verify "$(here made)" --json
says "aes-256-gcm" file info "$(here made)"
truncate -s 100000000 sparse
must file encrypt "$(here sparse)" "$(here sparse.made)" --label lab --sparse
[ "$(stat -c %b sparse.made)" -lt 1000 ] || fail "holes were written"
truncate -s 1000000 zeros
must file encrypt "$(here zeros)" "$(here zeros.made)" --label lab
[ "$(stat -c %b zeros.made)" -gt 1900 ] || fail "an encrypted file shows where the plain one has zeros"
must file decrypt "$(here zeros.made)" "$(here zeros.again)"
must cmp zeros zeros.again

echo "--- JSON, whatever the name"
name=$'n\xe9 \xc3\xa9 \xe2\x82 \xed\xa0\x80 \xf0\x9f\x98\x80 \xf4\x90\x80\x80 \xc0\xaf \x01\xc3'
cp -a made "$name"
file info "$(here "$name")" --json > name.json || fail "info of a name that is no UTF-8"
python3 - name.json "$(here "$name")" <<'END'
import json, os, re, sys
said = json.load(open(sys.argv[1], encoding="utf-8"))["file"]
wanted = os.fsencode(sys.argv[2]).decode("utf-8", "replace")
assert re.sub("\ufffd+", "\ufffd", said) == re.sub("\ufffd+", "\ufffd", wanted), ascii(said)
END
rm -f "$name"

echo "--- what was changed"
copy made bad
poke bad "$(data_at bad $((5 * 4096 + 7)))"
poke bad $(($(entry_at bad 9) + 40))
zero bad "$(entry_at bad 20)" 128
must_fail file verify "$(here bad)"
file verify "$(here bad)" --json > bad.json || true
python3 - bad.json <<'END'
import json, sys
found = {(b["block"], b["state"], b["offset"]) for b in json.load(open(sys.argv[1]))["blocks"]}
assert found == {(5, "bad", 5 * 4096), (9, "bad", 9 * 4096), (20, "torn", 20 * 4096)}, found
END
must_fail file decrypt "$(here bad)" "$(here bad.plain)"
[ ! -e bad.plain ] || fail "a part of a damaged file was left"

echo "--- rekey"
# The last region's.
wrapped() { python3 -c "
m = open('$1', 'rb').read()[$(map_at "$1"):]
print(m[:$(map_bytes "$1")][-74:-34].hex())"; }
old=$(wrapped made)
must key rotate lab
says "version 2, was 1" file rekey "$(here made)"
[ "$(wrapped made)" != "$old" ] || fail "nothing was rewrapped"
python3 -c "import sys; sys.exit(bytes.fromhex('$old') in open('made', 'rb').read())" || fail "the old wrapped key is still there"
must file rekey "$(here ours)"
must key revoke lab --yes --version 1
must reads made
must_fail file verify "$(here bad)"                     # still under version 1
says "the keystore refuses the use of this key" file verify "$(here bad)"

echo "--- crypt_fips, which no system of the tests has a provider for"
if openssl list -providers -provider fips >/dev/null 2>&1; then
    echo "not tried: this OpenSSL has a FIPS provider"
else
    must_fail file verify "$(here made)" --fips
    OMPI_MCA_crypt_fips=1 says "needs OpenSSL's FIPS provider, which cannot be loaded here" file verify "$(here made)"
    OMPI_MCA_crypt_fips=1 must_fail key new fourth
fi

echo "--- recovery"
must key rotate other                                   # its recovery key stays
must file encrypt "$(here plain)" "$(here escrowed)" --label other
chmod 644 escrowed                                      # as a storage server may do
must key revoke other --yes
must_fail file verify "$(here escrowed)"
must file verify "$(here escrowed)" --recovery "$(here recovery.key)"
must file decrypt "$(here escrowed)" "$(here recovered)" --recovery "$(here recovery.key)"
must cmp plain recovered
[ "$(stat -c %a recovered)" = 600 ] || fail "plaintext has the mode of its ciphertext"
must key rotate other
must file rekey "$(here escrowed)" --recovery "$(here recovery.key)"        # the keystore knows the revoked version
must file verify "$(here escrowed)"
theirs() { in_variant mpicrypt "$@" --keystore-dir "$CASE_DIR/theirs"; }  # of a user who has the public recovery key
must theirs key new other --recovery "$(here recovery.pem)"
must theirs file encrypt "$(here plain)" "$(here forged)" --label other
says "the key of this label is not the one that encrypted the file" file verify "$(here forged)" --recovery "$(here recovery.key)"
must_fail file verify "$(here forged)" --recovery "$(here recovery.key)"
for i in 1 2 3 4 5 6; do must theirs key rotate other; done         # a version that ours does not know
must theirs file encrypt "$(here plain)" "$(here unknown)" --label other
says "anyone who has the public recovery key can have made this file" file verify "$(here unknown)" --recovery "$(here recovery.key)"
must file decrypt "$(here unknown)" "$(here recovered2)" --recovery "$(here recovery.key)"
must cmp plain recovered2
for verb in rekey reencrypt "cp --new-key"; do
    to=(); [ "$verb" != "cp --new-key" ] || to=("$(here launder)")
    must_fail file $verb "$(here unknown)" ${to[@]+"${to[@]}"} --recovery "$(here recovery.key)"
    says "under no label is what a key from the escrow alone opens" file $verb "$(here unknown)" ${to[@]+"${to[@]}"} --recovery "$(here recovery.key)"
done
must_fail file verify "$(here unknown)"
must_fail key new third --recovery "$(here nobody.pem)"
must key new third --recovery "$(here recovery.pem)"    # the failed command left no key

echo "--- seal"
root_of() { file seal "$(here "$1")" | sed -n 's/^root //p'; }
must file encrypt "$(here plain)" "$(here kept)" --label lab --block-size 4K
says "it is not sealed" file verify "$(here kept)" --sealed
must_fail file verify "$(here kept)" --sealed
root=$(root_of kept)
[ ${#root} = 64 ] || fail "the root is '$root'"
must file verify "$(here kept)" --sealed
must file verify "$(here kept)" --root "$root"
says "root $root" file info "$(here kept)"
must_fail file verify "$(here kept)" --root "${root//[0-9]/a}"
must file seal "$(here kept)"                           # again: it is as it was
root=$(root_of kept)
must run_io 2 "$program" read "$(here plain)" "$(here kept)" "$root"
must_fail run_io 2 "$program" read "$(here plain)" "$(here kept)" "${root//[0-9]/a}"
says "crypt_seal_root is for opening with MPI_MODE_RDONLY" run_io 2 "$program" write "$(here plain)" "$(here kept)" "$root"
says "the file is not encrypted" run_io 2 "$program" read "$(here plain)" "$(here plain)" "$root"
must_fail run_io 2 "$program" read "$(here plain)" "$(here plain)" "$root"
must file verify "$(here kept)" --root "$root"          # it is still sealed
must file rekey "$(here kept)"                          # touches no data, and no seal
must file verify "$(here kept)" --root "$root"
copy kept cut
truncate -s "$(data_at cut 8192)" cut
must_fail file verify "$(here cut)"                     # whether that is asked for or not
must_fail file verify "$(here cut)" --sealed
rm -f bad
must file encrypt "$(here plain)" "$(here bad)" --label lab --block-size 4K
poke bad "$(data_at bad $((5 * 4096 + 7)))"
must_fail file seal "$(here bad)"                       # what cannot be read cannot be sealed

echo "--- mv"
mkdir there
must mv made there
must reads there/made
must mv there/made moved

echo "--- refused"
before=$(cksum ours)
must_fail file encrypt "$(here plain)" "$(here ours)" --label lab
must_fail file decrypt "$(here moved)" "$(here ours)"
[ "$(cksum ours)" = "$before" ] || fail "a file that existed was changed"
must_fail file encrypt "$(here plain)" "$(here none)" --label nobody
must_fail file encrypt "$(here plain)" "$(here none)" --label lab --block-size 1000
says "authenticates nothing" file encrypt "$(here plain)" "$(here none)" --label lab --algorithm aes-256-xts
[ ! -e none ] || fail "something was left"
must_refuse "it is not encrypted" file verify "$(here plain)"
must in_variant mpicrypt key new else --keystore-dir "$(here elsewhere)"
says "NOT VERIFIED" file info "$(here moved)" --keystore-dir "$(here elsewhere)"
must_fail file info "$(here moved)" --keystore-dir "$(here elsewhere)"
must_fail file info "$(here moved)" --keystore-dir "$(here nowhere)"
says "NOT VERIFIED" file info "$(here moved)" --keystore-dir "$(here nowhere)"
says "there is no keystore $(here nowhere); 'mpicrypt key new LABEL' makes one" file verify "$(here moved)" --keystore-dir "$(here nowhere)"
says "--block-size is a power of two" file encrypt "$(here plain)" "$(here none)" --label lab --block-size 4194368K
[ ! -e none ] || fail "something was left"

if ! in_other_root; then
    echo "--- with closed streams"
    before=$(cksum moved)
    ! file rekey "$(here moved)" --keystore-dir "$(here nowhere)" 2>&- || fail "rekey without a keystore"
    ! file verify "$(here moved)" --root 0 2>&- || fail "--root 0"
    ! file verify "$(here moved)" >&- || fail "nothing could be said, and the status is 0"
    must file verify "$(here moved)" <&-
    [ "$(cksum moved)" = "$before" ] || fail "what was for a closed stream went into the file"
fi

echo "--- ended by a signal"
# ended SIGNAL TARGET COMMAND...: sent once the part file exists, and nothing may be left
ended() {
    local signal=$1 target=$2 pid name; shift 2
    PATH=$PREFIX/bin:$PATH env ${with[@]+"${with[@]}"} mpicrypt file "$@" --keystore-dir "$CASE_DIR/keys" & pid=$!
    until compgen -G "$target.*.part" > /dev/null; do
        kill -0 $pid 2>/dev/null || fail "it never began: $*"
    done
    [ ! -e "$target" ] || fail "$target is there before it is whole"
    kill "-$signal" $pid
    ! wait $pid || fail "it was not ended: $*"
    for name in "$target"*; do
        [ ! -e "$name" ] || fail "left: $name"
    done
}
if ! in_other_root; then
    with=()
    mkfifo slow
    exec 3<>slow                                        # it never ends
    echo something >&3
    ended TERM never encrypt slow never --label lab
    ended HUP never encrypt slow never --label lab
    exec 3>&-
    head -c 5000000 /dev/zero | tr '\0' x > large
    must file encrypt "$(here large)" "$(here large.made)" --label lab
    must in_variant gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o pause.so "$SRC/tests/io/preload/pause.c" -ldl
    with=(LD_PRELOAD="$(here pause.so)" PAUSE_IN=fsync PAUSE_AT=1 PAUSE_READY="$(here ready)" PAUSE_END="$(here end)")
    ended TERM never decrypt large.made never
    rm -f large large.made
fi

echo "--- the environment's settings, where there is no option"
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys must in_variant mpicrypt file info "$(here moved)"
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/elsewhere says "NOT VERIFIED" in_variant mpicrypt file info "$(here moved)"
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/elsewhere must file info "$(here moved)"
OMPI_MCA_crypt_keystore=pkcs12 says "not 'pkcs12'" in_variant mpicrypt file info "$(here moved)"

echo "--- a job whose keystore has a machine key, with which it ends, too"
( umask 077; od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' > machine )
for label in lab other; do
    must in_variant mpicrypt key new $label --keystore-dir "$(here locked)" --machine-key "$(here machine)"
done
for pml in crypt ob1; do
    must vcluster mpirun -n 2 --mca pml $pml --mca crypt_keystore_dir "$(here locked)" --mca crypt_keystore_machine_key "$(here machine)" \
        "$program" write "$(here plain)" "$(here with-$pml)"
done

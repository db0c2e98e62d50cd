# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt file and pipes: cat, decrypt to -, encrypt from -; what comes out ends before the first block that is not good;
# nothing is left under the name of a file that was not finished.
. "$SRC/tests/library/common.sh"
. "$SRC/tests/io/offsets.sh"

cd "$CASE_DIR"
keys lab other
head -c 10000000 /dev/urandom > plain
encrypt plain made

# says_and_fails TEXT COMMAND...: exit status 1 and this sentence; standard output to the file out.
says_and_fails() {
    local text=$1 rc=0; shift
    echo "+ ! $*"
    "$@" > out 2> said || rc=$?
    cat said
    [ $rc = 1 ] || fail "status $rc: $*"
    grep -qF -- "$text" said || fail "\"$text\" is not in what it says"
}

echo "--- out"
must mpicrypt file cat made > out
must cmp plain out
must mpicrypt file decrypt made - > out
must cmp plain out
must bash -o pipefail -c 'mpicrypt file cat made | cmp - plain'
must mpicrypt file cat made --range 5000-9000000 > out
must cmp <(tail -c +5001 plain | head -c 8995001) out
must mpicrypt file cat made --range=-70000 > out
must cmp <(tail -c 70000 plain) out
must mpicrypt file cat made --range 9999999- > out
must cmp <(tail -c 1 plain) out
must mpicrypt file cat made --range 1K-1K > out
must cmp <(tail -c +1025 plain | head -c 1) out
must mpicrypt file cat made --range 10000000- > out
must test ! -s out
says_and_fails "made: it has 10000000 bytes, and the range begins at 10000001" mpicrypt file cat made --range 10000001-
for range in 5 9-4 x-5 5-x - 1-2-3; do
    rc=0; mpicrypt file cat made --range="$range" > out 2> said || rc=$?
    [ $rc = 2 ] && grep -qF -- "--range is FIRST-LAST, FIRST- or -COUNT, in bytes from 0 on" said && [ ! -s out ] || fail "range $range: $rc"
done
# As cat(1) does, and without a word.
bash -c 'mpicrypt file cat made; echo $? > status' 2> said | head -c 5 > out
[ "$(cat status)" = 141 ] || fail "a closed pipe: status $(cat status)"
must test ! -s said
must cmp -n 5 plain out
bash -c 'trap "" PIPE; mpicrypt file cat made; echo $? > status' 2> said | head -c 5 > out || true
[ "$(cat status)" = 1 ] || fail "a closed pipe, and SIGPIPE is ignored: status $(cat status)"
must grep -qF "standard output: Broken pipe" said
rc=0; mpicrypt file cat made > /dev/full 2> said || rc=$?
[ $rc = 1 ] || fail "a full disk: status $rc"
must grep -qF "standard output: No space left on device" said

echo "--- out, up to the damage"
copy made bad
poke bad "$(data_at bad 8192000)"
for command in "cat bad" "decrypt bad -"; do
    says_and_fails "bad: at offset 8192000: bytes were changed, moved or cut" mpicrypt file $command
    must cmp <(head -c 8192000 plain) out
done
must mpicrypt file cat bad --range 8196096- > out
must cmp <(tail -c +8196097 plain) out
says_and_fails "at offset 8192000: " mpicrypt file cat bad --range 8192001-
must test ! -s out
copy made bad
zero bad "$(entry_at bad 2)" 128
says_and_fails "bad: at offset 8192: torn block: its first write was cut short" mpicrypt file cat bad
must cmp <(head -c 8192 plain) out
says_and_fails "plain: it is not encrypted" mpicrypt file cat plain
must test ! -s out
copy made bad
being_made bad
says_and_fails "bad: it is being made, or its maker was killed" mpicrypt file cat bad
copy made bad
poke bad 3
if python3 -c 'import os; os.getxattr("bad", "user.mpicrypt.map")' 2> /dev/null; then
    for verb in cat verify check; do
        says_and_fails "bad: it has the attribute of an encrypted file, but does not begin like one" mpicrypt file $verb bad
    done
else
    echo "not tried: this file system has no attributes"
fi
deep=$(printf '%0200d/' 1 2 3 4)                          # a message has all of a long name
must mkdir -p "$deep"
must cp plain made "$deep"
says_and_fails "mpicrypt file: ${deep}plain: it is not encrypted" mpicrypt file cat "${deep}plain"
poke "${deep}made" "$(data_at made 4096)"
says_and_fails "mpicrypt file: ${deep}made: at offset 4096: bytes were changed" mpicrypt file cat "${deep}made"
says_and_fails "made: it is encrypted under label lab, and other is expected" mpicrypt file cat made --label other
for label in .lab l/b "$(printf '%065d' 0)"; do
    rc=0; mpicrypt file cat made --label "$label" > out 2> said || rc=$?
    [ $rc = 2 ] && grep -qF -- "--label: a label has 1 to 64 letters, digits, dots, dashes and underscores, and does not begin with a dot: $label" said \
        && [ ! -s out ] || fail "label '$label': $rc"
done
for root in 00 "$(printf '%064d' 0)x" "$(printf '%063dg' 0)"; do      # before any file is looked for
    for command in "cat nothing" "decrypt nothing -" "verify nothing"; do
        rc=0; mpicrypt file $command --root "$root" > out 2> said || rc=$?
        [ $rc = 2 ] && grep -qF -- "--root: 64 hexadecimal digits" said && [ ! -s out ] || fail "$command --root $root: $rc"
    done
done
says_and_fails "nothing: No such file or directory" mpicrypt file cat nothing
mkdir -m 700 empty
rc=0; OMPI_MCA_mca_base_component_path=$CASE_DIR/empty mpicrypt file cat made > out 2> said || rc=$?
[ $rc = 3 ] && grep -qF "no aead component was found" said && [ ! -s out ] || fail "without components: status $rc: $(cat said)"
says_and_fails "made: it is not sealed" mpicrypt file cat made --sealed
root=$(mpicrypt file seal made | grep -oE '[0-9a-f]{64}' | head -n 1)
must mpicrypt file cat made --root "$root" > out
must cmp plain out
says_and_fails "its seal has another root than is expected" mpicrypt file cat made --root "$(printf '%064d' 7)"
copy made bad
truncate -s -4096 bad
for command in "cat bad" "decrypt bad -"; do            # a seal counts, even if nobody asked for one
    says_and_fails "bad: the seal does not hold" mpicrypt file $command
    must test ! -s out
done
says_and_fails "bad: it is encrypted under label lab, and other is expected" mpicrypt file cat bad --label other --sealed
says_and_fails "its seal has another root than is expected" mpicrypt file decrypt made - --root "$(printf '%064d' 7)"
says_and_fails "there is no keystore" mpicrypt file cat made --keystore-dir "$CASE_DIR/nowhere"
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/nowhere must mpicrypt file cat made --keystore-dir "$CASE_DIR/keys" > out
must cmp plain out

echo "--- in"
must bash -o pipefail -c 'cat plain | mpicrypt file encrypt - piped --label lab'
must mpicrypt file cat piped > out
must cmp plain out
[ "$(stat -c %a piped)" = 600 ] || fail "the mode of a file from a pipe"
must bash -o pipefail -c 'mpicrypt file encrypt - empty.made --label lab < /dev/null'
must mpicrypt file cat empty.made > out
must test ! -s out
must bash -o pipefail -c 'mpicrypt file cat made | mpicrypt file encrypt - again --label other && mpicrypt file cat again | cmp - plain'
chmod 640 plain
must mpicrypt file encrypt - from.file --label lab < plain
[ "$(stat -c %a from.file)" = 640 ] || fail "the mode of a file from a file"
rc=0; mpicrypt file encrypt plain - --label lab > out 2> said || rc=$?
[ $rc = 2 ] && grep -qF "an encrypted file is written at many places, and - is a stream: name a file" said || fail "encrypt to -"
rc=0; mpicrypt file decrypt - out < made 2> said || rc=$?
[ $rc = 2 ] && grep -qF "an encrypted file is read at many places, and - is a stream: name a file" said || fail "decrypt from -"
# An error of the file system has the place.
rc=0; bash -c 'trap "" XFSZ; ulimit -f 4000; exec mpicrypt file encrypt plain large --label lab' 2> said || rc=$?
cat said
[ $rc = 1 ] && grep -qE ': at offset [0-9]+: File too large$' said || fail "a file that becomes too large: status $rc"
must test ! -e large
# Ended by a signal while its writer still writes.
mkfifo fifo
for signal in TERM HUP PIPE; do        # (the shell makes its background ignore SIGINT)
    mpicrypt file encrypt - killed --label lab < fifo &
    pid=$!
    exec 5> fifo
    head -c 5000000 plain >&5
    until ls killed.*.part > /dev/null 2>&1; do kill -0 $pid || fail "it ended"; done
    kill -$signal $pid
    rc=0; wait $pid || rc=$?
    exec 5>&-
    [ $rc -gt 128 ] || fail "SIG$signal: status $rc"
    [ -z "$(ls | grep '^killed' || true)" ] || fail "SIG$signal left $(ls | grep '^killed')"
done

echo "--- a recovery key"
must openssl genrsa -out recovery.key 2048
must openssl rsa -in recovery.key -pubout -out recovery.pem
chmod 600 recovery.key
must mpicrypt key new kept --recovery recovery.pem
must mpicrypt file encrypt plain escrowed --label kept
must mpicrypt key revoke kept --yes
says_and_fails "escrowed: " mpicrypt file cat escrowed
for command in "cat escrowed" "decrypt escrowed -"; do
    must mpicrypt file $command --recovery recovery.key > out 2> said
    must cmp plain out
done
copy escrowed bad
poke bad "$(data_at bad 655360)"
says_and_fails "bad: at offset 655360: bytes were changed" mpicrypt file decrypt bad - --recovery recovery.key
must cmp <(head -c 655360 plain) out

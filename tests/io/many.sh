# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt file on many files: names, directories, states and their JSON, exit status, and threads.  Killed before any of its
# writes, each verb is finished by the same command; a signal that can be caught leaves no part.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/offsets.sh"

cluster_up 1
keys_in "$CASE_DIR/keys" lab
keys_in "$CASE_DIR/theirs" theirs
cd "$CASE_DIR"
here() { echo "$CASE_DIR/$1"; }
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o steps.so "$SRC/tests/io/preload/steps.c" -ldl
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o dropper.so "$SRC/tests/io/preload/dropper.c" -ldl
# status N COMMAND...: it ends with that status; what it printed is in out and err.
status() {
    local wanted=$1 rc=0; shift
    echo "+ $*"
    "$@" > out 2> err || rc=$?
    cat -v out err
    [ $rc = "$wanted" ] || fail "status $rc, not $wanted: $*"
}
summary() { [ "$(tail -n 1 out)" = "$1" ] || fail "the summary is not: $1"; }
printed() { grep -qxF -- "$1" out || fail "not printed: $1"; }
complained() { grep -qF -- "$1" err || fail "not on standard error: $1"; }
# states NAME=STATE...: of the JSON in out, one object a line, by the last part of the name; and there are no others.
states() {
    python3 - "$@" <<'END_PYTHON'
import json, sys
found = {}
for line in open("out", encoding="utf-8"):
    said = json.loads(line)
    name = said["file"].rpartition("/")[2]
    assert name not in found, name
    found[name] = said["state"]
wanted = dict(pair.rsplit("=", 1) for pair in sys.argv[1:])
assert found == wanted, (found, wanted)
END_PYTHON
}
parts() { find "$@" -name '*.part'; }

odd=$'line\nfeed \e[31mred'
mkdir -p tree/a/b 'tree/with space'
head -c 100000 /dev/urandom > tree/a/one
head -c 9000000 /dev/urandom > tree/a/b/large
: > tree/a/b/empty
echo odd > "tree/with space/$odd"
truncate -s 70000 tree/hole
ln -s one tree/a/link
ln -s . tree/loop
mkfifo tree/fifo

echo "--- encrypt, decrypt: --to"
status 0 file encrypt --recursive --to "$(here enc)" "$(here tree)" --label lab
summary "5 files: 5 encrypted; skipped: 2 symbolic link, 1 not a regular file"
printed "$(here tree)/with space/line?feed ?[31mred: encrypted"
for name in a/one a/b/large a/b/empty hole "with space/$odd"; do
    is_encrypted "enc/tree/$name" || fail "$name is not encrypted"
    [ "$(stat -c %Y "enc/tree/$name")" = "$(stat -c %Y "tree/$name")" ] || fail "$name has another time"
done
status 0 file encrypt --recursive --to "$(here enc)" "$(here tree)" --label lab
summary "5 files: 5 done before; skipped: 2 symbolic link, 1 not a regular file"
status 0 file decrypt --recursive --to "$(here dec)" "$(here enc)/tree/" --quiet
[ ! -s out ] || fail "--quiet prints: $(cat out)"
for name in a/one a/b/large a/b/empty hole "with space/$odd"; do must cmp "tree/$name" "dec/tree/$name"; done
[ "$(stat -c %a dec dec/tree/a/b dec/tree/a/one | tr '\n' ' ')" = "700 700 600 " ] || fail "the modes of plaintext"
status 0 file decrypt --recursive --to "$(here dec)" "$(here enc)/tree"
summary "5 files: 5 done before"
echo changed >> tree/a/one                              # of another size
touch -d '2001-01-01' tree/hole                         # of another time
status 1 file encrypt --recursive --to "$(here enc)" "$(here tree)" --label lab
summary "5 files: 3 done before, 2 error; skipped: 2 symbolic link, 1 not a regular file"
complained "$(here enc)/tree/a/one: File exists"
complained "$(here enc)/tree/hole: File exists"
status 0 file encrypt --to "$(here named)" "$(here tree/a/one)" "$(here tree/a/b/large)" --label lab
summary "2 files: 2 encrypted"
must is_encrypted named/one
status 0 file encrypt --recursive --to "$(here tree/within)" "$(here tree)" --label lab     # not into itself
[ ! -e tree/within/tree/within ] || fail "the new files were encrypted, too"
rm -r tree/within

echo "--- usage"
usage() { status 2 file "${@:2}"; complained "$1"; }
usage "--root is for one file" verify --root 00 "$(here enc)/tree/hole" "$(here named)/one"
usage "--to and --in-place exclude each other" decrypt --in-place --to "$(here x)" "$(here named)/one"
usage "--in-place is for encrypt and decrypt, not for verify" verify --in-place "$(here named)/one"
usage "--recursive needs --to or --in-place here" encrypt --recursive "$(here tree)" --label lab
usage "two of the names end in 'one'" encrypt --to "$(here x)" "$(here tree/a/one)" "$(here named)/one" --label lab
usage "--threads: 65 is not between 1 and 64" verify --threads 65 "$(here named)/one"
usage "encrypt needs --label" encrypt --in-place "$(here tree)" --recursive
[ ! -e x ] || fail "something was made"
status 1 file verify "$(here tree/a)" "$(here named)/one"
complained "$(here tree/a): it is not a regular file"
summary "2 files: 1 whole, 1 error"

echo "--- states, advice, and the worst status"
mkdir -p zoo/deep/er
head -c 40960 /dev/urandom > plain
must file encrypt "$(here plain)" "$(here zoo/whole)" --label lab --block-size 4K
made() { copy zoo/whole "zoo/$1"; }
for name in sealed torn bad oldseal header half cut; do made $name; done
must file seal "$(here zoo/sealed)" > said
root=$(sed -n 's/^root //p' said)
poke zoo/bad "$(data_at zoo/bad 8192)"
zero zoo/torn "$(entry_at zoo/torn 5)" 128
must file seal "$(here zoo/oldseal)"
truncate -s "$(data_at zoo/oldseal 16384)" zoo/oldseal
poke zoo/header 60
zero zoo/half 1024 64
zero zoo/cut 512 4                                      # being made ...
truncate -s 8192 zoo/cut
must in_variant mpicrypt file encrypt "$(here plain)" "$(here zoo/deep/er/nokey)" --label theirs --keystore-dir "$(here theirs)"
cp plain zoo/deep/plain
cp zoo/whole zoo/deep/x.0123456789abcdef.part
: > zoo/.mpicrypt-probe.0123456789abcdef
ln -s /etc zoo/deep/link
before=$(find zoo -type f -exec sha256sum {} + | sort)
all=(whole=whole sealed=whole torn=torn bad=forged oldseal=forged header=forged half=unfinished cut=unfinished nokey="no key"
     plain="not encrypted" x.0123456789abcdef.part=leftover .mpicrypt-probe.0123456789abcdef=leftover link="symbolic link")
for threads in 1 2 7; do
    status 1 file check --json --threads $threads "$(here zoo)"
    states "${all[@]}"
done
python3 - <<'END_PYTHON'
import json
for line in open("out"):
    said = json.loads(line)
    well = said["state"] in ("whole", "not encrypted", "symbolic link")
    assert well == ("advice" not in said), said
    assert said["state"] != "whole" or said["bytes"] == 40960, said
END_PYTHON
status 1 file check "$(here zoo)" "$(here nothing)"
summary "12 files: 2 whole, 2 leftover, 2 unfinished, 1 no key, 1 torn, 3 forged, 1 error; skipped: 1 not encrypted, 1 symbolic link"
printed "$(here zoo/torn): torn: a writer was killed: write the blocks again that 'mpicrypt file verify' lists; all others are whole"
complained "$(here zoo/deep/er/nokey): the keystore holds no key for the file"
complained "$(here nothing): No such file or directory"
status 1 file check --quiet "$(here zoo)"
! grep -q ': whole' out || fail "--quiet prints files that are whole"
printed "$(here zoo/bad): forged: keep the file for analysis, restore it from a backup, and find out what changed it"
status 1 file verify --recursive --threads 2 "$(here zoo)"
printed "$(here zoo/sealed): whole"
printed "$(here zoo/bad): forged"
grep -qE '^  +0 +2 +8192 +bad *$' out || fail "verify does not list the block"
status 1 file verify --json "$(here zoo/whole)" "$(here zoo/bad)" "$(here plain)"
states whole=whole bad=forged plain="not encrypted"
python3 - <<'END_PYTHON'
import json
said = {s["file"].rpartition("/")[2]: s for s in map(json.loads, open("out"))}
assert said["whole"]["good"] and said["bad"]["blocks"] == [{"region": 0, "block": 2, "offset": 8192, "state": "bad"}], said
END_PYTHON
status 1 file info --recursive --json "$(here zoo/deep)" "$(here zoo/whole)"
states nokey="no key" plain="not encrypted" link="symbolic link" x.0123456789abcdef.part=leftover whole="map verified"
# A file that cannot be opened: an object with what standard error says, too.
for verb in info verify check seal rekey reencrypt 'encrypt --label lab' decrypt 'cp --new-key'; do
    set -- "$(here nothing)"
    [[ $verb != @(encrypt|decrypt|cp)* ]] || set -- "$@" "$(here new)"
    status 1 file $verb --json "$@"
    advice=$([ "$verb" != check ] || echo ', "advice": "see the message"')
    printed "{\"file\": \"$1\", \"state\": \"error\"$advice, \"errors\": [\"$1: No such file or directory\"]}"
    complained "$1: No such file or directory"
done
status 1 file info --json "$(here zoo/cut)" "$(here plain)" "$(here zoo)" "$(here zoo/whole)" "$(here zoo/deep/er/nokey)"
python3 - <<'END_PYTHON'
import json
said = {s["file"].rpartition("/")[2]: s for s in map(json.loads, open("out"))}
for name, words in (("cut", "it is being made, or its maker was killed"), ("plain", "it is not encrypted"), ("zoo", "it is not a regular file"),
                    ("nokey", "the keystore holds no key for the file")):
    assert len(said[name]["errors"]) == 1 and words in said[name]["errors"][0], said
    assert said[name]["errors"][0] in open("err").read(), said
assert "errors" not in said["whole"] and said["whole"]["verified"] and not said["nokey"]["verified"], said
END_PYTHON
[ "$before" = "$(find zoo -type f -exec sha256sum {} + | sort)" ] || fail "check or verify changed something"
status 0 file check "$(here zoo/whole)" "$(here zoo/sealed)"
status 1 file check "$(here plain)"                      # named, so meant to be encrypted
complained "$(here plain): it is not encrypted"
mkdir nothing-here
status 0 file check "$(here nothing-here)"
summary "0 files"
status 0 file seal --json "$(here zoo/sealed)" "$(here zoo/whole)"
states sealed=sealed whole=sealed
grep -qF "\"root\": \"$root\"" out || fail "not the root of the seal"
says "no key" file verify "$(here zoo/deep/er/nokey)" "$(here zoo/whole)"
key=$(find keys -name lab.1)
for mode in 644 600; do                                  # one that others can read is not used; and there is none of nobody
    chmod $mode "$key"
    status 1 file encrypt --json --label "$([ $mode = 644 ] && echo lab || echo nobody)" "$(here plain)" "$(here new)"
    states plain="no key"
done
status 1 file check "$(here zoo)" --keystore-dir "$(here no-keystore)"
[ "$(grep -c "makes one" err)" = 1 ] || fail "the keystore is missing, which is said more than once"
grep -q ": no key: " out || fail "no key without a keystore"

echo "--- rekey, seal, reencrypt: as many files as there are, and no others"
for threads in 1 3; do
    rm -rf work
    cp -a enc/tree work
    cp plain work/plain
    for verb in seal rekey reencrypt; do
        status 0 file $verb --recursive --threads $threads "$(here work)"
        summary "5 files: 5 ${verb}ed; skipped: 1 not encrypted"
    done
    status 0 file check "$(here work)"
    summary "5 files: 5 whole; skipped: 1 not encrypted"
    rm -rf back
    status 0 file decrypt --recursive --to "$(here back)" "$(here work)"
    for name in a/b/large a/b/empty "with space/$odd"; do must cmp "tree/$name" "back/work/$name"; done
done
must cmp work/plain plain

echo "--- locks that do not hold"
for verb in seal rekey reencrypt; do
    status 1 in_variant env LD_PRELOAD="$CASE_DIR/dropper.so" mpicrypt file $verb "$(here zoo/whole)" --keystore-dir "$CASE_DIR/keys"
    complained "locks of its file system end when any descriptor of the file is closed"
done

echo "--- busy"
coproc HOLDER { python3 -c '
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, (1 << 62) - 34, 1, 0))      # F_OFD_SETLK, as reencrypt does
print("locked", flush=True)
sys.stdin.read()' "$(here zoo/whole)"; }
holder=$HOLDER_PID
read -r locked <&"${HOLDER[0]}"
[ "$locked" = locked ] || fail "no lock"
status 1 file check "$(here zoo/whole)" "$(here zoo/sealed)"
printed "$(here zoo/whole): busy: another process works on the whole file: run this command again when that has finished"
summary "2 files: 1 whole, 1 busy"
eval "exec ${HOLDER[1]}>&-"
wait "$holder"
status 0 file check "$(here zoo/whole)"
mkdir overwritten
copy zoo/whole overwritten/beginning
poke overwritten/beginning 3
cp plain overwritten/plain
if python3 -c 'import os; os.getxattr("overwritten/beginning", "user.mpicrypt.map")' 2> /dev/null; then
    for verb in check "verify --recursive"; do
        status 1 file $verb --json "$(here overwritten)"
        states beginning=forged plain="not encrypted"
        complained "$(here overwritten)/beginning: it has the attribute of an encrypted file, but does not begin like one"
    done
else
    echo "not tried: this file system has no attributes"
fi
# The storage's errors have their place, and no other process is blamed for them.
for error in "5 Input/output error" "110 Connection timed out" "116 Stale file handle"; do
    status 1 in_variant env LD_PRELOAD="$CASE_DIR/steps.so" STEP_FILE="$(here zoo/whole)" STEP_HOW=unread STEP_FROM="$(data_at zoo/whole 0)" \
        STEP_ERRNO="${error%% *}" STEP_LOG="$CASE_DIR/unread.log" mpicrypt file verify --json "$(here zoo/whole)" --keystore-dir "$CASE_DIR/keys"
    states whole=error
    complained "$(here zoo/whole): at offset 0: ${error#* }"
done

echo "--- in place"
rm -rf place
mkdir -p place/sub
head -c 5000000 /dev/urandom > place/sub/x
head -c 1000 /dev/urandom > place/y
chmod 640 place/y
ln place/y place/sub/other-name                         # keeps the plaintext, as the manual says
cp -a place place.kept
status 0 file encrypt --in-place --recursive "$(here place)" --label lab
summary "3 files: 3 encrypted"
for name in sub/x y; do must is_encrypted place/$name; done
[ "$(stat -c %a place/y)" = 640 ] || fail "the mode of a file that was encrypted in place"
status 0 file encrypt --in-place --recursive "$(here place)" --label lab
summary "0 files; skipped: 3 encrypted already"
ln -s y place/link
status 0 file decrypt --in-place "$(here place/link)"    # a link stays a link
must cmp place/y place.kept/y
[ "$(readlink place/link)" = y ] || fail "the link was replaced"
status 0 file decrypt --in-place --recursive "$(here place)"
summary "2 files: 2 decrypted; skipped: 1 not encrypted, 1 symbolic link"
for name in sub/x sub/other-name y; do must cmp place/$name place.kept/$name; done
[ -z "$(parts place)" ] || fail "left: $(parts place)"

echo "--- a directory is replaced by a link meanwhile"
mkdir -p swap/dir outside
for name in 1 2; do echo "inside $name" > swap/dir/$name; echo "outside $name" > outside/$name; done
cat > swap.sh <<'END_SH'
cd "$CASE_DIR"
[ -e swap/dir.was ] || { mv swap/dir swap/dir.was; ln -s ../outside swap/dir; }
END_SH
status 0 in_variant env LD_PRELOAD="$CASE_DIR/steps.so" STEP_FILE="$CASE_DIR/swap/" STEP_HOW=do STEP_DO="sh ./swap.sh" \
    mpicrypt file encrypt --threads 1 --in-place --recursive "$(here swap)" --label lab --keystore-dir "$CASE_DIR/keys"
for name in 1 2; do
    [ "$(cat outside/$name)" = "outside $name" ] || fail "a file outside was changed"
    must is_encrypted swap/dir.was/$name
done

echo "--- another user"
if [ "$(id -u)" = 0 ] && ! in_other_root; then
    away=$(mktemp -d)
    trap 'rm -rf "$away"; vcluster down >/dev/null 2>&1 || true' EXIT
    user() { setpriv --reuid=4712 --regid=4712 --clear-groups "$@"; }
    chmod 711 "$away"
    cp -r keys "$away/keys"
    mkdir -p "$away/tree/closed" "$away/tree/open"
    cp zoo/whole "$away/tree/closed/hidden"
    cp zoo/whole "$away/tree/open/readable"
    cp zoo/whole "$away/tree/open/unreadable"
    chown -R 4712:4712 "$away"/*
    chown root:root "$away/tree/closed" "$away/tree/open/unreadable"
    chmod 700 "$away/tree/closed"
    chmod 600 "$away/tree/open/unreadable"
    if user test -x "$PREFIX/bin/mpicrypt"; then
        status 1 user mpicrypt file check "$away/tree" --keystore-dir "$away/keys" --allow-netfs
        complained "$away/tree/closed/: Permission denied"
        complained "$away/tree/open/unreadable: Permission denied"
        summary "3 files: 1 whole, 2 error"
    else
        echo "not tried: another user, who cannot run $PREFIX/bin/mpicrypt"
    fi
else
    echo "not tried: another user, which root can be"
fi

echo "--- killed, and the same command again"
head -c 30001 plain > small
# A tree of three files, of which one is larger than a part.
fresh() { # fresh ENCRYPTED|PLAIN
    rm -rf victims target log
    case $1 in
        plain) cp -a small-trees/plain victims ;;
        *)     cp -a small-trees/encrypted victims ;;
    esac
}
mkdir -p small-trees/plain/sub
cp small small-trees/plain/1
head -c 4300000 /dev/urandom > small-trees/plain/2
cp small small-trees/plain/sub/3
must file encrypt --recursive --to "$(here small-trees/made)" "$(here small-trees/plain)" --label lab --block-size 64K
mv small-trees/made/plain small-trees/encrypted
kills=0
holds_all() { # holds_all DIR: each file of it decrypts to its plaintext, or is that
    rm -rf read
    must file decrypt --recursive --to "$(here read)" "$(here "$1")" > /dev/null
    local name
    for name in 1 2 sub/3; do
        if [ -e "read/${1##*/}/$name" ]; then cmp "small-trees/plain/$name" "read/${1##*/}/$name"
        else cmp "small-trees/plain/$name" "$1/$name"; fi || fail "$1/$name has other bytes"
    done
}
# again KIND CHECKED VERB...: killed before every STRIDEth of its steps
again() {
    local kind=$1 checked=$2 at rc; shift 2
    for ((at = 1; ; at += STRIDE)); do
        fresh "$kind"
        rc=0
        env LD_PRELOAD="$CASE_DIR/steps.so" STEP_FILE="$CASE_DIR/${checked%%/*}/" STEP_LOG="$CASE_DIR/log" STEP_HOW=kill STEP_AT=$at \
            mpicrypt file "$@" --threads "$THREADS" --keystore-dir "$CASE_DIR/keys" > said 2>&1 || rc=$?
        [ -s log ] || break
        : $((kills++))
        [ $rc = 137 ] || { cat said; fail "status $rc"; }
        find victims target -name '*.part' -delete 2> /dev/null || true         # as the manual says
        mpicrypt file "$@" --threads "$THREADS" --keystore-dir "$CASE_DIR/keys" > said 2>&1 || { cat said; fail "$1 at $at: the second time"; }
        mpicrypt file check "$(here "$checked")" --keystore-dir "$CASE_DIR/keys" > said 2>&1 || { cat said; fail "$1 at $at: check"; }
        holds_all "$checked"
    done
    [ $at -gt 3 ] || { cat said; fail "$1: only $at steps"; }
    echo "$1: $at steps"
}
if ! in_other_root; then
    for pair in '1 5' '2 11'; do
        read -r THREADS STRIDE <<< "$pair"
        again encrypted victims rekey --recursive "$(here victims)"
        again encrypted victims reencrypt --recursive "$(here victims)"
        again encrypted victims seal --recursive "$(here victims)"
        again plain victims encrypt --recursive --in-place "$(here victims)" --label lab
        again plain target/victims encrypt --recursive --to "$(here target)" "$(here victims)" --label lab
        again encrypted victims decrypt --recursive --in-place "$(here victims)"
    done
    echo "$kills kills"
    [ $kills -gt 35 ] || fail "only $kills kills"
fi

echo "--- a signal: no part is left, and the message says how to go on"
cat > signal.sh <<'END_SH'
[ "$STEP" != "$WHEN" ] || kill -TERM $PPID
END_SH
for threads in 1 2; do
    for when in pwritev renameat2 fchmod; do
        fresh plain
        status 143 in_variant env LD_PRELOAD="$CASE_DIR/steps.so" STEP_FILE="$CASE_DIR/victims/" STEP_HOW=do STEP_DO=". ./signal.sh" WHEN=$when \
            mpicrypt file encrypt --recursive --in-place --threads $threads "$(here victims)" --label lab --keystore-dir "$CASE_DIR/keys"
        complained "mpicrypt file: interrupted: run the same command again to finish"
        [ -z "$(parts victims)" ] || fail "left: $(parts victims)"
        status 0 file encrypt --recursive --in-place "$(here victims)" --label lab
        holds_all victims
    done
done

echo "--- progress: one line, on a terminal only"
cat > terminal.py <<'END_PYTHON'
# terminal.py COMMAND...: standard error is a terminal, and what comes there is printed
import os, pty, subprocess, sys
ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
said = b""
try:
    while part := os.read(ours, 4096):
        said += part
except OSError:                                         # EIO: the other end is closed
    pass
assert process.wait() == 0, process.returncode
sys.stdout.buffer.write(said)
END_PYTHON
# Each step of the first file takes longer than the line is left alone.
slowly() { in_variant env LD_PRELOAD="$CASE_DIR/steps.so" STEP_FILE="$CASE_DIR/victims/1" STEP_HOW=do STEP_DO="sleep 0.3" "$@"; }
rekey=(mpicrypt file rekey --recursive --threads 1 "$(here victims)" --keystore-dir "$CASE_DIR/keys")
fresh encrypted
slowly python3 terminal.py "${rekey[@]}" > said || fail "status $?: rekey on a terminal"
grep -qaE $'\r1 file, 0 MiB, 0 MiB/s' said || fail "no progress on a terminal: $(cat -v said)"
[ "$(tail -c 1 said)" = $'\r' ] || fail "the line stays: $(cat -v said)"
slowly python3 terminal.py "${rekey[@]}" --quiet > said || fail "status $?: rekey --quiet"
[ ! -s said ] || fail "--quiet: $(cat -v said)"
must slowly "${rekey[@]}" > out 2> err
[ ! -s err ] || fail "progress in a pipe: $(cat -v err)"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt file cp --new-key and reencrypt: the bytes stay, the keys do not.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/offsets.sh"

cluster_up 1
keys_in "$CASE_DIR/keys" lab other
program=$(mpi_program io convert)
cd "$CASE_DIR"
here() { echo "$CASE_DIR/$1"; }
reads() { run_io 2 "$program" read "$(here plain)" "$(here "$1")"; }
head -c 300001 /dev/urandom > plain
must run_io 2 "$program" write "$(here plain)" "$(here made)"   # two regions, every block written twice

echo "--- a copy is the same file: a block of one opens in the other"
give() { # give FROM TO: region 0's block 3 with its entry; its bytes are rows 0, 2, ... of 1,000
    python3 - "$1" "$1" "$(data_at "$1" 0)" "$(entry_at "$1" 3)" "$2" "$2" "$(data_at "$2" 0)" "$(entry_at "$2" 3)" \
        128 <<'END'
import sys
source, book, data_at, entry_at = sys.argv[1:5]
to, to_book, to_data_at, to_entry_at = sys.argv[5:9]
with open(book, "rb") as f:
    f.seek(int(entry_at)); entry = f.read(int(sys.argv[9]))
with open(to_book, "r+b") as f:
    f.seek(int(to_entry_at)); f.write(entry)
with open(source, "rb") as f:
    f.seek(int(data_at)); data = f.read()
with open(to, "r+b") as f:
    for plain in range(3 * 4096, 4 * 4096):
        at = plain // 1000 * 2000 + plain % 1000
        f.seek(int(to_data_at) + at); f.write(data[at:at + 1])
END
}
copy made copy
must run_io 2 "$program" write-once "$(here plain)" "$(here made)"
give made copy
must reads copy

echo "--- cp --new-key: another file"
must file cp --new-key "$(here made)" "$(here other)"
must reads other
must cmp <(stat -c '%s %a' made) <(stat -c '%s %a' other)
! cmp -s <(uuid made) <(uuid other) || fail "the UUID is the same"
! cmp -s made other || fail "the ciphertext is the same"
must file verify "$(here other)"
give made other
must_fail reads other
must_fail file verify "$(here other)"
must_fail file cp --new-key "$(here made)" "$(here other)"      # an existing file is left alone
must_fail file cp "$(here made)" "$(here third)"
[ ! -e third ] || fail "something was left"
: > nothing
must file encrypt "$(here nothing)" "$(here empty)" --label lab
must file cp --new-key "$(here empty)" "$(here empty2)"
must file verify "$(here empty2)"
truncate -s 50000000 sparse
must file encrypt "$(here sparse)" "$(here holes)" --label lab --sparse
must file cp --new-key "$(here holes)" "$(here holes2)"
[ "$(stat -c %b holes2)" -lt 1000 ] || fail "holes were written"
truncate -s 5000000 sparse
must file encrypt "$(here sparse)" "$(here zeros)" --label lab
must file cp --new-key "$(here zeros)" "$(here zeros2)"
[ "$(stat -c %b zeros2)" -ge 9000 ] || fail "where there are zeros, a hole shows it"
must file verify "$(here zeros2)"

echo "--- cp --new-key: somebody else's file"
if [ "$(id -u)" = 0 ] && ! in_other_root; then
    chown 4711:2345 made
    chmod 644 made
    must file cp --new-key "$(here made)" "$(here theirs)"
    [ "$(stat -c '%u:%g %a' theirs | sort -u)" = "4711:2345 644" ] ||
        fail "root's copy: $(stat -c '%n %u:%g %a' theirs)"
    must reads theirs
    away=$(mktemp -d)                                       # where another user can get
    trap 'rm -rf "$away"; vcluster down >/dev/null 2>&1 || true' EXIT
    user() { setpriv --reuid=4712 --regid=4712 --clear-groups "$@"; }
    chmod 711 "$away"
    cp -a made "$away"
    cp -r keys "$away/keys"
    mkdir "$away/own"
    chown -R 4712:4712 "$away/keys" "$away/own"
    if user test -x "$PREFIX/bin/mpicrypt"; then
        must user mpicrypt file cp --new-key "$away/made" "$away/own/copy" --keystore-dir "$away/keys" --allow-netfs
        [ "$(stat -c '%u:%g' "$away/own/copy" | sort -u)" = 4712:4712 ] || fail "whose is the copy?"
        must file decrypt "$away/own/copy" "$(here theirs.plain)"
        must cmp plain theirs.plain
        cp plain "$away/plain"
        chmod 444 "$away/plain" "$away/made"                   # a user's attributes need the right to write
        must user mpicrypt file cp --new-key "$away/made" "$away/own/read-only" --keystore-dir "$away/keys" --allow-netfs
        must user mpicrypt file encrypt "$away/plain" "$away/own/encrypted" --label lab --keystore-dir "$away/keys" --allow-netfs
        for name in read-only encrypted; do
            [ "$(stat -c %a "$away/own/$name" | sort -u)" = 444 ] || fail "the mode of $name"
            rm -f theirs.plain
            must file decrypt "$away/own/$name" "$(here theirs.plain)"
            must cmp plain theirs.plain
        done
    else
        echo "not tried: a copy by another user, who cannot run $PREFIX/bin/mpicrypt"
    fi
    chown 0:0 made
else
    echo "not tried: somebody else's file, which root can make"
fi

echo "--- reencrypt: the same name"
before=$(uuid made)
old=$(cksum < made)
ln -s made link
must file reencrypt "$(here link)"
[ -L link ] || fail "the link was replaced"
[ "$(uuid made)" != "$before" ] && [ "$(cksum < made)" != "$old" ] || fail "nothing was encrypted anew"
must reads made
must file verify "$(here made)"
[ -z "$(compgen -G '*.part*')" ] || fail "left: $(compgen -G '*.part*')"
must file seal "$(here made)"
says "root " file reencrypt "$(here made)"
must file verify "$(here made)" --sealed                # a sealed file stays one
must reads made
if [ "$(id -u)" = 0 ]; then
    chown :2345 made
    chmod 640 made
    before=$(stat -c '%u:%g %a' made)
    must file reencrypt "$(here made)"
    [ "$(stat -c '%u:%g %a' made)" = "$before" ] || fail "$(stat -c '%n %u:%g %a' made)"
    chown :0 made
else
    echo "not tried: another group's file, which root can make"
fi
mkfifo fifo                                             # nobody waits for its writer
for verb in info verify; do
    rc=0; file $verb "$(here fifo)" > fifo.out 2>&1 || rc=$?
    [ $rc = 1 ] || fail "$verb of a FIFO: status $rc, $(cat fifo.out)"
done
rm fifo
name=$'esc\033]0;x\007\nmap'                             # what a terminal would obey, and what looks like a line of ours
cp -a made "$name"
file info "$(here "$name")" > info.out || fail "info: $(cat -v info.out)"
grep -q 'esc?\]0;x??map: ' info.out || fail "info: $(cat -v info.out)"
! LC_ALL=C grep -q '[[:cntrl:]]' info.out || fail "control characters: $(cat -v info.out)"
: > "$name"                                             # and what is no encrypted file
rc=0; file info "$(here "$name")" > info.out 2>&1 || rc=$?
[ $rc = 1 ] && ! LC_ALL=C grep -q '[[:cntrl:]]' info.out || fail "status $rc: $(cat -v info.out)"
rm "$name"

echo "--- reencrypt, whose end a signal that another thread takes does not undo"
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/thread.so" \
    "$SRC/tests/tool/preload/other_thread.c" -ldl -pthread
rc=0
in_variant env LD_PRELOAD="$CASE_DIR/thread.so" RENAME_AT=1 mpicrypt file --keystore-dir "$CASE_DIR/keys" reencrypt \
    "$(here made)" || rc=$?
[ $rc = 143 ] || fail "reencrypt ended with status $rc, not by the signal"
must reads made
must file verify "$(here made)" --sealed
[ -z "$(compgen -G '*.part*')" ] || fail "left: $(compgen -G '*.part*')"

echo "--- lists of who may do what"
# 4713 may read and write, the owning group may do nothing; the mask is rw.
acl() { # acl set|get FILE...
    python3 - "$@" <<'END'
import errno, os, struct, sys
name = "system.posix_acl_access"
entries = [(1, 6, 2**32 - 1), (2, 6, 4713), (4, 0, 2**32 - 1), (16, 6, 2**32 - 1), (32, 0, 2**32 - 1)]
wanted = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
for path in sys.argv[2:]:
    if sys.argv[1] == "set":
        try:
            os.setxattr(path, name, wanted)
        except OSError as e:
            sys.exit(2 if e.errno == errno.EOPNOTSUPP else str(e))
    elif os.getxattr(path, name) != wanted:
        sys.exit("%s has %s" % (path, os.getxattr(path, name).hex()))
END
}
rc=0; acl set made || rc=$?
if [ $rc = 0 ]; then
    must file reencrypt "$(here made)"
    must acl get made
    [ "$(stat -c %a made)" = 660 ] || fail "$(stat -c '%n %a' made)"
    must file encrypt "$(here made)" "$(here twice)" --label lab
    must_fail acl get twice
    [ "$(stat -c %a twice)" = 600 ] || fail "what the list gives to others became the group's: $(stat -c %a twice)"
    python3 -c "import os; os.removexattr('made', 'system.posix_acl_access'); os.chmod('made', 0o640)"
else
    [ $rc = 2 ] || fail "the list of made cannot be set"
    echo "not tried: lists of who may do what, which the file system has none of"
fi

echo "--- reencrypt of what cannot be read"
copy made bad
poke bad "$(data_at bad 5000)"
must_fail file reencrypt "$(here bad)"
must_fail file cp --new-key "$(here bad)" "$(here bad2)"
[ ! -e bad2 ] && [ -z "$(compgen -G '*.part*')" ] || fail "something was left"
must_fail in_variant mpicrypt file reencrypt "$(here made)" --keystore-dir "$(here nokeys)"

echo "--- with the key of one of two regions"
must run_io 2 "$program" write "$(here plain)" "$(here two)"
must file seal "$(here two)"
cp -a keys some
rm some/lab.*
file verify "$(here two)" --keystore-dir "$(here some)" > some.out && fail "regions were not checked, and the status is 0"
cat some.out
grep -q '^seal: the regions whose keys are here are as they were sealed; the others were not checked$' some.out || fail "its seal"
file verify "$(here two)" --json --keystore-dir "$(here some)" > some.json && fail "regions were not checked, and the status is 0"
grep -q '"good": false, "seal": "partly"' some.json || fail "$(cat some.json)"

echo "--- rekey that is refused at the second region says nothing of the first"
must in_variant mpicrypt key rotate lab --keystore-dir "$(here keys)"
must in_variant mpicrypt key rotate other --owners 4294967294 --keystore-dir "$(here keys)"     # wraps for another user only
before=$(cksum two)
file rekey "$(here two)" > rekey.out 2>&1 && fail "$(cat rekey.out)"
cat rekey.out
! grep -q "version 2, was 1" rekey.out || fail "it names what it did not store"
[ "$(cksum two)" = "$before" ] || fail "something was stored"

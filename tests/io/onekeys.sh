# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt file rekey, reencrypt and cp of files that are one file: the bytes stay, the keys do not.  When killed before
# any of its writes, or in the middle of one, each leaves the old file or the new one; a remaining part may be deleted.
. "$SRC/tests/io/common.sh"

python3 -c 'import cryptography' 2>/dev/null || skip "python3 has no module cryptography"
cluster_up 1
cd "$CASE_DIR"
keys_in keys lab other
vector() { python3 -B "$SRC/tests/vectors/onefile_v1.py" "$@"; }
key() { echo "$1=$(sed -n 's/^key plain //p' "${2:-keys}/$1.${3:-1}")"; }
here() { echo "$CASE_DIR/$1"; }
with() { local keys=$1; shift; in_variant mpicrypt file "$@" --keystore-dir "$CASE_DIR/$keys"; }
file() { with keys "$@"; }
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o steps.so "$SRC/tests/io/preload/steps.c" -ldl
uuid() { od -An -tx1 -j24 -N16 "$1"; }
is() { # is PLAIN FILE [KEYS]: FILE verifies, and decrypts to PLAIN
    rm -f back
    must with "${3:-keys}" verify "$(here "$2")" > verified || { cat verified; fail "$2"; }
    must with "${3:-keys}" decrypt "$(here "$2")" "$(here back)"
    must cmp "$1" back
}

# Larger than a group, with holes; two regions whose blocks do not fill a group, and the rest of the bytes plain.
head -c 300001 /dev/urandom > plain
truncate -s 17000000 plain
head -c 1000 /dev/urandom >> plain
vector write plain one "$(key lab)" aes-128-gcm:lab:4096:0:1:0:0+1
cat > two.py <<'END'
import os, sys
sys.path.insert(0, sys.argv[1])
from onefile_v1 import *
_, _, plain, path, lab, other = sys.argv
data = load(plain)
regions = [Region(1, 2, b"lab", 512, 0, 3000, 0, [(0, 700)]), Region(1, 4, b"other", 65536, 1000, 3000, 0, [(0, 1000)]), Region(0)]
file = encrypt(data, regions, key_arguments([lab, other]))
for at in range(0, len(data), 3000):
    for begin, end in ((at + 700, at + 1000), (at + 2000, min(at + 3000, len(data)))):
        while any(data[begin:end]):
            n = min(end - begin, file.geometry.D - begin % file.geometry.D)
            file.image.put(file.geometry.place(begin), data[begin:begin + n])
            begin += n
with open(path, "wb") as out:
    for at, page in sorted(file.image.pages.items()):
        out.seek(at)
        out.write(page)
    out.truncate(file.image.size)
END
must python3 -B two.py "$SRC/tests/vectors" plain two "$(key lab)" "$(key other)"
: > nothing
vector write nothing empty "$(key lab)" aes-256-gcm:lab:65536:0:1:0:0+1
for pair in 'plain one' 'plain two' 'nothing empty'; do is $pair; done

echo "--- cp, reencrypt: other keys"
for pair in 'plain one' 'plain two' 'nothing empty'; do
    read -r from name <<< "$pair"
    chmod 640 $name
    cp --preserve=all $name $name.kept
    must file cp --new-key "$(here $name)" "$(here $name.copy)"
    must file reencrypt "$(here $name)"
    [ "$(printf '%s\n' "$(uuid $name)" "$(uuid $name.copy)" "$(uuid $name.kept)" | sort -u | wc -l)" = 3 ] || fail "a UUID stays"
    for made in $name $name.copy; do
        is "$from" $made
        [ "$(stat -c '%s %a' $made)" = "$(stat -c '%s %a' $name.kept)" ] || fail "$made: $(stat -c '%s %a' $made)"
        says "attribute: verifies; file: verifies, verifies" file info "$(here $made)"
        [ $name = two ] || [ "$(stat -c %b $made)" -lt 12000 ] || fail "$made: holes were written"
    done
    must_fail file cp --new-key "$(here $name)" "$(here $name.copy)"
    says "cp needs --new-key" file cp "$(here $name)" "$(here third)"
    [ -z "$(compgen -G 'third*')$(compgen -G '*.part')" ] || fail "something was left"
done
must vector compare plain one.copy "$(key lab)"
must vector compare plain one "$(key lab)"
truncate -s 3000000 zeros
must python3 -B - "$SRC/tests/vectors" zeros written "$(key lab)" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from onefile_v1 import *
plain = bytearray(load(sys.argv[2]))
file = encrypt(bytes(plain), [Region(1, 3, b"lab", 4096, 0, 1, 0, [(0, 1)])], key_arguments(sys.argv[4:]))
for r, g, k in file.layout.below(len(plain)):        # zeros that were written
    file.write(r, g, k, bytes(file.layout.used(r, len(plain))(g, k)))
with open(sys.argv[3], "wb") as out:
    out.write(file.image.bytes())
END
must file cp --new-key "$(here written)" "$(here written.copy)"
[ "$(stat -c %b written.copy)" -gt 5500 ] || fail "where there are zeros, a hole shows it"
is zeros written.copy

echo "--- a block of the copy does not open in the file"
cat > swap.py <<'END'
import struct, sys
sys.path.insert(0, sys.argv[1])
from onefile_v1 import *
_, _, source, target, secret = sys.argv
a, b = (open_file(Image(load(path)), key_arguments([secret])) for path in (source, target))
assert a.geometry.bytes() == b.geometry.bytes()
slots, sealed = a.entry(0, 0, 3)
b.put_entry(0, 0, 3, slots, sealed)
b.put_data(0, 0, 3, a.stored(0, 0, 3))
with open(target, "r+b") as out:
    out.write(b.image.bytes())
END
cp one.copy swapped
must python3 -B swap.py "$SRC/tests/vectors" one.kept swapped "$(key lab)"
must_fail file verify "$(here swapped)"
cp one.kept swapped
must python3 -B swap.py "$SRC/tests/vectors" one.kept swapped "$(key lab)"
is plain swapped

echo "--- sealed: the copy is, too, and sizes are those that were sealed"
cp --preserve=all one.kept sealed
must file seal "$(here sealed)" > said
root=$(sed -n 's/^root //p' said)
must file rekey "$(here sealed)"                         # touches no data, and no seal
must file verify "$(here sealed)" --root "$root"
must file cp --new-key "$(here sealed)" "$(here sealed.copy)" > said
is_root=$(sed -n 's/^root //p' said)
[ "$is_root" != "$root" ] && [ ${#is_root} = 64 ] || fail "the root of the copy: $is_root"
must file verify "$(here sealed.copy)" --root "$is_root"
[ "$(vector root sealed.copy "$(key lab)")" = "$is_root" ] || fail "the roots differ"
must file reencrypt "$(here sealed)"
must file verify "$(here sealed)" --sealed
is plain sealed
for bytes in -1 -1000000 +1; do
    cp sealed.copy other-size
    truncate -s $bytes other-size
    must_refuse "the size of the file is" file decrypt "$(here other-size)" "$(here never)" --root "$is_root"
    must_fail file seal "$(here other-size)" > /dev/null
    for verb in verify reencrypt 'cp --new-key'; do
        to=(); [ "$verb" != 'cp --new-key' ] || to=("$(here never)")
        must_refuse "the size of the file is" file $verb "$(here other-size)" ${to[@]+"${to[@]}"}
    done
    [ ! -e never ] || fail "something was made"
done
must file seal --anew "$(here other-size)" > said
must file verify "$(here other-size)" --root "$(sed -n 's/^root //p' said)"

echo "--- rekey"
cat > wrapped.py <<'END'
# wrapped.py VECTORS FILE OLD: wrapped keys of OLD that are still in FILE or its attribute
import os, sys
sys.path.insert(0, sys.argv[1])
from onefile_v1 import *
from onefile_map import whole_map
old, new = load(sys.argv[3]), load(sys.argv[2])
try:
    new += os.getxattr(sys.argv[2], "user.mpicrypt.map")
except OSError:
    pass
uuid, geometry = header_of(old[:512])
for region in whole_map(old[geometry.map_place(1):][:geometry.m], uuid).regions:
    if region.encrypted and region.wrapped[30:70] in new:
        print(region.label.decode())
END
wrapped() { python3 -B wrapped.py "$SRC/tests/vectors" "$1" "$2"; }
head -c 20001 plain > small                             # for what is repeated many times
vector write small one.kept "$(key lab)" aes-128-gcm:lab:4096:0:1:0:0+1
must python3 -B two.py "$SRC/tests/vectors" small two.kept "$(key lab)" "$(key other)"
cp two.kept sealed.kept
must file seal "$(here sealed.kept)"
for name in one two; do
    rm -f $name.old $name.keys
    must file cp --new-key "$(here $name.kept)" "$(here $name.old)"   # with the attribute
    cp --preserve=all $name.old $name.keys
    [ -n "$(wrapped $name.old $name.old)" ] || fail "nothing is wrapped"
done
must in_variant mpicrypt key rotate lab --keystore-dir "$CASE_DIR/keys"
says "version 2, was 1" file rekey "$(here two.keys)"
[ "$(wrapped two.keys two.old)" = other ] || fail "the old wrapped keys are still there: $(wrapped two.keys two.old)"
says "attribute: verifies; file: verifies, verifies" file info "$(here two.keys)"
is small two.keys
cp -r keys new-keys
must in_variant mpicrypt key revoke lab --yes --version 1 --keystore-dir "$CASE_DIR/new-keys"
must in_variant mpicrypt key rotate lab --keystore-dir "$CASE_DIR/new-keys"      # so that a second rekey has something to change
is small two.keys new-keys
must_fail with new-keys verify "$(here one.old)"

# holds FILE KEYS: FILE is complete.  Prints nothing, as this is repeated many times.
holds() {
    rm -f back
    with "$2" decrypt "$(here "$1")" "$(here back)" || fail "$1 does not open"
    cmp small back || fail "$1 has other bytes"
}
# stepped HOW AT FILE VERB ARGUMENT...: killed at that step; false: it ended before
stepped() {
    local how=$1 at=$2 name=$3; shift 3
    rm -f log
    in_variant env LD_PRELOAD="$CASE_DIR/steps.so" STEP_FILE="$CASE_DIR/$name" STEP_LOG="$CASE_DIR/log" STEP_HOW=$how STEP_AT=$at \
        mpicrypt file "$@" > stepped.out 2>&1 || [ -s log ] || { cat stepped.out; fail "$how $at: $*"; }
    [ -s log ]
}
# killed VERB FILE KEYS [TO [CHECK]]: before each of its calls, and in the middle of each write; CHECK gets what is left
steps=0
killed() {
    local verb=$1 name=$2 keys=$3 to=() at how
    [ -z "${4-}" ] || to=("$(here "$4")")
    for how in kill cut; do
        for ((at = 1; ; at++)); do
            rm -f ./*.part victim target left
            cp --preserve=all "$name" victim
            stepped $how $at "${4:-victim}" $verb "$(here victim)" ${to[@]+"${to[@]}"} --keystore-dir "$CASE_DIR/$keys" || break
            : $((steps++))
            echo "$verb $name, $how $at: $(cat log); left: $(compgen -G '*.part' | wc -l)"
            [ ! -e target ] || holds target "$keys"
            rm -f ./*.part target                       # as the manual says
            holds victim "$keys"
            [ -z "${5-}" ] || cp --preserve=all victim left
            with "$keys" $verb "$(here victim)" ${to[@]+"${to[@]}"} > stepped.out || { cat stepped.out; fail "the second time"; }
            holds victim "$keys"
            [ -z "${4-}" ] || holds target "$keys"
            [ -z "${5-}" ] || "$5" left
        done
        [ $at -gt 4 ] || fail "$verb: only $at steps"
    done
}
echo "--- killed"
killed rekey two.old keys
killed reencrypt one.old keys
killed reencrypt sealed.kept keys
killed "cp --new-key" two.old keys target
# Between two seals the file has none.
sealed_or_not() { must with keys verify "$(here "$1")" > verified; }
killed seal two.old keys "" sealed_or_not
killed "seal --anew" sealed.kept keys "" sealed_or_not

echo "--- killed, and once more without the old version of the label"
# What the first kill leaves may be wrapped under version 2 in one place only.
again=0
revoked() {
    local at how
    rm -f back; with new-keys decrypt "$(here "$1")" "$(here back)" > /dev/null 2>&1 || return 0
    cp --preserve=all "$1" half-way
    for how in kill cut; do
        for ((at = 1; ; at++)); do
            cp --preserve=all half-way second
            stepped $how $at second rekey "$(here second)" --keystore-dir "$CASE_DIR/new-keys" || break
            : $((again++))
            holds second new-keys
        done
    done
}
killed rekey one.old keys "" revoked
[ $again -gt 20 ] || fail "only $again second kills"
echo "$steps kills, and $again after one"

echo "--- reencrypt, and meanwhile another file gets the name"
cat > meanwhile.sh <<'END'
# Before the first call WHEN, what WHAT says; the second time also before the next renaming.
cd "$CASE_DIR"
rotate() { mv victim victim.$1; cp --preserve=all other.kept victim; }
times=$(cat times)
case $STEP$times in
    "$WHEN"0)   ;;
    renameat21) [ $WHAT = twice ] || exit 0 ;;
    *)          exit 0 ;;
esac
echo $((times + 1)) > times
case $WHAT$times in
    rotate0 | twice0) rotate 1 ;;
    twice1)           rotate 2 ;;
    gone0)            mv victim victim.1 ;;
    link0)            mv victim victim.1; ln -s other.kept victim ;;
    over0)            cp plain victim ;;
    grow0)            echo more >> victim ;;
esac
END
head -c 20002 plain > longer
vector write longer other.kept "$(key lab)" aes-128-gcm:lab:4096:0:1:0:0+1
parts() { compgen -G '*.part' || true; }
# meanwhile WHEN WHAT [VARIABLE...]: sets rc
meanwhile() {
    rm -f victim victim.1 victim.2
    cp --preserve=all one.kept victim
    echo 0 > times
    rc=0
    in_variant env LD_PRELOAD="$CASE_DIR/steps.so" STEP_FILE="$CASE_DIR/victim" STEP_HOW=do STEP_DO="sh ./meanwhile.sh" \
        WHEN="$1" WHAT="$2" "${@:3}" mpicrypt file reencrypt "$(here victim)" --keystore-dir "$CASE_DIR/keys" > said 2>&1 || rc=$?
    echo "reencrypt, $*: status $rc: $(cat said)"
    [ "$(cat times)" -gt 0 ] || fail "nothing happened"
}
for when in 'fchmod' 'renameat2' 'fchmod STEP_NO_EXCHANGE=1'; do
    for what in rotate gone link over grow; do
        read -r call variable <<< "$when"
        meanwhile $call $what $variable
        case $what in
            rotate) is longer victim; is small victim.1 ;;
            gone)   [ ! -e victim ] || fail "it is there again"; is small victim.1 ;;
            link)   [ "$(readlink victim)" = other.kept ] || fail "the link is gone"; is small victim.1 ;;
            over)   must cmp plain victim ;;
            grow)   [ "$(tail -c 5 victim)" = more ] || fail "what was appended is gone" ;;
        esac
        [ $rc = 1 ] && grep -q "nothing was done" said || fail "$what: status $rc"
        [ -z "$(parts)" ] || fail "left: $(parts)"
    done
done
meanwhile renameat2 twice
is small victim.1
is longer victim
[ $rc = 1 ] && grep -qF "keep it" said && is longer "$(parts)" || fail "status $rc; left: $(parts)"
rm "$(parts)"
for variable in STEP=0 STEP_NO_EXCHANGE=1; do
    meanwhile renameat2 nothing $variable
    [ $rc = 0 ] && ! cmp -s one.kept victim && [ -z "$(parts)" ] || fail "status $rc; left: $(parts)"
    is small victim
done

echo "--- keys that became longer"
must openssl genrsa -out recovery.key 2048
must openssl rsa -in recovery.key -pubout -out recovery.pem
specs=()
for ((i = 0; i < 12; i++)); do specs+=("aes-256-gcm:other:4096:$((i * 4096)):4096:1:0+4096"); done
head -c 49152 /dev/urandom > many.plain
vector write many.plain many "$(key other)" "${specs[@]}"
is many.plain many
must in_variant mpicrypt key rotate other --recovery "$(here recovery.pem)" --keystore-dir "$CASE_DIR/keys"
before=$(sha256sum < many)
must_refuse "its keys are longer now than there is room for in the file; 'mpicrypt file reencrypt'" file rekey "$(here many)"
[ "$(sha256sum < many)" = "$before" ] || fail "it was changed"
must file reencrypt "$(here many)"
is many.plain many
must file rekey "$(here many)"
is many.plain many

echo "--- verbs that went"
must_refuse "use mv(1): an encrypted file is one file" file mv "$(here one)" "$(here moved)"
must_refuse "overwrites lengthen no file" file compact "$(here one)"

echo "--- what lies beside it decides nothing"
cp --preserve=all one.kept beside
echo nothing > beside.mpicrypt
is small beside
says "$(uuid beside | tr -d ' ')" file info "$(here beside)"
for verb in seal rekey reencrypt; do
    must file $verb "$(here beside)"
    is small beside
done
must file cp --new-key "$(here beside)" "$(here beside.copy)"
is small beside.copy
[ "$(cat beside.mpicrypt)" = nothing ] || fail "what lies beside it was changed"

echo "--- files of development versions"
old() { printf 'MPICRYPT\1\0%b\0%500s' "\\$1" ''; }     # old KIND: how a map (1), its digest (2) and the second file (3) began
old 3 > second
olds=second
for kind in 1 2; do
    cp plain attribute$kind
    if python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.mpicrypt.map", sys.stdin.buffer.read())' attribute$kind < <(old $kind)
    then olds+=" attribute$kind"; else echo "not tried: attributes, which the file system has none of"; fi
done
before=$(sha256sum $olds)
for name in $olds; do
    for verb in info verify seal rekey reencrypt "cp --new-key" decrypt; do
        to=(); case $verb in cp*|decrypt) to=("$(here third)") ;; esac
        found="its attribute user.mpicrypt.map"; [ $name != second ] || found="its first bytes"
        must_refuse "$(here $name): it was encrypted by a development version (found: $found), and this version cannot read it: decrypt it with that version" \
            file $verb "$(here $name)" ${to[@]+"${to[@]}"}
    done
done
[ "$(sha256sum $olds)" = "$before" ] && [ -z "$(compgen -G 'third*')$(parts)" ] || fail "something was changed or left"
must_refuse "it is not encrypted" file verify "$(here plain)"

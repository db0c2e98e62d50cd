# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Files that are one file, made by the independent writer in Python, are read by jobs and the tool; what is damaged, or
# has no key, is refused, and nothing changes such a file.
. "$SRC/tests/io/common.sh"

python3 -c 'import cryptography' 2>/dev/null || skip "python3 has no module cryptography"
cluster_up 2
keys_in "$CASE_DIR/keys" lab other
keys_in "$CASE_DIR/strangers" lab
key() { echo "$1=$(sed -n 's/^key plain //p' "$CASE_DIR/keys/$1.1")"; }
write() { must python3 -B "$SRC/tests/vectors/onefile_v1.py" write "$@"; }
tool() { in_variant mpicrypt file "$@" --keystore-dir "$CASE_DIR/keys"; }
program=$(mpi_program io convert)
read_by_job() { run_io 3 "$program" read "$CASE_DIR/$1" "$CASE_DIR/$2"; }

cd "$CASE_DIR"
for ((i = 0; i < 2500; i++)); do echo "line $i of the plain file: canary"; done > plain
head -c 100 plain > short
: > empty
# Larger than a group, and with holes.
cp plain long
truncate -s 16600000 long
tail -n 1000 plain >> long

write plain one "$(key lab)" aes-128-gcm:lab:4096:0:1:0:0+1
for name in short empty long; do
    write $name $name.one "$(key lab)" aes-256-gcm:lab:65536:0:1:0:0+1
done
cp one renamed
for pair in 'plain one' 'plain renamed' 'short short.one' 'empty empty.one' 'long long.one'; do
    read -r from file <<<"$pair"
    must tool verify "$CASE_DIR/$file"
    must tool decrypt "$CASE_DIR/$file" "$CASE_DIR/$file.back"
    must cmp "$from" "$file.back"
    must read_by_job "$from" "$file"
done
says "file        $CASE_DIR/one: $(stat -c %s plain) bytes" tool info "$CASE_DIR/one"
says "attribute: none; file: verifies, verifies" tool info "$CASE_DIR/one"
says "NOT VERIFIED" in_variant mpicrypt file info "$CASE_DIR/one" --keystore-dir "$CASE_DIR/strangers"

# Blocks that do not fill a group, and bytes of no region.
write long parts "$(key other)" aes-256-gcm:other:512:0:1000:0:0+700
must tool verify "$CASE_DIR/parts"
must_refuse "no region of the file's map holds these bytes" read_by_job long parts

sum=$(cat one parts | sha256sum)
# Nothing changes it.
must_fail run_io 2 "$program" write "$CASE_DIR/plain" "$CASE_DIR/one"        # regions over an existing one
# Nor do other components get it, although only its first bytes say what it is.
find_romio
not_selected="components that can encrypt are not selected"
for others in ${romio:+"io $romio"} "fs ufs"; do
    must_refuse "$not_selected" run_io 2 --mca $others "$program" read "$CASE_DIR/plain" "$CASE_DIR/one"
    must_refuse "$not_selected" run_io 2 --mca $others "$program" over "$CASE_DIR/plain" "$CASE_DIR/one"
    must_refuse "$not_selected" run_io 1 --mca $others "$program" delete "$CASE_DIR/plain" "ufs:$CASE_DIR/one"
    must run_io 2 --mca $others "$program" read "$CASE_DIR/plain" "$CASE_DIR/plain"
done
[ "$(cat one parts | sha256sum)" = "$sum" ] || fail "it was changed"

# Seals.
root_of() { python3 -B "$SRC/tests/vectors/onefile_v1.py" root "$1" "$(key lab)"; }
sealed() { run_io 3 --mca fs_crypt_seal 1 "$program" read "$CASE_DIR/$1" "$CASE_DIR/$2" "${@:3}"; }
for pair in 'plain one' 'empty empty.one' 'long long.one'; do
    read -r from file <<<"$pair"
    must_refuse "there is none" sealed "$from" "$file"
    cp "$file" sealed
    must tool seal "$CASE_DIR/sealed" > said
    root=$(sed -n 's/^root //p' said)
    [ "$(root_of sealed)" = "$root" ] || fail "the roots differ: $root"
    must sealed "$from" sealed "$root"
    must tool verify "$CASE_DIR/sealed" --root "$root"
    says "$root" tool info "$CASE_DIR/sealed"
    says "root $root" tool seal "$CASE_DIR/sealed"
done
cp one again
must tool seal "$CASE_DIR/again" > said
must_refuse "another version" sealed plain again "$root"
must tool seal --anew "$CASE_DIR/again" > said.anew
[ "$(root_of again)" = "$(sed -n 's/^root //p' said.anew)" ] && ! cmp said said.anew || fail "it was not sealed anew"
truncate -s -1 again
must_refuse "the size of the file is" tool verify "$CASE_DIR/again"
must_refuse "the size of the file is" sealed plain again

# The tool makes one.
makes() { in_variant mpicrypt file "$@" --keystore-dir "$CASE_DIR/keys"; }
for block in 512 64K 1M; do
    for name in plain short empty long; do
        must makes encrypt "$CASE_DIR/$name" "$CASE_DIR/$name.$block" --label lab --block-size $block
        must python3 -B "$SRC/tests/vectors/onefile_v1.py" compare $name $name.$block "$(key lab)"
        must tool verify "$CASE_DIR/$name.$block"
        must read_by_job $name $name.$block
    done
done
says "attribute: verifies; file: verifies, verifies" tool info "$CASE_DIR/plain.64K"
[ "$(du -k short.64K | cut -f1)" -le 20 ] || fail "100 bytes take $(du -k short.64K | cut -f1) KiB"
must makes encrypt "$CASE_DIR/long" "$CASE_DIR/sparse" --label lab --sparse
must read_by_job long sparse

# Jobs overwrite an existing one, and lengthen it.
over() { run_io 3 "$program" over "$CASE_DIR/$1" "$CASE_DIR/$2"; }
tr a-z b-za < plain > other
for block in 512 64K 1M; do
    cp --preserve=all plain.$block written
    cp plain expected
    for name in other long other; do
        must over $name written
        dd if=$name of=expected conv=notrunc status=none
        must python3 -B "$SRC/tests/vectors/onefile_v1.py" compare expected written "$(key lab)"
        must tool verify "$CASE_DIR/written"
        must read_by_job expected written
    done
done
# A seal is removed, if it is valid.
cp sealed broken
poke broken $((225280 + 100))     # the first block's sealed field
must_refuse "some blocks are not those that were sealed" tool verify "$CASE_DIR/broken"
must_refuse "some blocks are not those that were sealed" over plain broken
must tool verify "$CASE_DIR/sealed" --root "$root"
must over plain sealed
says "seal: none" tool verify "$CASE_DIR/sealed"
cp long expected
dd if=plain of=expected conv=notrunc status=none
must read_by_job expected sealed
# A job seals what it wrote; blocks that it did not write keep their old seal.
seals() {
    must run_io 3 --mca fs_crypt_seal 1 "$program" over "$CASE_DIR/$1" "$CASE_DIR/written" > said 2>&1
    root=$(sed -n 's/.*: sealed, root //p' said)
    [ -n "$root" ] && [ "$(root_of written)" = "$root" ] || fail "its root is $(root_of written): $(cat said)"
    must sealed expected written "$root"
    must tool verify "$CASE_DIR/written" --root "$root"
}
for block in 512 64K 1M; do
    cp --preserve=all plain.$block written
    cp plain expected
    says "could not be sealed" run_io 3 --mca fs_crypt_seal 1 "$program" over "$CASE_DIR/short" "$CASE_DIR/written"
    must tool seal "$CASE_DIR/written"
    for name in short other $([ $block = 512 ] || echo long) short; do      # 34,000 blocks take long
        dd if=$name of=expected conv=notrunc status=none
        seals $name
    done
done
# A place that was damaged is repaired.
cp one place
poke place 1100
says "file: damaged, verifies" tool info "$CASE_DIR/place"
must over plain place
says "attribute: verifies; file: verifies, verifies" tool info "$CASE_DIR/place"
must run_io 1 "$program" delete plain "$CASE_DIR/place"
must test ! -e place

# at FILE OFFSET: a copy, with another byte at that offset.  unmade FILE: one whose state is 0.
at() { cp one "$1"; poke "$1" "$2"; }
unmade() { cp one "$1"; printf '\0' | dd of="$1" bs=1 seek=512 conv=notrunc status=none; }
refused() {
    must_refuse "$1" tool decrypt "$CASE_DIR/$2" "$CASE_DIR/back"
    must_refuse "$1" read_by_job plain "$2"
}
at header 40;                 refused "its header is damaged" header
unmade state;                 refused "its header is damaged" state
unmade begun; truncate -s 8192 begun; refused "its maker was killed" begun
at maps 1100; poke maps 4200
refused "no place of the file has one" maps
at place 1100;                must read_by_job plain place
must tool decrypt "$CASE_DIR/place" "$CASE_DIR/place.back"
size=$(stat -c %s one)
at block $((size - 1));         must_refuse "some blocks cannot be read" tool verify "$CASE_DIR/block"
must_fail read_by_job plain block
must_refuse "lab" in_variant mpicrypt file verify "$CASE_DIR/one" --keystore-dir "$CASE_DIR/strangers"
must_refuse "key" run_io 2 --mca crypt_keystore_dir "$CASE_DIR/strangers" "$program" read "$CASE_DIR/plain" "$CASE_DIR/one"

# The remains that another program left, recognized by the attribute, or that a maker left when power was lost.
remains() { cp --preserve=all plain.64K "$1"; cat "$2" > "$1"; }
head -c 512 /dev/zero > zeros
if python3 -c "import os; os.getxattr('plain.64K', 'user.mpicrypt.map')" 2>/dev/null; then
    remains emptied empty
    remains begun zeros
    remains overwritten other
    must read_by_job empty emptied
    must_refuse "it is empty" run_io 2 "$program" over "$CASE_DIR/plain" "$CASE_DIR/emptied"
    remains late empty                          # whatever it gets while a reader has it open
    must run_io 2 "$(mpi_program io odd)" late "$CASE_DIR/late"
    must_refuse "it is empty" run_io 2 --mca fs_crypt_require 1 "$program" read "$CASE_DIR/empty" "$CASE_DIR/emptied"
    must_refuse "its maker was killed" read_by_job zeros begun
    must_refuse "it is empty" run_io 2 "$program" over "$CASE_DIR/plain" "$CASE_DIR/begun"
    for mode in read over; do
        must_refuse "it begins with other bytes" run_io 2 "$program" $mode "$CASE_DIR/other" "$CASE_DIR/overwritten"
        must_refuse "it begins with other bytes" run_io 2 --mca fs_crypt_key_label lab "$program" $mode "$CASE_DIR/other" "$CASE_DIR/overwritten"
    done
    must run_io 2 --mca fs_crypt_plain_paths "$CASE_DIR/*" "$program" read "$CASE_DIR/other" "$CASE_DIR/overwritten"
    must_refuse "it begins with other bytes" run_io 2 --mca fs_crypt_plain_paths "$CASE_DIR/*" "$program" over "$CASE_DIR/other" "$CASE_DIR/overwritten"
    must cmp other overwritten
    # Who may only write to a file sees the names of its attributes.
    cp --preserve=all plain.64K unread
    chmod 200 unread
    sum=$(sha256sum < unread)
    unable() { run_io 2 --mca io_ompio_overwrite_amode 0 "$@" setpriv --bounding-set=-dac_override,-dac_read_search "$(mpi_program io odd)" write "$CASE_DIR/unread"; }
    must_fail unable
    for others in ${romio:+"io $romio"} "fs ufs"; do
        must_refuse "$not_selected" unable --mca $others
    done
    [ "$(sha256sum < unread)" = "$sum" ] || fail "it was changed"
else
    echo "not tried: this file system has no attributes"
    cp empty emptied
    cp zeros begun
fi
cp zeros lost
must read_by_job zeros zeros
for name in emptied begun lost; do
    must run_io 3 --mca fs_crypt_key_label lab "$program" write "$CASE_DIR/plain" "$CASE_DIR/$name"
    must read_by_job plain $name
    must tool verify "$CASE_DIR/$name"
done

# A plain file that begins like one of ours, but is not.
{ head -c 512 plain.64K; cat other; } > header
{ head -c 16 plain.64K; cat other; } > magic
sum=$(cat header magic | sha256sum)
for name in header magic; do
    for mode in read over write; do
        must_refuse "map of a file cannot be read" run_io 2 "$program" $mode "$CASE_DIR/other" "$CASE_DIR/$name"
    done
done
[ "$(cat header magic | sha256sum)" = "$sum" ] || fail "it was changed"

# Its beginning cannot be read.
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o steps.so "$SRC/tests/io/preload/steps.c" -ldl
sum=$(sha256sum < one)
for mode in read over; do
    must_refuse "Input/output error" run_io 2 env LD_PRELOAD="$CASE_DIR/steps.so" STEP_FILE="$CASE_DIR/one" STEP_HOW=unread STEP_LOG="$CASE_DIR/log" \
        "$program" $mode "$CASE_DIR/plain" "$CASE_DIR/one"
    must rm log
done
[ "$(sha256sum < one)" = "$sum" ] || fail "it was changed"

# A program without a label waits for the maker of a file, and goes on with what one that was killed has left.
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o pause.so "$SRC/tests/io/preload/pause.c" -ldl
maker() { run_io 1 --mca fs_crypt_key_label lab env LD_PRELOAD="$CASE_DIR/$1" "${@:2}" "$program" over "$CASE_DIR/plain" "$CASE_DIR/made"; }
for at in 1 2; do
    rm -f ready end waits made; : > made
    maker pause.so PAUSE_IN=fsync PAUSE_AT=$at PAUSE_READY="$CASE_DIR/ready" PAUSE_END="$CASE_DIR/end" > maker.out 2>&1 & maker=$!
    until [ -e ready ]; do kill -0 $maker 2>/dev/null || fail "it ended: $(cat maker.out)"; sleep 0.02; done
    run_io 1 env LD_PRELOAD="$CASE_DIR/pause.so" PAUSE_WAITS="$CASE_DIR/waits" "$program" over "$CASE_DIR/plain" "$CASE_DIR/made" > other.out 2>&1 & other=$!
    while [ ! -e waits ] && kill -0 $other 2>/dev/null; do sleep 0.02; done
    : > end
    wait $other || fail "it did not wait: $(cat other.out)"
    wait $maker || fail "the maker: $(cat maker.out)"
    must read_by_job plain made
done
for at in 2 3 4 5 6; do
    rm -f log made; : > made
    must_fail maker steps.so STEP_FILE="$CASE_DIR/made" STEP_HOW=kill STEP_AT=$at STEP_LOG="$CASE_DIR/log"
    must_refuse "its maker was killed" run_io 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/made"
    if [ $at = 6 ] && python3 -c "import os; os.getxattr('made', 'user.mpicrypt.map')" 2>/dev/null; then
        must_refuse "it is empty" run_io 2 "$program" over "$CASE_DIR/plain" "$CASE_DIR/made"
        must test ! -s made
        must python3 -c "import os; os.removexattr('made', 'user.mpicrypt.map')"
    fi
    must run_io 2 "$program" write "$CASE_DIR/plain" "$CASE_DIR/made"
    must read_by_job plain made
    must tool verify "$CASE_DIR/made"
done

# It is emptied and made anew by others while it is being opened, before that keeps others away.
cp --preserve=all plain.64K made
rm -f ready end
run_io 1 env LD_PRELOAD="$CASE_DIR/pause.so" PAUSE_IN=lock PAUSE_AT=1 PAUSE_READY="$CASE_DIR/ready" PAUSE_END="$CASE_DIR/end" \
    "$program" over "$CASE_DIR/other" "$CASE_DIR/made" > other.out 2>&1 & other=$!
until [ -e ready ]; do kill -0 $other 2>/dev/null || fail "it ended: $(cat other.out)"; sleep 0.02; done
: > made
must run_io 1 --mca fs_crypt_key_label lab "$program" over "$CASE_DIR/plain" "$CASE_DIR/made"
: > end
wait $other || fail "$(cat other.out)"
must read_by_job other made
must tool verify "$CASE_DIR/made"

# A name that leaves no room for a suffix.
long=$(printf 'n%.0s' {1..250})
named() { run_io 2 --mca sharedfp ^lockedfile,sm "$program" "$@"; }    # lockedfile has room for 256 bytes of a path in 4.1
must named write "$CASE_DIR/plain" "$CASE_DIR/$long"
must named read "$CASE_DIR/plain" "$CASE_DIR/$long"
must named over "$CASE_DIR/other" "$CASE_DIR/$long"
must named read "$CASE_DIR/other" "$CASE_DIR/$long"
must tool verify "$CASE_DIR/$long"
must run_io 1 "$program" delete "$CASE_DIR/plain" "$CASE_DIR/$long"
must test ! -e "$long"

# What is beside it under the name of an old second file is not asked.
for how in one plain.64K emptied; do
    [ $how = emptied ] && remains beside empty || cp --preserve=all $how beside
    echo nothing > beside.mpicrypt
    if [ $how != emptied ]; then
        must read_by_job plain beside
        must over other beside
        must tool verify "$CASE_DIR/beside"
    fi
    must run_io 1 "$program" delete plain "$CASE_DIR/beside"
    must test ! -e beside
    [ "$(cat beside.mpicrypt)" = nothing ] || fail "$how: beside.mpicrypt was changed"
done

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What mpicrypt file verify finds by itself: a seal that does not match,
# and a copy of the map that is missing or has old keys.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/offsets.sh"

cluster_up 1
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io convert)
cd "$CASE_DIR"
here() { echo "$CASE_DIR/$1"; }
fresh() { copy kept "$1"; }
# judged FILE GOOD SEAL COPIES: the JSON's verdict on the whole file, and the status agrees.
judged() {
    local rc=0
    file verify "$(here "$1")" --json > judged.json || rc=$?
    python3 - judged.json "${@:2}" $rc <<'END'
import json, sys
said, (good, seal, copies, status) = json.load(open(sys.argv[1])), sys.argv[2:]
assert [said["good"], said["seal"], said["copies"]] == [good == "true", seal, copies == "true"], said
assert (status == "0") == said["good"], status
END
}
head -c 40960 /dev/urandom > plain
must file encrypt "$(here plain)" "$(here kept)" --label lab --block-size 4K

judged kept true none true

echo "--- the end cut off"
fresh cut
truncate -s "$(data_at cut 16384)" cut
judged cut true none true
must file seal "$(here kept)"
must file verify "$(here kept)"
judged kept true holds true
says "the file is as it was sealed" file verify "$(here kept)"
fresh cut
truncate -s "$(data_at cut 16384)" cut
must_fail file verify "$(here cut)"
says "the size of the file is 16384, and was 40960" file verify "$(here cut)"
judged cut false broken true
must_fail file seal "$(here cut)"                       # else the cut would be sealed

echo "--- a block made a hole"
fresh swapped
zero swapped "$(entry_at swapped 5)" 128
zero swapped "$(data_at swapped $((5 * 4096)))" 4096
must_fail file verify "$(here swapped)"
says "not those that were sealed" file verify "$(here swapped)"
judged swapped false broken true                        # though every block opens
must_fail file seal "$(here swapped)"
must file seal "$(here swapped)" --anew
must file verify "$(here swapped)"
judged swapped true holds true

echo "--- a copy of the map is lost"
attribute() { # attribute FILE: its map, in hexadecimal; ... EXPRESSION: set to that, of bytes m
    python3 - "$@" <<'END'
import os, sys
m = os.getxattr(sys.argv[1], "user.mpicrypt.map")
if len(sys.argv) > 2:
    os.setxattr(sys.argv[1], "user.mpicrypt.map", eval(sys.argv[2]))
else:
    print(m.hex())
END
}
lost() { # lost TEXT: the file is readable, and verify says that
    must_fail file verify "$(here lost)"
    says "$1" file verify "$(here lost)"
    judged lost false holds false
}
has_attribute=$(attribute kept 2>/dev/null) || echo "not tried: attributes, which the file system has none of"
for at in 1024 4096; do                                 # either place
    fresh lost
    zero lost $at "$(map_bytes lost)"
    lost "one of its copies of the map is missing or damaged"
    must run_io 2 "$program" read "$(here plain)" "$(here lost)"
    must run_io 2 "$program" over "$(here plain)" "$(here lost)"    # which repairs it, and removes the seal
    judged lost true none true
done
if [ -n "$has_attribute" ]; then
    fresh lost
    must attribute lost 'm[:-1]'
    lost "the map in its attribute is another or damaged"
    must python3 -c "import os; os.removexattr('lost', 'user.mpicrypt.map')"
    must file verify "$(here lost)"                     # as after cp
fi

echo "--- a copy of the map has old keys"
must in_variant mpicrypt key rotate lab --keystore-dir "$CASE_DIR/keys"
for at in 1024 4096; do
    fresh lost
    dd if=lost of=place bs=1 skip=$at count=3072 status=none
    must file rekey "$(here lost)"
    judged lost true holds true
    dd if=place of=lost bs=1 seek=$at conv=notrunc status=none
    lost "one of its copies of the map has old keys"
    must file rekey "$(here lost)"
    judged lost true holds true
done
if [ -n "$has_attribute" ]; then
    must attribute lost "bytes.fromhex('$has_attribute')"
    lost "one of its copies of the map has old keys"
fi

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What mpicrypt file verify finds by itself: a seal that does not match,
# blocks beyond the end, a copy of the map that is missing, a sidecar that was cut
# off; and nobody may overwrite what a cut sidecar makes look unwritten.
. "$SRC/tests/io/common.sh"

cluster_up 1
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io convert)
cd "$CASE_DIR"
here() { echo "$CASE_DIR/$1"; }
file() { in_variant mpicrypt file --keystore-dir "$CASE_DIR/keys" "$@"; }
fresh() { rm -f "$1" "$1.mpicrypt"; cp -a kept "$1"; cp -a kept.mpicrypt "$1.mpicrypt"; }
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
field() { od -An -tu8 -j"$2" -N8 "$1" | tr -d ' '; }
head -c 40960 /dev/urandom > plain
must file encrypt "$(here plain)" "$(here kept)" --label lab --block-size 4K

judged kept true none true

echo "--- the end cut off"
fresh cut
truncate -s 16384 cut
must_fail file verify "$(here cut)"
file verify "$(here cut)" --json > cut.json || true
python3 - cut.json <<'END'
import json, sys
(region,) = json.load(open(sys.argv[1]))["regions"]
assert (region["good"], region["beyond"]) == (4, 6), region
END
must file seal "$(here kept)"
must file verify "$(here kept)"
judged kept true holds true
says "the file is as it was sealed" file verify "$(here kept)"
fresh cut
truncate -s 16384 cut
must_fail file verify "$(here cut)"
says "the size of the file is 16384, and was 40960" file verify "$(here cut)"
judged cut false broken true
must_fail file seal "$(here cut)"                       # else the cut would be sealed

echo "--- a block made a hole"
fresh swapped
at=$(($(field kept.mpicrypt 4096) + 96 * 5))
dd if=/dev/zero of=swapped.mpicrypt bs=1 seek=$at count=96 conv=notrunc status=none
dd if=/dev/zero of=swapped bs=4096 seek=5 count=1 conv=notrunc status=none
must_fail file verify "$(here swapped)"
says "of blocks 0 to 9 some are not those that were sealed" file verify "$(here swapped)"
judged swapped false broken true                        # though every block opens
must_fail file seal "$(here swapped)"
must file seal "$(here swapped)" --anew
must file verify "$(here swapped)"

echo "--- a copy of the map is lost"
fresh lost
dd if=/dev/zero of=lost.mpicrypt bs=1 seek="$(field lost.mpicrypt 32)" count="$(field lost.mpicrypt 40)" conv=notrunc status=none
if python3 -c "import os; os.getxattr('lost', 'user.mpicrypt.map')" 2>/dev/null; then
    must_fail file verify "$(here lost)"
    says "its copy of the map is missing or damaged" file verify "$(here lost)"
    judged lost false holds false
    fresh lost
    python3 -c "import os; m = os.getxattr('lost', 'user.mpicrypt.map'); os.setxattr('lost', 'user.mpicrypt.map', m[:-1])"
    must_fail file verify "$(here lost)"
    says "the map in its attribute is another or damaged" file verify "$(here lost)"
    python3 -c "import os; os.removexattr('lost', 'user.mpicrypt.map')"
    must file verify "$(here lost)"                     # as after cp
fi

echo "--- the sidecar cut off"
whole=$(stat -c %s kept.mpicrypt)
for bytes in $((whole - 4096)) $(field kept.mpicrypt 4096) 2101248 4096; do
    fresh short
    truncate -s "$bytes" short.mpicrypt
    before=$(cksum short short.mpicrypt)
    must_fail file verify "$(here short)"
    says "the end of the sidecar is missing: it has $bytes bytes" file verify "$(here short)"
    must_fail file decrypt "$(here short)" "$(here short.plain)"
    must_fail file seal "$(here short)"
    must_fail run_io 2 "$program" read "$(here plain)" "$(here short)"
    must_fail run_io 2 "$program" write "$(here plain)" "$(here short)"
    says "The end of a file's sidecar" run_io 2 "$program" write "$(here plain)" "$(here short)"
    [ "$(cksum short short.mpicrypt)" = "$before" ] || fail "something was changed"
done

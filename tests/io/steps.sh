# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A file whose maker is killed, or finds no space, at any step, can be used by the next job.
. "$SRC/tests/io/common.sh"

cluster_up 1 --slots 2
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io begun)
cd "$CASE_DIR"
python3 -c "import os; open('f', 'w'); os.setxattr('f', 'user.x', b'')" 2>/dev/null || skip "the file system has no extended attributes"
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/steps.so" "$SRC/tests/io/preload/steps.c" -ldl
labeled="--mca fs_crypt_key_label lab"
ranks=2
begun() { run_io $ranks $labeled "$program" "$@"; }
stepped() { # stepped HOW AT MODE FILE OUT...
    local how=$1 at=$2; shift 2
    run_io $ranks $labeled env LD_PRELOAD="$CASE_DIR/steps.so" STEP_FILE="$CASE_DIR/${2##*/}" STEP_LOG="$CASE_DIR/log" STEP_HOW="$how" \
        STEP_AT="$at" "$program" "$@"
}
came() { # came OUT LINE...: these are the results, and there are no others
    local out=$1; shift
    cmp -s <(printf '%s\n' "$@") "$out" || { cat "$out"; fail "$out: expected: $*"; }
}
here() { echo "$CASE_DIR/$1"; }
nothing=8192                    # the bytes of a file that was made, and is empty
encrypted() { [ "$(head -c 9 file | tail -c 8)" = MPICRYPT ]; }

echo "--- a maker that was killed left its attribute after the file was opened without a label"
must begun map "$(here made)" "$(here out)"
must run_io 2 "$program" left "$(here file)" "$(here out)" "$(here made)"
came out "open 0" "map 0" "write 0" "close 0"
encrypted || fail "the file is plain"

for how in kill full; do
    [ $how = full ] && ranks=2 || ranks=1
    echo "--- a map in the place of that of the defaults: $how"
    for ((at = 1; ; at++)); do
        rm -f log map.out file
        stepped $how $at map "$(here file)" "$(here map.out)" > map.log 2>&1 || [ $how = kill ] || { cat map.log; fail "step $at"; }
        [ -s log ] || break
        echo "step $at: $(head -n 1 log); $(tr '\n' ',' < map.out 2>/dev/null)"
        if [ $how = full ] && grep -qx 'write 0' map.out; then     # what was written is there
            must begun read "$(here file)" "$(here use.out)"
            came use.out "read 0"
        else
            ! grep -q '^map' map.out || grep -qx 'map 0' map.out || [ "$(stat -c %s file)" -le $nothing ] || fail "step $at: bytes without a map"
            must begun use "$(here file)" "$(here use.out)"
            came use.out "open 0" "write 0" "close 0" "read 0"
            encrypted || fail "step $at: the file is plain"
        fi
    done
    came map.out "open 0" "map 0" "write 0" "close 0"
    [ $at -gt 10 ] || fail "only $at steps"
done

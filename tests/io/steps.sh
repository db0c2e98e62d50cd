# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A file whose maker is killed, or finds no space, at any step, can be used by the next job; and deleting a
# file deletes no other one that is made under its name meanwhile.
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
    run_io $ranks $labeled env LD_PRELOAD="$CASE_DIR/steps.so${AS_ONE:+:$AS_ONE}" STEP_FILE="$CASE_DIR/${2##*/}" STEP_LOG="$CASE_DIR/log" STEP_HOW="$how" \
        STEP_AT="$at" STEP_DO="${STEP_DO-}" "$program" "$@"
}
came() { # came OUT LINE...: these are the results, and there are no others
    local out=$1; shift
    cmp -s <(printf '%s\n' "$@") "$out" || { cat "$out"; fail "$out: expected: $*"; }
}
here() { echo "$CASE_DIR/$1"; }
nothing=0                       # the bytes of a file that was made, and is empty
encrypted() { [ -s file.mpicrypt ]; }
if [ -n "${AS_ONE-}" ]; then
    export STEP_ALL=1
    nothing=8192
    encrypted() { [ "$(head -c 9 file | tail -c 8)" = MPICRYPT ] && [ ! -e file.mpicrypt ]; }
fi

for how in kill full; do
    [ $how = full ] && ranks=2 || ranks=1
    echo "--- a map in the place of that of the defaults: $how"
    for ((at = 1; ; at++)); do
        rm -f log map.out file file.mpicrypt ./*.mpic-old
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

[ -z "${AS_ONE-}" ] || exit 0   # the rest is about sidecars

echo "--- another file is made while one is deleted"
ranks=1     # with several, Open MPI has each of them delete the name when the file is closed
for mode in delete gone; do
    rm -f log
    must begun use "$(here file)" "$(here use.out)"
    must begun use "$(here other)" "$(here use.out)"
    STEP_DO="mv other file && mv other.mpicrypt file.mpicrypt" must stepped run 1 $mode "$(here file)" "$(here delete.out)"
    [ "$(cat log)" = done ] || fail "$mode: $(cat log)"
    ! grep -v ' 0$' delete.out || fail "$mode: it failed"
    must begun read "$(here file)" "$(here use.out)"
    came use.out "read 0"
done

ranks=2
echo "--- who deletes has the sidecar to himself, and waits for nobody for long"
cat > lock.py <<'END'
import fcntl, os, struct, sys, time
path, ready, until = sys.argv[1:4]
fd = os.open(path, os.O_RDWR)
lock = struct.pack("hhlli4x", fcntl.F_WRLCK, os.SEEK_SET, (1 << 62) - 2, 1, 0)
try:
    fcntl.fcntl(fd, 37, lock)           # F_OFD_SETLK
    got = "got"
except OSError:
    got = "busy"
with open(ready, "w") as f:
    f.write(got)
while until and os.path.exists(until):
    time.sleep(0.01)
END
rm -f log
must begun use "$(here file)" "$(here use.out)"
STEP_DO="python3 lock.py file.mpicrypt locked ''" must stepped run 1 delete "$(here file)" "$(here delete.out)"
[ "$(cat locked)" = busy ] && [ "$(cat log)" = done ] || fail "somebody else got the sidecar: $(cat locked log)"
must begun use "$(here file)" "$(here use.out)"
rm -f locked; touch until
python3 lock.py file.mpicrypt locked until & holder=$!
while [ ! -s locked ]; do sleep 0.05; done
[ "$(cat locked)" = got ] || fail "the maker's lock: $(cat locked)"
must begun delete "$(here file)" "$(here delete.out)"
came delete.out "delete 0"
[ ! -e file ] && [ ! -e file.mpicrypt ] || fail "a part is left"
rm until; wait $holder

echo "--- odd sidecars go with their files"
gone() {
    must run_io 2 env OMPI_MCA_crypt_keystore_dir="$CASE_DIR/none" "$program" delete "$(here file)" "$(here delete.out)"    # without a key
    came delete.out "delete 0"
    [ ! -e file ] && [ ! -L file.mpicrypt ] && [ ! -e file.mpicrypt ] || fail "a part is left"
}
made() { must begun use "$(here file)" "$(here use.out)"; }
made; : > file.mpicrypt; gone
made; rm file.mpicrypt; gone
made; rm file.mpicrypt; mkfifo file.mpicrypt; gone
made; rm file.mpicrypt; ln -s nowhere file.mpicrypt; gone
made; chmod 0 file.mpicrypt; gone
made; gone

echo "--- where attributes cannot be written, nobody sets a sidecar aside that is in use"
rm -f ready end
stepped no-attr 1 hold "$(here file)" "$(here hold.out)" "$(here ready)" "$(here end)" > hold.log 2>&1 & holder=$!
while [ ! -e ready ]; do kill -0 $holder 2>/dev/null || { cat hold.log; fail "it ended"; }; sleep 0.05; done
says "is in use" stepped no-attr 1 use "$(here file)" "$(here use.out)"
[ "$(cut -d ' ' -f 1 use.out)" = open ] && ! grep -qx 'open 0' use.out || { cat use.out; fail "it was opened"; }
touch end
wait $holder || { cat hold.log; fail "who had it open"; }
came hold.out "open 0" "write 0" "close 0"
must stepped no-attr 1 read "$(here file)" "$(here use.out)"
came use.out "read 0"

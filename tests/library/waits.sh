# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A block that does not open is looked at under its lock; while another process has that, a read waits, and no longer than
# it was told; a canceled thread ends after its call.  Blocks that open need no lock.
. "$SRC/tests/library/common.sh"
. "$SRC/tests/io/offsets.sh"

cd "$CASE_DIR"
program reader
program waits
keys lab
head -c 300000 /dev/urandom > plain
encrypt plain made
copy made bad
poke bad "$(data_at bad 4100)"

cat > lock.py <<'END'
import fcntl, struct, sys, time
f = open(sys.argv[1], "r+b")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 1 << 62, 0, 0))         # F_OFD_SETLK
open(sys.argv[3], "w").close()
time.sleep(float(sys.argv[2]))
END
# locked FILE SECONDS: all block locks of the file; by another process.
locked() {
    rm -f locks
    python3 lock.py "$1" "$2" locks &
    holder=$!
    until [ -e locks ]; do kill -0 $holder || fail "no locks"; done
}

locked bad 60
must reader at bad 8192 4096 > again
must cmp <(tail -c +8193 plain | head -c 4096) again
begin=$SECONDS
OMPI_MCA_fs_crypt_lock_timeout=2 refused $IO "bad: at offset 4096: another process has had a lock on this block for 2 seconds" at bad 4096 1
grep -qx "os_error 110" said || fail "not ETIMEDOUT"
[ $((SECONDS - begin)) -lt 9 ] || fail "it took $((SECONDS - begin)) seconds"
# cat_gives_up SECONDS: what mpicrypt file cat says after them, and what it has written.
cat_gives_up() {
    local rc=0
    timeout 60 mpicrypt file cat bad > poured 2> complaint || rc=$?
    cat complaint
    [ $rc = 1 ] || fail "mpicrypt file cat: status $rc"
    grep -qF "bad: at offset 4096: another process has had a lock on this block for $1 seconds" complaint || fail "mpicrypt file cat does not say why"
    must cmp <(head -c 4096 plain) poured
}
OMPI_MCA_fs_crypt_lock_timeout=2 cat_gives_up 2
cat_gives_up 10 &
cat=$!
begin=$SECONDS
refused $IO "bad: at offset 4096: another process has had a lock on this block for 10 seconds" at bad 4096 1
[ $((SECONDS - begin)) -ge 9 ] || fail "it did not wait"
wait $cat || fail "mpicrypt file cat"
rc=0; OMPI_MCA_fs_crypt_lock_timeout=2 ./waits bad 4096 > said || rc=$?
cat said
[ $rc = $IO ] || fail "status $rc"
kill $holder; wait $holder || true
# A lock that is released in time.
locked bad 2
rc=0; ./waits bad 4096 > said || rc=$?
cat said
[ $rc = $FORGED ] || fail "status $rc"
wait $holder

# Of the lock of users: mpicrypt's verbs that work alone.
cat > alone.py <<'END'
import fcntl, struct, sys, time
f = open(sys.argv[1], "r+b")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, (1 << 62) - 34, 1, 0))
open(sys.argv[2], "w").close()
time.sleep(60)
END
rm -f locks
python3 alone.py made locks &
holder=$!
until [ -e locks ]; do kill -0 $holder || fail "no lock"; done
refused $IO "made: mpicrypt file reencrypt, rekey or seal is working on it, or a job that seals it" open made
refused $IO "made: mpicrypt file reencrypt, rekey or seal is working on it, or a job that seals it" fd=1 open made
kill $holder; wait $holder || true
refused 0 "text " open made

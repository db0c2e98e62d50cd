# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Any user who may read a file can lock it.  A job and mpicrypt report that after 10 seconds, with the process, and go
# on when the lock is released; or the call fails after fs_crypt_lock_timeout.  A file system that drops locks when any
# descriptor is closed is refused; so are ones whose nodes keep old pages, or lose parts of locks, to several nodes.  What a killed
# maker left is emptied by a writer, unless it is in use or has lost its name.
. "$SRC/tests/io/common.sh"

cluster_up 2
keys_in "$CASE_DIR/keys" lab other
program=$(mpi_program io convert)
cd "$CASE_DIR"
head -c 200001 /dev/urandom > plain
must run_io 2 "$program" write "$CASE_DIR/plain" "$CASE_DIR/file"
locked=$CASE_DIR/file

# hold KIND AT [LENGTH]: all locks from there on, or so many, shared, by a file that is open for reading; until the process is killed.
hold() {
    rm -f held
    python3 - "$locked" "$1" "$2" "$CASE_DIR/held" "${3:-0}" <<'END' &
import fcntl, os, signal, struct, sys
path, kind, start, held, length = sys.argv[1:]
F_OFD_SETLK = 37
lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, int(start), int(length), 0)
fcntl.fcntl(os.open(path, os.O_RDONLY), F_OFD_SETLK if kind == "ofd" else fcntl.F_SETLK, lock)
open(held, "w").close()
signal.pause()
END
    holder=$!
    until [ -e held ]; do
        kill -0 $holder || fail "no lock"
        sleep 0.05
    done
}

blocks=$((1 << 62))
for kind in ofd old; do
    hold $kind $blocks
    vcluster mpirun -n 2 "$program" write "$CASE_DIR/plain" "$CASE_DIR/file" > out 2>&1 &
    job=$!
    # The other process may report first: it waits for the one that waits for the holder.
    until grep -q "^  process:  $holder\$" out; do
        kill -0 $job || fail "$kind: it ended, and nobody named process $holder: $(cat out)"
        sleep 0.1
    done
    kill $holder
    wait $job || fail "$kind: $(cat out)"
    cat out
    grep -q 'waits for a lock of an encrypted file' out || fail "$kind: not what it waits for"
    grep -q "^  file:     $locked\$" out || fail "$kind: not which file"
done

hold ofd $blocks
rc=0
vcluster mpirun -n 2 --mca fs_crypt_lock_timeout 2 "$program" write "$CASE_DIR/plain" "$CASE_DIR/file" > out 2>&1 || rc=$?
cat out
[ $rc != 0 ] || fail "it had the lock"
grep -q 'for 2 seconds (fs_crypt_lock_timeout)' out || fail "it does not say why"
! grep -q 'waits for a lock' out || fail "it says it twice"
kill $holder
must run_io 2 "$program" read "$CASE_DIR/plain" "$CASE_DIR/file"

must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/dropper.so" "$SRC/tests/io/preload/dropper.c" -ldl
for n in 1 2; do
    dropping() { run_io $n env LD_PRELOAD="$CASE_DIR/dropper.so" "$program" write "$CASE_DIR/plain" "$CASE_DIR/file"; }
    must_refuse 'a lock is gone once any descriptor of the file is closed' dropping
done
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/keeper.so" "$SRC/tests/io/preload/keeper.c" -ldl
keeping() { run_io 2 "$@" env LD_PRELOAD="$CASE_DIR/keeper.so" "$program" write "$CASE_DIR/plain" "$CASE_DIR/file"; }
must_refuse 'a node does not see what other nodes wrote' keeping --map-by node
must keeping
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/merger.so" "$SRC/tests/io/preload/merger.c" -ldl
merging() { run_io 2 "$@" env LD_PRELOAD="$CASE_DIR/merger.so" "$program" write "$CASE_DIR/plain" "$CASE_DIR/file"; }
must_refuse 'a part of a range that another node has locked is free' merging --map-by node
must merging --host node0:2 --mca fs_crypt_seal 1 > out 2>&1
cat out
! grep -q '^merger: locked again' out || fail "a job locks what it has locked"
must run_io 2 "$program" write "$CASE_DIR/plain" "$CASE_DIR/file"

odd=$(mpi_program io odd)
half_made() { python3 -c 'import os, sys; os.truncate(sys.argv[1], 8192); f = open(sys.argv[1], "r+b"); f.seek(512); f.write(bytes(4))' "$1"; }
half_made file
hold ofd $((blocks - 34)) 1             # another process uses it
must_refuse 'is still open elsewhere' run_io 1 "$odd" open "$CASE_DIR/file"
kill $holder
[ "$(stat -c %s file)" = 8192 ] || fail "a file in use was emptied"
hold ofd $((blocks - 2)) 1              # it is being made
run_io 1 "$odd" open "$CASE_DIR/file" > out 2>&1 &
job=$!
until grep -q 'waits for a lock of an encrypted file' out; do
    kill -0 $job || fail "it ended: $(cat out)"
    sleep 0.1
done
mv file moved; cp plain file
kill $holder
! wait $job || fail "it used another file than the one that it had opened"
cat out
grep -q 'another file was put in its place' out || fail "it does not say why"
[ "$(stat -c %s moved)" = 8192 ] || fail "a file that had lost its name was emptied"
must_refuse 'it is empty' run_io 1 "$odd" open "$CASE_DIR/moved"
[ ! -s moved ] || fail "what a killed maker left is there"

# A failed open deletes what it made, unless another process is making it now.
for name in alone taken; do
    must_refuse 'crypt_seal_root is for opening' run_io 1 --mca fs_crypt_key_label lab "$odd" root "$CASE_DIR/$name"
done
[ ! -e alone ] || fail "a new file that was refused is there"
[ -e taken ] || fail "a file that another process is making was deleted"

must run_io 1 --mca fs_crypt_key_label lab "$odd" reserve "$CASE_DIR/reserved"

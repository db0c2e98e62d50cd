# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What other programs do with the two parts of a file, and beside us: a name taken by another file, permissions,
# leases, and simultaneous openings.
. "$SRC/tests/io/common.sh"

cluster_up 2 --slots 2
keys_in "$CASE_DIR/keys" lab other
program=$(mpi_program io convert)
cd "$CASE_DIR"
here() { echo "$CASE_DIR/$1"; }
file() { in_variant ${AS_ONE:+env LD_PRELOAD="$AS_ONE"} mpicrypt file --keystore-dir "$CASE_DIR/keys" "$@"; }
head -c 60000 /dev/urandom > plain
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o pause.so "$SRC/tests/io/preload/pause.c" -ldl

if [ -z "${AS_ONE-}" ]; then    # with two parts
    echo "--- a plain file has the name of an encrypted one that was moved without its sidecar, and is deleted"
    must file encrypt "$(here plain)" "$(here was)" --label lab --block-size 16K
    must mv was is
    must cp plain was
    says "which nobody can read without it" run_io 1 "$program" delete "$(here plain)" "$(here was)"
    [ ! -e was ] && [ ! -e was.mpicrypt ] || fail "it is still there"
    must mv ./*.mpic-old is.mpicrypt
    must cp is.mpicrypt was.mpicrypt                # several of one UUID may be set aside
    must cp plain was
    must run_io 1 "$program" delete "$(here plain)" "$(here was)"
    must cp is.mpicrypt was.mpicrypt
    must cp plain was
    must run_io 1 "$program" delete "$(here plain)" "$(here was)"
    [ ! -e was.mpicrypt ] && [ "$(compgen -G '*.mpic-old' | wc -l)" = 2 ] || fail "$(ls)"
    for aside in *.mpic-old; do
        must cmp is.mpicrypt "$aside"
        must rm "$aside"
    done
    must run_io 2 "$program" read "$(here plain)" "$(here is)"
    must run_io 1 "$program" delete "$(here plain)" "$(here is)"
    [ -z "$(compgen -G 'is*')" ] || fail "left: $(compgen -G 'is*')"

    echo "--- the data is for a group, and the job has a umask"
    must install -m 664 /dev/null wide
    must chgrp 4321 wide
    cat > narrow <<'END'
#!/bin/sh
umask 077
exec "$@"
END
    chmod +x narrow
    must run_io 2 "$(here narrow)" "$program" write-once "$(here plain)" "$(here wide)"
    for part in wide wide.mpicrypt; do
        [ "$(stat -c '%a %g' $part)" = "664 4321" ] || fail "$part: $(stat -c '%a %g' $part)"
    done

    echo "--- somebody has a lease on the sidecar, and gives it up when asked"
    must file encrypt "$(here plain)" "$(here made)" --label lab --block-size 16K
    cat > lease.py <<'END'
import fcntl, os, signal, sys, time

fd = os.open(sys.argv[1], os.O_RDONLY)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
open(sys.argv[2], "w").close()
signal.sigwait([signal.SIGIO])
time.sleep(0.3)                 # so that the other process does not find it free at once
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
END
    python3 lease.py made.mpicrypt ready & holder=$!
    until [ -e ready ]; do kill -0 $holder 2>/dev/null || fail "no lease"; sleep 0.02; done
    must run_io 2 "$program" over "$(here plain)" "$(here made)"
    wait $holder || fail "the lease: status $?"
    must run_io 2 "$program" read "$(here plain)" "$(here made)"
else
    must file encrypt "$(here plain)" "$(here made)" --label lab --block-size 16K
fi

# If two open a sealed file to write, the first removes the seal, and the second finds no seal; whatever the first has read
# by then.
echo "--- two open a sealed file"
steps=0
for ((at = 1; ; at++)); do
    must file seal "$(here made)" > /dev/null
    rm -f ready end waits
    run_io 1 env LD_PRELOAD="$(here pause.so)" PAUSE_IN=preadv PAUSE_AT=$at PAUSE_READY="$(here ready)" PAUSE_END="$(here end)" \
        "$program" over "$(here plain)" "$(here made)" > first 2>&1 & first=$!
    while [ ! -e ready ] && kill -0 $first 2>/dev/null; do sleep 0.02; done
    [ -e ready ] || break
    run_io 1 env LD_PRELOAD="$(here pause.so)" PAUSE_WAITS="$(here waits)" "$program" over "$(here plain)" "$(here made)" > second 2>&1 &
    second=$!
    while kill -0 $second 2>/dev/null && [ ! -e waits ]; do sleep 0.02; done        # it is through, or waits for the first
    : > end
    wait $first || fail "the first, that stopped before read $at: $(cat first)"
    wait $second || fail "the second, while the first stopped before read $at: $(cat second)"
    must file verify "$(here made)" > /dev/null
    steps=$at
done
wait $first || fail "alone: $(cat first)"
[ $steps -ge 5 ] || fail "it reads only $steps times"
echo "$steps steps"

[ -n "${AS_ONE-}" ] || exit 0

# started COMMAND...: stops before its PAUSE_AT-th read, or ends.
started() {
    rm -f ready end waits
    "$@" > first 2>&1 & first=$!
    while [ ! -e ready ] && kill -0 $first 2>/dev/null; do sleep 0.02; done
    [ -e ready ]
}
# others_add: another job adds the second region, or waits for the first job, which goes on then.
others_add() {
    run_io 1 env LD_PRELOAD="$(here pause.so) $AS_ONE" PAUSE_WAITS="$(here waits)" "$program" add:1 "$(here plain)" "$(here shared)" > second 2>&1 &
    second=$!
    while kill -0 $second 2>/dev/null && [ ! -e waits ]; do sleep 0.02; done
    : > end
}
# paused RANK COMMAND...: of this rank
cat > paused <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = "$1" ] || unset PAUSE_IN
shift
exec "$@"
END
chmod +x paused
cat plain plain > two
first_job() { # first_job N RANK VERB: N processes, of which one stops before a read
    run_io "$1" env LD_PRELOAD="$(here pause.so) $AS_ONE" PAUSE_IN=preadv PAUSE_AT=$at PAUSE_READY="$(here ready)" PAUSE_END="$(here end)" \
        "$(here paused)" "$2" "$program" "$3" "$(here plain)" "$(here shared)"
}

# Whatever the first has read by then, the region stays.
echo "--- a job adds a region while another one opens the file and finds a damaged copy of the map"
for ((at = 1; ; at++)); do
    rm -f shared
    must run_io 1 "$program" add:0 "$(here plain)" "$(here shared)"
    printf x | dd of=shared bs=1 seek=1100 conv=notrunc status=none
    started first_job 2 1 over || break
    others_add
    wait $first || fail "the first, that stopped before read $at: $(cat first)"
    wait $second || fail "the second, while the first stopped before read $at: $(cat second)"
    run_io 1 "$program" read "$(here two)" "$(here shared)" || fail "the file, when the first stopped before read $at"
    says "attribute: verifies; file: verifies, verifies" file info "$(here shared)"
done
wait $first || fail "alone: $(cat first)"
[ $at -gt 2 ] || fail "it reads only $at times"

echo "--- two jobs add regions"
late=0
for ((at = 1; ; at++)); do
    rm -f shared
    must run_io 1 "$program" add:0 "$(here plain)" "$(here shared)"
    started first_job 1 0 add:2 || break
    others_add
    regions=3
    for job in first second; do
        wait ${!job} && continue
        grep -q "changed its map since it was opened" $job || fail "$job, when the first stopped before read $at: $(cat $job)"
        : $((late++)) $((regions--))
    done
    must file verify "$(here shared)" > /dev/null
    [ "$(file info "$(here shared)" | grep -c aes-)" = $regions ] || fail "regions, when the first stopped before read $at: $(file info "$(here shared)")"
    [ $regions -gt 1 ] || fail "no region was added when the first stopped before read $at"
done
wait $first || fail "alone: $(cat first)"
[ $late -gt 0 ] && [ $late -lt $((at - 1)) ] || fail "late $late times of $at"

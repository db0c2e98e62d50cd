# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What other programs do beside us: permissions, leases, and simultaneous openings.
. "$SRC/tests/io/common.sh"

cluster_up 2 --slots 2
keys_in "$CASE_DIR/keys" lab other
program=$(mpi_program io convert)
cd "$CASE_DIR"
here() { echo "$CASE_DIR/$1"; }
file() { in_variant mpicrypt file --keystore-dir "$CASE_DIR/keys" "$@"; }
head -c 60000 /dev/urandom > plain
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o pause.so "$SRC/tests/io/preload/pause.c" -ldl

must file encrypt "$(here plain)" "$(here made)" --label lab --block-size 16K

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


# started COMMAND...: stops before its PAUSE_AT-th read, or ends.
started() {
    rm -f ready end waits
    "$@" > first 2>&1 & first=$!
    while [ ! -e ready ] && kill -0 $first 2>/dev/null; do sleep 0.02; done
    [ -e ready ]
}
# others_add: another job adds the second region, or waits for the first job, which goes on then.
others_add() {
    run_io 1 env LD_PRELOAD="$(here pause.so)" PAUSE_WAITS="$(here waits)" "$program" add:1 "$(here plain)" "$(here shared)" > second 2>&1 &
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
    run_io "$1" env LD_PRELOAD="$(here pause.so)" PAUSE_IN=preadv PAUSE_AT=$at PAUSE_READY="$(here ready)" PAUSE_END="$(here end)" \
        "$(here paused)" "$2" "$program" "$3" "$(here plain)" "$(here shared)"
}

# Whatever the first has read by then, the region stays.
echo "--- a job adds a region while another one opens the file and finds a damaged copy of the map"
for ((at = 1; ; at++)); do
    rm -f shared
    must run_io 1 "$program" add:0 "$(here plain)" "$(here shared)"
    poke shared 1100
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

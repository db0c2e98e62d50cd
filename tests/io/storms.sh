# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Storms (storm.c), for the cases that interrupt them.  The journals are in a directory of this machine, and the file may be
# elsewhere, by a link.

storm=$(mpi_program io storm)
storm_on=()                                         # where its processes are: options of mpirun

# storm_directory DIRECTORY [FILE]: for the journals of a storm, and its file.
storm_directory() { mkdir "$1"; [ -z "${2-}" ] || ln -s "$2" "$1/storm"; }

# storm_alive DIRECTORY: the pids of its processes that write.
storm_alive() { pgrep -f "^$storm $1 write"; }

# mpirun does not wait for the processes that it kills on other nodes.
storm_gone() { while storm_alive "$1" >/dev/null; do sleep 0.05; done; }

# storm_begin DIRECTORY SEED: in the background, until each process has finished a write.
storm_begin() {
    run_io 4 ${storm_on[@]+"${storm_on[@]}"} "$storm" "$1" write seed="$2" > "$CASE_DIR/storm.log" 2>&1 &
    storm_job=$!
    until [ -n "$(storm_alive "$1")" ]; do storm_lasts; done
    storm_goes_on "$1"
}

storm_lasts() {
    kill -0 $storm_job || { cat "$CASE_DIR/storm.log"; fail "the storm ended by itself"; }
    sleep 0.1
}

# storm_goes_on DIRECTORY: each of its processes finishes one more write.
storm_goes_on() {
    local i before
    for i in 0 1 2 3; do
        before=$(storm_finished "$1" $i)
        while [ "$(storm_finished "$1" $i)" = "$before" ]; do storm_lasts; done
    done
}
storm_finished() { [ ! -e "$1/journal.$2" ] || tail -c 640 "$1/journal.$2" | cksum; }       # 160 numbers

# storm_end DIRECTORY: as if one of its processes crashed.
storm_end() {
    kill -KILL "$(storm_alive "$1" | head -n 1)"
    ! wait $storm_job || fail "the storm ended by itself"
    storm_gone "$1"
}

# storm_check DIRECTORY [lost=1]: the file is old or new everywhere, or torn where nothing was ever finished, and `mpicrypt file
# verify` says the same.
storm_check() {
    run_io 1 "$storm" "$1" check "${@:2}" > "$CASE_DIR/check.log" 2> "$CASE_DIR/check.err" || { cat "$CASE_DIR"/check.*; fail "$1"; }
    vcluster exec node0 mpicrypt file verify "$1/storm" --keystore-dir "$CASE_DIR/keys" --json > "$CASE_DIR/verify.json" || true
    sed -n 's/^torn //p' "$CASE_DIR/check.log" | sort -n > "$CASE_DIR/torn"
    python3 - "$CASE_DIR/verify.json" "$CASE_DIR/torn" <<'PY' || { cat "$CASE_DIR/verify.json"; fail "$1: verify says otherwise"; }
import json, sys
blocks = json.load(open(sys.argv[1]))["blocks"]
torn = [int(line) for line in open(sys.argv[2])]
assert [b["block"] for b in blocks] == torn and all(b["state"] == "torn" for b in blocks), (blocks, torn)
PY
}

# storm_kills COUNT SEED [STORAGE]: COUNT times a process that writes is killed at a point of a seeded schedule, a third of
# the times between data and entry; after each the file is checked.  The next storm goes on from there; every tenth begins
# with a new file, in STORAGE.
storm_kills() {
    local count=$1 seed=$2 i directory how settings killer=$VARIANT_DIR/tests/io/killer.so
    must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$killer" "$SRC/tests/io/preload/killer.c" -ldl
    export KILL_LOG=$CASE_DIR/kills
    echo "seed $seed"
    RANDOM=$seed
    for ((i = 0; i < count; i++)); do
        directory=$CASE_DIR/files.$((i / 10))
        [ -e "$directory" ] || storm_directory "$directory" ${3:+"$3/storm.$((i / 10))"}
        how=(before cut between) how=${how[RANDOM % 3]}
        # The first storm on a file writes little before each block has an entry.
        settings=(KILL_RANK=$((RANDOM % 4)) KILL_AT=$((1 + RANDOM % 60)) KILL_HOW=$how KILL_CUT=$((RANDOM % 1000)))
        echo "kill $i: ${settings[*]}"
        if run_io 4 ${storm_on[@]+"${storm_on[@]}"} env LD_PRELOAD="$killer" "${settings[@]}" KILL_LOG="$KILL_LOG" \
                "$storm" "$directory" write seed=$((seed * 1000 + i)) > "$CASE_DIR/storm.log" 2>&1; then
            fail "the storm ended by itself"
        fi
        storm_gone "$directory"
        [ "$(wc -l < "$KILL_LOG")" = $((i + 1)) ] || { cat "$CASE_DIR/storm.log"; fail "it ended for another reason"; }
        storm_check "$directory"
    done
    cut -d ' ' -f 1,2 "$KILL_LOG" | sort | uniq -c
    [ "$count" -lt 20 ] || [ "$(grep -c '^between' "$KILL_LOG")" -ge $((count / 4)) ] || fail "too few between data and entry"
}

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# kills.sh COUNT [SEED]: COUNT times a process that writes is killed at a
# point of a seeded schedule, a third of the times between data and entry;
# after each the file is old or new everywhere, or torn where nothing was ever
# finished, and `mpicrypt file verify` says the same.  The next storm goes on
# from there; every tenth begins with a new file.
. "$SRC/tests/io/common.sh"

count=$1 seed=${2:-1}
cluster_up 2 --slots 2
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io storm)
killer=$VARIANT_DIR/tests/io/killer.so
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$killer" "$SRC/tests/io/preload/killer.c" -ldl
export KILL_LOG=$CASE_DIR/kills
echo "seed $seed"
RANDOM=$seed

for ((i = 0; i < count; i++)); do
    directory=$CASE_DIR/files.$((i / 10))
    mkdir -p "$directory"
    how=(before cut between) how=${how[RANDOM % 3]}
    # The first storm on a file writes little before each block has an entry.
    settings=(KILL_RANK=$((RANDOM % 4)) KILL_AT=$((1 + RANDOM % 60)) KILL_HOW=$how KILL_CUT=$((RANDOM % 1000)))
    echo "kill $i: ${settings[*]}"
    if run_io 4 env LD_PRELOAD="$killer" "${settings[@]}" KILL_LOG="$KILL_LOG" "$program" "$directory" write seed=$((seed * 1000 + i)) \
            > "$CASE_DIR/storm.log" 2>&1; then
        fail "the storm ended by itself"
    fi
    # mpirun does not wait for the processes that it kills on other nodes.
    while pgrep -f -- "$program $directory write" >/dev/null; do sleep 0.05; done
    [ "$(wc -l < "$KILL_LOG")" = $((i + 1)) ] || { cat "$CASE_DIR/storm.log"; fail "it ended for another reason"; }
    run_io 1 "$program" "$directory" check > "$CASE_DIR/check.log" 2> "$CASE_DIR/check.err" ||
        { cat "$CASE_DIR"/check.*; fail "kill $i"; }
    in_variant mpicrypt file verify "$directory/storm" --keystore-dir "$CASE_DIR/keys" --json > "$CASE_DIR/verify.json" || true
    sed -n 's/^torn //p' "$CASE_DIR/check.log" | sort -n > "$CASE_DIR/torn"
    python3 - "$CASE_DIR/verify.json" "$CASE_DIR/torn" <<'END' || { cat "$CASE_DIR/verify.json"; fail "kill $i: verify says otherwise"; }
import json, sys
blocks = json.load(open(sys.argv[1]))["blocks"]
torn = [int(line) for line in open(sys.argv[2])]
assert [b["block"] for b in blocks] == torn and all(b["state"] == "torn" for b in blocks), (blocks, torn)
END
done
cut -d ' ' -f 1,2 "$KILL_LOG" | sort | uniq -c
[ "$count" -lt 20 ] || [ "$(grep -c '^between' "$KILL_LOG")" -ge $((count / 4)) ] || fail "too few between data and entry"

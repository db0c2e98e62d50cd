# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt tune --coll: the file that it writes is one that coll/cryptag reads,
# and what it says is what jobs do.  No figure is judged.
set -eu
. "$SRC/tests/tool/common.sh"
rules=$CASE_DIR/site.rules
once=(--mpirun "$launcher" --rounds 1 --laps 1 --lap-ms 1)

# chosen OPERATION NODES ORDER BYTES: the algorithm that the file has for it
chosen() {
    awk -v want="$1 $3 $2" -v bytes="$4" '$1 " " $2 " " $3 "x" $4 == want && $5 <= bytes { last = $6 }
        END { print last }' "$rules"
}

cluster_up 4 --slots 2
must tool tune --coll "${once[@]}" --shape 2x2,3x1 --size 8K,1 --out - --csv "$CASE_DIR/p.csv"
cp "$CASE_DIR/out" "$rules"
cat "$rules"
grep -q '^bcast 2x2 cyclic: times over those of auto' "$CASE_DIR/err" || fail "the tables: $(cat "$CASE_DIR/err")"
# Small shapes first, since the last rule that applies counts; the smallest size begins at 0.
same "what was measured" "$(for op in allgather bcast alltoall; do
    for variant in "3x1 block" "2x2 block" "2x2 cyclic"; do for bytes in 1 8192; do
        for c in auto hop $(algorithms "${op^^}" | grep -vx hop); do echo "$op $variant $bytes $c"; done
    done; done
done)" "$CASE_DIR/p.csv" pattern variant bytes column
[ "$(awk '/^[a-z]/ && $5 == 0 { print $1, $2, $3, $4 }' "$rules")" = "$(for op in allgather bcast alltoall; do
    printf "$op %s\n" "any 3 1" "block 2 2" "cyclic 2 2"
done)" ] || fail "shapes of the rules"

echo "jobs follow the file"
for job in "2x2 block 1" "2x2 cyclic 8192" "3x1 block 8192"; do
    read -r shape order bytes <<<"$job"
    OMPI_MCA_crypt_verbose=20 OMPI_MCA_coll_cryptag_rules_file=$rules must bench allgather "${quick[@]}" \
        --shape $shape --order $order --size $bytes --schemes auto
    algorithm=$(chosen allgather $shape $([ $shape = 3x1 ] && echo any || echo $order) $bytes)
    said=$(grep -o 'rank 0 of [34], call [0-9]*: allgather by [^:]*' "$CASE_DIR/err" | awk '{ print $NF }' | sort -u)
    [ "$said" = "${algorithm/#hop/}" ] ||               # a call that is left to others is not in the list
        fail "$shape $order $bytes: $said, and not $algorithm as the file says: $(cat "$CASE_DIR/err")"
done

echo "what cannot be"
refuses 2 "there is no '128,256'; there are: 128, 192, 256" tune --coll --bits 128,256
refuses 2 "--rounds: 1001 is not between 0 and 1000" tune --coll --rounds 1001
refuses 2 "--laps: 0 is not between 1 and 1000" tune --coll --laps 0
refuses 1 "/none/rules" tune --coll --out /none/rules

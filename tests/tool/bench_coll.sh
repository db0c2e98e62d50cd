# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt bench of collectives on four nodes: columns, shapes, the papers'
# sizes scaled down, jobs that are not what was asked for.  No figure is judged.
set -eu
. "$SRC/tests/tool/common.sh"

cluster_up 4 --slots 2

mapfile -t sealed < <(algorithms ALLGATHER | grep -vx hop)
must test "${#sealed[@]}" -ge 9

echo "all-gather, all columns"
must bench allgather "${quick[@]}" --shape 2x2 --size 1,5000 --csv "$CASE_DIR/p.csv" --raw "$CASE_DIR/r.csv" \
    --plot "$CASE_DIR/p.svg"
same "columns" "$(for order in block cyclic; do for bytes in 1 5000; do
    for c in plain:0 ring:0 hop:128 auto:128 "${sealed[@]/%/:128}"; do
        echo "allgather 2x2 $order 4 $bytes ${c%:*} ${c#*:} 1"
    done
done; done)" "$CASE_DIR/p.csv" pattern variant ranks bytes column bits rounds
awk -F, 'NR > 1 && !($9 > 0 && $14 > 0) { bad = 1 } END { exit bad }' "$CASE_DIR/p.csv" || fail "a time is not positive"
[ "$(wc -l < "$CASE_DIR/r.csv")" = $((1 + 4 * (4 + ${#sealed[@]}))) ] || fail "every value once"
grep -q "^allgather 2x2 cyclic: times over those of plain" "$CASE_DIR/out" || fail "the matrix"
grep -Eq "^size +plain us +ring +hop +auto$(printf ' +%s' "${sealed[@]}") +best +auto/best" \
    "$CASE_DIR/out" || fail "columns of the matrix"
grep -q "^ring *pml=ob1 coll=^han coll_tuned_use_dynamic_rules=1 coll_tuned_allgather_algorithm=ring" "$CASE_DIR/out" ||
    fail "settings of ring"
grep -q "^hs2 *the same job, in it coll_cryptag_allgather_algorithm=hs2" "$CASE_DIR/out" || fail "settings of hs2"
grep -q "1 rounds, all of which count" "$CASE_DIR/out" || fail "the rule is not printed"
[ "$(grep -c '>c-ring</text>' "$CASE_DIR/p.svg")" = 4 ] || fail "the plot"

echo "the algorithms of a column are those that ran"
# What coll/cryptag says of every call, in the order of the calls.
OMPI_MCA_crypt_verbose=20 must bench allgather "${quick[@]}" --shape 2x2 --order block --size 100 \
    --schemes hs1,c-rd,auto
for algorithm in hs1 c-rd; do
    grep -q "rank 0 of 4, call [0-9]*: allgather by $algorithm: " "$CASE_DIR/err" || fail "$algorithm did not run"
done
! grep -q "rank 0 of 4, call [0-9]*: allgather by \(naive\|hs2\|c-ring\): " "$CASE_DIR/err" || fail "another one ran"

echo "broadcast and all-to-all, two key sizes, rounds"
must bench bcast "${quick[@]}" --rounds 2 --fast 2 --shape 3x1 --order block --size 70K --bits 128,256 \
    --schemes auto,hop,chain --raw "$CASE_DIR/r.csv" 'mine pml=crypt coll_cryptag_fragment=2048'
same "bcast" "$(for c in plain auto-128 hop-128 chain-128 auto-256 hop-256 chain-256 mine-128; do
    echo "bcast 71680 $c 1 1"; echo "bcast 71680 $c 2 1"
done)" "$CASE_DIR/r.csv" pattern bytes column round fast
must bench alltoall "${quick[@]}" --shape 4x2 --order cyclic --size 0,300 --json
python3 -c '
import json, sys
data = json.load(open(sys.argv[1]))
assert data["nodes"] == 4 and data["columns"]["node"][-1] == "coll_cryptag_alltoall_algorithm=node", data
assert [row["column"] for row in data["results"]] == 2 * ["plain", "auto", "hop", "node", "pairs", "rows"], data
assert {row["variant"] for row in data["results"]} == {"4x2 cyclic"}, data' "$CASE_DIR/out"

echo "what cannot be"
refuses 2 "there is no 'chain' for allgather; there are: ring,hop,auto,naive" bench allgather --schemes chain
refuses 2 "'4' is not NODESxRANKS" bench allgather "${quick[@]}" --shape 4
refuses 2 "'1x4' is not NODESxRANKS" bench bcast "${quick[@]}" --shape 1x4
refuses 2 "there is no 'any'; there are: block, cyclic" bench bcast "${quick[@]}" --order any
refuses 2 "--local is not for collectives" bench alltoall --local
refuses 2 "--paper is for messages (pingpong, pairs, stencil) and collectives" bench io --paper
refuses 3 "does not put 2 ranks on each of 2 nodes in block order" \
    bench allgather "${quick[@]}" --shape 2x2 --order block --mapping '--map-by node'
refuses 3 "no component in this job has a parameter coll_cryptag_bcast_algorithm" \
    bench bcast "${quick[@]}" --mpirun "$launcher --mca coll ^cryptag" --shape 2x1 --size 1 --schemes chain

echo "the papers' shapes"
vcluster down
cluster_up 8 --slots 2
must bench allgather "${quick[@]}" --paper --per-cpu 1 --order block --size 1 --schemes auto --csv "$CASE_DIR/p.csv"
width=$(( $(nproc) / 8 > 0 ? $(nproc) / 8 : 1 )) seven=$(( $(nproc) / 7 > 0 ? $(nproc) / 7 : 1 ))
[ $width -le 2 ] || skip "more processors than the virtual nodes have slots"
same "paper" "$(for shape in 8x$width/8x16 7x$seven/7x13; do
    for c in plain auto-128 auto-256; do echo "${shape%/*} block (paper: ${shape#*/}) $c"; done
done)" "$CASE_DIR/p.csv" variant column
grep -q "^8 nodes with $width ranks each instead of the paper's 16 ($((8 * width)) ranks instead of 128)" "$CASE_DIR/out" ||
    fail "the scaling is not printed"
grep -q "^7 nodes with $seven ranks each instead of the paper's 13 ($((7 * seven)) ranks instead of 91)" "$CASE_DIR/out" ||
    fail "the scaling of 7x13 is not printed"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt bench on two nodes: every pattern, the forms of what it writes, jobs
# that are not what their column claims.  No figure is judged.
set -eu
. "$SRC/tests/tool/common.sh"

cluster_up 2

echo "ping-pong"
must bench pingpong "${quick[@]}" --size 0,100K --schemes tuned,raised,naive,bare,crypt,crypt-tuned,crypt-raised,pipe \
    --csv "$CASE_DIR/p.csv" --raw "$CASE_DIR/r.csv" --plot "$CASE_DIR/p.svg" 'mine pml=crypt pml_crypt_chunk_size=65536'
same "columns" "$(for bytes in 0 102400; do
    for c in plain:0 tuned:0 raised:0 naive:128 bare:128 crypt:128 crypt-tuned:128 crypt-raised:128 pipe:128 mine:128; do
        echo "pingpong $bytes ${c%:*} ${c#*:} 1"
    done
done)" "$CASE_DIR/p.csv" pattern bytes column bits fast_rounds
awk -F, 'NR > 1 && !($9 > 0 && $14 > 0) { bad = 1 } END { exit bad }' "$CASE_DIR/p.csv" || fail "a time is not positive"
[ "$(wc -l < "$CASE_DIR/r.csv")" = 21 ] || fail "every value once"
grep -q "Stopping rule: 1 FAST rounds at every size, or" "$CASE_DIR/out" || fail "the rule is not printed"
grep -q "2 nodes (virtual: they share one machine), ranks pinned" "$CASE_DIR/out" || fail "places"
tcp=$(vcluster net node0 cat /proc/sys/net/ipv4/tcp_congestion_control)
grep -qx "TCP congestion control: $tcp" "$CASE_DIR/out" || fail "TCP of the nodes"
grep -q "pml=crypt pml_crypt_host=ob1 crypt_key_bits=128 pml_crypt_chunk_size=65536" "$CASE_DIR/out" || fail "settings"
[ "$(grep -c '>crypt-raised</text>' "$CASE_DIR/p.svg")" = 2 ] || fail "the plot"

# 300K is several batches of records and a short one; every size is checked byte by byte.
must bench pingpong "${quick[@]}" --size 1,16K,300K --schemes pml,btl,socket,socket-sealed,socket-copied --bits 128,256 --csv "$CASE_DIR/p.csv"
same "the limit" "$(for bytes in 1 16384 307200; do
    for c in plain:0 pml-128:128 pml-256:256 btl-128:128 btl-256:256 socket:0 socket-sealed-128:128 socket-sealed-256:256 socket-copied-128:128 socket-copied-256:256; do
        echo "$bytes ${c%:*} ${c#*:} 1"
    done
done)" "$CASE_DIR/p.csv" bytes column bits fast_rounds
awk -F, 'NR > 1 && !($9 > 0 && $14 > 0) { bad = 1 } END { exit bad }' "$CASE_DIR/p.csv" || fail "a time is not positive"
grep -q "^socket-sealed-256 sealed by the benchmark; over a socket" "$CASE_DIR/out" || fail "what a socket is"

echo "rounds"
must bench pingpong "${quick[@]}" --rounds 2 --fast 2 --size 1,1K --schemes pml --bits 128,192,256 --raw "$CASE_DIR/r.csv"
same "order" "$(for bytes in 1 1024; do
    for c in plain pml-128 pml-192 pml-256; do echo "$bytes $c 1"; echo "$bytes $c 2"; done
done)" "$CASE_DIR/r.csv" bytes column round
must bench pingpong "${quick[@]}" --local --size 1 --schemes crypt --json
python3 -c '
import json, sys
data = json.load(open(sys.argv[1]))
assert data["nodes"] == 1 and data["columns"]["crypt"][0] == "pml=crypt", data
assert [row["column"] for row in data["results"]] == ["plain", "crypt"], data' "$CASE_DIR/out"

echo "pairs and stencils"
must bench pairs "${quick[@]}" --pairs 1,2 --window 3 --size 200K --schemes naive,crypt --csv "$CASE_DIR/p.csv"
same "pairs" "$(for n in "1 pair" "2 pairs"; do
    for c in plain naive crypt; do echo "$n x 3 $((2 * ${n% *})) $c"; done
done)" "$CASE_DIR/p.csv" variant ranks column
# What is printed is under which conditions each variant ran: the second has more ranks than processors.
many=$(($(nproc) / 2 + 1))
if [ $many -le 8 ]; then
    placed=(pairs "${quick[@]}" --pairs 1,$many --window 3 --size 1K --schemes crypt)
    must bench "${placed[@]}"
    for line in "nodes and ranks: differs by variant" "    1 pair x 3: 2 nodes (virtual: they share one machine), ranks pinned" \
        "    $many pairs x 3: 2 nodes (virtual: they share one machine), ranks not pinned, more ranks than processors"; do
        grep -qxF -- "$line" "$CASE_DIR/out" || fail "it does not print '$line'"
    done
    must bench "${placed[@]}" --json
    python3 -c '
import json, sys
data = json.load(open(sys.argv[1]))
assert (data["nodes"], data["ranks"], data["more_ranks_than_processors"]) == (2, None, None), data
assert [(v["nodes"], v["ranks"], v["more_ranks_than_processors"]) for v in data["variants"]] == \
    [(2, "pinned", False), (2, "not pinned", True)], data
assert [v["variant"] for v in data["variants"]] == sorted({r["variant"] for r in data["results"]}), data' "$CASE_DIR/out"
else
    echo "not tried: more ranks than these $(nproc) processors"
fi
must bench pairs "${quick[@]}" --pairs 2 --window 3 --both --size 1,200K,1M --schemes naive,btl,socket,socket-sealed,socket-copied \
    --csv "$CASE_DIR/p.csv"
same "both ways" "$(for bytes in 1 204800 1048576; do for c in plain naive btl socket socket-sealed socket-copied; do
    echo "2 pairs x 3 both ways $bytes $c"
done; done)" "$CASE_DIR/p.csv" variant bytes column
must bench pairs "${quick[@]}" --pairs 1 --window 64 --size 1,1000,16385 --schemes socket,socket-sealed --csv "$CASE_DIR/p.csv"
# There is no room for the second; the first is written all the same.
refuses 1 "only 1 of 2 parts have been measured" bench pairs "${quick[@]}" --mpirun "$launcher --host node0:1,node1:1" \
    --pairs 1,2 --size 1K --schemes crypt --csv "$CASE_DIR/first.csv"
same "the first" "1 pair x 64 plain
1 pair x 64 crypt" "$CASE_DIR/first.csv" variant column
must bench pingpong "${quick[@]}" --local --cpus-per-rank 2 --size 1K --schemes crypt
must bench stencil "${quick[@]}" --dims 2,4 --compute 0,50 --size 1K,64K --schemes naive,crypt --csv "$CASE_DIR/p.csv"
[ "$(wc -l < "$CASE_DIR/p.csv")" = 25 ] || fail "a line for each of 2 x 2 x 2 x 3"
results "$CASE_DIR/p.csv" variant work_percent | awk '($2 == "0%") != ($3 == 0) { bad = 1 } END { exit bad }' ||
    fail "computation where none was asked for, or none where it was"

echo "as the paper has it"
must bench pingpong "${quick[@]}" --paper --percent 1 --size 64K,1M --rounds 2 --csv "$CASE_DIR/p.csv"
same "columns" "$(for bytes in 65536 1048576; do for c in plain naive crypt; do echo "$bytes $c 2"; done; done)" \
    "$CASE_DIR/p.csv" bytes column fast_rounds
grep -q "10 iterations a round from 1M on, else 100: 1% of the paper's 1000 and 10000" "$CASE_DIR/out" || fail "iterations"
grep -q "standard deviation of every time is within 5% of its mean" "$CASE_DIR/out" || fail "the paper's rule is not printed"
grep -q "after 2 rounds the paper's rule was not satisfied" "$CASE_DIR/err" || fail "two rounds satisfied it"
must bench pairs "${quick[@]}" --paper --percent 1 --size 1K --per-cpu 2 --schemes crypt --csv "$CASE_DIR/p.csv"
grep -q "Fewer pairs than the paper's 16" "$CASE_DIR/out" || [ "$(nproc)" -ge 32 ] || fail "scaling is not said"
must bench stencil "${quick[@]}" --paper --percent 1 --dims 2 --size 1K --schemes crypt --csv "$CASE_DIR/p.csv"
same "computation" "$(for c in 30 60 80; do for k in plain crypt; do echo "2D $c% $k"; done; done)" "$CASE_DIR/p.csv" variant column
grep -q "4 ranks on 2 nodes (--ranks) instead of the paper's 784 on 112" "$CASE_DIR/out" || fail "ranks"
refuses 2 "paper is for messages" bench io --label lab --paper

echo "files"
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
must mpicrypt key new lab --keystore-dir "$CASE_DIR/keys"
mkdir "$CASE_DIR/files"
for name in a b c; do           # somebody's, who calls them so
    echo theirs > "$CASE_DIR/$name"
    ln -s "$CASE_DIR/$name" "$CASE_DIR/files/mpicrypt-bench-$name"
done
must bench io "${quick[@]}" --dir "$CASE_DIR/files" --label lab --ranks 4 --data 256K --row 64K --bits 128,256 --block-size 4K,64K \
    --workload tile,matmul --access row,block --csv "$CASE_DIR/p.csv"
same "files" "$(for v in "tile row write" "tile row read" "tile row overwrite" "tile block write" "tile block read" \
        "tile block overwrite" "matmul row run"; do
    for bytes in 4096 65536; do for c in plain plain-cycles messages-128 file-128 file-256; do echo "$v $bytes $c"; done; done
done)" "$CASE_DIR/p.csv" variant bytes column
results "$CASE_DIR/p.csv" variant MBps | awk '($1 == "matmul") != ($4 == "") { print; bad = 1 } END { exit bad }' ||
    fail "a speed of matmul, which computes, or none of another"
must bench io "${quick[@]}" --quick --dir "$CASE_DIR/files" --label lab --ranks 2,4 --data 256K --row 64K --workload tile --access row \
    --csv "$CASE_DIR/p.csv"
same "numbers of ranks" "$(for n in 2 4; do
    for v in write read; do for c in plain plain-cycles messages file; do echo "tile row $v $n ranks $n $c"; done; done
done)" "$CASE_DIR/p.csv" variant ranks column
[ "$(echo $(ls "$CASE_DIR/files"))" = "mpicrypt-bench-a mpicrypt-bench-b mpicrypt-bench-c" ] || fail "files are left, or gone"
[ "$(sort -u "$CASE_DIR"/[abc])" = theirs ] || fail "it wrote to somebody's file"
refuses 2 "there is no 'sideways'" bench io --label lab --access sideways
refuses 2 "io needs --label" bench io

echo "jobs that are not what their column says"
refuses 1 "the PML should be crypt, but parameter pml is 'ob1'" \
    bench pingpong "${quick[@]}" --mpirun "$launcher --mca pml ob1" --size 1 --schemes crypt
refuses 1 "the PML should be ob1, but parameter pml is 'crypt'" \
    bench pingpong "${quick[@]}" --mpirun "$launcher --mca pml crypt --mca crypt_auth none" --size 1 --schemes naive
refuses 1 "ompi-crypt has no such parameter" bench pingpong "${quick[@]}" --size 1 'mine pml=crypt pml_crypt_none=1'
if ! vcluster net node0 test -e /proc/net/tls_stat; then
    refuses 3 "node has no module tls" bench pingpong "${quick[@]}" --size 1 --schemes btl-ktls
fi
refuses 3 "no component in this job has a parameter btl_tcp_none" \
    bench pingpong "${quick[@]}" --size 1 'mine pml=crypt btl_tcp_none=1'
OMPI_MCA_crypt_psk_file=$CASE_DIR/none refuses 1 "column crypt: this command ended with status" \
    bench pingpong "${quick[@]}" --size 1 --schemes crypt
refuses 3 "puts all 2 ranks on one node" bench pingpong "${quick[@]}" --mapping '--map-by slot' --size 1
refuses 3 "none-such: No such file" bench pingpong "${quick[@]}" --mpirun none-such --size 1
refuses 1 "but its results are not complete" bench pingpong "${quick[@]}" --mpirun "$launcher" --size 1 --program /bin/true
refuses 3 "there is no program $CASE_DIR/none" bench pingpong "${quick[@]}" --program "$CASE_DIR/none"

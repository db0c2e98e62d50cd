# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt bench nas: what is time between nodes, in C and in Fortran; programs that
# are not there, fail, or say nothing.  No figure is judged.
set -eu
. "$SRC/tests/tool/common.sh"

npb=$CASE_DIR/npb
mkdir -p "$npb/bin"
must mpicc -Wall -O2 -o "$npb/bin/near.S.4" "$SRC/tests/tool/nas/kernel.c"
for name in far.S.x quiet.S.x bad.S.x silent.S.x; do cp "$npb/bin/near.S.4" "$npb/bin/$name"; done
kernels=near,far,quiet
if command -v mpif90 > "$CASE_DIR/null" && mpif90 -o "$npb/bin/fortran.S.4" "$SRC/tests/tool/nas/kernel.f90"; then
    kernels+=,fortran
fi
cluster_up 2
words=(nas --mpirun "$launcher" --npb "$npb" --class S --fast 2)
nas() { bench "${words[@]}" "$@"; }

must nas --kernels $kernels --csv "$CASE_DIR/n.csv"
cat "$CASE_DIR/out"
same "rows" "$(for p in ${kernels//,/ } sum; do for c in plain:0 naive:128 crypt:128; do
    echo "$p 4 ${c%:*} ${c#*:} 2"
done; done)" "$CASE_DIR/n.csv" program ranks column bits rounds
results "$CASE_DIR/n.csv" program inter_s comm_s run_s own_s | awk '
    $1 == "near" && $2 != 0    { print "messages within a node are counted"; bad = 1 }
    $1 == "near" && $3 <= 0    { print "no communication"; bad = 1 }
    $1 ~ /far|for/ && $2 <= 0  { print "nothing between nodes"; bad = 1 }
    $1 == "quiet" && $3 != 0   { print "communication of a quiet program"; bad = 1 }
    $2 > $3 || $3 > $4         { print "a part is more than the whole"; bad = 1 }
    $1 == "far" && $5 != 12.5  { print "not the program'"'"'s own time"; bad = 1 }
    END { exit bad }' || fail "times: $(cat "$CASE_DIR/n.csv")"
# The overhead is that of the sums.
results "$CASE_DIR/n.csv" program column run_s run_overhead_percent | awk '
    $2 == "plain" { plain = $3 }
    { d = 100 * ($3 / plain - 1) - $4; if (d > 0.05 || d < -0.05) bad = 1; if ($1 != "sum") run[$2] += $3; else sum[$2] = $3 }
    END { for (c in run) { d = run[c] - sum[c]; if (d > 0.001 || d < -0.001) bad = 1 } exit bad }' || fail "sums: $(cat "$CASE_DIR/n.csv")"
must nas --kernels far --schemes crypt --bits 128,256 --json 'mine pml=crypt pml_crypt_chunk_size=65536'
python3 -c '
import json, sys
data = json.load(open(sys.argv[1]))
assert [row["column"] for row in data["results"]] == ["plain", "crypt-128", "crypt-256", "mine-128"], data
assert "pml_crypt_chunk_size=65536" in data["columns"]["mine-128"], data' "$CASE_DIR/out"


for name in bad silent; do
    refuses 1 "did not say that its verification was successful" bench "${words[@]}" --kernels $name
done
refuses 3 "there is neither $npb/bin/none.S.4 nor $npb/bin/none.S.x" bench "${words[@]}" --kernels near,none
refuses 3 "puts all 4 ranks on one node" bench "${words[@]}" --mapping '--map-by slot' --kernels near --mpirun "$launcher --host node0:4"
refuses 2 "nas needs --npb" bench nas
refuses 2 "nas has no --html" bench nas --html "$CASE_DIR/x.html"

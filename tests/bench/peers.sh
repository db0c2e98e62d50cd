# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# peers.sh [ROUNDS [RANKS...]]: first contact of all pairs of 32, 64 and 128 ranks on two
# nodes: wall-clock time, processor time, and the memory that a process needs for each peer on
# the other node (the slope between the numbers of ranks).  plain (ob1), pml and btl in turn.
set -eu
. "$SRC/tests/lib.sh"

rounds=${1:-3}
[ $# -gt 1 ] && shift && ranks=("$@") || ranks=(32 64 128)
cluster_up 2 --slots 64
program=$CASE_DIR/contact
must in_variant mpicc -O2 -o "$program" "$SRC/tests/bench/peers/contact.c"

# one HOW RANKS
one() {
    local how=(--mca pml crypt --mca crypt_transport "$1")
    [ "$1" != plain ] || how=(--mca pml ob1)
    vcluster mpirun -n "$2" --map-by node "${how[@]}" "$program" 2> "$CASE_DIR/error" < /dev/null | tail -n 1
}

unset OMPI_MCA_pml
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg); $(nproc) processors, two nodes, $rounds rounds"
for ((i = 0; i < rounds; i++)); do
    for n in "${ranks[@]}"; do
        for how in plain pml btl; do
            figures=$(one $how "$n")
            [[ "$figures" =~ ^[0-9]+( [0-9]+){3}$ ]] || fail "$how, $n ranks: $figures $(cat "$CASE_DIR/error")"
            echo "$how $n $figures"
        done
    done
done > "$CASE_DIR/figures"

python3 - "$CASE_DIR/figures" <<'END'
import collections, statistics, sys

rows = collections.OrderedDict()
for line in open(sys.argv[1]):
    how, ranks, *figures = line.split()
    rows.setdefault((how, int(ranks)), []).append([float(figure) for figure in figures])
grown = {}
for (how, ranks), found in rows.items():
    wall, used, before, after = (statistics.median(column) for column in zip(*found))
    grown.setdefault(how, []).append((ranks // 2, (after - before) / 1024))
    print(f"{how:5} {ranks:4} ranks: {wall / 1e3:6.2f} s, processors {used / 1e3:6.2f} s, memory of a rank "
          f"{before / 1024:6.0f} KiB before, {(after - before) / 1024:+6.0f}")
for how, points in grown.items():
    if len(points) > 1:
        (few, least), (many, most) = points[0], points[-1]
        print(f"{how:5} {(most - least) / (many - few):5.1f} KiB for each peer on the other node, from {few} to {many} of them")
END

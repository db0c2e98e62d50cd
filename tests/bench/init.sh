# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# init.sh [PAIRS [RANKS]]: what MPI_Init takes with pml/crypt and without, 16
# ranks on two nodes, 15 pairs of jobs in turn.  It measures and judges nothing:
# say how busy the machine was, beside its figures.  The target is a median of
# the differences of at most 3% or 20 ms.
set -eu
. "$SRC/tests/lib.sh"

pairs=${1:-15} ranks=${2:-16}
cluster_up 2 --slots $((ranks / 2))
program=$CASE_DIR/init
must in_variant mpicc -O2 -o "$program" "$SRC/tests/bench/init/measure.c"

init() { OMPI_MCA_pml=$1 vcluster mpirun -n "$ranks" "$program" 2>/dev/null < /dev/null | tail -n 1; }

init ob1 >/dev/null                     # from now on everything is in the page cache
init crypt >/dev/null
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg); $(nproc) processors, $ranks ranks on two nodes, $pairs pairs"
for ((i = 0; i < pairs; i++)); do
    # Each goes first in half of the pairs.
    if ((i % 2)); then plain=$(init ob1) crypt=$(init crypt); else crypt=$(init crypt) plain=$(init ob1); fi
    echo "$plain $crypt"
done > "$CASE_DIR/figures"

python3 - "$CASE_DIR/figures" <<'END'
import statistics
import sys

rows = [[float(word) for word in line.split()] for line in open(sys.argv[1])]
for name, plain, crypt in ("longest rank, wall clock", 0, 2), ("all ranks, processor time", 1, 3):
    of = lambda column: statistics.median(row[column] for row in rows)
    more = statistics.median(row[crypt] - row[plain] for row in rows)
    print(f"{name:26} plain {of(plain):8.1f} ms   crypt {of(crypt):8.1f} ms   "
          f"median of the differences {more:+7.1f} ms ({100 * more / of(plain):+.1f}%)")
END

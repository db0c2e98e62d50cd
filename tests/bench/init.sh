# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# init.sh [ROUNDS [RANKS]]: how long MPI_Init takes with pml/crypt, with pml/ob1, and
# without ompi-crypt installed: 16 ranks on two nodes, 15 rounds of four jobs in turn.
# The fourth job is pml/ob1 with a program that initializes OpenSSL, which anything that
# makes keys with it must do.  Nothing is judged: report how busy the machine was with
# the figures.  The target is a median difference of at most 3% or 20 ms.
set -eu
. "$SRC/tests/lib.sh"

rounds=${1:-15} ranks=${2:-16}
cluster_up 2 --slots $((ranks / 2))
program=$CASE_DIR/init
must in_variant mpicc -O2 -o "$program" "$SRC/tests/bench/init/measure.c" -lcrypto

# one WHAT: without ompi-crypt, with it installed but pml/ob1, ob1 and OpenSSL, with
# pml/crypt.
one() {
    local path=$OMPI_MCA_mca_base_component_path pml=$1
    [ "$1" != without ] || { path=SYS_DEFAULT:USER_DEFAULT pml=ob1; }
    [ "$1" != openssl ] || pml=ob1
    OMPI_MCA_mca_base_component_path=$path OMPI_MCA_pml=$pml vcluster mpirun -n "$ranks" "$program" "$1" 2>/dev/null \
        < /dev/null | tail -n 1
}

kinds=(without ob1 openssl crypt)
for kind in "${kinds[@]}"; do one "$kind" >/dev/null; done      # from now on everything is in the page cache
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg); $(nproc) processors, $ranks ranks on two nodes, $rounds rounds"
for ((i = 0; i < rounds; i++)); do
    for ((j = 0; j < 4; j++)); do       # each goes first in a quarter of the rounds
        kind=${kinds[(i + j) % 4]}
        echo "$kind $(one "$kind")"
    done
done > "$CASE_DIR/figures"

python3 - "$CASE_DIR/figures" <<'END'
import statistics
import sys

rows = {"without": [], "ob1": [], "openssl": [], "crypt": []}
for line in open(sys.argv[1]):
    kind, *figures = line.split()
    rows[kind].append([float(figure) for figure in figures])
for column, name in enumerate(("longest rank, wall clock", "all ranks, processor time")):
    of = {kind: [row[column] for row in rows[kind]] for kind in rows}
    print(name + ": " + "   ".join("%s %.1f ms" % (kind, statistics.median(of[kind])) for kind in of))
    for less, more in ("ob1", "crypt"), ("ob1", "openssl"), ("openssl", "crypt"), ("without", "ob1"), ("without", "crypt"):
        median = statistics.median(b - a for a, b in zip(of[less], of[more]))
        print(f"    {more:7} - {less:7}: median of the differences {median:+7.1f} ms "
              f"({100 * median / statistics.median(of[less]):+.1f}%)")
END

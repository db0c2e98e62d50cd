# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Keys are agreed on with those that are spoken to, and with nobody else: what
# the report of a job says of its sessions, of four ranks on two nodes.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
cat > "$CASE_DIR/pair.c" <<'END_OF_C'
#include <mpi.h>
#include <stdlib.h>

/* pair [A B]: ranks A and B send one another a number; nobody else does anything.
 * pair bcast: a broadcast to all. */
int main(int argc, char **argv)
{
    int rank, other = -1, got = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 2) {
        other = atoi(argv[1]) == rank ? atoi(argv[2]) : atoi(argv[2]) == rank ? atoi(argv[1]) : -1;
    }
    if (2 == argc) {
        MPI_Bcast(&got, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } else if (other >= 0) {
        MPI_Sendrecv(&rank, 1, MPI_INT, other, 3, &got, 1, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return other >= 0 && got != other;
}
END_OF_C
must in_variant mpicc -o "$CASE_DIR/pair" "$CASE_DIR/pair.c"

# sessions SEALED LOCAL PROVIDERS ARGUMENT...: so many in all four processes, and
# the providers that they had are described so.
sessions() {
    local sealed=$1 local=$2 providers=$3; shift 3
    rm -f "$CASE_DIR/report.json"
    must vcluster mpirun -n 4 --map-by node --mca crypt_report "json:$CASE_DIR/report.json" "$CASE_DIR/pair" "$@" < /dev/null
    must python3 - "$CASE_DIR/report.json" "$sealed" "$local" "$providers" <<'END_OF_PYTHON'
import json, re, sys

r = json.load(open(sys.argv[1]))
print(r)
assert r["processes"] == r["reporting"] == 4, "not all report"
assert (r["sealed_peers"], r["local_peers"]) == (int(sys.argv[2]), int(sys.argv[3])), "other sessions"
assert re.fullmatch(sys.argv[4], r["providers"]), "other providers"
assert (0 < r["sealed_messages"]) == (0 < r["sealed_peers"]), "other messages"
assert r.get("remark") == (None if r["sealed_messages"] else "no message was sent to another node"), "another remark"
END_OF_PYTHON
}

# Ranks 0 and 2 are on node0, 1 and 3 on node1.
sessions 0 0 'none needed \(4\)'
sessions 2 0 '([^(]+ \(2\), )?none needed \(2\)(, [^(]+ \(2\))?' 1 2
sessions 0 2 '([^(]+ \(2\), )?none needed \(2\)(, [^(]+ \(2\))?' 0 2
# The ranks are told where all of them live in two steps, and ask nobody else: each
# meets one of the other node, and the other one of its own.
sessions 4 4 '[^(]+ \(4\)' bcast
# Who sees no message sealed is told why.
says "the job is on one node" vcluster mpirun -n 2 --host node0:2 --mca crypt_report 1 "$CASE_DIR/pair" 0 1

# Secrets that cannot be locked are said once on each node.  (CAP_IPC_LOCK would be above the limit.)
for transport in pml btl; do
    OMPI_MCA_crypt_transport=$transport vcluster mpirun -n 4 --map-by node \
        sh -c 'ulimit -l 0; exec setpriv --bounding-set=-ipc_lock "$@"' sh "$CASE_DIR/pair" bcast > "$CASE_DIR/out" 2>&1 < /dev/null ||
        fail "$(cat "$CASE_DIR/out")"
    cat "$CASE_DIR/out"
    for node in node0 node1; do
        must test "$(grep -cE "WARNING: on node $node, rank [0-3] could not lock all of its secrets" "$CASE_DIR/out")" = 1
    done
    must grep -qF "limit is 0 KiB (ulimit -l)" "$CASE_DIR/out"
done

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# btl_crypt_pq: two processes agree on keys by X25519MLKEM768 where both can and may, which the wire shows; where one
# requires it and the other cannot, the job ends and says so.  Without OpenSSL 3.5 nobody can.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
# All meet all: coll/cryptag would have one process of a node speak for the others.
export OMPI_MCA_coll=^cryptag OMPI_MCA_crypt_transport=btl OMPI_MCA_btl_crypt_port_min=21000 OMPI_MCA_crypt_report="json:$CASE_DIR/report"
can=$(in_variant openssl list -kem-algorithms | grep -c X25519MLKEM768 || true)
echo "OpenSSL has X25519MLKEM768: $can"

cat > "$CASE_DIR/all.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    int rank, all[4];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Alltoall((int[4]) {rank, rank, rank, rank}, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0 != all[0] || 1 != all[1] || 2 != all[2] || 3 != all[3];
}
END
must in_variant mpicc -O2 -o "$CASE_DIR/all" "$CASE_DIR/all.c"

# Each rank its own word of $PQ.  Ranks 0 and 2 are on one node, 1 and 3 on the other.
cat > "$CASE_DIR/by_rank" <<'END'
#!/bin/bash
words=($PQ)
export OMPI_MCA_btl_crypt_pq=${words[${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}]}
exec "$@"
END
chmod +x "$CASE_DIR/by_rank"
job() { PQ=$1 mpirun_aside -n 4 --map-by node -x PQ -- "$CASE_DIR/by_rank" "$CASE_DIR/all" > "$CASE_DIR/out" 2>&1; }

# agrees WORDS TEXT: TEXT is in the report, and the wire has the key shares of its groups.
agrees() {
    local words=$1 text=$2
    capture_start node1 "$CASE_DIR/wire" -B 262144 'tcp portrange 21000-21099 or udp port 9'
    job "$words" || fail "$words: $(cat "$CASE_DIR/out")"
    capture_stop node1
    echo "$words: $text"
    python3 - "$CASE_DIR/report" "$CASE_DIR/wire" "$text" <<'END' || fail "$words: $(cat "$CASE_DIR/report")"
import json, sys

report, text = json.load(open(sys.argv[1])), sys.argv[3]
assert report["key_agreement"] == text and report["transport"] == "btl, TLS 1.3" and report["sealed_peers"] == 8, report
wire = open(sys.argv[2], "rb").read()
# A client's share: group, length.
hybrid, usual = (head in wire for head in (b"\x11\xec\x04\xc0", b"\x00\x1d\x00\x20"))
assert hybrid == ("MLKEM" in text) and usual == (text != "X25519MLKEM768"), (hybrid, usual)
END
}

# refused WORDS TEXT...: the job ends and says each TEXT.
refused() {
    local words=$1 text; shift
    if job "$words"; then fail "$words: the job ran"; fi
    for text in "$@"; do
        tr -s ' \n' ' ' < "$CASE_DIR/out" | grep -qF -- "$text" || fail "$words: not \"$text\": $(cat "$CASE_DIR/out")"
    done
    echo "$words: refused"
}

agrees 'off off off off' X25519
if [ "$can" -gt 0 ]; then
    agrees 'auto auto auto auto' X25519MLKEM768
    agrees 'require auto auto require' X25519MLKEM768
    agrees 'auto auto auto off' 'X25519MLKEM768 (4), X25519 (4)'
    # Either of the two may be the one that says so.
    refused 'require off auto auto' 'no key agreement in common' ': X25519MLKEM768 ' ': X25519 ' 'btl_crypt_pq=require'
else
    agrees 'auto auto auto auto' X25519
    refused 'auto auto auto require' 'X25519MLKEM768 (btl_crypt_pq=require)' 'needs OpenSSL 3.5'
fi
# By all: prterun 5.0.7 may not end when a process ends before it has met the others.
refused 'maybe maybe maybe maybe' 'btl_crypt_pq = maybe is none of: auto off require'

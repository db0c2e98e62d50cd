# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# crypt_verbose prints what it promises, by level, and
# nothing by default; pml_dump shows queue, held messages, replay window and serials.  No key and no
# payload is in any of it, in whatever form.  Over btl/crypt: who met whom, where, and by which keys.
set -eu
. "$SRC/tests/lib.sh"
python3 -c pass || skip "python3 is missing"

# Over btl/crypt messages are ob1's: who met whom.
if [ "${OMPI_MCA_crypt_transport:-}" != pml ]; then
    cluster_up 2
    program=$(mpi_program mpi p2p_sendrecv)
    for level in 0 10; do
        vcluster mpirun -n 2 --map-by node --mca crypt_verbose $level "$program" > "$CASE_DIR/out" 2>&1 < /dev/null ||
            fail "$(cat "$CASE_DIR/out")"
        [ $level = 0 ] || break
        ! grep -E '(pml|btl):crypt' "$CASE_DIR/out" || fail "by default"
    done
    cat "$CASE_DIR/out"
    for what in 'pml:crypt: on node1: ob1 over btl/crypt \(TCP is the network\)' \
            'btl:crypt: rank 0 met rank 1 by psk: (at|from) [0-9a-f.:]+, port [0-9]+, (X25519|X25519MLKEM768), TLS_AES_128_GCM_SHA256$' \
            'btl:crypt: rank 1 met rank 0 by psk: (at|from) [0-9a-f.:]+, port [0-9]+, (X25519|X25519MLKEM768), TLS_AES_128_GCM_SHA256$'; do
        grep -qE -- "$what" "$CASE_DIR/out" || fail "no line: $what"
    done
    exit 0
fi

cluster_up 2
program=$(mpi_program shell verbose_job)
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keystore
must in_variant "$PREFIX/bin/mpicrypt" key new label --keystore-dir "$CASE_DIR/keystore" > "$CASE_DIR/key"

# run PARAMETER...: into $CASE_DIR/out
run() {
    rm -f "$CASE_DIR"/file*
    vcluster mpirun -n 2 --map-by node --mca io ompio --mca fs_crypt_key_label label "$@" "$program" "$CASE_DIR/file" \
        > "$CASE_DIR/out" 2>&1 < /dev/null || fail "$(cat "$CASE_DIR/out")"
}
has() { grep -qE -- "$1" "$CASE_DIR/out" || fail "\"$1\" is not in: $(cat "$CASE_DIR/out")"; }
has_not() { ! grep -qE -- "$1" "$CASE_DIR/out" || fail "\"$1\" is in: $(cat "$CASE_DIR/out")"; }

echo "+ by default, and pml_dump"
run
has_not '(pml|coll|fs):crypt'
has 'pml/crypt: rank 1 of MPI_COMM_WORLD: pending: 0 receives'
has 'rank 0 \(process 0\): sealed; queue: 0 sends, 0 of them with segments left, 0 bytes ahead; 0 receives; 2 held messages'
has 'serials: 0 sent, 1 received of 2; epochs 0 and 0; replay window from 0 to 2, [0-9]+ bytes'

echo "+ peers"
run --mca crypt_verbose 10
has 'pml:crypt: on node0: over ob1, messages of more than 65536 bytes in segments'
has 'pml:crypt: provider [a-z]+ \('
has 'pml:crypt: rank 1 met rank 0 by psk: sealed, over .*tcp'
has_not 'pml:crypt: to rank'

echo "+ everything"
run --mca crypt_verbose 100
cat "$CASE_DIR/out"
has 'pml:crypt: to rank 1 of MPI_COMM_WORLD, tag 1: 100 bytes, sealed, one frame'
has 'pml:crypt: to rank 1 of MPI_COMM_WORLD, tag 2: 300000 bytes, sealed, in segments'
has 'coll:cryptag: MPI_COMM_WORLD, rank 0 of 2, call 0: allgather by '
has 'fs:crypt: .*/file: encrypted, asked for with label label'
python3 - "$CASE_DIR/out" "$OMPI_MCA_crypt_psk_file" "$CASE_DIR/keystore" <<'END' || fail "a secret is in the output"
import os, re, sys
out = open(sys.argv[1], "rb").read()
texts = re.findall(rb"[0-9a-f]{64}", open(sys.argv[2], "rb").read())
for directory, _, names in os.walk(sys.argv[3]):
    for name in names:
        texts += re.findall(rb"[0-9a-f]{32,}", open(os.path.join(directory, name), "rb").read())
assert len(texts) > 1, texts
wanted = [b"payload-of-the-test", b"payload-of-the-test".hex().encode()]
for text in texts:
    for i in range(0, len(text) - 15, 16):
        wanted += [text[i:i + 16], bytes.fromhex(text[i:i + 16].decode())]
found = [w for w in wanted if w in out or w.upper() in out]
assert not found, found
END

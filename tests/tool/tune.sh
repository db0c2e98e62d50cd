# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt tune on two nodes, where pml/crypt seals: every step runs, the file it writes is one that jobs
# and mpicrypt model read.  No figure is judged.
set -eu
. "$SRC/tests/lib.sh"
PATH=$PREFIX/bin:$PATH
launcher="$SRC/tests/vcluster mpirun"
cd "$CASE_DIR"

cluster_up 2
must mpicrypt tune --mpirun "$launcher" --cpus-per-rank 1 --rounds 1 --out tuned.conf --csv t.csv --plot t.svg > out
grep -q '^communication from .* alpha ' out || fail "no model of communication: $(cat out)"
grep -q '^encryption    from .* A ' out || fail "no model of encryption"
grep -q '^Error of the prediction: median .*, largest .*, of 36 measurements' out || fail "no error of the prediction"
grep -q '^Encrypted over plain time, geometric mean' out || fail "no search"

# Six sizes, six k, one thread: a rank has one processor.
[ "$(cut -d, -f1-3 t.csv | tail -n +2 | sort -u | wc -l)" = 36 ] || fail "cells: $(cat t.csv)"
awk -F, 'NR > 1 && !($4 > 0 && $5 > 0) { bad = 1 } END { exit bad }' t.csv || fail "a time is not positive"
[ "$(grep -c '>k = 32, predicted</text>' t.svg)" = 1 ] || fail "the plot"

# The file.
must mpicrypt model --profile ./tuned.conf --size 1M > predicted
grep -q "$(sed -n 's/^mpicrypt_model_enc = //p' tuned.conf | cut -c 1-20)" predicted || fail "another model"
program=$(mpi_program mpi p2p_sendrecv)
must vcluster mpirun -n 2 --map-by node --mca mca_base_param_files "$CASE_DIR/tuned.conf" --mca pml crypt \
    -x OMPI_MCA_crypt_psk_file "$program"

echo "without the search, other keys"
must mpicrypt tune --mpirun "$launcher" --rounds 1 --no-search --bits 256 --laps 65 --lap-ms 0.1 --out plain.conf > out
grep -q '^256-bit keys' out || fail "keys"
! grep -qE '^(pml_crypt_chunk_size|btl_)' plain.conf || fail "searched all the same"

echo "what it refuses"
says "there is no '100'; there are: 128, 192, 256" mpicrypt tune --bits 100
says "there is no 'yalla'; there are: ob1, ucx, cm" mpicrypt tune --host yalla
must_fail mpicrypt tune --out "$CASE_DIR/none/there.conf"
must_fail mpicrypt tune --mpirun "$launcher" --mapping '--map-by slot' --out no.conf

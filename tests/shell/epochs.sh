# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Jobs of a build that makes epochs short and ends a process that uses a pair of
# key and nonce twice: thousands of epochs, a thousand meetings of two halves of a
# job, eight threads that speak to their peers for the first time, further lives
# of a process (MPI sessions).
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
prefix=$CASE_DIR/prefix
mkdir "$CASE_DIR/build"
cd "$CASE_DIR/build"
must in_variant "$SRC/configure" --prefix="$prefix" --enable-record > "$CASE_DIR/configure.out"
grep -q 'switches.*record' "$CASE_DIR/configure.out" || fail "it is not a build that records"
must in_variant make -s -j"$(nproc)" install > "$CASE_DIR/make.out" 2>&1
. "$prefix/share/ompi-crypt/env.sh"

# job MESSAGES EPOCHS ARGUMENT...: it seals at least so many messages, in so many epochs.
job() {
    local messages=$1 epochs=$2; shift 2
    rm -f "$CASE_DIR/report.json"
    must vcluster mpirun -n 4 --map-by node --mca crypt_report "json:$CASE_DIR/report.json" "$@" < /dev/null
    must python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
print(r)
assert r["reporting"] == 4 and r["authentication_failures"] == 0
assert r["sealed_messages"] >= int(sys.argv[2]) and r["epochs"] >= int(sys.argv[3])' "$CASE_DIR/report.json" "$messages" "$epochs"
}
short=(--mca crypt_epoch_shift)

match=$(mpi_program mpi p2p_match) threads=$(mpi_program mpi threads) ports=$(mpi_program mpi ports)
job 5000 5000 "${short[@]}" 0 "$match"                 # a message an epoch
job 5000 2000 "${short[@]}" 2 "$match"
job 5000 0 "$match"
job 1000 100 "${short[@]}" 4 "$threads" threads=8
if [ "$SERIES" = 4.1 ]; then                            # 5.0.7 ends a second meeting with an error
    job 100000 30000 "${short[@]}" 2 "$ports" connect meetings=1000
else
    sessions=$(mpi_program mpi sessions)
    must vcluster mpirun -n 4 --host node0:4 --mca crypt_scope all "${short[@]}" 2 "$sessions" 4 < /dev/null
fi

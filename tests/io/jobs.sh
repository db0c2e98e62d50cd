# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# One file, several jobs: made by one, written by two applications at the same
# time, whose pieces lie in the same blocks, read by 1, 3 and 7 processes of later
# jobs in other views.
. "$SRC/tests/io/common.sh"

cluster_up 2 --slots 4
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io shared)
file=$CASE_DIR/file
must run_io 4 "$program" "$file" make

job() { run_io 4 "$program" "$file" write "$1" 2 > "$CASE_DIR/job.$1" 2>&1; }
job 0 & first=$!
job 1 & second=$!
wait $first || { cat "$CASE_DIR/job.0"; fail "the first application"; }
wait $second || { cat "$CASE_DIR/job.1"; fail "the second application"; }

must run_io 1 "$program" "$file" read 1000000
must run_io 3 "$program" "$file" read 5000
must run_io 7 "$program" "$file" read 333
must in_variant mpicrypt file verify "$file" --keystore-dir "$CASE_DIR/keys"

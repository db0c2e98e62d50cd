# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# One file, several jobs: made by two at the same time, written by two applications
# at the same time, whose pieces are in the same blocks, read by 1, 3 and 7 processes of later
# jobs in other views.
. "$SRC/tests/io/common.sh"

cluster_up 2 --slots 4
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io shared)
file=$CASE_DIR/file

# two WHAT: both applications at the same time.
job() { run_io 4 "$program" "$file" "$1" "$2" 2 > "$CASE_DIR/job.$2" 2>&1; }
two() {
    local first second
    job "$1" 0 & first=$!
    job "$1" 1 & second=$!
    wait $first || { cat "$CASE_DIR/job.0"; fail "the first application: $1"; }
    wait $second || { cat "$CASE_DIR/job.1"; fail "the second application: $1"; }
}
two make
is_encrypted "$file" || fail "not the kind of file that is meant"
two write

must run_io 1 "$program" "$file" read 1000000
must run_io 3 "$program" "$file" read 5000
must run_io 7 "$program" "$file" read 333
must in_variant mpicrypt file verify "$file" --keystore-dir "$CASE_DIR/keys"

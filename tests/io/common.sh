# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What the scripts here share.
set -eu
. "$SRC/tests/lib.sh"

export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys

# keys_in DIR LABEL...: a keystore with these labels, after cluster_up.
keys_in() {
    local directory=$1 label; shift
    for label in "$@"; do
        must in_variant mpicrypt key new "$label" --keystore-dir "$directory"
    done
}

# run_io N PROGRAM [ARGUMENT...]: on N processes.
run_io() {
    local n=$1; shift
    vcluster mpirun -n "$n" -x MT_WATCHDOG=$((LIMIT - 10)) "$@"
}

# is_encrypted FILE: by how it begins.
is_encrypted() { cmp -s -n 9 "$1" <(printf '\211MPICRYPT'); }

# poke FILE OFFSET: another byte there.
poke() {
    local byte
    byte=$(od -An -tu1 -j"$2" -N1 "$1")
    printf "\\$(printf %03o $((byte ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# must_refuse TEXT COMMAND...: it must fail and print TEXT, and none of its processes may wait for another.
must_refuse() {
    local text=$1 output rc=0; shift
    echo "+ ! $*"
    output=$("$@" 2>&1) || rc=$?
    printf '%s\n' "$output"
    [ $rc != 0 ] || fail "succeeded: $*"
    grep -qF -- "$text" <<<"$output" || fail "\"$text\" is not in the output of: $*"
    ! grep -qF "watchdog: " <<<"$output" || fail "a process waited for the others: $*"
}

# romio: the name of the other component of MPI-IO; 6.0 has none.
find_romio() {
    romio=$(in_variant ompi_info --parsable | sed -n 's/^mca:io:\(romio[0-9]*\):version:.*/\1/p' | head -n 1)
    [ -z "$romio" ] || return 0
    [ "$SERIES" = 6.0 ] || fail "this Open MPI has no io/romio to try"
    echo "not tried: Open MPI 6.0 has no io/romio"
}

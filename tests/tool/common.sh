# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What the cases of `mpicrypt bench` and `mpicrypt tune` have in common.
. "$SRC/tests/lib.sh"
PATH=$PREFIX/bin:$PATH
launcher="$SRC/tests/vcluster mpirun"
quick=(--mpirun "$launcher" --fast 1 --rounds 1 --laps 1 --lap-ms 1)

# The roots of 5.0 and 6.0 have no Python.  What is in Python runs outside, and its jobs inside.
tool() {
    local command=(mpicrypt "$@")
    ! in_other_root || command=(/usr/bin/python3 -I -B "$PREFIX/libexec/ompi-crypt/mpicrypt-$1" "$PREFIX/bin/mpicrypt"
        "$PREFIX/share/ompi-crypt/profiles" "${@:2}")
    "${command[@]}" > "$CASE_DIR/out" 2> "$CASE_DIR/err"
}
bench() { tool bench "$@"; }

# results FILE COLUMN...: those columns of a CSV, a line each
results() {
    awk -F, -v wanted="${*:2}" '
        NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; n = split(wanted, name, " "); next }
        { for (i = 1; i <= n; ++i) printf "%s%s", (i > 1 ? " " : ""), $at[name[i]]; print "" }' "$1"
}

# same WHAT EXPECTED-LINES FILE COLUMN...
same() {
    local got; got=$(results "${@:3}")
    [ "$got" = "$2" ] || fail "$1: $got"
}

# refuses STATUS TEXT VERB ARGS...
refuses() {
    local status=0; tool "${@:3}" || status=$?
    grep -qF -- "$2" "$CASE_DIR/err" && [ $status = "$1" ] || fail "status $status from ${*:3}: $(cat "$CASE_DIR/err")"
}

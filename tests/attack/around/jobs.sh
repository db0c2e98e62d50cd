# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# For around.sh and windows.sh: jobs of a program whose payload is looked for in captures.
canary=$(od -An -v -tx1 -N16 /dev/urandom | tr -d ' \n')
nodes='node0 node1'

# job ARGUMENT... -- WAY: the program (around/canary.c) on two nodes, with captures.
# Its output is in $CASE_DIR/out; the status is the job's, 124 if it hangs.
job() {
    local before=() node rc=0
    while [ "$1" != -- ]; do before+=("$1"); shift; done
    echo "+ ${before[*]} -- $2"
    for node in $nodes; do capture_start $node "$CASE_DIR/$node" -Q out -B 262144; done
    timeout -k 5 "$LIMIT" "$SRC/tests/vcluster" mpirun -n 4 -x MT_WATCHDOG=90 ${before[@]+"${before[@]}"} \
        "$program" "$canary" "$2" >"$CASE_DIR/out" 2>&1 || rc=$?
    for node in $nodes; do capture_stop $node; done
    cat "$CASE_DIR/out"
    [ $rc != 124 ] && ! grep -qi 'watchdog' "$CASE_DIR/out" || fail "the job hangs"
    return $rc
}

shown() {
    python3 -c 'import sys; c = bytes.fromhex(sys.argv[1]); print(sum(open(f, "rb").read().count(c) for f in sys.argv[2:]))' \
        "$canary" $(printf "$CASE_DIR/%s " $nodes)
}

# in_plaintext | sealed | refused TEXT: what became of the last job, whose status is $rc.
in_plaintext() { [ $rc = 0 ] && [ "$(shown)" -gt 0 ] || fail "status $rc, $(shown) canaries: plaintext was expected"; }
sealed()       { [ $rc = 0 ] && [ "$(shown)" = 0 ] || fail "status $rc, $(shown) canaries"; }
# One of the texts is what the user sees.
refused() {
    local said text
    [ $rc != 0 ] && [ "$(shown)" = 0 ] || fail "status $rc, $(shown) canaries: it should have been refused"
    # The launcher breaks lines.
    said=$(tr -s ' \n' ' ' < "$CASE_DIR/out")
    for text; do
        [[ "$said" != *"$text"* ]] || return 0
    done
    fail "not in the output: $*"
}
says_not() { ! grep -qF -- "$1" "$CASE_DIR/out" || fail "\"$1\" is in the output"; }
says_now() { grep -qF -- "$1" "$CASE_DIR/out" || fail "\"$1\" is not in the output"; }

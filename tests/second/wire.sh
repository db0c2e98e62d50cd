# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# wire.sh pml|btl PROGRAM...|suite: programs of tests/mpi run on two nodes, a capture takes down what passes between them,
# and a preload the keys; second.py, which shares nothing with our code, opens all of it.  "suite": every line of mpi/tests.list
# of the tiers default and ci that runs as 2x2 without arguments for mpirun.  Collectives take no part of coll/cryptag over pml:
# its pieces travel inside of messages of their own, and are in tests/vectors.
set -eu
. "$SRC/tests/lib.sh"
way=$1; shift
python3 -c 'import cryptography' || skip "Python has no cryptography (Debian: python3-cryptography)"

export OMPI_MCA_crypt_transport=$way
[ $way = btl ] || export OMPI_MCA_btl_tcp_flags=1 OMPI_MCA_coll=^cryptag
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/keys.so" "$SRC/tests/second/keys.c" -ldl -lcrypto
cluster_up 2 --slots 2
export LD_PRELOAD_OF_JOB="${LD_PRELOAD-}${LD_PRELOAD:+:}$CASE_DIR/keys.so"

# read_wire: what the second reader says of the last capture
read_wire() { python3 -B "$SRC/tests/second/second.py" $way "$CASE_DIR/wire" "$CASE_DIR/keys"; }

# job NAME [ARGUMENT...]
job() {
    local name=$1 program; shift
    program=$(mpi_program mpi "$name")
    rm -rf "$CASE_DIR/keys"
    mkdir -m 700 "$CASE_DIR/keys"
    capture_start node1 "$CASE_DIR/wire"
    vcluster mpirun -n 4 -x MT_WATCHDOG=280 -x SECOND_KEYS="$CASE_DIR/keys" -x LD_PRELOAD="$LD_PRELOAD_OF_JOB" "$program" "$@" \
        > "$CASE_DIR/job" 2>&1 || fail "$name $*: $(tail -n 20 "$CASE_DIR/job")"
    capture_stop node1
    read_wire > "$CASE_DIR/counts" || fail "$name $*: the second reader refused what was sent"
    echo "$name $*: $(cat "$CASE_DIR/counts")"
    # It was a job that sent something, over connections that the reader knows.
    must grep -qE '"(connections|directions)": [1-9]' "$CASE_DIR/counts"
    must grep -qE '"bytes": [1-9]' "$CASE_DIR/counts"
}

if [ "$1" = suite ]; then
    while read -r name tags shape rest; do
        [[ ",$tags," =~ ,(default|ci), && $shape = 2x2 && "$rest" != *[@:]* && ! ",$tags," =~ ,ob1, ]] || continue
        # shellcheck disable=SC2086
        job "$name" $rest 7< /dev/null
    done 7< <(grep -v '^ *#' "$SRC/tests/mpi/tests.list") <&7
else
    for name; do job "$name"; done
fi

# What the reader must not open: one bit of the capture is another, and a key is another.
refuses() {
    if read_wire > "$CASE_DIR/refused" 2>&1; then fail "the second reader opened $1"; fi
    echo "$1: $(cat "$CASE_DIR/refused")"
    must grep -q '^second: ' "$CASE_DIR/refused"
}
cp "$CASE_DIR/wire" "$CASE_DIR/whole"
must python3 -B "$SRC/tests/second/flip.py" $way "$CASE_DIR/whole" "$CASE_DIR/wire"
refuses "a changed bit"
cp "$CASE_DIR/whole" "$CASE_DIR/wire"
sed -i -E "/$([ $way = pml ] && echo expand || echo 746c733133)/{s/^expand 0/expand 1/; t; s/^expand ./expand 0/}" "$CASE_DIR"/keys/*     # 746c...: "tls13"
refuses "another key"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# outstanding.sh COUNT WAY[:BYTES[:OPTION]]...: COUNT messages outstanding at once
# (mpi/outstanding.c), over plain ob1 and encrypted, one rank on each of two nodes.  On
# either side the encrypted run holds at most 64 MiB more than the plain one.  Times are
# printed, and nothing depends on them.
#
#   OPTION   threads: MPI_THREAD_MULTIPLE;   ucx: plain ucx, and pml/crypt over it
set -eu
. "$SRC/tests/lib.sh"

MORE_KIB=65536
count=$1; shift
cluster_up 2
program=$(mpi_program mpi outstanding)

# job PML WAY BYTES OPTION: what it printed is in $CASE_DIR/PML.
job() {
    local pml=$1 arguments=(--mca osc pt2pt,sm) word=
    [ "$SERIES" = 4.1 ] || arguments=()
    if [ "$4" = ucx ]; then
        arguments+=(--mca pml_ucx_tls any --mca pml_ucx_devices any --mca pml_crypt_host ucx
                    -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)
        [ "$pml" = crypt ] || pml=ucx
    else
        word=$4
    fi
    vcluster mpirun -n 2 --map-by node --mca pml "$pml" "${arguments[@]}" -x MT_WATCHDOG=$((LIMIT - 10)) \
        "$program" "way=$2" "bytes=$3" "count=$count" $word > "$CASE_DIR/$1" 2>&1 ||
        fail "over $pml: $(cat "$CASE_DIR/$1")"
}

# of PML RANK WORD: the number before KIB or MS in its line.
of() { sed -n "s/^rank $2: \(-\{0,1\}[0-9]*\) KiB, \([0-9]*\) ms, on a processor \([0-9]*\) ms\$/$3/p" "$CASE_DIR/$1"; }

for what; do
    IFS=: read -r way bytes option <<< "$what:::"
    bytes=${bytes:-131072} option=${option%%:*}
    if [ "$way" = get ] && [ "$SERIES" != 4.1 ]; then
        echo "not run: get, as from Open MPI 5.0 on pml/crypt refuses windows over two nodes"
        continue
    fi
    job ob1 "$way" "$bytes" "$option"
    job crypt "$way" "$bytes" "$option"
    for rank in 0 1; do
        plain=$(of ob1 $rank '\1') held=$(of crypt $rank '\1')
        echo "$count x $bytes bytes, $way${option:+, $option}, rank $rank: plain holds $plain KiB, encrypted $held"
        [ -n "$plain" ] && [ -n "$held" ] || fail "no figures: $(cat "$CASE_DIR/ob1" "$CASE_DIR/crypt")"
        [ $((held - plain)) -le $MORE_KIB ] || fail "more than $MORE_KIB KiB more"
    done
    echo "    time $(of ob1 0 '\2') and $(of crypt 0 '\2') ms; of processors $(of ob1 0 '\3') + $(of ob1 1 '\3')" \
         "and $(of crypt 0 '\3') + $(of crypt 1 '\3') ms"
done

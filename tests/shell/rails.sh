# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# rails.sh PROGRAM...|suite: nodes with two networks, over btl/crypt.  A long message uses both; one that cannot be reached, or
# that only one node has, is left out.  Then programs of tests/mpi run over four connections of each pair, some of which are
# replaced all the time.  "suite": every line of mpi/tests.list of the tiers default and ci that runs as 2x2 without arguments
# for mpirun.
set -eu
. "$SRC/tests/lib.sh"

over_btl
cluster_up 2 --slots 2 --nets 2
large=("$(mpi_program attack/records target)" "$CASE_DIR")        # 30 MiB each way, in windows

# sent NODE: bytes so far over eth0, and over eth1.
sent() { vcluster stats | awk -v node="$1" '$1 == node && $2 ~ /^eth[01]$/ { print $9 }' | xargs; }
# job ARGUMENT... PROGRAM...: sets `share`, how many percent of what node0 sent went over eth1.
job() {
    local before after
    read -r -a before <<< "$(sent node0)"
    vcluster mpirun -n 2 --map-by node -x MT_WATCHDOG=120 --mca crypt_verbose 10 "$@" > "$CASE_DIR/out" 2>&1 ||
        fail "$*: $(tail -n 30 "$CASE_DIR/out")"
    read -r -a after <<< "$(sent node0)"
    share=$((100 * (after[1] - before[1]) / (after[0] + after[1] - before[0] - before[1])))
    echo "$share % over eth1, rails:" $(grep -o ', rail [0-9]*' "$CASE_DIR/out" | sort | uniq -c | tr -d ,)
}

echo "+ two networks"
job "${large[@]}"
[ $share -ge 40 ] && [ $share -le 60 ] || fail "a long message is not divided"
job --mca btl_crypt_links 4 "${large[@]}"
[ $share -ge 40 ] && [ $share -le 60 ] && grep -q 'rail 7' "$CASE_DIR/out" && ! grep -q 'rail 8' "$CASE_DIR/out" || fail "four links of two networks"
job "$(mpi_program mpi p2p_empty)"
! grep -q ', rail' "$CASE_DIR/out" || fail "a program without long messages has several connections"

echo "+ few descriptors"
job bash -c 'ulimit -n 140 && exec "$@"' bash "${large[@]}"
! grep -q ', rail' "$CASE_DIR/out" || fail "descriptors that first contacts may need are used up"

echo "+ one network"
VCLUSTER_IF=eth0 job "${large[@]}"
[ $share -le 1 ] && ! grep -q ', rail' "$CASE_DIR/out" || fail "there is one network"
VCLUSTER_IF=eth0 job --mca btl_crypt_links 2 "${large[@]}"
[ $share -le 1 ] && grep -q ', rail 1' "$CASE_DIR/out" || fail "two links of one network"

echo "+ the second one answers nothing"
must vcluster net node1 ip rule add from 10.99.1.0/24 blackhole
job "${large[@]}"
[ $share -le 1 ] && ! grep -q ', rail' "$CASE_DIR/out" || fail "there is one network"
must vcluster net node1 ip rule del from 10.99.1.0/24 blackhole

echo "+ only one node has it"
must vcluster net node1 ip link set eth1 down
job "${large[@]}"
[ $share -le 1 ] && ! grep -q ', rail' "$CASE_DIR/out" || fail "one node has one network"
must vcluster net node1 ip link set eth1 up

# all NAME [ARGUMENT...]
all() {
    local name=$1 program replace; shift
    program=$(mpi_program mpi "$name")
    for replace in 0 100; do
        vcluster mpirun -n 4 -x MT_WATCHDOG=280 --mca btl_crypt_links 2 --mca btl_crypt_replace_after $replace --mca crypt_verbose 10 \
            "$program" "$@" > "$CASE_DIR/out" 2>&1 || [ $? = 77 ] || fail "$name $* $replace: $(tail -n 40 "$CASE_DIR/out")"
        rails=$(grep -c ', rail' "$CASE_DIR/out" || true) most=$((rails > most ? rails : most))
        echo "$name $* (replaced after $replace): $rails further rails"
    done
}
most=0
if [ "$1" = suite ]; then
    while read -r name tags shape rest; do
        [[ ",$tags," =~ ,(default|ci), && $shape = 2x2 && "$rest" != *[@:]* && ! ",$tags," =~ ,ob1, ]] || continue
        # shellcheck disable=SC2086
        all "$name" $rest 7< /dev/null
    done 7< <(grep -v '^ *#' "$SRC/tests/mpi/tests.list") <&7
else
    for name; do all "$name"; done
fi
[ $most -gt 20 ] || fail "few rails were made, or none was replaced"

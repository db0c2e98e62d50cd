# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Two nodes have two networks, and a middle stands in the second one only.  Records that are changed, dropped, repeated or
# swapped there, or a cut, end the job; no byte is wrong, and nothing hangs.  A delay only delays.  A hello that is sent again,
# and what strangers say, has no answer, and the job goes on.
set -eu
. "$SRC/tests/lib.sh"

over_btl
cluster_up 2 --nets 2
program=$(mpi_program attack/records target)
middle=$SRC/tests/attack/records/middle.py
first=21000 said=0

# Each node has the other's address of the second network itself, where the middle listens; it reaches the other node by
# another address.
for node in 0 1; do
    must vcluster net node$node ip addr add 10.99.1.1$((node + 1))/24 dev eth1
    must vcluster net node$node ip addr add 10.99.1.$((2 - node))/32 dev lo
    must vcluster net node$node ip route replace 10.99.1.0/24 dev eth1 src 10.99.1.1$((node + 1))
done
stand() {                                       # stand NODE ADDRESS PORT THERE ACT AT
    vcluster net "$1" python3 "$middle" "$2" "$3" "$4" "$5" "$6" "$CASE_DIR/$1" &
    until [ -s "$CASE_DIR/$1" ]; do
        kill -0 $! || fail "no middle.py on $1"
        sleep 0.01
    done
}
stand_between() {                               # stand_between ACT AT
    first=$((first + 2))
    rm -f "$CASE_DIR"/node? "$CASE_DIR"/window.?
    stand node0 10.99.1.2 $((first + 1)) 10.99.1.12 "$1" "$2"
    stand node1 10.99.1.1 $first 10.99.1.11 "$1" "$2"
}
target() {                                      # target [OPTION...]
    vcluster mpirun -n 2 --map-by node -x MT_WATCHDOG=60 "$@" --mca btl_crypt_port_min $first --mca btl_crypt_port_range 2 \
        "$program" "$CASE_DIR" > "$CASE_DIR/out" 2>&1
}
windows() {                                     # windows ACT
    local window other
    for window in "$CASE_DIR"/window.[01]; do
        other=$(tr -d '\063\132\245' < "$window" | od -An -tx1 | head -n 1)
        [ -z "$other" ] || fail "$1: in ${window##*/} was what nobody has put: $other"
    done
}
did() { cat "$CASE_DIR"/node? | grep -q '^done'; }

unharmed() {                                    # unharmed ACT AT: the job ends as it should
    stand_between "$1" "$2"
    target || fail "$1 $2: $(cat "$CASE_DIR"/node? "$CASE_DIR/out")"
    windows "$1"
    echo "$1 $2: $(cat "$CASE_DIR"/node? | grep -v listening | sort | uniq -c | xargs)"
}
# On a busy machine a job may have ended before its second connection had so many records: that one says nothing.
until_done() {                                  # until_done ACT AT [OPTION...]: the job's status
    local act=$1 at=$2 try rc; shift 2
    for try in 1 2 3; do
        stand_between "$act" "$at"
        rc=0; target "$@" || rc=$?
        ! did || break
    done
    return $rc
}
ends() {                                        # ends ACT AT REASON
    ! until_done "$1" "$2" || fail "$1 $2 was not noticed: $(cat "$CASE_DIR"/node? "$CASE_DIR/out")"
    did || fail "$1: nothing was done: $(cat "$CASE_DIR/out")"
    ! grep -aqE 'wrong bytes|watchdog|Signal:' "$CASE_DIR/out" || fail "$1: $(cat "$CASE_DIR/out")"
    grep -aq 'reason:' "$CASE_DIR/out" || fail "$1, which should say \"$3\": $(cat "$CASE_DIR/out")"
    ! grep -a 'reason:' "$CASE_DIR/out" | grep -aqvE "$3|the connection was cut" || fail "$1: $(cat "$CASE_DIR/out")"
    ! grep -aqE "reason: +($3)" "$CASE_DIR/out" || said=$((said + 1))
    windows "$1"
    echo "$1 $2: $(grep -a 'reason:' "$CASE_DIR/out" | sort -u | tr -s ' \n' ' ')"
}

unharmed pass 40
did || fail "nothing passed over the second network"
unharmed late 40
unharmed late -40
did || fail "nothing came back over the second network"
unharmed again 40
did && ! grep -q answered "$CASE_DIR"/node? || fail "a hello was answered twice, or nobody asked"
changed='a record was changed, repeated, or left out|not a record|a frame that is shorter than its record'
for act in flip tag type length drop repeat swap old forge half; do
    ends $act 40 "$changed"
done
for act in flip drop; do
    ends $act -41 "$changed"
    ends $act 2 "$changed"
done
ends cut 40 'the connection was cut'
ends end -40 'the connection was cut'
# The hello of who has kept the connection does not arrive: the caller gives it up, or waits.
ends part -3 'it waits for another connection, which there is not'
! until_done mute -3 --mca crypt_connect_timeout 10 || fail "mute was not noticed: $(cat "$CASE_DIR/out")"
did || fail "mute: nothing was done: $(cat "$CASE_DIR/out")"
grep -aq 'crypt_connect_timeout' "$CASE_DIR/out" && ! grep -aqE 'wrong bytes|watchdog|Signal:' "$CASE_DIR/out" || fail "mute: $(cat "$CASE_DIR/out")"
windows mute
[ $said -ge 13 ] || fail "only $said of 17 texts say what was done"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Somebody between two processes that speak over btl/crypt changes, drops, repeats or mixes up records, or cuts the
# connection: the job ends, says why, and no message is delivered that was not sent.  If he passes all on, it goes on.
# In a window, where a program may look at any time, there is at no time what he made of a put.
set -eu
. "$SRC/tests/lib.sh"

over_btl
cluster_up 2
program=$(mpi_program attack/stranger victim)
middle=$SRC/tests/attack/records/middle.py
first=21000 said=0

# Both have this address, and try it before the others (mute.sh); there he listens, where the other node's process does.
stand() {                                       # stand NODE PORT THERE ACT AT
    vcluster net "$1" python3 "$middle" 10.77.0.1 "$2" "$3" "$4" "$5" "$CASE_DIR/$1" &
    until [ -s "$CASE_DIR/$1" ]; do
        kill -0 $! || fail "no middle.py on $1"
        sleep 0.01
    done
}

# Each with ports of its own; who stands there stays until the nodes end.
stand_between() {                               # stand_between ACT AT
    first=$((first + 2))
    rm -f "$CASE_DIR"/node? "$CASE_DIR"/pid.*
    stand node0 $((first + 1)) "${address[1]}" "$1" "$2"
    stand node1 $first "${address[0]}" "$1" "$2"
}
victims() {
    vcluster mpirun -n 2 --map-by node -x MT_WATCHDOG=60 --mca btl_crypt_port_min $first \
        --mca btl_crypt_port_range 2 "$program" "$CASE_DIR" > "$CASE_DIR/out" 2>&1
}

control() {
    stand_between pass 40
    touch "$CASE_DIR/stop"
    victims || fail "nothing was done: $(cat "$CASE_DIR/out")"
    rm "$CASE_DIR/stop"
}

job() {                                         # job ACT AT REASON
    stand_between "$1" "$2"
    ! victims || fail "$1 $2 was not noticed: $(cat "$CASE_DIR"/node? "$CASE_DIR/out")"
    grep -q '^done' "$CASE_DIR"/node? || fail "$1: nothing was done: $(cat "$CASE_DIR/out")"
    ! grep -aqE 'wrong bytes|watchdog|Signal:' "$CASE_DIR/out" || fail "$1: $(cat "$CASE_DIR/out")"
    # Who finds it ends the job, and the other one finds the connection cut; mpirun may be told of that first, and end the
    # job before it shows the first text.
    grep -aq 'reason:' "$CASE_DIR/out" || fail "$1, which should say \"$3\": $(cat "$CASE_DIR/out")"
    ! grep -a 'reason:' "$CASE_DIR/out" | grep -aqvE "$3|the connection was cut" || fail "$1: $(cat "$CASE_DIR/out")"
    ! grep -aqE "reason: +($3)" "$CASE_DIR/out" || said=$((said + 1))
    echo "$1 $2: $(grep -a 'reason:' "$CASE_DIR/out" | sort -u | tr -s ' \n' ' ')"
}

for node in node0 node1; do
    address+=("$(vcluster net $node ip -4 -o addr show dev eth0 | sed -nE 's/.* inet ([0-9.]+).*/\1/p')")
    shared_first $node
    # A process that does not reach him soon would take the other address, and pass him by.
    for rule in 'pref 1 fwmark 1 lookup main' 'pref 2 ipproto tcp dport 21000-21999 unreachable'; do
        vcluster net $node ip rule add $rule
    done
done
control
# The others: its length is not one of a record, or more than there is room for, and it is not even opened.
changed='a record was changed, repeated, or left out|not a record|a frame that is shorter than its record'
for act in flip tag type length drop repeat swap old reflect forge alert half; do
    job $act 40 "$changed"
done
for act in flip drop swap; do
    job $act -41 "$changed"
done
# The hellos.
for act in flip repeat reflect; do
    job $act 2 "$changed"
done
job flip -3 "$changed"
job cut 40 'the connection was cut'
job end -40 'the connection was cut'
[ $said -ge 15 ] || fail "only $said of 21 texts say what was done"
# What is put.  Beyond the window's end is what a thread has seen in it for a moment (target.c).
program=$(mpi_program attack/records target)
windows() {
    local other
    for window in "$CASE_DIR"/window.[01]; do
        other=$(tr -d '\063\132\245' < "$window" | od -An -tx1 | head -n 1)
        [ -z "$other" ] || fail "$1: in ${window##*/} was what nobody has put: $other"
    done
}
control
windows pass
for at in 40 -41; do
    for act in flip tag drop swap; do
        job $act $at "$changed"
        windows "$act $at"
    done
done

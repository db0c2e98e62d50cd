# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Somebody without a key says hello in the name of a process whose record is on another node, which does not answer: its daemon is
# stopped.  The processes that he says it to do not wait for that; they go on exchanging messages.
set -eu
. "$SRC/tests/lib.sh"

over_btl
cluster_up 3
program=$(mpi_program attack/stranger victim)
python="$SRC/tests/vcluster net node1 python3 $SRC/tests/attack/stranger"

# Open MPI's daemon on a node: one process, or two.
daemon_of() {
    local node pid
    node=$(vcluster net "$1" readlink /proc/self/ns/net)
    for pid in $(pgrep -x 'orted|prted'); do
        [ "$(readlink "/proc/$pid/ns/net")" != "$node" ] || echo "$pid"
    done
}

rm -f "$CASE_DIR"/pid.* "$CASE_DIR"/end.* "$CASE_DIR"/look* "$CASE_DIR/stop"
capture_start node1 "$CASE_DIR/hellos" -B 65536 'tcp portrange 21000-21099 and tcp[(tcp[12] & 0xf0) >> 2] == 22 or udp port 9'
# A record is not sent to other nodes before somebody asks for it.
vcluster mpirun -n 3 --map-by node -x MT_WATCHDOG="$LIMIT" --mca pmix_base_collect_data 0 \
    --mca btl_crypt_port_min 21000 --mca btl_crypt_port_range 100 --mca crypt_verbose 10 \
    "$program" "$CASE_DIR" > "$CASE_DIR/out" 2>&1 &
job=$!
until [ -s "$CASE_DIR/pid.0" ] && [ -s "$CASE_DIR/pid.1" ]; do
    kill -0 $job || fail "$(cat "$CASE_DIR/out")"
    sleep 0.1
done
capture_stop node1
daemon=$(daemon_of node2) i=0
[ -n "$daemon" ] || fail "no daemon on node2"
kill -STOP $daemon
trap 'kill -CONT $daemon 2>/dev/null || true; vcluster down >/dev/null 2>&1 || true' EXIT
$python/hellos.py as "$CASE_DIR/hellos" 21000 21099 2 > "$CASE_DIR/said" &
hello=$!
until [ -s "$CASE_DIR/said" ] || ! kill -0 $hello 2>/dev/null || ((i++ > 50)); do
    sleep 0.1
done
touch "$CASE_DIR/look"
for ((i = 0; i < 200; i++)); do
    [ ! -s "$CASE_DIR/looked.0" ] || break
    sleep 0.1
done
[ -s "$CASE_DIR/looked.0" ] || fail "who heard the hello waits for a record, and its messages with it"
echo "the daemon of node2 is stopped, and they go on: round $(cat "$CASE_DIR/looked.0")"
kill -CONT $daemon
wait $hello || fail "the hello: $(cat "$CASE_DIR/said")"
cat "$CASE_DIR/said"
touch "$CASE_DIR/stop"
wait $job || fail "the job: $(cat "$CASE_DIR/out")"
grep -o 'rejected a connection: .*' "$CASE_DIR/out" | sort | uniq -c

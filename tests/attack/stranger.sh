# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Somebody on the network, without a key, while a job runs over btl/crypt: connects to every port of its
# processes, says many things, or nothing, cuts, floods, and repeats what the processes themselves have said.  No byte comes
# back, the job goes on and its messages arrive, and neither its memory nor its open files grow beyond what 64
# strangers take.
set -eu
. "$SRC/tests/lib.sh"

over_btl
cluster_up 2
program=$(mpi_program attack/stranger victim)

# Ports at which process number PID listens.
ports_of() { vcluster net node0 ss -tlnpH | sed -nE "s/.*:([0-9]+) .*pid=$1,.*/\1/p" | sort -u; }

# Hellos only: records of type 22.
capture_start node1 "$CASE_DIR/hellos" 'tcp portrange 41000-41099 and tcp[(tcp[12] & 0xf0) >> 2] == 22 or udp port 9'
vcluster mpirun -n 2 --map-by node -x MT_WATCHDOG="$LIMIT" --mca btl_crypt_port_min 41000 --mca btl_crypt_port_range 100 \
    "$program" "$CASE_DIR" > "$CASE_DIR/out" 2>&1 &
job=$!
until [ -s "$CASE_DIR/pid.0" ]; do
    kill -0 $job || fail "$(cat "$CASE_DIR/out")"
done
capture_stop node1
pid=$(cat "$CASE_DIR/pid.0")
ports=$(ports_of "$pid")
echo "ports: $ports"
# One listener for all, and it is ours: btl/tcp is not there.
[ "$ports" -ge 41000 ] && [ "$ports" -lt 41100 ] || fail "not one port of the range"
address=$(vcluster net node0 ip -4 -o addr show dev eth0 | sed -nE 's/.* inet ([0-9.]+).*/\1/p')
must vcluster net node1 python3 "$SRC/tests/attack/stranger/stranger.py" "$address" $ports
must vcluster net node1 python3 "$SRC/tests/attack/stranger/replay.py" "$CASE_DIR/hellos" 41000 41099
touch "$CASE_DIR/stop"
wait $job || fail "the job: $(cat "$CASE_DIR/out")"
cat "$CASE_DIR/out"
while read -r _ rank _ rounds _ kib _ files; do
    [ "$rounds" -gt 10 ] && [ "$kib" -lt 200000 ] && [ "$files" -lt 160 ] || fail "rank $rank: $rounds rounds, $kib KiB, $files files"
done < <(grep '^rank ' "$CASE_DIR/out")
[ "$(grep -c '^rank ' "$CASE_DIR/out")" = 2 ] || fail "not two ranks"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# stranger.sh [ucx]: somebody on the network, without a key, while a job runs over btl/crypt: is there before its processes meet, scans ports,
# connects to every one of its processes, says many things, or nothing, cuts, floods, repeats what the processes themselves have
# said, now or in an earlier job, with any byte changed and in any name.  No byte comes back, the job goes on and its messages
# arrive, and neither its memory nor its open files grow beyond what 64 strangers take.  "ucx": messages go by UCX, and only a
# window over btl/crypt (from 5.0 on).
set -eu
. "$SRC/tests/lib.sh"

more=() window=
if [ "${1-}" = ucx ]; then
    [ "$SERIES" != 4.1 ] || skip "windows of 4.1 are messages"
    more=(--mca pml_crypt_host ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)
    window=window
else
    over_btl
fi
cluster_up 2
program=$(mpi_program attack/stranger victim)
python="$SRC/tests/vcluster net node1 python3 $SRC/tests/attack/stranger"         # not the function, so that $! is python3
address=$(vcluster net node0 ip -4 -o addr show dev eth0 | sed -nE 's/.* inet ([0-9.]+).*/\1/p')

# Ports at which process number PID listens.
ports_of() { vcluster net node0 ss -tlnpH | sed -nE "s/.*:([0-9]+) .*pid=$1,.*/\1/p" | sort -u; }

# begin NAME: a job of two, and a capture NAME of its hellos (records of type 22).
begin() {
    rm -f "$CASE_DIR"/pid.* "$CASE_DIR"/end.* "$CASE_DIR/stop"
    capture_start node1 "$CASE_DIR/$1" -B 65536 'tcp portrange 21000-21099 and tcp[(tcp[12] & 0xf0) >> 2] == 22 or udp port 9'
    vcluster mpirun -n 2 --map-by node -x MT_WATCHDOG="$LIMIT" ${more[@]+"${more[@]}"} --mca btl_crypt_port_min 21000 --mca btl_crypt_port_range 100 \
        --mca crypt_verbose 10 "$program" "$CASE_DIR" $window > "$CASE_DIR/out" 2>&1 &
    job=$!
    until [ -s "$CASE_DIR/pid.0" ]; do
        kill -0 $job || fail "$(cat "$CASE_DIR/out")"
    done
    capture_stop node1
}

end() {
    touch "$CASE_DIR/stop"
    wait $job || fail "the job: $(cat "$CASE_DIR/out")"
    cat "$CASE_DIR"/end.[01]
    while read -r _ rank _ rounds _ kib _ files; do
        [ "$rounds" -gt 10 ] && [ "$kib" -lt 200000 ] && [ "$files" -lt 160 ] || fail "rank $rank: $rounds rounds, $kib KiB, $files files"
    done < <(cat "$CASE_DIR"/end.[01])
    [ "$(cat "$CASE_DIR"/end.[01] | wc -l)" = 2 ] || fail "not two ranks"
}

# How many strangers were refused by OpenSSL, which sees a hello only if the process that it names is of the job.
by_openssl() { grep -c 'rejected a connection: OpenSSL refused it' "$CASE_DIR/out" || true; }

$python/first.py "$address" 21000 21001 "$CASE_DIR/first" &
first=$!
until [ -s "$CASE_DIR/first" ]; do
    kill -0 $first || fail "first.py"
done
begin old
kill $first
echo "who was first: $(grep -c '^21' "$CASE_DIR/first") connections"
grep -q '^21' "$CASE_DIR/first" || fail "first.py never got through"
end

begin hellos
pid=$(cat "$CASE_DIR/pid.0")
ports=$(ports_of "$pid")
echo "ports: $ports"
[ -z "$window" ] || ports=$(grep -x '210[0-9][0-9]' <<< "$ports")         # UCX has its own
# One listener for all, and it is ours: btl/tcp is not there.
[ "$ports" -ge 21000 ] && [ "$ports" -lt 21100 ] || fail "not one port of the range"
must $python/stranger.py "$address" $ports
must $python/hellos.py old "$CASE_DIR/old" 21000 21099 "$address" $ports
[ "$(by_openssl)" = 0 ] || fail "OpenSSL saw one: $(grep 'rejected a connection' "$CASE_DIR/out" | sort | uniq -c)"
must $python/hellos.py wrong "$CASE_DIR/hellos" 21000 21099
must $python/replay.py "$CASE_DIR/hellos" 21000 21099
end
grep -o 'rejected a connection: .*' "$CASE_DIR/out" | sort | uniq -c
[ "$(by_openssl)" -gt 0 ] || fail "OpenSSL saw no stranger: this is blind"

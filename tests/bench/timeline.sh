# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# timeline.sh [BYTES [RATE]]: one message from node to node, with pml/crypt and with btl/crypt: when its bytes were
# sealed, handed to the kernel, on the wire, read and opened, by one clock.  With intel-ipsec-mb and cubic, a rank
# pinned to each of two processors.  Nothing is judged.
set -eu
. "$SRC/tests/lib.sh"

bytes=${1:-8388608} limit=()
[ -z "${2:-}" ] || limit=(--rate "$2")
echo '#include <intel-ipsec-mb.h>' | gcc -E - > "$CASE_DIR/null" 2>&1 || skip "intel-ipsec-mb.h is missing"
must gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/trace.so" "$SRC/tests/bench/timeline/trace.c" -ldl
must in_variant mpicc -O2 -Wall -Wextra -Werror -o "$CASE_DIR/message" "$SRC/tests/bench/timeline/message.c"

control=$(sysctl -n net.ipv4.tcp_congestion_control)
sysctl -qw net.ipv4.tcp_congestion_control=cubic    # which new network namespaces take over
cluster_up 2 --slots 1 ${limit[@]+"${limit[@]}"}
sysctl -qw net.ipv4.tcp_congestion_control="$control"
for transport in pml btl; do
    file=$CASE_DIR/$transport
    capture_start node0 "$file.pcap" -Q out -s 96 greater 1000 or udp
    # shellcheck disable=SC2016
    must vcluster mpirun -n 2 --map-by node --mca pml crypt --mca crypt_transport "$transport" --mca aead ipsecmb \
        bash -c 'export TIMELINE_FILE=$1.$OMPI_COMM_WORLD_RANK LD_PRELOAD=$2; exec taskset -c "$OMPI_COMM_WORLD_RANK" "${@:3}"' \
        bash "$file" "$CASE_DIR/trace.so" "$CASE_DIR/message" "$bytes" 101
    capture_stop node0
    python3 "$SRC/tests/bench/timeline/plot.py" "$transport, $bytes bytes${2:+, $2}" "$file.0" "$file.1" "$file.pcap" \
        | tee "$CASE_DIR/$transport.txt"
done

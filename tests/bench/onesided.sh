# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# onesided.sh [ROUNDS [LINK...]]: a put and a get, each with a flush, between two nodes, one rank pinned to
# each processor: plain and over btl/crypt in turn, with cubic, on each link ("none" has no limit).
set -eu -o pipefail
. "$SRC/tests/lib.sh"

rounds=${1:-13}
[ $# -gt 1 ] && shift && links=("$@") || links=(none 10gbit 25gbit)
bytes=(8 4096 16384 65536 262144 1048576 8388608)
[ "$(nproc)" -ge 2 ] || skip "two processors are needed"
export VCLUSTER_YIELD=0

cat > "$CASE_DIR/pinned" <<'END'
#!/bin/sh
exec taskset -c "${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}" "$@"
END
chmod +x "$CASE_DIR/pinned"
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg); $rounds rounds"
for link in "${links[@]}"; do
    rate=(); [ "$link" = none ] || rate=(--rate "$link")
    cluster_up 2 ${rate[@]+"${rate[@]}"}
    for node in node0 node1; do
        vcluster net $node sh -c 'echo cubic > /proc/sys/net/ipv4/tcp_congestion_control'
    done
    program=$CASE_DIR/put_get
    must in_variant mpicc -O2 -o "$program" "$SRC/tests/bench/onesided/put_get.c"
    for ((i = 0; i < rounds; i++)); do
        for how in plain btl; do
            options=(--mca pml ob1 --mca osc ^ucx)
            [ $how = plain ] || options=(--mca pml crypt --mca crypt_transport btl)
            vcluster mpirun -n 2 --map-by node "${options[@]}" "$CASE_DIR/pinned" "$program" "${bytes[@]}" < /dev/null \
                2> "$CASE_DIR/error" | sed "s/^/$link $how /" || fail "$(cat "$CASE_DIR/error")"
        done
    done
    vcluster down > /dev/null
done | grep -E '^(none|[0-9]+gbit) ' > "$CASE_DIR/figures"

python3 - "$CASE_DIR/figures" <<'END'
import collections, statistics, sys

of = collections.OrderedDict()
for line in open(sys.argv[1]):
    link, how, size, put, get = line.split()
    of.setdefault((link, int(size)), {"plain": [], "btl": []})[how].append((float(put), float(get)))
print(f"{'link':7} {'bytes':>8}   {'put, us':>8} {'over plain (quartiles)':>24}   {'get, us':>8} {'over plain (quartiles)':>24}")
for (link, size), found in of.items():
    line = f"{link:7} {size:8}"
    for call in 0, 1:
        plain, btl = ([figures[call] for figures in found[how]] for how in ("plain", "btl"))
        ratios = sorted(b / a for a, b in zip(plain, btl))
        quarter = len(ratios) // 4
        line += (f"   {statistics.median(plain):8.1f} {statistics.median(ratios):8.2f} "
                 f"({ratios[quarter]:.2f}-{ratios[-1 - quarter]:.2f})   ")
    print(line)
END

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# speed.sh [PART...]: times of messages between two nodes, encrypted relative to plain,
# beside the targets.  The parts (by default all):
#
#     default     ob1 over tcp; also with its default limits, with 256-bit keys,
#                 and with the same raised limits for plain; two pairs with a window
#     rate        the same on links of 10 Gb/s
#     cubic       as on most clusters: TCP with cubic, on links of 10, 25 and 40 Gb/s
#                 and without a limit
#     ucx         ucx over tcp, with cubic; also with other parts, segments and depths
#     cm          the same over libfabric's tcp;ofi_rxm
#     schemes     the papers' ablation: naive, pipe, threads, both
#     no-crypto   compared with a build that copies instead of sealing
#
# Nothing is judged: report how busy the machine was with the figures.  FAST and
# ROUNDS in the environment change the stopping rule; CSV files are kept in SAVE.
set -eu
. "$SRC/tests/lib.sh"
PATH=$PREFIX/bin:$PATH

SAVE=${SAVE:-$CASE_DIR} FAST=${FAST:-9} ROUNDS=${ROUNDS:-36}
rule=(--fast "$FAST" --rounds "$ROUNDS" --mpirun "$SRC/tests/vcluster mpirun")
sizes=1,1K,4K,16K,64K,256K,1M,8M
parts=("$@")
mkdir -p "$SAVE"

wanted() { [ ${#parts[@]} -eq 0 ] || [[ " ${parts[*]} " == *" $1 "* ]]; }

# bench NAME ARGS...: CSV to $SAVE/NAME.csv, every round to NAME-raw.csv
bench() {
    local name=$1; shift
    mpicrypt bench "${rule[@]}" "$@" --csv "$SAVE/$name.csv" --raw "$SAVE/$name-raw.csv" > "$SAVE/$name.txt"
}

# fresh_cluster [UP-OPTION...]
fresh_cluster() {
    vcluster down >/dev/null 2>&1 || true
    cluster_up 2 --slots 2 "$@" >&2
}

# table TITLE CSV [MUST...]: ratios to plain, a line for each column
table() {
    python3 - "$@" <<'END'
import csv
import sys

title, path, must = sys.argv[1], sys.argv[2], sys.argv[3:]
rows = list(csv.DictReader(open(path)))
cells = []                              # in the order of the columns of the table
for row in rows:
    cell = (row["variant"], int(row["bytes"]))
    if cell not in cells:
        cells.append(cell)


def size(n):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if n >= unit and n % unit == 0:
            return f"{n // unit}{name}"
    return str(n)


def line(name, values):
    print(f"{name:22}" + "".join(f"{value:>9}" for value in values))


print(f"\n{title}")
line("", [size(cell[1]) for cell in cells])
columns = list(dict.fromkeys(row["column"] for row in rows))
for column in columns:
    of = {(row["variant"], int(row["bytes"])): row for row in rows if row["column"] == column}
    if column == "plain":
        line("plain, us", [f'{float(of[cell]["us"]):.1f}' for cell in cells])
        line("FAST rounds, of", [f'{of[cell]["fast_rounds"]}/{of[cell]["rounds"]}' for cell in cells])
        continue
    line(column, [f'{float(of[cell]["ratio"]):.3f}' for cell in cells])
    slow = [of[cell]["slow_ratio"] for cell in cells]
    line("  quartiles", [f'{float(of[cell]["ratio_q1"]):.2f}-{float(of[cell]["ratio_q3"]):.2f}' for cell in cells])
    if any(slow) and column.startswith("crypt"):
        line("  in SLOW rounds", [f"{float(value):.3f}" if value else "-" for value in slow])
if must:
    line("crypt must be", must)
END
}

# Alternating, as the directory of the tool decides which build is measured.
no_crypto() {
    local prefix=$CASE_DIR/no-crypto round
    mkdir "$CASE_DIR/build"
    (cd "$CASE_DIR/build"
     "$SRC/configure" --prefix="$prefix" --enable-no-crypto > configure.log
     make -s -j"$(nproc)" install > make.log 2>&1) || fail "the build without encryption: $CASE_DIR/build"
    fresh_cluster
    for ((round = 0; round < FAST; round++)); do
        bench "crypt-$round" pingpong --schemes crypt --size 256K,1M,8M --fast 1 --rounds 1
        (. "$prefix/share/ompi-crypt/env.sh"
         PATH=$prefix/bin:$PATH
         bench "none-$round" pingpong --schemes crypt --size 256K,1M,8M --fast 1 --rounds 1)
    done
    python3 - "$SAVE" "$FAST" <<'END'
import csv
import statistics
import sys

save, rounds = sys.argv[1], int(sys.argv[2])


def ratios(name, number):
    rows = csv.DictReader(open(f"{save}/{name}-{number}.csv"))
    return {int(row["bytes"]): float(row["us"]) for row in rows if row["column"] == "crypt"}


pairs = [(ratios("crypt", number), ratios("none", number)) for number in range(rounds)]
print("\nencrypted over the same pattern without encryption, by size (at most 1.25 is asked)")
for size in sorted(pairs[0][0]):
    values = sorted(crypt[size] / none[size] for crypt, none in pairs)
    print(f"{size >> 10:6}K {statistics.median(values):8.3f}   from {values[0]:.3f} to {values[-1]:.3f}")
END
}

echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg); $(nproc) processors, two nodes on one machine"
limits='unraised pml=crypt btl_tcp_eager_limit=65536 pml_crypt_chop_min=32768 pml_crypt_chunk_size=65000'
if wanted default; then
    fresh_cluster
    bench tcp pingpong --size "$sizes" --schemes raised,tuned,naive,bare,crypt "$limits"
    table "ob1 over tcp" "$SAVE/tcp.csv" 1.08 1.12 1.12 1.25 1.00 1.15 1.00 1.00
    echo "unraised must be, from 64K on: 1.00 1.40 1.25 1.10; crypt in SLOW rounds: 1.30"
    bench bits pingpong --size "$sizes" --schemes crypt --bits 128,256
    table "128 and 256 bits: at most 0.06 more" "$SAVE/bits.csv"
    bench window pairs --pairs 2 --window 64 --size 4M --schemes raised,tuned,naive,bare,crypt
    table "two pairs, windows of 64 messages" "$SAVE/window.csv" 1.00
fi
if wanted rate; then
    fresh_cluster --rate 10gbit
    bench rate pingpong --size "$sizes" --schemes raised,tuned,naive,bare,crypt
    table "ob1 over tcp, 10 Gb/s" "$SAVE/rate.csv" 1.08 1.12 1.12 - 1.00 1.05 1.02 1.02
    bench rate-window pairs --pairs 2 --window 64 --size 4M --schemes raised,tuned,crypt
    table "two pairs, windows of 64 messages, 10 Gb/s" "$SAVE/rate-window.csv" 1.03
fi
if wanted cubic; then
    control=$(sysctl -n net.ipv4.tcp_congestion_control)
    sysctl -qw net.ipv4.tcp_congestion_control=cubic    # which new network namespaces take over
    for rate in 10gbit 25gbit 40gbit none; do
        limit=(--rate "$rate")
        [ $rate != none ] || limit=()
        fresh_cluster ${limit[@]+"${limit[@]}"}
        trap 'vcluster down >/dev/null 2>&1; sysctl -qw net.ipv4.tcp_congestion_control=$control' EXIT
        bench "cubic-$rate" pingpong --size "$sizes" --schemes tuned,bare,crypt
        table "cubic, a link of $rate" "$SAVE/cubic-$rate.csv"
    done
    sysctl -qw net.ipv4.tcp_congestion_control="$control"
fi
# fabric HOST TITLE: ping-pong and windows with cubic, and segments and first parts of other sizes.
fabric() {
    local host=$1 control columns=(naive,bare,crypt) size
    control=$(sysctl -n net.ipv4.tcp_congestion_control)
    sysctl -qw net.ipv4.tcp_congestion_control=cubic
    trap 'vcluster down >/dev/null 2>&1; sysctl -qw net.ipv4.tcp_congestion_control=$control' EXIT
    fresh_cluster
    for size in 32768 65536 262144; do
        columns+=("chunk-$size pml=crypt pml_crypt_chunk_size=$size")
    done
    for size in 32768 131072 262144; do
        columns+=("min-$size pml=crypt pml_crypt_chop_min=$size")
    done
    bench "$host" pingpong --host "$host" --size "$sizes" --schemes "${columns[@]}"
    table "$host: $2" "$SAVE/$host.csv"
    bench "$host-window" pairs --host "$host" --pairs 2 --window 64 --size 4K,64K,1M,4M --schemes naive,bare,crypt
    table "$host: two pairs, windows of 64 messages" "$SAVE/$host-window.csv"
    sysctl -qw net.ipv4.tcp_congestion_control="$control"
}
if wanted ucx; then
    export OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any UCX_TLS=tcp,self UCX_NET_DEVICES=eth0
    fabric ucx "UCX's tcp"
    unset OMPI_MCA_pml_ucx_tls OMPI_MCA_pml_ucx_devices UCX_TLS UCX_NET_DEVICES
fi
if wanted cm; then
    export OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include='tcp;ofi_rxm'
    fabric cm "libfabric's tcp;ofi_rxm"
    unset OMPI_MCA_mtl OMPI_MCA_mtl_ofi_provider_include
fi
if wanted schemes; then
    fresh_cluster
    bench schemes pingpong --size 64K,256K,1M,4M,16M --schemes naive,pipe,threads,both
    table "the papers' schemes" "$SAVE/schemes.csv"
fi
! wanted no-crypto || no_crypto

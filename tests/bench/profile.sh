# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# profile.sh [BYTES...]: where the processor time of a ping-pong between two nodes
# goes, plain (with the limits that pml/crypt sets) and encrypted: microseconds on
# both sides for one message in one direction.  perf samples the processor's clock,
# which needs root.  Nothing is judged.
set -eu
. "$SRC/tests/lib.sh"

command -v perf >/dev/null || skip "perf is not installed (linux-perf)"
sizes=("${@:-1048576}")
program=$(dirname "$PREFIX/bin")/libexec/ompi-crypt/mpicrypt-mpi
raised='--mca btl_tcp_eager_limit 262144 --mca btl_tcp_rndv_eager_limit 262144 --mca btl_tcp_max_send_size 262144
--mca btl_tcp_endpoint_cache 17408'
cluster_up 2 --slots 2

# sample NAME PML BYTES [MPIRUN-ARG...]
sample() {
    local name=$1 pml=$2 bytes=$3; shift 3
    OMPI_MCA_pml=$pml perf record -q -e cpu-clock -F 4000 -a -o "$CASE_DIR/$name.data" -- \
        bash "$SRC/tests/vcluster" mpirun -n 2 --map-by node "$@" "$program" pingpong --size="$bytes" --laps=5 \
        --lap-ms=1000 --pml="$pml" --cpus=0,1 > "$CASE_DIR/$name.out" 2> "$CASE_DIR/$name.err"
    perf report -i "$CASE_DIR/$name.data" --no-children --comm mpicrypt-mpi --sort dso,symbol --stdio -w 60,80 \
        --percentage relative 2>/dev/null | grep -E '^ +[0-9]' > "$CASE_DIR/$name.symbols"
}

for bytes in "${sizes[@]}"; do
    # shellcheck disable=SC2086
    sample plain ob1 "$bytes" $raised
    sample crypt crypt "$bytes"
    python3 - "$CASE_DIR" "$bytes" <<'END'
import re
import statistics
import sys

place, size = sys.argv[1:]
KINDS = [                               # the first that fits, of "library symbol"
    ("sealing", r"gcm_enc|_enc_|seal|Encrypt|ctr32_encrypt|aesni_gcm_encrypt"),
    ("opening", r"gcm_dec|_dec_|Decrypt|aesni_gcm_decrypt"),
    ("copies in the kernel", r"copy_from_iter|copy_to_iter|copy_user|rep_movs|copyin|copyout|_copy_"),
    ("copies in the process", r"memmove|memcpy"),
    ("waiting: polls", r"poll|event_base|opal_progress|libevent|select|eventfd|fget|fput|vdso|clock_gettime"),
    ("network stack", r"kernel"),
    ("ompi-crypt", r"pml_crypt|common_crypt|hook_crypt"),
    ("Open MPI", r"."),
]


def profile(name):
    laps = [float(line.split()[4]) for line in open(f"{place}/{name}.out") if line.startswith("@mpicrypt value")]
    us = 1e6 * statistics.median(laps)
    share = dict.fromkeys((kind for kind, _ in KINDS), 0.0)
    for line in open(f"{place}/{name}.symbols"):
        percent, symbol = line.split("%", 1)
        kind = next(kind for kind, pattern in KINDS if re.search(pattern, symbol))
        share[kind] += float(percent)
    whole = sum(share.values())
    return us, {kind: value / whole * 2 * us for kind, value in share.items()}


plain_us, plain = profile("plain")
crypt_us, crypt = profile("crypt")
print(f"\n{int(size)} bytes, one way: plain {plain_us:.1f} us, encrypted {crypt_us:.1f} us")
print(f"{'us of both sides':24}{'plain':>10}{'encrypted':>12}")
for kind, _ in KINDS:
    print(f"{kind:24}{plain[kind]:10.1f}{crypt[kind]:12.1f}")
END
done

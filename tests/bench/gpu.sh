# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# gpu.sh [ROUNDS [MPIRUN-ARGUMENT...]]: ping-pong and all-reduction between two virtual nodes with buffers in the memory of a GPU: plain,
# plain with copies by the program, and encrypted by btl/crypt and pml/crypt.  It needs a GPU, the run-time library of
# CUDA or ROCm (GPU_LIBRARY: its path, if the linker does not find it), and Open MPI from 5.0 on that was built for it.
# MPIRUN-ARGUMENTs may choose another network, such as --mca pml_crypt_host ucx.
set -eu -o pipefail
. "$SRC/tests/lib.sh"

rounds=${1:-5}
[ $# = 0 ] || shift
[ "$SERIES" != 4.1 ] || skip "Open MPI 4.1 has no accelerator components"
cluster_up 2
kind=$(in_variant ompi_info --parsable --param accelerator all | sed -nE 's/^mca:accelerator:(cuda|rocm):version.*/\1/p' | head -n 1)
[ -n "$kind" ] || skip "this Open MPI was built for no GPU: ompi_info shows neither accelerator/cuda nor accelerator/rocm"
if [ "$kind" = cuda ]; then device=/dev/nvidiactl prefix=cuda library=libcudart.so; else device=/dev/kfd prefix=hip library=libamdhip64.so; fi
[ -e $device ] || skip "there is no GPU: no $device"

must in_variant mpicc -O2 -Wall -Wextra -o "$CASE_DIR/gpu" "$SRC/tests/bench/gpu/gpu.c" -ldl
declare -A options=([plain]='--mca pml ob1' [staged]='--mca pml ob1' [btl]='--mca pml crypt --mca crypt_transport btl'
                    [pml]='--mca pml crypt --mca crypt_transport pml')
for ((i = 0; i < rounds; i++)); do
    for how in plain staged btl pml; do
        [ $how = staged ] && buffers=staged || buffers=device
        # shellcheck disable=SC2086
        vcluster mpirun -n 2 --map-by node ${options[$how]} "$@" "$CASE_DIR/gpu" "${GPU_LIBRARY:-$library}" $prefix $buffers \
            8 4096 65536 1048576 8388608 67108864 < /dev/null 2> "$CASE_DIR/error" | sed "s/^/$how /" || fail "$(cat "$CASE_DIR/error")"
    done
done > "$CASE_DIR/figures"
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg); $rounds rounds; us: plain, staged by the program, btl/crypt, pml/crypt"
python3 - "$CASE_DIR/figures" <<'END'
import collections, statistics, sys

of = collections.OrderedDict()
for line in open(sys.argv[1]):
    how, call, size, us = line.split()
    of.setdefault((call, int(size)), collections.defaultdict(list))[how].append(float(us))
for (call, size), found in of.items():
    print(f"{call:10} {size:9}" + "".join(f" {statistics.median(found[how]):10.1f}" for how in ("plain", "staged", "btl", "pml")))
END

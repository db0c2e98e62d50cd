# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What a direct message costs on the wire: 24 bytes more than over plain ob1, for
# every size, counted by the kernel (overhead/overhead.c).  Both send up to 64 KiB
# at once.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
program=$(mpi_program shell/overhead overhead)
for pml in ob1 crypt; do
    must vcluster mpirun -n 2 --map-by node --mca pml "$pml" --mca btl_tcp_eager_limit 262144 \
        --mca btl_tcp_rndv_eager_limit 262144 --mca btl_tcp_max_send_size 262144 "$program" >"$CASE_DIR/$pml"
    sed -n 's/^size \([0-9]*\) wire \([0-9]*\)$/\1 \2/p' "$CASE_DIR/$pml" >"$CASE_DIR/$pml.sizes"
done
paste -d ' ' "$CASE_DIR/ob1.sizes" "$CASE_DIR/crypt.sizes" >"$CASE_DIR/both"
[ "$(wc -l <"$CASE_DIR/both")" = 10 ] || fail "10 sizes, please: $(cat "$CASE_DIR/both")"
while read -r size plain same sealed; do
    echo "$size bytes: $plain on the wire over ob1, $sealed over pml/crypt"
    [ "$size" = "$same" ] && [ $((sealed - plain)) = 24 ] || fail "not 24 bytes more"
done <"$CASE_DIR/both"

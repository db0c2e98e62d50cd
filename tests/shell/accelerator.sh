# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The memory of an accelerator, over every transport: messages and collectives go from it and to it, and no
# processor touches it; what they say is left nowhere in a process once MPI has ended; a copy that fails ends the job.
# Segments of long messages are copied while others are sealed or opened, also where two devices take turns at being the
# current one, and by threads that the accelerator does not know.  (Cases with @ACCEL@ run programs of other directories so.)
set -eu
. "$SRC/tests/lib.sh"
[ "$SERIES" != 4.1 ] || skip "Open MPI 4.1 has no accelerator components; CUDA is compiled in, or is not"

cluster_up 2
place=$(pretended_accelerator)
must in_variant mpicc -O2 -Wall -Wextra -Werror -I"$SRC/tests/mpi/accel" -o "$CASE_DIR/on_device" "$SRC/tests/shell/accelerator/on_device.c"
export OMPI_MCA_mca_base_component_path=$place:$OMPI_MCA_mca_base_component_path OMPI_MCA_accelerator=cuda

# over NAME RANKS OPTION...
over() {
    local name=$1 ranks=$2; shift 2
    must vcluster mpirun -n "$ranks" --map-by node "$@" "$CASE_DIR/on_device" "$CASE_DIR/good.$name"
    [ -e "$CASE_DIR/good.$name" ] || fail "$name: it did not end well"
}
ob1=(--mca pml crypt --mca crypt_transport pml --mca pml_crypt_host ob1)
ucx=(--mca pml crypt --mca pml_crypt_host ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)
cm=(--mca pml crypt --mca pml_crypt_host cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm')
over plain 4 --mca pml ob1 --mca btl tcp,self
over btl 4 --mca pml crypt --mca crypt_transport btl --mca btl crypt,self
over ob1 4 "${ob1[@]}" -x WITHIN=1
# Within a node UCX and libfabric get the buffer itself, and know no pretended accelerator.
over ob1.remains 2 "${ob1[@]}" -x REMAINS=1 -x DEVICE_SAYS="$CASE_DIR/one"
over two 2 "${ob1[@]}" -x REMAINS=1 -x TWO=1 -x DEVICE_SAYS="$CASE_DIR/two"
grep . "$CASE_DIR"/one.* "$CASE_DIR"/two.*
# Streams are made only when those that exist are in use, also after MPI_Comm_dup; staging stays locked.
often='[1-9][0-9]*' rest='; at once from [2-9], to [2-9]; streams \([0-9]*\) of \1; registered [1-9][0-9]*'
[ "$(grep -lx "in streams $often + 0$rest" "$CASE_DIR"/one.* | wc -l)" = 2 ] || fail "one device: see above"
[ "$(grep -lx "in streams $often + $often$rest" "$CASE_DIR"/two.* | wc -l)" = 2 ] || fail "two devices: see above"
# As after a reset of the device: the copies are synchronous.
over stale 2 "${ob1[@]}" -x REMAINS=1 -x DEVICE_STALE=1
over ob1.threads 2 "${ob1[@]}" -x REMAINS=1 --mca crypt_threads 4
over ucx 2 "${ucx[@]}" -x REMAINS=1
over cm 2 "${cm[@]}" -x REMAINS=1

echo "+ ! a broadcast by absolute addresses"
must_fail vcluster mpirun -n 4 --map-by node "${ob1[@]}" -x WITHIN=1 -x REFUSED=1 "$CASE_DIR/on_device" > "$CASE_DIR/out" 2>&1
cat "$CASE_DIR/out"
grep -q "A buffer of a collective operation is in accelerator memory" "$CASE_DIR/out" || fail "the broadcast: it does not say why"

# fails WHY OPTION...
fails() {
    local why=$1; shift
    must_fail vcluster mpirun -n 2 --map-by node "${ob1[@]}" "$@" "$CASE_DIR/on_device" > "$CASE_DIR/out" 2>&1
    cat "$CASE_DIR/out"
    tr -s ' \n' ' ' < "$CASE_DIR/out" | grep -q "could not copy [0-9]* bytes between the memory of an accelerator and that of the host: $why" ||
        fail "it does not say why"
}
# A short message, a first part, a segment.
for n in 1 30000 100000; do
    fails Error -x DEVICE_FAILS=$n
done
# A copy that does not end: the clock goes on by two hours.
must in_variant gcc -O2 -shared -fPIC -o "$CASE_DIR/late_clock.so" "$SRC/tests/mpi/accel/late_clock.c"
fails Timeout -x DEVICE_HANGS=1 -x LD_PRELOAD="$CASE_DIR/late_clock.so"

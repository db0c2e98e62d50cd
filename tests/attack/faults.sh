# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# faults.sh [cm]: what a program sees when the host PML refuses an operation, or ends one
# with an error.  pml/tamper, otherwise an attacker (tamper.sh), is a host with faults.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
faults=$(mpi_program attack/tamper faults)
make_check tests/attack/tamper/pml
shm=vader
[ "$SERIES" = 4.1 ] || shm=sm
export OMPI_MCA_mca_base_component_path=$BUILD/tests/attack/tamper/pml/.libs:$OMPI_MCA_mca_base_component_path

# Parts that nobody receives any more leave with the host all the same: small segments,
# and bodies below the limit of shared memory.
host=(--mca "btl_${shm}_eager_limit" 40000)
# ofi_rxm: as in tamper.sh.
[ -z "${1-}" ] || host=(--mca pml_crypt_host cm --mca pml_tamper_host cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm'
                        -x FI_OFI_RXM_BUFFER_SIZE=65536)
arguments=("$@")
run() {
    echo "+ $*"
    vcluster mpirun -n 4 -x MT_WATCHDOG=$((LIMIT - 20)) --mca pml_crypt_chop_min 4096 --mca pml_crypt_chunk_size 20000 \
        "${host[@]}" "$@" "$faults" ${arguments[@]+"${arguments[@]}"} > "$CASE_DIR/out" 2>&1 || fail "$(cat "$CASE_DIR/out")"
    cat "$CASE_DIR/out"
    ! grep -E 'failed authentication|are missing' "$CASE_DIR/out" || fail "a fault of the host is no attack"
}
run
run --mca crypt_threads 2
run -x FAULTS_THREADS=1

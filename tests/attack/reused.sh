# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A message that an attacker keeps back until the context id of its communicator
# has come back in another (tamper/reused.c).
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
reused=$(mpi_program attack/tamper reused)
make_check tests/attack/tamper/pml
export OMPI_MCA_mca_base_component_path=$BUILD/tests/attack/tamper/pml/.libs:$OMPI_MCA_mca_base_component_path

vcluster mpirun -n 4 -x MT_WATCHDOG=280 --mca pml_crypt_chop_min 4096 --mca pml_crypt_chunk_size 20000 \
    --mca crypt_on_auth_failure error "$reused" >"$CASE_DIR/out" 2>&1 || fail "$(cat "$CASE_DIR/out")"
grep '^ok reused' "$CASE_DIR/out"

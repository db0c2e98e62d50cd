# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Messages that no other case provokes: settings that cannot be used, and nodes that
# lack something.  Each job ends by itself, and says why.  What is wrong is wrong on
# node1: of mpirun's own node, Open MPI 4.1.4 loses texts.
set -eu
. "$SRC/tests/lib.sh"
. "$SRC/tests/shell/keys_jobs.sh"

program=$CASE_DIR/gather
cat > "$program.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    int rank, all[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Finalize();
    return all[1] != 1;
}
END
must in_variant mpicc -O2 -o "$program" "$program.c"
psk=/dev/shm/psk
for node in node0 node1; do
    vcluster exec $node bash -c "umask 077; echo $(printf '%064d' 7) > $psk"
done
# with SETTING...: on node1, beside what both have.
with() { set_node node0 crypt_psk_file=$psk; set_node node1 crypt_psk_file=$psk "$@"; }
# on_node1 COMMAND...: in its mounts.
on_node1() { must vcluster exec node1 "$@"; }
with
runs "in order"

echo "== parameters"
with crypt_key_bits=100
refused "key bits" "crypt_key_bits is 100; it must be 128, 192 or 256"
with pml_crypt_chunk_size=1 pml_crypt_max_in_flight=0
refused "bounds" "A parameter of pml/crypt is out of its bounds"
with pml_crypt_t_table=64K:two
refused "table" "A parameter of pml/crypt cannot be used: pml_crypt_t_table"
with pml_crypt_team=ants
refused "team" "pml_crypt_team: it is pool or openmp"
with crypt_psk_file="/dev/shm/$(printf '%0300d' 0)"
refused "psk" "A file with a secret key cannot be opened or read"
with
set_node node0 crypt_psk_file=$psk coll_cryptag_allgather_algorithm=c-ring
echo "+ ! algorithms"
# Rank 0 says it.
must_fail vcluster mpirun -n 2 --host node1:1,node0:1 "$CASE_DIR/with" "$program" > "$CASE_DIR/out" 2>&1
says_too "are not the same at all ranks: those of rank 1 differ"
echo "allgather any two" > "$CASE_DIR/rules"
with "coll_cryptag_rules_file=$CASE_DIR/rules"
refused "rules" "The file of rules for coll/cryptag cannot be used"

echo "== what is missing on a node"
with
on_node1 mount --bind /dev/null /proc/sys/kernel/random/boot_id
refused "boot id" "The boot id of this node" "cannot be read"
on_node1 umount /proc/sys/kernel/random/boot_id

echo "== hosts"
ucx=$(vcluster exec node1 ompi_info --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')
ucx=$(vcluster exec node1 find -L "$ucx" /usr/lib -name mca_pml_ucx.so 2> "$CASE_DIR/null" | head -n 1 || true)
if [ -n "$ucx" ]; then
    # No hardware that it takes by itself.
    with pml_crypt_host=ucx
    set_node node0 crypt_psk_file=$psk pml_crypt_host=ucx
    refused "ucx without hardware" 'The PML "ucx" that pml/crypt should wrap refuses to start on this node'
    on_node1 mount --bind /dev/null "$ucx"
    refused "no ucx" 'pml/crypt cannot find the PML "ucx"'
    on_node1 umount "$ucx"
fi

with
runs "in order, at the end"

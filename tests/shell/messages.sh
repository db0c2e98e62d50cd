# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Messages that no other case provokes: settings that cannot be used, and nodes that
# lack something.  Each job ends by itself, and says why.  What is wrong is wrong on
# node1: of mpirun's own node, Open MPI 4.1.4 loses texts.
set -eu
. "$SRC/tests/lib.sh"
. "$SRC/tests/shell/keys_jobs.sh"

here=$SRC/tests/shell/messages
program=$CASE_DIR/faults
must in_variant mpicc -O2 -Wall -Wextra -Werror -rdynamic -o "$program" "$here/faults.c" -ldl
psk=/dev/shm/psk
for node in node0 node1; do
    vcluster exec $node bash -c "umask 077; echo $(printf '%064d' 7) > $psk"
done
# with SETTING...: on node1, beside what both have.
with() { set_node node0 crypt_psk_file=$psk; set_node node1 crypt_psk_file=$psk "$@"; }
# with_fault FAULT SETTING...: too, on node1 or the other one.
with_fault() {
    local fault=$1; shift
    with "$@"
    echo "FAULT=$fault" >> "$CASE_DIR/$faulty.env"
}
faulty=node1
# on_node1 COMMAND...: in its mounts.
on_node1() { must vcluster exec node1 "$@"; }
with
runs "in order"

echo "== parameters"
with crypt_key_bits=100
refused "key bits" "crypt_key_bits is 100; it must be 128, 192 or 256"
with pml_crypt_chop_min=0
refused "bounds" "A parameter of pml/crypt is out of range"
with pml_crypt_t=64K:two
refused "table" "A parameter of pml/crypt cannot be used: pml_crypt_t"
with pml_crypt_team=ants
refused "team" "pml_crypt_team: it is pool or openmp"
with crypt_psk_file="/dev/shm/$(printf '%0300d' 0)"
refused "psk" "A file with a secret key cannot be opened or read"
if [ "$SERIES" != 4.1 ]; then
    with mpi_ft_enable=1
    refused "fault tolerance" "pml/crypt does not support it: operations with a failed process would hang"
fi
with coll=^cryptag
refused "coll" "must be the same on all ranks" "coll_cryptag=on" "coll_cryptag=off"
# Rank 0 says it, on node1.
for setting in coll_cryptag_allgather_algorithm=c-ring coll_cryptag_fragment=5000; do
    with
    set_node node0 crypt_psk_file=$psk "$setting"
    echo "+ ! $setting"
    must_fail vcluster mpirun -n 4 --host node1:2,node0:2 "$CASE_DIR/with" "$program" > "$CASE_DIR/out" 2>&1
    says_too "must be the same on all ranks, but those of rank 2 differ"
done
echo "allgather any two" > "$CASE_DIR/rules"
with "coll_cryptag_rules_file=$CASE_DIR/rules"
refused "rules" "The file of rules for coll/cryptag cannot be used"
with coll_cryptag_fragment=1000
refused "sizes" "A parameter of coll/cryptag is out of range" "coll_cryptag_fragment: 1000"
set_both pml=ob1 coll_cryptag_fragment=1000
runs "sizes, in a job without pml/crypt"
! grep -q "coll/cryptag" "$CASE_DIR/out" || fail "it complains of what it does not use"

echo "== what is missing on a node"
with
on_node1 mount --bind /dev/null /proc/sys/kernel/random/boot_id
refused "boot id" "The boot id of this node" "cannot be read"
on_node1 umount /proc/sys/kernel/random/boot_id

echo "== what fails on a node"
with_fault list:2
refused "no memory for a list" "The group key of a communicator could not be made" "reason: out of memory"
faulty=node0
with_fault liar
refused "a liar" "rank 1 received a different public key of rank 0 than the one that this rank has authenticated"
faulty=node1
with_fault cryptag:8
refused "no node map" "coll/cryptag could not determine which ranks share a node"
with_fault memalign:1000000
arguments=(gather 2000000)
export OMPI_MCA_coll_cryptag_allgather_algorithm=c-rd    # others have no memory of their own
refused "no memory for an all-gather" "could not allocate"
unset OMPI_MCA_coll_cryptag_allgather_algorithm
with_fault malloc:16000000 pml_crypt_t=0:1:4G
arguments=(send 100000000)
refused "no memory for a segment" "There is no memory for an encrypted segment of"
with pml_crypt_t=0:1:4G
arguments=(send 100000000)
runs "in order: send 100000000"

arguments=()

echo "== hosts"
ucx=$(vcluster exec node1 ompi_info --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')
ucx=$(vcluster exec node1 find -L "$ucx" /usr/lib -name mca_pml_ucx.so 2> "$CASE_DIR/null" | head -n 1 || true)
if [ -n "$ucx" ]; then
    # No hardware that it takes by itself, on either node: whichever fails first names itself.
    set_both crypt_psk_file=$psk pml_crypt_host=ucx
    refused "ucx without hardware" 'The PML "ucx" that pml/crypt should wrap cannot start: node: node'
    # It starts with TCP, which it must be told to take: node1's alone is wrong.
    set_both crypt_psk_file=$psk pml_crypt_host=ucx pml_ucx_tls=any pml_ucx_devices=any
    printf '%s\n' UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 | tee -a "$CASE_DIR/node0.env" >> "$CASE_DIR/node1.env"
    runs "in order, over ucx"
    on_node1 mount --bind /dev/null "$ucx"
    refused "no ucx" 'pml/crypt cannot find the PML "ucx" that it should wrap (pml_crypt_host): node: node1 '
    on_node1 umount "$ucx"
    # The head of a component struct, of another series.
    cat > "$CASE_DIR/other.c" <<'END'
struct { int v[3]; char project[16]; int pv[3]; char type[32]; int tv[3]; char name[64]; int cv[3]; char rest[512]; }
    mca_pml_ucx_component = {{2, 1, 0}, "ompi", {2, 1, 0}, "pml", {2, 0, 0}, "ucx", {7, 3, 1}, ""};
END
    must in_variant mpicc -shared -fPIC -o "$CASE_DIR/other.so" "$CASE_DIR/other.c"
    on_node1 mount --bind "$CASE_DIR/other.so" "$ucx"
    refused "ucx of another series" 'The PML "ucx" that pml/crypt should wrap belongs to another version of Open MPI' 'node: node1 '
    # Wrong on both nodes, for different reasons: each text tells its own node's.
    set_node node0 crypt_psk_file=$psk pml_crypt_host=ucx
    refused "ucx wrong twice" 'The PML "ucx" that pml/crypt should wrap'
    for said in 'cannot start: node: node1' 'for: node: node0'; do
        ! tr -s ' \n' ' ' < "$CASE_DIR/out" | grep -qF "$said" || { cat "$CASE_DIR/out"; fail "another node's: $said"; }
    done
    on_node1 umount "$ucx"
fi

with
runs "in order, at the end"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# btl/crypt where a kernel seals and opens (btl_crypt_ktls), in a virtual machine with Debian's: its
# connections against those in user space, and jobs between two virtual nodes, of both, of one, and of neither.
set -eu
. "$SRC/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "only root can have virtual nodes in the virtual machine"
match=$(mpi_program mpi p2p_match) rma=$(mpi_program mpi rma)

cat > "$CASE_DIR/job" <<END
set -eu
$(vm_environment)
export CASE_DIR=/tmp/case VCLUSTER_DIR=/tmp/vcluster
mkdir -p /tmp/case
modprobe -a tls veth bridge
. "\$SRC/tests/lib.sh"
must $BUILD/tests/unit/test_btl_kernel kernel

vcluster up 2 --slots 1
# job WHERE PROGRAM ARGUMENT...: the kernel has the connections of these nodes.
job() {
    local where=\$1 ends=\$(wc -w <<< "\$1"); shift
    cat > /tmp/case/rank <<'RANK'
#!/bin/sh
case " \$WHERE " in *" \$(hostname) "*) export OMPI_MCA_btl_crypt_ktls=auto ;; esac
exec "\$@"
RANK
    chmod +x /tmp/case/rank
    vcluster mpirun -n 2 --map-by node -x WHERE="\$where" -x MT_WATCHDOG=\$((LIMIT - 60)) --mca pml crypt \\
        --mca crypt_transport btl --mca crypt_report 1 /tmp/case/rank "\$@" > /tmp/case/out 2>&1 ||
        fail "kTLS on '\$where': \$(cat /tmp/case/out)"
    cat /tmp/case/out
    grep -q "kernel_peers  *\$ends\$" /tmp/case/out || fail "not \$ends ends are the kernel's"
}
job '' $match
job 'node0' $match
job 'node0 node1' $match
job 'node0 node1' $rma
OMPI_MCA_btl_crypt_replace_after=7 job 'node0 node1' $match
OMPI_MCA_btl_crypt_replace_after=7 job 'node1' $match
OMPI_MCA_btl_crypt_replace_after=7 job 'node0 node1' $match
OMPI_MCA_crypt_key_bits=256        job 'node0 node1' $match
END
in_vm "$CASE_DIR/job"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The limits of UCX over TCP: raised where nobody set them, and said in the report;
# left alone where the user set one, or UCX has no TCP to use; not left in the
# environment; and processes that differ are refused.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
program=$(mpi_program mpi metrics)
environment=$(mpi_program mpi environment)
ucx=(--mca pml_crypt_host ucx --mca pml_ucx_tls any --mca pml_ucx_devices any)
over_tcp=(-x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)

# limits WANTED ARGS...: what the report of a job on two nodes says of them
limits() {
    local wanted=$1 said; shift
    must vcluster mpirun -n 2 --map-by node "${ucx[@]}" --mca crypt_report "json:$CASE_DIR/report" "$@" "$program" \
        < /dev/null > "$CASE_DIR/job" 2>&1
    said=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["raised_limits"])' "$CASE_DIR/report")
    [ "$said" = "$wanted" ] || fail "raised_limits is '$said', not '$wanted': $*"
    ! grep -q 'unused env' "$CASE_DIR/job" || fail "UCX warns of what it cannot use: $*"
}

limits 'ucx over tcp (2)' "${over_tcp[@]}"
limits 'ucx over tcp (2)' -x UCX_TLS=all -x UCX_NET_DEVICES=eth0
limits none "${over_tcp[@]}" -x UCX_TCP_TX_SEG_SIZE=16k

mkdir "$CASE_DIR/configured"
echo 'TCP_TX_SEG_SIZE=16k' > "$CASE_DIR/configured/ucx.conf"
limits none "${over_tcp[@]}" --wdir "$CASE_DIR/configured"
echo '# TCP_TX_SEG_SIZE=16k' > "$CASE_DIR/configured/ucx.conf"
limits 'ucx over tcp (2)' "${over_tcp[@]}" --wdir "$CASE_DIR/configured"

# one node: UCX is told to do without TCP, and has nothing to warn of
must vcluster mpirun -n 2 --host node0:2 "${ucx[@]}" -x UCX_TLS=sm,self "$program" < /dev/null > "$CASE_DIR/job" 2>&1
! grep -q 'unused env' "$CASE_DIR/job" || fail "UCX warns of what it cannot use"

must vcluster mpirun -n 2 --map-by node "${ucx[@]}" "${over_tcp[@]}" "$environment" UCX_TCP_TX_SEG_SIZE UCX_TCP_RX_SEG_SIZE

if [ "$SERIES" = 5.0 ]; then
    echo "several application contexts: left out, mpirun of 5.0.7 crashes over them"
    exit 0
fi
says 'ucx_limits=raised' vcluster mpirun "${ucx[@]}" "${over_tcp[@]}" -n 1 --host node0 "$program" \
    : -n 1 --host node1 -x UCX_TCP_TX_SEG_SIZE=16k "$program"

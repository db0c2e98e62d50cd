# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What node0 has, beside what both have (common.sh): jobs over both.
. "$SRC/tests/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl=self OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any OMPI_MCA_plm_rsh_agent="$SRC/tests/rdma/agent.sh" OMPI_MCA_odls_base_sigkill_timeout=0
OUT=/tmp/out VARIABLES=()

# The modules' parameters of a way.
way_of() {
    case $1 in
        plain-ofi)  way=(--mca pml cm) ;;
        plain-*)    way=(--mca pml ucx) ;;
        ofi)        way=(--mca pml crypt --mca pml_crypt_host cm) ;;
        *)          way=(--mca pml crypt --mca pml_crypt_host ucx) ;;
    esac
    case $1 in
        *ofi)       way+=(--mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm') ;;
        *)          way+=(--mca osc ^ucx -x UCX_TLS="${1#plain-}_v,self" -x UCX_NET_DEVICES=rxe0:1 -x UCX_IB_GID_INDEX=0) ;;
    esac
}

sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }

# Its output is in $OUT, the packets that this node sent by RDMA in $packets.
run() {                                         # run HOW PROGRAM ARGUMENT...
    local before rc=0 way one begin=$SECONDS; way_of "$1"; shift
    for one in ${VARIABLES[@]+"${VARIABLES[@]}"}; do way+=(-x "$one"); done
    before=$(sent)
    mpirun --host node0,node1 -n 2 --map-by node "${way[@]}" -x MT_WATCHDOG=$((LIMIT / 2)) \
        "$@" > $OUT 2>&1 </dev/null || rc=$?
    packets=$(($(sent) - before))
    echo "    status $rc, $packets packets of RDMA, $((SECONDS - begin)) seconds of the machine, $(cut -d. -f1 /proc/uptime) since it started"
    return $rc
}

# A job that passes, and does not send by something else: more than 12 packets are RDMA's.
job() {
    echo "$*"
    run "$@" || { cat $OUT; fail "$*"; }
    [ "$packets" -gt 12 ] || fail "that was not sent by RDMA: $(cat $OUT)"
}

# refused TEXT HOW PROGRAM...: a job that fails and says TEXT, no watchdog's.
refused() {
    local text=$1; shift
    echo "! $*"
    ! run "$@" || fail "succeeded: $*"
    grep -q "$text" $OUT && ! grep -q watchdog $OUT || { cat $OUT; fail "\"$text\" is not in the output of: $*"; }
    grep -m 2 "$text" $OUT
}

until (: < /dev/tcp/node1/2222) 2>/dev/null; do :; done

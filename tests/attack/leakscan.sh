# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# leakscan.sh [few | many | btl [brief] | cm]: does payload leave a node in plaintext?
#
# A program (leak.c) runs every communicating operation of MPI on two nodes,
# with payload that can be recognized, while tcpdump takes down what every node
# sends; leakscan.py looks for the payload.  Once over plain ob1, which must
# show it for every operation that has any, and once over pml/crypt, which must
# not show it at all.  Collectives run in every component that there is.
#
# "few": not each component of collectives by itself.
# "btl": few, over btl/crypt in the place of pml/crypt, with one-sided communication in both series.
# "brief": point-to-point, up to 300,000 bytes, and one-sided communication only.
# "cm": few, over cm and libfabric.  Plain cm cannot be the control: of 4.1 it does not end where a matched receive
# takes a synchronous message.
# "many": more sizes, up to 4 MiB everywhere, and all three ways of the
# collectives in each component.
set -eu
. "$SRC/tests/lib.sh"

few= many= brief= sealed=crypt largest=4194304
case ${1-} in
    '')   ;;
    few)  few=yes ;;
    many) many=many ;;
    btl)  few=yes sealed=btl brief=${2-}
          [ -z "$brief" ] || [ "$brief" = brief ] || die "$brief: brief, or nothing"
          [ -z "$brief" ] || largest=300000 ;;
    cm)   few=yes largest=300000
          export OMPI_MCA_pml_crypt_host=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include='tcp;ofi_rxm' ;;
    *)    die "usage: leakscan.sh [few | many | btl [brief] | cm]" ;;
esac
scan=$SRC/tests/attack/leakscan/leakscan.py
canary=$(od -An -v -tx1 -N16 /dev/urandom | tr -d ' \n')
# Below 128: it also serves as the weights of a graph, which are not negative.
train=$(python3 -c 'import secrets; print(bytes(b % 128 for b in secrets.token_bytes(32)).hex())')
seconds=$SECONDS number=10

# job LABEL LARGEST GROUPS [MPIRUN-ARGUMENT...]: one program in both ways.
# LARGEST is for the short run.
job() {
    local label=$1 largest=$2 groups=$3 pml; shift 3
    number=$((number + 1))
    [ -z "$many" ] || largest=4194304
    for pml in ob1 $sealed; do
        capture_start node0 "$CASE_DIR/node0" -Q out -s 8000 -B 262144
        capture_start node1 "$CASE_DIR/node1" -Q out -s 8000 -B 262144
        (
            if [ $pml = btl ]; then export OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=btl; else export OMPI_MCA_pml=$pml; fi
            vcluster mpirun -n 4 -x MT_WATCHDOG=$((LIMIT / 3)) "$@" \
                "$leak" "$canary" "$train" "$label" $groups "largest=$largest" $many "$CASE_DIR" >"$CASE_DIR/job" 2>&1
        ) || fail "$label, $pml: $(cat "$CASE_DIR/job")"
        capture_stop node0
        capture_stop node1
        "$scan" scan "$canary" "$train" "$CASE_DIR/$pml.$number.json" "$CASE_DIR/node0" "$CASE_DIR/node1"
    done
    echo "$label: $((SECONDS - seconds)) seconds"
}

cluster_up 2 --slots 2
leak=$(mpi_program attack/leakscan leak)
# tcpdump's buffer has a place of the largest packet's size for every packet.
for node in node0 node1; do
    vcluster net $node ip link set dev eth0 gso_max_size 7800
done
ways=blocking
[ -z "$many" ] || ways='blocking nonblocking persistent'

job default    $largest p2p
[ -n "$brief" ] || job default+   65537   'coll neighbor inter blocking nonblocking persistent'
if [ -z "$few" ]; then
    job basic  65537   "coll $ways"                     --mca coll basic,libnbc,self,inter
    job tuned  4194304 'coll blocking'                  --mca coll tuned,basic,libnbc,self,inter
    job han    65537   "coll $ways"                     --mca coll_han_priority 95
    job adapt  65537   'coll adapt blocking nonblocking' --mca coll_adapt_priority 95
fi
[ -n "$brief" ] || job comms      65537   comms
# From 5.0 on pml/crypt refuses windows over two nodes (around.sh), unless btl/crypt can carry them.
if [ "$SERIES" = 4.1 ]; then
    job osc    65537   rma                              --mca osc pt2pt,sm
elif [ $sealed = btl ] || [ "${1-}" = cm ]; then
    job osc    65537   rma                              --mca osc rdma,sm
fi
[ -n "$brief" ] || job files      65537   io
# mpirun of 5.0.7 crashes when programs are spawned on two nodes, over plain ob1, too.
[ "$SERIES" != 4.1 ] || [ -n "$brief" ] || job run-time 65537 dynamic      --host node0:4,node1:4 --map-by ppr:2:node

"$scan" table "$CASE_DIR/ob1".*.json -- "$CASE_DIR/$sealed".*.json

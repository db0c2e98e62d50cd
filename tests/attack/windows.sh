# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# windows.sh ucx|cm [brief]: windows between nodes where UCX or libfabric carries messages.  From 5.0 on btl/crypt carries them: nothing
# of a put is in a capture, the user is told that they use TCP, and where they are switched off, or cannot be encrypted, no port
# is open, and a window fails.  On 4.1 they are messages.
set -eu
. "$SRC/tests/lib.sh"
. "$SRC/tests/attack/around/jobs.sh"

cluster_up 2
program=$(mpi_program attack/around canary)
look=$(mpi_program shell/switch look)
case $1 in
    ucx) over=(--mca pml_crypt_host ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0) ;;
    cm)  over=(--mca pml_crypt_host cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm') ;;
esac
over+=(--mca btl_crypt_port_min 21000 --mca btl_crypt_port_range 4 --mca crypt_report 1)
export OMPI_MCA_orte_base_help_aggregate=0
[ "$SERIES" = 4.1 ] && port=0 || port=1

listens() {                                     # listens HOW-MANY-PORTS MPIRUN-ARGUMENT...
    local ports=$1; shift
    echo "+ ports: $*"
    vcluster mpirun -n 4 "${over[@]}" "$@" "$look" > "$CASE_DIR/out" 2>&1 || fail "$(cat "$CASE_DIR/out")"
    [ "$(grep -c "^rank [0-3] sum 0 crypt $ports " "$CASE_DIR/out")" = 4 ] || fail "not $ports: $(cat "$CASE_DIR/out")"
}

# crypt_audit=warn refuses nothing, and the report does not say that it does.
warned() {
    if [ $1 != ucx ] || ! in_variant ompi_info | grep -q 'MCA osc: ucx'; then return 0; fi
    echo "== crypt_audit=warn"
    rc=0; job "${over[@]}" --mca osc ucx,sm --mca crypt_audit warn -- window || rc=$?
    in_plaintext
    grep -q '^ *windows  *PLAINTEXT POSSIBLE' "$CASE_DIR/out" || fail "the report does not say PLAINTEXT POSSIBLE"
    says_not 'refused between nodes'
}

echo "== the control"
rc=0; job --mca pml ob1 --mca osc ^ucx -- window || rc=$?        # Debian's file for 4.1 leaves out what works
in_plaintext

echo "== over $1"
listens $port
rc=0; job "${over[@]}" -- window || rc=$?
sealed
if [ "$SERIES" = 4.1 ]; then
    says_now 'messages of osc/pt2pt, which pml/crypt encrypts'
    says_not 'use TCP'
    for off in sm ^pt2pt; do
        rc=0; job "${over[@]}" --mca osc $off -- world || rc=$?
        [ $rc != 0 ] && [ "$(shown)" = 0 ] || fail "osc=$off: status $rc, $(shown) canaries"
        listens 0 --mca osc $off
        says_now '  refused between nodes: the list of components'
    done
    warned $1
    exit 0
fi
says_now '  btl/crypt, over TCP'
said_once() { [ "$(grep -c "windows between nodes use TCP (btl/crypt), messages use $1" "$CASE_DIR/out")" = 1 ] || fail "it is not said once"; }
said_once $1
rc=0; job "${over[@]}" -- pairs || rc=$?
sealed
said_once $1
echo "== without them"
offs=('osc ^rdma')
[ "${2-}" = brief ] || offs+=('osc sm' 'btl ^crypt' 'crypt_on_auth_failure error' 'crypt_transport pml')
for off in "${offs[@]}"; do
    listens 0 --mca $off
    says_now '  refused between nodes: '
    rc=0; job "${over[@]}" --mca $off -- world || rc=$?
    refused 'component: osc/' 'MPI_ERR_WIN'
done
warned $1
[ "${2-}" != brief ] || exit 0
rc=0; job "${over[@]}" -- node || rc=$?
sealed
says_not 'windows between nodes use'
if in_variant ompi_info | grep -q 'MCA osc: ucx'; then
    rc=0; job "${over[@]}" --mca osc ucx -- world || rc=$?
    refused 'component: osc/ucx'
fi

echo "== crypt_scope=all"
rc=0; job "${over[@]}" --mca crypt_scope all -- window || rc=$?
refused 'would be memory that they share'

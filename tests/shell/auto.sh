# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# pml_crypt_host=auto, the default, takes ob1 where there is no device for RDMA, whatever plain Open MPI would carry over
# TCP by ucx or libfabric; these have to be named.  The report says which it is.  Processes that differ end the job.
set -eu
. "$SRC/tests/lib.sh"
. "$SRC/tests/shell/keys_jobs.sh"

program=$(mpi_program mpi environment)
arguments=(NO_SUCH_VARIABLE)
for node in node0 node1; do
    vcluster exec $node bash -c "umask 077; printf '%064d' 7 > /dev/shm/psk"
done
export OMPI_MCA_crypt_psk_file=/dev/shm/psk
any_ucx=(--mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)
provider='tcp;ofi_rxm'

# takes WHAT HOST MPIRUN-ARG...: plain Open MPI takes that host, pml/crypt ob1, and the host if it is named.  Debian's
# parameter file names a PML, which counts for neither.
takes() {
    local what=$1 host=$2 said; shift 2
    echo "+ $what: $host"
    vcluster mpirun -n 2 --map-by node --mca pml ^crypt --mca pml_base_verbose 10 "$@" "$program" "${arguments[@]}" \
        < /dev/null > "$CASE_DIR/plain" 2>&1 || fail "$what, plain: $(cat "$CASE_DIR/plain")"
    said=$(sed -n 's/.*selected \([a-z0-9]*\) best priority.*/\1/p' "$CASE_DIR/plain" | sort | uniq -c | tr -s ' ')
    [ "$said" = " 2 $host" ] || fail "$what: plain Open MPI takes '$said', not '$host'"
    encrypted "$what: auto" ob1 "$@"
    encrypted "$what, by name" "$host" --mca pml_crypt_host "$host" "$@"
}

encrypted() {                                   # encrypted WHAT HOST MPIRUN-ARG...
    local what=$1 host=$2 said; shift 2
    must vcluster mpirun -n 2 --map-by node --mca crypt_report "json:$CASE_DIR/report" "$@" "$program" "${arguments[@]}" \
        < /dev/null > "$CASE_DIR/out"
    said=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["host"])' "$CASE_DIR/report")
    [ "$said" = "$host" ] || fail "$what takes '$said', not '$host'"
}

takes "UCX, and no device that it takes by itself" ob1
# Debian's file leaves mtl/ofi out.  Later releases do without libfabric's software providers, and 4.1 does not know net.
takes "nobody's parameters" "$([ "$SERIES" = 4.1 ] && echo cm || echo ob1)" --mca mca_base_param_files /dev/null
takes "UCX that may use TCP" ucx "${any_ucx[@]}"
takes "libfabric" cm --mca mtl ofi --mca mtl_ofi_provider_include "$provider"
takes "UCX and libfabric" ucx "${any_ucx[@]}" --mca mtl ofi --mca mtl_ofi_provider_include "$provider"

must vcluster mpirun -n 2 --map-by node --mca crypt_report "json:$CASE_DIR/report" --mca crypt_transport btl \
    "${any_ucx[@]}" "$program" "${arguments[@]}" < /dev/null
grep -q '"host": "ob1"' "$CASE_DIR/report" || fail "crypt_transport=btl is not over ob1: $(cat "$CASE_DIR/report")"

set_node node0 crypt_psk_file=/dev/shm/psk
set_node node1 crypt_psk_file=/dev/shm/psk pml_crypt_host=cm mtl=ofi "mtl_ofi_provider_include='$provider'"
# Open MPI itself compares the names, before there are peers.
refused "two nodes that differ" "selected pml cm, but peer" "on node0 selected pml ob1"
set_node node0 crypt_psk_file=/dev/shm/psk pml_crypt_host=cm mtl=ofi "mtl_ofi_provider_include='$provider'"
set_node node1 crypt_psk_file=/dev/shm/psk pml_crypt_host=cm mtl=ofi "mtl_ofi_provider_include='$provider'" mtl_ofi_tag_mode=ofi_tag_1
refused "two layouts of a tag" "These parameters must be the same on all ranks, but differ:" "contexts="

ucx=$(vcluster exec node1 ompi_info --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')
ucx=$(vcluster exec node1 find -L "$ucx" /usr/lib -name mca_pml_ucx.so 2> "$CASE_DIR/null" | head -n 1 || true)
if [ -n "$ucx" ]; then
    for node in node0 node1; do
        must vcluster exec $node mount --bind /dev/null "$ucx"
    done
fi
takes "TCP only" ob1 --mca mtl ^ofi

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# crypt_transport: by btl `--mca pml crypt` runs over btl/crypt, no other network is open, and whatever does not fit to it ends
# the job with a text.  By auto, the default, whatever does not fit means pml.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
export OMPI_MCA_crypt_transport=btl OMPI_MCA_crypt_verbose=10 OMPI_MCA_btl_crypt_port_min=21000 OMPI_MCA_btl_crypt_port_range=4
shared=$([ "$SERIES" = 4.1 ] && echo vader || echo sm)

look=$(mpi_program shell/switch look)

# runs WHAT SETTING...: four processes say so.
runs() {
    local what=$1; shift
    ( [ $# = 0 ] || export "$@"; vcluster mpirun -n 4 "$look" ${EARLY-} ) > "$CASE_DIR/out" 2>&1 || fail "$*: $(cat "$CASE_DIR/out")"
    echo "$*: $what"
    [ "$(grep -c "^rank [0-3] sum 0 $what" "$CASE_DIR/out")" = 4 ] || fail "$*: not \"$what\": $(cat "$CASE_DIR/out")"
}

# refused TEXT SETTING...: the job ends, and says so.
refused() {
    local text=$1 said rc=0; shift
    ( [ $# = 0 ] || export "$@"; vcluster mpirun -n 4 "$look" ${EARLY-} ) > "$CASE_DIR/out" 2>&1 || rc=$?
    said=$(tr -d '\0' < "$CASE_DIR/out" | tr -s ' \n' ' ')
    echo "$*: status $rc"
    [ $rc != 0 ] && [[ "$said" == *"$text"* ]] || fail "$*: not \"$text\": $(cat "$CASE_DIR/out")"
}

# differ ARG...: of a job with these arguments, some processes encrypt by btl/crypt and some by pml/crypt, and it ends.
differ() {
    local rc=0
    vcluster mpirun -n 4 --map-by node "$@" > "$CASE_DIR/out" 2>&1 || rc=$?
    [ $rc != 0 ] && grep -qaE 'crypt_transport=(btl|pml) here, crypt_transport=(btl|pml) there' "$CASE_DIR/out" ||
        fail "two modes in a job: status $rc: $(cat "$CASE_DIR/out")"
}

runs "crypt 1 others 0 shared 1"
grep -q 'ob1 over btl/crypt' "$CASE_DIR/out" || fail "it does not say what it runs over"
runs "crypt 1 others 0 shared 1" "OMPI_MCA_btl=tcp,self,$shared"
runs "crypt 1 others 0 shared 1" OMPI_MCA_btl=^tcp
runs "crypt 1 others 0 shared 0" "OMPI_MCA_btl=^$shared"
runs "crypt 1 others 0 shared 0" OMPI_MCA_btl=tcp,self
runs "crypt 1 others 0 shared 0" OMPI_MCA_crypt_scope=all
runs "crypt 1 others 0 shared 1" OMPI_MCA_crypt_key_bits=256
runs "crypt 1 others 0 shared 1" OMPI_MCA_crypt_report=1
for line in 'transport  *btl, TLS 1.3' 'key_agreement  *X25519.*' 'reporting  *4' 'sealed_peers  *[1-8]' 'local_peers  *4' 'sealed_bytes  *[1-9]'; do
    grep -q "^ *$line\$" "$CASE_DIR/out" || grep -q "^ *$line[0-9]*\$" "$CASE_DIR/out" || fail "no \"$line\" in the report: $(cat "$CASE_DIR/out")"
done
! grep -q '^ *unused ' "$CASE_DIR/out" || fail "parameters that nobody has set: $(cat "$CASE_DIR/out")"
runs "crypt 1 others 0 shared 1" OMPI_MCA_crypt_report=1 OMPI_MCA_pml_crypt_t=2 OMPI_MCA_pml_crypt_chunk_size=65536
grep -q '^ *unused  *pml_crypt_chunk_size, pml_crypt_t$' "$CASE_DIR/out" || fail "it is not said that they are unused: $(cat "$CASE_DIR/out")"
# The control: this would have been found.
runs "crypt 0 others [1-9]" OMPI_MCA_crypt_transport=pml

# What is set for btl/tcp holds: the ports, and the interface that the virtual cluster gives to all jobs.
(
    unset OMPI_MCA_btl_crypt_port_min OMPI_MCA_btl_crypt_port_range
    runs "crypt 0 others 1" OMPI_MCA_btl_tcp_port_min_v4=22000
    runs "crypt 1 others 0" OMPI_MCA_btl_tcp_port_min_v4=21000 OMPI_MCA_btl_tcp_port_range_v4=4
)

refused 'crypt_transport=btl goes over ob1'         OMPI_MCA_pml_crypt_host=ucx
impossible() {
    refused 'crypt_on_auth_failure cannot be "error": with crypt_transport=pml' OMPI_MCA_crypt_on_auth_failure=error
    refused 'a network is named (--mca btl) that would send in plaintext' OMPI_MCA_btl=self,usnic
    refused 'a network is named (--mca btl) that would send in plaintext' "OMPI_MCA_btl=tcp,ofi,self,$shared"
    refused 'TLS 1.3 has no AES-192 (crypt_key_bits=192): take 128 or 256, or crypt_transport=pml' OMPI_MCA_crypt_key_bits=192
    refused 'hook/crypt did not run'                OMPI_MCA_hook=^crypt
    refused 'that would go around btl/crypt'        OMPI_MCA_osc=ucx,sm
    refused 'that would go around btl/crypt'        OMPI_MCA_osc=^pt2pt,rdma,sm
    EARLY=early refused 'by MPI_T_init_thread before MPI_Init' OMPI_MCA_btl=tcp,self
}
impossible
refused 'collectives with a network of their own are named' OMPI_MCA_coll=tuned,basic,libnbc,self,inter,hcoll
runs "crypt 1 others 0 shared 1" OMPI_MCA_osc=^ucx

# One mode for all.
cat > "$CASE_DIR/two" <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}" -lt 2 ] || export OMPI_MCA_crypt_transport=pml
exec "$@"
END
chmod +x "$CASE_DIR/two"
differ "$CASE_DIR/two" "$look"

# The default: nothing that can be set, found or left out leads to less than btl/crypt in silence.
# automatic MODE REASON SETTING...: what it means, and why.
automatic() {
    local mode=$1 reason=$2; shift 2
    if [ "$mode" = btl ]; then
        runs "crypt 1 others 0" "$@"
        grep -q 'ob1 over btl/crypt' "$CASE_DIR/out" || fail "$*: it does not say what it runs over"
    else
        runs "crypt ${ours-0} others [1-9]" "$@"
        grep -qF "($reason)" "$CASE_DIR/out" || fail "$*: not because of \"$reason\": $(grep pml:crypt: "$CASE_DIR/out")"
    fi
}

ucx=(OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any UCX_TLS=tcp,self UCX_NET_DEVICES=eth0)
printf '%s\n' 'pml_crypt_t = 64K:1:256K' 'pml_crypt_chunk_size = 65536' > "$CASE_DIR/tuned"
unset OMPI_MCA_crypt_transport
automatic btl ''
# Children of the process have the environment of its user.
runs "crypt 1 others 0 shared 1 lent 0"
runs "crypt 1 others 0 shared 1 lent 2" OMPI_MCA_osc=^ucx OMPI_MCA_coll=^hcoll
runs "crypt 0 others [1-9] shared 1 lent 0" OMPI_MCA_crypt_transport=pml
runs "crypt 0 others [1-9] shared 1 lent 0" OMPI_MCA_crypt_transport=pml OMPI_MCA_hook=^crypt
[ "$SERIES" = 6.0 ] || automatic btl '' VCLUSTER_IF=       # Debian's own file for 6.0 has btl_tcp_if_include=lo
automatic btl '' OMPI_MCA_crypt_transport=auto
automatic btl '' "OMPI_MCA_btl=tcp,self,$shared"
automatic btl '' OMPI_MCA_btl=^openib
automatic btl '' OMPI_MCA_osc=^ucx
automatic btl '' OMPI_MCA_crypt_key_bits=256
automatic pml 'crypt_transport=pml'                             OMPI_MCA_crypt_transport=pml
automatic btl '' OMPI_MCA_coll=tuned,basic,libnbc,self,inter
automatic btl '' OMPI_MCA_crypt_scope=all
automatic btl '' OMPI_MCA_pml_crypt_chunk_size=65536
automatic btl '' OMPI_MCA_pml_crypt_t=1
automatic btl '' OMPI_MCA_mca_base_param_files="$CASE_DIR/tuned"
automatic btl '' "${ucx[@]}"
# There btl/crypt listens for windows, which 4.1 sends as messages, unless these are switched off or cannot be encrypted.
over_ucx() { automatic pml 'the host is ucx or cm' OMPI_MCA_pml_crypt_host=ucx "${ucx[@]}" "$@"; }
[ "$SERIES" = 4.1 ] || ours=1
for setting in crypt_key_bits=256 "btl=tcp,self,$shared" osc=^ucx crypt_scope=all; do
    over_ucx "OMPI_MCA_$setting"
done
ours=0
for setting in osc=^rdma osc=sm osc=ucx,rdma btl=^crypt "btl=self,$shared" crypt_key_bits=192 crypt_on_auth_failure=error hook=^crypt; do
    over_ucx "OMPI_MCA_$setting"
done
EARLY=early over_ucx OMPI_MCA_btl=tcp,self
if [ "$SERIES" != 4.1 ]; then
    sed 's/crypt_transport=pml/osc=^rdma/' "$CASE_DIR/two" > "$CASE_DIR/some"
    chmod +x "$CASE_DIR/some"
    ( export OMPI_MCA_pml_crypt_host=ucx "${ucx[@]}"; must_fail vcluster mpirun -n 4 --map-by node "$CASE_DIR/some" "$look" ) > "$CASE_DIR/out" 2>&1
    grep -qa 'windows=btl' "$CASE_DIR/out" || fail "some processes have windows: $(cat "$CASE_DIR/out")"
fi
impossible
refused 'collectives with a network of their own are named' OMPI_MCA_coll=tuned,basic,libnbc,self,inter,hcoll

# A component that one node lacks.
lacks() {                                       # lacks COMPONENT TEXT
    rm -rf "$CASE_DIR/fewer"
    cp -a "$PREFIX/lib/ompi-crypt" "$CASE_DIR/fewer"
    rm "$CASE_DIR/fewer/mca_$1.so"
    must vcluster exec node1 mount --bind "$CASE_DIR/fewer" "$PREFIX/lib/ompi-crypt"
    refused "$2"
    must vcluster exec node1 umount "$PREFIX/lib/ompi-crypt"
}
lacks btl_crypt 'ompi-crypt cannot load btl/crypt, and the job aborts on node1'
lacks hook_crypt 'on node1: hook/crypt did not run'

# A node that has another network, in whose /sys there is one.
fabric() { vcluster exec "$1" sh -c 'mount -t tmpfs none /sys/class && mkdir -p /sys/class/infiniband/mlx5_0'; }
fabric node1
automatic btl ''
fabric node0
automatic btl ''
automatic btl '' "${ucx[@]}"
automatic btl '' OMPI_MCA_mtl=ofi 'OMPI_MCA_mtl_ofi_provider_include=tcp;ofi_rxm'
automatic btl '' OMPI_MCA_crypt_transport=btl
impossible
must vcluster exec node0 umount /sys/class
must vcluster exec node1 umount /sys/class

# crypt_scope=all: a window of processes that share a node would be memory that they share.  Those of one process a node work.
cat > "$CASE_DIR/windows.c" <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, rc, got = 0, mine;
    MPI_Win window;
    int *memory;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    if (MPI_SUCCESS == rc) {
        *memory = mine = 40 + rank;
        MPI_Win_fence(0, window);
        MPI_Get(&got, 1, MPI_INT, 0 == rank, 0, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        MPI_Win_free(&window);
        rc = got == 40 + (0 == rank) ? MPI_SUCCESS : MPI_ERR_OTHER;
    }
    printf("rank %d %s\n", rank, MPI_SUCCESS == rc ? "has a window" : "has none");
    MPI_Finalize();
    return 0;
}
END
windows=$CASE_DIR/windows
must in_variant mpicc -O2 -o "$windows" "$CASE_DIR/windows.c"
# window EXPECTED PLACEMENT...
window() {
    local expected=$1; shift
    echo "+ windows, $*: $expected"
    must vcluster mpirun -n 2 "$@" "$windows" > "$CASE_DIR/out" 2>&1 < /dev/null
    [ "$(grep -cE "rank [01] $expected" "$CASE_DIR/out")" = 2 ] || fail "windows: $(cat "$CASE_DIR/out")"
}
window 'has a window' --host node0:2
! grep -q 'memory that they share' "$CASE_DIR/out" || fail "by default: $(cat "$CASE_DIR/out")"
direct=()
if [ "$SERIES" = 4.1 ]; then         # osc/pt2pt sends messages
    direct=(--mca osc ^pt2pt)
    window 'has a window' --host node0:2 --mca crypt_scope all --mca osc pt2pt
fi
window 'has none' --host node0:2 --mca crypt_scope all ${direct[@]+"${direct[@]}"}
tr -s '\n ' ' ' < "$CASE_DIR/out" | grep -q 'A window of processes that share a node would be memory that they share, which is not encrypted, and crypt_scope is "all"' ||
    fail "it is not said why: $(cat "$CASE_DIR/out")"
window 'has a window' --map-by node --mca crypt_scope all

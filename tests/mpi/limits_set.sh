# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# pml/crypt raises the limits of btl/tcp, and that of shared memory, where nobody has
# set one of the transport's, and only then: not over the environment, the command
# line or a file, not for another PML.  With those of btl/tcp it makes its cache smaller.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2 --slots 2
program=$(mpi_program mpi limits)
shm=btl_vader_eager_limit
[ "$SERIES" = 4.1 ] || shm=btl_sm_eager_limit
all() {
    local cache=17408

    [ "$1" = 262144 ] || cache=30720
    echo "btl_tcp_eager_limit=$1 btl_tcp_rndv_eager_limit=$2 btl_tcp_max_send_size=$3 $shm=${4:-4608}" \
        "btl_tcp_endpoint_cache=${5:-$cache}"
}
job() { must vcluster mpirun -n 4 "$@"; }      # shared memory is there where a node has several

job "$program" $(all 262144 262144 262144)
job --mca pml ob1 "$program" $(all 65536 65536 131072 4096)
job --mca "$shm" 5000 "$program" $(all 262144 262144 262144 5000)
job --mca btl_tcp_endpoint_cache 20000 "$program" $(all 262144 262144 262144 4608 20000)
job --mca btl_tcp_eager_limit 70000 "$program" $(all 70000 65536 131072)
job --mca btl_tcp_rndv_eager_limit 5000 "$program" $(all 65536 5000 131072)
OMPI_MCA_btl_tcp_max_send_size=100000 job "$program" $(all 65536 65536 100000)

# A file, also one that says what the default is.
echo "btl_tcp_eager_limit = 65536" > "$CASE_DIR/params"
job --mca mca_base_param_files "$CASE_DIR/params" "$program" $(all 65536 65536 131072)
echo "$shm = 4096" > "$CASE_DIR/params"
job --mca mca_base_param_files "$CASE_DIR/params" "$program" $(all 262144 262144 262144 4096)
echo "pml = crypt" > "$CASE_DIR/params"
( unset OMPI_MCA_pml; job --mca mca_base_param_files "$CASE_DIR/params" "$program" $(all 262144 262144 262144) )

[ "$SERIES" != 4.1 ] || says 'pml_crypt_chop_min' ompi_info --param pml crypt --level 9

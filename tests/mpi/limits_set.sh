# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# pml/crypt raises btl/tcp's limits where nobody has set one of them, and only
# then: not over the environment, the command line or a file, not for another PML.
set -eu
. "$SRC/tests/lib.sh"

program=$(mpi_program mpi limits)
all() { echo "btl_tcp_eager_limit=$1 btl_tcp_rndv_eager_limit=$2 btl_tcp_max_send_size=$3"; }
job() { must vcluster mpirun -n 2 "$@"; }

cluster_up 2 --slots 1
job "$program" $(all 262144 262144 262144)
job --mca pml_crypt_raise_limits 0 "$program" $(all 65536 65536 131072)
job --mca pml ob1 "$program" $(all 65536 65536 131072)
job --mca btl_tcp_eager_limit 70000 "$program" $(all 70000 65536 131072)
job --mca btl_tcp_rndv_eager_limit 5000 "$program" $(all 65536 5000 131072)
OMPI_MCA_btl_tcp_max_send_size=100000 job "$program" $(all 65536 65536 100000)

# A file, also one that says what the default is.
echo "btl_tcp_eager_limit = 65536" > "$CASE_DIR/params"
job --mca mca_base_param_files "$CASE_DIR/params" "$program" $(all 65536 65536 131072)
printf 'pml = crypt\npml_crypt_raise_limits = 0\n' > "$CASE_DIR/params"
( unset OMPI_MCA_pml; job --mca mca_base_param_files "$CASE_DIR/params" "$program" $(all 65536 65536 131072) )
echo "pml = crypt" > "$CASE_DIR/params"
( unset OMPI_MCA_pml; job --mca mca_base_param_files "$CASE_DIR/params" "$program" $(all 262144 262144 262144) )

says 'pml_crypt_raise_limits' ompi_info --param pml crypt --level 9

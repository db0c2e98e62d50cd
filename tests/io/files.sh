# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# files.sh NODESxRANKS PROGRAM [ARGUMENT...]: a program of this directory with a
# keystore that holds the labels lab and other; @DIR@ is the files' directory.
. "$SRC/tests/lib.sh"

nodes=${1%x*} ranks=${1#*x} name=$2; shift 2
mkdir "$CASE_DIR/files"
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
for label in lab other; do
    must mpicrypt key new $label --keystore-dir "$CASE_DIR/keys"
done
program=$(mpi_program io "$name")
cluster_up "$nodes" --slots "$ranks"
must vcluster mpirun -n $((nodes * ranks)) "$program" "$CASE_DIR/files" "$@"

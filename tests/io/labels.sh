# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# One job whose processes have different keystores: two with both labels, one
# with one of them, one with none.
. "$SRC/tests/io/common.sh"

mkdir "$CASE_DIR/files"
cluster_up 2
keys_in "$CASE_DIR/both" lab other
keys_in "$CASE_DIR/none" else
cp -a "$CASE_DIR/both" "$CASE_DIR/other"
rm "$CASE_DIR"/other/lab.*
program=$(mpi_program io access)
context() { echo "-n $1 -x OMPI_MCA_crypt_keystore_dir=$CASE_DIR/$2 $program $CASE_DIR/files $2"; }
must vcluster mpirun $(context 2 both) : $(context 1 other) : $(context 1 none)

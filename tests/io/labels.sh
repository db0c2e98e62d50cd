# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# One job whose processes have different keystores: two with both labels, one
# with one of them, one with none.
. "$SRC/tests/lib.sh"

mkdir "$CASE_DIR/files"
for label in lab other; do
    must mpicrypt key new $label --keystore-dir "$CASE_DIR/both"
done
must mpicrypt key new else --keystore-dir "$CASE_DIR/none"
cp -a "$CASE_DIR/both" "$CASE_DIR/other"
rm "$CASE_DIR"/other/lab.*
program=$(mpi_program io access)
cluster_up 2
context() { echo "-n $1 -x OMPI_MCA_crypt_keystore_dir=$CASE_DIR/$2 $program $CASE_DIR/files $2"; }
must vcluster mpirun $(context 2 both) : $(context 1 other) : $(context 1 none)

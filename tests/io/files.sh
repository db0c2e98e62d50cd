# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# files.sh NODESxRANKS PROGRAM [ARGUMENT...]: a program of this directory with a
# directory that all nodes share, and a keystore that holds the labels lab and other.
. "$SRC/tests/io/common.sh"

nodes=${1%x*} ranks=${1#*x} name=$2; shift 2
mkdir "$CASE_DIR/files"
cluster_up "$nodes" --slots "$ranks"
keys_in "$CASE_DIR/keys" lab other
program=$(mpi_program io "$name")
must run_io $((nodes * ranks)) "$program" "$CASE_DIR/files" "$@"

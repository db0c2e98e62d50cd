# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A failing component below fbtl/crypt, a case that only internal headers can reach.
. "$SRC/tests/io/common.sh"
set -eu

mkdir "$CASE_DIR/files"
cluster_up 1 --slots 1
program=$(internal_program ompi/mca/fbtl/crypt io/negative "$SRC/tests/io/forge/negative.c" "$SRC/tests/mpi/mt.c")
must run_io 1 "$program" "$CASE_DIR/files"

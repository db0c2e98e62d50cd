# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# kills.sh COUNT [SEED]: processes that write are killed, and the file is right (storm_kills).
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/storms.sh"

cluster_up 2 --slots 2
keys_in "$CASE_DIR/keys" lab
storm_kills "$1" "${2:-1}"

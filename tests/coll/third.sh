# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What two members of a communicator send each other in an all-to-all no third one
# can open.
. "$SRC/tests/lib.sh"
set -eu
. "$SRC/tests/coll/forge/build.sh"

export MT_WATCHDOG=60
cluster_up 3 --slots 2
third=$(forge third)
must timeout "$LIMIT" "$SRC/tests/vcluster" mpirun -n 6 -x MT_WATCHDOG "$third"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Is memory of pml/crypt used again before an adapter has read or written it?  Many large messages at a time
# (reuse.c), by reads of the sender's memory (get_zcopy), writes to the receiver's (put_zcopy), and by datagrams.
# The control is an application that overwrites its messages before they have left: it must be seen.
set -eu
. "$SRC/tests/rdma/common.sh"

reuse=$(mpi_program rdma reuse)
on_two_machines <<END
for way in rc:get rc:put ud:auto; do
    how=\${way%:*} scheme=\${way#*:}
    [ \$scheme = auto ] || scheme+=_zcopy
    VARIABLES=(UCX_RNDV_SCHEME=\$scheme UCX_RNDV_THRESH=4096)
    echo "\$how, \$scheme"
    job plain-\$how $reuse bytes=100000 messages=8 rounds=4
    refused 'wrong byte' plain-\$how $reuse bytes=100000 messages=8 rounds=4 hasty
    job \$how $reuse bytes=100000 messages=24 rounds=4
    # Messages of one frame, too.
    job \$how $reuse bytes=40000 messages=64 rounds=4
    job \$how $reuse bytes=100000 messages=8 rounds=4 fork
done
# So many that pages of stages go back to the kernel between the rounds.
VARIABLES=(UCX_RNDV_SCHEME=get_zcopy UCX_RNDV_THRESH=4096)
job rc $reuse bytes=40000 messages=300 rounds=4
job rc $reuse bytes=40000 messages=300 rounds=4 one-way
END

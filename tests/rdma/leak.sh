# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What is on the wire between two machines with RDMA?  Every 64 bytes of a program's messages begin with 16
# that can be recognized.  QEMU takes down each frame; over plain ucx those bytes are in packets of RDMA, and over pml/crypt
# in no frame of any kind.
set -eu
. "$SRC/tests/rdma/common.sh"

reuse=$(mpi_program rdma reuse)
canary=$(od -An -v -tx1 -N16 /dev/urandom | tr -d ' \n')
on_two_machines --dump "$CASE_DIR/wire" <<END
# Packets to port 9 divide what QEMU takes down.
tell() { echo "phase \$*" > /dev/udp/node1/9; }
for way in rc:get_zcopy rc:put_zcopy ud:auto; do
    VARIABLES=(CANARY=$canary UCX_RNDV_SCHEME=\${way#*:} UCX_RNDV_THRESH=4096)
    for how in plain-\${way%:*} \${way%:*}; do
        tell "\$how,\${way#*:}"
        job \$how $reuse bytes=30000 messages=3 rounds=2
        job \$how $reuse bytes=1000 messages=3 rounds=2         # in the packets of a send
    done
done
tell end
END
must python3 "$SRC/tests/rdma/wire.py" "$CASE_DIR/wire" "$canary"

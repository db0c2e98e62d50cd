# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Somebody on the wire changes a packet of RDMA between two machines (between.py).  Without the packet's
# checksum, soft-RoCE drops it and sends it again, and nobody sees anything.  With it, plain ucx gives the
# application wrong bytes, and pml/crypt ends the job.
set -eu
. "$SRC/tests/rdma/common.sh"

reuse=$(mpi_program rdma reuse)
place=$CASE_DIR/machines
mkdir "$place"
PAST_0=$place/from0 PAST_1=$place/from1
python3 "$SRC/tests/rdma/between.py" "$place/from0" "$place/1" "$place/from1" "$place/0" > "$CASE_DIR/between" &
between=$!
trap 'kill $between 2>/dev/null || true' EXIT

on_two_machines <<END
tell() { echo "\$*" > /dev/udp/node1/9; }
for way in rc:get rc:put ud:auto; do
    how=\${way%:*} scheme=\${way#*:}
    [ \$scheme = auto ] || scheme+=_zcopy
    VARIABLES=(UCX_RNDV_SCHEME=\$scheme UCX_RNDV_THRESH=4096)
    echo "\$how, \$scheme"
    tell change 1000
    job \$how $reuse bytes=30000 messages=3 rounds=2
    tell forge 1000
    refused 'wrong byte' plain-\$how $reuse bytes=30000 messages=3 rounds=2
    tell forge 1000
    refused 'failed authentication' \$how $reuse bytes=30000 messages=3 rounds=2
done
tell pass 0
END
kill $between
wait $between || true
cat "$CASE_DIR/between"
must test "$(grep -c '^change: ' "$CASE_DIR/between") $(grep -c '^forge: ' "$CASE_DIR/between")" = '3 6'

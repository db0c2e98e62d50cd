# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# ceph.sh PART: CephFS, which two nodes mount for themselves by ceph-fuse.
#
#   writers    Files that several nodes write are refused, since the server loses locks of ranges; and with the kernel's page cache
#              nodes keep pages that others overwrite.  What one node writes the others read later, also if they kept pages of it.
#              What the store changed is found.
#   failures   One node writes: processes are killed, servers are killed and start again, the node is cut off, its client killed
#              or evicted, and the pool is full.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/ceph_up.sh"

hold=$(mpi_program io hold) convert=$(mpi_program io convert)
head -c 300000 /dev/urandom > "$CASE_DIR/plain"
head -c 300000 /dev/urandom > "$CASE_DIR/plain.2"

both() { run_io 4 --host node0:2,node1:2 "$@"; }
one() { run_io 4 --host node0:4 "$@"; }

# holding NUMBER FILE: a job there has it open for writing, until `release`.
holding() {
    rm -f "$CASE_DIR/ready" "$CASE_DIR/end"
    at "$1" "$hold" "$2" "$CASE_DIR/ready" "$CASE_DIR/end" > "$CASE_DIR/held" 2>&1 & holder=$!
    until [ -e "$CASE_DIR/ready" ]; do kill -0 $holder || { cat "$CASE_DIR/held"; fail "it does not hold $2"; }; sleep 0.1; done
}
release() { touch "$CASE_DIR/end"; wait $holder; }

# refused VERDICT: files that both nodes write are, and doctor says why.
refused() {
    must_refuse "a part of a range that another node has locked is free" both "$convert" write "$CASE_DIR/plain" "$mnt/refused"
    says "$1" "$PREFIX/bin/mpicrypt" doctor --mpirun "$SRC/tests/vcluster mpirun --host node0,node1" --path "$mnt"
    [ -z "$(on 0 ls -A "$mnt" | grep mpicrypt-doctor)" ] || fail "doctor has left files"
}

# one_writer: and others that read, or that would write.
one_writer() {
    must one "$convert" write "$CASE_DIR/plain" "$mnt/alone"
    must both "$convert" read "$CASE_DIR/plain" "$mnt/alone"
    must on 1 python3 -c "
import os, sys
print('attribute through the other mount:', len(os.getxattr(sys.argv[1], 'user.mpicrypt.map')), 'bytes')" "$mnt/alone"
    holding 0 "$mnt/held"
    must_refuse "Another node has this encrypted file open" at 1 "$hold" "$mnt/held"
    must release
    must at 1 "$hold" "$mnt/held"
}

# changed_in_store FILE: a byte of its data, in the object that has it, of 4 MiB.
changed_in_store() {
    local inode object at
    inode=$(on 0 stat -c %i "$1")
    printf -v object '%x.00000000' "$inode"
    must on 2 rados -p data get "$object" "$CASE_DIR/object"
    at=$(data_at "$CASE_DIR/object" 5)
    printf -v object '%x.%08x' "$inode" $((at >> 22))
    must on 2 rados -p data get "$object" "$CASE_DIR/object"
    poke "$CASE_DIR/object" $((at & ((1 << 22) - 1)))
    must on 2 rados -p data put "$object" "$CASE_DIR/object"
}

writers() {
    . "$SRC/tests/io/offsets.sh"
    ceph_up memstore
    keys_in "$CASE_DIR/keys" lab other
    for n in 0 1; do ceph_mount $n; done
    refused "writers on several nodes: NOT safe: "
    one_writer

    echo "--- pages that a node read while another had the file open for writing"
    "$SRC/tests/vcluster" exec node0 python3 -c "
import os, signal, sys
os.open(sys.argv[1], os.O_RDWR)
open(sys.argv[2], 'w').close()
signal.pause()" "$mnt/alone" "$CASE_DIR/open" & opener=$!
    until [ -e "$CASE_DIR/open" ]; do kill -0 $opener || fail "it is not open"; sleep 0.1; done
    # What the server makes a client drop while it reads can stop both for ever (docs/mpi-io.rst): this client has nothing to drop.
    ceph_unmount 1
    ceph_mount 1
    must at 1 "$convert" read "$CASE_DIR/plain" "$mnt/alone"
    must at 0 "$convert" over "$CASE_DIR/plain.2" "$mnt/alone"
    kill $opener
    wait $opener || true
    must at 1 "$convert" read "$CASE_DIR/plain.2" "$mnt/alone"
    must on 1 mpicrypt file decrypt "$mnt/alone" "$CASE_DIR/back" --keystore-dir "$CASE_DIR/keys"
    must cmp "$CASE_DIR/back" "$CASE_DIR/plain.2"

    echo "--- to another file system, and back"
    must on 1 mv "$mnt/alone" "$CASE_DIR/moved"
    must both "$convert" read "$CASE_DIR/plain.2" "$CASE_DIR/moved"
    must on 1 mv "$CASE_DIR/moved" "$mnt/alone"
    must both "$convert" read "$CASE_DIR/plain.2" "$mnt/alone"

    echo "--- without the kernel's page cache"
    for n in 0 1; do
        must on $n umount "$mnt"
        wait "${CEPH_PID[$n.ceph-fuse]}" || true
        ceph_mount $n --fuse-disable-pagecache=true
    done
    refused "writers on several nodes: NOT safe: node1 could lock a part of a range that node0 had locked"
    one_writer

    echo "--- the store changes a byte of what node1 has never read"
    must one "$convert" write "$CASE_DIR/plain" "$mnt/changed"
    must on 0 sync "$mnt/changed"
    changed_in_store "$mnt/changed"
    must_refuse "is not what a holder of the key wrote" at 1 "$convert" read "$CASE_DIR/plain" "$mnt/changed"
}

# interrupted WHAT COMMAND...: a storm goes on after the command, and its file is right.
seed=0
interrupted() {
    echo "--- $1"; shift
    storm_begin "$CASE_DIR/storm" $((++seed))
    "$@"
    storm_goes_on "$CASE_DIR/storm"
    storm_end "$CASE_DIR/storm"
    storm_check "$CASE_DIR/storm"
}
again() { ceph_kill 2 ceph-$1; ceph_start $1; }
cut_off() {
    vcluster net switch ip link set port0 down
    sleep 10
    vcluster net switch ip link set port0 up
}
ends() { ! wait "$1" || fail "it did not fail"; }

failures() {
    . "$SRC/tests/io/storms.sh"
    storm_on=(--host node0:4)
    ceph_up bluestore
    keys_in "$CASE_DIR/keys" lab other
    for n in 0 1; do ceph_mount $n; done
    # The shortest that the servers allow; with 60 and 300 seconds, the default, others wait longer for the locks of a client that is gone.
    must ceph fs set shared session_timeout 30
    must ceph fs set shared session_autoclose 30

    echo "--- processes are killed"
    storm_kills 6 5 "$mnt"
    storm_directory "$CASE_DIR/storm" "$mnt/storm"
    for server in osd mds mon; do interrupted "a server is killed, and starts again: $server" again $server; done
    interrupted "the node is cut off for 10 seconds" cut_off

    echo "--- the client is killed, with what it had not sent: its job fails, and another one goes on once the server has dropped its locks"
    export OMPI_MCA_fs_crypt_durable=1
    storm_begin "$CASE_DIR/storm" $((++seed))
    ceph_unmount 0
    ends $storm_job
    storm_gone "$CASE_DIR/storm"
    ceph_mount 0
    storm_check "$CASE_DIR/storm" lost=1
    unset OMPI_MCA_fs_crypt_durable

    echo "--- a client is evicted, as after a longer cut: its job fails, and the other node has the file"
    holding 1 "$mnt/held"
    must_refuse "Another node has this encrypted file open" at 0 "$hold" "$mnt/held"
    must ceph tell mds.a client evict client_metadata.hostname=node1
    must at 0 "$hold" "$mnt/held"
    must_fail release
    cat "$CASE_DIR/held"
    must at 0 "$hold" "$mnt/held"
    ceph_unmount 1
    ceph_mount 1

    echo "--- the pool is full"
    must one "$convert" write "$CASE_DIR/plain" "$mnt/before"
    must on 0 sync "$mnt/before"
    holding 1 "$mnt/held"
    must ceph osd pool set-quota data max_objects 1
    ceph_until 2 ceph-mgr ceph_is POOL_FULL health detail
    must_fail release
    cat "$CASE_DIR/held"
    grep -q "No space left on device" "$CASE_DIR/held" || fail "it does not say why"
    must_refuse "No space left on device" one "$convert" write "$CASE_DIR/plain" "$mnt/full"
    # sharedfp/lockedfile of 4.1 makes a file of its own; if it cannot, the other processes wait for ever.
    must both --mca sharedfp ^lockedfile "$convert" read "$CASE_DIR/plain" "$mnt/before"
    must ceph osd pool set-quota data max_objects 0
    while ceph_is POOL_FULL health detail; do sleep 0.2; done
    must one "$convert" write "$CASE_DIR/plain" "$mnt/full"
    must both "$convert" read "$CASE_DIR/plain" "$mnt/full"
}

"$1"

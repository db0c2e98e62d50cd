# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Nothing of an encrypted file is in clear on disk, in files beside it while
# it is open, or between the nodes.  The same job without encryption shows that
# we look at the right places.
. "$SRC/tests/io/common.sh"

cluster_up 2 --slots 2
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io canary)
canary=the-canary-sings-in-clear-text

# leak NAME WAY [MPIRUN-ARG...]: with both nodes captured; prints what was on the wire.
leak() {
    local name=$1 way=$2 node; shift 2
    mkdir "$CASE_DIR/$name"
    for node in node0 node1; do
        capture_start $node "$CASE_DIR/$name.$node.pcap" -B 262144
    done
    must vcluster mpirun -n 4 "$@" "$program" "$CASE_DIR/$name" file "$way"
    for node in node0 node1; do
        capture_stop $node
    done
}
on_the_wire() { grep -qa "$canary" "$CASE_DIR/$1".node?.pcap; }

leak plain plain --mca pml ob1
on_the_wire plain || fail "the capture does not see plain data"
leak sealed sealed --mca fs_crypt_key_label lab
must_fail on_the_wire sealed
leak locked sealed --mca fs_crypt_key_label lab --mca sharedfp lockedfile
must_fail on_the_wire locked
leak unshared unshared --mca fs_crypt_key_label lab --mca sharedfp individual
must_fail on_the_wire unshared
rm -f "$CASE_DIR"/*.pcap

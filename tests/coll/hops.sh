# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Over btl/crypt, coll/cryptag seals nothing.  So: a capture of all its algorithms shows no
# plaintext, and that of plain Open MPI, the control, does; it is used in all processes or
# in none; and without pml/crypt it does not run at all.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2 --slots 2
marked=$(mpi_program coll marked)
text=$(od -An -v -tx1 -N16 /dev/urandom | tr -d ' \n')

# seen SETTING...: in how many nodes' captures is the text?
seen() {
    capture_start node0 "$CASE_DIR/node0" -Q out -B 262144
    capture_start node1 "$CASE_DIR/node1" -Q out -B 262144
    ( export "$@"; vcluster mpirun -n 4 "$marked" "$text" ) > "$CASE_DIR/out" 2>&1 || fail "$*: $(cat "$CASE_DIR/out")"
    capture_stop node0
    capture_stop node1
    { grep -laF "$(python3 -c 'print(input()[::-1])' <<<"$text")" "$CASE_DIR/node0" "$CASE_DIR/node1" || true; } | wc -l
}

shared=$([ "$SERIES" = 4.1 ] && echo vader || echo sm)
# expect NODES SAID SETTING...: it is seen on so many nodes, and the program says that.
expect() {
    local nodes=$1 said=$2 got; shift 2
    got=$(seen "$@")
    echo "$*: in plaintext on $got nodes, $(grep ^sent "$CASE_DIR/out")"
    [ "$got" = "$nodes" ] || fail "$*: not on $nodes nodes"
    grep -q "^$said\$" "$CASE_DIR/out" || fail "$*: not \"$said\": $(cat "$CASE_DIR/out")"
}
expect 2 'sent no, sealed no'   OMPI_MCA_pml=ob1
expect 0 'sent yes, sealed no'  OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=btl
expect 0 'sent no, sealed no'   OMPI_MCA_pml=ob1 "OMPI_MCA_btl=crypt,self,$shared"
expect 0 'sent yes, sealed yes' OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=pml

# refused TEXT SETTING: on the other node.  (Processes of one node do not look at each other's records.)
cat > "$CASE_DIR/some" <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}" -lt 2 ] || export "$SOME"
exec "$@"
END
chmod +x "$CASE_DIR/some"
refused() {
    local text=$1 rc=0; shift
    ( export OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=btl "SOME=$1"
      vcluster mpirun -x SOME -n 4 --map-by slot "$CASE_DIR/some" "$marked" "$text" ) > "$CASE_DIR/out" 2>&1 || rc=$?
    echo "$1 on one node: status $rc"
    [ $rc != 0 ] && tr -d '\0' < "$CASE_DIR/out" | tr -s ' \n' ' ' | grep -qF "$text" ||
        fail "$1 on one node: not \"$text\": $(cat "$CASE_DIR/out")"
}
refused 'coll_cryptag=off'               OMPI_MCA_coll=^cryptag
for setting in shm_max=0 fragment=2048 bcast_algorithm=chain; do
    refused 'parameters of coll/cryptag' OMPI_MCA_coll_cryptag_$setting
done

says 'pml/crypt is not in use' env OMPI_MCA_pml=ob1 OMPI_MCA_coll=cryptag,basic,libnbc,self,inter \
    "$SRC/tests/vcluster" mpirun -n 2 "$marked" "$text"

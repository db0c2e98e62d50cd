# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Another user has made /dev/shm/ompi-crypt-node-UID first: on that node everything is
# sealed, with a warning, and the job works.
set -eu
. "$SRC/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "only root can give a file to another user"
cluster_up 1
program=$(mpi_program mpi p2p_empty)
peers() {
    must vcluster mpirun -n 2 --mca crypt_report "json:$CASE_DIR/report" "$program" > "$CASE_DIR/out" 2>&1 < /dev/null
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(r["sealed_peers"], r["local_peers"])' "$CASE_DIR/report"
    rm -f "$CASE_DIR/report"
}

[ "$(peers)" = "0 2" ] || fail "processes of one node do not know each other: $(cat "$CASE_DIR/out")"
vcluster exec node0 sh -c 'rm -f /dev/shm/ompi-crypt-node-0; head -c 16 /dev/zero > /dev/shm/ompi-crypt-node-0;
                           chmod 600 /dev/shm/ompi-crypt-node-0; chown 4711 /dev/shm/ompi-crypt-node-0'
[ "$(peers)" = "2 0" ] || fail "not everything is sealed: $(cat "$CASE_DIR/out")"
grep -q 'another user owns the object' "$CASE_DIR/out" || fail "no warning"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# key_nodes.sh [server]: three nodes with a keystore each.  A label's key comes to the second by push and to the third by a
# message, or (server) stays on a key server, where each node has a login of its own; then a job on all three writes one file.
# Before, the node that lacks the key is named.
set -eu
. "$SRC/tests/lib.sh"
[ $# = 0 ] || . "$SRC/tests/tool/key/server.sh"
cluster_up 3 --slots 1
home=/dev/shm/keys-of-nodes
for node in node0 node1 node2; do vcluster exec $node mkdir -m 700 $home; done
export HOME=$home
unset OMPI_MCA_crypt_keystore_dir
printf '#!/bin/sh\nexec "%s/tests/vcluster" agent "$@"\n' "$SRC" > "$CASE_DIR/rsh"
chmod +x "$CASE_DIR/rsh"
echo 'five random words of nobody' > "$CASE_DIR/pass"
chmod 600 "$CASE_DIR/pass"
seq 1 50000 > "$CASE_DIR/plain"
job() { vcluster mpirun -n 3 --map-by ppr:1:node -x HOME --mca fs_crypt_key_label lab "$(mpi_program io named)" make "$CASE_DIR/plain" "$CASE_DIR/shared" 0; }
lacking() {                                             # lacking RANK...: these, and no others, have no key
    local rank failed=
    job > "$CASE_DIR/out" 2>&1 && fail "it ran without a key"
    cat "$CASE_DIR/out"
    for rank in 0 1 2; do
        ! grep -q "^rank $rank: .*MPIX_ERR_CRYPT_NO_KEY" "$CASE_DIR/out" || failed+=" $rank"
    done
    [ "$failed" = " $*" ] || fail "without a key:$failed"
    rm -f "$CASE_DIR/shared"
}

fingerprint() { vcluster exec "$1" mpicrypt key list --json | grep -o '"fingerprint": "[0-9a-f]\+"'; }
if [ $# = 0 ]; then
    must vcluster exec node0 mpicrypt key new lab
    first=$(fingerprint node0) || fail "no fingerprint"
    echo "--- only the first node has the key"
    lacking 1 2

    echo "--- push"
    must vcluster exec node0 mpicrypt key push lab --hosts node1 --rsh "$CASE_DIR/rsh"
    lacking 2

    echo "--- a message"
    must vcluster exec node0 mpicrypt key export lab --passphrase-file "$CASE_DIR/pass" --out "$CASE_DIR/lab.cms" --allow-netfs
    must vcluster exec node2 mpicrypt key import "$CASE_DIR/lab.cms" --passphrase-file "$CASE_DIR/pass" --allow-netfs
else
    trap 'server_stops; vcluster down > /dev/null 2>&1 || true' EXIT
    SERVER_IN="$SRC/tests/vcluster exec node0" must server start "$bao" 10.99.0.1
    # given NODE FILE...: what it needs for its login, on its own disk
    given() {
        local node=$1; shift
        vcluster exec "$node" install -D -m 600 -t $home/.ompi-crypt "$@"
        vcluster exec "$node" install -D -m 600 -t $home/.ompi-crypt/keys keys/vault.conf
    }
    conf "token root"
    given node0 server/root
    must vcluster exec node0 mpicrypt key new lab
    echo "--- only the first node has a login"
    lacking 1 2
    conf "role $(cat server/role-id)" "secret-id secret-id"
    given node1 server/secret-id
    echo "--- and the second"
    lacking 2
    conf "role job" "certificate client.pem" "key client.key"
    given node2 server/client.pem server/client.key
fi

echo "--- one file"
must job
must_fail cmp -s -n 100 "$CASE_DIR/plain" "$CASE_DIR/shared"
for node in node0 node1 node2; do
    [ $# != 0 ] || [ "$(fingerprint $node)" = "$first" ] || fail "$node has another key"
    must vcluster exec $node mpicrypt file verify "$CASE_DIR/shared"
    must cmp <(vcluster exec $node mpicrypt file cat "$CASE_DIR/shared") "$CASE_DIR/plain"
done

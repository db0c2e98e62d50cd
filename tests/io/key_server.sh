# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# key_server.sh RANKS: what the ranks of a job ask a key server, counted in its audit log.  Each asks for itself, and as
# often as docs/design/020-key-server.rst says; nobody asks twice for one thing.  Then the server goes away under a job.
set -eu
ranks=${1:-8}
. "$SRC/tests/tool/key/server.sh"
. "$SRC/tests/io/common.sh"
trap 'server_stops; vcluster down > /dev/null 2>&1 || true' EXIT
cluster_up 2 --slots $((ranks / 2))
export SERVER_IN="$SRC/tests/vcluster exec node0"
must server start "$bao" 10.99.0.1
here=$CASE_DIR/server
api POST transit/keys/lab '{"type": "aes256-gcm96"}'
seq 1 20000 > plain
program=$(mpi_program io named)
# job COUNT VERB [OPTION...]
job() { local n=$1 verb=$2; shift 2; run_io "$n" "$@" "$program" "$verb" "$CASE_DIR/plain" "$CASE_DIR/file" 0; }
# asked PATH: how often since the last mark
mark() { server requests > marked; }
asked() { server requests > now; awk -v path="$1" 'FNR == 1 { ++file } $2 == path { n += file == 1 ? -$1 : $1 } END { print n + 0 }' marked now; }
# exactly NUMBER PATH
exactly() { local found; found=$(asked "$2"); [ "$found" = "$1" ] || fail "$2: $found requests, not $1"; echo "$2: $1"; }

echo "--- $ranks ranks make a file"
conf "role $(cat server/role-id)" "secret-id $here/secret-id"
mark
must job "$ranks" make --mca fs_crypt_key_label lab
exactly "$ranks" auth/approle/login
exactly 1 transit/keys/lab
exactly 1 transit/hmac/lab/sha2-256
exactly 1 transit/encrypt/lab
echo "transit/decrypt/lab: $(asked transit/decrypt/lab)"
must test "$(asked transit/decrypt/lab)" -le $((ranks + 1))

echo "--- $ranks ranks read it"
mark
must job "$ranks" read
exactly "$ranks" auth/approle/login
exactly "$ranks" transit/decrypt/lab
exactly 0 transit/keys/lab
exactly 0 transit/hmac/lab/sha2-256

echo "--- with tokens, no login"
conf "token $here/token-reader"
mark
must job "$ranks" read
exactly 0 auth/approle/login
exactly "$ranks" transit/decrypt/lab

echo "--- a rank that cannot reach the server: the open fails, and the rank says why"
mkdir elsewhere
sed 's,^address .*,address https://10.99.0.1:9,' keys/vault.conf > elsewhere/vault.conf
printf '#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export OMPI_MCA_crypt_keystore_dir=%s\nexec "$@"\n' "$CASE_DIR/elsewhere" > one-rank
chmod 700 one-rank
must_refuse "10.99.0.1:9: no connection: Connection refused" run_io 2 "$CASE_DIR/one-rank" "$program" read "$CASE_DIR/plain" "$CASE_DIR/file" 0

echo "--- no server: one message on each node, and no rank waits for another"
must server stop
conf "token $here/token-reader" "timeout 3"
must_refuse "no connection: Connection refused" job 4 read

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# key_server.sh RANKS: what the ranks of a job ask a key server, counted in its audit log.  Each asks for itself, and as
# often as docs/design/020-key-server.rst says; nobody asks twice for one thing.  Then the server limits what is asked about one
# of two labels, and goes away under a job.
set -eu
ranks=${1:-8}
. "$SRC/tests/tool/key/server.sh"
. "$SRC/tests/io/common.sh"
cluster_up 2 --slots $((ranks / 2))
trap 'server_stops; vcluster down > /dev/null 2>&1 || true' EXIT
export SERVER_IN="$SRC/tests/vcluster exec node0"
must server start "$bao" 10.99.0.1
here=$CASE_DIR/server
api POST transit/keys/lab '{"type": "aes256-gcm96"}'
seq 1 20000 > plain
program=$(mpi_program io named)
# job COUNT VERB [OPTION...]
job() { local n=$1 verb=$2; shift 2; run_io "$n" "$@" "$program" "$verb" "$CASE_DIR/plain" "$CASE_DIR/file" 0; }
# asked PATH [limited]: how often since the last mark, or how often beyond the server's limit
mark() { server requests > marked; }
asked() { server requests > now; awk -v path="$1" -v how="${2:-}" 'FNR == 1 { ++file } $2 == path && (how == "" || $3 == how) { n += file == 1 ? -$1 : $1 } END { print n + 0 }' marked now; }
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

echo "--- files that follow a new version"
conf "token $here/token-lab"
mkdir many
for i in 1 2 3 4 5 6 7 8; do must vcluster exec node0 mpicrypt file encrypt plain many/$i --label lab; done
api POST transit/keys/lab/rotate '{}'
mark
must vcluster exec node0 mpicrypt file rekey --recursive many
exactly 1 transit/keys/lab
exactly 1 transit/hmac/lab/sha2-256
exactly 8 transit/encrypt/lab
exactly 16 transit/decrypt/lab

echo "--- two labels, and the server's limit for one of them"
api POST transit/keys/other '{"type": "aes256-gcm96"}'
api POST sys/quotas/config '{"enable_rate_limit_audit_logging": true}'
limit() { api POST sys/quotas/rate-limit/other "{\"path\": \"transit/decrypt/other\", \"rate\": 1, \"interval\": \"$1\"}"; }
two() { run_io 4 "$(mpi_program io convert)" "$1" "$CASE_DIR/$2" "$CASE_DIR/two"; }
tac plain > turned
conf "token $here/root" "timeout 4"
must two write turned
mark
must two over plain
must two read plain
exactly 8 transit/decrypt/other                             # by two jobs of four ranks
cksum two > before
limit 1h
for verb in read over; do
    mark
    must_refuse "it answers 429 to transit/decrypt/other: " two $verb turned > said
    cat said
    [ "$(tr -s ' \n' ' ' < said | grep -o 'it answers 429 to' | wc -l)" = 1 ] || fail "not one message"
    exactly 4 transit/decrypt/lab                           # once for the three copies of the map
done
must cmp before <(cksum two)
limit 2s
conf "token $here/root"
mark
must two over turned
must two read turned
exactly 8 transit/decrypt/lab
must test "$(asked transit/decrypt/other)" -gt 8
must test "$(asked transit/decrypt/other limited)" -ge 1
api DELETE sys/quotas/rate-limit/other

echo "--- a server by a name of /etc/hosts"
vcluster exec node0 sh -c 'echo 10.99.0.1 keys.example >> /etc/hosts'
address=https://keys.example:$(sed 's/.*://' server/address) conf "token $here/token-reader"
must vcluster exec node0 mpicrypt file verify file

echo "--- no server: one message on each node, and no rank waits for another"
must server stop
conf "token $here/token-reader" "timeout 3"
must_refuse "no connection: Connection refused" job 4 read

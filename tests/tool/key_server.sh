# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A key server: OpenBao with TLS, each login, rotation, what a policy forbids, a server that is sealed, gone, slow, busy, or
# lies.  Every refusal is one message, ends in time, and changes no file.
set -eu
. "$SRC/tests/tool/key/server.sh"
trap 'server_stops; [ -z "${agent:-}" ] || kill "$agent" 2> /dev/null || true' EXIT
must server start "$bao" 127.0.0.1
here=$CASE_DIR/server
seq 1 30000 > plain

echo "== keys, by an administrator"
conf "token $here/root"
says "lab, version 1 (key" must mpicrypt key new lab
must mpicrypt key new other
refused "there is a key for this label already" mpicrypt key new lab
says "lab" must mpicrypt key list
first=$(mpicrypt key list --json | python3 -c 'import json, sys; print(next(k["fingerprint"] for k in json.load(sys.stdin) if k["label"] == "lab"))')
mac=$(server api POST transit/hmac/lab/sha2-256 "{\"input\": \"$(printf 'ompi-crypt fingerprint 1' | base64)\", \"key_version\": 1}" |
    sed -n "s/.*'hmac': 'vault:v1:\([^']*\)'.*/\1/p")
[ "$({ printf 'ompi-crypt v1 key fingerprint'; printf %s "$mac" | base64 -d; } | sha256sum | cut -c 1-32)" = "$first" ] ||
    fail "the fingerprint is not as docs/file-format.rst says: $first, $mac"
refused "this is done at the key server, by its policies and commands: owners, a last day or a recovery key of more" mpicrypt key new more --not-after 2099-01-01
refused "this is done at the key server" mpicrypt key revoke lab --yes
refused "the keys of a token or key server cannot leave it" mpicrypt key backup --passphrase-file "$here/root" --out backup
refused "the keys of a token or key server cannot leave it" mpicrypt key delete lab --yes

echo "== logins"
must server jwt someone
role=$(cat server/role-id)
encrypted=0
for login in "token $here/token-lab" "role $role"$'\n'"secret-id $here/secret-id" "role job"$'\n'"jwt $here/jwt" \
    "role job"$'\n'"certificate $here/client.pem"$'\n'"key $here/client.key"; do
    conf "$login"
    must mpicrypt file encrypt plain file.$((++encrypted)) --label lab
    must mpicrypt file decrypt file.$encrypted back
    must cmp plain back
    rm back
done
says "${first:0:16}" must mpicrypt file info file.1

echo "== secrets: not in memory that a core file has, arguments, environment; nor in a log"
# The data key, which only root may ask for here: the wrapped key lies behind the fingerprint in the file's map.
python3 - "$first" file.1 > needles <<'END'
import base64, sys
data = open(sys.argv[2], "rb").read()
at = data.index(bytes.fromhex(sys.argv[1])) - 4
assert data[at:at + 4] == b"\1\3\1\0" and data[at + 28:at + 30] == b"\x3c\0" and data[at + 90:at + 92] == b"\0\0"
print("wrapped", base64.b64encode(data[at + 30:at + 90]).decode())
END
read -r _ wrapped < needles
key=$(server api POST transit/decrypt/lab "{\"ciphertext\": \"vault:v1:$wrapped\", \"associated_data\": \"$(printf 'ompi-crypt v1 data key' | base64)\"}" |
    sed -n "s/.*'plaintext': '\([^']*\)'.*/\1/p")
[ ${#key} = 44 ] || fail "no data key: $key"
text() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }
{
    echo "data-key $(printf %s "$key" | base64 -d | od -An -v -tx1 | tr -d ' \n')"
    echo "data-key-in-base64 $(text "$key")"
    for name in token-lab secret-id jwt; do echo "$name $(text "$(cat server/$name)")"; done
    echo "pem-of-the-client $(text "$(sed -n 2p server/client.key)")"
} > needles
export CONTROL=the-control-of-this-test
search() { must python3 -B "$SRC/tests/tool/key/memory.py" "$1" the-control-of-this-test back -- mpicrypt file cat file.1; must cmp plain back; }
lacks() { local rc=0; grep "$@" || rc=$?; [ $rc = 1 ] || fail "$name is in a log, as $how (status $rc)"; }
# in_no_log LOG...: none of the secrets of `needles`; but each log has a line of what happened here
in_no_log() {
    local log name secret count=0
    for log in "$@"; do must grep -qaE 'decrypt/lab|unwrap label=lab|vault is unsealed' "$log"; done
    while read -r name secret; do
        count=$((count + 1))
        printf %b "$(sed 's/../\\x&/g' <<< "$secret")" > secret
        [ "$name" = data-key ] || how=bytes lacks -qaFf secret "$@"     # there, the end of a line may be among them
        how=digits lacks -qaiF -- "$secret" "$@"
    done < "${needles:-needles}"
    [ "$count" -ge 6 ] || fail "$count secrets were searched"
}
# planted NAME HOW TEXT: it is found
planted() {
    printf 'decrypt/lab\n%s\n' "$3" > planted
    ! ( in_no_log server/audit.log planted ) > found 2>&1 || fail "what is planted is not found"
    must grep -qxF "failed: $1 is in a log, as $2 (status 0)" found
}
planted jwt bytes "a $(cat server/jwt) token"
planted data-key digits "$(sed -n 's/^data-key //p' needles | tr a-f A-F)"
certificate="certificate $here/client.pem"$'\n'"key $here/client.key"
for login in "token $here/token-lab" "role $role"$'\n'"secret-id $here/secret-id" "role job"$'\n'"jwt $here/jwt" "$certificate"; do
    conf "$login"
    search needles
done
# But for the number in the client's private key, which OpenSSL has as long as the keystore is open.
{ cat needles; echo "number-of-the-client $(openssl pkey -in server/client.key -outform DER | od -An -v -tx1 | tr -d ' \n' | sed 's/.*0201010420\(.\{64\}\).*/\1/')"; } > needles.more
must_fail python3 -B "$SRC/tests/tool/key/memory.py" needles.more the-control-of-this-test back -- mpicrypt file cat file.1 > found
grep -vE '^\+ |^[0-9]+ secrets, ' found | sort -u > named
must grep -q . named
must_fail grep -vxE 'number-of-the-client is in memory, as (bytes|reversed)' named
in_no_log server/audit.log server/bao.log keys/log
liar
# Something that ends the server's TLS sees them all; its log of what is asked, and we, have none.
cp needles server/seen; : > server/liar.log
for login in "token $here/token-lab" "role $role"$'\n'"secret-id $here/secret-id" "role job"$'\n'"jwt $here/jwt" "$certificate"; do
    address=$(cat server/liar) conf "$login" "mount honest"
    search server/seen
done
must test "$(grep -c '^POST /v1/auth/[a-z]*/login ' server/liar.log)" = 3
must test "$(grep -c '^token-of-a-login ' server/seen)" = 3
must test "$(grep -c '^POST /v1/honest/decrypt/lab ' server/liar.log)" = 4
needles=server/seen in_no_log server/liar.log server/audit.log server/bao.log keys/log
unset CONTROL

echo "== an agent"
# An agent of the same user, which has a token of its own: none here.
cat > agent.hcl <<END
vault { address = "$(cat server/address)"
        ca_cert = "$here/ca.pem" }
auto_auth { method "approle" { config = { role_id_file_path = "$here/role-id", secret_id_file_path = "$here/secret-id",
                                          remove_secret_id_file_after_reading = false } }
            sink "file" { config = { path = "$CASE_DIR/agent.token" } } }
api_proxy { use_auto_auth_token = true }
listener "unix" { address = "$CASE_DIR/agent.sock"
                  tls_disable = true
                  require_request_header = true }
END
env HOME="$CASE_DIR" "$bao" agent -config=agent.hcl -log-level=trace > agent.log 2>&1 &
agent=$!
until [ -S agent.sock ] && [ -s agent.token ]; do kill -0 "$agent" || fail "$(cat agent.log)"; sleep 0.05; done
echo "address unix:$CASE_DIR/agent.sock" > keys/vault.conf
must mpicrypt file verify file.1
{ cat needles; echo "token-of-the-agent $(text "$(cat agent.token)")"; } > needles.agent
CONTROL=the-control-of-this-test search needles.agent
kill "$agent"; wait "$agent" || true; agent=
needles=needles.agent in_no_log agent.log server/audit.log server/bao.log keys/log
refused "unix:$CASE_DIR/agent.sock: no connection: " mpicrypt file verify file.1

echo "== what is not taken from the environment, nor from a file that others can read"
conf "token $here/token-lab"
must env https_proxy=http://127.0.0.1:9 HTTPS_PROXY=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9 VAULT_ADDR=https://127.0.0.1:9 \
    BAO_ADDR=https://127.0.0.1:9 mpicrypt file verify file.1
cp server/root readable; chmod 644 readable
conf "token $CASE_DIR/readable"
refused "other users can read or change a file with a secret" mpicrypt file verify file.1
conf "token $here/absent"
VAULT_TOKEN=$(cat server/root) BAO_TOKEN=$(cat server/root) refused "a file with a secret does not exist" mpicrypt file verify file.1
printf 'a token\r\nX-Evil: 1' > evil
conf "token $CASE_DIR/evil"
refused "not one line of printable characters" mpicrypt file verify file.1
conf "token $here/token-lab"
chmod 666 keys/vault.conf
refused "other users can change this file" mpicrypt file verify file.1
chmod 600 keys/vault.conf

echo "== certificates"
cp server/ca.pem ca.right; cp server/other.pem server/ca.pem
refused "its certificate is not accepted: " mpicrypt file verify file.1
cp ca.right server/ca.pem
port=$(sed 's/.*://' server/address)
address=https://localhost:$port conf "token $here/token-lab"
refused "its certificate is not accepted: hostname mismatch" mpicrypt file verify file.1
SSL_CERT_FILE=$here/ca.pem refused "its certificate is not accepted: hostname mismatch" mpicrypt file verify file.1
conf "role job" "jwt $here/token-lab"
refused "it refuses the login (auth/jwt/login)" mpicrypt file verify file.1

echo "== policies"
conf "token $here/token-reader"
must mpicrypt file verify file.1
refused "it forbids transit/keys/lab" mpicrypt file encrypt plain new --label lab
must test ! -e new
conf "token $here/token-lab"
refused "it forbids transit/keys/other" mpicrypt file encrypt plain new --label other
refused "it forbids transit/keys?list=true" mpicrypt key list
must test ! -e new

echo "== rotation: files follow, and the server drops the old version"
conf "token $here/root"
says "lab, version 2 (key" must mpicrypt key rotate lab
must mpicrypt file verify file.1
conf "token $here/token-lab"
must mpicrypt file rekey file.1
must mpicrypt file verify file.1
api POST transit/keys/lab/config '{"min_decryption_version": 2}'
must mpicrypt file verify file.1
refused "lab, version 1 (key ${first:0:16}" mpicrypt file verify file.2
grep -q "the server no longer decrypts with it" err || fail "no reason"
api POST transit/keys/lab/config '{"min_decryption_version": 1}'
must mpicrypt file verify file.2
# The same name on a server that was set up anew.
api POST transit/keys/lab/config '{"deletion_allowed": true}'
api DELETE transit/keys/lab
refused "the keystore holds no key for the file" mpicrypt file verify file.1
api POST transit/keys/lab '{"type": "aes256-gcm96"}'
refused "the file has key ${first:0:16}" mpicrypt file verify file.2
api POST transit/keys/lab/config '{"exportable": true}'
refused "a key that is exportable is not used" mpicrypt file encrypt plain new --label lab
api POST transit/keys/lab/config '{"deletion_allowed": true}'
api DELETE transit/keys/lab
api POST transit/keys/lab '{"type": "aes256-gcm96"}'
must mpicrypt file encrypt plain file --label lab

echo "== a token that a login gave is renewed, and made anew"
api POST auth/approle/role/job '{"token_policies": "lab", "token_ttl": "2s", "token_max_ttl": "3s"}'
conf "role $role" "secret-id $here/secret-id"
make_check tests/unit
server requests > before
must "$BUILD/tests/unit/test_vault" keys 5
server requests > requests
count() { awk -v path="$2" '$2 == path { n = $1 } END { print n + 0 }' "$1"; }
must test "$(count requests auth/token/renew-self)" -ge 1
must test "$(count requests auth/approle/login)" -ge $(($(count before auth/approle/login) + 2))

echo "== sealed, gone"
conf "token $here/token-lab"
cksum file > before
must server seal
refused "it is sealed" mpicrypt file verify file
refused "it is sealed" mpicrypt file rekey file
refused "it is sealed" mpicrypt file encrypt plain new --label lab
must server unseal
must mpicrypt file verify file

echo "== lies"
lies() { address=$(cat server/liar) conf "token $here/token-lab" "mount $1" "timeout ${2:-60}"; : > server/liar.log; }
# told N: so many requests
told() { [ "$(wc -l < server/liar.log)" = "$1" ] || fail "not $1 requests: $(cat server/liar.log)"; }
while read -r kind text; do
    case $kind in slow|trickle) lies "$kind" 2 ;; *) lies "$kind" 60 ;; esac
    refused "$text" mpicrypt file verify file
    must test "$(wc -l < server/liar.log)" -le 5
done <<'END'
redirect   it redirects to another address (307), which is not followed
garbage    the answer to garbage/decrypt/lab is not what the API describes
array      the answer to array/decrypt/lab is not what the API describes
empty      the answer to decrypt is not what the API describes
huge       the answer has more than 65536 bytes
endless    the answer was cut short
headers    the answer has more than 65536 bytes
slow       there was no answer in time
trickle    there was no answer in time
cut        the answer was cut short
close      the answer was cut short
teapot     it answers 418 to teapot/decrypt/lab: I am a
short      the answer to decrypt is not what the API describes
none       the answer to decrypt is not what the API describes
more       the answer to decrypt is not what the API describes
wrong      the encryption map does not authenticate
END
# A server that is busy is asked until the time is over; and once only for the three copies of the map.
lies busy 8
refused "it answers 429 to busy/decrypt/lab: rate limit" mpicrypt file verify file
must test "$(wc -l < server/liar.log)" -ge 6
lies redirect; refused "307" mpicrypt file verify file; told 1
lies flaky; must mpicrypt file verify file; told 3
address=$(cat server/liar) conf "token $here/root" "mount later"
refused "there is a key for this label already" mpicrypt key new lab
conf "token $here/root" "mount nowhere"
refused "no handler for route" mpicrypt file verify file
# What is not to be done twice is not asked twice.
address=$(cat server/liar) conf "token $here/root" "mount once"; : > server/liar.log
refused "the answer was cut short" mpicrypt key rotate lab
must test "$(grep -c rotate server/liar.log)" = 1
# The secrets of the connection, as the server knows them.
lies honest; : > server/keylog
must python3 -B "$SRC/tests/tool/key/memory.py" server/keylog OMPI_MCA_crypt_keystore back -- mpicrypt file cat file
must cmp plain back
must grep -q "^CLIENT_TRAFFIC_SECRET_0 " server/keylog
while read -r kind text; do
    lies "$kind"
    refused "$text" mpicrypt file encrypt plain new --label lab
    must test ! -e new
done <<'END'
name        the answer to keys is not what the API describes
latest      the answer to keys is not what the API describes
exportable  a key that is exportable is not used
type        its type is not aes256-gcm96
other       the server does not decrypt what it has encrypted
version     the answer to encrypt is not what the API describes
wrong       the server does not decrypt what it has encrypted
END
must server stop
conf "token $here/token-lab"
refused "no connection: Connection refused" mpicrypt file verify file
[ "$(cksum file)" = "$(cat before)" ] || fail "the file was changed"
must grep -q "unwrap label=lab version=1 .* refused: the key server did not unwrap it" keys/log

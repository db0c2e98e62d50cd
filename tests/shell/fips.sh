# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# crypt_fips=1 where there is a FIPS provider (Debian 13: openssl-provider-fips; FIPS_MODULE
# names another fips.so): jobs by psk and by certificates, files, and a node that goes
# without; with `server`, files whose keys are on a key server.  That there is none where it is needed, keys.sh and aead_selection.sh try.
set -eu
. "$SRC/tests/lib.sh"
. "$SRC/tests/shell/keys_jobs.sh"

module=${FIPS_MODULE:-$(vcluster exec node0 bash -c 'ls /usr/lib/*/ossl-modules/fips.so' 2>/dev/null || true)}
[ -n "$module" ] || skip "there is no FIPS provider (Debian 13: openssl-provider-fips)"
must in_variant openssl fipsinstall -quiet -module "$module" -out "$CASE_DIR/fipsmodule.cnf"
cat > "$CASE_DIR/openssl.cnf" <<END
openssl_conf = init
.include $CASE_DIR/fipsmodule.cnf
[init]
providers = providers
[providers]
fips = fips_sect
base = others
default = others
[others]
activate = 1
END
export OPENSSL_CONF=$CASE_DIR/openssl.cnf OPENSSL_MODULES=${module%/*}
if [ "${1-}" = server ]; then
    export -n OPENSSL_CONF OPENSSL_MODULES              # but for the tool
    . "$SRC/tests/tool/key/server.sh"
    trap 'server_stops; vcluster down > /dev/null 2>&1 || true' EXIT
    export SERVER_IN="$SRC/tests/vcluster net node0"
    must server start "$bao" 10.99.0.1
    must server jwt someone
    here=$CASE_DIR/server
    seq 1 30000 > plain
    tool() { vcluster exec node0 env OPENSSL_CONF="$OPENSSL_CONF" OPENSSL_MODULES="$OPENSSL_MODULES" mpicrypt "$@"; }
    conf "token $here/root"
    must tool key new lab --fips
    must tool key rotate lab --fips
    for login in "token $here/token-lab" "role $(cat server/role-id)"$'\n'"secret-id $here/secret-id" "role job"$'\n'"jwt $here/jwt" \
        "role job"$'\n'"certificate $here/client.pem"$'\n'"key $here/client.key"; do
        conf "$login"
        must tool file encrypt plain made --label lab --fips
        must tool file rekey made --fips
        must tool file decrypt made again --fips
        must cmp plain again
        mv made file
        rm again
    done
    # TLS is the module's: a server that has ciphers only that it has not cannot be talked to.
    liar 10.99.0.1 ECDHE-ECDSA-CHACHA20-POLY1305
    address=$(cat server/liar) conf "token $here/token-lab" "mount honest"
    must tool file verify file
    refused "the TLS handshake failed" tool file verify file --fips
    exit 0
fi
program=$(mpi_program mpi metrics)
psk=$CASE_DIR/psk
(umask 077; od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' > "$psk")

# The variables of OpenSSL go where those of Open MPI do.
sed -i '/^HOME=/i OPENSSL_CONF='"$OPENSSL_CONF"'\nOPENSSL_MODULES='"$OPENSSL_MODULES" "$CASE_DIR/with"
report=$CASE_DIR/report.json
# sealed METHOD BITS pml|btl: the last job's report
sealed() {
    python3 - "$report" "$1" "AES-$2-GCM" "$3" <<'END' || fail "its report: $(cat "$report")"
import json, sys

r = json.load(open(sys.argv[1]))
assert r["authentication"] == sys.argv[2] and r["cipher"] == sys.argv[3], r
assert r["providers"].startswith("OpenSSL ") and r["providers"].endswith("(2)"), r
assert r["sealed_peers"] == 2 and min(r["sealed_bytes"], r["opened_bytes"]) > 0 and r["authentication_failures"] == 0, r
assert r["key_agreement"] == "P-256", r
if sys.argv[4] == "pml":
    assert r["sealed_bytes"] == r["opened_bytes"], r
    assert r["chopped_sent"] == r["chopped_received"] > 0, r
else:
    assert r["transport"] == "btl, TLS 1.3", r
END
}

pml=(crypt_auth=psk "crypt_psk_file=$psk" crypt_fips=1 crypt_transport=pml)
btl=(crypt_auth=psk "crypt_psk_file=$psk" crypt_fips=1)         # what a user gets
for bits in 128 192 256; do
    set_both "${pml[@]}" "crypt_key_bits=$bits" "crypt_report=json:$report"
    runs "pml, AES-$bits-GCM"
    sealed psk $bits pml
done
for bits in 128 256; do
    set_both "${btl[@]}" "crypt_key_bits=$bits" "crypt_report=json:$report"
    runs "btl, AES-$bits-GCM"
    sealed psk $bits btl
done
set_both "${btl[@]}" btl_crypt_pq=require
refused "X25519MLKEM768 under crypt_fips=1" "X25519MLKEM768 (btl_crypt_pq=require) under crypt_fips=1"
set_both "${btl[@]}" crypt_key_bits=192
refused "AES-192-GCM" "TLS 1.3"

set_node node1 crypt_auth=psk "crypt_psk_file=$psk"
set_node node0 crypt_auth=psk "crypt_psk_file=$psk" crypt_fips=1
refused "one node without crypt_fips" "crypt_fips" "P-256" "X25519"

mkdir "$CASE_DIR/ca"
if OPENSSL_CONF= sh "$SRC/tests/unit/x509_ca.sh" "$CASE_DIR/ca"; then
    for kind in p256 p384 rsa; do
        [ -e "$CASE_DIR/ca/$kind.pem" ] || continue
        set_both crypt_auth=x509 "crypt_x509_cert=$CASE_DIR/ca/$kind.pem" "crypt_x509_key=$CASE_DIR/ca/$kind.key" \
            "crypt_x509_ca=$CASE_DIR/ca/ca.pem" crypt_fips=1 "crypt_report=json:$report"
        runs "x509: $kind"
        sealed x509 128 btl
    done
fi

# Files, by the tool.
mkdir -m 700 "$CASE_DIR/keys"
head -c 300000 /dev/urandom > "$CASE_DIR/plain"
tool() { must in_variant env OPENSSL_CONF="$OPENSSL_CONF" OPENSSL_MODULES="$OPENSSL_MODULES" mpicrypt "$@" --fips --keystore-dir "$CASE_DIR/keys"; }
tool key new lab
tool file encrypt "$CASE_DIR/plain" "$CASE_DIR/made" --label lab
tool file seal "$CASE_DIR/made"
tool file decrypt "$CASE_DIR/made" "$CASE_DIR/again"
must cmp "$CASE_DIR/plain" "$CASE_DIR/again"

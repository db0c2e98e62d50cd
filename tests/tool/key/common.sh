# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What the cases of keys that move have in common: keystores, certificates, a passphrase.
. "$SRC/tests/lib.sh"
PATH=$PREFIX/bin:$PATH
python3 -c 'import cryptography' || skip "Python has no cryptography (Debian: python3-cryptography)"
exchange=(python3 -B "$SRC/tests/vectors/key_exchange_v1.py")
cd "$CASE_DIR"
umask 077
unset OMPI_MCA_crypt_keystore_dir
echo 'five random words of nobody' > pass
echo 'another passphrase altogether' > pass.other

# key CODE TEXT ARGS...: the exit code, and TEXT on one of the outputs.
key() {
    local code=$1 text=$2 rc=0
    shift 2
    echo "+ mpicrypt key $*"
    mpicrypt key "$@" --allow-netfs > out 2> err < "${input:-/dev/null}" || rc=$?
    [ $rc = "$code" ] || { cat out err; fail "status $rc, not $code"; }
    grep -qF -- "$text" out err || { cat out err; fail "no '$text'"; }
}
# at KEYSTORE CODE TEXT ARGS...
at() { local where=$1; shift; local code=$1 text=$2; shift 2; key "$code" "$text" "$@" --keystore-dir "$CASE_DIR/$where"; }

# The key of a version, 64 digits.
secret_of() { sed -n 's/^key plain //p' "$1/$2"; }
# What a keystore has, but for the log.
state() { ( cd "$1"; sha256sum ./*.[0-9]* ) }
same_key() { [ "$(secret_of "$1" "$3")" = "$(secret_of "$2" "$3")" ] && [ -n "$(secret_of "$1" "$3")" ] || fail "$3 differs in $1 and $2"; }

# certificate NAME ALGORITHM USAGE [ISSUER]: NAME.pem, NAME.key
certificate() {
    local name=$1 usage=$3 sign=()
    case $2 in
        rsa)   openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$name.key" 2> /dev/null ||
                   openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$name.key" 2> /dev/null ;;
        rsa1k) openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out "$name.key" 2> /dev/null ;;
        *)     openssl genpkey -algorithm EC -pkeyopt "ec_paramgen_curve:$2" -out "$name.key" ;;
    esac
    openssl req -new -key "$name.key" -subj "/O=Test/CN=$name" -out "$name.csr"
    printf 'keyUsage=critical,%s\n' "$usage" > "$name.ext"
    [ $# -lt 4 ] || sign=(-CA "$4.pem" -CAkey "$4.key" -CAcreateserial)
    [ $# -ge 4 ] || sign=(-signkey "$name.key")
    openssl x509 -req -in "$name.csr" -days "${days:-30}" -extfile "$name.ext" "${sign[@]}" -out "$name.pem" 2> /dev/null ||
        fail "no certificate $name"
}

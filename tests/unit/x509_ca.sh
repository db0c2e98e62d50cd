#!/bin/sh
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Usage: x509_ca.sh DIRECTORY
# Three certificate authorities, two of one name, and the certificates of test_auth_x509,
# made by the openssl program.  Exits 77 where it is missing.
set -eu
cd "$1"
command -v openssl >/dev/null || exit 77

cat >ca.cnf <<'CNF'
[ca]
default_ca = site
[site]
dir = .
database = $dir/index
serial = $dir/serial
new_certs_dir = $dir
default_md = sha256
default_days = 30
default_crl_days = 30
unique_subject = no
copy_extensions = none
policy = any
[any]
countryName = optional
organizationName = optional
organizationalUnitName = optional
commonName = optional
[req]
distinguished_name = none
prompt = no
[none]
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
[named]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
authorityKeyIdentifier = keyid:always
[bare]
basicConstraints = critical,CA:FALSE
[cipher]
basicConstraints = critical,CA:FALSE
keyUsage = critical,keyEncipherment
[unknown]
keyUsage = critical,digitalSignature
1.2.3.4.5 = critical,ASN1:NULL
CNF
: >index
echo 01 >serial

quiet() { "$@" >>log 2>&1 || { cat log >&2; exit 1; }; }

root() { # NAME SUBJECT
    quiet openssl genpkey -algorithm ED25519 -out "$1.key"
    quiet openssl req -config ca.cnf -new -key "$1.key" -subj "$2" -out "$1.csr"
    quiet openssl ca -config ca.cnf -batch -notext -selfsign -keyfile "$1.key" -extensions root \
        -startdate $from -enddate $to -in "$1.csr" -out "$1.pem"
}

# leaf NAME SUBJECT CA EXTENSIONS START END KEY...
leaf() {
    name=$1 subject=$2 ca=$3 extensions=$4 start=$5 end=$6
    shift 6
    quiet openssl genpkey "$@" -out "$name.key"
    quiet openssl req -config ca.cnf -new -key "$name.key" -subj "$subject" -out "$name.csr"
    quiet openssl ca -config ca.cnf -batch -notext -cert "$ca.pem" -keyfile "$ca.key" -extensions "$extensions" \
        -startdate "$start" -enddate "$end" -in "$name.csr" -out "$name.pem"
    chmod 600 "$name.key"
}

me="/O=Site/OU=hpc/CN=alice"
from=20200101000000Z to=20990101000000Z
ed="-algorithm ED25519"
root ca "/O=Site/CN=CA"
root foreign "/O=Site/CN=CA"
root other "/O=Other/CN=CA"

# shellcheck disable=SC2086
{
    leaf ed25519 "$me" ca leaf $from $to $ed
    leaf p256 "$me" ca leaf $from $to -algorithm EC -pkeyopt ec_paramgen_curve:P-256
    leaf p384 "$me" ca leaf $from $to -algorithm EC -pkeyopt ec_paramgen_curve:P-384
    leaf p521 "$me" ca leaf $from $to -algorithm EC -pkeyopt ec_paramgen_curve:P-521
    leaf rsa "$me" ca leaf $from $to -algorithm RSA -pkeyopt rsa_keygen_bits:2048
    leaf rsapss "$me" ca leaf $from $to -algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048
    leaf rsa1024 "$me" ca leaf $from $to -algorithm RSA -pkeyopt rsa_keygen_bits:1024
    leaf bare "$me" ca bare $from $to $ed
    leaf cipher "$me" ca cipher $from $to $ed
    leaf unknown "$me" ca unknown $from $to $ed
    leaf expired "$me" ca leaf $from 20200201000000Z $ed
    leaf short "$me" ca leaf 20260101000000Z 20980101000000Z $ed
    leaf future "$me" ca leaf 20980101000000Z $to $ed
    leaf revoked "$me" ca leaf $from $to $ed
    leaf bob "/O=Site/OU=hpc/CN=bob" ca leaf $from $to $ed
    leaf comma "/O=Site/OU=hpc/CN=bob,OU=hpc" ca leaf $from $to $ed
    leaf stranger "$me" foreign leaf $from $to $ed
    leaf named "$me" ca named $from $to $ed
    leaf twin "$me" foreign named $from $to $ed
    leaf guest "$me" other named $from $to $ed
    leaf sub "/O=Site/CN=Sub CA" ca root $from $to $ed
    leaf below "$me" sub leaf $from $to $ed
    leaf gone "$me" sub leaf $from $to $ed
}
cat below.pem sub.pem >chain.pem
cp below.key chain.key
cat ca.pem foreign.pem other.pem >three.pem
cat sub.pem ca.pem >levels.pem

# A subject without a name.
cp ed25519.key nobody.key
quiet openssl req -config ca.cnf -new -key nobody.key -subj / -out nobody.csr
quiet openssl x509 -req -in nobody.csr -CA ca.pem -CAkey ca.key -set_serial 99 -days 30 -out nobody.pem

# The other forms of private keys.
openssl ec -in p256.key -out sec1.key 2>>log
openssl ecparam -name prime256v1 | cat - sec1.key >sec1p.key
cp p256.pem sec1.pem
cp p256.pem sec1p.pem
openssl rsa -in rsa.key -traditional -out pkcs1.key 2>>log
cp rsa.pem pkcs1.pem
openssl pkey -in ed25519.key -aes256 -passout pass:x -out locked.key 2>>log
cp ed25519.pem locked.pem
cat ed25519.key ed25519.pem >both.pem
chmod 600 ./*.key both.pem

quiet openssl ca -config ca.cnf -cert ca.pem -keyfile ca.key -gencrl -out empty.crl
quiet openssl ca -config ca.cnf -cert ca.pem -keyfile ca.key -revoke revoked.pem
quiet openssl ca -config ca.cnf -cert ca.pem -keyfile ca.key -gencrl -out ca.crl
quiet openssl ca -config ca.cnf -cert sub.pem -keyfile sub.key -revoke gone.pem
quiet openssl ca -config ca.cnf -cert sub.pem -keyfile sub.key -gencrl -out sub.crl
cat sub.crl ca.crl >lists.crl
quiet openssl ca -config ca.cnf -cert ca.pem -keyfile ca.key -revoke sub.pem
quiet openssl ca -config ca.cnf -cert ca.pem -keyfile ca.key -gencrl -out no_sub.crl
cat sub.crl no_sub.crl >no_lists.crl

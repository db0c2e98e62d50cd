#!/bin/sh
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# x509.sh DIR USER...: a small certificate authority in DIR, and a key and a
# certificate for each USER, for crypt_auth=x509.  A site that has a CA asks it for
# certificates like these instead.
#
#   DIR/ca.pem, DIR/ca.key         the authority; keep its key away from the nodes
#   DIR/USER.pem, DIR/USER.key     a user's; the key on a local disk, mode 0600
#
# On the nodes, ca.pem and USER.pem must belong to root or to the user, on a local disk.
#
# A user's jobs then set
#   crypt_auth = x509
#   crypt_x509_ca = .../ca.pem
#   crypt_x509_cert = .../USER.pem
#   crypt_x509_key = .../USER.key
set -eu
[ $# -ge 2 ] || { sed -n '4,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$0" >&2; exit 2; }
umask 077
directory=$1
shift
mkdir -p "$directory"
cd "$directory"

if [ ! -e ca.key ]; then
    openssl req -x509 -newkey ed25519 -nodes -keyout ca.new -out ca.pem -days 3650 -subj "/CN=CA of MPI jobs"
    mv ca.new ca.key
fi
for user; do
    [ ! -e "$user.key" ] || { echo "x509.sh: $user has a key already" >&2; exit 1; }
    # A key under its own name has its certificate: who was interrupted can begin again.
    openssl genpkey -algorithm ed25519 -out "$user.new"
    openssl req -new -key "$user.new" -subj "/CN=$user" -out "$user.csr"
    printf '%s\n' 'basicConstraints = critical, CA:FALSE' 'keyUsage = critical, digitalSignature' > extensions
    openssl x509 -req -in "$user.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -extfile extensions -days 365 \
        -out "$user.pem"
    rm -f "$user.csr" extensions
    chmod 644 "$user.pem" ca.pem
    mv "$user.new" "$user.key"
    echo "$PWD/$user.pem: valid until $(openssl x509 -in "$user.pem" -noout -enddate | cut -d = -f 2)"
done

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Two nodes know each other by psk, munge and x509, and refuse each other when
# they must: every refusal by the job's exit status and by its text.
set -eu
. "$SRC/tests/lib.sh"
. "$SRC/tests/shell/keys_jobs.sh"

program=$CASE_DIR/exchange
cat > "$program.c" <<'END'
#include <mpi.h>

/* Each of two ranks sends the other 100,000 integers. */
int main(int argc, char **argv)
{
    static int out[100000], in[100000];
    int rank, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 100000; ++i) {
        out[i] = i * (rank + 1);
    }
    MPI_Sendrecv(out, 100000, MPI_INT, 1 - rank, 7, in, 100000, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < 100000; ++i) {
        wrong += in[i] != i * (2 - rank);
    }
    MPI_Finalize();
    return 0 != wrong;
}
END
must in_variant mpicc -O2 -o "$program" "$program.c"

# 1. psk; every node has a /dev/shm of its own
psk=/dev/shm/psk
give() { vcluster exec "$1" bash -c "umask 077; cat > $psk; chmod $3 $psk" <<< "$2"; }
new() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }
key=$(new)
give node0 "$key" 600
give node1 "$key" 600
set_both crypt_auth=psk crypt_psk_file=$psk
runs "psk: the same key on both nodes"
set_both crypt_psk_file=$psk
runs "auto: psk"
give node1 "$(new)" 600
refused "psk: different keys" "Peer authentication failed" "rank 0" "rank 1"
says_too "$(cat "$CASE_DIR/namespace") rank 0"
says_too "the pre-shared key of this process, $psk"
grep -qE 'the peer: .* rank (0, on node0|1, on node1)$' "$CASE_DIR/out" || fail "it does not name the peer's node: $(cat "$CASE_DIR/out")"
give node1 "$key" 640
refused "psk: a mode too wide" "can be read or changed by other users" "0640"
give node1 "${key%??}" 600
refused "psk: too short" "wrong length" "64 hexadecimal digits"
give node1 "${key%?}g" 600
refused "psk: a letter that is no digit" "This file holds something else"
give node1 "$key" 600
vcluster exec node1 chown 54321 $psk
refused "psk: somebody else's" "must belong to the user who runs the job" "54321"
set_node node1 crypt_auth=psk crypt_psk_file=/proc/self/environ
refused "psk: on no local file system" "on a network file system, or on one of unknown type" "0x9fa0" "crypt_secret_on_netfs=1"
set_node node1 crypt_auth=psk crypt_psk_file=/dev/shm
refused "psk: a directory" "is a directory, a pipe or a device"
set_node node1 crypt_psk_file=$psk
vcluster exec node1 rm $psk
refused "psk: missing on one node" "The pre-shared key does not exist" "mpicrypt keygen"
vcluster exec node1 ln -s /dev/null $psk
refused "psk: a link" "symbolic"
vcluster exec node1 rm $psk
give node1 "$key" 600

# 2. differences
set_both crypt_auth=psk crypt_psk_file=$psk
set_node node1 crypt_auth=none
refused "psk and none" "use different authentication methods" "crypt_auth" "rank 0" "rank 1"
set_node node1 crypt_auth=psk crypt_psk_file=$psk crypt_key_bits=256
refused "key sizes" "must be the same on all ranks" "AES-128-GCM" "AES-256-GCM"
set_node node1 crypt_auth=psk crypt_psk_file=$psk crypt_scope=all
refused "scopes" "crypt_scope: " "internode" "all"
set_node node1 crypt_auth=psk crypt_psk_file=$psk crypt_audit=warn
refused "audits" "must be the same on all ranks" "crypt_audit=abort" "crypt_audit=warn"
set_node node1 crypt_auth=psk crypt_psk_file=$psk crypt_on_auth_failure=error
refused "failures" "must be the same on all ranks" "crypt_on_auth_failure=abort" "crypt_on_auth_failure=error"
set_node node1 crypt_auth=psk crypt_psk_file=$psk pml_crypt_chop_min=40000
refused "first parts" "must be the same on all ranks" "pml_crypt_chop_min=65536" "pml_crypt_chop_min=40000"
set_node node1 crypt_auth=psk crypt_psk_file=$psk crypt_report=1 crypt_threads=3 pml_crypt_chunk_size=70000 \
    pml_crypt_t=2 crypt_munge_age=50 aead=openssl
runs "parameters that may differ"

# A clock that is two hours ahead: with psk the job goes on, and it is said once.
cat > "$CASE_DIR/clock.c" <<'END'
#include <time.h>

time_t time(time_t *where)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += 7200;
    if (0 != where) {
        *where = now.tv_sec;
    }
    return now.tv_sec;
}
END
must in_variant mpicc -shared -fPIC -o "$CASE_DIR/clock.so" "$CASE_DIR/clock.c"
set_node node1 crypt_auth=psk crypt_psk_file=$psk
echo "LD_PRELOAD=$CASE_DIR/clock.so" >> "$CASE_DIR/node1.env"
runs "psk: clocks that differ"
says_too "more than an hour apart"
says_too "on node"
[ "$(grep -c 'more than an hour apart' "$CASE_DIR/out")" = 1 ] || fail "it is said more than once"
[ "$(grep -oE '[0-9:-]+ [0-9:]+ UTC' "$CASE_DIR/out" | sort -u | wc -l)" = 2 ] || fail "it does not name both clocks"

if vcluster exec node0 openssl list -providers -provider fips >/dev/null 2>&1; then
    echo "skipped: crypt_fips where there is no FIPS provider: there is one"
else
    set_both crypt_auth=psk crypt_psk_file=$psk crypt_fips=1
    refused "crypt_fips without a FIPS provider" "crypt_fips=1 allows only a provider" "Install OpenSSL's FIPS provider"
fi

# 3. none
set_both crypt_auth=none
runs "none"
says_too "do not authenticate each other"

# 4. munge: a daemon a node, first of one site, then of two
set_both crypt_munge_socket=/dev/shm/m/s
refused "auto: nothing is set up" "mpicrypt keygen --hosts"
set_both crypt_auth=munge crypt_munge_socket=/dev/shm/m/s
refused "munge: no daemon" "does not answer" "/dev/shm/m/s"
if has_munge; then
    for n in 1 2; do head -c 128 /dev/urandom > "$CASE_DIR/munge$n"; done
    munge_start node0 "$CASE_DIR/munge1"
    munge_start node1 "$CASE_DIR/munge1"
    runs "munge"
    set_both crypt_munge_socket=/dev/shm/m/s
    runs "auto: munge"
    munge_end node1
    munge_start node1 "$CASE_DIR/munge2"
    set_both crypt_auth=munge crypt_munge_socket=/dev/shm/m/s
    refused "munge: another site's key" "does not accept a peer's credential"
    munge_end node0
    munge_end node1
else
    echo "skipped: munge (Debian: munge)"
fi

# 5. x509
mkdir "$CASE_DIR/ca"
if sh "$SRC/tests/unit/x509_ca.sh" "$CASE_DIR/ca"; then
    x509() {            # NODE NAME [MORE...]
        local node=$1 name=$2; shift 2
        set_node "$node" crypt_auth=x509 "crypt_x509_cert=$CASE_DIR/ca/$name.pem" "crypt_x509_ca=$CASE_DIR/ca/ca.pem" \
            "crypt_x509_key=$CASE_DIR/ca/$name.key" "$@"
    }
    x509 node0 ed25519
    x509 node1 p256
    runs "x509: Ed25519 and P-256"
    x509 node1 chain
    runs "x509: an intermediate CA"
    x509 node1 bob
    refused "x509: another user" "belongs to somebody else" "CN=alice" "CN=bob"
    x509 node0 ed25519 'crypt_x509_peer="CN=bob,OU=hpc,O=Site"'
    x509 node1 bob 'crypt_x509_peer="CN=alice,OU=hpc,O=Site"'
    runs "x509: another user who is named"
    x509 node0 ed25519 "crypt_x509_crl=$CASE_DIR/ca/ca.crl"
    x509 node1 revoked
    refused "x509: revoked" "was revoked"
    x509 node0 ed25519
    for case in "expired:has expired" "future:not valid yet" "rsa1024:too weak" "cipher:may not be used to sign" \
        "locked:passphrase"; do
        x509 node1 "${case%%:*}"
        refused "x509: ${case%%:*}" "${case#*:}"
    done
    x509 node1 stranger "crypt_x509_ca=$CASE_DIR/ca/foreign.pem"
    refused "x509: another CA" "not issued by a CA that this job trusts"
    x509 node0 named "crypt_x509_ca=$CASE_DIR/ca/three.pem"
    x509 node1 guest "crypt_x509_ca=$CASE_DIR/ca/three.pem"
    refused "x509: our subject by another CA of the file" "from a different certificate authority than" "CN=CA,O=Site" \
        "CN=CA,O=Other"
    x509 node0 ed25519
    install -m 666 "$CASE_DIR/ca/ca.pem" "$CASE_DIR/ca/open.pem"
    x509 node1 ed25519 "crypt_x509_ca=$CASE_DIR/ca/open.pem"
    refused "x509: a CA file that others may change" "can be changed by other users" "0666" "chmod go-w"
    x509 node1 ed25519 "crypt_x509_key=$CASE_DIR/ca/bob.key"
    refused "x509: a key that does not fit" "does not fit the certificate"
else
    echo "skipped: x509 (Debian: openssl)"
fi

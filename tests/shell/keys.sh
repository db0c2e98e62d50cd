# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Two nodes know each other by psk, munge and x509, and refuse each other when
# they must: every refusal by the job's exit status and by its text.
set -eu
. "$SRC/tests/lib.sh"

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
must mpicc -O2 -o "$program" "$program.c"
cluster_up 2
unset OMPI_MCA_crypt_auth OMPI_MCA_crypt_psk_file
export CASE_DIR HOME=$CASE_DIR/home
mkdir "$HOME"

# What a node's processes have in their environment: set NODE NAME=VALUE...
cat > "$CASE_DIR/with" <<'END'
#!/bin/bash
set -a
. "$CASE_DIR/$(hostname).env"
exec "$@"
END
chmod +x "$CASE_DIR/with"
set_node() { local node=$1; shift; printf 'OMPI_MCA_%s\n' "$@" > "$CASE_DIR/$node.env"; }
set_both() { set_node node0 "$@"; set_node node1 "$@"; }

job() {
    vcluster mpirun -n 2 --map-by node -x CASE_DIR -x HOME \
        "$CASE_DIR/with" "$program" > "$CASE_DIR/out" 2>&1 < /dev/null
}

runs() {
    echo "+ $1"
    job || { cat "$CASE_DIR/out"; fail "$1: the job failed"; }
}

# says_too TEXT: the last job said it, wherever lines break.
says_too() {
    tr -s ' \n' ' ' < "$CASE_DIR/out" | grep -qF -- "$1" ||
        { cat "$CASE_DIR/out"; fail "it does not say \"$1\""; }
}

# refused WHAT TEXT...: the job fails, and says each TEXT.
refused() {
    local what=$1 text; shift
    echo "+ ! $what"
    if job; then cat "$CASE_DIR/out"; fail "$what: the job ran"; fi
    for text in "$@"; do
        says_too "$text"
    done
}

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
refused "psk: different keys" "A process is not who it says it is" "rank 0" "rank 1"
give node1 "$key" 640
refused "psk: a mode too wide" "can be read or changed by other users" "0640"
give node1 "${key%??}" 600
refused "psk: too short" "wrong length" "64 hexadecimal digits"
vcluster exec node1 rm $psk
refused "psk: missing on one node" "The pre-shared key does not exist" "mpicrypt keygen"
vcluster exec node1 ln -s /dev/null $psk
refused "psk: a link" "symbolic"
vcluster exec node1 rm $psk
give node1 "$key" 600

# 2. differences
set_both crypt_auth=psk crypt_psk_file=$psk
set_node node1 crypt_auth=none
refused "psk and none" "authenticate by different methods" "crypt_auth" "rank 0" "rank 1"
set_node node1 crypt_auth=psk crypt_psk_file=$psk crypt_key_bits=256
refused "key sizes" "different parameters" "AES-128-GCM" "AES-256-GCM"
set_node node1 crypt_auth=psk crypt_psk_file=$psk crypt_scope=all
refused "scopes" "crypt_scope"

# 3. none
set_both crypt_auth=none
runs "none"
says_too "do not authenticate each other"

# 4. munge: a daemon a node, first of one site, then of two
set_both crypt_munge_socket=/dev/shm/m/s
refused "auto: nothing is set up" "mpicrypt keygen --hosts"
set_both crypt_auth=munge crypt_munge_socket=/dev/shm/m/s
refused "munge: no daemon" "does not answer" "/dev/shm/m/s"
if command -v munged >/dev/null; then
    daemon() {          # NODE KEYFILE
        vcluster exec "$1" bash -c "rm -rf /dev/shm/m; mkdir -m 755 /dev/shm/m; cd /dev/shm/m
            (umask 077; cat > key)
            munged --key-file=\$PWD/key --socket=\$PWD/s --pid-file=\$PWD/pid --log-file=\$PWD/log --seed-file=\$PWD/seed" < "$2"
    }
    daemon_end() { vcluster exec "$1" bash -c 'kill $(cat /dev/shm/m/pid); while [ -e /dev/shm/m/s ]; do sleep 0.05; done'; }
    for n in 1 2; do head -c 128 /dev/urandom > "$CASE_DIR/munge$n"; done
    daemon node0 "$CASE_DIR/munge1"
    daemon node1 "$CASE_DIR/munge1"
    runs "munge"
    set_both crypt_munge_socket=/dev/shm/m/s
    runs "auto: munge"
    daemon_end node1
    daemon node1 "$CASE_DIR/munge2"
    set_both crypt_auth=munge crypt_munge_socket=/dev/shm/m/s
    refused "munge: another site's key" "does not accept a peer's credential"
    daemon_end node0
    daemon_end node1
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
    x509 node1 ed25519 "crypt_x509_key=$CASE_DIR/ca/bob.key"
    refused "x509: a key that does not fit" "does not fit the certificate"
else
    echo "skipped: x509 (Debian: openssl)"
fi

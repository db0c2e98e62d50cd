# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What a user's surroundings do to OpenSSL does not change the connections of btl/crypt: a configuration file that sets
# everything otherwise, one without a provider, and a program that has functions with the names of libssl's, as one
# with BoringSSL in it does.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
export OMPI_MCA_crypt_transport=btl OMPI_MCA_crypt_report="json:$CASE_DIR/report"
program=$(mpi_program mpi p2p_empty)
run() { vcluster mpirun -n 2 --map-by node "$@" > "$CASE_DIR/out" 2>&1; }

# sealed WHAT: the last job was, as TLS 1.3.
sealed() {
    python3 - "$CASE_DIR/report" <<'END' || fail "$1: its report: $(cat "$CASE_DIR/report")"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["transport"] == "btl, TLS 1.3" and r["sealed_peers"] == 2 and r["sealed_bytes"] > 0 == r["authentication_failures"], r
assert r["cipher"] == "AES-128-GCM" and "X25519" in r["key_agreement"], r
END
    echo "$1: sealed, $(grep -o '"key_agreement": "[^"]*"' "$CASE_DIR/report")"
    rm "$CASE_DIR/report"
}

run "$program" || fail "the control: $(cat "$CASE_DIR/out")"
sealed "nothing odd"

cat > "$CASE_DIR/odd.cnf" <<'END'
openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = odd
[odd]
MinProtocol = TLSv1.2
MaxProtocol = TLSv1.2
CipherString = ALL@SECLEVEL=5
Ciphersuites = TLS_CHACHA20_POLY1305_SHA256
Groups = P-521
SignatureAlgorithms = RSA+SHA512
Options = ServerPreference,PrioritizeChaCha,NoResumptionOnRenegotiation,MiddleboxCompat,-SessionTicket
NumTickets = 5
RecordPadding = 512
VerifyMode = Request
END
run -x OPENSSL_CONF="$CASE_DIR/odd.cnf" -x OPENSSL_MODULES="$CASE_DIR" "$program" || fail "odd.cnf: $(cat "$CASE_DIR/out")"
sealed "a configuration that sets everything otherwise"

# Without algorithms there are no keys: the job ends, and says why.
printf '%s\n' 'openssl_conf = all' '[all]' 'providers = some' '[some]' 'base = on' '[on]' 'activate = 1' > "$CASE_DIR/none.cnf"
if run -x OPENSSL_CONF="$CASE_DIR/none.cnf" "$program"; then
    sealed "a configuration without a provider"
else
    echo "a configuration without a provider: $(grep -A4 -m1 -i openssl "$CASE_DIR/out" | tr -s ' \n' ' ')"
    grep -qi 'openssl' "$CASE_DIR/out" && ! grep -q 'Segmentation' "$CASE_DIR/out" || fail "none.cnf: $(cat "$CASE_DIR/out")"
fi

# The names of test_tls_apart, in a program that MPI starts.
cat > "$CASE_DIR/names.c" <<'END'
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
END
grep '^FAKE(\|^#define FAKE' "$SRC/tests/unit/test_tls_apart.c" | sed 's/++called; //' >> "$CASE_DIR/names.c"
cat >> "$CASE_DIR/names.c" <<'END'
int main(int argc, char **argv)
{
    int rank, size, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d: %d, %s\n", rank, sum, (void *) SSL_new == dlsym(RTLD_DEFAULT, "SSL_new") ? "its own names" : "no names");
    MPI_Finalize();
    return size * (size - 1) / 2 != sum;
}
END
must in_variant mpicc -D_GNU_SOURCE -O1 -rdynamic -o "$CASE_DIR/names" "$CASE_DIR/names.c" -ldl
run "$CASE_DIR/names" || fail "names: $(cat "$CASE_DIR/out")"
cat "$CASE_DIR/out"
[ "$(grep -c '^rank [01]: 1, its own names$' "$CASE_DIR/out")" = 2 ] || fail "the program's names are not seen"
sealed "a program that has the names of libssl"

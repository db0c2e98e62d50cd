# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# --mca aead as a user writes it: which provider a job then uses, that no other
# one's library is in the process, and what is said when there is none.
set -eu
. "$SRC/tests/lib.sh"

[ -e "$PREFIX/lib/ompi-crypt/mca_pml_crypt.so" ] || skip "pml/crypt is not built"
cat > "$CASE_DIR/providers.c" <<'EOF'
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* What rank 0 has loaded of the providers, after first contact with rank 1. */
int main(int argc, char **argv)
{
    char line[4096], *name, last[4096] = "";
    int rank;
    FILE *maps;

    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (0 != rank) {
        return MPI_Finalize();
    }
    maps = fopen("/proc/self/maps", "r");
    printf("loaded:");
    while (NULL != fgets(line, sizeof(line), maps)) {
        name = strstr(line, "/mca_aead_");
        if (NULL != name && 0 != strcmp(name, last)) {
            strcpy(last, name);
            printf(" %.*s", (int) strcspn(name + 10, "."), name + 10);
        }
    }
    printf("\n");
    MPI_Finalize();
    return 0;
}
EOF
must mpicc -o "$CASE_DIR/providers" "$CASE_DIR/providers.c"

installed=$(cd "$PREFIX/lib/ompi-crypt" && ls mca_aead_*.so | sed 's/mca_aead_//; s/\.so//' | sort | xargs)
has() { [[ " $installed " = *" $1 "* ]]; }
has openssl || skip "the provider openssl is not built"

job() {                         # job [MPIRUN-ARGUMENT...]
    timeout "$LIMIT" mpirun --allow-run-as-root --oversubscribe -n 2 --mca pml crypt --mca crypt_scope all \
        --mca aead_base_verbose 10 "$@" "$CASE_DIR/providers"
}

# uses PROVIDER LOADED ARGUMENT...: the job runs, with that provider, and has
# exactly those libraries.
uses() {
    local provider=$1 loaded=$2 output; shift 2
    echo "+ $*"
    output=$(job "$@" 2>&1) || fail "status $?: $output"
    printf '%s\n' "$output"
    grep -q "aead: AES-[0-9]*-GCM by $provider " <<<"$output" || fail "not $provider: $*"
    [ "$(sed -n 's/^loaded: //p' <<<"$output" | xargs -n 1 | sort | xargs)" = "$loaded" ] || fail "not only $loaded: $*"
}

# refuses TOPIC TEXT ARGUMENT...: the job fails before MPI_Init returns, for this
# reason, which has a help text.  The reason is looked for in the verbose output:
# Open MPI 4.1 loses help texts on their way through mpirun.
refuses() {
    local topic=$1 text=$2 output; shift 2
    echo "+ ! $*"
    if output=$(job "$@" 2>&1); then
        fail "succeeded: $output"
    fi
    printf '%s\n' "$output"
    refusal=$output
    grep -q '^loaded:' <<<"$output" && fail "MPI_Init returned"
    grep -F -- "-GCM: $topic: " <<<"$output" | grep -qF -- "$text" || fail "\"$topic: $text\" is not said"
    grep -qxF "[$topic]" "$PREFIX/share/ompi-crypt/help-opal-aead-base.txt" || fail "no help text: $topic"
}

# 1. one by name: no other library enters the process
for name in $installed; do
    bits=128
    [ "$name" != sodium ] || bits=256
    uses "$name" "$name" --mca aead "$name" --mca crypt_key_bits $bits
done

# 2. auto, said and unsaid, and auto without its choice
best=$(job 2>&1 | sed -n 's/.*aead: AES-128-GCM by \([a-z]*\) .*/\1/p' | sort -u)
has "$best" || fail "auto takes \"$best\""
first=openssl
! has ipsecmb || first=ipsecmb
uses "$best" "$first" --mca aead auto
uses "$best" "$first"
others=$(xargs -n 1 <<<"$installed" | grep -vx "$best" | xargs)
if [ -n "$others" ]; then
    output=$(job --mca aead "^$best" 2>&1) || fail "$output"
    grep -q "aead: AES-128-GCM by $best " <<<"$output" && fail "^$best uses $best"
    grep -q "^loaded: .*$best" <<<"$output" && fail "^$best loads $best"
fi

# 3. names that are none, and lists
refuses unknown '"nosuch" (available: auto, ' --mca aead nosuch
for name in $installed; do
    grep -q "available: auto.*, $name\b" <<<"$refusal" || fail "$name is not named"
done
refuses unknown '"openssl,nosuch"' --mca aead openssl,nosuch
refuses unknown '"opens"' --mca aead opens
# The provider of a build that encrypts nothing is in none of this one's files.
refuses unknown '"PLAINTEXT"' --mca aead PLAINTEXT
must_fail grep -lazx "no encryption" "$PREFIX"/lib/*.so "$PREFIX"/lib/ompi-crypt/*.so

# 4. a cipher that a provider does not have
if has sodium; then
    refuses cannot "sodium, AES-128-GCM" --mca aead sodium --mca crypt_key_bits 128
fi

# 5. FIPS: openssl with a validated module, or nothing
if openssl list -providers 2>/dev/null | grep -qx ' *fips'; then
    uses openssl "$(xargs -n 1 <<<"$installed" | grep -xE 'ipsecmb|openssl' | xargs)" --mca crypt_fips 1
else
    refuses "no fips" "AES-128-GCM (providers here: " --mca crypt_fips 1
    refuses "not fips" "openssl (OpenSSL " --mca crypt_fips 1 --mca aead openssl
fi
if has ipsecmb; then
    refuses "not fips" "ipsecmb (intel-ipsec-mb " --mca crypt_fips 1 --mca aead ipsecmb
fi

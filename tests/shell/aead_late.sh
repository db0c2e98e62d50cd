# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# When a provider is loaded and tested: in MPI_Init where the user named one or
# several threads call MPI, else when the first message is to be sealed.  One that
# computes wrong results is never used, whenever that is found; and where there is
# no other, the job ends then with the reason, and nothing was sent.
set -eu
. "$SRC/tests/lib.sh"

[ -e "$PREFIX/lib/ompi-crypt/mca_aead_ipsecmb.so" ] || skip "the provider ipsecmb is not built"
cluster_up 2
cat > "$CASE_DIR/late.c" <<'END_OF_C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* Which providers are loaded. */
static void loaded(int rank, const char *when)
{
    char line[4096], *name, last[64] = "", all[256] = "";
    FILE *maps = fopen("/proc/self/maps", "r");

    while (NULL != fgets(line, sizeof(line), maps)) {
        name = strstr(line, "/mca_aead_");
        if (NULL != name && 0 != strncmp(name, last, strcspn(name, "."))) {
            snprintf(last, sizeof(last), "%.60s", name);
            strncat(all, name + 10, strcspn(name + 10, "."));
            strcat(all, " ");
        }
    }
    fclose(maps);
    printf("rank %d %s: %s\n", rank, when, all);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const int level = argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    char sent[4096], got[4096] = "";
    int rank, given;

    MPI_Init_thread(&argc, &argv, level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    loaded(rank, "before");
    for (int i = 0; i < 4096; i += 16) {
        memcpy(sent + i, "the-late-canary-", 16);
    }
    MPI_Sendrecv(sent, 4096, MPI_CHAR, 1 - rank, 5, got, 4096, MPI_CHAR, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    loaded(rank, 0 == memcmp(sent, got, 4096) ? "after" : "WRONG");
    return MPI_Finalize();
}
END_OF_C
must in_variant mpicc -o "$CASE_DIR/late" "$CASE_DIR/late.c"

# libipsec-mb with a fault: its tags have a wrong bit.
cat > "$CASE_DIR/fault.c" <<'END_OF_C'
#include <dlfcn.h>
#include <intel-ipsec-mb.h>

static aes_gcm_enc_dec_t right;

static void wrong(const struct gcm_key_data *key, struct gcm_context_data *context, uint8_t *out, uint8_t const *in,
                  uint64_t bytes, const uint8_t *iv, uint8_t const *aad, uint64_t aad_bytes, uint8_t *tag,
                  uint64_t tag_bytes)
{
    right(key, context, out, in, bytes, iv, aad, aad_bytes, tag, tag_bytes);
    tag[0] ^= 1;
}

void init_mb_mgr_auto(IMB_MGR *manager, IMB_ARCH *arch)
{
    void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    void (*real)(IMB_MGR *, IMB_ARCH *) = (void (*)(IMB_MGR *, IMB_ARCH *)) dlsym(library, "init_mb_mgr_auto");

    real(manager, arch);
    right = manager->gcm128_enc;
    manager->gcm128_enc = wrong;
}
END_OF_C
library=$(readelf -d "$PREFIX/lib/ompi-crypt/mca_aead_ipsecmb.so" | sed -n 's/.*\[\(libIPSec_MB[^]]*\)\]/\1/p')
must in_variant gcc -shared -fPIC -DLIBRARY="\"$library\"" -o "$CASE_DIR/fault.so" "$CASE_DIR/fault.c"

# job EXPECTED-STATUS ARGUMENT...: one rank a node; what crossed the wire is captured.
job() {
    local expected=$1 rc=0; shift
    echo "+ $*"
    capture_start node0 "$CASE_DIR/capture" -i eth0 -B 262144
    vcluster mpirun -n 2 --map-by node "$@" > "$CASE_DIR/out" 2>&1 < /dev/null || rc=$?
    capture_stop node0
    cat "$CASE_DIR/out"
    said=$(tr -s ' \n' ' ' < "$CASE_DIR/out")
    [ "$expected" = "$((rc != 0))" ] || fail "status $rc"
}
crossed() { grep -qaF the-late-canary- "$CASE_DIR/capture"; }
both() {            # both WHEN WHAT: on both ranks these were loaded then
    [ "$(grep -cE "^rank [01] $1: $2 ?$" "$CASE_DIR/out")" = 2 ] || fail "not \"$2\" $1"
}
nobody() { ! grep -q "^rank . $1:" "$CASE_DIR/out" || fail "somebody came $1"; }
faulty=(-x LD_PRELOAD="$CASE_DIR/fault.so" "$CASE_DIR/late")

# 1. the capture finds what is not sealed
job 0 --mca pml ob1 "$CASE_DIR/late"
crossed || fail "the capture does not find what plain Open MPI sends"

# 2. a provider that works: late for one thread, at once for several or by name
job 0 "$CASE_DIR/late"
both before ""
both after ipsecmb
! crossed || fail "it was sent in plaintext"
job 0 "$CASE_DIR/late" multiple
both before ipsecmb
both after ipsecmb
job 0 --mca aead ipsecmb "$CASE_DIR/late"
both before ipsecmb

# 3. one with a fault: another is used, by name none
job 0 "${faulty[@]}"
both before ""
grep -qE '^rank 0 after: .*openssl' "$CASE_DIR/out" || fail "openssl is not used"
[[ $said == *"computes wrong results on this node, and another one is used instead: on node"[01]": ipsecmb failed with AES-128-GCM; openssl is used"* ]] ||
    fail "nothing is said of the fault"
! crossed || fail "it was sent in plaintext"
job 1 --mca aead ipsecmb "${faulty[@]}"
nobody before

# 4. one with a fault, and there is no other
mkdir "$CASE_DIR/components"
for component in "$PREFIX"/lib/ompi-crypt/mca_*.so; do
    case $component in
        */mca_aead_ipsecmb.so) ;;
        */mca_aead_*) continue ;;
    esac
    ln -s "$component" "$CASE_DIR/components"
done
export OMPI_MCA_mca_base_component_path=${OMPI_MCA_mca_base_component_path/"$PREFIX/lib/ompi-crypt"/"$CASE_DIR/components"}
job 1 "${faulty[@]}"
# The other process may be killed first.
grep -qE "^rank [01] before: ?$" "$CASE_DIR/out" || fail "nobody came to the first message"
nobody after
nobody WRONG
[[ $said == *"computes wrong results on this node and is not used: on node"[01]": ipsecmb, AES-128-GCM"* ]] || fail "it does not say why"
! crossed || fail "it was sent in plaintext"
job 0 "$CASE_DIR/late"
both after ipsecmb

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Processes that get different answers to "who has hook/crypt?" must not diverge when a
# file is opened: if Open MPI's runtime has no answer for a process, the job ends.
. "$SRC/tests/io/common.sh"

# LD_PRELOAD: in rank DEAF, the runtime does not return what rank DEAF_TO has published.
cat > "$CASE_DIR/deaf.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NAMESPACE_BYTES = 256, TIMEOUT = -24 };      /* of PMIx, of which we have no header */
typedef void answer_t(int status, void *value, void *data);
typedef int get_t(const void *, const char *, const void *, size_t, answer_t *, void *);

int PMIx_Get_nb(const void *proc, const char *key, const void *info, size_t count, answer_t *to, void *data)
{
    const char *rank = getenv("PMIX_RANK"), *deaf = getenv("DEAF"), *deaf_to = getenv("DEAF_TO");
    uint32_t of;

    memcpy(&of, (const char *) proc + NAMESPACE_BYTES, sizeof(of));
    if (NULL != key && NULL != strstr(key, "crypt.hook") && NULL != rank && NULL != deaf && NULL != deaf_to
        && 0 == strcmp(rank, deaf) && (uint32_t) atoi(deaf_to) == of) {
        to(TIMEOUT, NULL, data);
        return 0;
    }
    return ((get_t *) dlsym(RTLD_NEXT, "PMIx_Get_nb"))(proc, key, info, count, to, data);
}
END
cluster_up 2 --slots 2
must in_variant gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/deaf.so" "$CASE_DIR/deaf.c" -ldl
must in_variant mpicc -O2 -Wall -Wextra -Werror -o "$CASE_DIR/job" "$SRC/tests/shell/misuse/job.c"

# job PML OPTION...: it opens a plain file, and does not hang.
job() {
    local pml=$1; shift
    rm -f "$CASE_DIR/file"
    timeout -k 5 "$LIMIT" "$SRC/tests/vcluster" mpirun -n 4 --mca pml "$pml" -x LD_PRELOAD="$CASE_DIR/deaf.so" "$@" \
        "$CASE_DIR/job" file "$CASE_DIR/file" < /dev/null
}

must job ob1
for pml in ob1 crypt; do
    # A rank that rank 0 does not hear of, and one that does not hear of rank 0: on its node, and on the other.
    for who in "0 1" "0 3" "1 0" "3 0"; do
        echo "--- $pml: in rank ${who% *} nothing is known of rank ${who#* }"
        status=0
        job $pml -x DEAF="${who% *}" -x DEAF_TO="${who#* }" > "$CASE_DIR/out" 2>&1 || status=$?
        grep -qF "rank ${who#* } of the file's communicator" "$CASE_DIR/out" && grep -qF "does not say whether" "$CASE_DIR/out" ||
            { cat "$CASE_DIR/out"; fail "status $status, without the text"; }
        [ $status != 0 ] && [ $status != 124 ] && [ $status != 137 ] || { cat "$CASE_DIR/out"; fail "status $status"; }
    done
done

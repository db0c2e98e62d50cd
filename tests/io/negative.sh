# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A component below fbtl/crypt that fails, where only internal headers lead.
. "$SRC/tests/io/common.sh"
set -eu

mkdir "$CASE_DIR/files"
cluster_up 1 --slots 1
program=$VARIANT_DIR/tests/io/negative
flags=$(cd "$BUILD/ompi/mca/fbtl/crypt" &&
        printf 'include Makefile\nshow:\n\t@echo $(DEFS) $(CPPFLAGS)\n' | make -s -f - show | tail -n 1)
mkdir -p "$(dirname "$program")"
(
    cd "$BUILD/ompi/mca/fbtl/crypt"             # where -I$(top_srcdir) and the like are right
    eval "flags=($flags)"
    in_variant mpicc -std=gnu11 -O2 -g -mcx16 -fno-strict-aliasing -Wall -Wextra -Wshadow -Werror \
        -Wno-unused-parameter $VARIANT_CFLAGS "${flags[@]}" -I"$SRC/tests/mpi" -o "$program" \
        "$SRC/tests/io/forge/negative.c" "$SRC/tests/mpi/mt.c" -lopen-pal -lm >&2
) || fail "negative.c does not compile"
must run_io 1 "$program" "$CASE_DIR/files"

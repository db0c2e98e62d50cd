# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Programs that stand between coll/cryptag and the host PML, where only Open
# MPI's and our own internal headers lead.  Sourced after tests/lib.sh.

# forge NAME: compile forge/NAME.c; prints the program's path
forge() {
    local program=$VARIANT_DIR/tests/coll/$1 flags
    flags=$(cd "$BUILD/ompi/mca/coll/cryptag" &&
            printf 'include Makefile\nshow:\n\t@echo $(DEFS) $(CPPFLAGS)\n' | make -s -f - show | tail -n 1)
    mkdir -p "$(dirname "$program")"
    (
        cd "$BUILD/ompi/mca/coll/cryptag"       # where -I$(top_srcdir) and the like are right
        eval "flags=($flags)"
        in_variant mpicc -std=gnu11 -O2 -g -mcx16 -fno-strict-aliasing -Wall -Wextra -Wshadow -Werror \
            -Wno-unused-parameter $VARIANT_CFLAGS "${flags[@]}" -I"$SRC/tests/mpi" -I"$SRC/tests/coll" \
            -o "$program" "$SRC/tests/coll/forge/$1.c" "$SRC/tests/coll/cryptag.c" "$SRC/tests/mpi/mt.c" \
            -L"$PREFIX/lib" -lmca_common_cryptmpi -lmca_common_crypt -Wl,-rpath,"$PREFIX/lib" -lopen-pal -lm >&2
    ) || fail "$1.c does not compile"
    echo "$program"
}

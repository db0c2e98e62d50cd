# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Programs that stand between coll/cryptag and the host PML, where only Open
# MPI's and our own internal headers lead.  Sourced after tests/lib.sh.

# forge NAME: compile forge/NAME.c; prints the program's path
forge() {
    internal_program ompi/mca/coll/cryptag "coll/$1" -I"$SRC/tests/coll" "$SRC/tests/coll/forge/$1.c" \
        "$SRC/tests/coll/cryptag.c" "$SRC/tests/mpi/mt.c" -L"$PREFIX/lib" -lmca_common_cryptmpi -lmca_common_crypt \
        -Wl,-rpath,"$PREFIX/lib"
}

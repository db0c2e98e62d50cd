# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# opal/mca/common/cryptproc needs no MPI: a process that has OPAL and PMIx alone, as a transport that is
# started before any PML, publishes one record a life, however many ask for it, and agrees on
# keys with another one.
set -eu
. "$SRC/tests/lib.sh"
cluster_up 2

# 1. the libraries that it needs, and the symbols
for library in "$PREFIX"/lib/libmca_common_cryptproc.so; do
    nm --dynamic --undefined-only --format=posix "$library" | cut -d ' ' -f 1 > "$CASE_DIR/needed"
    must grep -qx opal_process_info "$CASE_DIR/needed"
    must_fail grep -E '^(ompi_|mca_pml|P?MPI_|mca_bml)' "$CASE_DIR/needed"
    in_variant ldd "$library" > "$CASE_DIR/ldd"
    must_fail grep -E 'libmpi|cryptmpi|not found' "$CASE_DIR/ldd"
done

# 2. a program of these alone
program=$CASE_DIR/alone
vars=$(cd "$BUILD/opal/mca/common/cryptproc" &&
       printf 'include Makefile\nshow:\n\t@echo $(DEFS) $(CPPFLAGS) @ $(OMPI_CRYPT_BARE_OPAL_LIBS) $(OMPI_CRYPT_PMIX_LIBS)\n' |
       make -s -f - show | tail -n 1)
eval "compile=(${vars%@*}) link=(${vars#*@})"
(
    cd "$BUILD/opal/mca/common/cryptproc"
    must in_variant cc -std=gnu11 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -pthread -rdynamic "${compile[@]}" \
        -o "$program" "$SRC/tests/shell/proc/alone.c" -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" \
        -lmca_common_cryptproc -lmca_common_crypt "${link[@]}" -ldl
)
in_variant ldd "$program" > "$CASE_DIR/ldd"
must grep -q libopen-pal "$CASE_DIR/ldd"
must_fail grep -E 'libmpi|not found' "$CASE_DIR/ldd"

# 3. two of them, on two nodes
must vcluster mpirun -n 2 --map-by node "$program" > "$CASE_DIR/out"
grep '^life' "$CASE_DIR/out" | sort > "$CASE_DIR/lives"
[ "$(wc -l < "$CASE_DIR/lives")" = 4 ] || fail "not two lives of two ranks"
# What one sends under, the other receives under; all four keys differ.
for life in 0 1; do
    [ "$(awk "/^life $life rank 0/ { print \$6, \$8 }" "$CASE_DIR/lives")" = \
      "$(awk "/^life $life rank 1/ { print \$8, \$6 }" "$CASE_DIR/lives")" ] || fail "life $life: they do not agree"
done
[ "$(awk '{ print $6 }' "$CASE_DIR/lives" | sort -u | wc -l)" = 4 ] || fail "keys come twice"

# 4. whoever publishes nothing is refused, or waited for no longer than was said
rc=0
vcluster mpirun -n 2 --map-by node --mca crypt_connect_timeout 3 "$program" silent > "$CASE_DIR/out" 2>&1 || rc=$?
cat "$CASE_DIR/out"
if grep -q 'has been waiting for 3 seconds (crypt_connect_timeout)' "$CASE_DIR/out"; then
    [ $rc != 0 ] || fail "the job did not end"
else
    must grep -q 'refused: record-missing' "$CASE_DIR/out"
    [ $rc = 0 ] || fail "status $rc"
fi

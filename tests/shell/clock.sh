# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# By a clock that the program sets: clock, what a process says over btl/crypt of a peer that does not answer, or refuses it, and
# after how long; claims, what strangers leave behind who say that they are peers.  clock/NAME.c is compiled with the sources of the
# component, since --wrap does not reach into objects made for link-time optimization.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 1
btl=$BUILD/opal/mca/btl/crypt
pmix=$(cd "$btl" && printf 'include Makefile\nshow:\n\t@echo $(OMPI_CRYPT_PMIX_LIBS)\n' | make -s -f - show | tail -n 1)

# by_clock NAME LINES: it says so many lines.
by_clock() {
    local source=$SRC/tests/shell/clock/$1.c program wrap
    mapfile -t wrap < <(sed -nE 's/.*\b__wrap_([a-z_]+)\(.*/-Wl,--wrap=\1/p' "$source" | sort -u)
    program=$(internal_program opal/mca/btl/crypt "shell/$1" "$source" "${wrap[@]}" "$SRC"/opal/mca/btl/crypt/btl_crypt_*.c \
        -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" -lmca_common_cryptproc -lmca_common_crypt "$BUILD"/standalone/.libs/libmca_aead_base.so $pmix)
    vcluster mpirun -n 1 --mca pml ob1 --mca btl self "$program" > "$CASE_DIR/out" 2>&1 || fail "$(cat "$CASE_DIR/out")"
    cat "$CASE_DIR/out"
    must test "$(grep -c '^ok: ' "$CASE_DIR/out")" = "$2"
}
by_clock clock 2
by_clock claims 4

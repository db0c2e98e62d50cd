# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What a process says over btl/crypt of a peer that does not answer, or refuses it, and after how long, by a clock that the
# program sets.  clock/clock.c is compiled with the sources of the component, since --wrap does not reach into objects made
# for link-time optimization.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 1
btl=$BUILD/opal/mca/btl/crypt wrap=()
for function in connect opal_crypt_schedule_peer opal_crypt_tls_psk opal_btl_crypt_{link_connect,link_drive,link_destroy,watch,unwatch,endpoint_ask}; do
    wrap+=("-Wl,--wrap=$function")
done
pmix=$(cd "$btl" && printf 'include Makefile\nshow:\n\t@echo $(OMPI_CRYPT_PMIX_LIBS)\n' | make -s -f - show | tail -n 1)
program=$(internal_program opal/mca/btl/crypt shell/clock "$SRC/tests/shell/clock/clock.c" "${wrap[@]}" "$SRC"/opal/mca/btl/crypt/btl_crypt_*.c \
    -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" -lmca_common_cryptproc -lmca_common_crypt "$BUILD"/standalone/.libs/libmca_aead_base.so $pmix)
vcluster mpirun -n 1 --mca pml ob1 --mca btl self "$program" > "$CASE_DIR/out" 2>&1 || fail "$(cat "$CASE_DIR/out")"
cat "$CASE_DIR/out"
must test "$(grep -c 'said, once$' "$CASE_DIR/out")" = 2

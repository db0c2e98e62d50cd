# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The memory of an accelerator over btl/crypt: messages go from it and to it, as over btl/tcp, and no
# processor touches it.  Over pml/crypt's own transport such a buffer is refused (shell/messages).
set -eu
. "$SRC/tests/lib.sh"
[ "$SERIES" != 4.1 ] || skip "Open MPI 4.1 has no accelerator components; CUDA is compiled in, or is not"

cluster_up 2
here=$SRC/tests/shell/messages
mkdir "$CASE_DIR/components"
(
    cd "$BUILD/ompi/mca/pml/crypt"      # where -I$(top_srcdir) and the like are right
    eval "flags=($(internal_flags .))"
    must in_variant mpicc -O2 -Wall -shared -fPIC "${flags[@]}" -o "$CASE_DIR/components/mca_accelerator_pretend.so" \
        "$here/accelerator.c" -lopen-pal
)
must in_variant mpicc -O2 -Wall -Wextra -Werror -o "$CASE_DIR/on_device" "$here/on_device.c"
export DEVICE_ALIAS=1
export OMPI_MCA_mca_base_component_path=$CASE_DIR/components:$OMPI_MCA_mca_base_component_path OMPI_MCA_accelerator=pretend

# over NAME OPTION...
over() {
    local name=$1; shift
    must vcluster mpirun -n 4 --map-by node -x DEVICE_ALIAS "$@" "$CASE_DIR/on_device" "$CASE_DIR/good.$name"
    [ -e "$CASE_DIR/good.$name" ] || fail "$name: it did not end well"
}
over plain --mca pml ob1 --mca btl tcp,self
over sealed --mca pml crypt --mca crypt_transport btl --mca btl crypt,self

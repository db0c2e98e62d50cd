# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# env.sh and the modulefile: Open MPI finds our components in a private prefix,
# also on the remote nodes that mpirun starts processes on.
set -eu
. "$SRC/tests/lib.sh"

unset OMPI_MCA_mca_base_component_path
wanted=$PREFIX/lib/ompi-crypt:SYS_DEFAULT:USER_DEFAULT

# 1. sourced twice, by several shells, with -u, and over a user's setting
for shell in dash bash; do
    got=$($shell -euc '. "$1/share/ompi-crypt/env.sh"; . "$1/share/ompi-crypt/env.sh"
                       echo "$OMPI_MCA_mca_base_component_path"' - "$PREFIX")
    [ "$got" = "$wanted" ] || fail "$shell: $got"
done
got=$(OMPI_MCA_mca_base_component_path=/mine:SYS_DEFAULT bash -c \
    '. "$1/share/ompi-crypt/env.sh"; echo "$OMPI_MCA_mca_base_component_path"' - "$PREFIX")
[ "$got" = "$PREFIX/lib/ompi-crypt:/mine:SYS_DEFAULT" ] || fail "over a user's setting: $got"

got=$(bash -c '. /usr/share/modules/init/bash; module use "$1/share/ompi-crypt/modulefiles"
               module load ompi-crypt; echo "$OMPI_MCA_mca_base_component_path"
               module unload ompi-crypt; echo "${OMPI_MCA_mca_base_component_path-none}"' - "$PREFIX")
[ "$got" = "$wanted"$'\n'none ] || fail "module: $got"

# 2. on every node
. "$PREFIX/share/ompi-crypt/env.sh"
cluster_up 2
OMPI_MCA_pml=ob1 vcluster mpirun -n 4 sh -c 'echo "$(hostname) $OMPI_MCA_mca_base_component_path"' |
    tee "$CASE_DIR/out"
for node in node0 node1; do
    [ "$(grep -c "^$node $wanted\$" "$CASE_DIR/out")" = 2 ] || fail "not on $node"
done

# 3. ompi_info finds them
must ls "$PREFIX"/lib/ompi-crypt/mca_*.so
if [ -e "$PREFIX/lib/ompi-crypt/mca_pml_crypt.so" ]; then
    says "MCA pml: crypt" ompi_info
fi

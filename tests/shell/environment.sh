# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# env.sh and the modulefile: Open MPI finds our components in a private prefix,
# also on the remote nodes that mpirun starts processes on.
set -eu
. "$SRC/tests/lib.sh"

unset OMPI_MCA_mca_base_component_path
wanted=SYS_DEFAULT:$PREFIX/lib/ompi-crypt:USER_DEFAULT

# 1. sourced twice, by several shells, with -u, and over a user's setting
for shell in dash bash; do
    got=$($shell -euc '. "$1/share/ompi-crypt/env.sh"; . "$1/share/ompi-crypt/env.sh"
                       echo "$OMPI_MCA_mca_base_component_path"' - "$PREFIX")
    [ "$got" = "$wanted" ] || fail "$shell: $got"
done
for mine in /mine:SYS_DEFAULT=/mine:SYS_DEFAULT:$PREFIX/lib/ompi-crypt /mine=/mine:$PREFIX/lib/ompi-crypt \
            SYS_DEFAULT:USER_DEFAULT=$wanted $PREFIX/lib/ompi-crypt:SYS_DEFAULT=$PREFIX/lib/ompi-crypt:SYS_DEFAULT; do
    got=$(OMPI_MCA_mca_base_component_path=${mine%%=*} dash -euc \
        '. "$1/share/ompi-crypt/env.sh"; echo "$OMPI_MCA_mca_base_component_path"' - "$PREFIX")
    [ "$got" = "${mine#*=}" ] || fail "over a user's setting: $got"
done

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

# 2b. a node without them runs plain jobs; an encrypted one ends there, and says on which
must in_variant mpicc -O2 -o "$CASE_DIR/job" "$SRC/tests/shell/misuse/job.c"
vcluster exec node1 mount -t tmpfs none "$PREFIX"
OMPI_MCA_pml=ob1 must vcluster mpirun -n 2 --map-by node "$CASE_DIR/job"
echo "+ ! encrypted"
! OMPI_MCA_pml=crypt mpirun_aside -n 2 --map-by node -- "$CASE_DIR/job" > "$CASE_DIR/missing" 2>&1 ||
    fail "an encrypted job ran without ompi-crypt on a node"
cat "$CASE_DIR/missing"
grep -qE '^ *Host: +node1$' "$CASE_DIR/missing" || fail "it does not name the node"
vcluster exec node1 umount "$PREFIX"

# 3. ompi_info finds them
must ls "$PREFIX"/lib/ompi-crypt/mca_*.so
if [ -e "$PREFIX/lib/ompi-crypt/mca_pml_crypt.so" ]; then
    says "MCA pml: crypt" in_variant ompi_info
fi

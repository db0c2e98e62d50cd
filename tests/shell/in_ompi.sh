# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Installed into Open MPI's own directories, the components are found without
# any setting, and make uninstall leaves these directories as they were.  It
# happens on an overlay over /usr, which only this script sees.
set -eu
. "$SRC/tests/lib.sh"

if [ "${1-}" != inside ]; then
    [ "$(id -u)" = 0 ] || skip "mounts need root"
    exec unshare --mount bash "$SRC/tests/shell/in_ompi.sh" inside
fi

prefix=$(ompi_info --parsable --path prefix | sed -n 's/^path:prefix://p')
[ "$prefix" = /usr ] || skip "Open MPI is not in /usr but in $prefix"
mkdir "$CASE_DIR/upper" "$CASE_DIR/work" "$CASE_DIR/build"
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$CASE_DIR/upper,workdir=$CASE_DIR/work" /usr ||
    skip "no overlay file system over /usr in $CASE_DIR"

cd "$CASE_DIR/build"
must "$SRC/configure" --prefix=/usr >configure.out
must make -s -j"$(nproc)"
must make -s install
(cd "$CASE_DIR/upper" && find . ! -type d) | tee "$CASE_DIR/installed"
must grep -q '/openmpi.*/mca_pml_crypt.so$' "$CASE_DIR/installed"

unset OMPI_MCA_mca_base_component_path LD_LIBRARY_PATH
says 'MCA pml: crypt' ompi_info
cat > "$CASE_DIR/init.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    int one = 1, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 4 == sum ? 0 : 1;
}
END
must mpicc -o "$CASE_DIR/init" "$CASE_DIR/init.c"
cluster_up 2
must vcluster mpirun -n 4 --mca pml crypt "$CASE_DIR/init"
says 'Make it, and install it on every node of the job' vcluster mpirun -n 4 \
    --mca pml crypt --mca crypt_psk_file "$CASE_DIR/none" "$CASE_DIR/init"

must make -s uninstall
left=$(cd "$CASE_DIR/upper" && find . -type f)
[ -z "$left" ] || fail "make uninstall left: $left"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# series.sh [6.0]: a component that finds itself in another series of Open MPI than it was built
# for refuses: MPI_Init fails with a message, nobody crashes.  4.1 and 5.0, or 6.0.  Both directions run
# in the root of the newer one, whose C library serves both, and without mpirun:
# that of 5.0 may lose what a process says right before it ends.
set -eu
. "$SRC/tests/lib.sh"
newer=${1:-5.0} newer_root=$ROOT_50 newer_prefix=$PREFIX_50
[ "$newer" = 5.0 ] || newer_root=$ROOT_60 newer_prefix=$PREFIX_60

# refuses TEXT COMMAND...: it fails by its own exit(), and its output has TEXT.
refuses() {
    local text=$1 rc=0; shift
    echo "+ ! $*"
    "$@" >"$CASE_DIR/out" 2>&1 || rc=$?
    cat "$CASE_DIR/out"
    [ "$rc" != 0 ] || fail "the job ran"
    [ "$rc" -lt 128 ] && ! grep -qiE 'segmentation|signal' "$CASE_DIR/out" || fail "status $rc: a crash"
    # The launcher may break lines.
    tr '\n' ' ' < "$CASE_DIR/out" | grep -qF -- "$text" || fail "\"$text\" is not in the output"
}

names() { nm --dynamic --format=posix "$@" | cut -d ' ' -f 1 | sort -u; }

# standin PREFIX LIBMPI NAME: $CASE_DIR/NAME.so has what pml/crypt of PREFIX wants
# of Open MPI, and LIBMPI does not have.
standin() {
    local dir=$1 libmpi=$2 name=$CASE_DIR/$3
    names --undefined-only "$dir"/lib/ompi-crypt/mca_pml_crypt.so "$dir"/lib/*.so | grep ^ompi_ > "$name.wanted"
    names --defined-only "$libmpi" "$dir"/lib/*.so > "$name.there"
    comm -23 "$name.wanted" "$name.there" | sed 's/.*/long &[16];/' > "$name.c"
    must test -s "$name.c"
    must gcc -shared -fPIC -o "$name.so" "$name.c"
}

# 1. a program and the libraries of 4.1, where both series can see them
cat > "$CASE_DIR/init.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    return MPI_Finalize();
}
END
mpicc -o "$CASE_DIR/init-4.1" "$CASE_DIR/init.c"
ompi=$CASE_DIR/ompi-4.1
mkdir "$ompi"
for library in $(ldd "$CASE_DIR/init-4.1" | sed -nE 's/.*(libmpi|libopen).* => ([^ ]*) .*/\2/p'); do
    cp -L "$library" "$(dirname "$library")"/libmca_common_*.so.*[0-9] "$ompi"
done
cp -rL "$(ompi_info --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p')" "$ompi/components"
mkdir "$CASE_DIR/opal-4.1"
cp "$ompi"/libopen-pal.so.* "$CASE_DIR/opal-4.1"
unset OMPI_MCA_mca_base_component_path
cluster_up 1 --root "$newer_root" --bind "$SRC" --bind "$(dirname "$VARIANT_DIR")"
cd "$CASE_DIR"
must vcluster exec node0 mpicc -o init-newer init.c

# 2. ours for 4.1 in a job of the newer one: first as it comes, then where libopen-pal of
# 4.1 is found as well, then with stand-ins for what 5.0 does not have, so that
# the dynamic linker lets the component through.  PMIx keeps away
# from our components, as after the right env.sh.
export PMIX_MCA_mca_base_component_path=$newer_prefix/share/ompi-crypt/pmix
in_newer() {
    vcluster exec node0 env OMPI_MCA_mca_base_component_path="$PREFIX/lib/ompi-crypt:SYS_DEFAULT" "$@" ./init-newer
}
must in_newer OMPI_MCA_pml=ob1
if [ "$newer" = 5.0 ]; then
    refuses 'unable to open mca_pml_crypt: libopen-pal.so' in_newer
    refuses 'undefined symbol' in_newer LD_LIBRARY_PATH="$CASE_DIR/opal-4.1"
    standin "$PREFIX" "$(vcluster exec node0 sh -c 'ldd init-newer' | sed -n "s,.*libmpi.*=> \([^ ]*\).*,$newer_root\1,p")" for-4.1
    refuses 'The component pml/crypt of ompi-crypt was built for Open MPI 4.1' \
        in_newer LD_LIBRARY_PATH="$CASE_DIR/opal-4.1" LD_PRELOAD="$CASE_DIR/for-4.1.so"
else
    refuses 'undefined symbol' in_newer         # libopen-pal of 6.0 has the name of 4.1's
fi

# 3. ours for the newer one in a process of 4.1, which the dynamic linker refuses; then, of
# 5.0, with stand-ins for what 4.1 does not have, so that the linker lets it through
in_4_1() {
    vcluster exec node0 env OMPI_MCA_ess_singleton_isolated=1 LD_LIBRARY_PATH="$ompi" \
        OMPI_MCA_mca_base_component_path="$newer_prefix/lib/ompi-crypt:$ompi/components" "$@" ./init-4.1
}
must in_4_1 OMPI_MCA_pml=ob1
refuses 'undefined symbol' in_4_1
[ "$newer" = 5.0 ] || exit 0
standin "$newer_prefix" "$(echo "$ompi"/libmpi.so.*)" for-newer
refuses 'The component pml/crypt of ompi-crypt was built for Open MPI 5.0' \
    in_4_1 LD_PRELOAD="$CASE_DIR/for-newer.so"

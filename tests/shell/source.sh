# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# ompi-crypt for an Open MPI that was installed without its internal headers, as EasyBuild,
# OpenHPC, Spack and conda-forge do: built with a source tree that packaging/configure-ompi has
# configured, and cases of run.sh run with it.
#
#   source.sh debian    Debian's sources of Open MPI 4.1, a build with few components
#   source.sh release   the source tree that OMPI_CRYPT_OMPI_SOURCE names (tests/README.rst)
#
# Open MPI is built once, in $CACHE.
set -eu
. "$SRC/tests/lib.sh"

# debian_sources DIR: as their authors released them, by a list of sources of our own.
debian_sources() {
    local mirror here=$CASE_DIR/apt codename
    codename=$(. /etc/os-release; echo "$VERSION_CODENAME")
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Component: main' 2>/dev/null | grep -v security | head -n 1)
    mkdir -p "$here"/lists/partial "$here"/cache/archives/partial
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "${OMPI_CRYPT_MIRROR:-${mirror:-http://deb.debian.org/debian}} $codename main" > "$here/sources.list"
    cd "$here"
    for command in update "source --download-only openmpi"; do
        apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$here/sources.list" -o Dir::Etc::SourceParts=- \
            -o Dir::State::Lists="$here/lists" -o Dir::Cache="$here/cache" $command > log 2>&1 ||
            skip "no sources of Open MPI: $(tail -n 1 log)"
    done
    dpkg-source --skip-patches -x openmpi_*.dsc "$1" > log 2>&1 || fail "$(cat log)"
    # Debian leaves it out, and generates it.
    (cd "$1/config" && autom4te --language=m4sh opal_get_version.m4sh -o opal_get_version.sh)
}

case $1 in
    debian)
        command -v dpkg-source > /dev/null || skip "dpkg-source is missing (Debian: dpkg-dev)"
        home=$CACHE/ompi-debian cases=(mpi/p2p_modes mpi/p2p_match) ;;
    release)
        [ -n "${OMPI_CRYPT_OMPI_SOURCE-}" ] || skip "OMPI_CRYPT_OMPI_SOURCE names no source tree of another release"
        home=$CACHE/ompi-$(basename "$OMPI_CRYPT_OMPI_SOURCE")-$(cksum < "$OMPI_CRYPT_OMPI_SOURCE/VERSION" | cut -d ' ' -f 1)
        cases=('mpi/p2p_*' 'coll/*') ;;
esac

exec 9>"$home.lock"
flock 9
if [ ! -e "$home/complete" ]; then
    echo "1. Open MPI"
    rm -rf --one-file-system "$home"
    mkdir "$home"
    if [ "$1" = debian ]; then
        debian_sources "$home/build"
    else
        cp -a "$OMPI_CRYPT_OMPI_SOURCE" "$home/build"
    fi
    cp -a "$home/build" "$home/tree"
    cd "$home/build"
    own=()                              # 5.0 would take this system's PMIx, which may be too old for its launcher
    ! grep -q '^major=5' VERSION || own=(--with-pmix=internal --with-prrte=internal)
    must ./configure --prefix="$home/prefix" --disable-mpi-fortran --disable-mpi-cxx --disable-oshmem --disable-man-pages \
        --without-verbs --without-ucx --without-ofi --without-psm --without-psm2 --without-slurm --without-munge \
        --enable-mca-no-build=io-romio321,io-romio341,coll-hcoll,btl-usnic,btl-openib,btl-uct,vprotocol,crs,snapc,sstore \
        --with-libevent=external --with-hwloc=external ${own[@]+"${own[@]}"} > "$home/configure.log" 2>&1
    must make -s -j"$(nproc)" > "$home/make.log" 2>&1
    must make -s install > "$home/install.log" 2>&1
    must "$SRC/packaging/configure-ompi" "$home/tree" "$home/prefix" > "$home/tree.log" 2>&1
    rm -rf "$home/build"
    touch "$home/complete"
fi
exec 9>&-
prefix=$home/prefix tree=$home/tree
unset LD_LIBRARY_PATH
export PATH=$prefix/bin:$PATH
series=$(ompi_info --version | sed -n -E 's/^Open MPI v([0-9]+\.[0-9]+).*/\1/p')
must test ! -e "$prefix/include/openmpi/ompi/mca/pml/pml.h"

echo "2. what configure says"
# configured TEXT SWITCH...: with this Open MPI; whether it works is not asked.
configured() {
    rm -rf "$CASE_DIR/try"
    mkdir "$CASE_DIR/try"
    cd "$CASE_DIR/try"
    says "$1" "$SRC/configure" --with-ompi="$prefix" "${@:2}"
}
# changed FILE SED-EXPRESSION TEXT: said of the tree with another FILE, which is put back.
changed() {
    cp -p "$tree/$1" "$CASE_DIR/kept"
    sed -i "$2" "$tree/$1"
    configured "$3" --with-ompi-source="$tree"
    cp -p "$CASE_DIR/kept" "$tree/$1"
}
configured 'is installed without its internal headers'
configured 'whether that tree was configured as Open MPI was... yes' --with-ompi-source="$tree"
changed opal/include/opal_config.h 's/#define OPAL_RELEASE_VERSION .*/#define OPAL_RELEASE_VERSION 98/' 'are of another Open MPI than'
changed opal/include/opal_config.h 's/#define OPAL_ENABLE_DEBUG .*/#define OPAL_ENABLE_DEBUG 1/' \
    'were configured with other options than'
changed config.status "/^ac_cs_config=/s/'--disable-oshmem'/'--enable-heterogeneous'/" \
    'only the tree has:          --enable-heterogeneous'
mkdir -p "$CASE_DIR/other/bin"
printf '#!/bin/sh\necho "Open MPI v4.0.3"\n' > "$CASE_DIR/other/bin/ompi_info"
chmod +x "$CASE_DIR/other/bin/ompi_info"
says 'is of 4.0.3' "$SRC/packaging/configure-ompi" "$tree" "$CASE_DIR/other"

echo "3. cases with Open MPI $series"
mkdir -p "$CASE_DIR/tests"
cp "$(dirname "$VARIANT_DIR")/configured" "$CASE_DIR/tests"
must env OMPI_CRYPT_TEST_DIR="$CASE_DIR/tests" OMPI_CRYPT_CONFIGURE="--with-ompi=$prefix --with-ompi-source=$tree" \
    "$SRC/tests/run.sh" --no-packages "${cases[@]}"

echo "4. a ring"
unset OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path
. "$CASE_DIR/tests/$series/prefix/share/ompi-crypt/env.sh"
must mpicc -o "$CASE_DIR/ring" "$SRC/examples/ring.c"
echo "secret-$(od -An -tx1 -N8 /dev/urandom | tr -d ' \n') of the ring" > "$CASE_DIR/secret.txt"
cluster_up 2
says "4 ranks: the messages came back as they were sent" vcluster mpirun -n 4 --mca pml crypt "$CASE_DIR/ring" "$CASE_DIR/secret.txt"
must mpicrypt doctor

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Where it cannot be built, configure stops and says what helps.
set -eu
. "$SRC/tests/lib.sh"

# fake NAME SED-EXPRESSION: an Open MPI whose ompi_info says something else.
fake() {
    mkdir -p "$CASE_DIR/$1/bin"
    cp -s "$(command -v mpicc.openmpi || command -v mpicc)" "$CASE_DIR/$1/bin/mpicc"
    printf '#!/bin/sh\n%s "$@" | sed "%s"\n' "$(command -v ompi_info)" "$2" > "$CASE_DIR/$1/bin/ompi_info"
    chmod +x "$CASE_DIR/$1/bin/ompi_info"
}

# fake_headers NAME SED-EXPRESSION: one with another opal_config.h.
fake_headers() {
    local include=$CASE_DIR/$1/include
    fake "$1" "s|^path:pkgincludedir:.*|path:pkgincludedir:$include|"
    cp -rs "$headers" "$include"
    find "$include" -name opal_config.h -exec sed -i "$2" {} +
}

# stops TEXT NAME [SWITCH...]: configure ends with an error that has TEXT.
stops() {
    local text=$1 ompi=$CASE_DIR/$2; shift 2
    mkdir -p "$CASE_DIR/build"
    cd "$CASE_DIR/build"
    if "$SRC/configure" --with-ompi="$ompi" "$@" >out 2>&1; then
        fail "configured with $ompi"
    fi
    tail -n 3 out
    grep -qF -- "$text" out || fail "\"$text\" is not what it says"
}

headers=$(ompi_info --parsable --path pkgincludedir | sed -n 's/^path:pkgincludedir://p')
version=$(ompi_info --version | sed -n 's/^Open MPI v//p')

stops 'apt install openmpi-bin libopenmpi-dev' nowhere

fake old 's/Open MPI v.*/Open MPI v4.0.3/'
stops 'Open MPI 4.0.3 is not supported, only 4.1, 5.0 and 6.0' old

fake two "s/Open MPI v.*/Open MPI v${version%.*}.99/"
stops 'are not of the same Open MPI' two

# An mpicc that links the libmpi of another installation; and one of another MPI, with Open MPI's beside it.
fake mixed 's|^path:libdir:.*|path:libdir:/usr|'
mkdir "$CASE_DIR/mixed/lib"
touch "$CASE_DIR/mixed/lib/libmpi.so"
rm "$CASE_DIR/mixed/bin/mpicc"
printf '#!/bin/sh\n[ "$1" != --showme:libdirs ] || exec echo %s\nexec %s "$@"\n' "$CASE_DIR/mixed/lib" "$(command -v mpicc.openmpi)" \
    > "$CASE_DIR/mixed/bin/mpicc"
chmod +x "$CASE_DIR/mixed/bin/mpicc"
stops "links $CASE_DIR/mixed/lib/libmpi.so, and" mixed

fake beside "s|^path:pkgincludedir:.*|path:pkgincludedir:$CASE_DIR|"
mv "$CASE_DIR/beside/bin/mpicc" "$CASE_DIR/beside/bin/mpicc.openmpi"
ln -s /bin/false "$CASE_DIR/beside/bin/mpicc"
stops 'apt install libopenmpi-dev' beside

fake sealed 's/^option:dlopen:.*/option:dlopen:no/'
stops 'was configured with --disable-dlopen' sealed

fake bare "s|^path:pkgincludedir:.*|path:pkgincludedir:$CASE_DIR|"
stops 'apt install libopenmpi-dev' bare
stops 'is not a source tree of Open MPI' bare --with-ompi-source="$CASE_DIR"

mkdir -p "$CASE_DIR/source/ompi/mca/pml"
touch "$CASE_DIR/source/ompi/mca/pml/pml.h"
stops 'has not been configured' bare --with-ompi-source="$CASE_DIR/source"

fake_headers newer 's/#define OPAL_RELEASE_VERSION .*/#define OPAL_RELEASE_VERSION 98/'
stops "are of another Open MPI than" newer

fake_headers candidate 's/#define OPAL_GREEK_VERSION .*/#define OPAL_GREEK_VERSION "rc98"/'
stops "are of another Open MPI than" candidate

fake_headers debug 's/#define OPAL_ENABLE_DEBUG .*/#define OPAL_ENABLE_DEBUG 1/'
stops 'were configured with other options than' debug

fake_headers direct 's/#define MCA_ompi_pml_DIRECT_CALL .*/#define MCA_ompi_pml_DIRECT_CALL 1/'
stops 'was configured with --enable-mca-direct=pml-' direct

# tree NAME SED-EXPRESSION SED-EXPRESSION: a source tree whose headers are the installed ones, with another opal_config.h,
# and whose configure had the switches that Open MPI had, changed.
tree() {
    local tree=$CASE_DIR/$1
    cp -rs "$headers" "$tree"
    mkdir -p "$tree/opal/include" "$tree/ompi"
    sed "$2" "$headers/opal_config.h" > "$tree/opal/include/opal_config.h"
    rm "$tree/opal_config.h"
    echo "CPPFLAGS = $(mpicc.openmpi --showme:incdirs | sed 's|[^ ]*|-I&|g')" > "$tree/ompi/Makefile"
    printf '#!/bin/sh\ncat "%s"\n' "$tree/switches" > "$tree/config.status"
    ompi_info --config | sed -n 's/^ *Configure command line: *//p' | sed "$3" > "$tree/switches"
    chmod +x "$tree/config.status"
}

# notes TEXT TREE: configure goes on, and says so.
notes() {
    cd "$CASE_DIR/build"
    must "$SRC/configure" --with-ompi="$CASE_DIR/bare" --with-ompi-source="$CASE_DIR/$2" > out 2>&1
    grep -qF -- "$1" out || fail "\"$1\" is not what it says: $(grep -A3 'that tree' out)"
}

tree another 's/#define OPAL_RELEASE_VERSION .*/#define OPAL_RELEASE_VERSION 98/' ''
stops 'are of another Open MPI than' bare --with-ompi-source="$CASE_DIR/another"
tree options 's/#define OPAL_ENABLE_DEBUG .*/#define OPAL_ENABLE_DEBUG 1/' ''
stops 'were configured with other options than' bare --with-ompi-source="$CASE_DIR/options"
tree switches_differ '' "s/\$/ '--enable-memchecker'/"
notes 'only the tree has:          --enable-memchecker' switches_differ
tree alike '' ''
notes 'whether that tree was configured as Open MPI was... yes' alike

# configure-ompi: the switches that ompi_info shows, but for directories, and only for the same version.
mkdir "$CASE_DIR/tree"
printf 'major=%s\nminor=%s\nrelease=%s\ngreek=%s\n' $(sed -e 's/[a-z]/ &/' -e 's/\./ /g' <<< "$version") > "$CASE_DIR/tree/VERSION"
printf '#!/bin/sh\nprintf "<%%s>" "$@"\n' > "$CASE_DIR/tree/configure"
chmod +x "$CASE_DIR/tree/configure"
fake switches "s|^ *Configure command line: .*|  Configure command line: '--prefix=/x' '--libdir=/y' '--with-package-string=A B'|"
says '<--prefix=/x><--with-package-string=A B><--more>' "$SRC/packaging/configure-ompi" "$CASE_DIR/tree" "$CASE_DIR/switches" --more
says 'is of 4.0.3' "$SRC/packaging/configure-ompi" "$CASE_DIR/tree" "$CASE_DIR/old"
sed -i 's/^greek=.*/greek=rc98/' "$CASE_DIR/tree/VERSION"
says "rc98, and $CASE_DIR/switches/bin/ompi_info is of $version" "$SRC/packaging/configure-ompi" "$CASE_DIR/tree" "$CASE_DIR/switches"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpi4py.sh [btl | ucx | cm] NODES RANKS [ARGUMENT...]: mpi4py's own test suite, with RANKS processes
# on each of NODES nodes; ARGUMENTs are its own (test/main.py --help).  First over
# plain ob1, then over pml/crypt, or btl/crypt: what passes there has to pass here.  ucx, cm: pml/crypt over
# those, and windows over btl/crypt.  mpi4py.list
# says what is left out, and what pml/crypt refuses; both are printed.
#
# mpi4py is built once: in the cache, or for another series in its root.
set -eu
. "$SRC/tests/lib.sh"

transport=pml options=(--mca crypt_transport pml)
case $1 in
    btl) transport=btl options=(--mca crypt_transport btl) ;;
    ucx) transport=btl options=(--mca pml_crypt_host ucx --mca pml_ucx_tls any --mca pml_ucx_devices any
                                -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0) ;;
    cm)  transport=btl options=(--mca pml_crypt_host cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm') ;;
esac
[ $transport = pml ] || shift
nodes=$1 ranks=$2; shift 2
arguments=$*
version=4.1.1 sha256=eb2c8489bdbc47fdc6b26ca7576e927a11b070b6de196a443132766b3d0a2a22
list=$SRC/tests/suites/mpi4py.list
results=$SRC/tests/suites/mpi4py.py
arguments+=" $(python3 "$results" out "$list" "$SERIES")"

if in_other_root; then
    place=/opt/mpi4py-$version from_here=$VARIANT_ROOT$place
    at_home() { "$SRC/tests/in_root" "$VARIANT_ROOT" "$@"; }
else
    place=$CACHE/mpi4py-$version from_here=$place
    at_home() { "$@"; }
fi

build() {
    local pip=$place/venv/bin/pip
    rm -rf "$from_here"
    mkdir -p "$from_here"
    if in_other_root; then
        at_home env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 install -y \
            --no-install-recommends python3-dev python3-venv >/dev/null || return 1
    fi
    # Certificates of this system: some sites have their own.
    cp /etc/ssl/certs/ca-certificates.crt "$from_here/"
    at_home python3 -m venv "$place/venv" || return 1
    export PIP_CERT=$place/ca-certificates.crt SSL_CERT_FILE=$place/ca-certificates.crt PIP_CONFIG_FILE=/dev/null
    at_home "$pip" -q install numpy || return 1
    # Its one file of a million lines takes many minutes to optimize.
    export MPICC=mpicc CFLAGS=-O0
    at_home "$pip" -q download --no-deps --no-binary :all: --dest "$place" "mpi4py==$version" || return 1
    echo "$sha256  $from_here/mpi4py-$version.tar.gz" | sha256sum --check --quiet || fail "this is another mpi4py-$version.tar.gz"
    at_home tar -C "$place" -xzf "$place/mpi4py-$version.tar.gz"
    at_home "$pip" -q install "$place/mpi4py-$version.tar.gz" || return 1
    touch "$from_here/complete"
}

# suite NAME MPIRUN-ARGUMENT...: every rank's log is in $CASE_DIR/NAME.  One that
# hangs leaves time for the other, and "unfinished" where it hung.
suite() {
    local name=$1 rc=0 begin=$SECONDS; shift
    mkdir "$CASE_DIR/$name"
    cat > "$CASE_DIR/$name/rank" <<END
exec $place/venv/bin/python $place/mpi4py-$version/test/main.py -v $arguments >$CASE_DIR/$name/\$OMPI_COMM_WORLD_RANK.log 2>&1
END
    timeout -k 10 $((LIMIT / 2 - 300)) "$SRC/tests/vcluster" mpirun -n $((nodes * ranks)) -x TMPDIR="$CASE_DIR/tmp" \
        "$@" sh "$CASE_DIR/$name/rank" >"$CASE_DIR/$name/mpirun" 2>&1 || rc=$?
    echo "$name: status $rc of mpirun, after $((SECONDS - begin)) seconds"
    tail -n 20 "$CASE_DIR/$name/mpirun"
}

if [ ! -e "$from_here/complete" ]; then
    ( flock 9; [ -e "$from_here/complete" ] || build ) 9>"$CACHE/mpi4py.lock" >&2 || skip "mpi4py $version cannot be built here"
fi
mkdir "$CASE_DIR/tmp"
cluster_up "$nodes" --slots $((2 * ranks))
shape=(--host "$(seq -s, -f "node%g:$((4 * ranks))" 0 $((nodes - 1)))" --map-by "ppr:$ranks:node:oversubscribe")
suite plain "${shape[@]}" --mca pml ob1
suite sealed "${shape[@]}" --mca pml crypt "${options[@]}"
# Windows over nodes, and on 4.1 only where there are threads.
refuse=yes
if [ "$nodes" = 1 ] || [[ "$SERIES $transport" = [56].0' btl' ]] || [[ $SERIES$arguments = 4.1*'--thread-level single'* ]]; then refuse=no; fi
must python3 "$results" compare "$list" "$SERIES" $refuse "$CASE_DIR/plain" "$CASE_DIR/sealed"

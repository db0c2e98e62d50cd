# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Packages, build trees, the roots with Open MPI 5.0 and 6.0, virtual clusters: what
# run.sh prepares before a case can run.  Sourced by run.sh.

CACHE=${XDG_CACHE_HOME:-$([ "$(id -u)" = 0 ] && echo /var/cache || echo "$HOME/.cache")}/ompi-crypt
WORK=${OMPI_CRYPT_TEST_DIR:-$CACHE/tests-$(basename "$SRC")-$(cksum <<<"$SRC" | cut -d ' ' -f 1)}
ROOT_50=$CACHE/trixie-root ROOT_60=$CACHE/forky-root
SANITIZE=abort_on_error=1
export CACHE

declare -A VARIANT_STATE VARIANT_REASON

# The series of this system's own Open MPI, or of that which its packages will bring.
native_series() {
    local version
    version=$(ompi_info --version 2>/dev/null | sed -nE 's/^Open MPI v([0-9]+\.[0-9]+)\..*/\1/p')
    if [ -z "$version" ]; then
        version=$(. /etc/os-release 2>/dev/null
                  [ "${ID-}" = debian ] || VERSION_ID=12
                  case ${VERSION_ID:-99} in 13) echo 5.0 ;; 1[0-2]) echo 4.1 ;; *) echo 6.0 ;; esac)
    fi
    echo "$version"
}
NATIVE=$(native_series)
case $NATIVE in                                 # no root is needed for it
    5.0) ROOT_50= ;;
    6.0) ROOT_60= ;;
esac

# The root for a variant whose Open MPI is not this system's, or nothing.
root_of() {
    case $1 in
        5.0) echo "$ROOT_50" ;;
        6.0) echo "$ROOT_60" ;;
    esac
}

# ---- packages ----

# packages_in FILE [GROUP...]: those of no group, and of these (packages.txt), that this architecture has.
packages_in() {
    local file=$1 name group rest here; shift
    here=$(uname -m)
    while read -r name group rest; do
        case $name in ''|'#'*) continue ;; esac
        [ "$name" != libipsec-mb-dev ] || [ "$here" = x86_64 ] || continue
        [ "$NATIVE" = 4.1 ] || name=${name##*|}
        [[ -n $group && " $* " != *" $group "* ]] || echo "${name%%|*}"
    done < "$file"
}

apt_install() {                                 # apt_install PACKAGE... (in $IN_ROOT)
    ${IN_ROOT-} env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 \
        -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@" >/dev/null
}

install_packages() {                            # install_packages [GROUP...]
    local package missing=()
    if ! command -v dpkg-query >/dev/null; then
        echo "run.sh: not a Debian system: the packages of tests/packages.txt are left to you"
        return
    fi
    for package in $(packages_in "$SRC/tests/packages.txt" "$@"); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || die "missing packages (run as root, or install them): ${missing[*]}"
    echo "installing ${#missing[@]} packages"
    apt-get -qq -o DPkg::Lock::Timeout=600 update >/dev/null || die "apt-get update failed"
    apt_install "${missing[@]}" || die "apt-get install failed: ${missing[*]}"
}

prepare_directories() {
    mkdir -p "$CACHE" "$WORK/log"
    mkdir -p -m 700 "$WORK/keys" "$WORK/case"
    # Closed in whatever outlives a case, such as a cluster's holders.
    exec 8>"$WORK/lock"
    flock -n 8 || die "another run.sh works in $WORK"
    # The caller's settings for Open MPI are not the tests'.
    unset ${!OMPI_MCA_*} ${!PMIX_MCA_*} ${!PRTE_MCA_*}
    rm -rf "$WORK"/ready.* "$WORK/taken" "$WORK"/case/*
    mkdir "$WORK/taken"
    : > "$WORK/results"
    make_configure
}

# ---- variants ----

# build_variant VARIANT: build and install it once per run.  State "ready";
# "absent": it cannot be had on this machine; "broken": it should have been.
# Not to be called in a condition: `set -e` would be off inside.
build_variant() {
    local variant=$1
    [ -z "${VARIANT_STATE[$variant]-}" ] || return 0
    exec 7>"$WORK/$variant.lock"
    flock 7
    if [ -e "$WORK/ready.$variant" ]; then      # the other lane did it
        . "$WORK/ready.$variant"
    else
        make_variant "$variant"
        printf 'VARIANT_STATE[%s]=%q VARIANT_REASON[%s]=%q\n' \
            "$variant" "${VARIANT_STATE[$variant]}" "$variant" "${VARIANT_REASON[$variant]-}" > "$WORK/ready.$variant"
    fi
    exec 7>&-
}

make_variant() {
    local variant=$1 log=$WORK/log/build-$1.log started
    if [ "$CONFIGURED" != 0 ]; then
        VARIANT_STATE[$variant]=broken VARIANT_REASON[$variant]=$WORK/log/autogen.log
        return 0
    fi
    if [ "$variant" = 4.1 ] && [ "$NATIVE" != 4.1 ]; then
        VARIANT_STATE[4.1]=absent VARIANT_REASON[4.1]="needs Open MPI 4.1, and this system's is $NATIVE"
        return 0
    fi
    if [ -n "$(root_of "$variant")" ]; then
        make_root "$variant"
        if [ -n "$ROOT_REASON" ]; then
            VARIANT_STATE[$variant]=absent VARIANT_REASON[$variant]=$ROOT_REASON
            return 0
        fi
    fi
    started=$SECONDS
    ( set -e; use_variant "$variant"; compile_variant "$variant" ) >"$log" 2>&1 7>&- 8>&-
    if [ $? = 0 ]; then
        VARIANT_STATE[$variant]=ready
        echo "built $variant in $(duration $((SECONDS - started)))"
    else
        VARIANT_STATE[$variant]=broken VARIANT_REASON[$variant]=$log
    fi
}

# Of a tree that is configured itself, automake's configure makes no second build.
not_configured() {
    [ ! -e "$SRC/config.status" ] ||
        die "$SRC is configured itself: make distclean there, and build in another directory (docs/install.rst)"
}

# autogen.pl, when what it reads is not what it was; sets CONFIGURED to its
# exit status.
make_configure() {
    local sum
    [ -z "${CONFIGURED-}" ] || return 0
    not_configured
    sum=$(cd "$SRC" && find . -name autom4te.cache -prune -o \( -name Makefile.am -o -name tests.list -o -name '*.m4' \
              -o -name configure.ac -o -name autogen.pl -o -name VERSION \) -print |
          grep -vE '^\./(aclocal|config/(lt|libtool|ompi_crypt_found).*)\.m4$' | sort | xargs cksum | cksum)
    CONFIGURED=0
    if [ ! -e "$SRC/configure" ] || [ "$sum" != "$(cat "$WORK/configured" 2>/dev/null)" ]; then
        ( cd "$SRC" && ./autogen.pl ) >"$WORK/log/autogen.log" 2>&1
        CONFIGURED=$?
        echo "$sum" > "$WORK/configured"
    fi
}

compile_variant() {
    local switches=(--enable-werror) cflags jobs; jobs=$(nproc)
    [ "$1" != asan ] || switches+=(--enable-asan --enable-ubsan)
    unset ${!OMPI_MCA_*}        # or ompi_info loads what was installed last, sanitizers and all
    mkdir -p "$BUILD" && cd "$BUILD"
    in_variant ompi_info --version | grep -F "Open MPI v$SERIES."
    # A makefile of an older configure would run it again, with other switches.
    [ config.status -nt "$SRC/configure" ] ||
        in_variant "$SRC/configure" --prefix="$PREFIX" "${switches[@]}" $([ "$SERIES" != "$NATIVE" ] || echo "${OMPI_CRYPT_CONFIGURE-}")
    # Objects do not depend on flags that configure chooses.
    sed -nE '/^(CC|CXX|CFLAGS|CPPFLAGS|CXXFLAGS|LDFLAGS) = /p' Makefile > flags.new
    cmp -s flags.new flags || in_variant make -s clean
    mv flags.new flags
    in_variant make -j"$jobs"
    # check_LIBRARIES first; the checks themselves are cases of run.sh.  Only tests link these, without
    # an optimizer: so none compiles each of their objects twice.
    cflags="$(sed -n 's/^CFLAGS = //p' Makefile) -fno-lto"
    in_variant make -C opal/mca/common/crypt -j"$jobs" check TESTS= CFLAGS="$cflags"
    in_variant make -C opal/mca/common/cryptfile -j"$jobs" check TESTS= CFLAGS="$cflags"
    in_variant make -C tests/unit -j"$jobs" check TESTS=
    in_variant rm -rf "$PREFIX"
    in_variant make install
    # The psk of every job below.
    if [ ! -e "$WORK/keys/psk" ]; then
        ( umask 077; od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' > "$WORK/keys/psk" )
    fi
}

# What a case has in its environment (tests/lib.sh).
use_variant() {
    export SERIES=$NATIVE VARIANT=$1 VARIANT_DIR=$WORK/$1 VARIANT_CFLAGS=
    case $1 in
        5.0|6.0) SERIES=$1 ;;
        asan) VARIANT_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer" ;;
    esac
    export BUILD=$VARIANT_DIR/build PREFIX=$VARIANT_DIR/prefix CASE_DIR=$WORK/case/${CLUSTER_PLACE##*-}
    export ROOT_50 ROOT_60 PREFIX_50=$WORK/5.0/prefix PREFIX_60=$WORK/6.0/prefix VARIANT_ROOT; VARIANT_ROOT=$(root_of "$1")
    rm -rf "$CASE_DIR"
    mkdir -p "$CASE_DIR"
    # Open MPI and its libraries do not free everything.
    export ASAN_OPTIONS=$SANITIZE:detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
    export OMPI_MCA_pml=crypt
    [ ! -e "$WORK/keys/psk" ] || export OMPI_MCA_crypt_psk_file=$WORK/keys/psk
    [ ! -e "$PREFIX/share/ompi-crypt/env.sh" ] || . "$PREFIX/share/ompi-crypt/env.sh"
}

# ---- the cluster of run.sh's own cases: kept while they want the same ----

cluster() {                                     # cluster NODES SLOTS
    local wanted="$1 $2 $VARIANT" root=()
    [ "$(cat "$VCLUSTER_DIR/shape" 2>/dev/null)" != "$wanted" ] || return 0
    cluster_stop
    ! in_other_root || root=(--root "$VARIANT_ROOT" --bind "$SRC" --bind "$WORK")
    "$SRC/tests/vcluster" up "$1" --slots "$2" ${root[@]+"${root[@]}"}
    echo "$VARIANT" > "$VCLUSTER_DIR/kind"
    echo "$wanted" > "$VCLUSTER_DIR/shape"
}

cluster_stop() {
    [ ! -e "${VCLUSTER_DIR-}/nodes" ] || "$SRC/tests/vcluster" down >/dev/null
}

# ---- root directories with Open MPI 5.0 and 6.0 ----

# What a root is made of: the packages of 5.0, and of 6.0 a few more.
root_packages() {                               # root_packages VARIANT
    cat "$SRC/tests/packages-5.0.txt"
    [ "$1" = 5.0 ] || cat "$SRC/tests/packages-$1.txt"
}

# make_root VARIANT: sets ROOT_REASON: empty, or why it cannot be had.  That with 6.0 takes minutes, which
# the default tier does not have.
make_root() {
    local root name suite=trixie log started=$SECONDS
    root=$(root_of "$1") name="Debian 13"
    [ "$1" = 5.0 ] || suite=forky name="Debian forky"
    log=$WORK/log/$suite-root.log
    ROOT_REASON=
    ! root_packages "$1" | cmp -s - "$root/complete" || return 0
    if [ "$(id -u)" != 0 ]; then
        ROOT_REASON="Open MPI $1: only root can make a $name root"
    elif ! command -v debootstrap >/dev/null; then
        ROOT_REASON="Open MPI $1: debootstrap is not installed"
    elif [ "$1" != 5.0 ] && [[ $tier = @(default|ci) ]] && [ ${#patterns[@]} = 0 ]; then
        ROOT_REASON="Open MPI $1: there is no $name root yet, and this tier makes none: tests/run.sh --full does"
    else
        ( set -e; flock 9; fill_root "$1" "$root" "$suite" ) 9>"$CACHE/$suite-root.lock" >"$log" 2>&1
        [ $? = 0 ] || ROOT_REASON="Open MPI $1: no $name root: $(tail -n 1 "$log" | cut -c 1-120) ($log)"
    fi
    [ -n "$ROOT_REASON" ] || echo "made $root in $(duration $((SECONDS - started)))"
}

fill_root() {                                   # fill_root VARIANT ROOT SUITE
    local new=$2
    if [ ! -e "$2/etc/debian_version" ]; then
        new=$2.new
        bare_root "$3" "$new"
    fi
    cp -L /etc/resolv.conf "$new/etc/resolv.conf"
    IN_ROOT="$SRC/tests/in_root $new"
    $IN_ROOT apt-get -qq update
    apt_install $(packages_in <(root_packages "$1"))
    [ "$new" = "$2" ] || mv "$new" "$2"
    root_packages "$1" > "$2/complete"
}

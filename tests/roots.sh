# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# roots.sh SUITE: what cases that install in bare roots of Debian have in common.  Each root is an overlay of a cached one,
# which stays as it is.  Sourced after lib.sh, by a script whose first argument is the suite, and which it may start again.
distribution=$1

[ "$(id -u)" = 0 ] || skip "roots need root"
command -v debootstrap > /dev/null || skip "debootstrap is missing"
# Mounts of our own, which end with us.
[ -n "${OMPI_CRYPT_MOUNTS-}" ] || exec unshare --mount env OMPI_CRYPT_MOUNTS=1 bash "$0" "$@"

base=$CACHE/package-root-$distribution
(
    flock 6
    [ -e "$base/etc/debian_version" ] || {
        bare_root "$distribution" "$base.new" > "$CASE_DIR/debootstrap.log" && mv "$base.new" "$base"
    }
) 6> "$base.lock" || skip "no root of $distribution: $(tail -n 1 "$CASE_DIR/debootstrap.log")"

# What this system has is not what the roots have.
unset ${!OMPI_MCA_*} ${!PMIX_MCA_*} ${!PRTE_MCA_*}
export HOME=/root PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin

# overlay NAME: a root directory that begins as the base.
overlay() {
    mkdir -p "$CASE_DIR/$1"/{upper,work,root}
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$CASE_DIR/$1/upper,workdir=$CASE_DIR/$1/work" "$CASE_DIR/$1/root"
    cp -L /etc/resolv.conf "$CASE_DIR/$1/root/etc/resolv.conf"
    apt "$1" update
}
in_root() { local name=$1; shift; "$SRC/tests/in_root" "$CASE_DIR/$name/root" env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
apt() { local name=$1; shift; in_root "$name" apt-get -qq -o Dpkg::Use-Pty=0 "$@" >> "$CASE_DIR/apt.log" || fail "apt-get $*: $(tail -n 5 "$CASE_DIR/apt.log")"; }
install_in() { local name=$1; shift; apt "$name" install -y --no-install-recommends "$@"; }

# source_in NAME DIRECTORY: what is under version control, or would be, there
source_in() {
    mkdir -p "$CASE_DIR/$1/root$2"
    if [ -e "$SRC/.git" ]; then
        git -C "$SRC" -c safe.directory="$SRC" ls-files -z --cached --others --exclude-standard
    else
        (cd "$SRC" && find . -type f -print0)
    fi | tar -C "$SRC" --null -T - -cf - | tar -C "$CASE_DIR/$1/root$2" -xf -
}

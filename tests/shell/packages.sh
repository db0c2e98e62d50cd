# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# packages.sh bookworm|trixie|forky: the Debian packages are built, with their checks, in a root
# of that system from what is under version control, and installed in a fresh one, where a job
# runs encrypted without any setting.  bookworm: the RPM, too.
#
# Both roots are overlays of a cached one, which stays as it is.
set -eu
. "$SRC/tests/lib.sh"
distribution=$1

[ "$(id -u)" = 0 ] || skip "roots need root"
command -v debootstrap > /dev/null || skip "debootstrap is missing"
# Mounts of our own, which end with us.
[ -n "${OMPI_CRYPT_MOUNTS-}" ] || exec unshare --mount env OMPI_CRYPT_MOUNTS=1 bash "$0" "$@"

base=$CACHE/package-root-$distribution scripts=/usr/share/debootstrap/scripts
if [ ! -e "$base/etc/debian_version" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Component: main' 2>/dev/null |
        grep -v security | head -n 1)
    rm -rf --one-file-system "$base.new"
    # As in tests/build.sh: a suite that debootstrap does not know, an index that may have expired.
    debootstrap --variant=minbase $distribution "$base.new" "${OMPI_CRYPT_MIRROR:-${mirror:-http://deb.debian.org/debian}}" \
        "$(ls "$scripts/$distribution" 2>/dev/null || echo "$scripts/sid")" > "$CASE_DIR/debootstrap.log" || skip "no root of $distribution: $(tail -n 1 "$CASE_DIR/debootstrap.log")"
    [ $distribution != forky ] || echo 'Acquire::Check-Valid-Until "false";' > "$base.new/etc/apt/apt.conf.d/10old"
    mv "$base.new" "$base"
fi

# overlay NAME: a root directory that begins as the base.
overlay() {
    mkdir -p "$CASE_DIR/$1"/{upper,work,root}
    mount -t overlay overlay -o "lowerdir=$base,upperdir=$CASE_DIR/$1/upper,workdir=$CASE_DIR/$1/work" "$CASE_DIR/$1/root"
    cp -L /etc/resolv.conf "$CASE_DIR/$1/root/etc/resolv.conf"
}
in_root() { local name=$1; shift; "$SRC/tests/in_root" "$CASE_DIR/$name/root" env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
apt() { local name=$1; shift; in_root "$name" apt-get -qq -o Dpkg::Use-Pty=0 "$@" >> "$CASE_DIR/apt.log" || fail "apt-get $*: $(tail -n 5 "$CASE_DIR/apt.log")"; }

echo "1. build"
overlay build
apt build update
apt build install -y --no-install-recommends build-essential
mkdir -p "$CASE_DIR/build/root/src/ompi-crypt"
if [ -e "$SRC/.git" ]; then
    git -C "$SRC" -c safe.directory="$SRC" ls-files -z --cached --others --exclude-standard
else
    (cd "$SRC" && find . -type f -print0)
fi | tar -C "$SRC" --null -T - -cf - | tar -C "$CASE_DIR/build/root/src/ompi-crypt" -xf -
apt build build-dep -y --no-install-recommends /src/ompi-crypt
in_root build bash -c "cd /src/ompi-crypt && DEB_BUILD_OPTIONS='parallel=$(nproc)' dpkg-buildpackage -us -uc -b" \
    > "$CASE_DIR/dpkg.log" 2>&1 || { tail -n 30 "$CASE_DIR/dpkg.log"; fail "dpkg-buildpackage"; }
mkdir "$CASE_DIR/debs"
cp "$CASE_DIR"/build/root/src/*.deb "$CASE_DIR/debs"
if [ $distribution = bookworm ]; then
    apt build install -y --no-install-recommends lintian
    must in_root build bash -c 'lintian --allow-root --fail-on error,warning /src/*.changes'
fi
must in_root build mpicc -o /src/ring /src/ompi-crypt/examples/ring.c

echo "2. install"
overlay user
cp -r "$CASE_DIR/debs" "$CASE_DIR/user/root/debs"
rm -f "$CASE_DIR"/user/root/debs/*dbgsym*
apt user update
apt user install -y --no-install-recommends openssh-client $(cd "$CASE_DIR/user/root" && ls -d ./debs/ompi-crypt*.deb ./debs/libmpicrypt-file0*.deb ./debs/python3-ompi-crypt*.deb)
must test ! -e "$CASE_DIR/user/root/usr/bin/gcc"
must test -s "$CASE_DIR/user/root/usr/share/man/man1/mpicrypt.1.gz"

echo "3. run"
parameters=$(cd "$CASE_DIR/user/root" && ls usr/lib/*/pmix2/share/pmix-mca-params.conf)
trap 'vcluster down > /dev/null 2>&1 || true' EXIT
cp "$CASE_DIR/build/root/src/ring" "$CASE_DIR/user/root/usr/local/bin/ring"
text="secret-$(od -An -tx1 -N8 /dev/urandom | tr -d ' \n') of the job"
echo "$text" > "$CASE_DIR/user/root/secret.txt"
unset ${!OMPI_MCA_*} ${!PMIX_MCA_*} ${!PRTE_MCA_*}
export HOME=/root PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
must vcluster up 2 --root "$CASE_DIR/user/root"
must vcluster exec node0 mpicrypt keygen
capture_start node1 "$CASE_DIR/wire.pcap"
says "4 ranks: the messages came back as they were sent" vcluster mpirun -n 4 --mca pml crypt ring /secret.txt
capture_stop node1
must test "$(stat -c %s "$CASE_DIR/wire.pcap")" -gt 1000000
must_fail grep -qaF "$text" "$CASE_DIR/wire.pcap"
must vcluster exec node0 mpicrypt doctor --all | tee "$CASE_DIR/doctor"
must grep -q 'an encrypted job of 1 process runs' "$CASE_DIR/doctor"
if [ $distribution = trixie ]; then
    # Without the package's diversion mpirun hides the components, which only a process that it starts can see.
    # (PRRTE 5.0.0~rc1 of forky gives the path to PMIx alone.)
    cp "$CASE_DIR/user/root/$parameters.distrib" "$CASE_DIR/user/root/$parameters"
    must_fail vcluster exec node0 mpicrypt doctor > "$CASE_DIR/doctor"
    must grep -A 3 '^FAIL  component  *mca_pml_crypt.so is in no directory' "$CASE_DIR/doctor"
    must grep -q '/usr/share/ompi-crypt/env.sh' "$CASE_DIR/doctor"
    cp "$SRC/debian/pmix-mca-params.conf" "$CASE_DIR/user/root/$parameters"
fi
must vcluster exec node0 mpicrypt speed --rounds 2 --batch-ms 0.1 --size 64 --csv - | tee "$CASE_DIR/speed"
for provider in openssl ipsecmb boringssl cryptopp sodium; do
    must grep -q "^$provider," "$CASE_DIR/speed"
done
must vcluster exec node0 mpicrypt key new lab
must vcluster exec node0 mpicrypt file encrypt /secret.txt /secret.encrypted --label lab
says "$text" vcluster exec node0 python3 -I -c 'import ompi_crypt; print(ompi_crypt.open("/secret.encrypted", label="lab").read())'
must vcluster down

echo "4. remove"
apt user purge -y 'ompi-crypt*' 'libmpicrypt-file*' python3-ompi-crypt
left=$(cd "$CASE_DIR/user/root" && find usr etc -path '*openmpi*crypt*' -o -name '*ompi_crypt*' -o -name 'libmca_*crypt*' -o -name '*mpicrypt*' -o -name '*ompi-crypt*')
[ -z "$left" ] || fail "apt-get purge left: $left"
left=$(in_root user dpkg-divert --list '*pmix*'
       in_root user dpkg --verify "$(in_root user dpkg-query -S "/$parameters" | cut -d : -f 1)")
[ -z "$left" ] || fail "apt-get purge left: $left"
[ $distribution = bookworm ] || exit 0

echo "5. the RPM, of a tarball"
apt build install -y --no-install-recommends cpio rpm
in_root build bash -c 'cd /src/ompi-crypt/debian/build && make -s dist' > "$CASE_DIR/dist.log" 2>&1 || { tail "$CASE_DIR/dist.log"; fail "make dist"; }
in_root build bash -c 'rpmbuild -tb --nodeps --define "_topdir /src/rpm" /src/ompi-crypt/debian/build/ompi-crypt-*.tar.gz' \
    > "$CASE_DIR/rpm.log" 2>&1 || { tail -n 30 "$CASE_DIR/rpm.log"; fail "rpmbuild"; }
in_root build bash -c 'mkdir /src/unpacked && cd /src/unpacked && rpm2cpio /src/rpm/RPMS/*/ompi-crypt-0*.rpm | cpio -id --quiet'
cp -a "$CASE_DIR/build/root/src/unpacked/." "$CASE_DIR/user/root/"
must vcluster up 2 --root "$CASE_DIR/user/root"
. "$CASE_DIR/user/root/opt/ompi-crypt/share/ompi-crypt/env.sh"
says "4 ranks: the messages came back as they were sent" vcluster mpirun -n 4 --mca pml crypt ring /secret.txt
must vcluster exec node0 mpicrypt doctor

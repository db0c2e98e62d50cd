# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# packages.sh bookworm|trixie|forky: the Debian packages are built, with their checks, in a root of that system from what is
# under version control.  lintian, of source and packages, and autopkgtest have nothing to say.  In a fresh root they are installed
# by the manual's command, a job runs encrypted without any setting, and they are upgraded and removed.  A second build,
# elsewhere, by a user and later, makes the same bytes.  bookworm: the RPM, and debian/watch, too.
set -eu
. "$SRC/tests/lib.sh"
. "$SRC/tests/roots.sh"

echo "1. build"
overlay build
install_in build build-essential
source_in build /src/ompi-crypt
version=$(cat "$SRC/VERSION")
in_root build tar -C /src --exclude=ompi-crypt/debian -czf "/src/ompi-crypt_$version.orig.tar.gz" ompi-crypt
apt build build-dep -y --no-install-recommends /src/ompi-crypt
in_root build bash -c "cd /src/ompi-crypt && DEB_BUILD_OPTIONS='parallel=$(nproc)' dpkg-buildpackage -us -uc" \
    > "$CASE_DIR/dpkg.log" 2>&1 || { tail -n 30 "$CASE_DIR/dpkg.log"; fail "dpkg-buildpackage"; }
mkdir "$CASE_DIR/debs"
cp "$CASE_DIR"/build/root/src/*.deb "$CASE_DIR/debs"
install_in build lintian
must in_root build bash -c 'lintian --allow-root --fail-on error,warning /src/*.changes'
must in_root build mpicc -o /src/ring /src/ompi-crypt/examples/ring.c

echo "2. autopkgtest"
overlay tested
cp -r "$CASE_DIR/debs" "$CASE_DIR/tested/root/debs"
rm -f "$CASE_DIR"/tested/root/debs/*dbgsym*
source_in tested /src
install_in tested autopkgtest
must in_root tested bash -c 'autopkgtest --no-built-binaries /debs/*.deb /src -- null'

echo "3. install"
overlay user
cp -r "$CASE_DIR/debs" "$CASE_DIR/user/root/debs"
rm -f "$CASE_DIR"/user/root/debs/*dbgsym*
packages=$(cd "$CASE_DIR/user/root/debs" && ls -d ompi-crypt*.deb libmpicrypt-file0*.deb python3-ompi-crypt*.deb)
manual=$(sed -n 's,^    apt install \(\.\./.*\),\1,p' "$SRC/docs/install.rst")
must test -n "$manual"
install_in user openssh-client ${manual//..//debs}
install_in user $(printf '/debs/%s\n' $packages)
must test ! -e "$CASE_DIR/user/root/usr/bin/gcc"
must test -s "$CASE_DIR/user/root/usr/share/man/man1/mpicrypt.1.gz"

echo "4. run"
parameters=$(cd "$CASE_DIR/user/root" && ls usr/lib/*/pmix2/share/pmix-mca-params.conf)
trap 'vcluster down > /dev/null 2>&1 || true' EXIT
cp "$CASE_DIR/build/root/src/ring" "$CASE_DIR/user/root/usr/local/bin/ring"
text="secret-$(od -An -tx1 -N8 /dev/urandom | tr -d ' \n') of the job"
echo "$text" > "$CASE_DIR/user/root/secret.txt"
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

echo "5. upgrade, remove"
in_root build bash -euc 'mkdir /src/next; for deb in /src/*.deb; do
    dpkg-deb -R "$deb" /src/next/tree; sed -i "s/$1/&+next/g" /src/next/tree/DEBIAN/control
    dpkg-deb --root-owner-group -b /src/next/tree "/src/next/${deb##*/}" > /dev/null; rm -r /src/next/tree; done' upgrade "$(cat "$SRC/VERSION")"
cp -r "$CASE_DIR/build/root/src/next" "$CASE_DIR/user/root/next"
install_in user $(printf '/next/%s\n' $packages)
says +next in_root user dpkg-query -W ompi-crypt
says "4 ranks: the messages came back as they were sent" vcluster mpirun -n 4 --mca pml crypt ring /secret.txt
must vcluster down
# stays VERSION: could this one of Open MPI's library be installed beside ours?
library=$(in_root user dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'libopenmpi*' | sed -n 's/^installed //p')
stays() {
    in_root user bash -euc 'mkdir -p /series/DEBIAN; cd /series
        printf "%s\n" "Package: $1" "Version: $2" "Architecture: $(dpkg --print-architecture)" "Maintainer: test <test@localhost>" \
            "Description: test" > DEBIAN/control; dpkg-deb -b . /series.deb' stays "$library" "$1" &&
        in_root user apt-get -s install /series.deb > "$CASE_DIR/series" && ! grep '^Remv ompi-crypt ' "$CASE_DIR/series"
}
must stays "$(in_root user dpkg-query -W -f '${Version}' "$library")+next"
must_fail stays 99
apt user purge -y 'ompi-crypt*' 'libmpicrypt-file*' python3-ompi-crypt
left=$(cd "$CASE_DIR/user/root" && find usr etc -path '*openmpi*crypt*' -o -name '*ompi_crypt*' -o -name 'libmca_*crypt*' -o -name '*mpicrypt*' -o -name '*ompi-crypt*')
[ -z "$left" ] || fail "apt-get purge left: $left"
left=$(in_root user dpkg-divert --list '*pmix*'
       in_root user dpkg --verify "$(in_root user dpkg-query -S "/$parameters" | cut -d : -f 1)")
[ -z "$left" ] || fail "apt-get purge left: $left"

echo "6. again"
source_in build /home/user/elsewhere/source
in_root build bash -c 'useradd user && find /home/user -exec touch {} + && chown -R user: /home/user'
in_root build runuser -u user -- env HOME=/home/user TZ=Asia/Tokyo LC_ALL=C DEB_BUILD_OPTIONS=nocheck bash -c \
    'umask 077; cd /home/user/elsewhere/source && dpkg-buildpackage -us -uc -b' > "$CASE_DIR/again.log" 2>&1 ||
    { tail -n 30 "$CASE_DIR/again.log"; fail "dpkg-buildpackage as a user"; }
different=$(cd "$CASE_DIR/debs" && for deb in *.deb; do cmp -s "$deb" "$CASE_DIR/build/root/home/user/elsewhere/$deb" || echo "$deb"; done)
[ -z "$different" ] || fail "not the same bytes: $different"
echo "$(ls "$CASE_DIR/debs" | wc -l) packages are the same bytes"

[ $distribution = bookworm ] || exit 0

echo "7. the RPM, of a tarball"
install_in build cpio rpm
in_root build bash -c 'cd /src/ompi-crypt/debian/build && make -s dist' > "$CASE_DIR/dist.log" 2>&1 || { tail "$CASE_DIR/dist.log"; fail "make dist"; }
in_root build bash -c 'rpmbuild -tb --nodeps --define "_topdir /src/rpm" /src/ompi-crypt/debian/build/ompi-crypt-*.tar.gz' \
    > "$CASE_DIR/rpm.log" 2>&1 || { tail -n 30 "$CASE_DIR/rpm.log"; fail "rpmbuild"; }
in_root build bash -c 'mkdir /src/unpacked && cd /src/unpacked && rpm2cpio /src/rpm/RPMS/*/ompi-crypt-0*.rpm | cpio -id --quiet'
cp -a "$CASE_DIR/build/root/src/unpacked/." "$CASE_DIR/user/root/"
must vcluster up 2 --root "$CASE_DIR/user/root"
. "$CASE_DIR/user/root/opt/ompi-crypt/share/ompi-crypt/env.sh"
says "4 ranks: the messages came back as they were sent" vcluster mpirun -n 4 --mca pml crypt ring /secret.txt
must vcluster exec node0 mpicrypt doctor

echo "8. debian/watch"
install_in build devscripts iproute2 libwww-perl python3
in_root build bash -euc 'mkdir /site; cd /site; touch "ompi-crypt-$1.tar.gz" ompi-crypt-99.1.0.tar.gz' site "$version"
says '<upstream-version>99.1.0</upstream-version>' in_root build unshare --net timeout 120 bash -euc 'ip link set lo up
    python3 -m http.server --bind 127.0.0.1 --directory /site 8000 > /dev/null 2>&1 & trap "kill $!" EXIT
    until (exec 3<> /dev/tcp/127.0.0.1/8000) 2> /dev/null; do sleep 0.1; done
    sed "s,https://.*/releases/,http://127.0.0.1:8000/," /src/ompi-crypt/debian/watch > /site/watch
    uscan --no-download --dehs --package ompi-crypt --upstream-version "$1" --watchfile /site/watch' watch "$version"

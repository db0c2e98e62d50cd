# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# 64-bit ARM, emulated: everything is compiled for it (aarch64-linux-gnu-gcc) against Debian's
# packages for arm64, which are unpacked in a directory but not set up; the unit and vector tests run in
# qemu-aarch64, and a ring of two ranks on two virtual nodes, whose mpirun is this machine's.
#
# Shows that code compiles, and is right where the compiler or the processor could make it wrong (char,
# alignment, other instructions).  QEMU orders memory as this machine does: the weaker order of ARM
# is not shown.
set -eu
. "$SRC/tests/lib.sh"

for program in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64-static; do
    command -v $program > /dev/null || skip "$program is missing (Debian: g++-aarch64-linux-gnu qemu-user-static)"
done
[ "$(uname -m)" = x86_64 ] || skip "this machine is $(uname -m)"
root=$CACHE/arm64-root
packages="libopenmpi-dev openmpi-bin libssl-dev libsodium-dev libcrypto++-dev android-libboringssl-dev libmunge-dev libp11-kit-dev"

# fill_root DIR: the packages and all that they need, by a list of sources and a state of our own.
fill_root() {
    local mirror here=$CASE_DIR/apt codename part command
    codename=$(. /etc/os-release; echo "$VERSION_CODENAME")
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Component: main' 2>/dev/null | grep -v security | head -n 1)
    mkdir -p "$here"/lists/partial "$here"/cache/archives/partial
    : > "$here/status"
    echo "deb [arch=arm64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "${OMPI_CRYPT_MIRROR:-${mirror:-http://deb.debian.org/debian}} $codename main" > "$here/sources.list"
    for command in update "install -y --download-only --no-install-recommends $packages"; do
        apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Debug::NoLocking=1 \
            -o Dir::State="$here" -o Dir::State::Lists="$here/lists" -o Dir::State::status="$here/status" -o Dir::Cache="$here/cache" \
            -o Dir::Etc::SourceList="$here/sources.list" -o Dir::Etc::SourceParts=- $command > "$here/log" 2>&1 ||
            skip "no packages for arm64: $(tail -n 1 "$here/log")"
    done
    mkdir -p "$1"/usr/{bin,sbin,lib}
    ln -s usr/bin usr/sbin usr/lib "$1"
    for part in "$here"/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$part" | tar -x --keep-directory-symlink -C "$1"
    done
}

exec 9>"$root.lock"
flock 9
if [ ! -e "$root/complete" ] || [ "$(cat "$root/complete")" != "$packages" ]; then
    rm -rf --one-file-system "$root" "$root.new"
    fill_root "$root.new"
    echo "$packages" > "$root.new/complete"
    mv "$root.new" "$root"
fi
exec 9>&-

# As if the root were this machine's: a path is looked for there first, and so is / itself, from where
# nothing of this machine is reached.  So tests, which walk to their files from there, get the loader by its name.
emulated="qemu-aarch64-static -L $root"
library=$root/usr/lib/aarch64-linux-gnu
tested="qemu-aarch64-static $library/ld-linux-aarch64.so.1 --library-path $CASE_DIR/prefix/lib:$library/openmpi/lib:$library"

# The programs that configure asks, with the root's place before what they say.
mkdir -p "$CASE_DIR/ompi/bin" "$CASE_DIR/build"
printf '#!/bin/sh\n%s %s "$@" | sed "s,:/usr,:%s/usr,"\n' "$emulated" "$root/usr/bin/ompi_info" "$root" > "$CASE_DIR/ompi/bin/ompi_info"
printf '#!/bin/sh\n%s -0 mpicc %s "$@" | sed "s,/usr,%s/usr,g"\n' "$emulated" "$root/usr/bin/opal_wrapper" "$root" > "$CASE_DIR/ompi/bin/mpicc"
chmod +x "$CASE_DIR"/ompi/bin/*

echo "1. build"
export PKG_CONFIG_LIBDIR=$library/pkgconfig:$root/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
prefix=$CASE_DIR/prefix compiler="aarch64-linux-gnu-gcc --sysroot=$root"
libraries="-Wl,-rpath-link,$library"
cd "$CASE_DIR/build"
must "$SRC/configure" --host=aarch64-linux-gnu --prefix="$prefix" --with-ompi="$CASE_DIR/ompi" CC="$compiler" \
    CXX="aarch64-linux-gnu-g++ --sysroot=$root" LDFLAGS="$libraries" --enable-werror --disable-lto > configure.log
for provider in openssl sodium cryptopp boringssl; do
    must test -e opal/mca/aead/$provider/Makefile
done
must make -s -j"$(nproc)" > make.log 2>&1
for directory in opal/mca/common/crypt opal/mca/common/cryptfile; do
    must make -s -C $directory -j"$(nproc)" check TESTS= > unit.log 2>&1
done
must make -s -C tests/unit -j"$(nproc)" check TESTS= > unit.log 2>&1
must make -s install > install.log 2>&1
must readelf -h "$prefix/lib/ompi-crypt/mca_pml_crypt.so" | grep AArch64

echo "2. unit tests and vectors"
export srcdir=$SRC/tests/unit
cd tests/unit
# not_run PROGRAM: prints why it is left out, if it is.
not_run() {
    if [ "$1" = test_secmem ] || [ "$1" = test_core_file ]; then
        echo "QEMU does not hand on MADV_DONTDUMP"
    elif [ "$1" = test_keystore_pkcs11 ]; then
        echo "the PKCS#11 module that it finds is this machine's"
    elif grep -qE '/proc/self/exe|arguments\[0\]|argv\[0\]' "$srcdir/$1.c"; then
        echo "it starts itself, for which the kernel would have to know QEMU"
    elif grep -qE "^$1( .*)? once( |$)" "$srcdir/tests.list"; then
        echo "it is a long one, about rules that no processor changes"
    fi
}
# Side by side: the emulator takes a processor for each.
run=() left=0 count=0
for program in $(sed -n 's/^\([a-z][a-z0-9_]*\).*/\1/p' "$srcdir/tests.list"); do
    why=$(not_run "$program")
    if [ -n "$why" ]; then
        echo "$program: not run, since $why"
        left=$((left + 1))
    else
        run+=("$program")
    fi
done
export tested CASE_DIR
printf '%s\n' "${run[@]}" | xargs -P "$(nproc)" -I % bash -c \
    'rc=0; $tested ./% > "$CASE_DIR/%.log" 2>&1 || rc=$?; echo $rc > "$CASE_DIR/%.status"; echo "%: status $rc after $SECONDS s"'
for program in "${run[@]}"; do
    rc=$(cat "$CASE_DIR/$program.status")
    case $rc in
        0)  count=$((count + 1)) ;;
        77) echo "$program: $(tail -n 1 "$CASE_DIR/$program.log")"
            left=$((left + 1)) ;;
        *)  tail -n 20 "$CASE_DIR/$program.log"; fail "$program: status $rc" ;;
    esac
done
echo "$count programs passed, $left were not run"
must test $count -ge $((4 * left))

echo "3. a ring"
cd "$CASE_DIR"
must $compiler -O2 -o ring -I"$library/openmpi/include" "$SRC/examples/ring.c" \
    -L"$library/openmpi/lib" -lmpi $libraries
echo "secret-$(od -An -tx1 -N8 /dev/urandom | tr -d ' \n') of the ring" > secret.txt
printf '#!/bin/sh\nexport LD_LIBRARY_PATH=%s OMPI_MCA_mca_base_component_path=%s\nexec %s %s "$@"\n' "$prefix/lib" \
    "SYS_DEFAULT:$prefix/lib/ompi-crypt" "$emulated" "$CASE_DIR/ring" > emulated
chmod +x emulated
unset OMPI_MCA_mca_base_component_path
cluster_up 2
capture_start node1 "$CASE_DIR/wire.pcap"
says "2 ranks: the messages came back as they were sent" vcluster mpirun -n 2 --map-by node --mca pml crypt \
    --mca crypt_report 1 "$CASE_DIR/emulated" "$CASE_DIR/secret.txt"
capture_stop node1
must test "$(stat -c %s "$CASE_DIR/wire.pcap")" -gt 1000000
must_fail grep -qaF "$(cat secret.txt)" "$CASE_DIR/wire.pcap"

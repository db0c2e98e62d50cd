# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# readers.sh [MIB [ROUNDS]]: how fast an encrypted file is read by the library, Python, HDF5's driver, a mount and cat, beside
# plain reading of the same bytes, and beside plain reading and decrypting them with the provider.  From the page cache,
# and from the disk: pages of a file are dropped by posix_fadvise.  Nothing is judged.  The target is that the library
# takes at most 1.10 of reading and decrypting.  About five minutes.
set -eu
. "$SRC/tests/lib.sh"
mib=${1:-256} rounds=${2:-5}
# Mounts of our own, which end with us; in another root, those of the node.
[ -n "${OMPI_CRYPT_MOUNTS-}" ] || in_other_root || exec unshare --mount env OMPI_CRYPT_MOUNTS=1 bash "$0" "$@"
cluster_up 1
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
cd "$CASE_DIR"
in_variant python3 -c '' || skip "python3 is missing where this Open MPI is"
must in_variant cc -std=gnu11 -O2 -Wall -Wextra -Werror -o rate "$SRC/tests/bench/readers/rate.c" -I"$PREFIX/include" -L"$PREFIX/lib" \
    -lmpicrypt_file -lcrypto -lpthread -Wl,-rpath,"$PREFIX/lib"
must in_variant mpicrypt key new lab
mkdir plain encrypted mounted
head -c "${mib}M" /dev/urandom > plain/file
must in_variant mpicrypt file encrypt "$CASE_DIR/plain/file" "$CASE_DIR/encrypted/file" --label lab

driver=$PREFIX/lib/ompi-crypt/hdf5 mount=
if [ -e "$driver/libmpicrypt_hdf5.so" ] && in_variant python3 -c 'import h5py, numpy
with h5py.File("plain/h5", "w") as file:
    file["bytes"] = numpy.fromfile("plain/file", "u1")'; then
    must in_variant mpicrypt file encrypt "$CASE_DIR/plain/h5" "$CASE_DIR/encrypted/h5" --label lab
else
    echo "not measured: HDF5's driver, as this build has none, or h5py is missing"
    driver=
fi
if [ -x "$PREFIX/libexec/ompi-crypt/mpicrypt-mount" ] && [ -w /dev/fuse ]; then
    in_variant mpicrypt mount "$CASE_DIR/encrypted" "$CASE_DIR/mounted" > mount.out &
    trap 'in_variant fusermount3 -u "$CASE_DIR/mounted"; wait; vcluster down' EXIT
    until grep -q '^mounted ' mount.out; do kill -0 $!; done
    mount=mounted
else
    echo "not measured: a mount, as this build has none, or /dev/fuse cannot be opened"
fi
must in_variant env "PYTHONPATH=$PREFIX/share/ompi-crypt/python" python3 -B "$SRC/tests/bench/readers/rounds.py" "$rounds" "$driver" "$mount"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# libraries.sh hdf5|pnetcdf: a program of that library runs unchanged on two
# nodes, plain and encrypted.  What is decrypted is byte for byte the file that
# the plain run made, and nothing of it is on disk.
. "$SRC/tests/io/common.sh"

library=$1
case $library in
    hdf5)    package=hdf5-openmpi canary=HDF5-canary ;;
    pnetcdf) package=pnetcdf canary=PnetCDF-canary ;;
esac
pkg-config --exists $package || skip "$package is missing (Debian: libhdf5-openmpi-dev, libpnetcdf-dev)"
cluster_up 2 --slots 2
keys_in "$CASE_DIR/keys" lab
program=$VARIANT_DIR/tests/io/${library}_rows
must mpicc -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror -o "$program" "$SRC/tests/io/libraries/${library}_rows.c" \
    $(pkg-config --cflags $package) $(pkg-config --libs $package)
cd "$CASE_DIR"
run() { local n=$1; shift; vcluster mpirun -n "$n" "$@"; }

must run 4 "$program" "$CASE_DIR/plain" write
must grep -qa $canary plain
must run 4 --mca fs_crypt_key_label lab "$program" "$CASE_DIR/encrypted" write
must_fail grep -qa $canary encrypted
if [ "$library" = hdf5 ]; then
    must run 3 "$program" "$CASE_DIR/encrypted" read
    must run 1 "$program" "$CASE_DIR/encrypted" read
else                                    # it looks at a file that it opens without MPI
    says "Unknown file format" run 3 "$program" "$CASE_DIR/encrypted" read
fi
must mpicrypt file verify encrypted --keystore-dir "$CASE_DIR/keys"
must mpicrypt file decrypt encrypted decrypted --keystore-dir "$CASE_DIR/keys"
must cmp plain decrypted
must run 3 "$program" "$CASE_DIR/decrypted" read

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# HDF5 reads encrypted files by the driver, with two variables: h5dump and h5py say what they say of the plain file; a
# plain file, another label and each kind of damage are errors, with a line that says why, and never a value.
. "$SRC/tests/io/common.sh"
unset ${!HDF5_*}

driver=$PREFIX/lib/ompi-crypt/hdf5
[ -e "$driver/libmpicrypt_hdf5.so" ] || skip "this build has no driver for HDF5: no hdf5.h of 1.14 or later"
cluster_up 1
in_variant sh -c 'command -v h5dump && command -v ncdump && python3 -c "import h5py"' > "$CASE_DIR/null" 2>&1 ||
    skip "h5dump, ncdump or h5py is missing (Debian: hdf5-tools, netcdf-bin, python3-h5py)"
keys_in "$CASE_DIR/keys" lab other
cd "$CASE_DIR"

echo "the module: what HDF5 looks up, and nothing of libhdf5"
[ "$(nm -D --defined-only --format=posix "$driver/libmpicrypt_hdf5.so" | cut -d ' ' -f 1 | sort | tr '\n' ' ')" = \
    "H5PLget_plugin_info H5PLget_plugin_type " ] || fail "$(nm -D --defined-only "$driver/libmpicrypt_hdf5.so")"
must_fail sh -c 'nm -D --undefined-only "$1" | grep -E " (H5|P?MPI_|ompi_|opal_)"' - "$driver/libmpicrypt_hdf5.so"
readelf -d "$driver/libmpicrypt_hdf5.so" > dynamic
must_fail grep -E 'NEEDED.*(hdf5|mpi\.|open-pal)' dynamic

cat > make.py <<'END'
import h5py, numpy
with h5py.File("plain.h5", "w") as file:
    file["steps"] = numpy.arange(500_000, dtype="f8")
    file.create_dataset("tiles", data=numpy.arange(300_000).reshape(300, 1000), chunks=(10, 100), compression="gzip")
    file.create_dataset("empty", shape=(0,), maxshape=(None,))
    file["steps"].attrs["unit"] = "ms"
    group = file.create_group("deep/down")
    for i in range(200):
        group[f"item{i}"] = numpy.full(10, i)
END
cat > read.py <<'END'
import h5py, hashlib, sys
def digest(name, thing):
    if isinstance(thing, h5py.Dataset):
        print(name, thing.shape, thing.dtype, dict(thing.attrs), hashlib.sha256(thing[()].tobytes()).hexdigest())
with h5py.File(sys.argv[1], "r") as file:
    file.visititems(digest)
END
cat > write.py <<'END'
import h5py, sys
h5py.File(sys.argv[1], "r+")
END
must in_variant python3 make.py
must in_variant mpicrypt file encrypt plain.h5 sealed.h5 --label lab
must is_encrypted sealed.h5
in_variant h5dump plain.h5 | tail -n +2 > plain.dump
in_variant python3 read.py plain.h5 > plain.py.out
must test "$(wc -l < plain.dump)" -gt 10000
must test "$(wc -l < plain.py.out)" -eq 203

with_driver() { in_variant env HDF5_DRIVER=mpicrypt HDF5_PLUGIN_PATH="$driver" "$@"; }

echo "reading"
must with_driver h5dump sealed.h5 > sealed.dump.0
tail -n +3 sealed.dump.0 > sealed.dump          # `must` says what it runs
must cmp plain.dump sealed.dump
with_driver python3 read.py sealed.h5 > sealed.py.out || fail "h5py"
must cmp plain.py.out sealed.py.out
must_fail in_variant h5dump sealed.h5 2> err

echo "netCDF, which looks at the first bytes of a file itself"
cat > make_nc.py <<'END'
import h5py, numpy
with h5py.File("plain.nc", "w") as file:
    file["x"] = numpy.arange(1000.0)
    file["x"].make_scale("x")
END
must in_variant python3 make_nc.py
must in_variant mpicrypt file encrypt plain.nc sealed.nc --label lab
must_refuse "Unknown file format" with_driver ncdump sealed.nc
in_variant ncdump plain.nc | tail -n +2 > plain.nc.dump
with_driver ncdump "file://$CASE_DIR/sealed.nc#mode=netcdf-4" | tail -n +2 > sealed.nc.dump
must test "$(wc -l < plain.nc.dump)" -gt 50
must cmp plain.nc.dump sealed.nc.dump

echo "what is refused"
must_refuse "HDF5 driver mpicrypt: plain.h5: it is not encrypted" with_driver python3 read.py plain.h5
must_refuse "HDF5 driver mpicrypt: HDF5_DRIVER_CONFIG=plain allows plain files, too" with_driver python3 read.py plain.h5
must_refuse "HDF5 driver mpicrypt: plain.h5: it is not encrypted" with_driver h5dump --vfd-name=mpicrypt plain.h5
# Without that, it tries its other drivers.
says "HDF5 driver mpicrypt: plain.h5: it is not encrypted" with_driver h5dump -H plain.h5
must with_driver env HDF5_DRIVER_CONFIG=plain python3 read.py plain.h5
must_refuse "HDF5 driver mpicrypt: it reads only; open the file for reading" with_driver python3 write.py sealed.h5
must with_driver env HDF5_DRIVER_CONFIG=label=lab python3 read.py sealed.h5
must_refuse "HDF5 driver mpicrypt: sealed.h5: " with_driver env HDF5_DRIVER_CONFIG=label=other python3 read.py sealed.h5
must_refuse "HDF5_DRIVER_CONFIG: plain, label=LABEL, or both with a comma between them" \
    with_driver env HDF5_DRIVER_CONFIG=plain,labels python3 read.py sealed.h5
must_refuse "HDF5 driver mpicrypt: none.h5: No such file or directory" with_driver python3 read.py none.h5
mv keys/lab.1 lab.1
must_refuse "HDF5 driver mpicrypt: sealed.h5: " with_driver python3 read.py sealed.h5
mv lab.1 keys/lab.1

echo "damage, at many places: an error, or nothing that is read was damaged"
size=$(stat -c %s sealed.h5) refused=0
for ((i = 0; i < 24; i++)); do
    at=$((i * size / 24 + 100))
    cp sealed.h5 damaged.h5
    python3 - damaged.h5 "$at" <<'END'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    bytes_ = file.read(1)
    file.seek(int(sys.argv[2]))
    file.write(bytes([bytes_[0] ^ 0x40]))
END
    if with_driver python3 read.py damaged.h5 > out 2> err; then
        must cmp plain.py.out out
    else
        grep -q '^HDF5 driver mpicrypt: damaged\.h5: ' err || fail "no reason at $at: $(cat err)"
        refused=$((refused + 1))
    fi
done
echo "refused: $refused of 24"
must test $refused -gt 15
head -c $((size * 2 / 3)) sealed.h5 > cut.h5
must_fail with_driver python3 read.py cut.h5

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Programs of h5py, h5netcdf, xarray, pandas, pyarrow, dask and fsspec read encrypted files, by a file and by a URL, as they
# read plain ones; a damaged file is an exception in each.  The examples of docs/python.rst run.  The packages are PyPI's.
. "$SRC/tests/python/common.sh"

venv=$CACHE/python-formats-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
(
    flock 6
    [ -e "$venv/complete" ] || { rm -rf "$venv"; must python3 -m venv "$venv"; }
    pip_install "$venv" hatchling h5py h5netcdf xarray pandas pyarrow 'dask[dataframe]' fsspec
    touch "$venv/complete"
) 6> "$CACHE/python-formats.lock" || exit $?
must "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation --no-index --force-reinstall "$package"
formats() { must env -u PYTHONPATH HOME="$CASE_DIR" "$venv/bin/python" -B "$SRC/tests/python/formats.py" "$@"; }

echo "--- files"
keys results
must mpicrypt key new else --keystore-dir elsewhere
mkdir plain encrypted
formats make
for file in plain/*; do
    must mpicrypt file encrypt "$file" "encrypted/${file##*/}" --label results --block-size 512
done
# A job writes one in parallel.
if pkg-config --exists hdf5-openmpi; then
    cluster_up 2
    must mpicc -O2 -o rows "$SRC/tests/io/libraries/hdf5_rows.c" $(pkg-config --cflags hdf5-openmpi) $(pkg-config --libs hdf5-openmpi)
    must vcluster mpirun -n 4 "$CASE_DIR/rows" "$CASE_DIR/plain/job.h5" write
    must vcluster mpirun -n 4 --mca fs_crypt_key_label results "$CASE_DIR/rows" "$CASE_DIR/encrypted/job.h5" write
else
    echo "not tried: a file that a job writes (Debian: libhdf5-openmpi-dev)"
fi
formats read
formats damaged
formats listed

echo "--- docs/python.rst"
cp -r encrypted documented
cd documented
cp result.csv part-1.csv
cp numbers result
formats examples "$SRC/docs/python.rst"

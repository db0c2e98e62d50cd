# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# pip builds a wheel of what make install has written, which is not changed by that, and installs it in an empty virtual
# environment: it finds the library by its path.  A wheel of the source tree finds it where the loader searches; neither
# takes one that lies in the current directory.
. "$SRC/tests/python/common.sh"

# made DIRECTORY: a wheel in dist/, of that directory
made() {
    rm -rf dist
    must builder/bin/pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation --no-index -w dist "$1"
}
# in_venv COMMAND...: where files have the names of the library and of the package
in_venv() { (cd trap && env -u PYTHONPATH -u LD_LIBRARY_PATH "$@"); }

must python3 -m venv builder
pip_install builder hatchling
keys lab
seq 1 3000 > lines
encrypt lines file
mkdir trap
echo "no library" > trap/libmpicrypt_file.so.0
cp -r "$SRC/lib/python" source
rm -f source/Makefile*

echo "--- the contents"
(cd "$package" && find . -type f | sort | xargs sha256sum) > before
made "$package"
(cd "$package" && find . -type f | sort | xargs sha256sum) | diff before - || fail "pip changed $package"
version=$(cat "$SRC/VERSION")
python3 -m zipfile -l dist/ompi_crypt-"$version"-py3-none-any.whl | sed -n 's/^\(ompi_crypt[^ ]*\) .*/\1/p' | sort > listed
(cd "$package" && find ompi_crypt -type f -name '*.py'; d=ompi_crypt-$version.dist-info
    printf '%s\n' $d/METADATA $d/WHEEL $d/entry_points.txt $d/licenses/LICENSE $d/RECORD) | sort | diff - listed ||
    fail "the wheel has other files"
mkdir unpacked
python3 -m zipfile -e dist/*.whl unpacked
(cd unpacked && grep -rlF "$PREFIX" .) | diff - <(echo ./ompi_crypt/_where.py) || fail "paths of this machine"
must grep -qxF "LIBRARY = \"$PREFIX/lib/libmpicrypt_file.so.0\"" unpacked/ompi_crypt/_where.py
must diff -r -x _where.py -x __pycache__ unpacked/ompi_crypt "$SRC/lib/python/ompi_crypt"

echo "--- installed"
must python3 -m venv user
must user/bin/pip install -q --disable-pip-version-check --no-index --no-deps dist/*.whl
cat > read.py <<'END'
import importlib.metadata
import sys

import ompi_crypt
with ompi_crypt.open(sys.argv[1], label="lab") as file:
    assert [int(line) for line in file] == list(range(1, 3001))
entry, = [entry for entry in importlib.metadata.distribution("ompi_crypt").entry_points if entry.group == "fsspec.specs"]
assert (entry.name, entry.value) == ("mpicrypt", "ompi_crypt.filesystem:EncryptedFileSystem")
END
must in_venv ../user/bin/python ../read.py ../file

echo "--- of the source tree"
made ./source
must user/bin/pip install -q --disable-pip-version-check --no-index --no-deps --force-reinstall dist/*.whl
says "ImportError: ompi_crypt cannot load the library of ompi-crypt: libmpicrypt_file.so.0: cannot open shared object file" \
    in_venv ../user/bin/python ../read.py ../file
must in_venv env LD_LIBRARY_PATH="$PREFIX/lib" ../user/bin/python ../read.py ../file

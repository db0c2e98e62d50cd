# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What the cases of the Python package have in common: a keystore with the label lab, and Python that finds the installed
# package, but no setting of its user's.
set -eu
. "$SRC/tests/lib.sh"

python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || skip "Python 3.9 is missing"
package=$PREFIX/share/ompi-crypt/python
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
cd "$CASE_DIR"

python() { env -u PYTHONHOME PYTHONPATH="$package:$SRC/tests/python" python3 -B "$@"; }

# keys LABEL...: in this case's keystore
keys() {
    local label
    for label in "$@"; do
        must mpicrypt key new "$label"
    done
}

# encrypt PLAIN FILE [OPTION...]
encrypt() { must mpicrypt file encrypt "$1" "$2" --label lab "${@:3}"; }

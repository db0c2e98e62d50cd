# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The arithmetic of encrypted files that are one file, on 10,000 random maps; shell/vectors tries some.
set -eu
. "$SRC/tests/lib.sh"

must python3 -B "$SRC/tests/vectors/onefile_maps.py" 10000

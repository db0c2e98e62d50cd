# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A text of more than 2 GiB through every provider, opened by another one.
set -eu
. "$SRC/tests/lib.sh"

cd "$BUILD/tests/unit"
must ./test_aead_cross long

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The manual builds without a warning, and no document is left out of it.
set -eu
. "$SRC/tests/lib.sh"

cd "$BUILD"
must make -s docs
for page in install mpicrypt security design/001-build; do
    must test -s "docs/html/$page.html"
done

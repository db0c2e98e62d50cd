# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# README's first command, in a cache of its own: it builds, runs ring plain and
# encrypted, and says of each what the capture shows; then an encrypted file and
# a comparison, and all of it as one page.
set -euo pipefail
. "$SRC/tests/lib.sh"

unset OMPI_MCA_pml OMPI_MCA_crypt_psk_file OMPI_MCA_mca_base_component_path
export XDG_CACHE_HOME=$CASE_DIR
says 'readable there 0 times' "$SRC/examples/quickstart.sh" | tee "$CASE_DIR/out"
must grep -E 'readable there [1-9][0-9]* times' "$CASE_DIR/out"
must grep -E '^ *1048576 bytes: .* us plain, .* us encrypted' "$CASE_DIR/out"

# The page: what was printed, a picture, and nothing from elsewhere.
page=$(sed -n 's/^All of this as one page: //p' "$CASE_DIR/out")
must grep -q '<p>readable 0 times</p>' "$page"
must grep -qE '<p>readable [1-9][0-9]* times</p>' "$page"
must grep -q '^<svg ' "$page"
must_fail grep -E '<script|<link|<img|src=|url\(' "$page"

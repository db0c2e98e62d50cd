# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# README's first command, in a cache of its own: it builds (or, without the argument
# `build`, takes what is installed here), runs ring plain and encrypted, and says of each
# what the capture shows; then an encrypted file and a comparison, and all of it as one page.
set -euo pipefail
. "$SRC/tests/lib.sh"

unset OMPI_MCA_pml OMPI_MCA_crypt_transport OMPI_MCA_crypt_psk_file OMPI_MCA_mca_base_component_path
export XDG_CACHE_HOME=$CASE_DIR
# As a user has it: the cluster is its own affair.
export TMPDIR=${VCLUSTER_DIR%/*}
unset VCLUSTER_DIR
command=("$SRC/examples/quickstart.sh")
[ "${1-}" = build ] || command+=("$PREFIX")
# Where it cannot work it says so at once.
mkdir "$CASE_DIR/bin"
printf '#!/bin/sh\nexit 32\n' > "$CASE_DIR/bin/mountpoint"
chmod +x "$CASE_DIR/bin/mountpoint"
PATH=$CASE_DIR/bin:$PATH says "/ is not a mount point" "${command[@]}"
must test ! -e "$CASE_DIR/ompi-crypt"
says 'readable there 0 times' "${command[@]}" | tee "$CASE_DIR/out"
must grep -E 'readable there [1-9][0-9]* times' "$CASE_DIR/out"
# Each line agrees with itself: the last figure is the second time divided by the first.
number='[0-9]+\.[0-9]+' spread="\\($number to $number\\)"
grep -E "^ *[0-9]+ bytes: plain $number us $spread, encrypted $number us $spread, $number times;" "$CASE_DIR/out" |
    tee "$CASE_DIR/lines"
must test "$(wc -l < "$CASE_DIR/lines")" = 4
must sed -E "s/.*plain ($number) us.*encrypted ($number) us .*, ($number) times.*/\1 \2 \3/" "$CASE_DIR/lines" |
    awk '/^\+/ { next } ($2 / $1 - $3) ^ 2 > 0.0001 { print "inconsistent: " $0; bad = 1 } END { exit bad }'

# The page: what was printed, a picture, and nothing from elsewhere.
page=$(sed -n 's/^All of this as one page: //p' "$CASE_DIR/out")
must grep -q '<p>readable 0 times</p>' "$page"
must grep -qE '<p>readable [1-9][0-9]* times</p>' "$page"
must grep -q '^<svg ' "$page"
must grep -qE '<text [^>]*>[^<]*: time</text>' "$page"
must grep -qE '<text [^>]*>[^<]*: relative to plain</text>' "$page"
must_fail grep -P '<script|<link|<img|src=|url\((?!#)' "$page"
[ -z "$(ls -d "$TMPDIR"/ompi-crypt-* 2>/dev/null)" ] || fail "the cluster is still there: $(ls "$TMPDIR")"

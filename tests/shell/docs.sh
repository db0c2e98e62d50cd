# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The manual builds without a warning, as HTML and as man pages, and no document
# is left out of it; man pages that were made are installed, and go again.  It says
# what the program says.
set -eu
. "$SRC/tests/lib.sh"

cd "$BUILD"
trap 'make -s clean-local' EXIT
must make -s docs
for page in "$SRC"/docs/*.rst "$SRC"/docs/design/*.rst; do
    page=${page#"$SRC/docs/"}
    must test -s "docs/html/${page%.rst}.html"
done
# The first level has five entries, and a search.
must test "$(grep -c '<li class="toctree-l1">' docs/html/genindex.html)" = 5
must grep -q 'action="search.html"' docs/html/index.html
# Sphinx has followed the manual's links; those of Markdown lead to files, too.
dead_links() {                                  # dead_links FILE...: of each, those that lead nowhere
    grep -oHE '\]\([^)#]+' "$@" | sed 's/:\](/ /' | while read -r file target; do
        [[ $target == *://* ]] || [ -e "${file%/*}/$target" ] || echo "$file: $target"
    done
}
mapfile -t markdown < <(cd "$SRC" && find . -name '*.md' -not -path './.git/*')
must test ${#markdown[@]} -gt 5
dead=$(cd "$SRC" && dead_links "${markdown[@]}")
[ -z "$dead" ] || fail "links that lead nowhere: $dead"
echo '[a page](docs/nowhere.rst), [another](README.md)' > "$CASE_DIR/planted.md"
touch "$CASE_DIR/README.md"
[ "$(dead_links "$CASE_DIR/planted.md")" = "$CASE_DIR/planted.md: docs/nowhere.rst" ] || fail "the dead link is not found"
# Of `make install` what they belong to; shell/install has the rest.
must make -s install-data-local DESTDIR="$CASE_DIR/stage"
for page in ompi-crypt-mpicrypt.7 ompi-crypt-parameters.7 ompi-crypt-files.7 ompi-crypt-security.7; do
    file=$CASE_DIR/stage$PREFIX/share/man/man${page##*.}/$page
    must grep -q '^\.TH ' "$file"
    # Its first line names it, as man -k needs it.
    must grep -A 1 '^\.SH NAME' "$file" | grep -qF "${page%.*} \\- "
done
verbs=$(mpicrypt --help | sed -n '/^VERBS/,/^$/s/^       \([a-z]*\) .*/\1/p')
for verb in $verbs; do
    must grep -q "^\.SH .*$verb\$" -i "$CASE_DIR/stage$PREFIX/share/man/man7/ompi-crypt-mpicrypt.7"
done
must make -s uninstall-local DESTDIR="$CASE_DIR/stage"
left=$(find "$CASE_DIR/stage" ! -type d)
[ -z "$left" ] || fail "make uninstall left: $left"

# Texts that docs/troubleshooting.rst quotes, but for those of Open MPI, are shown by
# something; and no help file is left out of docs/messages.rst.
find "$SRC" -name 'help-*.txt' -path '*/mca/*' > "$CASE_DIR/help"
while read -r file; do
    must grep -qxF ".. messages:: ${file#"$SRC/"}" "$SRC/docs/messages.rst"
done < "$CASE_DIR/help"
# Nothing has a text that is never shown.
while read -r file; do
    for topic in $(sed -n 's/^\[\(.*\)\]$/\1/p' "$file" | tr ' ' '?'); do
        grep -rqE --include='*.[ch]' "\"${topic//\?/ }\"" "$SRC/ompi" "$SRC/opal" || fail "nothing shows [$topic] of $file"
    done
done < "$CASE_DIR/help"
sed '/^What belongs to Open MPI/,$d; /^"A requested component/d' "$SRC/docs/troubleshooting.rst" |
    grep '^"' | grep -o '"[^"]*"' | tr -d '"' > "$CASE_DIR/quoted"
must test "$(wc -l < "$CASE_DIR/quoted")" -gt 10
xargs cat < "$CASE_DIR/help" | sed -E 's/%(l*u|zu|[dps])/.../g' | tr -s ' \n' ' ' > "$CASE_DIR/texts"
while read -r text; do
    must grep -qF "$text" "$CASE_DIR/texts"
done < "$CASE_DIR/quoted"

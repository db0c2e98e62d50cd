# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Spelling and style of what people read.  codespell: pages, messages, sources, tests
# and examples, in one variety of English, that of Open MPI and of the standards
# (American).  proselint and a list of phrases: pages, messages and the pages of
# `mpicrypt VERB --help`.  A list of idioms, which are another language's: comments of C
# in the directories that have been read for them.  Words of this project's own: names in C,
# in the directories that have none left.  english.exceptions says what passes, and why.
#
# The same calls look at copies into which mistakes were planted, and have to find
# those: a check that finds nothing anywhere would pass, too.
set -eu
. "$SRC/tests/lib.sh"
for program in codespell proselint; do
    command -v $program > /dev/null || skip "$program is missing"
done
exceptions=$SRC/tests/shell/english.exceptions
must_fail grep -vE '^(#|$|(word|check|phrase|idiom|read|name|named) +[^ ]+ +[^ ])' "$exceptions"     # each has a reason
excepted() { sed -nE "s/^$1 +([^ ]+) .*/\1/p" "$exceptions"; }

# ---- what is looked at ----

cd "$SRC"
pages=(README.md NEWS.md HACKING.md SECURITY.md tests/README.rst docs/*.rst)
mapfile -t messages < <(find ompi opal -name 'help-*.txt')
mapfile -t sources < <(find lib ompi opal examples tests standalone packaging debian docs config/ompi_crypt_* -type f \
    \( -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.py' -o -name '*.list' -o -name '*.table' -o -name '*.m4' -o -name '*.f90' -o -name '*.pml' \
       -o -name '*.conf' -o -name 'Makefile.am' \) ! -name 'english.*')
sources+=(docs/design/*.rst)
help=()
for verb in $(mpicrypt --help | sed -n '/^VERBS/,/^$/s/^       \([a-z]*\) .*/\1/p'); do
    mpicrypt "$verb" --help > "$CASE_DIR/help-$verb"
    help+=("$CASE_DIR/help-$verb")
done
for list in pages messages sources help; do
    declare -n all=$list
    must test ${#all[@]} -gt 6
done

# Copies, with a mistake for each check behind their end.
planted=()
for file in README.md docs/security.rst "${messages[0]}" "${sources[0]}" "${help[0]}"; do
    copy=$CASE_DIR/planted-${file##*/}
    { cat "$file"; printf '%s\n' "" "A message is recieved, whose behaviour is very unique: it has so" "many bytes of of text."; } > "$copy"
    planted+=("$copy")
done

# ---- the checks: one call each, as they take long to start ----
#
# proselint keeps what it found in a text: the second run takes seconds.

excepted word > "$CASE_DIR/words"
excepted phrase | sed 's/.*/\\b(&)\\b/' | paste -sd'|' > "$CASE_DIR/phrases"
export XDG_CACHE_HOME=$BUILD/proselint-$(proselint --version) XDG_CONFIG_HOME=$CASE_DIR/config LC_ALL=C.UTF-8
mkdir -p "$XDG_CACHE_HOME" "$XDG_CONFIG_HOME/proselint"
printf '{"max_errors": 100000, "checks": {%s}}\n' "$(excepted check | sed 's/.*/"&": false/' | paste -sd,)" \
    | tee "$XDG_CONFIG_HOME/proselint/config" > "$XDG_CONFIG_HOME/proselint/config.json"        # of two versions
must grep -qF '"typography.symbols": false' "$XDG_CONFIG_HOME/proselint/config.json"

codespell --builtin clear,rare,en-GB_to_en-US --ignore-words "$CASE_DIR/words" \
    "${pages[@]}" "${messages[@]}" "${sources[@]}" "${help[@]}" "${planted[@]}" > "$CASE_DIR/findings" || true
proselint "${pages[@]}" "${messages[@]}" "${help[@]}" "${planted[@]}" >> "$CASE_DIR/findings" || true
# Over the ends of lines, so without their numbers: "FILE:phrase: so many".
grep -HzoPf "$CASE_DIR/phrases" "${pages[@]}" "${messages[@]}" "${help[@]}" "${planted[@]}" | tr '\0\n' '\n ' |
    sed 's/:/:phrase: /' >> "$CASE_DIR/findings" || true

# idioms FILE...: the comments of C that have one.
idioms() {
    excepted idiom | python3 -c '
import re, sys
idiom = re.compile("|".join(f"(?:{line.strip()})" for line in sys.stdin), re.M)
tokens = re.compile(r"""("(?:\\.|[^"\\\n])*"|\x27(?:\\.|[^\x27\\\n])+\x27)|/\*(.*?)\*/|//([^\n]*)""", re.S)
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for token in tokens.finditer(text):
        comment = re.sub(r"\s+", " ", re.sub(r"(?m)^\s*\*", "", token[2] or token[3] or "")).strip().replace("Copyright (c) 2026 The ompi-crypt authors. See LICENSE. ", "")
        for found in idiom.finditer(comment):
            line = text.count("\n", 0, token.start()) + 1
            print(f"{path}: line {line}: idiom: {found[0]}: {comment[max(0, found.start() - 60):found.end() + 60]}")
' "$@"
}
mapfile -t commented < <(excepted read | while read -r directory; do find "$directory" -name '*.[ch]'; done)
must test ${#commented[@]} -gt 6
quotes=("Whoever only asks again and again has to get on, too" "That address was none." "Of who has left, nothing is asked any more."
    "All addresses were tried. Who refuses us at all of them will not have us." "and the how-manieth of this origin" "What came is for nobody."
    "\`cold\` may lack, and \`warm\` may have no end" "Refused here, where it can be mended."
    "it writes so many bytes" "a message that this receive does not take lies there" "encryption was asked for in vain")
{ cat "${commented[0]}"; printf '/* %s */\n' "${quotes[@]}"; } > "$CASE_DIR/planted-comments.c"
idioms "${commented[@]}" "$CASE_DIR/planted-comments.c" >> "$CASE_DIR/findings"

# names FILE...: the identifiers of C that have a word whose meaning here nobody would guess.
names() {
    excepted name | python3 -c '
import re, sys
part = re.compile("(?<![A-Za-z0-9])(?:" + "|".join(line.strip() for line in sys.stdin) + ")(?![A-Za-z0-9])", re.I)
other = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\x27(?:\\.|[^\x27\\\n])+\x27""", re.S)
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        text = other.sub("", file.read())
    for name in sorted(set(re.findall(r"[A-Za-z_]\w*", path.rpartition("/")[2] + " " + text))):
        if part.search(name):
            print(f"{path}: identifier: {name}")
' "$@"
}
# shellcheck disable=SC2086
mapfile -t named < <(excepted named | while read -r files; do find $files -name '*.[ch]'; done)
must test ${#named[@]} -gt 6
unguessed=(stream_room places_free with_life looks look_at_peer looked get_moment OPAL_STRANGERS deaf settle_once link_greet adopt mend
    lend give_back tells gate_open fence fenced parked stuck of_era lies lying_tag opal_crypt_record_nonce flying)
{ cat "${named[0]}"; printf 'int %s;\n' "${unguessed[@]}"; echo 'int look_up, atomic_thread_fence, mushroom, redo_rooms; /* a room */'; } > "$CASE_DIR/planted-names.c"
names "${named[@]}" "$CASE_DIR/planted-names.c" >> "$CASE_DIR/findings"

# ---- what they found ----

must test "$(grep -c "^$CASE_DIR/planted-names.c: identifier" "$CASE_DIR/findings")" = ${#unguessed[@]}

for quote in "${quotes[@]}"; do
    must grep -qF "$quote" <(grep "^$CASE_DIR/planted-comments.c: .*idiom" "$CASE_DIR/findings")
done

for copy in "${planted[@]}"; do
    for finding in "recieved ==> received" "behaviour ==> behavior" "uncomparables.misc" "phrase: so many" "phrase: of of"; do
        must grep -qE "^$copy:.*$finding" "$CASE_DIR/findings"
    done
done
grep -v "^$CASE_DIR/planted-" "$CASE_DIR/findings" > "$CASE_DIR/left" || true
cat "$CASE_DIR/left"
[ ! -s "$CASE_DIR/left" ] ||
    fail "$(wc -l < "$CASE_DIR/left") findings; what is right goes into tests/shell/english.exceptions, with a reason"

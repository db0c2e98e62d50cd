# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Each verb has a man page with what its --help says, and bash completes verbs, commands and options.  A page that
# lacks an option is found.
set -eu
. "$SRC/tests/lib.sh"

pages=$PREFIX/share/man/man1 completion=$PREFIX/share/bash-completion/completions/mpicrypt
mpicrypt --help > "$CASE_DIR/help"
verbs=$(sed -n '/^VERBS/,/^$/s/^       \([a-z-]*\) .*/\1/p' "$CASE_DIR/help")
[ "$(wc -w <<< "$verbs")" -ge 9 ] || fail "only these verbs: $verbs"
names=$(echo mpicrypt; printf 'mpicrypt-%s\n' $verbs)
[ "$(ls "$pages" | sort)" = "$(printf '%s.1\n' $names | sort)" ] || fail "other pages than verbs: $(ls "$pages")"

# options FILE: those of a page of --help.
options() { sed -n '/^OPTIONS$/,/^EXIT STATUS$/s/^       \(--[a-z0-9-]*\).*/\1/p' "$1"; }

# compare HELP PAGE: the words of a rendered page are those of --help, but for the name, the head and the end.
compare() {
    LC_ALL=C.UTF-8 MANWIDTH=200 man --warnings -E UTF-8 -l -P cat "$2" > "$CASE_DIR/rendered" 2> "$CASE_DIR/warnings"
    [ ! -s "$CASE_DIR/warnings" ] || fail "$2: $(cat "$CASE_DIR/warnings")"
    diff <(sed '1,/^SYNOPSIS/d' "$1" | tr -s ' \n' '\n') \
         <(sed 's/.\x08//g; 1,/^SYNOPSIS/d; /^SEE ALSO/,$d' "$CASE_DIR/rendered" | tr -s ' \n' '\n') > "$CASE_DIR/differ"
}

command -v man > /dev/null || skip "man is not installed (Debian: man-db)"
for name in $names; do
    verb=${name#mpicrypt} page=$pages/$name.1
    mpicrypt help ${verb#-} > "$CASE_DIR/help"
    must compare "$CASE_DIR/help" "$page" || fail "$name: $(cat "$CASE_DIR/differ")"
    must grep -A 1 '^\.SH "NAME"' "$page" | grep -q "^$(sed 's/-/.-/g' <<< "$name") .- "     # as man -k needs it
    for option in $(options "$CASE_DIR/help"); do
        must grep -qE "^ +$option( |\$)" "$CASE_DIR/rendered"
    done
done
mpicrypt help file > "$CASE_DIR/help"
sed '/sealed/d' "$pages/mpicrypt-file.1" > "$CASE_DIR/planted.1"
must_fail compare "$CASE_DIR/help" "$CASE_DIR/planted.1"
grep -q -- --sealed "$CASE_DIR/differ" || fail "the option that is missing is not named"
sed 's/^\.SH "OPTIONS"/.SH "OPTIONS\n.nosuch/' "$pages/mpicrypt-file.1" > "$CASE_DIR/planted.1"
if (compare "$CASE_DIR/help" "$CASE_DIR/planted.1"); then fail "a page with a warning passes"; fi

# completed WORD...: what bash offers for the last of these words.
completed() { bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _mpicrypt; printf "%s\n" "${COMPREPLY[@]}"' bash "$completion" "$@"; }

# offers EXPECTED WORD...
offers() {
    local expected=$1 found; shift
    found=$(completed "$@" | sort | xargs)
    [ "$found" = "$expected" ] || fail "$*: offers '$found', not '$expected'"
}
[ "$(bash -c '. "$1"; complete -p mpicrypt' bash "$completion")" = 'complete -o default -F _mpicrypt mpicrypt' ] || fail "it completes nothing"
offers "$(printf '%s\n' $verbs | sort | xargs)" mpicrypt ''
offers 'key keygen' mpicrypt key
offers keygen mpicrypt help keyg
offers verify mpicrypt file ver
offers --sealed mpicrypt file verify --sea
offers '' mpicrypt file info --sea
offers '' mpicrypt file verify --keystore-dir ''
offers '' mpicrypt file verify ''
for verb in $verbs; do
    mpicrypt help "$verb" > "$CASE_DIR/help"
    offers "$(options "$CASE_DIR/help" | sort | xargs)" mpicrypt "$verb" --
done
echo "$(wc -w <<< "$names") pages"

# In a build in the source tree, programs lie beside the directory of this script.
mkdir "$CASE_DIR/tools" "$CASE_DIR/made"
cp -rL "$SRC/ompi/tools/mpicrypt/"{pages,profiles,measure,mpicrypt-{bench,model,plot,tune}} "$CASE_DIR/tools"
printf '#! /bin/sh\nexit 1\n' > "$CASE_DIR/tools/mpicrypt-mount"
chmod +x "$CASE_DIR/tools/mpicrypt-mount"
(cd "$CASE_DIR/made" && must sh "$CASE_DIR/tools/pages/make.sh" "$PREFIX/bin/mpicrypt" 0 awk)
[ "$(ls "$CASE_DIR/made/man1")" = "$(ls "$pages")" ] || fail "built beside programs: $(ls "$CASE_DIR/made/man1")"

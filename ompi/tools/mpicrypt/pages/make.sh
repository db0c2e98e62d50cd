#!/bin/sh
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# make.sh MPICRYPT VERSION AWK: man pages and a completion for bash, of what `mpicrypt --help` says, in man1/ and
# completion of this directory.  A verb in Python has no --help before the installation: its program is beside this directory.
#
# Where the tool does not run (cross compilation), there are none, and a line says so.
set -eu
tool=$1 version=$2 awk=$3
here=$(cd "$(dirname "$0")" && pwd)
new=pages.$$
trap 'rm -rf "$new"' EXIT

page() {                                        # page [VERB [COMMAND]]
    if [ -n "${1-}" ] && [ -e "$here/../mpicrypt-$1" ] && [ ! -x "$here/../mpicrypt-$1" ]; then    # what can be executed was built there
        python3 -I -B "$here/../mpicrypt-$1" mpicrypt "$here/../profiles" --help
    else
        "$tool" help "$@"
    fi
}

rm -rf man1 completion
mkdir -p "$new/man1"
if ! "$tool" --version > "$new/text" 2>&1; then
    echo "no man pages: $tool does not run here: $(head -n 1 "$new/text")" >&2
    mkdir man1
    exit 0
fi
page > "$new/all"
verbs=$(sed -n '/^VERBS$/,/^$/s/^  *\([a-z][a-z-]*\) .*/\1/p' "$new/all")
names=$(echo mpicrypt; printf 'mpicrypt-%s\n' $verbs)
for name in $names; do
    verb=${name#mpicrypt}
    verb=${verb#-}
    if ! page $verb > "$new/text"; then
        [ -n "$verb" ] && ! command -v python3 > /dev/null || exit 1
        echo "no man page $name: python3 is not installed" >&2
        continue
    fi
    others=$(printf '%s\n' $names | grep -vx "$name")
    "$awk" -f "$here/man.awk" -v page="$name" -v version="$version" -v others="$(echo $others)" "$new/text" > "$new/man1/$name.1"
    # | verb | command or - | what follows: commands, options, which end with = if they take a value |
    [ -n "$verb" ] || { echo "- -" $verbs --help --version; continue; }
    commands=$(sed -n '/^SYNOPSIS$/,/^$/s/^ *mpicrypt [a-z-]* \([a-z].*\)/\1/p' "$new/text" | sed 's/ | /\n/g' |
               sed 's/ .*//' | tr '|' ' ')
    options='/^OPTIONS$/,/^EXIT STATUS$/ { s/^       \(--[a-z0-9-]*\)$/\1/p; s/^       \(--[a-z0-9-]*\) .*/\1=/p; }'
    echo "$verb -" $commands $(sed -n "$options" "$new/text")
    for command in $commands; do
        page $verb $command > "$new/command"
        echo "$verb $command" $(sed -n "$options" "$new/command")
    done
done > "$new/table"
"$awk" -f "$here/completion.awk" "$new/table" > "$new/completion"
mv "$new/man1" man1
mv "$new/completion" completion

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# docs/keys.rst, by its commands alone: Alice on one node and Bob on another, each a user of the system with a home of
# their own, share a file, change its key, part, and get a lost key back.
set -eu
. "$SRC/tests/lib.sh"
[ "$(id -u)" = 0 ] || skip "only root can be several users"
python3 -c pass || skip "python3 is missing"
cluster_up 2

project=$(mktemp -d)                                    # where both users can get
trap 'rm -rf "$project"; vcluster down > /dev/null 2>&1 || true' EXIT
chmod 1777 "$project"
cp "$SRC/tests/tool/key/terminal.py" "$project/.terminal.py"
chmod 644 "$project/.terminal.py"

# as alice|bob COMMAND: a line of the shell, at home.  Every node has a /dev/shm of its own.
as() {
    local node=node0 id=4712
    [ "$1" = alice ] || { node=node1; id=4713; }
    in_node "$node" env -i HOME="/dev/shm/$1" PATH="$PREFIX/bin:/usr/bin:/bin" LANG=C.UTF-8 \
        setpriv --reuid=$id --regid=$id --clear-groups bash -c ". $PREFIX/share/ompi-crypt/env.sh; cd; umask 022; $2"
}
in_node() { vcluster exec "$@"; }
for user in alice:node0:4712 bob:node1:4713; do
    IFS=: read -r name node id <<< "$user"
    in_node "$node" install -d -m 700 -o "$id" -g "$id" "/dev/shm/$name"
done
as bob 'mpicrypt --version' > "$CASE_DIR/null" || skip "other users cannot run what is in $PREFIX"
as alice 'seq 1 20000 > results.plain'

# The commands of the page: SECTION, USER, COMMAND.
python3 - "$SRC/docs/keys.rst" > "$CASE_DIR/commands" <<'END'
import re, sys
lines = open(sys.argv[1], encoding="utf-8").read().split("\n")
section, joined = "", ""
for line, below in zip(lines, lines[1:] + [""]):
    if line and re.fullmatch(r"-{4,}", below):
        section = line
    if not line.startswith("    "):
        continue
    line = joined + line.strip()
    joined = line[:-1] if line.endswith("\\") else ""
    found = re.fullmatch(r"(.*?)\s+# (alice|bob)", line)
    if found:
        print(section, found[2], re.sub(r"\s+", " ", found[1]), sep="\t")
END
[ "$(cut -f1 "$CASE_DIR/commands" | uniq | wc -l)" = 5 ] && [ "$(wc -l < "$CASE_DIR/commands")" -ge 25 ] || fail "the page has other sections"

# What is so after a section, and what happens before one.
same_content() { [ "$(as alice "mpicrypt file cat $project/run/results | sha256sum")" = "$(as alice "sha256sum < results.plain")" ] || fail "another content"; }
version_in_use() { as alice "mpicrypt file info $project/run/results" > "$CASE_DIR/info"; must grep -q "aes-128-gcm  results  *$1 " "$CASE_DIR/info"; }
bob_cannot() {
    as bob "mpicrypt file verify $1" > "$CASE_DIR/out" 2>&1 && fail "Bob can read $1"
    grep -qF -- "$2" "$CASE_DIR/out" || { cat "$CASE_DIR/out"; fail "no '$2'"; }
}
after() {
    case $1 in
        "Two people share a file")
            [ "$(as alice "sha256sum < results.plain")" = "$(as bob "sha256sum < results.plain")" ] || fail "Bob reads something else"
            [ "$(as alice 'mpicrypt key list --json')" = "$(as bob 'mpicrypt key list --json')" ] || fail "the keystores differ"
            must_fail grep -qaF "$(as alice 'sed -n "s/^key plain //p" .ompi-crypt/keys/results.1')" "$project/results.cms"
            must cmp <(as alice "mpicrypt file cat $project/run/results") <(seq 1 20000)
            cp -p "$project/run/results" "$project/.copy" ;;
        "A new version of a key")
            version_in_use 2
            same_content ;;
        "Somebody leaves")
            version_in_use 3
            same_content
            bob_cannot "$project/run/results" "results, version 3"
            # A copy of before: Bob still has its key, and Alice has revoked it.
            must as bob "mpicrypt file verify $project/.copy"
            must_fail as alice "mpicrypt file verify $project/.copy" ;;
        "What to back up")
            [ "$(as alice 'stat -c %a keys.cms')" = 600 ] || fail "others can read the backup"
            echo "the key is lost"
            as alice 'rm -r .ompi-crypt/keys'
            must_fail as alice "mpicrypt file verify $project/run/results" ;;
        "A key is lost")
            same_content
            must as alice 'cmp results.plain results.again'
            must_fail as alice 'mpicrypt key info results | grep -q "version 1.*in use"' ;;
    esac
}

passphrase="five random words of nobody"
last=
while IFS=$'\t' read -r section who command <&7; do
    [ "$section" = "$last" ] || [ -z "$last" ] || after "$last"
    [ "$section" = "$last" ] || echo "--- $section"
    last=$section
    command=${command//\/project/$project}
    case $command in
        *" --passphrase "*) command="python3 -B $project/.terminal.py 'New passphrase: =$passphrase' 'The same again: =$passphrase' -- $command" ;;
        *" restore "*)      command="python3 -B $project/.terminal.py 'Passphrase: =$passphrase' -- $command" ;;
    esac
    echo "+ $who: $command"
    as "$who" "$command" > "$CASE_DIR/out" 2>&1 < "$CASE_DIR/null" || { status=$?; cat "$CASE_DIR/out"; fail "status $status: $who: $command"; }
    sed 's/^/    /' "$CASE_DIR/out"
done 7< "$CASE_DIR/commands"
after "$last"

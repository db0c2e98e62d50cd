#!/bin/bash
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt keygen: the key, what is never overwritten, hosts through a stand-in
# for ssh that gives every host a home of its own.
#
#     mpicrypt_keygen.sh [MPICRYPT]       default: in PATH
set -u
tool=$(command -v "${1:-mpicrypt}") || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
checks=0
failures=0

check() {                       # check WHAT COMMAND...: the command succeeds
    local what=$1
    shift
    checks=$((checks + 1))
    if ! "$@"; then
        failures=$((failures + 1))
        echo "${BASH_SOURCE[0]}:${BASH_LINENO[0]}: failed: $what" >&2
        sed 's/^/    /' "$work/out" "$work/err" >&2
    fi
}

# keygen CODE TEXT ARGS...: the exit code, and TEXT on one of the outputs.
keygen() {
    local code=$1 text=$2
    shift 2
    "$tool" keygen "$@" >"$work/out" 2>"$work/err"
    local rc=$?
    check "exit code $code from: keygen $* (was $rc)" test $rc -eq "$code"
    check "'$text' from: keygen $*" sh -c 'cat "$1" "$2" | grep -qF -- "$3"' - "$work/out" "$work/err" "$text"
}

export HOME=$work/home
mkdir "$HOME"
psk=$HOME/.ompi-crypt/psk

cat >"$work/rsh" <<'RSH'
#!/bin/sh
host=$1
shift
echo "$host $*" >>"$work/calls"
[ "$host" != down ] || exit 255
HOME=$work/hosts/$host
export HOME
mkdir -p "$HOME"
[ "$host" != nfs ] || PATH=$work/nfs:$PATH     # where stat finds NFS
exec sh -c "$*"
RSH
mkdir "$work/nfs"
printf '#!/bin/sh\necho 6969\n' >"$work/nfs/stat"
chmod +x "$work/nfs/stat"
chmod +x "$work/rsh"
export work

echo "a new key"
keygen 0 "a new key" 
check "its form" grep -qxE '[0-9a-f]{64}' "$psk"
check "its mode" test "$(stat -c %a "$psk") $(stat -c %a "$HOME/.ompi-crypt")" = "600 700"
first=$(cat "$psk")
check "it is not printed" sh -c '! grep -qF "$1" "$2" "$3"' - "$first" "$work/out" "$work/err"

echo "a key that exists"
keygen 1 "there is a key already"
check "it stayed" test "$(cat "$psk")" = "$first"
keygen 0 "nodes that have the old key now differ" --force
check "it is another one" test "$(cat "$psk")" != "$first"
first=$(cat "$psk")

echo "another place"
keygen 0 "a new key" --out "$work/own"
check "its form" grep -qxE '[0-9a-f]{64}' "$work/own"
keygen 1 "No such file" --out "$work/a/b/c"
mkdir "$work/place"
keygen 2 "is a directory; name a file in it" --out "$work/place"
keygen 2 "is a directory; name a file in it" --force --out "$work/place"
check "it is empty" rmdir "$work/place"
keygen 1 "/proc" --out /proc/psk

echo "hosts"
keygen 1 "there is a key already" --hosts a,b --rsh "$work/rsh"
check "nothing was sent" test ! -e "$work/calls"
keygen 0 "b: installed" --existing --hosts a,b --rsh "$work/rsh"
check "on a" cmp -s "$psk" "$work/hosts/a/.ompi-crypt/psk"
check "on b" cmp -s "$psk" "$work/hosts/b/.ompi-crypt/psk"
check "its mode there" test "$(stat -c %a "$work/hosts/a/.ompi-crypt/psk")" = 600
check "its directory's there" test "$(stat -c %a "$work/hosts/a/.ompi-crypt")" = 700
check "nothing else is there" test "$(ls -A "$work/hosts/a/.ompi-crypt")" = psk
check "the key is in no argument" sh -c '! grep -qF "$1" "$2"' - "$first" "$work/calls"
keygen 0 "a: installed" --existing --hosts a,c --rsh "$work/rsh"
keygen 1 "down: the key was not installed" --existing --hosts down,d --rsh "$work/rsh"
check "the others are still tried" cmp -s "$psk" "$work/hosts/d/.ompi-crypt/psk"
keygen 1 "nfs: the key was not sent: its place there is on a network file system" --existing --hosts nfs --rsh "$work/rsh"
check "nothing of it is there" sh -c '! grep -rqF "$1" "$2"' - "$first" "$work/hosts/nfs"
keygen 0 "nfs: installed" --existing --allow-netfs --hosts nfs --rsh "$work/rsh"
keygen 0 "b: installed" --force --hosts a,b --rsh "$work/rsh"
check "replaced on b" cmp -s "$psk" "$work/hosts/b/.ompi-crypt/psk"
keygen 1 "c: another key is there already" --existing --hosts c,e --rsh "$work/rsh"
check "kept on c" test "$(cat "$work/hosts/c/.ompi-crypt/psk")" = "$first"
check "nothing is left over" test "$(ls -A "$work/hosts/c/.ompi-crypt")" = psk
keygen 0 "f: installed" --out "$work/it's \$a \"key\"" --hosts f --rsh "$work/rsh"
keygen 1 "cannot be run" --existing --hosts a --rsh "$work/none"

echo "usage"
keygen 2 "is no host" --force --hosts -oProxyCommand=x
keygen 2 "is no host" --force --hosts 'user@-oProxyCommand=x'
keygen 2 "is no host" --force --hosts 'user@'
keygen 2 "is no host" --force --hosts 'a host'
keygen 2 "begin with '/'" --out key --hosts a
keygen 2 "--existing goes with --hosts" --existing
keygen 2 "not with --force" --existing --force --hosts a
keygen 2 "unexpected word" word

echo "$checks checks, $failures failed"
test "$failures" -eq 0

#!/bin/bash
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt keygen: the key, what is never overwritten, hosts through a stand-in
# for ssh that gives every host a home of its own.
#
#     mpicrypt_keygen.sh [MPICRYPT]       default: in PATH
#
# MPICRYPT is the program, not libtool's script of that name: a library is loaded before it.
set -u
tool=$(realpath "$(command -v "${1:-mpicrypt}")") || exit 1
preload=$(realpath "$(dirname "$0")/preload") || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1            # names here are ours alone
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
unset OMPI_MCA_crypt_psk_file
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
if [ "$host" = fifo ]; then                    # somebody waits where a file of this process may be made
    mkdir "$HOME/.ompi-crypt"
    mkfifo "$HOME/.ompi-crypt/psk.new.$(uname -n).$$"
    cat "$HOME/.ompi-crypt/psk.new.$(uname -n).$$" >"$work/stolen" 2>&1 &
    echo $! >"$work/thief"
fi
exec sh -c "$*"
RSH
mkdir "$work/nfs"
printf '#!/bin/sh\n[ "$1" != -f ] || { echo 6969; exit; }\nexec %s "$@"\n' "$(command -v stat)" >"$work/nfs/stat"
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
mkdir "$work/open" "$work/sticky"
chmod 1777 "$work/sticky"
keygen 0 "a new key" --out "$work/sticky/psk"
for mode in 770 757 2775; do
    chmod $mode "$work/open"
    keygen 1 "Jobs would refuse the key" --out "$work/open/psk"
    keygen 1 "Jobs would refuse the key" --force --out "$work/open/psk"
done
chmod 755 "$work/open"
if [ "$(id -u)" = 0 ]; then
    chown 4711 "$work/open"
    keygen 1 "its directory belongs to user id 4711" --out "$work/open/psk"
    chown 0 "$work/open"
else
    echo "    not tried: another owner's directory, which root can make"
fi
check "no key is there" test -z "$(ls -A "$work/open")"
keygen 0 "a new key" --out "$work/open/psk"

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
gcc -Wall -Wextra -Werror -shared -fPIC -o "$work/other_thread.so" "$preload/other_thread.c" -ldl -pthread ||
    failures=$((failures + 1))
LD_PRELOAD=$work/other_thread.so keygen 1 "cannot be run" --existing --hosts a --rsh "$work/none"

keygen 0 "c: installed" --existing --force --hosts c --rsh "$work/rsh"
check "the existing one, in the place of another" cmp -s "$psk" "$work/hosts/c/.ompi-crypt/psk"

echo "a place on a host that does not suit"
at() { echo "$work/hosts/$1/.ompi-crypt/psk"; }
mkdir -p "$(at dir)"
for how in "" --force; do
    keygen 1 "dir: the key was not installed: its place there is a directory" --existing $how --hosts dir --rsh "$work/rsh"
    check "nothing is in it" test -z "$(ls "$(at dir)")"
done
for host in link mode read owner; do
    mkdir -p "$work/hosts/$host/.ompi-crypt"
    cp "$psk" "$(at $host)"
done
mv "$(at link)" "$(at link).other"
ln -s psk.other "$(at link)"
chmod 644 "$(at mode)"
chmod 400 "$(at read)"
unfit="this key is there already, but jobs will refuse it"
keygen 1 "link: $unfit" --existing --hosts link --rsh "$work/rsh"
keygen 1 "mode: $unfit" --existing --hosts mode --rsh "$work/rsh"
check "as it was" grep -qF 'refused, as they were (1): mode' "$work/err"
keygen 0 "read: installed" --existing --hosts read --rsh "$work/rsh"
if [ "$(id -u)" = 0 ]; then
    chown 4711 "$(at owner)"
    keygen 1 "owner: $unfit" --existing --hosts owner --rsh "$work/rsh"
else
    echo "    not tried: another owner's key, which root can make"
fi
keygen 0 "mode: installed" --existing --force --hosts link,mode --rsh "$work/rsh"
unsafe="unsafe: the key was not installed: jobs would refuse it, because its directory"
mkdir -p "$work/hosts/unsafe/.ompi-crypt"
for mode in 720 702 2777; do
    chmod $mode "$work/hosts/unsafe/.ompi-crypt"
    keygen 1 "$unsafe" --existing --hosts unsafe --rsh "$work/rsh"
    keygen 1 "$unsafe" --existing --force --hosts unsafe --rsh "$work/rsh"
done
check "as it was" grep -qF 'refused, as they were (1): unsafe' "$work/err"
if [ "$(id -u)" = 0 ]; then
    chmod 755 "$work/hosts/unsafe/.ompi-crypt"
    chown 4711 "$work/hosts/unsafe/.ompi-crypt"
    keygen 1 "$unsafe" --existing --hosts unsafe --rsh "$work/rsh"
    chown 0 "$work/hosts/unsafe/.ompi-crypt"
else
    echo "    not tried: another owner's directory, which root can make"
fi
check "no key is there" test -z "$(ls -A "$work/hosts/unsafe/.ompi-crypt")"
for mode in 1777 750; do
    chmod $mode "$work/hosts/unsafe/.ompi-crypt"
    keygen 0 "unsafe: installed" --existing --hosts unsafe --rsh "$work/rsh"
done
check "files of their own" test "$(stat -c '%F %a' "$(at link)" "$(at mode)" | sort -u)" = "regular file 600"

echo "a name that somebody has foreseen"
keygen 0 "fifo: installed" --existing --hosts fifo --rsh "$work/rsh"
kill "$(cat "$work/thief")" 2>/dev/null
check "nothing was stolen" test ! -s "$work/stolen"
check "a file of its own" test "$(stat -c '%F %a' "$(at fifo)")" = "regular file 600"

echo "a file that holds no key, and one without the end of its line"
(
    umask 077
    printf '%064d\n' 0 | tr 0 g >"$work/letters"
    printf '%064d\n' 0 >"$work/zeros"
    { tr -d '\n' <"$psk"; echo -n ' '; } >"$work/blank"
    mkdir -p "$work/short/.ompi-crypt"
    tr -d '\n' <"$psk" >"$work/short/.ompi-crypt/psk"
)
keygen 1 "does not hold hexadecimal digits" --existing --out "$work/letters" --hosts g --rsh "$work/rsh"
keygen 1 "does not hold hexadecimal digits" --existing --out "$work/blank" --hosts g --rsh "$work/rsh"
keygen 1 "consists of zeros" --existing --out "$work/zeros" --hosts g --rsh "$work/rsh"
check "nobody was called" test ! -e "$work/hosts/g"
HOME=$work/short keygen 0 "g: installed" --existing --hosts g --rsh "$work/rsh"
check "a whole line there" cmp "$(at g)" "$psk"

echo "lists of hosts"
# ranges LIST HOST...: whom it calls, in the order in which it reports.
ranges() {
    local list=$1
    shift
    keygen 0 "and this node have the key" --existing --hosts "$list" --rsh "$work/rsh"
    check "hosts of $list" test "$(sed -n 's/: installed$//p' "$work/out" | tr '\n' ' ')" = "$* "
}
ranges 'n[1-3,7],login1' n1 n2 n3 n7 login1
ranges 'n[08-11]' n08 n09 n10 n11
ranges 'n[9-11]' n9 n10 n11
ranges 'r[1-2]n[01,3].x' r1n01.x r1n3.x r2n01.x r2n3.x
ranges 'u@n[1-2]' u@n1 u@n2
ranges 'n2,n1,n[1-2],n2' n2 n1
ranges 'n[7]' n7
for bad in 'n[1-[2-3]]' 'n[[1]]' 'n[1' 'n1]' 'n]1[' 'n[1]]'; do
    keygen 2 "do not match" --existing --hosts "$bad" --rsh "$work/rsh"
done
for bad in 'n[]' 'n[2-1]' 'n[1-]' 'n[-1]' 'n[a-b]' 'n[1,]' 'n[,1]' 'n[1-2-3]' 'n[1-02]' 'n[100-99]' 'n[1 -2]' 'n[1234567890]' \
    'n[0x1-0x2]' 'n[1-3'$'\n'',4]'; do
    keygen 2 "is no list of numbers and ranges" --existing --hosts "$bad" --rsh "$work/rsh"
done
keygen 2 "has an empty entry" --existing --hosts 'a,,b'
keygen 2 "has an empty entry" --existing --hosts 'a,'
keygen 2 "has an empty entry" --existing --hosts ',a'
keygen 2 "is no host" --existing --hosts '[1-2]@'
keygen 2 "is no host" --existing --hosts '-[1-2]'
keygen 2 "is no host" --existing --hosts 'u@-n[1-2]'
keygen 2 "more than 65536 hosts" --existing --hosts 'n[0-999999999]'
keygen 2 "more than 65536 hosts" --existing --hosts 'n[1-256]x[1-256]y[1-2]'
keygen 2 "too long" --existing --hosts "$(printf 'n%.0s' {1..256})"
keygen 2 "too long" --existing --hosts "$(printf 'n%.0s' {1..250})[100000-100001]"

echo "many hosts"
# Each is counted while it runs; some fail in the ways that there are.
cat >"$work/many" <<'RSH'
#!/bin/sh
read -r key
(umask 077; echo "$key" >"$work/many.d/$1.key")
echo x >>"$work/many.d/running.$$"
ls "$work/many.d" | grep -c '^running' >>"$work/many.d/most"
case $1 in
    n007) echo "Permission denied"; code=255 ;;
    n100) code=4 ;;
    n301) code=3 ;;
    *)    code=0 ;;
esac
rm "$work/many.d/running.$$"
exit $code
RSH
chmod +x "$work/many"
mkdir "$work/many.d"
keygen 1 "298 of 301 hosts have the key of this node" --existing --hosts 'n[001-301]' --rsh "$work/many"
check "298 are installed" test "$(grep -c ': installed$' "$work/out")" = 298
check "in order" sh -c 'sed -n "s/: installed$//p" "$1" | sort -c' - "$work/out"
check "one is refused" grep -qF 'refused, as they were (1): n100' "$work/err"
check "two failed" grep -qF 'failed, most likely as they were (2): n007,n301' "$work/err"
check "what ssh said" grep -qxF '    Permission denied' "$work/err"
check "how to go on" grep -qF 'mpicrypt keygen --existing --hosts LIST' "$work/err"
check "each got the key" test "$(cat "$work"/many.d/n*.key | sort -u | wc -l) $(ls "$work"/many.d/n*.key | wc -l)" = "1 301"
check "at most 16 at once" test "$(sort -n "$work/many.d/most" | tail -n 1)" -le 16
check "nothing about progress without a terminal" sh -c '! grep -q "%" "$1" "$2"' - "$work/out" "$work/err"
rm -f "$work/many.d/most"
keygen 1 "19 of 20" --existing --hosts 'n[001-020]' --rsh "$work/many" --at-once 1
check "one at a time" test "$(sort -n "$work/many.d/most" | tail -n 1)" = 1
keygen 1 "WARNING: nodes that have the old key and are not among these hosts now differ" --force --hosts 'n[001-008]' --rsh "$work/many"
check "how to go on after --force" grep -qF 'mpicrypt keygen --existing --force --hosts LIST' "$work/err"

echo "a signal"
# The first two never end by themselves; what is started is waited for.
cat >"$work/never" <<'RSH'
#!/bin/sh
echo $$ >"$work/never.$1"
exec sleep 1000
RSH
chmod +x "$work/never"
for signal in TERM INT HUP; do
    rm -f "$work"/never.n*
    # What runs in the background would ignore INT.
    env --default-signal=INT "$tool" keygen --existing --hosts 'n[1-5]' --rsh "$work/never" --at-once 2 \
        >"$work/out" 2>"$work/err" &
    child=$!
    until [ -s "$work/never.n1" ] && [ -s "$work/never.n2" ]; do sleep 0.05; done
    kill -$signal $child
    rc=0
    { wait $child || rc=$?; } 2>/dev/null       # bash says so
    check "it ends by SIG$signal (status $rc)" test $rc = $((128 + $(kill -l $signal)))
    check "what is not known" grep -qF 'interrupted, not known (2): n1,n2' "$work/err"
    check "what was not tried" grep -qF 'not tried, as they were (3): n3,n4,n5' "$work/err"
    check "no child is left" sh -c '! kill -0 "$(cat "$1")" 2>/dev/null && ! kill -0 "$(cat "$2")" 2>/dev/null' - \
        "$work/never.n1" "$work/never.n2"
done

echo "where jobs look for it"
export OMPI_MCA_crypt_psk_file=$work/place/psk
keygen 0 "$work/place/psk: a new key" --hosts other --rsh "$work/rsh"
check "the host has it there" grep -qF "f='\\''$work/place/psk'\\'';" "$work/calls"
OMPI_MCA_crypt_psk_file='' keygen 1 "$psk: there is a key already"
OMPI_MCA_crypt_psk_file=psk keygen 2 "begin with '/'" --hosts other
unset OMPI_MCA_crypt_psk_file

echo "usage"
keygen 2 "is no host" --force --hosts -oProxyCommand=x
keygen 2 "is no host" --force --hosts 'user@-oProxyCommand=x'
keygen 2 "is no host" --force --hosts 'user@'
keygen 2 "is no host" --force --hosts 'a host'
keygen 2 "begin with '/'" --out key --hosts a
keygen 2 "--existing goes with --hosts" --existing
keygen 2 "--existing goes with --hosts" --existing --force
keygen 2 "--at-once is from 1 to 256" --existing --hosts a --at-once 0
keygen 2 "--at-once is from 1 to 256" --existing --hosts a --at-once 257
keygen 2 "unexpected word" word

echo "$checks checks, $failures failed"
test "$failures" -eq 0

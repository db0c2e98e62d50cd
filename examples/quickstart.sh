#!/usr/bin/env bash
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# quickstart.sh - see it work: from a fresh Debian 12 to encrypted messages.
#
#   sudo examples/quickstart.sh
#
# Installs the packages that are missing, builds ompi-crypt, makes a key and two
# virtual nodes on this machine, and runs ring.c between them twice, plain and
# encrypted, with a packet capture of each.  Builds and keeps everything under
# ${XDG_CACHE_HOME:-/var/cache}/ompi-crypt/quickstart; besides the packages
# nothing is left on the machine, and deleting that directory is always allowed.
set -euo pipefail

SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
OMPI_CRYPT_TEST_DIR=${XDG_CACHE_HOME:-/var/cache}/ompi-crypt/quickstart
. "$SRC/tests/lib.sh"
. "$SRC/tests/build.sh"

[ $# = 0 ] || { sed -n '4,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p}' "$0"; exit 2; }
[ "$(id -u)" = 0 ] || die "packages, virtual nodes and packet captures need root: sudo $0"

PREFIX=$WORK/prefix
LOG=$WORK/log/quickstart.log
STEPS=6

# ---- progress: a line a step; on a terminal it lives while the step runs ----

# step TITLE COMMAND...: the command's output goes to the log.
number=0
step() {
    local title=$1 begin=$SECONDS pid rc=0; shift
    number=$((number + 1))
    title="[$number/$STEPS] $title"
    "$@" >>"$LOG" 2>&1 8>&- &
    pid=$!
    while [ -t 1 ] && kill -0 $pid 2>/dev/null; do
        printf '\r\033[K%s  %d s  \033[2m%s\033[m' "$title" $((SECONDS - begin)) \
            "$(tail -n 1 "$LOG" | tr -dc '[:print:]' | cut -c 1-40)"
        sleep 0.5
    done
    wait $pid || rc=$?
    [ ! -t 1 ] || printf '\r\033[K'
    printf '%-52s %4d s\n' "$title" $((SECONDS - begin))
    [ $rc = 0 ] || { tail -n 12 "$LOG" >&2; die "failed; all of it is in $LOG"; }
}

# ---- the steps ----

build() {
    set -x
    cd "$SRC" && ./autogen.pl
    mkdir -p "$WORK/build" && cd "$WORK/build"
    "$SRC/configure" --prefix="$PREFIX"
    make -j"$(nproc)"
    make install
    mpicc -O2 -Wall -o "$WORK/ring" "$SRC/examples/ring.c"
}

# A text that is nowhere else: in a file of this node, not on a command line,
# which mpirun sends to the other node itself.
make_secrets() {
    (umask 077; echo "canary-$(od -An -tx1 -N8 /dev/urandom | tr -d ' \n') sings in the mine." > "$WORK/secret.txt")
    [ -e "$WORK/psk" ] || "$PREFIX/bin/mpicrypt" keygen --out "$WORK/psk"
}

# job NAME MPIRUN-ARG...: ring on two nodes of two ranks, and node1's wire.
job() {
    local name=$1; shift
    capture_start node1 "$WORK/$name.pcap" -B 65536
    vcluster mpirun -n 4 "$@" "$WORK/ring" "$WORK/secret.txt" | tee "$WORK/$name.out"
    capture_stop node1
}

# ---- what it shows ----

# times FILE TEXT: how often TEXT is in FILE.
times() { { grep -aoF -- "$2" "$1" || true; } | wc -l; }

report() {
    local name=$1 capture=$WORK/$1.pcap found; shift
    found=$(times "$capture" "$canary")
    printf '\n%s\n    %s\n    node1 received and sent %d bytes; the text is readable there %d times\n' \
        "\$ $*" "$(cat "$WORK/$name.out")" "$(stat -c %s "$capture")" "$found"
    if [ "$found" -gt 0 ]; then
        printf '    first: "%s"\n' "$(grep -aoE -m 1 -- "$canary[ -~]*" "$capture" | head -n 1)"
    fi
}

begin=$SECONDS
prepare_directories
: > "$LOG"
echo "ompi-crypt $(cat "$SRC/VERSION"): the log is $LOG"
trap 'cluster_stop; cluster_remove' EXIT
trap 'exit 130' INT TERM

step "packages of Debian" install_packages
step "build and install into a prefix of its own" build
step "a key of 32 random bytes: mpicrypt keygen" make_secrets
. "$PREFIX/share/ompi-crypt/env.sh"
step "two virtual nodes" vcluster up 2
step "four ranks, plain" job plain --mca pml ob1
step "four ranks, encrypted" job sealed --mca pml crypt --mca crypt_psk_file "$WORK/psk"

canary=$(cut -d ' ' -f 1 "$WORK/secret.txt")
report plain  "mpirun -n 4 --mca pml ob1 ./ring secret.txt"
report sealed "mpirun -n 4 --mca pml crypt ./ring secret.txt"
echo
[ "$(times "$WORK/plain.pcap" "$canary")" -gt 0 ] || die "the plain run was not readable: the capture proves nothing"
[ "$(times "$WORK/sealed.pcap" "$canary")" = 0 ] || die "THE ENCRYPTED RUN WAS READABLE"
[ "$(stat -c %s "$WORK/sealed.pcap")" -gt 2000000 ] || die "the encrypted run did not cross the network"
cat <<END
The same program, and nobody on the network can read the second run.
It took $(duration $((SECONDS - begin))).  For programs of your own on this machine:

    . $PREFIX/share/ompi-crypt/env.sh
    mpicrypt keygen
    mpirun --mca pml crypt ./your-program

README.md says what is encrypted today, docs/install.rst how to install it.
END

#!/usr/bin/env bash
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# quickstart.sh - a demonstration on a fresh Debian 12 or 13.
#
#   sudo examples/quickstart.sh [PREFIX]
#
# Installs missing packages, builds ompi-crypt, or takes what is installed in PREFIX, makes a key and two virtual nodes on
# this machine, and runs ring.c between them twice, plain and encrypted, with a packet
# capture of each.  Then it writes an encrypted file and compares latency and bandwidth.
# The results are printed and written to an HTML page.  Apart from the packages,
# everything is in ${XDG_CACHE_HOME:-/var/cache}/ompi-crypt/quickstart, which you may
# delete at any time.
set -euo pipefail

SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
OMPI_CRYPT_TEST_DIR=${XDG_CACHE_HOME:-/var/cache}/ompi-crypt/quickstart
. "$SRC/tests/lib.sh"
. "$SRC/tests/build.sh"

[ $# -le 1 ] && [[ ${1-} != -* ]] || { sed -n '4,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p}' "$0"; exit 2; }
mountpoint -q / || die "/ is not a mount point, so virtual nodes cannot have mounts of their own: before chroot DIR, mount --bind DIR DIR"
[ "$(id -u)" = 0 ] || die "packages, virtual nodes and packet captures need root: sudo $0"
[[ $SRC$OMPI_CRYPT_TEST_DIR != *[[:space:]]* ]] || die "there is a blank in the path of this directory or of \$XDG_CACHE_HOME, which mpirun cannot take"
[ $# = 1 ] || not_configured

PREFIX=${1:-$WORK/prefix}
LOG=$WORK/log/quickstart.log
STEPS=8

# ---- progress: a line a step; on a terminal it lives while the step runs ----

# step TITLE COMMAND...: run the command, with its output in the log, in a process group of its own,
# which ^C ends, too.
number=0 pid=
step() {
    local title=$1 begin=$SECONDS rc=0; shift
    number=$((number + 1))
    title="[$number/$STEPS] $title"
    set -m
    { set +m; "$@"; } >>"$LOG" 2>&1 8>&- </dev/null &
    pid=$!
    set +m
    while [ -t 1 ] && kill -0 $pid 2>/dev/null; do
        printf '\r\033[K%s  %d s  \033[2m%s\033[m' "$title" $((SECONDS - begin)) \
            "$(tail -n 1 "$LOG" | tr -dc '[:print:]' | cut -c 1-40)"
        sleep 0.5
    done
    wait $pid || rc=$?
    pid=
    [ ! -t 1 ] || printf '\r\033[K'
    printf '%-52s %4d s\n' "$title" $((SECONDS - begin))
    [ $rc = 0 ] || { tail -n 12 "$LOG" >&2; die "failed; all of it is in $LOG"; }
}

# ---- the steps ----

build() {
    set -x
    [ "$PREFIX" != "$WORK/prefix" ] || install_prefix
    mpicc -O2 -Wall -o "$WORK/ring" "$SRC/examples/ring.c"
    mpicc -O2 -Wall -I"$PREFIX/include" -o "$WORK/regions" "$SRC/examples/regions.c" \
        -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" -lmpi_crypt
}

# From a copy: in the user's tree there would be files of root's.
install_prefix() {
    rm -rf --one-file-system "$WORK/src"
    mkdir -p "$WORK/src" "$WORK/build"
    tar -C "$SRC" --exclude=./.git --exclude='./build*' -cf - . | tar -C "$WORK/src" --no-same-owner -xf -
    cd "$WORK/src" && ./autogen.pl
    cd "$WORK/build"
    "$WORK/src/configure" --prefix="$PREFIX"
    make -j"$(nproc)"
    make install
}

# A unique text, in a file of this node.  It must not be on a command line, since mpirun
# sends that to the other node.
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

# A file whose first 64 bytes are plain and whose rest is encrypted.
file_job() {
    rm -rf "$WORK/keys.files" "$WORK/results"
    mpicrypt key new results --keystore-dir "$WORK/keys.files"
    vcluster mpirun -n 4 "${sealed[@]}" --mca crypt_keystore_dir "$WORK/keys.files" "$WORK/regions" "$WORK/results"
    mpicrypt file verify "$WORK/results" --keystore-dir "$WORK/keys.files"
}

# Few rounds: not figures to quote.
compare() {
    mpicrypt bench pingpong --mpirun "$SRC/tests/vcluster mpirun" --schemes crypt --size 1,4K,64K,1M --fast 3 --rounds 9 \
        --csv "$WORK/bench.csv" --plot "$WORK/bench.svg"
}

# ---- what it shows ----

# times FILE TEXT: how often TEXT is in FILE.
times() { { grep -aoF -- "$2" "$1" || true; } | wc -l; }

# window NAME COLUMNS: six lines from the middle of a capture, with dots for other
# characters than letters.
window() {
    local file=$WORK/$1.pcap
    tail -c +$(($(stat -c %s "$file") / 2)) "$file" 2>/dev/null | head -c $(($2 * 6)) |
        LC_ALL=C tr -c '[:print:]' '.' | fold -w "$2" || true
    echo
}

side_by_side() {
    local name left right
    printf '\n    %-44s  %s\n' "plain, as the network sees it" "encrypted"
    paste -d '\t' <(window plain 44) <(window sealed 44) |
        while IFS=$'\t' read -r left right; do printf '    %-44s  %s\n' "$left" "$right"; done
    for name in plain sealed; do
        printf '    %s: %d bytes of packets, the text is readable there %d times\n' \
            $name "$(stat -c %s "$WORK/$name.pcap")" "$(times "$WORK/$name.pcap" "$canary")"
    done
}

bytes_on_disk() { od -A d -t x1z -N 160 "$WORK/results"; }

# A line for each size: the median times of a message with their quartiles, one divided by
# the other, and bytes a second.
ratios() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
             function times() { return sprintf("%.1f us (%.1f to %.1f)", $at["us"], $at["us_q1"], $at["us_q3"]) }
             $at["column"] == "plain" { b = $at["bytes"]; us[b] = $at["us"]; plain[b] = times(); rate[b] = $at["MBps"] }
             $at["column"] == "crypt" { b = $at["bytes"]; printf "%8d bytes: plain %s, encrypted %s, %.2f times;" \
                 " %.1f and %.1f MB/s\n", b, plain[b], times(), sprintf("%.1f", $at["us"]) / sprintf("%.1f", us[b]),
                 rate[b], $at["MBps"] }' "$WORK/bench.csv"
}

escaped() { sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'; }

# The same as a self-contained HTML page.
page() {
    cat <<END
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>ompi-crypt: quickstart</title><style>
body { font-family: sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222; }
pre { background: #f4f4f4; padding: 1em; overflow-x: auto; }
.pair { display: flex; gap: 1em; } .pair div { flex: 1; min-width: 0; }
svg { max-width: 100%; height: auto; }
</style></head><body>
<h1>ompi-crypt $(cat "$SRC/VERSION")</h1>
<p>$(date -u '+%Y-%m-%d %H:%M UTC'), $(uname -n), $(nproc) processors, two virtual nodes.</p>
<h2>What the network sees</h2>
<div class="pair">
<div><h3>plain</h3><p>readable $(times "$WORK/plain.pcap" "$canary") times</p>
<pre>$(window plain 60 | escaped)</pre></div>
<div><h3>encrypted</h3><p>readable $(times "$WORK/sealed.pcap" "$canary") times</p>
<pre>$(window sealed 60 | escaped)</pre></div>
</div>
<h2>What the disk holds</h2>
<p>A file with a plain header of 64 bytes, and encrypted lines after it (<code>examples/regions.c</code>).</p>
<pre>$(bytes_on_disk | escaped)</pre>
<h2>What it costs</h2>
<p>Two virtual nodes share this machine's processors.  Few rounds: on a machine that does other
things, too, these figures say little.  <code>mpicrypt bench all --html</code> measures more.</p>
<pre>$(ratios | escaped)</pre>
$(sed -n '/<svg /,$p' "$WORK/bench.svg")
</body></html>
END
}

begin=$SECONDS
CONFIGURED=0                    # install_prefix does that
export VCLUSTER_DIR=${VCLUSTER_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/ompi-crypt-XXXXXX")}
prepare_directories
: > "$LOG"
echo "ompi-crypt $(cat "$SRC/VERSION"): the log is $LOG"
trap cluster_stop EXIT
trap '[ -z "$pid" ] || kill -TERM -- "-$pid"; exit 130' INT TERM

step "packages of Debian" install_packages
step "$([ $# = 0 ] && echo "build and install into a prefix of its own" || echo "programs for $1")" build
step "a key of 32 random bytes: mpicrypt keygen" make_secrets
. "$PREFIX/share/ompi-crypt/env.sh"
step "two virtual nodes" vcluster up 2
step "four ranks, plain" job plain --mca pml ob1
sealed=(--mca pml crypt --mca crypt_psk_file "$WORK/psk")
step "four ranks, encrypted" job sealed "${sealed[@]}"
step "an encrypted file" file_job
export OMPI_MCA_crypt_psk_file=$WORK/psk
step "latency and bandwidth" compare

canary=$(cut -d ' ' -f 1 "$WORK/secret.txt")
printf '\n$ mpirun -n 4 --mca pml ob1 ./ring secret.txt\n    %s\n' "$(cat "$WORK/plain.out")"
printf '$ mpirun -n 4 --mca pml crypt ./ring secret.txt\n    %s\n' "$(cat "$WORK/sealed.out")"
side_by_side
[ "$(times "$WORK/plain.pcap" "$canary")" -gt 0 ] || die "the plain run was not readable: the capture proves nothing"
[ "$(times "$WORK/sealed.pcap" "$canary")" = 0 ] || die "THE ENCRYPTED RUN WAS READABLE"
[ "$(stat -c %s "$WORK/sealed.pcap")" -gt 2000000 ] || die "the encrypted run did not cross the network"
printf '\n$ mpirun -n 4 --mca pml crypt ./regions results; od -t x1z results\n'
bytes_on_disk | sed 's/^/    /'
[ "$(times "$WORK/results" "secret of the rank")" = 0 ] || die "THE ENCRYPTED FILE IS READABLE"
[ "$(times "$WORK/results" "lines of 1024 bytes")" = 1 ] || die "the file's header is not readable: the file proves nothing"
printf '\n$ mpicrypt bench pingpong --schemes crypt\n'
ratios | sed 's/^/    /'
echo "    (medians and quartiles of few rounds: on a machine that does other things, too, these figures say little)"
page > "$WORK/report.html"
printf '\nAll of this as one page: %s\n\n' "$WORK/report.html"
cat <<END
The same program, and nobody on the network can read the second run.
It took $(duration $((SECONDS - begin))).  For programs of your own on this machine:

    . $PREFIX/share/ompi-crypt/env.sh
    mpicrypt keygen
    mpirun --mca pml crypt ./your-program

README.md says what is encrypted today, docs/install.rst how to install it.
END

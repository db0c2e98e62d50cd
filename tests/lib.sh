# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What script cases have in common; run.sh uses it too.  A script begins with
#
#     . "$SRC/tests/lib.sh"
#
# and runs under `set -eu`.  It ends with 0 (passed), through skip (skipped),
# or with anything else (failed).  From run.sh it has:
#
#   SRC       the source tree            CASE_DIR   an empty private directory,
#   BUILD     this variant's build tree             shared by all nodes
#   PREFIX    where it is installed,     CACHE      for what is costly to make,
#             env.sh sourced                        kept between runs
#   SERIES    4.1, 5.0, 6.0               OMPI_MCA_pml=crypt, and a psk file
#   LIMIT     seconds that the case may take

die()  { echo "$(basename "$0"): $*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "failed: $*" >&2; exit 1; }

duration() { printf '%d:%02d minutes' $(($1 / 60)) $(($1 % 60)); }

# must COMMAND...: it has to succeed.   must_fail COMMAND...: it has to fail.
must()      { echo "+ $*"; "$@" || fail "status $?: $*"; }
must_fail() { echo "+ ! $*"; if "$@"; then fail "succeeded: $*"; fi; }

# says TEXT COMMAND...: its output has to contain TEXT (a fixed string).
says() {
    local text=$1 output; shift
    echo "+ $*"
    output=$("$@" 2>&1) || true
    printf '%s\n' "$output"
    grep -qF -- "$text" <<<"$output" || fail "\"$text\" is not in the output of: $*"
}

vcluster() { "$SRC/tests/vcluster" "$@"; }

# bare_root SUITE DIR: Debian's minimal system.  An older debootstrap does not know a newer suite by its name, but how
# that is made.  Testing's index expires after a week: where a mirror stands still, its signature will do.
bare_root() {
    local mirror scripts=/usr/share/debootstrap/scripts
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Component: main' 2>/dev/null |
        grep -v security | head -n 1) || true
    rm -rf --one-file-system "$2"
    debootstrap --variant=minbase "$1" "$2" "${OMPI_CRYPT_MIRROR:-${mirror:-http://deb.debian.org/debian}}" \
        "$(ls "$scripts/$1" 2>/dev/null || echo "$scripts/sid")" || return
    [ "$1" != forky ] || echo 'Acquire::Check-Valid-Until "false";' > "$2/etc/apt/apt.conf.d/10old"
}

# mpirun_aside ARGUMENT... -- PROGRAM...: what ranks say goes around mpirun, as that of 5.0 may lose the last of it.
mpirun_aside() {
    local arguments=() rc=0
    while [ "$1" != -- ]; do arguments+=("$1"); shift; done
    shift
    : > "$CASE_DIR/aside"
    vcluster mpirun "${arguments[@]}" sh -c 'said=$1; shift; exec "$@" >> "$said" 2>&1' sh "$CASE_DIR/aside" "$@" || rc=$?
    cat "$CASE_DIR/aside"
    return $rc
}

# shared_first NODE: it has an address that other nodes have, too, as that of a bridge for containers, before its own: the
# speeds of interfaces, by which they are sorted, are hidden.  The launcher does not look at loopback.
shared_first() {
    must vcluster net "$1" ip addr add 10.77.0.1/24 dev lo label lo:0
    must vcluster exec "$1" mount -t tmpfs none /sys/class/net
    export VCLUSTER_IF=lo:0,eth0
}

# For mpiruns to come.  Not on a command line: 5.0 would join it with what is set already.
over_btl() {
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=crypt,self,$([ "$SERIES" = 4.1 ] && echo vader || echo sm)
}

# algorithms ALLGATHER|BCAST|ALLTOALL: the words of coll/cryptag's algorithms, by number from 1
algorithms() {
    sed -n "/^#define OPAL_CRYPT_$1S(/,/^\$/s/^ *\(RUN\|NAMED\)(.*\"\(.*\)\").*/\2/p" "$SRC/opal/mca/common/crypt/base/algorithms.h"
}

# Is this variant's Open MPI not this system's, but that of a root?
in_other_root() { [ -n "$VARIANT_ROOT" ]; }

# cluster_up N [UP-OPTION...]: taken down when the script ends.  For a case of
# 5.0 or 6.0 the nodes are in its root, where what run.sh made can be seen.
cluster_up() {
    local root=()
    trap 'vcluster down >/dev/null 2>&1 || true' EXIT
    ! in_other_root || root=(--root "$VARIANT_ROOT" --bind "$SRC" --bind "$(dirname "$VARIANT_DIR")")
    vcluster up "$@" ${root[@]+"${root[@]}"}
    echo "$VARIANT" > "$VCLUSTER_DIR/kind"
}

# in_vm SCRIPT: in a virtual machine of its own, or the case is skipped.
in_vm() {
    local rc=0
    VM_LIMIT=$((LIMIT - 20)) "$SRC/tests/vm" "$1" || rc=$?
    [ $rc != 77 ] || exit 77
    [ $rc = 0 ] || fail "in the virtual machine: status $rc"
}

# What a script there needs of this case's environment, as commands: inside $(...).
vm_environment() {
    export -p | grep -E '^declare -x (PATH|SRC|PREFIX|VARIANT|VARIANT_DIR|CACHE|SERIES|LIMIT|OMPI_[A-Z]+_[a-zA-Z0-9_]*|PMIX_MCA_[a-z_]*|LD_LIBRARY_PATH|MANPATH)='
}

# ---- captures: what was on the nodes' wires ----

declare -A CAPTURE_FILE CAPTURE_PID

# capture_start NODE FILE [TCPDUMP-ARG...]: returns when tcpdump is listening.
# One at a time on a node.  A filter must let UDP port 9 pass.
capture_start() {
    local node=$1
    CAPTURE_FILE[$node]=$2
    rm -f "$2"
    # Not the function, so that $! is tcpdump; before others, or it loses packets.
    nice -n -15 "$SRC/tests/vcluster" capture "$@" 2>"$2.log" &
    CAPTURE_PID[$node]=$!
    # tcpdump opens its file, and with -U writes its header, once it listens.
    until [ -s "$2" ]; do
        capture_alive "$node"
    done
}

# capture_stop NODE: returns when all that was sent so far is in the file: the
# last packet is a marker of ours to another node, which we wait to see.
capture_stop() {
    local node=$1 marker="end-of-capture-$$-$RANDOM$RANDOM" other
    other=$(vcluster status | sed -n 's/^\(node[0-9]*\) up.*/\1/p' | grep -vx "$node" | head -n 1)
    vcluster exec "$node" bash -c "echo $marker > /dev/udp/$other/9"
    until tail -c 65536 "${CAPTURE_FILE[$node]}" | grep -qaF "$marker"; do
        capture_alive "$node"
    done
    kill -TERM "${CAPTURE_PID[$node]}"
    wait "${CAPTURE_PID[$node]}" || true
    grep -q '^0 packets dropped by kernel' "${CAPTURE_FILE[$node]}.log" ||
        fail "tcpdump on $node lost packets: $(cat "${CAPTURE_FILE[$node]}.log")"
}

capture_alive() {
    kill -0 "${CAPTURE_PID[$1]}" 2>/dev/null || fail "tcpdump: $(cat "${CAPTURE_FILE[$1]}.log")"
    sleep 0.01
}

# ---- programs ----

# pip_install VENV PACKAGE...: or the case is skipped, if the registry does not answer
pip_install() {
    local venv=$1 rc=0; shift
    "$venv/bin/pip" install -q --disable-pip-version-check --no-input "$@" > pip.out 2>&1 || rc=$?
    cat pip.out
    [ $rc = 0 ] || ! grep -qE 'ConnectionError|NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|Max retries|\(from versions: none\)' pip.out ||
        skip "the registry of Python packages does not answer: $(grep -m 1 ERROR pip.out)"
    [ $rc = 0 ] || fail "pip install $*"
}

# in_variant CMD...: where that variant is at home; a script's cluster is up.
in_variant() {
    if ! in_other_root; then
        "$@"
        return
    fi
    [ -e "$VCLUSTER_DIR/nodes" ] && [ "$(cat "$VCLUSTER_DIR/kind")" = "$VARIANT" ] || cluster 1 1 >&2
    "$SRC/tests/vcluster" exec node0 "$@"
}

# internal_program COMPONENT KIND/NAME WORD...: a program where only Open MPI's and our own
# internal headers lead, compiled as the component in this directory is, of sources and
# options; prints its path.
internal_program() {
    local component=$BUILD/$1 program=$VARIANT_DIR/tests/$2 flags; shift 2
    flags=$(internal_flags "$component")
    mkdir -p "$(dirname "$program")"
    (
        cd "$component"                 # where -I$(top_srcdir) and the like are right
        eval "flags=($flags)"
        in_variant mpicc -std=gnu11 -O2 -g -mcx16 -fno-strict-aliasing -Wall -Wextra -Wshadow -Werror -Wno-unused-parameter \
            -pthread -rdynamic $VARIANT_CFLAGS "${flags[@]}" -I"$SRC/tests/mpi" -o "$program.$BASHPID" "$@" -lopen-pal -lm >&2 &&
            mv "$program.$BASHPID" "$program"               # the other lane may run it
    ) || fail "${program##*/}.c does not compile"
    echo "$program"
}

# internal_flags DIRECTORY: those that a component there is compiled with.
internal_flags() { ( cd "$1" && printf 'include Makefile\nshow:\n\t@echo $(DEFS) $(CPPFLAGS)\n' | make -s -f - show | tail -n 1 ) }

# pretended_accelerator: the pretended accelerator, and what is preloaded into programs whose buffers are to be in its memory
# (tests/mpi/accel), made once; prints their directory.
pretended_accelerator() {
    local from=$SRC/tests/mpi/accel place=$VARIANT_DIR/tests/accel flags header
    ! in_variant ompi_info | grep 'accelerator: cuda' >&2 ||
        skip "this Open MPI has its own accelerator/cuda, the name of the pretended one" >&2
    mkdir -p "$place"
    (
        flock 6
        [ -z "$(find "$from" -type f -newer "$place/gate.so" 2>&1)" ] && exit
        header=$(in_variant mpicc --showme:incdirs | tr ' ' '\n' | sed -n "s,^,$VARIANT_ROOT,; p; q")/mpi.h
        python3 -B "$from/gate.py" "$header" > "$place/calls.h" || exit
        cd "$BUILD/ompi/mca/pml/crypt"  # where -I$(top_srcdir) and the like are right
        eval "flags=($(internal_flags .))"
        must in_variant mpicc -O2 -Wall -shared -fPIC "${flags[@]}" -o "$place/mca_accelerator_cuda.so" "$from/accelerator.c" -lopen-pal
        must in_variant mpicc -O2 -Wall -Wno-deprecated-declarations -shared -fPIC -I"$place" -o "$place/gate.so" "$from/gate.c"
    ) 6>"$place/lock" >&2 || exit
    echo "$place"
}

# make_check DIRECTORY: what `make check` builds there, for one case at a time.
make_check() {
    ( flock 6; in_variant make -C "$BUILD/$1" check TESTS= >&2 ) 6>"$VARIANT_DIR/make_check.lock"
}

# mpi_program KIND NAME: compile tests/KIND/NAME.c, print the program's path.
# Sources in tests/mpi and tests/KIND without a main() belong to every one, and are compiled once.
# -rdynamic: a program can stand in for a function that the libraries call.
mpi_program() {
    local kind=$1 name=$2 program=$VARIANT_DIR/tests/$1/$2 source shared=() objects=() extra=() file stale=
    source=$SRC/tests/$kind/$name.c
    mapfile -t shared < <(grep -L '^int main(' $(printf '%s\n' "$SRC"/tests/mpi/*.c "$SRC/tests/$kind"/*.c | sort -u))
    for file in "$source" "${shared[@]}" "$SRC"/tests/mpi/*.h "$SRC/tests/$kind"/*.h; do
        [ ! "$file" -nt "$program" ] || stale=yes
    done
    [ ! -e "$PREFIX/lib/libmpi_crypt.so" ] || extra=(-lmpi_crypt)
    ! grep -q '^#pragma omp' "$source" || extra+=(-fopenmp)
    mkdir -p "$(dirname "$program")"
    if [ -n "$stale" ] && grep -q '^#include "ompi_config.h"' "$source"; then
        internal_program ompi/mca/pml/crypt "$kind/$name" "$source" "${shared[@]}" -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" \
            -Wl,--as-needed ${extra[@]+"${extra[@]}"} >&2
    elif [ -n "$stale" ]; then
        for file in "${shared[@]}"; do
            objects+=("$(mpi_object "$file")") || exit
        done
        mpi_compile -rdynamic -o "$program.$BASHPID" "$source" "${objects[@]}" \
            -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" -Wl,--as-needed ${extra[@]+"${extra[@]}"} -lm
        mv "$program.$BASHPID" "$program"                   # the other lane may run it
    fi
    echo "$program"
}

mpi_object() {                                  # mpi_object SOURCE: compiled, by whichever lane is first
    local object=$VARIANT_DIR/tests/${1#"$SRC/tests/"}.o file stale=
    for file in "$1" "$SRC"/tests/mpi/*.h "${1%/*}"/*.h; do
        [ ! "$file" -nt "$object" ] || stale=yes
    done
    if [ -n "$stale" ]; then
        mkdir -p "$(dirname "$object")"
        mpi_compile -c -o "$object.$BASHPID" "$1"
        mv "$object.$BASHPID" "$object"
    fi
    echo "$object"
}

mpi_compile() {                                 # 6.0 deprecates calls that 4.1 needs
    in_variant mpicc -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror -Wno-deprecated-declarations -pthread $VARIANT_CFLAGS \
        -I"$SRC/tests/mpi" -I"$PREFIX/include" "$@" >&2 || fail "$* does not compile"
}

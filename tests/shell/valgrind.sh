# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# valgrind.sh HOST: memcheck over two ranks on two nodes, HOST under pml/crypt, from
# MPI_Init to the end of the process: no bytes used that nobody wrote, no access
# beside a block, no block lost.  What Open MPI and its libraries do is left out
# (Open MPI's own list, and valgrind/others.supp); nothing of ours may be.
set -eu
. "$SRC/tests/lib.sh"

host=$1
command -v valgrind >/dev/null || skip "valgrind is not installed"
others=$SRC/tests/shell/valgrind/others.supp theirs=/usr/share/openmpi/openmpi-valgrind.supp
must_fail grep -iE 'crypt|aead' "$others"
arguments=()
[ "$host" = ob1 ] || arguments=(--mca pml_crypt_host ucx --mca pml_ucx_tls any --mca pml_ucx_devices any
                                -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)
cluster_up 2

# memcheck NAME ARGUMENT...: a program of tests/mpi, or one that has to be caught.
# Modules are unloaded in MPI_Finalize; their names are kept for the report.
memcheck() {
    local program=$1 kind=mpi; shift
    [ "$program" != lost ] || kind=shell/valgrind
    program=$(mpi_program "$kind" "$program")
    rm -f "$CASE_DIR"/memcheck.*
    vcluster mpirun -n 2 --map-by node -x MT_WATCHDOG=$LIMIT ${arguments[@]+"${arguments[@]}"} \
        valgrind --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --keep-debuginfo=yes --num-callers=40 --gen-suppressions=all --suppressions="$theirs" --suppressions="$others" \
        --log-file="$CASE_DIR/memcheck.%p" "$program" "$@"
}

# clean PROGRAM ARGUMENT...: what is not, is told at the end.
unclean=()
clean() {
    echo "+ $*"
    if memcheck "$@" && [ "$(grep -l 'ERROR SUMMARY: 0 errors' "$CASE_DIR"/memcheck.* | wc -l)" = 2 ]; then return; fi
    cat "$CASE_DIR"/memcheck.*
    unclean+=("$*;")
}

# caught TEXT PROGRAM ARGUMENT...
caught() {
    local text=$1; shift
    echo "+ ! $*"
    if memcheck "$@"; then fail "$*: not noticed"; fi
    grep -h "$text" "$CASE_DIR"/memcheck.*
}

caught 'points to uninitialized byte' lost unset
caught 'definitely lost' lost lost
clean lost
clean p2p_modes max=200000
clean p2p_probe
clean p2p_truncate
clean p2p_cancel
clean p2p_types
clean comm
clean coll blocking limit=5000
[ ${#unclean[@]} = 0 ] || fail "not clean: ${unclean[*]}"

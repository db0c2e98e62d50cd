# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# suite.sh rc|ud: programs of the other directories over RDMA between two machines, a process each: messages in all modes, matched,
# probed, of derived types, cancelled and too long, by threads, and collectives.  Plain ucx is the control: where that fails,
# nothing follows from ours, and it is said.
set -eu
. "$SRC/tests/rdma/common.sh"

lines=()
program() {                                     # program NAME ARGUMENT...
    local path
    path=$(mpi_program mpi "$1"); shift
    lines+=("$path $*")
}
program p2p_modes max=70000
program p2p_match times=1 count=20 limit=100000
program p2p_probe
program p2p_types
program p2p_truncate
program p2p_cancel
program p2p_persistent times=3
program p2p_bsend
program comm times=20
program coll blocking limit=70000
program coll nonblocking limit=70000
program threads threads=2 rounds=2
{
    echo 'try() { if run "plain-$@"; then job "$@"; tried=$((tried + 1)); else echo "not tried: plain ucx fails"; tail -n 5 $OUT; fi; }'
    echo tried=0
    printf "try $1 %s\n" "${lines[@]}"
    echo "[ \$tried -ge $((${#lines[@]} * 2 / 3)) ] || fail \"plain ucx passes only \$tried of ${#lines[@]} programs over $1\""
} | on_two_machines

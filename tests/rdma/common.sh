# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What the scripts here share: two virtual machines, joined by a wire, each with soft-RoCE (rdma_rxe)
# on it.  What runs on the first of them has the functions of node0.sh.
#
# The machines are emulated, and slow.  Their clocks count what they do (tests/vm), and so does a
# program's watchdog; LIMIT is this machine's time.
. "$SRC/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "the key of the jobs is readable by its owner only, and in the virtual machine that is root"
[ -e /usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so ] || [ -n "$(ls /usr/lib/*/libibverbs/librxe-*.so 2>/dev/null)" ] ||
    skip "the user-space driver of soft-RoCE is not installed (Debian: ibverbs-providers)"

# on_both N: the first commands of node N.
on_both() {
    cat <<END
set -eu
$(vm_environment)
export CASE_DIR=/tmp/case
mkdir -p /tmp/case
modprobe -a virtio_net crc32_generic rdma_rxe ib_uverbs rdma_ucm
hostname node$1
printf '127.0.0.1 localhost\n10.98.0.1 node0\n10.98.0.2 node1\n' > /etc/hosts
for port in /sys/class/net/e*; do ip link set \${port##*/} name eth0; done
ip addr add 10.98.0.$(($1 + 1))/24 dev eth0
ip link set eth0 up
rdma link add rxe0 type rxe netdev eth0
END
}

# on_two_machines [VM-ARGUMENT...] < COMMANDS: of node0.  When they end, both machines do.
# PAST_0, PAST_1: sockets that take what a node sends to the other, in place of that one's own.
on_two_machines() {
    local other rc=0 place=$CASE_DIR/machines
    mkdir -p "$place"
    export VM_LIMIT=$((3 * LIMIT - 60))
    { on_both 0; cat "$SRC/tests/rdma/node0.sh" -; } > "$place/node0"
    { on_both 1; echo 'exec busybox nc -ll -p 2222 -e /bin/bash'; } > "$place/node1"
    "$SRC/tests/vm" --memory 1500 --cpus 1 --wire "$place/1" "${PAST_1:-$place/0}" --pidfile "$place/pid" \
        "$place/node1" > "$place/out" 2>&1 &
    other=$!
    "$SRC/tests/vm" --memory 1500 --cpus 1 --wire "$place/0" "${PAST_0:-$place/1}" "$@" "$place/node0" || rc=$?
    kill "$(cat "$place/pid")" 2>/dev/null || true
    wait $other || true
    [ $rc != 77 ] || exit 77
    [ $rc = 0 ] || fail "status $rc; the machines may take $VM_LIMIT seconds; node1 says: $(cat "$place/out")"
}

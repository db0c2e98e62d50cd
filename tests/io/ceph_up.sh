# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What the cases on CephFS share: its servers, one of each kind, on node2 with their files in CASE_DIR, and a client of its own on
# node0 and on node1.  They end with the virtual cluster.  The cases are skipped where there can be none.

for program in mon mgr osd mds fuse; do
    command -v ceph-$program >/dev/null || skip "ceph-$program is not installed (Debian: ceph-$program)"
done
[ "$(id -u)" = 0 ] || skip "only root can mount"
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
export CEPH_CONF=$CASE_DIR/ceph/conf
declare -A CEPH_PID CEPH_ID=([mon]=a [mgr]=a [osd]=0 [mds]=a)
mnt=$CASE_DIR/mnt

on() { vcluster exec "node$1" "${@:2}"; }           # on NUMBER COMMAND...
at() { run_io 1 --host "node$1:1" "${@:2}"; }       # at NUMBER PROGRAM...: a job there
ceph() { on 2 ceph "$@" 2>/dev/null; }

# ceph_run NUMBER PROGRAM ARGUMENT...: in the background.
ceph_run() {
    "$SRC/tests/vcluster" exec "node$1" "$2" -f "${@:3}" </dev/null >> "$CASE_DIR/ceph/node$1.$2.out" 2>&1 &
    CEPH_PID[$1.$2]=$!
}

# ceph_start mon|mgr|osd|mds, and ceph_kill NUMBER PROGRAM
ceph_start() { ceph_run 2 ceph-$1 -i ${CEPH_ID[$1]}; }
ceph_kill() {
    kill -KILL "${CEPH_PID[$1.$2]}"
    wait "${CEPH_PID[$1.$2]}" || true
}

# ceph_until NUMBER PROGRAM COMMAND...: until that succeeds, if the program runs.
ceph_until() {
    local name=$1.$2; shift 2
    until "$@"; do
        kill -0 "${CEPH_PID[$name]}" || fail "node$name ended: $(tail "$CASE_DIR/ceph/node$name.out")"
        sleep 0.2
    done
}
ceph_is() { [[ $(ceph "${@:2}") = *"$1"* ]]; }      # ceph_is TEXT COMMAND...

# ceph_mount NUMBER OPTION..., and ceph_unmount NUMBER: its client is killed.
ceph_mount() {
    ceph_run "$1" ceph-fuse --id admin "${@:2}" "$mnt"
    ceph_until "$1" ceph-fuse on "$1" mountpoint -q "$mnt"
}
ceph_unmount() {
    on "$1" umount -l "$mnt"
    ceph_kill "$1" ceph-fuse
}

# ceph_up bluestore|memstore: what the OSD stores objects in; only the first outlives it.
ceph_up() {
    local uuid n
    cluster_up 3 --slots 4
    mkdir -p "$mnt" "$CASE_DIR"/ceph/{mon,mgr,osd,mds}
    cat > "$CEPH_CONF" <<CONF
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon host = [v2:10.99.0.3:3300,v1:10.99.0.3:6789]
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
mon data = $CASE_DIR/ceph/mon
mgr data = $CASE_DIR/ceph/mgr
mds data = $CASE_DIR/ceph/mds
osd data = $CASE_DIR/ceph/osd
run dir = $CASE_DIR/ceph
crash dir = $CASE_DIR/ceph
log file = $CASE_DIR/ceph/\$name.log
keyring = $CASE_DIR/ceph/keyring
admin socket = /dev/shm/\$name.asok
pid file =
osd pool default size = 1
mon allow pool size one = true
mon data avail crit = 1
osd pool default pg autoscale mode = off
osd objectstore = $1
bluestore block size = 4294967296
CONF
    must on 2 ceph-mon --mkfs -i a
    ceph_start mon
    ceph_start mgr
    uuid=$(cat /proc/sys/kernel/random/uuid)
    must ceph osd new "$uuid"
    must on 2 ceph-osd --mkfs -i 0 --osd-uuid "$uuid" > "$CASE_DIR/ceph/mkfs.out" 2>&1
    ceph_start osd
    must ceph osd pool create meta 8
    must ceph osd pool create data 8
    must ceph fs new shared meta data
    ceph_start mds
    ceph_until 2 ceph-mds ceph_is up:active mds stat
    ceph versions | grep -m 1 'ceph version'
}

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# CephFS, which two nodes mount for themselves by ceph-fuse.  Its servers, one of each kind, are on a third node, with their
# files in CASE_DIR, and end with the virtual cluster.  A node keeps pages that others overwrite, so files that several nodes
# write are refused; what one node wrote, the others read later, also if they kept pages of it.
. "$SRC/tests/io/common.sh"

for program in mon mgr osd mds fuse; do
    command -v ceph-$program >/dev/null || skip "ceph-$program is not installed (Debian: ceph-$program)"
done
[ "$(id -u)" = 0 ] || skip "only root can mount"
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
convert=$(mpi_program io convert)
export CEPH_CONF=$CASE_DIR/ceph/conf
mnt=$CASE_DIR/mnt
cluster_up 3 --slots 2
mkdir -p "$mnt" "$CASE_DIR"/ceph/{mon,mgr,osd,mds}
cat > "$CEPH_CONF" <<END
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
osd objectstore = memstore
END

on() { vcluster exec "node$1" "${@:2}"; }           # on NUMBER COMMAND...
at() { run_io 1 --host "node$1:1" "${@:2}"; }       # at NUMBER PROGRAM...: a job there
ceph() { on 2 ceph "$@" 2>/dev/null; }

# begin NUMBER PROGRAM ARGUMENT...: in the background.  until_is COMMAND...: until that succeeds, if the program runs.
begin() {
    "$SRC/tests/vcluster" exec "node$1" "$2" -f "${@:3}" </dev/null >> "$CASE_DIR/ceph/node$1.$2.out" 2>&1 &
    begun=$! output=$CASE_DIR/ceph/node$1.$2.out
}
until_is() {
    until "$@"; do
        kill -0 "$begun" || fail "it ended: $(tail "$output")"
        sleep 0.2
    done
}
is_active() { [[ $(ceph mds stat) = *up:active* ]]; }

must on 2 ceph-mon --mkfs -i a
begin 2 ceph-mon -i a
begin 2 ceph-mgr -i a
uuid=$(cat /proc/sys/kernel/random/uuid)
must ceph osd new "$uuid"
must on 2 ceph-osd --mkfs -i 0 --osd-uuid "$uuid" > "$CASE_DIR/ceph/mkfs.out" 2>&1
begin 2 ceph-osd -i 0
must ceph osd pool create meta 8
must ceph osd pool create data 8
must ceph fs new shared meta data
begin 2 ceph-mds -i a
until_is is_active
ceph versions | grep -m 1 'ceph version'
for n in 0 1; do
    begin $n ceph-fuse --id admin "$mnt"
    until_is on $n mountpoint -q "$mnt"
done
keys_in "$CASE_DIR/keys" lab other
head -c 300000 /dev/urandom > "$CASE_DIR/plain"
head -c 300000 /dev/urandom > "$CASE_DIR/plain.2"

must_refuse "a node does not see what other nodes wrote" run_io 4 "$convert" write "$CASE_DIR/plain" "$mnt/refused"
must run_io 2 "$convert" write "$CASE_DIR/plain" "$mnt/alone"
must run_io 4 "$convert" read "$CASE_DIR/plain" "$mnt/alone"
must on 1 python3 -c "
import os, sys
print('attribute through the other mount:', len(os.getxattr(sys.argv[1], 'user.mpicrypt.map')), 'bytes')" "$mnt/alone"

echo "--- pages that a node read while another had the file open for writing"
"$SRC/tests/vcluster" exec node0 python3 -c "
import os, signal, sys
os.open(sys.argv[1], os.O_RDWR)
open(sys.argv[2], 'w').close()
signal.pause()" "$mnt/alone" "$CASE_DIR/open" & opener=$!
until [ -e "$CASE_DIR/open" ]; do kill -0 $opener || fail "it is not open"; sleep 0.1; done
must at 1 "$convert" read "$CASE_DIR/plain" "$mnt/alone"
must at 0 "$convert" over "$CASE_DIR/plain.2" "$mnt/alone"
kill $opener
wait $opener || true
must at 1 "$convert" read "$CASE_DIR/plain.2" "$mnt/alone"
must on 1 mpicrypt file decrypt "$mnt/alone" "$CASE_DIR/back" --keystore-dir "$CASE_DIR/keys"
must cmp "$CASE_DIR/back" "$CASE_DIR/plain.2"

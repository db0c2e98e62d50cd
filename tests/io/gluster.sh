# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A file system of two servers, GlusterFS, which each node mounts for itself.  Nodes
# cache what they have read of it, so files that several of them write are refused;
# what one of them writes, the others can read later.  What a server changed is found.
. "$SRC/tests/io/common.sh"

command -v glusterd >/dev/null || skip "glusterd is not installed (Debian: glusterfs-server)"
[ "$(id -u)" = 0 ] || skip "only root can mount"
[ -e /dev/fuse ] || skip "there is no /dev/fuse"
cluster_up 2 --slots 2
stop_servers() {
    local n pid
    for n in 0 1; do
        vcluster exec node$n umount -l "$CASE_DIR/mnt" || true
        vcluster exec node$n bash -c 'for f in /run/gluster/*.pid /run/gluster/*/*/*.pid; do
            [ ! -s "$f" ] || kill "$(cat "$f")" || true; done' || true
    done
}
trap 'stop_servers >/dev/null 2>&1; vcluster down >/dev/null 2>&1 || true' EXIT

# Each node has a server of its own: state, sockets, logs and a brick.
mkdir "$CASE_DIR/mnt"
for n in 0 1; do
    truncate -s 500M "$CASE_DIR/image$n"
    must mkfs.ext4 -q "$CASE_DIR/image$n"
    mkdir -p "$CASE_DIR/server$n/lib" "$CASE_DIR/server$n/log" "$CASE_DIR/server$n/brick"
    must vcluster exec node$n bash -ec "
        cd '$CASE_DIR/server$n'
        mkdir -p /var/lib/glusterd /var/log/glusterfs
        mount --bind lib /var/lib/glusterd
        mount --bind log /var/log/glusterfs
        mount -t tmpfs none /run
        mkdir /run/gluster
        mount -o loop '$CASE_DIR/image$n' brick
        mkdir brick/data
        glusterd --pid-file=/run/gluster/glusterd.pid"
done
gluster() { vcluster exec node0 gluster --mode=script "$@"; }
must gluster peer probe node1
until gluster pool list | grep node1 | grep -q Connected; do sleep 0.1; done
must gluster volume create shared "node0:$CASE_DIR/server0/brick/data" "node1:$CASE_DIR/server1/brick/data" force
must gluster volume start shared
for n in 0 1; do
    must vcluster exec node$n mount -t glusterfs node$n:/shared "$CASE_DIR/mnt"
done

keys_in "$CASE_DIR/keys" lab other
convert=$(mpi_program io convert)
head -c 100000 /dev/urandom > "$CASE_DIR/plain"

says "a node does not see what other nodes wrote" run_io 4 "$convert" write "$CASE_DIR/plain" "$CASE_DIR/mnt/refused"
says "writers on several nodes: NOT safe: node1 read an old " "$PREFIX/bin/mpicrypt" doctor --mpirun "$SRC/tests/vcluster mpirun" --path "$CASE_DIR/mnt"
[ -z "$(vcluster exec node0 ls -A "$CASE_DIR/mnt" | grep mpicrypt-doctor)" ] || fail "doctor has left files"
must vcluster mpirun -n 2 --host node0:2 "$convert" write "$CASE_DIR/plain" "$CASE_DIR/mnt/alone"
must run_io 4 "$convert" read "$CASE_DIR/plain" "$CASE_DIR/mnt/alone"
must vcluster exec node1 python3 -c "
import os, sys
print('attribute through the other mount:', len(os.getxattr(sys.argv[1], 'user.mpicrypt.map')), 'bytes')" "$CASE_DIR/mnt/alone"

echo "--- a server changes a byte"
must run_io 2 --host node0:2 "$convert" write "$CASE_DIR/plain" "$CASE_DIR/mnt/changed"
for n in 0 1; do
    vcluster exec node$n bash -c '. "$SRC/tests/io/offsets.sh"; [ ! -s "$0" ] || poke "$0" "$(data_at "$0" 5)"' "$CASE_DIR/server$n/brick/data/changed"
done
must_refuse "is not what a holder of the key wrote" run_io 1 --host node1:1 "$convert" read "$CASE_DIR/plain" "$CASE_DIR/mnt/changed"

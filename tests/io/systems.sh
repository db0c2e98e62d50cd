# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# systems.sh KIND...: file systems of these kinds, one mount for all nodes: ext4,
# xfs and btrfs (in a file, on a loop device), tmpfs, and ramfs, which has no
# extended attributes.  On each, files are written, read by other numbers of
# processes, tampered with, and moved, also to the next one.
. "$SRC/tests/io/common.sh"

[ "$(id -u)" = 0 ] || skip "only root can mount"
mounts=()
unmount() { for ((i = ${#mounts[@]}; i > 0; i--)); do umount -l "${mounts[i - 1]}" || true; done; }

# mounted KIND: a directory on one of that kind; 1 if the machine cannot.
mounted() {
    local kind=$1 directory=$CASE_DIR/mnt.$1 image=$CASE_DIR/image.$1
    mkdir "$directory"
    case $kind in
        tmpfs|ramfs)
            mount -t "$kind" none "$directory" || return 1
            ;;
        *)  command -v "mkfs.$kind" >/dev/null || return 1
            truncate -s 400M "$image"
            "mkfs.$kind" -q "$image" || return 1
            mount -o loop "$image" "$directory" || return 1
            ;;
    esac
    mounts+=("$directory")
    chmod 755 "$directory"
}

tried=0
trap unmount EXIT
for kind in "$@"; do
    mounted "$kind" || { echo "--- $kind: this machine cannot mount it"; continue; }
    tried=$((tried + 1))
done
[ $tried -gt 0 ] || skip "none of $* can be mounted here"
cluster_up 2 --slots 2
trap 'vcluster down >/dev/null 2>&1 || true; unmount' EXIT
keys_in "$CASE_DIR/keys" lab other
roundtrip=$(mpi_program io roundtrip) tamper=$(mpi_program io tamper) convert=$(mpi_program io convert)
together=$(mpi_program io together)
head -c 100000 /dev/urandom > "$CASE_DIR/plain"
directory=$CASE_DIR
for next in "${mounts[@]}"; do
    before=$directory directory=$next
    echo "--- ${directory##*/mnt.} ($(stat -f -c %T "$directory"))"
    must run_io 4 "$roundtrip" "$directory" cases=12 seed=4
    must run_io 4 "$tamper" "$directory" sealed
    must run_io 4 "$together" "$directory" rounds=24
    must run_io 4 "$convert" write "$CASE_DIR/plain" "$directory/file"
    python3 -c "
import os, sys
try: print('attribute:', len(os.getxattr(sys.argv[1], 'user.mpicrypt.map')), 'bytes')
except OSError as e: print('attribute:', e.strerror)" "$directory/file"
    is_encrypted "$directory/file" || fail "not the kind of file that is meant"
    must run_io 3 "$convert" read "$CASE_DIR/plain" "$directory/file"
    must mv "$directory/file" "$directory/moved"
    must run_io 1 "$convert" read "$CASE_DIR/plain" "$directory/moved"
    [ ! -e "$before/moved" ] || { must mv "$before/moved" "$directory/from"; must run_io 2 "$convert" read "$CASE_DIR/plain" "$directory/from"; }
done
echo "on $tried of $# kinds"

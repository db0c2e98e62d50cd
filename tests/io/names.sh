# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A new name is on the storage before success is reported: by a job with fs_crypt_durable, and by the verbs of
# mpicrypt file.  The power cut is a copy of the disk as it is at that moment: ext4 on a loop device, whose journal
# would be written by itself only after ten minutes.
. "$SRC/tests/io/common.sh"

[ "$(id -u)" = 0 ] || skip "only root can mount"
command -v mkfs.ext4 >/dev/null || skip "mkfs.ext4 is not installed (Debian: e2fsprogs)"
disk=$CASE_DIR/disk live=$CASE_DIR/live after=$CASE_DIR/after
mkdir "$live" "$after"
truncate -s 64M "$disk"
must mkfs.ext4 -q "$disk"
mount -o loop,commit=600 "$disk" "$live" || skip "no loop device can be mounted here"
unmount() { umount -l "$live" "$after" 2>/dev/null || true; }
trap unmount EXIT
cluster_up 1
trap 'vcluster down >/dev/null 2>&1 || true; unmount' EXIT
keys_in "$CASE_DIR/keys" lab other
program=$(mpi_program io convert)
head -c 300001 /dev/urandom > "$CASE_DIR/plain"
file() { in_variant mpicrypt file --keystore-dir "$CASE_DIR/keys" "$@"; }

# cut NAME [GONE]: after a loss of power now, NAME exists, and GONE does not.
cut_and_mount() { cp --sparse=always "$disk" "$disk.cut" && mount -o loop "$disk.cut" "$after"; }
cut() {
    must cut_and_mount
    rm -f "$CASE_DIR/again"
    if [ "$1" = clear ]; then
        must cp "$after/clear" "$CASE_DIR/again"
    else
        must file verify "$after/$1"
        must file decrypt "$after/$1" "$CASE_DIR/again"
    fi
    [ -z "${2-}" ] || must test ! -e "$after/$2"
    umount "$after"
}
same() { must cmp "$1" "$CASE_DIR/again"; }

must run_io 2 --mca fs_crypt_durable 1 "$program" write "$CASE_DIR/plain" "$live/job"
must cut_and_mount
must file info "$after/job"                     # its data was not synced
umount "$after"
must file decrypt "$live/job" "$CASE_DIR/whole"
must file cp --new-key "$live/job" "$live/copy"
cut copy
same "$CASE_DIR/whole"
mkdir "$live/d"
sync -f "$live"
must mv "$live/copy" "$live/d/moved"
must file reencrypt "$live/d/moved"
cut d/moved
is_encrypted "$live/d/moved" || fail "not the kind of file that is meant"
must file decrypt "$live/d/moved" "$live/clear"
cut clear
same "$CASE_DIR/whole"
must file encrypt "$CASE_DIR/plain" "$live/made" --label lab
cut made
same "$CASE_DIR/plain"
# The control: what is not synced is lost.
must mv "$live/made" "$live/lost"
must cut_and_mount
[ ! -e "$after/lost" ] || fail "this file system brings names to the disk by itself"

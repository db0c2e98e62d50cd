# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# flushes.sh STEPS: ext4 in a virtual machine, over a device that logs every write; see
# power.c.  With fs_crypt_durable=1 no state loses what had been synced; without it some do,
# which shows that the barriers make the difference.
. "$SRC/tests/io/common.sh"

steps=$1
command -v dmsetup >/dev/null || skip "dmsetup is not installed (Debian: dmsetup)"
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io power)

cat > "$CASE_DIR/job" <<END
set -eu
$(vm_environment)
export DM_DISABLE_UDEV=1 MT_WATCHDOG=$((LIMIT - 20)) OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
. "\$SRC/tests/lib.sh"
modprobe brd rd_nr=3 rd_size=32768
modprobe -a ext4 dm-log-writes
mkdir -p /mnt/logged /mnt/state

# life DURABLE [ARGUMENT]: write it, replay it.
life() {
    for device in 0 1 2; do dd if=/dev/zero of=/dev/ram\$device bs=1M count=32 status=none; done
    dmsetup create power --table "0 \$(blockdev --getsz /dev/ram0) log-writes /dev/ram0 /dev/ram1"
    must mkfs.ext4 -q -b 1024 /dev/mapper/power
    mount /dev/mapper/power /mnt/logged
    must env OMPI_MCA_fs_crypt_durable=\$1 $program write /mnt/logged/file power steps=$steps
    umount /mnt/logged
    dmsetup remove power
    must $program replay /dev/ram1 /dev/ram2 /mnt/state steps=$steps \${2-}
}
life 1
life 0 lost=1
END
in_vm "$CASE_DIR/job"

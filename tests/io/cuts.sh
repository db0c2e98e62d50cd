# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# cuts.sh CUTS: a virtual machine whose disk is a file of this one is killed (SIGKILL) CUTS
# times, while a program overwrites an encrypted file on it with fs_crypt_durable=1 and prints
# what it has synced.  The next machine finds everything that was reported, and writes on.
. "$SRC/tests/io/common.sh"

cuts=$1
command -v mkfs.ext4 >/dev/null || skip "mkfs.ext4 is not installed (Debian: e2fsprogs)"
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io power)
disk=$CASE_DIR/disk
truncate -s 64M "$disk"
must mkfs.ext4 -q "$disk"

since=0 last=0
for ((cut = 1; cut <= cuts; cut++)); do
    base=$((cut * 1000))
    cat > "$CASE_DIR/job" <<END
set -eu
$(vm_environment)
export MT_WATCHDOG=$((LIMIT - 20)) OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_fs_crypt_durable=1
modprobe ext4
mkdir -p /mnt/disk
mount /dev/vda /mnt/disk
$program life /mnt/disk/file base=$base since=$since last=$last
END
    heard=0 enough=$((1 + RANDOM % 12)) looked=
    rm -f "$CASE_DIR/pid"
    exec 3< <(VM_LIMIT=$((LIMIT - 20)) "$SRC/tests/vm" --disk "$disk" --pidfile "$CASE_DIR/pid" "$CASE_DIR/job"; echo "VM-STATUS $?")
    while read -r word number rest <&3; do
        echo "$word $number $rest"
        case $word in
            skipped:) skip "$number $rest" ;;
            looked) looked=yes ;;
            synced)
                since=$number heard=$((heard + 1))
                [ $heard != $enough ] || kill -KILL "$(cat "$CASE_DIR/pid")" ;;
        esac
    done
    exec 3<&-
    [ $heard -ge $enough ] || fail "machine $cut ended by itself"
    [ $cut = 1 ] || [ -n "$looked" ] || fail "machine $cut did not look at what was left"
    last=$base
done
echo "$cuts times killed"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What is wrong in the rows of misuse.table that no parameter says: the key, a node, a disk,
# a file.  Sourced by misuse.sh.  What is mounted on a node is named in $mounted, for `mend`.

mounted=()
over() { vcluster exec "$1" mount "${@:2}"; mounted+=("$1 ${*: -1}"); }
mend() {
    local what
    for what in ${mounted[@]+"${mounted[@]}"}; do vcluster exec "${what%% *}" umount -l "${what#* }"; done
    mounted=()
}

new_key() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }

# key FAULT: a psk in $psk, in which that is wrong.
psk=$CASE_DIR/psk
key() {
    local digits; digits=$(new_key)
    rm -rf "$psk" "$psk.real" "$psk.other"
    (umask 077
    case $1 in
        missing)   ;;
        mode640)   echo "$digits" > "$psk"; chmod 640 "$psk" ;;
        directory) mkdir "$psk" ;;
        fifo)      mkfifo "$psk" ;;
        symlink)   echo "$digits" > "$psk.real"; ln -s "$psk.real" "$psk" ;;
        empty)     : > "$psk" ;;
        truncated) echo "${digits:2}" > "$psk" ;;
        crlf)      printf '%s\r\n' "$digits" > "$psk" ;;
        text)      echo "correct horse battery staple, and some more words until it is 64" > "$psk" ;;
        zero)      printf '%064d\n' 0 > "$psk" ;;
        other)     echo "$digits" > "$psk"; new_key > "$psk.other" ;;
        *)         fail "$1: no such fault of a key" ;;
    esac)
    [ "$1" != other ] || over node1 --bind "$psk.other" "$psk"
}

# node FAULT NODE...: these lack the files of ours that begin so (no-FILE), have something else in
# the place of one (broken-FILE), lack all of the prefix, or have a later version of the protocol.
node() {
    local directory=$PREFIX/lib/ompi-crypt there=$CASE_DIR/there file=${1#*-} fault=$1 node; shift
    case $fault in
        prefix) for node; do over "$node" -t tmpfs none "$PREFIX"; done; return 0 ;;
        later)  for node; do echo "LD_PRELOAD=$CASE_DIR/version.so" > "$CASE_DIR/$node.env"; done; return 0 ;;
    esac
    compgen -G "$directory/$file*" > "$there.files" || directory=$PREFIX/lib
    rm -rf "$there"
    cp -a "$directory" "$there"
    compgen -G "$there/$file*" > "$there.files" || fail "$file: no such file"
    case $fault in
        no-*)     xargs rm < "$there.files" ;;
        broken-*) echo "not a library" > "$there/$file" ;;
        *)        fail "$fault: no such fault of a node" ;;
    esac
    for node; do over "$node" --bind "$there" "$directory"; done
}

# disk FAULT: a file system on which there is no room for a file, or for its beginning only.
disk() {
    mkdir -p "$CASE_DIR/disk"
    case $1 in
        full)    over node0 -t tmpfs -o size=4k none "$CASE_DIR/disk"
                 vcluster exec node0 sh -c "head -c 4096 /dev/zero > '$CASE_DIR/disk/full'" ;;
        data)    over node0 -t tmpfs -o size=512k none "$CASE_DIR/disk" ;;
        *)       fail "$1: no such fault of a disk" ;;
    esac
    file=$CASE_DIR/disk/file
}

flip() {        # flip FILE OFFSET: another byte there
    local byte; byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

number() { od -An -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }

# file FAULT: an encrypted file in which that is wrong.
file() {
    local name=$CASE_DIR/whole data entry
    [ -e "$name" ] || made "$name"
    cp -a "$name" "$file"
    data=$(($(number "$file" 48) + $(number "$file" 56)))     # of group 0
    entry=$((data - 128 * $(od -An -tu4 -j 68 -N 4 "$file")))
    case $1 in
        emptied)   : > "$file" ;;
        truncated) truncate -s 100 "$file" ;;
        short)     truncate -s -1 "$file" ;;
        overwritten) head -c 4096 /dev/zero | dd of="$file" conv=notrunc status=none ;;
        magic)     flip "$file" 0 ;;
        header)    flip "$file" 20 ;;
        uuid)      flip "$file" 30 ;;
        map)       flip "$file" 1100 ;;                         # in place 0
        maps)      flip "$file" 1100; flip "$file" $((1100 + 3072)) ;;
        tag)       flip "$file" $((entry + 40)) ;;              # of block 0
        data)      flip "$file" $((data + 5)) ;;
        *)         fail "$1: no such fault of a file" ;;
    esac
}

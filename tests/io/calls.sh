# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# calls.sh RANKS...: what a rank asks of the file system, and how many collectives it calls, to create, open, write and read
# a file: without us, with us and a plain file, and with an encrypted one; on one node, and on two.  A table, and limits.
. "$SRC/tests/io/common.sh"

command -v strace >/dev/null || skip "strace is not installed"
cluster_up 2 --slots 64
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io counted)
cd "$CASE_DIR"
traced=openat,open,creat,close,stat,fstat,lstat,newfstatat,statx,statfs,fstatfs,access,faccessat,faccessat2,readlink,readlinkat
traced+=,getxattr,lgetxattr,fgetxattr,setxattr,fsetxattr,listxattr,flistxattr,fremovexattr,getcwd,lseek,getdents64
traced+=,read,pread64,readv,preadv,preadv2,write,pwrite64,writev,pwritev,pwritev2
traced+=,fsync,fdatasync,ftruncate,truncate,fallocate,unlink,unlinkat,rename,renameat2,link,mkdir,rmdir,flock,fcntl

names=$(tr -dc / <<<"$CASE_DIR/file" | wc -c)             # realpath() has a call for each

# counts NAME RANKS PLACE [MPIRUN-OPTION...]: a line "NAME STEP RANK CALLS LOCKS COLLECTIVES OTHERS" (calls that are not for locks) for each step and rank.
counts() {
    local name=$1 ranks=$2 place=$3; shift 3
    rm -f calls.* out.* file
    echo "--- $name"
    vcluster mpirun -n "$ranks" --map-by "$place" -x MT_WATCHDOG=$((LIMIT - 10)) "$@" sh -c \
        'exec strace -f -y -o "calls.$OMPI_COMM_WORLD_RANK" -e trace='"$traced"' -- "$@"' sh "$program" "$CASE_DIR/file" "$CASE_DIR/out" || fail "status $?"
    for file in calls.*; do
        awk -v name="$name" -v rank="${file#calls.}" '
            FNR == NR { collectives[$1] = $2; next }
            /"\/counted\/-"/ { print name, step, rank, calls, locks, collectives[step], calls - locks; step = ""; next }
            match($0, /"\/counted\/[a-z_]+"/) { step = substr($0, RSTART + 10, RLENGTH - 11); calls = locks = 0; next }
            step == "" { next }
            / resumed>/ { next }
            /\([0-9]+<(socket|pipe|anon_inode|\/dev\/|\/proc\/)/ || /"\/(dev|proc|sys|usr|etc)\// || /fcntl.*F_(GET|SET)F[DL]/ { next }
            /fcntl.*F_(OFD_)?(SETLK|GETLK)/ { ++locks }
            { ++calls }
        ' "out.${file#calls.}" "$file"
    done >> all
}

# of NAME STEP WHICH COLUMN: of rank 0, or the largest of the others.
of() {
    awk -v name="$1" -v step="$2" -v root="$3" -v column="$4" \
        '$1 == name && $2 == step && (root == "root") == ($3 == 0) { if ($column > most) most = $column } END { print most + 0 }' all
}

# at_most WHAT NUMBER LIMIT
at_most() { [ "$2" -le "$3" ] || { echo "$1: $2, at most $3"; exceeded=1; }; }

# limits WHERE: a plain file costs rank 0 two looks at opening and a lock's release at closing, others nothing.  What an encrypted one
# costs beyond a plain one without us does not depend on the number of ranks.
limits() {
    local where=$1 step other root other_node root_node collectives
    for step in create write overwrite write_all read close open reopen; do
        at_most "plain, $where, $step, others' calls" "$(of plain.$where $step other 4)" "$(of none.$where $step other 4)"
        at_most "plain, $where, $step, rank 0's calls" "$(of plain.$where $step root 4)" "$(($(of none.$where $step root 4) + 2))"
        at_most "plain, $where, $step, locks" "$(of plain.$where $step other 5)" "$(of none.$where $step other 5)"
        at_most "plain, $where, $step, collectives" "$(of plain.$where $step other 6)" "$(($(of none.$where $step other 6) + 3))"
    done
    # Calls but for locks, which depend on the order of the ranks.  So does a first write, by up to 4: a rank that
    # lengthens the file reads the entries from its old end on, 64 at a time, and a group has 256 here.
    while read -r step other root other_node root_node collectives; do
        if [[ $where = *.node ]]; then
            other=$other_node root=$root_node
            case $step in create|open) collectives=$((collectives + 6)) ;; esac         # the probe between nodes
        fi
        at_most "encrypted, $where, $step, others' calls" "$(of encrypted.$where $step other 7)" "$(($(of none.$where $step other 7) + other))"
        at_most "encrypted, $where, $step, rank 0's calls" "$(of encrypted.$where $step root 7)" "$(($(of none.$where $step root 7) + root))"
        at_most "encrypted, $where, $step, collectives" "$(of encrypted.$where $step other 6)" "$(($(of none.$where $step other 6) + collectives))"
    done <<'ROWS'
create 52 122-names 66 137-names 19
open   25 42+names  41 60+names  10
reopen 23 40        23 40         9
write  25 18        25 18         0
read   18 17        18 17         0
close   0  0         0  0         0
ROWS
}

: > all
exceeded=
for ranks in "$@"; do
    for place in slot node; do
        where=$ranks.$place
        counts none.$where $ranks $place --mca fs ^crypt --mca fbtl ^crypt --mca hook ^crypt --mca pml ob1 --mca btl self,vader,tcp
        counts plain.$where $ranks $place
        counts encrypted.$where $ranks $place --mca fs_crypt_key_label lab
        echo "--- $ranks ranks, by $place: calls (locks of these, collectives), without us / plain with us / encrypted, and rank 0's"
        for step in create write overwrite write_all read close open reopen; do
            for which in other root; do
                line=
                for kind in none plain encrypted; do
                    line+=$(printf ' %4d (%2d, %2d)' $(of $kind.$where $step $which 4) $(of $kind.$where $step $which 5) $(of $kind.$where $step $which 6))
                done
                printf '%-10s %-6s %s\n' $step $which "$line"
            done
        done
        limits $where
    done
done
[ -z "$exceeded" ] || fail "more than the limits allow"

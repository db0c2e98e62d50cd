# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# calls.sh RANKS...: what a rank asks of the file system, and how many collectives it calls, to create, open, write and read
# a file: without us, with us and a plain file, and with an encrypted one; on one node, and on two.  A table, and limits.
# With more than 4 ranks, little is written, and only what it costs to open and close has limits.
. "$SRC/tests/io/common.sh"

command -v strace >/dev/null || skip "strace is not installed"
cluster_up 2 --slots 128
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io counted)
cd "$CASE_DIR"
traced=openat,open,creat,close,stat,fstat,lstat,newfstatat,statx,statfs,fstatfs,access,faccessat,faccessat2,readlink,readlinkat
traced+=,getxattr,lgetxattr,fgetxattr,setxattr,fsetxattr,listxattr,flistxattr,fremovexattr,getcwd,lseek,getdents64
traced+=,read,pread64,readv,preadv,preadv2,write,pwrite64,writev,pwritev,pwritev2
traced+=,fsync,fdatasync,ftruncate,truncate,fallocate,unlink,unlinkat,rename,renameat2,link,mkdir,rmdir,flock,fcntl

# counts NAME RANKS PLACE [MPIRUN-OPTION...]: a line "NAME STEP RANK CALLS LOCKS COLLECTIVES OTHERS" (calls that are not for locks) for each step and rank.
counts() {
    local name=$1 ranks=$2 place=$3 bytes=$((ranks > 4 ? 65536 : 4194304)); shift 3
    rm -f calls.* out.* file
    echo "--- $name"
    vcluster mpirun -n "$ranks" --map-by "$place" -x MT_WATCHDOG=$((LIMIT - 10)) "$@" sh -c \
        'exec strace -f -y -o "calls.$OMPI_COMM_WORLD_RANK" -e trace='"$traced"' -- "$@"' sh "$program" "$CASE_DIR/file" "$CASE_DIR/out" bytes=$bytes || fail "status $?"
    for file in calls.*; do
        awk -v name="$name" -v rank="${file#calls.}" '
            FNR == NR { collectives[$1] = $2; next }
            /"\/counted\/-"/ { print name, step, rank, calls, locks, collectives[step], calls - locks; step = ""; next }
            match($0, /"\/counted\/[a-z_]+"/) { step = substr($0, RSTART + 10, RLENGTH - 11); calls = locks = 0; next }
            step == "" { next }
            / resumed>/ { next }
            /\([0-9]+<(socket|pipe|anon_inode|\/(dev|proc|usr)\/)/ || /"\/(dev|proc|sys|usr|etc)\// || /fcntl.*F_(GET|SET)F[DL]/ { next }
            /fcntl.*F_(OFD_)?(SETLK|GETLK)/ { ++locks }
            { ++calls }
        ' "out.${file#calls.}" "$file"
    done >> all
}

# of NAME STEP WHICH COLUMN: of rank 0 (root), of the first rank of the second node (first), or the largest of the others.
of() {
    awk -v name="$1" -v step="$2" -v which="$3" -v column="$4" '
        $1 == name && $2 == step && which == ($3 == 0 ? "root" : $3 == 1 && name ~ /node$/ ? "first" : "other") {
            if ($column > most) most = $column
        }
        END { print most + 0 }' all
}

# unwraps: how often the keystore gave a data key.
unwraps() { grep -c ' unwrap .*granted' "$CASE_DIR/keys/log" || true; }

# at_most WHAT NUMBER LIMIT
at_most() { [ "$2" -le "$3" ] || { echo "$1: $2, at most $3"; exceeded=1; }; }

# limits WHERE RANKS: a plain file costs rank 0 two looks at opening and a lock's release at closing, others nothing.  To open an
# encrypted one costs a rank that is not the first of its node 5 calls, locks among them; nothing depends on the number of ranks.
limits() {
    local where=$1 ranks=$2 step other root first collectives steps="create close open reopen"
    [ "$ranks" -gt 4 ] || steps="create write overwrite write_all read close open reopen"
    for step in $steps; do
        at_most "plain, $where, $step, others' calls" "$(of plain.$where $step other 4)" "$(of none.$where $step other 4)"
        at_most "plain, $where, $step, rank 0's calls" "$(of plain.$where $step root 4)" "$(($(of none.$where $step root 4) + 2))"
        at_most "plain, $where, $step, locks" "$(of plain.$where $step other 5)" "$(of none.$where $step other 5)"
        at_most "plain, $where, $step, collectives" "$(of plain.$where $step other 6)" "$(($(of none.$where $step other 6) + 3))"
    done
    # A first write varies by up to 4 calls: a rank that lengthens the file reads the entries from its old end on, 64 at a time,
    # and a group has 256 here.  Its locks depend on the order of the ranks, and are not counted.
    while read -r step column other first root node_root collectives; do
        [ "$ranks" -le 4 ] || [ $column = 4 ] || continue
        case $where.$step in *.node.*) root=$node_root ;; esac
        case $where.$step in *.node.create|*.node.open) collectives=$((collectives + 6)) ;; esac        # the probe between nodes
        at_most "encrypted, $where, $step, others' calls" "$(of encrypted.$where $step other $column)" "$(($(of none.$where $step other $column) + other))"
        [[ $where != *.node ]] ||
            at_most "encrypted, $where, $step, calls of a node's first" "$(of encrypted.$where $step first $column)" "$(($(of none.$where $step first $column) + first))"
        at_most "encrypted, $where, $step, rank 0's calls" "$(of encrypted.$where $step root $column)" "$(($(of none.$where $step root $column) + root))"
        at_most "encrypted, $where, $step, collectives" "$(of encrypted.$where $step other 6)" "$(($(of none.$where $step other 6) + collectives))"
    done <<'ROWS'
create 4  4 39  85 112 10
open   4  5 40  39  66 10
reopen 4  1 12  32  32  9
close  4  1  1   1   1  0
write  7 25 25  18  18  0
read   7 18 18  17  17  0
ROWS
}

: > all
exceeded=
for ranks in "$@"; do
    for place in slot node; do
        where=$ranks.$place
        counts none.$where $ranks $place --mca fs ^crypt --mca fbtl ^crypt --mca hook ^crypt --mca pml ob1 --mca btl self,vader,tcp
        counts plain.$where $ranks $place
        before=$(unwraps)
        counts encrypted.$where $ranks $place --mca fs_crypt_key_label lab
        # Once a node at each of two openings and, when the file is made (as the one before), by the node that did not make it.
        [ $(($(unwraps) - before)) = $([ $place = slot ] && echo 2 || echo 6) ] || fail "the keystore gave $(($(unwraps) - before)) data keys"
        echo "--- $ranks ranks, by $place: calls (locks of these, collectives), without us / plain with us / encrypted, of the others, the second node's first, rank 0"
        for step in create write overwrite write_all read close open reopen; do
            for which in other $([ $place = slot ] || echo first) root; do
                line=
                for kind in none plain encrypted; do
                    line+=$(printf ' %4d (%2d, %2d)' $(of $kind.$where $step $which 4) $(of $kind.$where $step $which 5) $(of $kind.$where $step $which 6))
                done
                printf '%-10s %-6s %s\n' $step $which "$line"
            done
        done
        limits $where $ranks
    done
done
[ -z "$exceeded" ] || fail "more than the limits allow"

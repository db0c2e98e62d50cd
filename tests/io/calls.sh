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

# counts NAME RANKS PLACE [MPIRUN-OPTION...]: a line "NAME STEP RANK CALLS LOCKS COLLECTIVES" for each step and rank.
counts() {
    local name=$1 ranks=$2 place=$3; shift 3
    rm -f calls.* out.* file
    echo "--- $name"
    vcluster mpirun -n "$ranks" --map-by "$place" -x MT_WATCHDOG=$((LIMIT - 10)) "$@" sh -c \
        'exec strace -f -y -o "calls.$OMPI_COMM_WORLD_RANK" -e trace='"$traced"' -- "$@"' sh "$program" "$CASE_DIR/file" "$CASE_DIR/out" || fail "status $?"
    for file in calls.*; do
        awk -v name="$name" -v rank="${file#calls.}" '
            FNR == NR { collectives[$1] = $2; next }
            /"\/counted\/-"/ { print name, step, rank, calls, locks, collectives[step]; step = ""; next }
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

: > all
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
    done
done

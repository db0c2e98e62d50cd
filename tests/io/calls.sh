# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# calls.sh RANKS...: what a rank asks of the file system, and how many collectives it calls, to create, open, write and read
# a file: without us, with us and a plain file, and with an encrypted one; on one node, and on two.  A table, and limits, which
# hold for any number of ranks.
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

names=$(tr -dc / <<<"$CASE_DIR/file" | wc -c)             # realpath() asks for each

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

at_most() { # at_most MOST COUNT WHAT...
    local most=$1 count=$2; shift 2
    (( count <= most )) || { echo "$*: $count, more than $most"; exceeded=1; }
}
# limit PLACE WHERE: of calls that are not for locks, as those wait for others.  A line: place, step, rank 0 or another; calls
# for a plain file more than without us; calls for an encrypted one, unless they depend on what other ranks lock meanwhile;
# collectives more for a plain file; collectives for an encrypted one.
limit() {
    local place step which more calls more_together together
    while read -r place step which more calls more_together together; do
        [ "$place" = "$1" ] || continue
        at_most $((more)) $(($(of plain.$2 $step $which 7) - $(of none.$2 $step $which 7))) "$2: $step, $which, calls for a plain file more"
        [ "$calls" = - ] || at_most $((calls)) $(of encrypted.$2 $step $which 7) "$2: $step, $which, calls for an encrypted file"
        at_most $((more_together)) $(($(of plain.$2 $step $which 6) - $(of none.$2 $step $which 6))) "$2: $step, $which, collectives for a plain file more"
        at_most $((together)) $(of encrypted.$2 $step $which 6) "$2: $step, $which, collectives for an encrypted file"
    done <<'END'
slot create     other 18 108          3 25
slot create     root  20 172+names    3 25
slot write      other  0  24          0  0
slot write      root   0  19          0  0
slot overwrite  other  0   -          0  0
slot overwrite  root   0   -          0  0
slot write_all  other  0   -          0  7
slot write_all  root   0   -          0  7
slot read       other  0  19          0  0
slot read       root   0  18          0  0
slot close      other  0   2          0  3
slot close      root   0   2          0  3
slot open       other  0  39          3 16
slot open       root   2  57+names    3 16
slot reopen     other  0  37          3 15
slot reopen     root   2  55          3 15
node create     other 18 118          3 30
node create     root  20 187+names    3 30
node write      other  0  24          0  0
node write      root   0  19          0  0
node overwrite  other  0   -          0  0
node overwrite  root   0   -          0  0
node write_all  other  0   -          0  7
node write_all  root   0   -          0  7
node read       other  0  19          0  0
node read       root   0  18          0  0
node close      other  0   2          0  2
node close      root   0   3          0  2
node open       other  0  49          3 21
node open       root   2  72+names    3 21
node reopen     other  0  33          3 16
node reopen     root   2  55          3 16
END
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
        limit $place $where
    done
done
[ -z "$exceeded" ] || fail "more calls than the limits allow"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Another user has made the files in which neighbors on a node share memory, or owns a directory above them: the
# job ends, says whose they are, and nothing of its payload was there.
set -eu
. "$SRC/tests/lib.sh"

[ "$(id -u)" = 0 ] || skip "only root can give a file to another user"
cluster_up 1
squat=$(mpi_program attack/shared squat)
segment=sm_segment.; [ "$SERIES" != 4.1 ] || segment=vader_segment.

# job ARGUMENT...: of two ranks; its output, without line breaks, is in $said.
job() {
    local rc=0
    echo "+ $*"
    mpirun_aside -n 2 ${over[@]+"${over[@]}"} "$@" > "$CASE_DIR/out" 2>&1 < /dev/null || rc=$?
    cat "$CASE_DIR/out"
    said=$(tr -s ' \n' ' ' < "$CASE_DIR/out")
    return $rc
}

# seen ARGUMENT...: what the attack gets if it is let be (crypt_audit=warn), which is said.
seen() {
    job --mca crypt_audit warn "$@" || fail "the job failed"
    [[ $said == *"PLAINTEXT POSSIBLE"*"belongs to user id 4711"* && $said =~ seen:\ [1-9] ]] || fail "the attack does not work any more"
    clean
}
# refused TEXT ARGUMENT...: the job ends with TEXT, and the canary was not seen.
refused() {
    local text=$1; shift
    ! job "$@" || fail "the job ran"
    [[ $said == *"Another user could read or change the memory"* && $said == *"$text"* ]] || fail "it does not say: $text"
    [ -z "$(vcluster exec node0 find /dev/shm -name '*.target' -size +0)" ] || fail "it wrote to what the link leads to"
    clean
}
runs()  { job "$@" || fail "the job failed"; [[ $said != *"memory that processes"* ]] || fail "it warns"; clean; }
clean() { vcluster exec node0 find /dev/shm -mindepth 1 -delete; }

over=(--mca crypt_transport pml)
seen                                             -- "$squat" $segment made p2p
refused "$segment"                               -- "$squat" $segment made p2p
refused 'belongs to user id 4711'                -- "$squat" $segment made p2p
refused 'belongs to user id 4711'                -- "$squat" $segment joined p2p
refused 'has the mode 0666'                      -- "$squat" $segment open p2p
refused 'is one of 2 names of a file'            -- "$squat" $segment twice p2p
refused 'is not a regular file'                  -- "$squat" $segment symlink p2p
runs                                             -- "$squat" $segment mine p2p
seen --mca osc sm                                -- "$squat" osc_sm. made win
refused 'belongs to user id 4711' --mca osc sm   -- "$squat" osc_sm. made win
if [ "$SERIES" = 6.0 ]; then
    collectives=(--mca coll_xhc_priority 95) file=xhc_shmem_seg.
else
    collectives=(--mca coll_sm_priority 95) file=coll-sm-cid-
fi
seen "${collectives[@]}"                              -- "$squat" $file made coll
refused 'belongs to user id 4711' "${collectives[@]}" -- "$squat" $file made coll
for kind in posix sysv; do
    runs --mca shmem $kind                       -- "$squat" nothing mine p2p
done

# A directory above: where files are elsewhere, too, as sharedfp/sm has its own there.
tmp=$VCLUSTER_DIR/tmp
vcluster exec node0 chown 4711 "$tmp"
refused '"tmp" on the way to it belongs to user id 4711' -- "$squat" nothing mine p2p
vcluster exec node0 sh -c 'chown 0 "$1" && chmod 0777 "$1"' sh "$tmp"
refused '"tmp" on the way to it has the mode 0777' -- "$squat" nothing mine p2p
vcluster exec node0 chmod 1777 "$tmp"

# Without hook/crypt, where BTLs of 4.1 have started before pml/crypt can watch them.
over=(--mca crypt_transport pml --mca hook ^crypt)
refused 'belongs to user id 4711'                -- "$squat" $segment made p2p
runs                                             -- "$squat" $segment mine p2p

# The other mode, and btl/crypt without pml/crypt.
over=(--mca crypt_transport btl)
refused 'belongs to user id 4711'                -- "$squat" $segment made p2p
refused 'belongs to user id 4711'                -- "$squat" $segment joined p2p
if [ "$SERIES" != 4.1 ]; then
    seen --mca osc rdma                              -- "$squat" osc_rdma. made win
    refused 'belongs to user id 4711' --mca osc rdma -- "$squat" osc_rdma. made win
fi
over=()
over_btl
refused 'belongs to user id 4711'                -- "$squat" $segment made p2p
runs                                             -- "$squat" $segment mine p2p

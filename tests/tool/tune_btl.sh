# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt tune where btl/crypt seals.  First with a launcher that plants what jobs measure: which values are taken, and
# what the file says.  Then on two nodes, where no figure is judged: a job that reads the file has btl/crypt as before.
set -eu
. "$SRC/tests/tool/common.sh"
cd "$CASE_DIR"

# The launcher.  A job takes 1 us and 1 us a KiB, times what $CASE_DIR/plant says of a parameter in its environment
# (NAME=VALUE FACTOR), and is slower by up to NOISE percent, by its number.
cat > launcher <<'END'
#!/bin/bash
while [[ $1 != */mpicrypt-mpi ]]; do shift; done
verb=$2 factor=1
jobs=$(($(cat "$CASE_DIR/jobs" 2>/dev/null || echo 0) + 1)); echo $jobs > "$CASE_DIR/jobs"
if [ $verb = nodes ]; then
    [ -z "${REFUSED-}" ] || { echo "$REFUSED" >&2; exit 1; }
    echo "@mpicrypt library Open MPI"
    for rank in 0 1; do echo "@mpicrypt rank $rank $rank host$rank boot$rank cubic $CPUS"; done
    echo "@mpicrypt seals ob1 $KERNEL btl/crypt seals what leaves a node, over TCP"
    printf '@mpicrypt processor A Processor\n@mpicrypt provider A Provider\n'
else
    while read -r setting value; do
        name=OMPI_MCA_${setting%=*}
        [ "${!name-}" != "${setting#*=}" ] || factor=$factor*$value
    done < "$CASE_DIR/plant"
    [ ! -p "$CASE_DIR/wait" ] || cat "$CASE_DIR/wait"
    for word; do case $word in --size=*) sizes=${word#*=} ;; --laps=*) laps=${word#*=} ;; esac; done
    read -r number _ < <(cksum <<<$jobs)
    awk -v sizes="$sizes" -v laps="$laps" "BEGIN {
        n = split(sizes, size, \",\"); f = $factor * (1 + $NOISE / 100 * ($number % 1000) / 1000)
        for (i = 1; i <= n; ++i) for (l = 0; l < laps; ++l)
            printf \"@mpicrypt value %d %d %.9g 0 0\n\", size[i], l, 1e-6 * (1 + size[i] / 1024) * f }"
fi
echo "@mpicrypt done"
END
chmod +x launcher
export CASE_DIR NOISE=0 CPUS=0 KERNEL=0 REFUSED=

planted=(tune --mpirun "$CASE_DIR/launcher" --laps 1 --out planted.conf)
# takes PLANTED-LINES FILE-LINES
takes() {
    echo "planted, up to $NOISE% slower: ${1//$'\n'/, }"
    printf '%s\n' "$1" > plant; rm -f jobs
    must tool "${planted[@]}"
    [ "$(grep -v '^#' planted.conf || true)" = "$2" ] || fail "the file is $(cat planted.conf), after $(cat out)"
}

takes 'btl_crypt_eager_limit=528384 0.97' 'btl_crypt_eager_limit = 528384'
grep -q '^    528384     0.970 ' out && grep -q '^    528384 is taken' out || fail "what was tried: $(cat out)"
grep -q '^# Written by mpicrypt tune on 20.*, on host0, host1 (A Processor),$' planted.conf &&
    grep -q '^# for ob1, 128-bit keys (A Provider),$' planted.conf &&
    grep -q '^# ranks with 1 processor, TCP congestion control cubic.$' planted.conf || fail "conditions: $(cat planted.conf)"
grep -q '^crypt_threads: not tried, as a rank has one processor$' out &&
    grep -q '^btl_crypt_ktls: not tried, as not every node' out || fail "what was not tried: $(cat out)"
# The best, with what was taken before it.
takes $'btl_crypt_eager_limit=66560 0.9\nbtl_crypt_eager_limit=135168 0.8\nbtl_crypt_rndv_eager_limit=262144 0.9' \
    $'btl_crypt_eager_limit = 135168\nbtl_crypt_rndv_eager_limit = 262144'
# Not what is slower, or hardly faster, or no further from the default than that is from itself.
takes $'btl_crypt_eager_limit=66560 1.1\nbtl_crypt_rndv_eager_limit=65536 0.985' ''
grep -q '^# Every default was best.$' planted.conf && grep -q '^Every default is best' out || fail "it does not say so"
NOISE=30 takes 'btl_crypt_eager_limit=528384 0.95' ''
NOISE=10 takes 'btl_crypt_eager_limit=66560 0.7' 'btl_crypt_eager_limit = 66560'
# Threads, as many as a rank has processors; the kernel, where every node has it.
CPUS=0,1,2,3,4 takes $'crypt_threads=4 0.8\ncrypt_threads=8 0.5' 'crypt_threads = 4'
KERNEL=1 takes 'btl_crypt_ktls=auto 0.9' 'btl_crypt_ktls = auto'

echo "what it says while it measures"
mkfifo wait
tool "${planted[@]}" & tune=$!
exec 3> wait                # once a job reads it
[ "$(grep -c '^btl_crypt_eager_limit: time over that of the default, 7 to 14 rounds of 12 jobs$' out)" = 1 ] ||
    fail "nothing yet: $(cat out)"
rm wait
exec 3>&-
wait $tune

echo "a first look"
rm -f jobs
must tool "${planted[@]}" --quick
grep -q '^btl_crypt_eager_limit: time over that of the default, 5 to 10 rounds of 12 jobs$' out || fail "$(cat out)"

echo "what it refuses"
rm planted.conf
REFUSED='no key' refuses 1 "no key" "${planted[@]}"
refuses 2 "are about the model of pml/crypt" "${planted[@]}" --plot x.svg
refuses 2 "are about the model of pml/crypt" "${planted[@]}" --no-search
[ ! -e planted.conf ] || fail "there is a file"

echo "on two nodes"
cluster_up 2
tool tune --mpirun "$launcher" --rounds 1 --laps 1 --lap-ms 1 --out tuned.conf --csv tuned.csv || fail "$(cat out err)"
cat out tuned.conf
grep -q '^btl/crypt seals what leaves a node, over TCP' out || fail "what the jobs use"
! grep -v '^#' tuned.conf || fail "it is sure of something after one round"
[ "$(results tuned.csv pattern | sort -u | paste -sd' ')" = "pairs pingpong" ] || fail "what was measured: $(cat tuned.csv)"
[ "$(results tuned.csv column | sort -u | grep -c '^btl_crypt_eager_limit=')" = 3 ] || fail "what was tried: $(cat tuned.csv)"
program=$(mpi_program mpi p2p_sendrecv)
echo 'btl_crypt_eager_limit = 66560' >> tuned.conf
must vcluster mpirun -n 2 --map-by node --mca mca_base_param_files "$CASE_DIR/tuned.conf" --mca pml crypt \
    --mca crypt_report 1 -x OMPI_MCA_crypt_psk_file "$program" > job 2>&1
grep -q 'btl/crypt seals what leaves a node, over TCP' job || fail "the file changes what seals: $(cat job)"
must_fail tool tune --mpirun "$launcher --mca pml ob1" --out no.conf
grep -q 'started a job that is not encrypted' err || fail "$(cat err)"

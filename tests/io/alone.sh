# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt file reencrypt replaces a file with a new one, rekey overwrites all copies of a map, and seal writes a seal over
# all blocks: not while a job, or another mpicrypt, has the file open, and nobody can open it while they work.
. "$SRC/tests/io/common.sh"

cluster_up 1 --slots 4
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io convert)
hold=$(mpi_program io hold)
cd "$CASE_DIR"
here() { echo "$CASE_DIR/$1"; }
file() { in_variant mpicrypt file --keystore-dir "$CASE_DIR/keys" "$@"; }
head -c 300000 /dev/urandom > plain
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o pause.so "$SRC/tests/io/preload/pause.c" -ldl
made() { rm -f made; must file encrypt "$(here plain)" "$(here made)" --label lab --block-size 4K; }
ids() { stat -c '%i %s' made*; }
verbs="reencrypt seal rekey" tried=("reencrypt renameat2 1" "seal fsync 1" "rekey fsync 1")
# wait_for FILE PID: until FILE exists, while the process that should make it is running.
wait_for() { until [ -e "$1" ]; do kill -0 "$2" || fail "it ended before it made $1"; sleep 0.02; done; }

for mode in write read; do
    echo "--- a job has it open, to $mode"
    made
    rm -f ready end
    vcluster mpirun -n 2 "$hold" "$(here made)" "$(here ready)" "$(here end)" $mode & job=$!
    wait_for ready $job
    before=$(ids)
    for verb in $verbs; do
        must_refuse "has it open, and nobody may have it open for this" file $verb "$(here made)"
    done
    [ "$(ids)" = "$before" ] || fail "it was touched"
    [ -z "$(compgen -G '*.part*')" ] || fail "left: $(compgen -G '*.part*')"
    must file verify "$(here made)"             # sharing it is allowed
    : > end
    wait $job || fail "the job: status $?"
    must file verify "$(here made)"
    for verb in $verbs; do
        must file $verb "$(here made)"
    done
done

# A job seals only what nobody else may write to.  Otherwise a valid seal would cover another program's later writes.
for mode in write read; do
    echo "--- a job closes it, to be sealed, that another has open, to $mode"
    made
    rm -f ready end
    vcluster mpirun -n 2 "$hold" "$(here made)" "$(here ready)" "$(here end)" $mode & job=$!
    wait_for ready $job
    if [ $mode = write ]; then
        says "since somebody" vcluster mpirun -n 3 --mca fs_crypt_seal 1 "$program" over "$(here plain)" "$(here made)"
        must_fail run_io 2 --mca fs_crypt_seal 1 "$program" read "$(here plain)" "$(here made)"
    else
        must run_io 3 --mca fs_crypt_seal 1 "$program" over "$(here plain)" "$(here made)"
        must run_io 2 --mca fs_crypt_seal 1 "$program" read "$(here plain)" "$(here made)"
    fi
    : > end
    wait $job || fail "the job: status $?"
    must run_io 3 "$program" over "$(here plain)" "$(here made)"
    must file verify "$(here made)"
done

busy='reencrypt, rekey or seal is working on it, or a job that seals it'
echo "--- open it while a job seals it"
rm -f ready end
vcluster mpirun -n 1 --mca fs_crypt_seal 1 env LD_PRELOAD="$(here pause.so)" PAUSE_IN=fsync PAUSE_AT=3 PAUSE_READY="$(here ready)" \
    PAUSE_END="$(here end)" "$program" over "$(here plain)" "$(here made)" & job=$!
wait_for ready $job
must_refuse "$busy" run_io 3 "$program" over "$(here plain)" "$(here made)"
must run_io 3 "$program" read "$(here plain)" "$(here made)"
: > end
wait $job || fail "the job: status $?"
must run_io 2 --mca fs_crypt_seal 1 "$program" read "$(here plain)" "$(here made)"
must run_io 3 "$program" over "$(here plain)" "$(here made)"
must file verify "$(here made)"

# reencrypt stops before the new file gets its name, seal once the old seal is gone, rekey once one of the maps is the new one.
for what in "${tried[@]}"; do
    read -r verb in at <<< "$what"
    echo "--- open it while $what"
    made
    rm -f ready end
    in_variant env LD_PRELOAD="$(here pause.so)" PAUSE_IN=$in PAUSE_AT=$at PAUSE_READY="$(here ready)" PAUSE_END="$(here end)" \
        mpicrypt file $verb "$(here made)" --keystore-dir "$CASE_DIR/keys" & tool=$!
    wait_for ready $tool
    before=$(ids)
    must_refuse "$busy" run_io 3 "$program" read "$(here plain)" "$(here made)"
    must_refuse "$busy" run_io 3 "$program" over "$(here plain)" "$(here made)"
    must_refuse "$busy" file verify "$(here made)"
    for other in $verbs; do
        must_refuse "has it open, and nobody may have it open for this" file $other "$(here made)"
    done
    [ "$(ids)" = "$before" ] || fail "it was touched"
    : > end
    wait $tool || fail "mpicrypt file $what: status $?"
    must run_io 3 "$program" over "$(here plain)" "$(here made)"
    must run_io 3 "$program" read "$(here plain)" "$(here made)"
    must file verify "$(here made)"
done

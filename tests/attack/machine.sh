# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# machine.sh SECONDS [ob1|ucx|cm] [threads=N] [team=N] [seed=N|random]
#
# The steps of the corpus: those that found something, and those that a seed may not
# find again.  Then drawn attacks, drawn messages, drawn receives, step after step in one
# job, and job after job, until the time is over (machine/machine.h).  A failure prints
# its step, which belongs into the corpus, and how to run it again:
#
#     MACHINE="seed=N from=N to=N" tests/run.sh attack/machine
#
# or MACHINE="file=PATH" with the printed step in a file.
set -eu
. "$SRC/tests/lib.sh"

seconds=$1 host=ob1 seed=1 team=0 arguments=(); shift
for word in "$@"; do
    case $word in
        ob1|ucx|cm)  host=$word ;;
        seed=random) seed=$((RANDOM * 32768 + RANDOM)) ;;
        seed=*)      seed=${word#seed=} ;;
        team=*)      team=${word#team=} ;;
        threads=*)   arguments+=("$word") ;;
        *)           die "what is $word?" ;;
    esac
done
cluster_up 2
machine=$(mpi_program attack/machine machine)
make_check tests/attack/tamper/pml
export OMPI_MCA_mca_base_component_path=$BUILD/tests/attack/tamper/pml/.libs:$OMPI_MCA_mca_base_component_path

# Small segments: those that nobody receives after a refused first part leave all the same.
mpirun=(--mca pml_crypt_chop_min 4096 --mca pml_crypt_chunk_size 20000 --mca crypt_on_auth_failure error
        --mca crypt_threads "$team" -x ASAN_OPTIONS -x UBSAN_OPTIONS)
if [ "$host" = ucx ]; then
    mpirun+=(--mca pml_crypt_host ucx --mca pml_tamper_host ucx --mca pml_ucx_tls any --mca pml_ucx_devices any
             -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)
    arguments+=(ucx)
elif [ "$host" = cm ]; then
    mpirun+=(--mca pml_crypt_host cm --mca pml_tamper_host cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm'
             -x FI_OFI_RXM_BUFFER_SIZE=65536)
fi

# job ARGUMENT...: what it prints of single failures is thousands of lines.
job() {
    echo "+ machine $*"
    rm -f "$CASE_DIR/at.ends"
    if ! vcluster mpirun -n 4 "${mpirun[@]}" "$machine" "at=$CASE_DIR/at" ${arguments[@]+"${arguments[@]}"} "$@" \
            > "$CASE_DIR/out" 2>&1; then
        grep -avE 'failed authentication|receiver:|claimed from:|communicator:|tag:  |reason:|reached the application|^-*$|help message|help / error' \
            "$CASE_DIR/out" | head -n 300 || true
        fail "in step $(cat "$CASE_DIR/at"): run it again with MACHINE=\"$* to=$(cat "$CASE_DIR/at")\", perhaps from=$(cat "$CASE_DIR/at")"
    fi
    tee -a "$CASE_DIR/all" < "$CASE_DIR/at.ends"
}

if [ -n "${MACHINE-}" ]; then
    job $MACHINE
    exit 0
fi
for file in "$SRC"/tests/attack/machine/corpus/*.steps; do
    [ "$host" = ucx ] || [[ $file != *.ucx.steps ]] || continue
    job "file=$file"
done
from=0 end=$((SECONDS + seconds))
while ((SECONDS < end)); do
    job "seed=$seed" "from=$from" "seconds=$((end - SECONDS))"
    from=$(cat "$CASE_DIR/at")
done
# Receives that ended in each of the ways: or it tried nothing.
for way in exact truncated refused; do
    grep -qE "[1-9][0-9]* (receives )?$way" "$CASE_DIR/all" || fail "no receive ended $way"
done

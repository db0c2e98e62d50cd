# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# tamper.sh [all | few | cm [few]]: the table of attacks (tamper.table), cell by cell.
#
# A PML of the tests stands between pml/crypt and ob1 and changes what passes
# (tamper/pml); `make check` makes it, and a pml/crypt that loads it as its host,
# and nothing installs them.  "all": every bit of every header and tag, and
# everything again under MPI_THREAD_MULTIPLE.  "cm": between pml/crypt and cm, over libfabric, where all
# is sealed.  "few": a fifth of the cells that are sealed between nodes; over cm a 13th, and one job that ends.
set -eu
. "$SRC/tests/lib.sh"

all= few= only= host=() sealed_only=()
case ${1-} in
    '')  ;;
    all) all=all ;;
    few) only=2 ;;
    # ofi_rxm sends up to 16 KiB, or its buffer, without waiting for the receive.
    cm)  few=${2-} sealed_only=(no-local)
         host=(--mca pml_crypt_host cm --mca pml_tamper_host cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm'
               -x FI_OFI_RXM_BUFFER_SIZE=65536) ;;
    *)   die "usage: tamper.sh [all | few | cm [few]]" ;;
esac
table=$SRC/tests/attack/tamper.table
cluster_up 2
cells=$(mpi_program attack/tamper cells)
hosts=$BUILD/tests/attack/tamper/pml/.libs
make_check tests/attack/tamper/pml
shm=vader
[ "$SERIES" = 4.1 ] || shm=sm
export OMPI_MCA_mca_base_component_path=$hosts:$OMPI_MCA_mca_base_component_path

# run SECTION [MPIRUN-ARGUMENT...] -- [ARGUMENT...].  Small segments: those that
# nobody receives after a refused first part leave with the host all the same.
run() {
    local section=$1 before=(); shift
    while [ "$1" != -- ]; do before+=("$1"); shift; done
    shift
    vcluster mpirun -n 4 -x MT_WATCHDOG=280 --mca pml_crypt_chop_min 4096 --mca pml_crypt_chunk_size 20000 \
        ${host[@]+"${host[@]}"} \
        ${before[@]+"${before[@]}"} "$cells" "$table" "$section" ${sealed_only[@]+"${sealed_only[@]}"} "$@"
}

# A process ends its job after 1,000 failures, whatever it was told to do.
section() {                                     # section SECTION PARTS [MPIRUN-ARGUMENT...] [-- ARGUMENT...]
    local section=$1 parts=$2 part rc=0 before=(); shift 2
    while (($#)) && [ "$1" != -- ]; do before+=("$1"); shift; done
    [ $# = 0 ] || shift
    for part in ${only:-$(seq 0 $((parts - 1)))}; do
        run "$section" --mca crypt_on_auth_failure error ${before[@]+"${before[@]}"} -- "part=$part" "parts=$parts" "$@" \
            >"$CASE_DIR/out" 2>&1 || rc=1
        grep -avE 'failed authentication|receiver:|claimed from:|communicator:|tag:  |reason:|reached the application|^-*$|help message|help / error' "$CASE_DIR/out" || true
        [ $rc = 0 ] || fail "section $section, part $part of $parts"
    done
}

bits=() ones=(0 1 2 3 4 5 6 7)
[ -z "$all" ] || bits=(-- all-bits)
[ ${#sealed_only[@]} = 0 ] || ones=(0 1 2 4 5 6 7)
if [ -n "$few" ]; then
    # Among them messages that were made longer, by less and by more than the provider sends at once.
    only=3 ones=(7)
    section sealed 13
else
    section sealed $([ -n "$all" ] && echo 16 || echo 5) ${bits[@]+"${bits[@]}"}
    only= section all 1 --mca crypt_scope all --mca "btl_${shm}_eager_limit" 40000
    [ -z "$all" ] || section sealed 5 -x CELLS_THREADS=1
fi

# By default the job ends, with one text that names the reason.
reasons=(changed changed changed changed replay order changed changed)
for one in "${ones[@]}"; do
    must_fail run abort -- "one=$one" >"$CASE_DIR/out" 2>&1
    [ "$(grep -c 'failed authentication.  The job aborts' "$CASE_DIR/out")" = 1 ] &&
        grep -q "reason:.*${reasons[one]}" "$CASE_DIR/out" && ! grep -q watchdog "$CASE_DIR/out" ||
        fail "abort $one, which should say \"${reasons[one]}\": $(cat "$CASE_DIR/out")"
    echo "abort $one: $(grep reason: "$CASE_DIR/out")"
done

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Two versions of ompi-crypt: on two nodes, as while they are upgraded one by one, and in one
# process.  An encrypted job ends with both versions and both nodes, plain ones run, and
# mpicrypt doctor says so.  The other version is a copy in which the text of the version differs.
set -eu
. "$SRC/tests/lib.sh"

ours=$(cat "$SRC/VERSION") other=$(tr 0-8 1-9 <<< "$ours")
copy=$CASE_DIR/copy
cp -a "$PREFIX" "$copy"
find "$copy" -type f \( -name '*.so*' -o -path '*/bin/*' -o -path '*/libexec/*' \) ! -name '*.la' \
    -exec sed -i "s/\(ompi-crypt[ =]\)${ours//./\\.}/\1$other/g" {} +
must grep -qaF "ompi-crypt $other for Open MPI" "$copy/lib/ompi-crypt/mca_pml_crypt.so"
must grep -qaF "ompi-crypt=$other" "$copy"/lib/libmca_common_cryptproc.so

cat > "$CASE_DIR/job.c" <<'END_C'
#include <mpi.h>
#include <stdio.h>
/* job [FILE LABEL]: a barrier; a file is opened, encrypted if LABEL is not "-" */
int main(int argc, char **argv)
{
    MPI_Info info;
    MPI_File file;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 2) {
        MPI_Info_create(&info);
        if ('-' != argv[2][0]) {
            MPI_Info_set(info, "crypt_key_label", argv[2]);
        }
        if (MPI_SUCCESS == MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file)) {
            MPI_File_close(&file);
            printf("rank %d: opened\n", rank);
        }
        MPI_Info_free(&info);
    }
    MPI_Finalize();
    printf("rank %d: ended\n", rank);
    return 0;
}
END_C
cluster_up 2
cd "$CASE_DIR"
must in_variant mpicc -o job job.c

# refuses TEXT MPIRUN-ARGUMENT... -- WORD...: the job ends by itself, without a crash, and says TEXT.
refuses() {
    local text=$1 rc=0; shift
    echo "+ ! $*"
    mpirun_aside -n 4 --map-by node "$@" > out 2>&1 || rc=$?
    cat out
    case $rc in 0|124|13[0-9]) fail "status $rc" ;; esac
    ! grep -qiE 'segmentation|signal [0-9]|ended$' out || fail "it crashed, or ran"
    tr '\n' ' ' < out | tr -s ' ' | grep -qE -- "$text" || fail "\"$text\" is not in the output"
}
runs() { echo "+ $*"; mpirun_aside -n 4 --map-by node "$@" > out 2>&1 || { cat out; fail "status $?"; }; must test "$(grep -c ended out)" = 4; }

echo "1. the same version on both nodes"
runs --mca crypt_transport btl -- ./job
runs -- ./job

echo "2. another version on node1"
must vcluster exec node1 mount --bind "$copy" "$PREFIX"
rank='[^ ]+ rank [0-9]+,'
both="this process: $rank on (node0 the peer: $rank on node1 ompi-crypt $ours here, $other there|node1 the peer: $rank on node0 ompi-crypt $other here, $ours there) "
for transport in btl pml; do
    refuses "$both" --mca crypt_transport $transport -- ./job
done
runs --mca pml ob1 -- ./job plain -
must test "$(grep -c opened out)" = 4
refuses 'lack hook/crypt of ompi-crypt, or have it of another version' --mca pml ob1 -- ./job encrypted label
says "ompi-crypt $other for Open MPI" mpicrypt doctor --mpirun "$SRC/tests/vcluster mpirun" > doctor
cat doctor
must grep -q "^FAIL  versions  *ompi-crypt $ours for .*\[node0\]" doctor
must grep -q "^FAIL  versions  *ompi-crypt $other for .*\[node1\]" doctor
must vcluster exec node1 umount "$PREFIX"

echo "3. two versions in one process: components of another version than the libraries and mpicrypt"
export OMPI_MCA_mca_base_component_path=${OMPI_MCA_mca_base_component_path//"$PREFIX"/"$copy"}
refuses "another version of ompi-crypt than the libraries .*component: ompi-crypt $other for .*libraries: ompi-crypt $ours" -- ./job
says "mca_pml_crypt.so is of ompi-crypt $other, but this mpicrypt of $ours" vcluster exec node0 mpicrypt doctor

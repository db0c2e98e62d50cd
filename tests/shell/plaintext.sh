# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The build that encrypts no messages (--enable-no-crypto): it says so in every job, whatever the
# parameters are, and a process of it and one of another build do not talk to each other.  Files are
# encrypted there, too.
set -eu
. "$SRC/tests/lib.sh"

plain=$CASE_DIR/prefix
mkdir "$CASE_DIR/build"
(cd "$CASE_DIR/build"
 must "$SRC/configure" --prefix="$plain" --enable-no-crypto --disable-lto > configure.out
 must make -s -j"$(nproc)" > make.out
 must make -s install > install.out)
cat > "$CASE_DIR/canary.c" <<'END_OF_C'
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv)
{
    static char sent[200000], got[200000];
    const int bytes[] = {4096, 200000};         /* one frame, and segments */
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < (int) sizeof(sent); i += 16) {
        memcpy(sent + i, "a-plain-canary--", 16);
    }
    for (int i = 0; i < 2; i++) {
        MPI_Sendrecv(sent, bytes[i], MPI_CHAR, 1 - rank, 5, got, bytes[i], MPI_CHAR, 1 - rank, 5, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (0 != memcmp(sent, got, (size_t) bytes[i])) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    if (argc > 1) {                             /* a file, which is encrypted in any build */
        MPI_File file;

        MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
        MPI_File_write_at_all(file, rank * (MPI_Offset) sizeof(sent), sent, sizeof(sent), MPI_CHAR, MPI_STATUS_IGNORE);
        MPI_File_sync(file);
        MPI_File_read_at_all(file, (1 - rank) * (MPI_Offset) sizeof(sent), got, sizeof(got), MPI_CHAR, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
        if (0 != memcmp(sent, got, sizeof(sent))) {
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    return MPI_Finalize();
}
END_OF_C
must mpicc -o "$CASE_DIR/canary" "$CASE_DIR/canary.c"
cluster_up 2

# job EXPECTED-STATUS PREFIX OTHER ARGUMENT...: rank 0 has one build, rank 1 the other; $canary is the program.
canary=("$CASE_DIR/canary")
job() {
    local expected=$1 one=$2 other=$3 rc=0; shift 3
    echo "+ ${one##*/} ${other##*/} $*"
    capture_start node0 "$CASE_DIR/capture" -i eth0
    vcluster mpirun "$@" -n 1 --host node0 -x OMPI_MCA_mca_base_component_path="$one/lib/ompi-crypt:SYS_DEFAULT" \
        -x LD_LIBRARY_PATH="$one/lib" "${canary[@]}" : \
        -n 1 --host node1 -x OMPI_MCA_mca_base_component_path="$other/lib/ompi-crypt:SYS_DEFAULT" \
        -x LD_LIBRARY_PATH="$other/lib" "${canary[@]}" > "$CASE_DIR/out" 2>&1 < /dev/null || rc=$?
    capture_stop node0
    cat "$CASE_DIR/out"
    [ "$expected" = "$((rc != 0))" ] || fail "status $rc"
    said=$(tr -s ' \n' ' ' < "$CASE_DIR/out")
}
crossed() { grep -qaF a-plain-canary-- "$CASE_DIR/capture"; }
warns() { [[ $said == *"WARNING: PLAINTEXT. This build of ompi-crypt was made with --enable-no-crypto."* ]]; }

job 0 "$PREFIX" "$PREFIX"
! warns && ! crossed || fail "a build that encrypts does not"
for aead in auto openssl; do
    job 0 "$plain" "$plain" --mca aead $aead
    warns && crossed || fail "a build that does not encrypt says nothing, or does"
done
job 1 "$plain" "$plain" --mca crypt_fips 1
! crossed || fail "what is not validated is used under crypt_fips"
for mixed in "$PREFIX $plain" "$plain $PREFIX"; do
    job 1 $mixed
    [[ $said == *"must be the same on all ranks, but differ"*"aead=PLAINTEXT"* ]] || fail "it does not say what differs"
    ! crossed || fail "a process of another build talks to one that encrypts nothing"
done

# Files are encrypted in both, and each can read what the other wrote.
must in_variant mpicrypt key new site --keystore-dir "$CASE_DIR/keys"
canary+=("$CASE_DIR/file")
for build in "$plain" "$PREFIX" "$plain"; do
    job 0 "$build" "$build" --mca fs_crypt_key_label site --mca crypt_keystore_dir "$CASE_DIR/keys"
    ! grep -qaF a-plain-canary-- "$CASE_DIR"/file* || fail "the file is plain"
    must in_variant mpicrypt file verify "$CASE_DIR/file" --keystore-dir "$CASE_DIR/keys"
done

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Encryption that is requested after the file was opened, whichever components handle it: request.c.
. "$SRC/tests/io/common.sh"

cluster_up 1 --slots 2
keys_in "$CASE_DIR/keys" lab
program=$(mpi_program io request)
find_romio
info="info info-one"
[ "$SERIES" != 4.1 ] || info=                   # see below

n=0
# late REQUEST... -- MPIRUN-OPTION...
late() {
    local requests=()
    while [ "$1" != -- ]; do requests+=("$1"); shift; done
    shift
    mkdir "$CASE_DIR/files$((++n))"
    echo "--- ${*:-defaults}: ${requests[*]}"
    must run_io 2 "$@" "$program" "$CASE_DIR/files$n" "${requests[@]}"
}

for components in "" "--mca fs ufs" "--mca fbtl posix" "--mca sharedfp individual" ${romio:+"--mca io $romio"}; do
    late map view view-one $info -- $components
done
# Without hook/crypt, fs/crypt judges its own files, and the library of MPIX_* judges all others.
for components in "" "--mca fbtl posix"; do
    late map view view-one $info -- --mca hook ^crypt --mca crypt_transport pml $components
done
for components in "--mca fs ufs" ${romio:+"--mca io $romio"}; do
    late map -- --mca hook ^crypt --mca crypt_transport pml $components
done

[ "$SERIES" = 4.1 ] || exit 0
# MPI_File_set_info of 4.1 can neither fail nor tell the other ranks.
for components in "" "--mca fs ufs" "--mca fbtl posix" "--mca io $romio"; do
    mkdir "$CASE_DIR/files$((++n))"
    echo "--- ${components:-defaults}: MPI_File_set_info"
    must_refuse "MPI_File_set_info" run_io 2 $components "$program" "$CASE_DIR/files$n" info-one
done

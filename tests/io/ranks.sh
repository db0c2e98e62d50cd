# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Processes that see different things, or ask for different things: all of them open a file in the same
# way, or all are refused.  None waits for another, and data that one wants encrypted is not stored in
# clear because the others do not ask for that.
. "$SRC/tests/io/common.sh"

cluster_up 1 --slots 4
keys_in "$CASE_DIR/keys" lab other
program=$(mpi_program io convert)
differ=$(mpi_program io differ)
cd "$CASE_DIR"
head -c 20000 /dev/urandom > plain
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/late.so" "$SRC/tests/io/preload/late.c" -ldl
find_romio
others=(--mca io "$romio")
[ -n "$romio" ] || others=(--mca fs ufs)
must run_io 3 "$program" write "$CASE_DIR/plain" "$CASE_DIR/made"

# on RANK NAME=VALUE COMMAND...: the variable is set for that rank alone.
on() {
    local rank=$1 what=$2; shift 2
    vcluster mpirun -n 3 bash -c 'r=$1 w=$2; shift 2; [ "$OMPI_COMM_WORLD_RANK" != "$r" ] || export "$w"; MT_WATCHDOG=60 exec "$@"' \
        - "$rank" "$what" "$@"
}
# late RANK [MPIRUN-OPTION...]: that rank looked before the others.
late() {
    local rank=$1; shift
    rm -f late.log
    vcluster mpirun -n 3 "$@" env MT_WATCHDOG=60 LD_PRELOAD="$CASE_DIR/late.so" LATE_RANK="$rank" LATE_FILE="$CASE_DIR/made" \
        LATE_LOG="$CASE_DIR/late.log" "$program" read "$CASE_DIR/plain" "$CASE_DIR/made"
}
looked() { [ -s late.log ] || fail "nobody looked"; }
in_clear() { grep -qa "canary that nobody may see" "$1"; }

for rank in 0 2; do
    echo "--- rank $rank looked before the file was there"
    must_refuse "components that can encrypt are not selected" late $rank "${others[@]}"
    looked
    [ -n "$romio" ] || continue
    for priorities in "30 90" "200 150" "-1 -5"; do     # Open MPI takes those from 0 to 100
        must late $rank --mca io "ompio,$romio" --mca io_ompio_priority ${priorities% *} --mca io_${romio}_priority ${priorities#* }
        looked
    done
done

echo "--- other components on one rank"
must_refuse "components that can encrypt are not selected" on 2 OMPI_MCA_fs=ufs "$program" read "$CASE_DIR/plain" "$CASE_DIR/made"
must_refuse "do not all have the same" on 0 OMPI_MCA_fs=ufs "$program" read "$CASE_DIR/plain" "$CASE_DIR/plain"

echo "--- only one rank refuses plain files"
must_refuse "holds plain data" on 2 OMPI_MCA_fs_crypt_require=1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/plain"
must_refuse "fs_crypt_require is set" on 2 OMPI_MCA_fs_crypt_require=1 "$differ" "$CASE_DIR/required" -1 none
! in_clear required || fail "plain bytes were written"

echo "--- what rank 0 wants, the others need not say"
must run_io 3 "$differ" "$CASE_DIR/byinfo" 0 lab
must on 0 OMPI_MCA_fs_crypt_key_label=lab "$differ" "$CASE_DIR/byname" -1 none
for name in byinfo byname; do
    ! in_clear $name || fail "$name is in clear"
    must in_variant mpicrypt file --keystore-dir "$CASE_DIR/keys" verify "$CASE_DIR/$name"
done

echo "--- what another wants, rank 0 has to say"
must_refuse "a process asked for something that rank 0 did not ask" run_io 3 "$differ" "$CASE_DIR/byinfo2" 2 lab
must_refuse "a process asked for something that rank 0 did not ask" on 2 OMPI_MCA_fs_crypt_key_label=lab "$differ" "$CASE_DIR/byname2" -1 none
must_refuse "a process asked for something that rank 0 did not ask" on 2 OMPI_MCA_fs_crypt_key_label=other "$differ" "$CASE_DIR/two" 0 lab
for name in byinfo2 byname2 two; do
    [ ! -e $name ] || fail "something is left of $name"
done

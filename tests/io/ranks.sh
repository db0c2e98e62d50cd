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

# as RANK SHELL COMMAND...: that rank first does what SHELL says; `own` begins its command.
as() {
    local rank=$1 what=$2; shift 2
    vcluster mpirun -n 3 -x GIVEN_FORGES -x GIVEN_TRUSTS -x GIVEN_FORKS -x GIVEN_BY env MT_WATCHDOG=60 bash -c \
        'own=; [ -n "$GIVEN_TRUSTS" ] || unset GIVEN_TRUSTS; [ -n "$GIVEN_FORKS" ] || unset GIVEN_FORKS; [ "$OMPI_COMM_WORLD_RANK" != "$0" ] || eval "$1"; shift; export LD_PRELOAD=${GIVEN_BY-}; exec $own "$@"' "$rank" "$what" "$@"
}
read_by() { as "$1" "$2" "$program" read "$CASE_DIR/plain" "$CASE_DIR/made"; }
given() { grep -c ' unwrap label=lab .*granted' "$1/log" || true; }
# asked N COMMAND...: so often the keystore gave a data key of lab meanwhile.
asked() {
    local wanted=$1 before; shift
    before=$(given keys)
    must "$@"
    [ $(($(given keys) - before)) = "$wanted" ] || fail "the keystore gave its key $(($(given keys) - before)) times, not $wanted"
}
# Another root directory is no mount that unshare could make private; a node's mounts are private there already.
apart="unshare -m"
! in_other_root || apart+=" --propagation unchanged"
# other DIRECTORY: so a rank has this one at the keystore's place.
other() { echo "own='$apart sh $CASE_DIR/other.sh $CASE_DIR/$1'"; }
echo 'mount --bind "$1" "$OMPI_MCA_crypt_keystore_dir" && shift && exec "$@"' > other.sh
must in_variant gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -o given.so "$SRC/tests/io/preload/given.c" -ldl
export GIVEN_BY= GIVEN_FORGES= GIVEN_TRUSTS= GIVEN_FORKS=
no_key="this process has no key for a part of an encrypted file"

echo "--- one process of a node asks the keystore; one that might see another one, or see it differently, asks, too"
cp -a keys copy
mkdir nothing
asked 1 read_by 2 true
asked 2 read_by 2 "own='$apart'"
asked 3 read_by 0 "own='$apart'"
asked 2 read_by 2 'own="setpriv --no-new-privs"'
asked 2 read_by 2 'export OMPI_MCA_crypt_keystore_log=$OMPI_MCA_crypt_keystore_dir/./log'
ln -s made link
for name in "$CASE_DIR/made" ./made "$CASE_DIR/keys/../made" link; do
    asked 1 as 2 true "$program" over "$CASE_DIR/plain" "$name"
done
for name in "$CASE_DIR/new1" ./new2 "$CASE_DIR/keys/../new3"; do
    asked 0 as 2 true "$differ" "$name" 0 lab
done
must_refuse "$no_key" as 0 "$(other nothing)" "$differ" "$CASE_DIR/new4" 0 lab
must in_variant mpicrypt file --keystore-dir "$CASE_DIR/keys" verify "$CASE_DIR/new4"
before=$(given copy)
asked 1 read_by 2 'export OMPI_MCA_crypt_keystore_dir=${OMPI_MCA_crypt_keystore_dir%keys}copy'
[ $(($(given copy) - before)) = 1 ] || fail "the other keystore was not asked"

echo "--- a key that is not that of the file is not taken"
export GIVEN_BY=$CASE_DIR/given.so
for forges in key grant none other short long; do
    GIVEN_FORGES=$forges asked 3 read_by 2 true > out 2>&1
    cat out
    grep -q "it sent other keys than those of the file" out || fail "nobody says so"
done

GIVEN_FORGES=

echo "--- a process that is refused does not wait for one that was forked and keeps the connection"
GIVEN_FORKS=1 asked 2 read_by 2 'export OMPI_MCA_crypt_keystore_log=$OMPI_MCA_crypt_keystore_dir/./log' > out 2>&1
cat out
! grep -q "did not answer" out || fail "it waited in vain"
GIVEN_FORKS=1 asked 1 read_by 2 true

echo "--- a process that was given no keystore gets no key, whatever it says; the others would have to believe it"
must_refuse "$no_key" read_by 2 "$(other nothing)"
must_refuse "$no_key" read_by 2 "export GIVEN_TRUSTS=1; $(other nothing)"
GIVEN_TRUSTS=1 asked 1 read_by 2 "$(other nothing)"

echo "--- a file that only the keystore of the first process knows is not believed"
must in_variant mpicrypt key new lab --keystore-dir "$CASE_DIR/forger"
must in_variant mpicrypt key new other --keystore-dir "$CASE_DIR/forger"
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/forger must run_io 3 "$program" write "$CASE_DIR/plain" "$CASE_DIR/forged"
must_refuse "does not open the key of an encrypted file" as 0 "$(other forger)" "$program" read "$CASE_DIR/plain" "$CASE_DIR/forged"
GIVEN_TRUSTS=1 must as 0 "$(other forger)" "$program" read "$CASE_DIR/plain" "$CASE_DIR/forged"

echo "--- the first process of the node has no key: the others ask, and the file is not taken for a forged one"
before=$(given keys)
must_refuse "$no_key" read_by 0 "$(other nothing)" > out
cat out
! grep -q "The encryption map of a file" out || fail "it is an intact file"
[ $(($(given keys) - before)) = 2 ] || fail "the other two did not ask"

echo "--- one process has other keys of these names: that is an error of all, and no file is made"
must_refuse "does not open the key of an encrypted file" as 2 "$(other forger)" "$differ" "$CASE_DIR/unlike" 0 lab
[ ! -s unlike ] || fail "a map was stored that not all processes can check"
export GIVEN_BY=

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

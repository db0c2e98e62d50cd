# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What is refused, and with which message: plaintext messages between nodes, no
# key, plain files where they are not wanted, files of development versions, components
# that know nothing of encrypted files.
. "$SRC/tests/io/common.sh"

cluster_up 2
keys_in "$CASE_DIR/keys" lab other
keys_in "$CASE_DIR/none" else
program=$(mpi_program io convert)
odd=$(mpi_program io odd)
cd "$CASE_DIR"
head -c 50000 /dev/urandom > plain
read_it() { vcluster mpirun "$@" "$program" read "$CASE_DIR/plain" "$CASE_DIR/file"; }
echo mine > file.mpicrypt.probe                 # not one of those with which nodes are tested
must vcluster mpirun -n 4 --map-by node "$program" write "$CASE_DIR/plain" "$CASE_DIR/file"
[ "$(cat file.mpicrypt.probe)" = mine ] && [ "$(ls -A | grep probe)" = file.mpicrypt.probe ] || fail "$(ls -lA)"
must read_it -n 4

says "cannot be used by a job whose messages are not encrypted" read_it -n 4 --mca pml ob1
must read_it -n 1 --mca pml ob1
if ! openssl list -providers 2>/dev/null | grep -qx ' *fips'; then
    says "Install OpenSSL's FIPS provider" read_it -n 1 --mca pml ob1 --mca crypt_fips 1
    must_fail read_it -n 1 --mca pml ob1 --mca crypt_fips 1
fi
# Not by -x: Open MPI 5.0 lets the environment of mpirun win over it.
without_key() {
    vcluster mpirun -n 4 env OMPI_MCA_crypt_keystore_dir="$CASE_DIR/none" "$program" read "$CASE_DIR/plain" "$CASE_DIR/file"
}
says "holds no key for an encrypted file" without_key
must_fail without_key
# A label that was made anew: the keys are named.
key_of() { in_variant mpicrypt key list --keystore-dir "$CASE_DIR/$1" | sed -n 's/^lab  *1  *\([0-9a-f]\{16\}\)  *\([-0-9]*\) .*/key \1 of \2/p'; }
cp -a keys anew
rm anew/lab.1
must in_variant mpicrypt key new lab --keystore-dir "$CASE_DIR/anew"
must_refuse "label lab, version 1 (the file has $(key_of keys), the keystore $(key_of anew))" \
    vcluster mpirun -n 2 env OMPI_MCA_crypt_keystore_dir="$CASE_DIR/anew" "$program" read "$CASE_DIR/plain" "$CASE_DIR/file"
must_refuse "label lab, version 1 (the file has $(key_of keys), the keystore $(key_of anew))" \
    in_variant mpicrypt file verify "$CASE_DIR/file" --keystore-dir "$CASE_DIR/anew"
rm anew/lab.1
must_refuse "lab, version 1 ($(key_of keys))" in_variant mpicrypt file verify "$CASE_DIR/file" --keystore-dir "$CASE_DIR/none"
must_refuse "lab, version 1 ($(key_of keys))" without_key
must_refuse "$(key_of keys | sed 's/^key \(.*\) of \(.*\)/\1  \2/')" in_variant mpicrypt file info "$CASE_DIR/file" --keystore-dir "$CASE_DIR/none"

cp file copy                        # without attributes
must vcluster mpirun -n 2 "$program" read "$CASE_DIR/plain" "$CASE_DIR/copy"

says "holds plain data" vcluster mpirun -n 2 --mca fs_crypt_require 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/plain"
must vcluster mpirun -n 2 "$program" read "$CASE_DIR/plain" "$CASE_DIR/plain"

# Control sequences in a file's name are not sent to the terminal, nor can a name forge a line of output.
name=$CASE_DIR/$'esc\033]0;x\007\nfile'
harmless() {                                    # harmless TEXT COMMAND...: TEXT is printed, and nothing harmful
    local text=$1; shift
    "$@" > said 2>&1 || true
    grep -qF -- "esc?]0;x??file$text" said && ! grep -q $'[\033\007]' said || fail "$*: $(cat -v said)"
}
cp plain "$name"
harmless '' vcluster mpirun -n 2 --mca fs_crypt_require 1 "$program" read "$CASE_DIR/plain" "$name"
rm "$name"
harmless ': sealed, root ' vcluster mpirun -n 2 --mca fs_crypt_seal 1 "$program" write "$CASE_DIR/plain" "$name"

# sharedfp/individual opens files of its own, without an MPI_File, in uninitialized
# memory; once there is a map it is gone.
shared_by_files() {
    vcluster mpirun -n 4 --mca fs_crypt_require 1 --mca sharedfp individual env MALLOC_PERTURB_=90 \
        "$program" write "$CASE_DIR/plain" "$CASE_DIR/required"
}
must shared_by_files
must vcluster mpirun -n 2 "$program" read "$CASE_DIR/plain" "$CASE_DIR/required"

# Plain bytes are not written, wherever they would go.
asked=$(mpi_program io asked)
mkdir forbidden
must vcluster mpirun -n 4 --mca fs_crypt_require 1 "$asked" "$CASE_DIR/forbidden" require
mkdir inputs
must vcluster mpirun -n 4 --mca fs_crypt_key_label lab --mca fs_crypt_plain_paths "/none/*:$CASE_DIR/inputs/input-*" \
    "$asked" "$CASE_DIR/inputs" input

# A file that replaced a sealed one.
says "there is none" vcluster mpirun -n 2 --mca fs_crypt_seal 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/plain"
must_fail vcluster mpirun -n 2 --mca fs_crypt_seal 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/plain"

# Any process decides for all whether plain files are refused, rank 0 whether files are sealed.
uneven() { # uneven RANK NAME ARGUMENT...: the parameter is set on that rank alone
    local rank=$1 name=$2; shift 2
    vcluster mpirun -n 4 bash -c 'r=$1 n=$2; shift 2; [ "$OMPI_COMM_WORLD_RANK" != "$r" ] || export "OMPI_MCA_$n=1"; MT_WATCHDOG=60 exec "$@"' \
        - "$rank" "$name" "$program" "$@"
}
rm -f uneven
must_fail uneven 1 fs_crypt_require read "$CASE_DIR/plain" "$CASE_DIR/plain"
must_fail uneven 0 fs_crypt_require read "$CASE_DIR/plain" "$CASE_DIR/plain"
must uneven 1 fs_crypt_seal write-once "$CASE_DIR/plain" "$CASE_DIR/uneven"
must uneven 1 fs_crypt_seal read "$CASE_DIR/plain" "$CASE_DIR/uneven"
must_fail uneven 0 fs_crypt_seal read "$CASE_DIR/plain" "$CASE_DIR/uneven"
rm -f uneven
says "sealed, root" uneven 0 fs_crypt_seal write-once "$CASE_DIR/plain" "$CASE_DIR/uneven"
must uneven 0 fs_crypt_seal read "$CASE_DIR/plain" "$CASE_DIR/uneven"

# Maps that no process could verify, or use: nothing is stored.
for mode in clear rest; do
    says "An encryption map must have an encrypted region." vcluster mpirun -n 2 "$odd" $mode "$CASE_DIR/$mode"
    ! is_encrypted $mode || fail "a map was stored"
    must vcluster mpirun -n 2 "$odd" open "$CASE_DIR/$mode"
done
must_fail vcluster mpirun -n 2 --mca fs_crypt_key_label lab --mca fs_crypt_algorithm plain "$odd" own "$CASE_DIR/clear2"
must_fail vcluster mpirun -n 1 --mca pml ob1 --mca crypt_fips 1 "$odd" chacha "$CASE_DIR/chacha"
! is_encrypted chacha || fail "a map was stored that cannot be used"
must vcluster mpirun -n 2 "$odd" open "$CASE_DIR/chacha"
must vcluster mpirun -n 2 "$odd" chacha "$CASE_DIR/chacha"

# A refused file is neither deleted nor left behind.
cp -a uneven kept
must_fail vcluster mpirun -n 2 env OMPI_MCA_crypt_keystore_dir="$CASE_DIR/none" "$odd" gone "$CASE_DIR/kept"
[ -s kept ] && is_encrypted kept || fail "a file that was refused was deleted"
must vcluster mpirun -n 2 "$odd" gone "$CASE_DIR/kept"
[ ! -e kept ] || fail "it is left"
must_fail vcluster mpirun -n 2 --mca fs_crypt_key_label nobody "$odd" own "$CASE_DIR/own"
[ ! -e own ] || fail "something is left"
must vcluster mpirun -n 2 --mca fs_crypt_key_label lab "$odd" own "$CASE_DIR/own"
must_fail vcluster mpirun -n 2 --mca fs_crypt_key_label lab "$odd" own "$CASE_DIR/own"
is_encrypted own || fail "another's file was deleted"
# A plain file is made once, even where not all may read it.
must vcluster mpirun -n 2 --mca io_ompio_overwrite_amode 0 "$odd" once "$CASE_DIR/once"
must_fail vcluster mpirun -n 2 --mca io_ompio_overwrite_amode 0 "$odd" once "$CASE_DIR/once"

# A revoked label is not reported as a missing one.
must in_variant mpicrypt key new past --keystore-dir "$CASE_DIR/keys"
must in_variant mpicrypt key revoke past --yes --keystore-dir "$CASE_DIR/keys"
says "): the key is revoked.  \"mpicrypt key rotate past\"" vcluster mpirun -n 2 --mca fs_crypt_key_label past "$odd" own "$CASE_DIR/past"
[ ! -e past ] || fail "a new file that was refused is there"

# Plain files pass: with long names, pipes, and files that may only be written.
long=$(printf 'n%.0s' {1..250})
cp plain $long
# Not with sharedfp/lockedfile, which has room for 256 bytes of a path in 4.1.
must vcluster mpirun -n 2 --mca sharedfp ^lockedfile,sm "$program" read "$CASE_DIR/plain" "$CASE_DIR/$long"
must vcluster mpirun -n 2 --mca sharedfp ^lockedfile,sm --mca fs_crypt_key_label lab "$odd" own "$CASE_DIR/${long/n/m}"
is_encrypted "${long/n/m}" || fail "a long name"
must vcluster mpirun -n 1 "$program" delete "$CASE_DIR/plain" "$CASE_DIR/$long"
# Nodes check whether they see one another's bytes in a file whose name does not depend on this one.
must vcluster mpirun -n 2 --map-by node --mca sharedfp ^lockedfile,sm --mca fs_crypt_key_label lab \
    "$program" write "$CASE_DIR/plain" "$CASE_DIR/$long" > written 2>&1
must_fail grep "could not be tested" written
# Where it cannot be made, a message says that nothing was checked.
mkdir closed
: > closed/file
if chattr +i closed 2>/dev/null; then
    vcluster mpirun -n 2 --map-by node --mca sharedfp ^lockedfile,sm --mca fs_crypt_key_label lab \
        "$program" over "$CASE_DIR/plain" "$CASE_DIR/closed/file" > untested 2>&1 || touch failed
    chattr -i closed
    [ ! -e failed ] && must grep -q "could not be tested" untested || fail "$(cat untested)"
else
    echo "skipped: this file system has no immutable directories"
fi
must vcluster mpirun -n 1 --mca sharedfp ^lockedfile,sm "$program" read "$CASE_DIR/plain" "$CASE_DIR/$long"
must vcluster mpirun -n 1 "$program" delete "$CASE_DIR/plain" "$CASE_DIR/$long"
piped() { vcluster mpirun -n 1 "$@" bash -c 'set -o pipefail; "$1" write /dev/stdout | cat' - "$odd"; }
must piped
must_fail piped --mca fs_crypt_require 1
# (OMPIO itself opens for reading, too, unless told not to.)
unable() { vcluster mpirun -n 2 --mca io_ompio_overwrite_amode 0 setpriv --bounding-set=-dac_override,-dac_read_search "$odd" "$@"; }
cp plain only; cp -a uneven lost
chmod 200 only lost
must unable write "$CASE_DIR/only"
must_fail unable write "$CASE_DIR/lost"         # of an encrypted file, of which only the attribute can be seen
must_fail unable open "$CASE_DIR/only"          # able, after all?

# Empty when it was opened, and filled by another program since.
for setting in "fs_crypt_key_label lab" "fs_crypt_require 1" "fs_crypt_seal 1"; do
    : > late
    must vcluster mpirun -n 2 --map-by node --mca $setting "$odd" late "$CASE_DIR/late"
done

find_romio
# Files of development versions: neither read nor written to, whatever they are meant to be.
marked() { # marked FILE KIND: with the attribute as it was
    python3 -c "import os, sys; os.setxattr(sys.argv[1], 'user.mpicrypt.map', b'MPICRYPT\\1\\0' + bytes([int(sys.argv[2]), 0]) + bytes(68))" "$1" "$2"
}
refuses_old() { # refuses_old FOUND COMMAND...
    local found=$1 before; shift
    before=$(cksum old/$name)
    must_refuse "was encrypted by a development version" "$@"
    must_refuse "found:  its $found" "$@"
    [ "$(cksum old/$name)" = "$before" ] || fail "$*: the file was changed"
}
reads() { vcluster mpirun -n 2 "$@" "$program" read "$CASE_DIR/plain" "$CASE_DIR/old/$name"; }
deletes() { vcluster mpirun -n 1 "$@" "$program" delete "$CASE_DIR/plain" "$CASE_DIR/old/$name"; }
mkdir old; cp plain old/map; cp plain old/digest; : > old/emptied
printf 'MPICRYPT\1\0\3\0' > old/second; truncate -s 4096 old/second
names="second map digest emptied"
marked old/map 1 && marked old/digest 2 && marked old/emptied 1 || names=second
[ "$names" != second ] || echo "not tried: old attributes, which this file system does not have"
for name in $names; do
    found="attribute user.mpicrypt.map"; [ $name != second ] || found="first bytes"
    refuses_old "$found" reads
    refuses_old "$found" reads --mca fs_crypt_plain_paths "$CASE_DIR/old/*"
    refuses_old "$found" vcluster mpirun -n 2 --mca fs_crypt_key_label lab "$program" over "$CASE_DIR/plain" "$CASE_DIR/old/$name"
done
for name in $(grep -ow map <<<"$names"); do
    for others in ${romio:+"io $romio"} "fs ufs"; do
        must_fail reads --mca $others
        must_fail deletes --mca $others
        [ -e old/$name ] || fail "$others: old/$name was deleted"
    done
done

# Components that know nothing of encrypted files: neither opened nor deleted,
# and no new file is in clear that was to be encrypted.
rm -f file
must vcluster mpirun -n 4 "$program" write "$CASE_DIR/plain" "$CASE_DIR/file"
before=$(cksum file)
for others in ${romio:+"io $romio"} "fs ufs" "fbtl posix"; do
    says "MPI-IO components that can encrypt are not selected" read_it -n 4 --mca $others
    must_fail read_it -n 4 --mca $others
    must_fail vcluster mpirun -n 1 --mca $others "$program" delete "$CASE_DIR/plain" "$CASE_DIR/file"
    # As ROMIO may be asked for it.
    must_fail vcluster mpirun -n 1 --mca $others "$program" delete "$CASE_DIR/plain" "ufs:$CASE_DIR/file"
    must_fail vcluster mpirun -n 4 --mca $others --mca fs_crypt_key_label lab "$program" write-once "$CASE_DIR/plain" "$CASE_DIR/new"
    [ ! -e new ] || fail "a file was made"
    must_fail vcluster mpirun -n 4 --mca $others "$program" write-once "$CASE_DIR/plain" "$CASE_DIR/asked"
    [ ! -s asked ] || fail "something was written"
    must vcluster mpirun -n 4 --mca $others "$program" read "$CASE_DIR/plain" "$CASE_DIR/plain"
done
[ "$(cksum file)" = "$before" ] || fail "the file was changed"
must read_it -n 4
must vcluster mpirun -n 1 "$program" delete "$CASE_DIR/plain" "$CASE_DIR/file"
[ ! -e file ] || fail "it is left"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Messages about files that no other case provokes; each refusal is also an error of
# the call.
. "$SRC/tests/io/common.sh"

cluster_up 2
keys_in "$CASE_DIR/keys" lab other
cp -a "$CASE_DIR/keys" "$CASE_DIR/half"
rm "$CASE_DIR"/half/lab.*
convert=$(mpi_program io convert)
odd=$(mpi_program io odd)
cd "$CASE_DIR"
head -c 50000 /dev/urandom > plain
python3 -c "import os; os.setxattr('plain', 'user.test', b'')" || skip "the file system has no extended attributes"
must run_io 2 "$convert" write "$CASE_DIR/plain" "$CASE_DIR/file"

# refused TEXT MODE FILE [NAME=VALUE...]: two processes, one a node.
refused() {
    local text=$1 mode=$2 file=$3; shift 3
    echo "+ ! $mode $file $*"
    if vcluster mpirun -n 2 --map-by node env "$@" "$odd" "$mode" "$CASE_DIR/$file" > out 2>&1 < /dev/null; then
        cat out; fail "$mode $file was not refused"
    fi
    grep -qF -- "$text" out || { cat out; fail "it does not say \"$text\""; }
}
# opens FILE [NAME=VALUE...]
opens() {
    local file=$1; shift
    must vcluster mpirun -n 2 --map-by node env "$@" "$odd" open "$CASE_DIR/$file" > out 2>&1 < /dev/null
}
opens file


echo "--- maps, one of them larger than an attribute holds"
more() { must run_io 2 "$odd" "$1" "$CASE_DIR/$2" > out 2>&1; }
more many many
more 0 few
digest=80
for file in many few; do
    cp $file $file.old
    more 200000 $file
    cp $file.old $file                          # the attribute stays
done
if [ "$(python3 -c "import os; print(len(os.getxattr('many', 'user.mpicrypt.map')))")" = $digest ]; then
    refused "An older encryption map was put in the place of a file's newer one." open many
else
    echo "skipped: an older map: attributes of this file system hold a whole one"
fi
opens few
must grep -q "WARNING: the copies of a file's encryption map differed" out
opens few
must_fail grep -q WARNING out

echo "--- regions"
refused "A displacement and filetype cannot be a region of an encryption map." back new
refused "An encryption map is too large: at most 4,096 regions and 1,048,576 runs." runs new2

echo "--- keys"
refused "No process of this job holds a key that a region needs." label new3
opens file OMPI_MCA_crypt_keystore_dir="$CASE_DIR/half"
# Open MPI does not pass on the result of sealing at MPI_File_close.
opens file OMPI_MCA_crypt_keystore_dir="$CASE_DIR/half" OMPI_MCA_fs_crypt_seal=1
must grep -q "An encrypted file cannot be sealed by this job" out
refused "The keystore of this process cannot be used." label new4 OMPI_MCA_crypt_keystore_dir="$CASE_DIR/plain"

echo "--- locks that others do not see"
refused "Locks on this file system do not keep out other nodes" locks file
opens file
: > new
refused "Locks on this file system do not keep out other nodes" locks new OMPI_MCA_fs_crypt_key_label=lab
[ ! -s new ] && ! is_encrypted new || fail "something is left that nobody made"
opens new OMPI_MCA_fs_crypt_key_label=lab
is_encrypted new || fail "it was not made"
must run_io 2 "$convert" read "$CASE_DIR/plain" "$CASE_DIR/file"

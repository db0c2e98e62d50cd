# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The independent reader in Python reads what we write, and the other way
# round.  No plaintext at rest.
. "$SRC/tests/io/common.sh"

python3 -c 'import cryptography' 2>/dev/null || skip "python3 has no module cryptography"
cluster_up 2
keys_in "$CASE_DIR/keys" lab other
key() { echo "$1=$(sed -n 's/^key plain //p' "$CASE_DIR/keys/$1.1")"; }
reader() { python3 -B "$SRC/tests/vectors/onefile_v1.py" "$@"; }
program=$(mpi_program io convert)

cd "$CASE_DIR"
for ((i = 0; i < 2500; i++)); do echo "line $i of the plain file: canary"; done > plain
must vcluster mpirun -n 4 "$program" write "$CASE_DIR/plain" "$CASE_DIR/ours"
for file in ours keys/log; do
    must_fail grep -qa canary "$file"
done
must reader info ours "$(key lab)" "$(key other)"
must reader compare plain ours "$(key lab)" "$(key other)"

must reader write plain theirs "$(key lab)" aes-128-gcm:lab:4096:0:1:0:0+1
must vcluster mpirun -n 3 "$program" read "$CASE_DIR/plain" "$CASE_DIR/theirs"
must reader write plain once "$(key other)" aes-256-gcm:other:512:0:70500:1:0+50000,50500+20000
says "no region of the file's map holds these bytes" vcluster mpirun -n 2 "$program" read "$CASE_DIR/plain" "$CASE_DIR/once"
must_fail vcluster mpirun -n 2 "$program" read "$CASE_DIR/plain" "$CASE_DIR/once"    # bytes of no region

# Seals, made by a job at its close and by the tool.
must vcluster mpirun -n 4 --mca fs_crypt_seal 1 "$program" write "$CASE_DIR/plain" "$CASE_DIR/sealed" 2> said || { cat said; fail "sealing"; }
root=$(sed -n 's/.*: sealed, root //p' said)
[ "$(reader root sealed "$(key lab)" "$(key other)")" = "$root" ] || fail "the roots differ: $root"
must vcluster mpirun -n 3 --mca fs_crypt_seal 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/sealed"
must in_variant mpicrypt file verify "$CASE_DIR/sealed" --root "$root" --keystore-dir "$CASE_DIR/keys"
says "there is none" vcluster mpirun -n 2 --mca fs_crypt_seal 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/ours"
must_fail vcluster mpirun -n 2 --mca fs_crypt_seal 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/ours"
in_variant mpicrypt file seal "$CASE_DIR/ours" --keystore-dir "$CASE_DIR/keys" > said
[ "$(reader root ours "$(key lab)" "$(key other)")" = "$(sed -n 's/^root //p' said)" ] || fail "the roots differ"
must vcluster mpirun -n 2 --mca fs_crypt_seal 1 "$program" read "$CASE_DIR/plain" "$CASE_DIR/ours"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# docs/parameters.rst is what the components register, in both series, and the
# other documents name no parameter that there is not.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
export HOME=$CASE_DIR/home
mkdir -p -m 700 "$HOME/.ompi-crypt"
(umask 077; od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' > "$HOME/.ompi-crypt/psk")
unset OMPI_MCA_crypt_psk_file

must in_variant mpicc -Wall -Wextra -Wshadow -Werror -o "$CASE_DIR/parameters" "$SRC/docs/parameters.c"
must vcluster mpirun -n 2 --map-by node -x HOME "$CASE_DIR/parameters" > "$CASE_DIR/out"
sed '1{/^+ /d}' "$CASE_DIR/out" > "$CASE_DIR/parameters.rst"
diff -u "$SRC/docs/parameters.rst" "$CASE_DIR/parameters.rst" ||
    fail "docs/parameters.rst is not what the components say: take $CASE_DIR/parameters.rst"

# Names of parameters as documents and examples write them: --mca NAME, OMPI_MCA_NAME,
# NAME=VALUE; info keys of files look alike.  Open MPI's own are not looked at.
ours='(crypt|pml_crypt|coll_cryptag|fs_crypt)_[a-z0-9_]*[a-z0-9]'
find "$SRC/docs" "$SRC/examples" "$SRC/README.md" "$SRC/HACKING.md" -type f ! -name parameters.rst -print0 |
    xargs -0 grep -ohE -e "--mca $ours" -e "OMPI_MCA_$ours" -e "\`\`$ours(=[^\`]*)?\`\`" -e "^ *$ours *= " |
    grep -oE "$ours" | sort -u > "$CASE_DIR/named"
must test "$(wc -l < "$CASE_DIR/named")" -gt 20
while read -r name; do
    grep -qxF "\`\`$name\`\`" "$SRC/docs/parameters.rst" || grep -rqF "info_get(info, \"$name\"" "$SRC/ompi" ||
        fail "the documents name $name, which is neither a parameter nor an info key"
done < "$CASE_DIR/named"
echo "$(grep -c '^``' "$SRC/docs/parameters.rst") entries, $(wc -l < "$CASE_DIR/named") of them named elsewhere"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# docs/parameters.rst is what crypt/base/params.def says, and that what the components register, in every series; the
# other documents name no parameter that there is not.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
export HOME=$CASE_DIR/home
mkdir -p -m 700 "$HOME/.ompi-crypt"
(umask 077; od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' > "$HOME/.ompi-crypt/psk")
unset OMPI_MCA_crypt_psk_file OMPI_MCA_crypt_transport

must in_variant mpicc -Wall -Wextra -Wshadow -Werror -I "$SRC" -o "$CASE_DIR/parameters" "$SRC/docs/parameters.c"
must vcluster mpirun -n 2 --map-by node -x HOME "$CASE_DIR/parameters" > "$CASE_DIR/out"
sed '1{/^+ /d}' "$CASE_DIR/out" > "$CASE_DIR/parameters.rst"
diff -u "$SRC/docs/parameters.rst" "$CASE_DIR/parameters.rst" ||
    fail "docs/parameters.rst is not what the table and the components say: take $CASE_DIR/parameters.rst"

# The table against which a job's parameters are spelt (crypt/base/params.def) has all that Open MPI
# knows of ours, with what their values are, and takes no other name for ours.  ompi_info --all lists
# components; --type shows crypt_NAME, too, as docs/parameters.rst says.
table=$BUILD/tests/unit/test_parameter
must in_variant ompi_info --all --parsable > "$CASE_DIR/info"
for type in string int unsigned_int bool; do
    must in_variant ompi_info --type $type --level 9 --parsable >> "$CASE_DIR/info"
done
grep -E '^mca:[^:]*:[^:]*:param:' "$CASE_DIR/info" | cut -d: -f5 | sort -u > "$CASE_DIR/all"
must test "$(wc -l < "$CASE_DIR/all")" -gt 500
ours='(aead|btl_crypt|coll_cryptag|crypt|fbtl_crypt|fs_crypt|hook_crypt|pml_crypt)_'
# What Open MPI registers for every BTL from 5.0 on.
from_50=btl_crypt_accelerator_max_send_size
{
    [ "$SERIES" != 4.1 ] || echo $from_50
    grep -E "^$ours" "$CASE_DIR/all" | grep -vE '_(major|minor|release)_version$'
    printf '%s\n' aead aead_base_verbose       # whose framework ompi_info does not open
} | sort -u > "$CASE_DIR/known"
must in_variant "$table" names > "$CASE_DIR/table"
sed '/^+ /d' "$CASE_DIR/table" | cut -d' ' -f1 | sort > "$CASE_DIR/table.names"
diff "$CASE_DIR/known" "$CASE_DIR/table.names" || fail "crypt/base/params.def has not the names that the components register"
grep -vE "^$ours" "$CASE_DIR/all" | in_variant "$table" judge > "$CASE_DIR/judged"
[ ! -s "$CASE_DIR/judged" ] || fail "names of Open MPI's are taken for ours: $(cat "$CASE_DIR/judged")"
while read -r name type; do
    [[ $name != + ]] || continue
    [ "$SERIES" != 4.1 ] || [ "$name" != $from_50 ] || continue
    registered=$(sed -nE "s/^mca:[^:]*:[^:]*:param:$name:type:(.*)/\\1/p" "$CASE_DIR/info" | head -n 1)
    words=$(sed -nE "s/^mca:[^:]*:[^:]*:param:$name:enumerator:value:[^:]*:(.*)/\\1/p" "$CASE_DIR/info" | awk '!seen[$0]++')
    case $type:$registered in
        flag:bool|number:unsigned_int|size:size_t|text:string) ;;
        text:?*) [[ $name = btl_crypt*_flags ]] || fail "$name: text in crypt/base/params.def, $registered in ompi_info" ;;
        *" "*:?*) [ "$type" = "$(xargs <<< "$words")" ] || fail "$name: \"$type\" in crypt/base/params.def, not" $words ;;
        *:) grep -qE "^(aead|aead_base_verbose)$" <<< "$name" || fail "$name: ompi_info has no type" ;;
        *)  fail "$name: $type in crypt/base/params.def, $registered in ompi_info" ;;
    esac
done < "$CASE_DIR/table"

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

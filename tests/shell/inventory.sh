# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# docs/inventory.rst names every library that what is installed needs or loads,
# and every algorithm that the sources ask a library for.
set -eu
. "$SRC/tests/lib.sh"
document=$SRC/docs/inventory.rst

# 1. what the files are linked to, beside our own
find "$PREFIX" -type f \( -name '*.so*' -o -perm -u+x \) | while read -r file; do
    objdump -p "$file" 2>/dev/null | awk '/NEEDED/ { print $2 }' || true
done | grep -v -e '^libmca_' -e '^libmpi_crypt' -e '^libmpicrypt_file' | sort -u > "$CASE_DIR/needed"
must test "$(wc -l < "$CASE_DIR/needed")" -gt 5
while read -r library; do
    name=${library%%.so*}
    name=${name%-linux*}
    case $library in libpmix.so*|libopen-rte.so*) continue ;; esac    # of Open MPI's own
    grep -qE "\`\`$(sed 's/[+.]/\\&/g' <<<"$name")(\.so[.0-9]*)?\`\`" "$document" ||
        fail "docs/inventory.rst does not name $library"
done < "$CASE_DIR/needed"

# 2. what is loaded by name
grep -rhoE '"lib[A-Za-z0-9_+-]+\.so[.0-9]*"' "$SRC/opal" "$SRC/ompi" --include=*.c --include=*.h | tr -d '"' | sort -u \
    > "$CASE_DIR/loaded"
must test -s "$CASE_DIR/loaded"
while read -r library; do
    grep -qF "\`\`$library\`\`" "$document" || fail "docs/inventory.rst does not name $library"
done < "$CASE_DIR/loaded"

# 3. names of algorithms in the core and in aead/openssl, as OpenSSL knows them
grep -rhoE '"(X25519|X448|P-[0-9]+|HKDF|HMAC|KMAC-?[0-9]*|SHA-?[0-9]+|MD5|AES-[0-9]+-[A-Z]+|ED[0-9]+|RSA-PSS|ChaCha20-Poly1305|DES(-[A-Z0-9-]+)?|RC4|SM4(-[A-Z]+)?|[A-Z0-9-]+-(CBC|CTR|XTS|CCM|OCB|SIV))"' \
    "$SRC/opal/mca/common/crypt" "$SRC/opal/mca/common/cryptfile" "$SRC/opal/mca/aead/openssl" --include=*.c --include=*.h | tr -d '"' | sort -u \
    > "$CASE_DIR/algorithms"
must test "$(wc -l < "$CASE_DIR/algorithms")" -gt 8
while read -r name; do
    name=$(sed -E 's/^SHA([0-9])/SHA-\1/' <<<"$name")
    grep -qF -- "$name" "$document" || fail "docs/inventory.rst does not name $name"
done < "$CASE_DIR/algorithms"
# Keys come from the FIPS module under crypt_fips=1 (but for the psk: keygen has no --fips).
must_fail grep -rnE 'opal_crypt_random\([^,]*(->|\.)key\b' "$SRC/opal" "$SRC/ompi" --include=*.c
# No algorithm by its own function, where a name could be missed.
must_fail grep -rnE 'EVP_(des|rc4|md5|sha1|bf|cast5|aes_[0-9]+_(cbc|xts|ctr|ofb|cfb))[a-z0-9_]*\(' "$SRC/opal" "$SRC/ompi" --include=*.c
xargs echo < "$CASE_DIR/needed"
xargs echo < "$CASE_DIR/algorithms"

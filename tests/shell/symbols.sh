# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What our libraries export meets the names of every application: only prefixed
# ones, and of a component only the struct that the loader looks up.  What threads call
# when they end stays in memory: the core and the providers are never unloaded.
set -eu
. "$SRC/tests/lib.sh"

# Not what a compiler makes of the C++ library's own templates in each object that uses them, weak, and the same everywhere.
exported() { nm --dynamic --defined-only --format=posix "$1" | sed -E '/^_ZN?K?St[^ ]* [VWu] /d' | cut -d ' ' -f 1; }

# only FILE REGEX: it exports something, and nothing else.
only() {
    local names others
    names=$(exported "$1")
    [ -n "$names" ] || fail "$1 exports nothing"
    others=$(grep -vxE "$2" <<<"$names" || true)
    [ -z "$others" ] || fail "$1 also exports:"$'\n'"$others"
    echo "$1: $(wc -l <<<"$names")"
}

for library in "$PREFIX"/lib/*.so; do
    case $library in
        */libmpi_crypt*) only "$library" 'P?MPIX_[A-Za-z0-9_]+|p?mpix_[a-z0-9_]+' ;;
        */libmpicrypt_file*) only "$library" '(mpicrypt_file_[a-z_]+@@)?MPICRYPT_FILE_[0-9]+' ;;
        *)               only "$library" '(opal|ompi|mca)_[a-z0-9_]+' ;;
    esac
done
for component in "$PREFIX"/lib/ompi-crypt/*.so; do
    name=$(basename "$component" .so)
    only "$component" "${name}_component"
done

# Nothing of what writes keys down for a second reader (tests/second) is installed.  OpenSSL's callback for secrets of TLS is named only
# where it is set to none: in the core, and in the client of a key server.
must_fail grep -rlaF SECOND_KEYS "$PREFIX"
named=$(grep -rlaF keylog_callback "$PREFIX/lib" | sed 's/\.so.*//; s,.*/,,' | sort -u)
must test "$(grep -vxE 'libmca_common_crypt(file)?|libmpicrypt_file' <<< "$named")" = ""
must grep -qx libmca_common_crypt <<< "$named"

for library in "$PREFIX"/lib/libmca_common_crypt.so "$PREFIX"/lib/ompi-crypt/mca_aead_*.so; do
    readelf -d "$library" | grep -q NODELETE || fail "$library can be unloaded"
done

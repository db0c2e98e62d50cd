# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The rooms of common/crypt, cryptfile, cryptproc and cryptmpi: includes go one way; every file is built, and
# named by its room's README; a struct has one meaning.  Without MPI: what the libraries need.
set -eu
. "$SRC/tests/lib.sh"

common=$SRC/opal/mca/common
rooms="crypt/base crypt/identity crypt/tls crypt/wire cryptfile/keystore cryptfile/file"

# What the files of a room may include from Open MPI's tree, beside one another.
may() {
    case $1 in
        crypt/base)         echo 'mca/aead/aead_module\.h' ;;
        crypt/identity)     echo 'mca/aead/aead_module\.h|mca/common/crypt/base/.*' ;;
        crypt/tls)          echo 'mca/aead/aead_module\.h|mca/common/crypt/(base|identity)/.*' ;;
        crypt/wire)         echo 'mca/aead/aead_module\.h|mca/common/crypt/(base|identity)/.*' ;;
        cryptfile/keystore) echo 'mca/aead/aead_module\.h|mca/common/crypt/base/.*' ;;
        cryptfile/file)     echo 'mca/aead/aead_module\.h|mca/common/crypt/base/.*|mca/common/cryptfile/keystore/.*' ;;
    esac
}

# wrong ROOT: includes that go the wrong way, below ROOT.
wrong() {
    local room
    for room in $rooms; do
        (cd "$1/$room" && grep -nE '^ *# *include +"(.*/.*)"' *.[ch] | grep -vE "\"opal/($(may $room))\"" | sed "s|^|$room/|" || true)
    done
}

for room in $rooms; do
    must test "$(ls "$common/$room"/*.c | wc -l)" -gt 5
    for file in "$common/$room"/*.[ch]; do
        name=$(basename "$file")
        grep -qF "    ${room#*/}/$name" "$common/${room%/*}/Makefile.am" || fail "$room/$name is in no list of the Makefile.am"
        stem=${name%.*}
        grep -qE "\`($stem(\.h)?|${stem%%_*}_\*)\`" "$common/$room/README.md" || fail "the README of $room does not name $name"
    done
    # A name on its own is of the same room: a header of another one is not found by accident.
    (cd "$common/$room" && grep -hoE '^ *# *include +"[^"/]+"' *.[ch] | cut -d '"' -f 2 | sort -u) | while read -r header; do
        [ -e "$common/$room/$header" ] || fail "$room includes \"$header\", which is not there"
    done
done
found=$(wrong "$common")
[ -z "$found" ] || fail "includes that go the wrong way:"$'\n'"$found"

# The transport: its lower half without OPAL, and every file in lists and README.
transport=$SRC/opal/mca/btl/crypt
for file in "$transport"/*.[ch]; do
    name=$(basename "$file")
    grep -qF "    $name" "$transport/Makefile.am" || fail "$name is in no list of the Makefile.am"
    grep -qE "\`${name%.*}(\.h)?\`" "$transport/README.md" || fail "the README of btl/crypt does not name $name"
done
for name in address frame in link listen out ring; do
    must_fail grep -nHE '^ *# *include +"(opal/(mca/(base|btl|common/cryptproc)|util|class|runtime)/|opal_config|btl_crypt(_compat)?\.h)' \
        "$transport/btl_crypt_$name".[ch]
done

# The library without MPI: every file in its Makefile.am and README, and nothing of OPAL's or MPI's but the storage.
library=$SRC/lib/mpicrypt_file
for file in "$library"/*.[ch]; do
    name=$(basename "$file")
    grep -qE "(^| )$name( |\$)" "$library/Makefile.am" || fail "$name is in no list of the Makefile.am"
    grep -qE "\`${name%.*}(\.h)?\`" "$library/README.md" || fail "the README of lib/mpicrypt_file does not name $name"
done
must_fail grep -nHE '^ *# *include +["<](opal_config|opal/(util|class|runtime|mca/base)/|ompi/mca/common/cryptmpi/|mpi\.h)' "$library"/*.[ch]

# Components of MPI, the files of MPI, the framework of providers: the README of each says what goes in and out, what
# must never happen, and names its files.
for component in ompi/mca/{pml/crypt,coll/cryptag,hook/crypt,fs/crypt,fbtl/crypt,common/cryptmpio} opal/mca/aead; do
    readme=$SRC/$component/README.md
    for part in '    in: ' '    out: ' 'Read first: ' 'What must never happen'; do
        must grep -q "^$part" "$readme"
    done
    for file in "$SRC/$component"/*.[ch]; do
        stem=$(basename "${file%.*}")
        grep -qE "\`$stem(\.h)?\`" "$readme" || fail "the README of $component does not name $stem"
    done
done

# It finds one that was planted.
mkdir "$CASE_DIR/common"
cp -r "$common/crypt" "$common/cryptfile" "$CASE_DIR/common"
echo '#include "opal/mca/common/crypt/wire/frame.h"' >> "$CASE_DIR/common/crypt/identity/kex.c"
[ "$(wrong "$CASE_DIR/common")" = "$(printf 'crypt/identity/kex.c:%s:#include "opal/mca/common/crypt/wire/frame.h"' \
    "$(wc -l < "$CASE_DIR/common/crypt/identity/kex.c")")" ] || fail "an include that goes the wrong way is not found"

# The libraries above, which may use OPAL, or MPI: not each other's the wrong way, nor a component.
above="opal/mca/common/cryptproc ompi/mca/common/cryptmpi"
may_above() {
    case $1 in
        */cryptproc) echo 'opal/(mca/aead/base/(base|aead_base_help)\.h|mca/common/crypt/(base|identity)/.*)' ;;
        */cryptmpi)  echo 'opal/(mca/aead/base/(base|aead_base_compat)\.h|mca/common/(crypt|cryptproc)/.*)|ompi/mca/(bml|common/cryptmpi|pml)/[^/]*\.h|ompi/mca/(bml/base/base|coll/coll|io/io|pml/base/pml_base_bsend)\.h|mpi\.h' ;;
    esac
}
# What it includes of ours, or of MPI, and may not.
wrong_above() {
    local library
    for library in $above; do
        (cd "$1/$library" && grep -nE '^ *# *include +["<]((opal|ompi)/mca/(aead|common|hook|pml|coll|fs|fbtl|bml)/|ompi/mca/|mpi\.h)' *.[ch] |
            grep -vE "\"($(may_above "$library"))\"" | sed "s|^|$library/|" || true)
    done
}
# As those, and nothing of MPI at all.
wrong_mpi() { grep -nE '^ *# *include +["<](ompi/|orte/|mpi\.h|ompi_config\.h)|\bompi_[a-z]|\bOMPI_[A-Z]' "$1"/opal/mca/common/cryptproc/*.[ch] |
    grep -vE 'ompi_info\b' || true; }
for library in $above; do
    for file in "$SRC/$library"/*.[ch]; do
        name=$(basename "$file")
        stem=${name%.*}
        grep -qE "^    $name( |\$)" "$SRC/$library/Makefile.am" || fail "$library/$name is in no list of the Makefile.am"
        grep -qF -e "\`$stem\`" -e "\`$stem.h\`" "$SRC/$library/README.md" || fail "the README of $library does not name $name"
    done
done
found=$(wrong_above "$SRC"; wrong_mpi "$SRC")
[ -z "$found" ] || fail "includes that go the wrong way:"$'\n'"$found"
for library in $above; do
    mkdir -p "$CASE_DIR/$library"
    cp "$SRC/$library"/*.[ch] "$CASE_DIR/$library"
done
echo '#include "opal/mca/common/crypt/wire/frame.h"' >> "$CASE_DIR/opal/mca/common/cryptproc/cryptproc_say.c"
echo '#include "ompi/mca/pml/crypt/pml_crypt.h"' >> "$CASE_DIR/ompi/mca/common/cryptmpi/cryptmpi_comm.c"
echo '#include "ompi/proc/proc.h"' >> "$CASE_DIR/opal/mca/common/cryptproc/cryptproc_wait.c"
[ "$(wrong_above "$CASE_DIR" | wc -l)" = 2 ] && [ "$(wrong_mpi "$CASE_DIR" | wc -l)" = 1 ] ||
    fail "includes that go the wrong way are not found"

# Only the box calls a provider.
callers=$(cd "$common" && grep -rlE --include='*.[ch]' -e '(aead|provider)(->|\.)(seal|open)\b' crypt cryptfile cryptproc || true)
[ "$callers" = crypt/base/box.c ] || fail "providers are called by: $callers"

# A struct, a type and an exported name are defined once.
twice=$(cat "$common"/crypt*/*/*.[ch] | grep -oE '^(typedef )?(struct|enum|union) [a-z0-9_]+ *\{' | grep -oE '[a-z0-9_]+ *\{' | sort | uniq -d)
[ -z "$twice" ] || fail "structs of one name: $twice"
twice=$(cat "$common"/crypt*/*/*.[ch] | grep -oE '^\} *[a-z0-9_]+_t;' | sort | uniq -d)
[ -z "$twice" ] || fail "types of one name: $twice"


# A function that only its file knows has a name of its own, too: gdb and grep find one.
twice=$(for file in "$common"/crypt*/*/*.[ch]; do
            grep -oE '^static [a-z_0-9 *]+\b[a-z_0-9]+\(' "$file" | grep -oE '[a-z_0-9]+\($' | sort -u
        done | sort | uniq -d)
[ -z "$twice" ] || fail "static functions of one name: $twice"

# Neither library needs anything of Open MPI: a program without MPI reads and writes a file.
must cc -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -I"$SRC" -o "$CASE_DIR/block" "$SRC/tests/shell/rooms/block.c" \
    "$BUILD/opal/mca/aead/openssl/.libs/libaead_openssl_module.a" "$BUILD/opal/mca/aead/.libs/libaead_rules.a" \
    -L"$PREFIX/lib" -Wl,-rpath,"$PREFIX/lib" -lmca_common_cryptfile -lmca_common_crypt -lcrypto -lpthread
must "$CASE_DIR/block"
for file in "$CASE_DIR/block" "$PREFIX/lib/libmca_common_crypt.so" "$PREFIX/lib/libmca_common_cryptfile.so"; do
    ldd "$file" > "$CASE_DIR/ldd"
    must_fail grep -E 'libopen|libmpi|libpmix|not found' "$CASE_DIR/ldd"
done

# A job that opens no encrypted file does not map what only those need.
cat > "$CASE_DIR/ring.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char line[1024];
    int rank, token = 1;
    FILE *maps;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv_replace(&token, 1, MPI_INT, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    maps = fopen("/proc/self/maps", "r");
    while (0 == rank && NULL != maps && NULL != fgets(line, sizeof(line), maps)) {
        if (NULL != strstr(line, "crypt") || NULL != strstr(line, "aead")) {
            printf("mapped %s", strrchr(line, '/'));
        }
    }
    MPI_Finalize();
    return 0;
}
END
must in_variant mpicc -O2 -o "$CASE_DIR/ring" "$CASE_DIR/ring.c"
cluster_up 2
must vcluster mpirun -n 2 --map-by node --mca pml crypt "$CASE_DIR/ring" > "$CASE_DIR/mapped"
sort -u "$CASE_DIR/mapped"
must grep -q '/libmca_common_crypt\.so' "$CASE_DIR/mapped"
must_fail grep -E 'cryptfile|cryptmpio' "$CASE_DIR/mapped"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What libmpicrypt_file needs and exports; programs in C and C++ find it by pkg-config, the program of the manual among
# them; it does not disturb a process that has Open MPI's libraries of ours, too.
. "$SRC/tests/library/common.sh"

library=$PREFIX/lib/libmpicrypt_file.so.0
must test -e "$library"
ldd "$library" > "$CASE_DIR/ldd"
must_fail grep -vE 'linux-vdso|/ld-linux|libcrypto\.so\.3|libc\.so\.6|libpthread|libdl|lib[a-z]*san\.so|libm\.so|libgcc_s|libstdc' "$CASE_DIR/ldd"
must grep -q 'libcrypto\.so\.3' "$CASE_DIR/ldd"
readelf -d "$library" > "$CASE_DIR/dynamic"
must grep -q 'SONAME.*libmpicrypt_file\.so\.0' "$CASE_DIR/dynamic"
must grep -q NODELETE "$CASE_DIR/dynamic"

nm -D --defined-only --with-symbol-versions "$library" | awk '{ print $3 }' | sort > "$CASE_DIR/exported"
sort > "$CASE_DIR/expected" <<'END'
MPICRYPT_FILE_0
mpicrypt_file_close@@MPICRYPT_FILE_0
mpicrypt_file_info@@MPICRYPT_FILE_0
mpicrypt_file_open@@MPICRYPT_FILE_0
mpicrypt_file_open_fd@@MPICRYPT_FILE_0
mpicrypt_file_read@@MPICRYPT_FILE_0
mpicrypt_file_region@@MPICRYPT_FILE_0
mpicrypt_file_runs@@MPICRYPT_FILE_0
mpicrypt_file_size@@MPICRYPT_FILE_0
mpicrypt_file_verify@@MPICRYPT_FILE_0
mpicrypt_file_version@@MPICRYPT_FILE_0
END
sed -i 's/^MPICRYPT_FILE_0@.*/MPICRYPT_FILE_0/' "$CASE_DIR/exported"
must diff "$CASE_DIR/expected" "$CASE_DIR/exported"

cd "$CASE_DIR"
keys lab
head -c 100000 /dev/urandom > plain
encrypt plain made
[ "$(pkg-config --modversion mpicrypt_file)" = "$(cat "$SRC/VERSION")" ] || fail "pkg-config has another version"
# The program in the manual, as it stands there, in both languages.
python3 - "$SRC/docs/file-library.rst" > manual.c <<'END'
import sys, textwrap
lines = open(sys.argv[1]).read().split("\n")
start = next(i for i, line in enumerate(lines) if line.strip() == "#include <mpicrypt_file.h>")
first = max(i for i in range(start) if lines[i].endswith("::")) + 1
last = next(i for i in range(start, len(lines)) if lines[i] and not lines[i].startswith(" "))
print(textwrap.dedent("\n".join(lines[first:last])))
END
must cc -std=c99 -pedantic -Wall -Wextra -Werror $VARIANT_CFLAGS manual.c -o manual $(pkg-config --cflags --libs mpicrypt_file) -Wl,-rpath,"$PREFIX/lib"
must c++ -x c++ -Wall -Wextra -Werror $VARIANT_CFLAGS manual.c -o manual++ $(pkg-config --cflags --libs mpicrypt_file) -Wl,-rpath,"$PREFIX/lib"
for name in manual manual++; do
    must ./$name made > again
    must cmp plain again
    must_fail ./$name plain
done

# Beside libmca_common_cryptfile, which has functions of the same names.
cat > both.c <<'END'
#include <dlfcn.h>
#include <mpicrypt_file.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    mpicrypt_file_error_t error = {0};
    mpicrypt_file_t *file = NULL;
    int status = NULL == dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) ? 99 : mpicrypt_file_open(argv[1], NULL, &file, &error);

    status = 0 == status ? mpicrypt_file_verify(file, NULL, NULL, NULL, &error) : status;
    mpicrypt_file_close(file);
    printf("status %d %s\n", status, error.text);
    return status + argc - 3;
}
END
must cc $VARIANT_CFLAGS both.c -o both $(pkg-config --cflags --libs mpicrypt_file) -Wl,-rpath,"$PREFIX/lib" -ldl
must ./both made "$PREFIX/lib/libmca_common_cryptfile.so"

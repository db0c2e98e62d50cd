# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# path.sh [OF]: how many functions, in how many files, a message or a block of a file passes
# between MPI and the provider.  OF: another source tree, which may be older.  Inline functions
# in headers are counted separately, those of a provider not at all.
set -eu
. "$SRC/tests/lib.sh"

of=${1:-$SRC}
command -v addr2line > /dev/null || skip "addr2line is missing"
mkdir "$CASE_DIR/build"
(cd "$CASE_DIR/build"
 must "$of/configure" --prefix="$CASE_DIR/prefix" --disable-lto CFLAGS='-g -O0 -finstrument-functions' > configure.out
 must make -s -j"$(nproc)" > make.out
 must make -s install > install.out)
must mpicc -O2 -g -Wall -Wextra -Werror -rdynamic -pthread -o "$CASE_DIR/path" "$SRC/tests/bench/path/path.c"
cluster_up 2
. "$CASE_DIR/prefix/share/ompi-crypt/env.sh"
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
must "$CASE_DIR/prefix/bin/mpicrypt" key new path
must vcluster mpirun -n 2 --map-by node -x LD_LIBRARY_PATH -x OMPI_MCA_mca_base_component_path --mca io ompio \
    --mca fs_crypt_key_label path "$CASE_DIR/path" "$CASE_DIR/file" > "$CASE_DIR/entered"

python3 - "$CASE_DIR/entered" "$CASE_DIR/prefix" "$(readlink -f "$of")" <<'END'
import collections, os, subprocess, sys

paths = collections.OrderedDict()
for line in open(sys.argv[1]):
    word = line.split()
    if len(word) == 3 and word[1].startswith(sys.argv[2]) and 'mca_aead_' not in word[1]:
        paths.setdefault(word[0], []).append(word[1:])
for path, entered in paths.items():
    functions, inlines, files = [], 0, collections.OrderedDict()
    for library, at in entered:
        name, place = subprocess.run(['addr2line', '-f', '-e', library, at], stdout=subprocess.PIPE,
                                     text=True, check=True).stdout.split('\n')[:2]
        place = os.path.relpath(os.path.realpath(place.rsplit(':', 1)[0]), sys.argv[3])
        if place.endswith('.h') or name.startswith('__bswap'):
            inlines += 1
        else:
            functions.append((name, place))
            files[place] = True
    print('%-17s %3d functions in %2d files, %2d inline' % (path, len(functions), len(files), inlines))
    for name, place in functions:
        print('    %-60s %s' % (name, place))
END

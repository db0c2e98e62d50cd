# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# gcc -fanalyzer (14 or later: older ones guess) finds nothing in what is installed that analyzer.exceptions does not argue.
set -eu
. "$SRC/tests/lib.sh"
export LC_ALL=C

cluster_up 1
gcc=$(in_variant gcc -dumpversion)
[ "$gcc" -ge 14 ] || skip "gcc $gcc"

# found FILE: its warnings, as "SOURCE: TEXT", without lines
found() { sed -nE "s,^($SRC/|$CASE_DIR/)?([^ :]+):[0-9]+:[0-9]+: warning: (.*) \[-Wanalyzer-.*\]\$,\2: \3,p" "$1" | sort -u; }

printf '#include <stdlib.h>\nvoid planted(char *p);\nvoid planted(char *p)\n{\n    free(p);\n    free(p);\n}\n' > "$CASE_DIR/planted.c"
must in_variant gcc -O2 -fanalyzer -c -o "$CASE_DIR/planted.o" "$CASE_DIR/planted.c" 2> "$CASE_DIR/planted"
must grep -qx "planted.c: double-'free' of 'p'.*" <(found "$CASE_DIR/planted")

mkdir "$CASE_DIR/build"
must in_variant bash -c "cd '$CASE_DIR/build' && '$SRC/configure' --prefix='$CASE_DIR/prefix' --disable-lto CFLAGS='-O2 -fanalyzer' > configure.out"
in_variant make -C "$CASE_DIR/build" -j"$(nproc)" > "$CASE_DIR/make.out" 2> "$CASE_DIR/warnings" || fail "make: $(tail -n 20 "$CASE_DIR/warnings")"
found "$CASE_DIR/warnings" > "$CASE_DIR/found"
sed -n 's/^    //p' "$SRC/tests/shell/analyzer.exceptions" | sort > "$CASE_DIR/argued"
comm -23 "$CASE_DIR/found" "$CASE_DIR/argued" > "$CASE_DIR/new"
echo "$(wc -l < "$CASE_DIR/found") kinds of warnings, all argued but $(wc -l < "$CASE_DIR/new")"
[ ! -s "$CASE_DIR/new" ] || fail "$(cat "$CASE_DIR/new")"

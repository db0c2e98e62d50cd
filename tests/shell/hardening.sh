# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What is installed has the protection that config/ompi_crypt_hardening.m4 asks for, as far as this compiler and
# this linker have it; an object that lacks any of it is found.
#
#     hardening.sh configure      instead: what configure chooses
set -eu
. "$SRC/tests/lib.sh"

if [ "${1-}" = configure ]; then
    # --disable-hardening, the user's own flags, and no optimizer.
    configured() {                                  # configured NAME ARGUMENT...: prints the flags
        local name=$1; shift
        mkdir "$CASE_DIR/$name"
        ( cd "$CASE_DIR/$name" && "$SRC/configure" --prefix="$CASE_DIR/prefix" "$@" > configure.out && sed -nE 's/^(C|CPP|LD)FLAGS = / /p' Makefile )
    }
    flags=$(configured off --disable-hardening CFLAGS=-O2)
    for flag in stack-protector FORTIFY clash relro noexecstack; do
        [[ $flags != *$flag* ]] || fail "--disable-hardening: $flags"
    done
    flags=$(configured unoptimized CFLAGS=-O0 --disable-lto)
    [[ $flags != *FORTIFY* && $flags == *-fstack-protector-strong* ]] || fail "-O0: $flags"
    flags=$(configured chosen CPPFLAGS=-D_FORTIFY_SOURCE=1 CFLAGS='-O2 -fno-stack-protector' --disable-lto)
    [[ $flags != *FORTIFY_SOURCE=[23]* && $flags == *-fstack-protector-strong*-fno-stack-protector* ]] || fail "the user's: $flags"
    flags=$(configured sanitized --enable-ubsan CFLAGS=-O2)
    [[ $flags != *FORTIFY* ]] || fail "with a sanitizer: $flags"
    exit 0
fi

cflags=$(sed -n 's/^CFLAGS = //p' "$BUILD/Makefile")
[[ $cflags == *-fstack-protector-strong* ]] || skip "this build has no hardening: $cflags"
[[ $cflags != *-fsanitize* ]] || skip "this build has sanitizers"
fortified=$(grep -o '_FORTIFY_SOURCE=[0-9]' <<< "$cflags" || true)
branches=$(grep -oE -- '-fcf-protection|-mbranch-protection=standard' <<< "$cflags" || true)

# Does a function in the table of exported ones begin with the instruction to which an indirect branch may go?
landing() { case $branches in -fcf*) echo endbr64 ;; -m*) echo 'bti|paciasp' ;; esac; }
closed() {
    local name first
    nm --dynamic --defined-only --format=posix "$1" | awk '$2 == "T" { print $1 }' > "$CASE_DIR/exported"
    objdump --disassemble --no-show-raw-insn "$1" | awk -v OFS=' ' '
        FNR == NR { wanted["<" $1 ">:"] = 1; next }
        $2 in wanted { name = $2; next }
        name != "" { print name, $2; name = "" }' "$CASE_DIR/exported" - > "$CASE_DIR/first"
    while read -r name first; do
        grep -qxE "$(landing)" <<< "$first" || { echo "$name begins with $first"; return 1; }
    done < "$CASE_DIR/first"
}

# lacks FILE [CHECK...]: the first of these that it does not have; nothing: it has all.
lacks() {
    local file=$1 what; shift
    readelf --wide --program-headers "$file" > "$CASE_DIR/headers"
    readelf --wide --dynamic "$file" > "$CASE_DIR/dynamic"
    nm --dynamic --undefined-only --format=posix "$file" | sed 's/[@ ].*//' > "$CASE_DIR/undefined"
    for what in "$@"; do
        case $what in
            relro)   grep -q GNU_RELRO "$CASE_DIR/headers" ;;
            now)     grep -qE 'BIND_NOW|FLAGS_1.* NOW' "$CASE_DIR/dynamic" ;;
            stack)   grep -q 'GNU_STACK .* RW  *0x' "$CASE_DIR/headers" ;;
            text)    ! grep -q TEXTREL "$CASE_DIR/dynamic" ;;
            rpath)   ! grep -E 'R(UN)?PATH' "$CASE_DIR/dynamic" | grep -F -e "$BUILD" -e "$SRC" -e "$CASE_DIR" ;;
            guard)   grep -qx __stack_chk_fail "$CASE_DIR/undefined" ;;
            fortify) [ -z "$fortified" ] || grep -qE '^__[a-z]+_chk$' "$CASE_DIR/undefined" ;;
            branch)  [ -z "$branches" ] || closed "$file" ;;
            *)       fail "no such check: $what" ;;
        esac || { echo "$what"; return; }
    done
}

# A component of a few lines has neither an array nor a call that is checked.
always="relro now stack text rpath branch"
expected() {
    case ${1##*/} in
        libmca_common_crypt.so*|libmca_common_cryptfile.so*|libmca_common_cryptproc.so*|libmca_common_cryptmpi.so*| \
        mca_btl_crypt.so|mca_pml_crypt.so|mpicrypt|mpicrypt-mpi) echo "$always guard fortify" ;;
        libmca_common_cryptmpio.so*|libmpi_crypt.so*|mca_coll_cryptag.so|mca_hook_crypt.so|mca_aead_openssl.so) echo "$always guard" ;;
        *) echo "$always" ;;
    esac
}

bad=() count=0
while read -r file; do
    [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
    missing=$(lacks "$file" $(expected "$file"))
    [ -z "$missing" ] || bad+=("${file#"$PREFIX/"}: $missing")
    count=$((count + 1))
done < <(find "$PREFIX" -type f | sort)
[ ${#bad[@]} = 0 ] || fail "unprotected: ${bad[*]}"
[ "$count" -ge 15 ] || fail "only $count objects are installed"
echo "$count objects"

# The marks for the loader, where this linker sets them at all: an object of the compiler's that is not marked takes
# them away, so they are looked for in our own objects.
if [ "$branches" = -fcf-protection ]; then
    for object in "$BUILD"/opal/mca/common/crypt/base/.libs/*secmem.o "$BUILD"/ompi/tools/mpicrypt/mpicrypt.o; do
        says 'IBT, SHSTK' readelf --notes "$object"
    done
fi

# Planted: each lacks one.  The program has an array, and calls memcpy with a length that is not known.
cat > "$CASE_DIR/planted.c" <<'END'
#include <string.h>
extern int planted(const char *from, size_t bytes);
extern int (*planted_other)(const char *);
int (*planted_other)(const char *);
int planted(const char *from, size_t bytes)
{
    char array[64];
    memcpy(array, from, bytes);
    return planted_other(array);
}
END
plant() {                                       # plant CHECK FLAG...
    local what=$1 found; shift
    must gcc -O2 -fPIC -fstack-protector-strong -U_FORTIFY_SOURCE ${fortified:+-D$fortified} $branches -Wl,-z,relro,-z,now,-z,noexecstack \
        "$@" -shared -o "$CASE_DIR/planted.so" "$CASE_DIR/planted.c"
    found=$(lacks "$CASE_DIR/planted.so" $always guard fortify)
    [ "${found##*$'\n'}" = "$what" ] || fail "planted without $what, found: ${found:-nothing}"
}
plant ''
plant relro -Wl,-z,norelro
plant now -Wl,-z,lazy
plant stack -Wl,-z,execstack
plant rpath -Wl,-rpath,"$BUILD/opal"
plant guard -fno-stack-protector
[ -z "$fortified" ] || plant fortify -U_FORTIFY_SOURCE
case $branches in
    -fcf*) plant branch -fcf-protection=none ;;
    -m*)   plant branch -mbranch-protection=none ;;
esac
# Only 32-bit linkers and a few others still make one with TEXTREL without asking.
if gcc -O2 -fno-pic -mcmodel=large -shared -Wl,-z,notext -Wl,-z,relro,-z,now -o "$CASE_DIR/planted.so" "$CASE_DIR/planted.c" 2>/dev/null; then
    [ "$(lacks "$CASE_DIR/planted.so" text)" = text ] || fail "relocations in the text are not found"
fi

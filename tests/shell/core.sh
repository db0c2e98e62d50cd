# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A job of two nodes dies by SIGSEGV in the middle of its work, once with each
# provider, and with two ranks a node.  In its core file there must be nothing of what stood in the memory
# that core files leave out (psk, session and epoch keys, key schedules of the
# providers), nor of the psk in its file; of keys that are used with an expanded
# schedule the first round key is the key itself, so that it would be found.
set -eu
. "$SRC/tests/lib.sh"

[ "$(cat /proc/sys/kernel/core_pattern)" = core ] || skip "core files go elsewhere (kernel.core_pattern)"
must gcc -O2 -Wall -Wextra -Werror -o "$CASE_DIR/search" "$SRC/tests/shell/core/search.c"
cluster_up 2 --slots 2
must in_variant mpicc -O2 -Wall -Wextra -Werror -rdynamic -o "$CASE_DIR/crash" "$SRC/tests/shell/core/crash.c"

# A psk of our own, and another for the job whose secrets are nobody's.
psk=$CASE_DIR/psk
for which in "$psk" "$psk.other"; do
    (umask 077; head -c 32 /dev/urandom | tee "$which.raw" | od -An -v -tx1 | tr -d ' \n' > "$which")
done

# crash NAME PSK MCA-SETTING... [-- VICTIM [leak]]: the core file of the rank VICTIM (0) is
# $core, the secrets are in $secrets, what node0 sent and received in $wire, and in $tags,
# after 16 bytes of nothing, the tags that OpenSSL made.
ranks=2 map=node
crash() {
    local directory=$CASE_DIR/$1 settings=("--mca" crypt_psk_file "$2"); shift 2
    mkdir "$directory"
    while [ $# -gt 0 ] && [ "$1" != -- ]; do settings+=(--mca "${1%%=*}" "${1#*=}"); shift; done
    [ $# = 0 ] || shift
    core='' secrets=$directory/secrets.${1:-0} wire=$directory/wire tags=$directory/tags
    head -c 16 /dev/zero > "$tags"
    # The buffer has a place of the largest packet's size for every packet.
    capture_start node0 "$wire" -B 262144
    if vcluster mpirun -n "$ranks" --map-by "$map" "${settings[@]}" "$CASE_DIR/crash" "$directory" "$@" \
        > "$directory/out" 2>&1 < /dev/null; then
        cat "$directory/out"
        fail "it did not crash"
    fi
    capture_stop node0
    [ -s "$secrets" ] || { cat "$directory/out"; fail "it did not come so far"; }
    for core in "$directory/${1:-0}"/core*; do
        [ -e "$core" ] || core=''
    done
}

echo "+ a secret that stands elsewhere, too, is found"
crash other "$psk.other" aead=openssl
[ -n "$core" ] || skip "the kernel writes no core files here"
other=$secrets
rm "$core"
crash leak "$psk" aead=openssl -- 0 leak
must_fail "$CASE_DIR/search" "$core" "$wire" "$tags" "$other" "$secrets"
rm "$core"

must test -e "$PREFIX/lib/ompi-crypt/mca_aead_openssl.so"
for provider in $(ls "$PREFIX"/lib/ompi-crypt/mca_aead_*.so | sed 's/.*aead_\(.*\)\.so/\1/'); do
    bits=128
    [ "$provider" != sodium ] || bits=256       # all that it has
    echo "+ $provider"
    crash "$provider" "$psk" "aead=$provider" "crypt_key_bits=$bits"
    if [ "$provider" = cryptopp ]; then         # which keeps its keys where it likes
        [ -z "$core" ] || fail "a process that uses $provider leaves a core file"
        continue
    fi
    [ -n "$core" ] || fail "no core file"
    must "$CASE_DIR/search" "$core" "$wire" "$tags" "$other" "$secrets" "$psk.raw" "$psk"
    rm "$core"
done

# A group key passes from rank 0 to rank 1 within node0.
ranks=4 map=slot
for victim in 0 1; do
    echo "+ two ranks a node, rank $victim dies"
    crash "within$victim" "$psk" aead=openssl crypt_key_bits=128 -- "$victim"
    [ -n "$core" ] || fail "no core file"
    [ "$(wc -c < "$tags")" -gt 16 ] || fail "no tag was seen"
    must "$CASE_DIR/search" "$core" "$wire" "$tags" "$other" "$secrets" "$psk.raw" "$psk"
    rm "$core"
done

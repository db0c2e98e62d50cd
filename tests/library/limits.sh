# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Memory is bounded: a file of 1 GiB is read and verified within an address space and a resident size that do not depend on
# it; where there is not enough, calls fail and say so; core files have no plaintext.
. "$SRC/tests/library/common.sh"

cd "$CASE_DIR"
program reader
keys lab
truncate -s 1G zeros
encrypt zeros made --sparse --block-size 64K
head -c 3000000 /dev/urandom > plain
encrypt plain small

# peak COMMAND...: its largest resident size in KiB.
peak() { python3 -c '
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)' "$@"; }
if [ "$VARIANT" != asan ]; then
    least=$(peak ./reader verify small)
    for arguments in "verify made" "cat made" "cache=4194304 threads=4 verify made"; do
        kib=$(peak ./reader $arguments)
        echo "$arguments: $kib KiB, a small file $least KiB"
        [ "$kib" -lt $((least + 40000)) ] || fail "$arguments: $kib KiB"
    done
    # 256 MiB of addresses are reserved for libcrypto's keys.
    must bash -c 'ulimit -v 500000; exec ./reader verify made'
    rc=0; bash -c 'ulimit -v 300000; exec ./reader verify made' > said 2>&1 || rc=$?
    cat said
    [ $rc != 0 ] || echo "300,000 KiB of addresses are enough here"
fi
# Each limit gives an error, or works.
for ((kib = 20000; kib < 330000; kib += 10000)); do
    rc=0; bash -c "ulimit -v $kib; exec ./reader cat small" > again 2> said || rc=$?
    case $rc in
        0) cmp plain again || fail "$kib KiB: wrong bytes" ;;
        $MEMORY|$SETUP) [ -s said ] || fail "$kib KiB: no sentence" ;;
        1|127) grep -qE 'cannot allocate|error while loading|failed to map' said || fail "$kib KiB: status $rc: $(cat said)" ;;
        *) fail "$kib KiB: status $rc: $(cat said)" ;;
    esac
done

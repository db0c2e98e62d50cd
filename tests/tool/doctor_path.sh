# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# doctor_path.sh [hang]: the verdicts of mpicrypt doctor --path, on file systems that are one for all nodes, and on FUSE,
# where each node has locks of its own, or sizes, or loses locks; nothing is left, whoever ends early.  hang: a file system
# that does not answer.
set -eu
. "$SRC/tests/lib.sh"
PATH=$PREFIX/bin:$PATH
python3 -c pass || skip "python3 is missing"

cluster_up 2
dir=$CASE_DIR/dir
mkdir "$dir"
doctor() { mpicrypt doctor --mpirun "$SRC/tests/vcluster mpirun $words" --path "$dir" "$@"; }

# verdict STATUS "CHECK:STATE ..." TEXT...: of nodes together; each TEXT is said.
cat > "$CASE_DIR/read.py" <<'END'
import json, sys
data = json.load(open(sys.argv[1]))
assert all(f["nodes"] == data["nodes"] for f in data["findings"]), data
assert all(f["remedy"] for f in data["findings"] if f["state"] == "fail"), data
print(" ".join("%s:%s" % (f["check"], f["state"]) for f in data["findings"]))
print("nodes", *sorted(data["nodes"]))
for f in data["findings"]:
    print(f["state"], f["check"], f["detail"])
END
verdict() {
    local wanted=$1 rows=$2 status=0 text; shift 2
    doctor --json > "$CASE_DIR/json" 2> "$CASE_DIR/err" || status=$?
    python3 "$CASE_DIR/read.py" "$CASE_DIR/json" > "$CASE_DIR/out" || fail "no JSON: status $status, $(cat "$CASE_DIR/json" "$CASE_DIR/err")"
    cat "$CASE_DIR/out"
    [ "$(head -n 1 "$CASE_DIR/out")" = "$rows" ] || fail "not '$rows'"
    [ $status = "$wanted" ] || fail "status $status"
    for text in "$@"; do
        grep -qF -- "$text" "$CASE_DIR/out" || fail "it does not say \"$text\""
    done
    nothing_left "$dir"
}
nothing_left() { [ -z "$(ls -A "$1")" ] || fail "left: $(ls -A "$1")"; }

# Of the job that tests $dir: the ranks, or their helpers, which have sessions of their own.
processes() {
    local pid
    for pid in $(pgrep -f -- "path --io-dir=$dir" || true); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != mpicrypt-mpi ] || ps -o pid=,sid= -p "$pid" | awk -v helper="$1" '($1 == $2) == helper { print $1 }'
    done
}

echo "one file system for both nodes"
words=
verdict 0 "reading:ok writer:ok one-node:ok nodes:ok" "nodes node0 node1" "ok reading $dir (" "writers on several nodes: safe"
must doctor > "$CASE_DIR/out"
cat "$CASE_DIR/out"
[ "$(grep -c '^ok .*: safe  \[all 2 nodes\]$' "$CASE_DIR/out")" = 4 ] || fail "as text"

echo "one node"
words="--host node1"
verdict 0 "reading:note writer:ok one-node:ok nodes:note" "nodes node1" "writers on several nodes: not known: one node was tested"

echo "a directory that is another one on each node"
words=
vcluster exec node1 mount -t tmpfs none "$dir"
verdict 1 "directory:fail" "nothing was tested: node1 could not make the directory of the test, or enter it: No such file or directory"
vcluster exec node1 umount "$dir"

echo "a node that knows only sizes of its own"
must gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/stale.so" "$SRC/tests/tool/preload/stale.c" -ldl
faulty="-x LD_PRELOAD=$CASE_DIR/stale.so -x FAULTY_NODE=node1 -x FAULT"
words="$faulty=size"
verdict 1 "reading:ok writer:ok one-node:ok nodes:fail" \
    "writers on several nodes: NOT safe: node1 read an old size after node0's write, under the lock"

echo "a file system that loses a part of a range of locks"
must gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/merger.so" "$SRC/tests/io/preload/merger.c" -ldl
words="-x LD_PRELOAD=$CASE_DIR/merger.so"
verdict 1 "reading:ok writer:ok one-node:ok nodes:fail" \
    "writers on several nodes: NOT safe: node1 could lock a part of a range that node0 had locked"

echo "what is not safe is forbidden to jobs, and what is safe is not permitted"
echo "pml = ob1" > "$CASE_DIR/params.conf"
mkdir "$CASE_DIR/a:b"
says "cannot be named" doctor --forbid "$CASE_DIR/params.conf" --path "$CASE_DIR/a:b"
says "--forbid is for --path" mpicrypt doctor --fabric --forbid "$CASE_DIR/params.conf"
says "do not go together" doctor --fabric
says "do not go together" doctor --dir "$dir"
must_fail doctor --forbid "$CASE_DIR/params.conf" > "$CASE_DIR/out"
must_fail doctor --forbid "$CASE_DIR/params.conf" > "$CASE_DIR/out"
forbidden="fs_crypt_one_node_paths = $(realpath "$dir")"
[ "$(cat "$CASE_DIR/params.conf")" = "pml = ob1"$'\n'"$forbidden" ] || fail "$(cat "$CASE_DIR/params.conf")"
mkdir "$CASE_DIR/other"
must_fail doctor --forbid "$CASE_DIR/params.conf" --path "$CASE_DIR/other" > "$CASE_DIR/out"
[ "$(tail -n 1 "$CASE_DIR/params.conf")" = "$forbidden:$(realpath "$CASE_DIR/other")" ] || fail "$(cat "$CASE_DIR/params.conf")"
words=
must doctor --forbid "$CASE_DIR/none.conf" > "$CASE_DIR/out"
[ ! -s "$CASE_DIR/none.conf" ] || fail "a safe directory is in $CASE_DIR/none.conf"
export OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
must mpicrypt key new lab
must mpicrypt key new other
convert=$(mpi_program io convert)
head -c 100000 /dev/urandom > "$CASE_DIR/plain"
ln -s dir "$CASE_DIR/link"
job() { vcluster mpirun --mca mca_base_param_files "$CASE_DIR/params.conf" -n 2 "$@"; }
# job_refused COMMAND...
job_refused() {
    must_fail job "$@" > "$CASE_DIR/out" 2>&1
    tr -s ' \n' ' ' < "$CASE_DIR/out" | grep -qF "fs_crypt_one_node_paths forbids processes of several nodes" || fail "$(cat "$CASE_DIR/out")"
}
mkdir "$dir/below"
for file in "$dir/below/file" "$CASE_DIR/link/file"; do
    job_refused --map-by ppr:1:node "$convert" write "$CASE_DIR/plain" "$file"
done
must job --host node1:2 "$convert" write "$CASE_DIR/plain" "$dir/file"
must job --map-by ppr:1:node "$convert" read "$CASE_DIR/plain" "$dir/file"
must job --map-by ppr:1:node "$convert" write "$CASE_DIR/plain" "$CASE_DIR/elsewhere"
rm -r "${dir:?}"/*

[ "${1-}" != hang ] || {
    echo "a lock that is never granted, and one whose call does not return"
    words="$faulty=lock"
    verdict 1 "reading:ok writer:fail one-node:fail nodes:fail" "one writer: NOT safe: node1 could not lock a file: Connection timed out"
    words="$faulty=hang"
    verdict 1 "reading:warn writer:fail one-node:fail nodes:fail" "one writer: NOT safe: node1 did not lock a file within 10 seconds" \
        "reading: not known: node1 did not lock a file within 10 seconds"
    must kill $(processes 1)
}
words=

command -v bindfs > /dev/null && [ -e /dev/fuse ] && [ "$(id -u)" = 0 ] || skip "the rest: bindfs, /dev/fuse or root is missing"
served=$CASE_DIR/served
mkdir "$served"
declare -A daemon=()
let_go() {
    local node
    for node in node0 node1; do vcluster exec $node umount -l "$dir" || true; kill -CONT ${daemon[$node]-} || true; done
    vcluster down
}
trap 'let_go > /dev/null 2>&1 || true' EXIT
mount_fuse() { # mount_fuse [OPTION...]
    local node
    for node in node0 node1; do
        "$SRC/tests/vcluster" exec $node bindfs -f "$@" "$served" "$dir" & daemon[$node]=$!
        until vcluster exec $node mountpoint -q "$dir"; do kill -0 ${daemon[$node]}; sleep 0.05; done
    done
}

echo "FUSE: locks are each node's own, and sizes are kept until a file is opened again"
mount_fuse -o attr_timeout=60,entry_timeout=60
verdict 1 "reading:warn writer:ok one-node:ok nodes:fail" "reading: safe, but not at once: "
nothing_left "$served"
for node in node0 node1; do must vcluster exec $node umount "$dir"; done

echo "FUSE: locks are each node's own"
mount_fuse -o attr_timeout=0,entry_timeout=0
verdict 1 "reading:ok writer:ok one-node:ok nodes:fail" "$dir (fuse): writers on several nodes: NOT safe: node1 could lock what node0 had locked"
nothing_left "$served"

gone() { # gone WHAT COMMAND...: within 20 seconds, it prints nothing
    local what=$1 i; shift
    for ((i = 0; i < 200; i++)); do
        [ -n "$("$@")" ] || return 0
        sleep 0.1
    done
    fail "$what: $("$@")"
}

echo "nothing is left when a process ends early, while node1 does not get on"
for victim in 0 1 mpicrypt; do
    kill -STOP ${daemon[node1]}
    doctor > "$CASE_DIR/out" 2>&1 & tool=$!
    until [ -n "$(ls -A "$served")" ]; do
        kill -0 $tool 2>/dev/null || fail "doctor has ended: $(cat "$CASE_DIR/out")"
        sleep 0.05
    done
    case $victim in
        mpicrypt) kill -TERM $tool ;;
        *) for pid in $(processes 0); do
               ! tr '\0' '\n' < /proc/$pid/environ | grep -qx "OMPI_COMM_WORLD_RANK=$victim" || must kill -KILL $pid
           done ;;
    esac
    status=0; wait $tool || status=$?
    [ $status != 0 ] || fail "doctor succeeded: $(cat "$CASE_DIR/out")"
    [ $victim = mpicrypt ] || grep -q '^FAIL  path ' "$CASE_DIR/out" || fail "doctor says: $(cat "$CASE_DIR/out")"
    kill -CONT ${daemon[node1]}
    gone "helpers" processes 1
    nothing_left "$served"
done

[ "${1-}" != hang ] || {
    echo "a file system that does not answer"
    kill -STOP ${daemon[node1]}
    verdict 1 "directory:fail" "nothing was tested: node1 did not make the directory of the test, or enter it within 10 seconds"
    kill -CONT ${daemon[node1]}
    gone "helpers" processes 1
    nothing_left "$served"
}

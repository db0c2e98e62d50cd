# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt doctor --fabric names what carries a job over each host, plain and encrypted, and what the policy makes of it.
# Wrong bytes and a host that does not answer are planted by a launcher.
set -eu
. "$SRC/tests/tool/common.sh"
python3 -c pass || skip "python3 is missing"

# fabric EACH TOTAL LAUNCHER PROGRAM: what the tool becomes, with these limits in seconds; its status, and JSON.
fabric() {
    status=0
    /usr/bin/python3 -I -B - tool profiles "$3" "" "$4" json > "$CASE_DIR/json" 2> "$CASE_DIR/err" <<END || status=$?
import sys
sys.path.insert(0, "$PREFIX/libexec/ompi-crypt")
from measure import fabric, verb
fabric.EACH, fabric.TOTAL = $1, $2
sys.exit(verb.run(fabric.VERB, fabric.main))
END
    cat "$CASE_DIR/json" "$CASE_DIR/err"
}
# Limits are for sites, whose processors do nothing else.
run_jobs() { fabric 100 1000 "$launcher" "$PREFIX/libexec/ompi-crypt/mpicrypt-mpi"; }

# row HOST PYTHON: it holds of the members of this row, d being the document.
row() {
    python3 - "$CASE_DIR/json" "$1" "$2" <<'END' || fail "$1: not $2"
import json, sys
d = json.load(open(sys.argv[1]))
r = {row["host"]: row for row in d["results"]}[sys.argv[2]]
sys.exit(not eval(sys.argv[3], {**r, "d": d}))
END
}

cluster_up 2
export OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include='tcp;ofi_rxm'

echo "TCP, and UCX and libfabric over it, which are named"
run_jobs
[ $status = 0 ] || fail "status $status"
for host in default ucx cm; do
    row $host 'content == "right" and plain == encrypted == "runs" and plain_us > 0 and crypt_us > 0'
    row $host 'plain_GBps > 0 and crypt_GBps > 0'
done
row default 'taken == "ob1" and plain_over == "ucx: tcp/eth0" and crypt_over == "ob1: crypt 10.99.0.1 10.99.0.2"'
row default 'policy.startswith("btl/crypt seals what leaves a node, over TCP (TCP is the network); authentication psk, ")'
row ucx 'taken == "ucx" and plain_over == crypt_over == "ucx: tcp/eth0"'
row ucx 'policy.startswith("pml/crypt seals what leaves a node, over ucx (the host is ucx or cm); ")'
row cm 'taken == "cm" and plain_over == crypt_over == "cm: ofi tcp;ofi_rxm eth0"'
row cm 'policy.startswith("pml/crypt seals what leaves a node, over cm (the host is ucx or cm); ")'
row default 'len(d["results"]) == 3 and d["library"].startswith("Open MPI v") and set(d["nodes"]) == {"node0", "node1"}'
row default 'all({text.split()[0] for text in has} == {"net/eth0:", "UCX", "libfabric"} for has in d["nodes"].values())'

echo "the policy refuses them, and one cannot start"
unset OMPI_MCA_pml_ucx_tls OMPI_MCA_pml_ucx_devices OMPI_MCA_mtl OMPI_MCA_mtl_ofi_provider_include
OMPI_MCA_crypt_transport=btl run_jobs
[ $status = 0 ] || fail "status $status"
row default 'content == "right" and plain_over.startswith("ob1: tcp 10.99.0.") and plain == encrypted == "runs"'
row ucx 'content == "-" and encrypted == "does not run" and crypt_us is None'
row ucx '"crypt_transport=btl goes over ob1, and pml_crypt_host names another: take one of the two away" in policy'
row cm 'content == "-" and plain == "No components were able to be opened in the pml framework" and "pml_crypt_host" in policy'

echo "wrong bytes, and hosts that do not answer: each has its limit, and all of them have one"
cat > "$CASE_DIR/plant" <<'END'
#!/bin/sh
case $OMPI_MCA_pml:${OMPI_MCA_pml_crypt_host-} in
    *^crypt:) printf '@mpicrypt value %s 0 .001 0 0\n' 1 4096 65536 4194304; echo "[a] selected ob1 best priority 20" >&2 ;;
    crypt:) echo "mpicrypt-mpi: rank 1: wrong byte 7 of 4096 in message 0 of rank 0" >&2; exit 1 ;;
    *) echo $$ >> "$0.pids"; exec sleep 1000 ;;
esac
END
chmod +x "$CASE_DIR/plant"
fabric 0.7 3.6 "$CASE_DIR/plant" program
[ $status = 1 ] || fail "status $status"
row default 'content == "wrong" and plain == "runs" and plain_us == 1000 and "wrong byte 7" in policy'
row ob1 'plain == "no answer within 1 s" and content == "-"'
row cm 'policy == "not run: 4 s were over"'
while read -r pid; do
    ! kill -0 "$pid" 2>/dev/null || fail "the launcher is left"
done < "$CASE_DIR/plant.pids"

fabric 1 10 false program
[ $status = 3 ] || fail "no job ran, and the status is $status"

! in_other_root || exit 0
echo "one node, in words"
must mpicrypt doctor --fabric > "$CASE_DIR/out"
cat "$CASE_DIR/out"
for text in 'default: btl/crypt seals what leaves a node' '--mpirun names two nodes'; do
    grep -q "^$text" "$CASE_DIR/out" || fail "no line '$text'"
done

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# crypt_report, in each of its forms, for a job whose traffic is known.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
program=$(mpi_program mpi metrics)
job() { vcluster mpirun -n 2 --map-by node "$@" "$program" < /dev/null; }

# 1. nothing is said unasked
job > "$CASE_DIR/plain" 2>&1 || { cat "$CASE_DIR/plain"; fail "the job"; }
! grep -q 'ompi-crypt report' "$CASE_DIR/plain" || fail "a report that nobody asked for"

# 2. JSON, of numbers that must hold: what was sealed was opened
file=$CASE_DIR/report.json
must job --mca crypt_report "json:$file"
cat "$file"
[ "$(stat -c %a "$file")" = 600 ] || fail "others can read it"
must python3 - "$file" "${OMPI_MCA_crypt_transport:-btl}" <<'END'
import json, os, sys

r = json.load(open(sys.argv[1]))
assert r["processes"] == r["reporting"] == 2 and r["uid"] == os.geteuid(), r
assert r["authentication"] == "psk" and r["cipher"] == "AES-128-GCM", r
assert r["providers"].endswith("(2)") and r["audit"] == "abort" and r["scope"] == "internode", r
pml = sys.argv[2] == "pml"
assert r["transport"] == ("pml" if pml else "btl, TLS 1.3") and r["host"] == "ob1", r
assert r["key_agreement"] == "X25519" or not pml and r["key_agreement"] == "X25519MLKEM768", r
assert r["protection"] == ("pml/crypt seals what leaves a node, over ob1 (crypt_transport=pml)" if pml else
                           "btl/crypt seals what leaves a node, over TCP (TCP is the network)"
                           ) + "; authentication psk, keys %s, AES-128-GCM" % r["key_agreement"], r
assert r["raised_limits"].startswith("btl/tcp (2)") if pml else r["raised_limits"] == "none", r
assert r["sealed_peers"] == 2 and r["local_peers"] == 0, r
assert min(r["sealed_bytes"], r["opened_bytes"]) >= 10 * 1001000 and r["authentication_failures"] == 0, r
if pml:                 # over btl/crypt records on the way while the processes count are one's, and not yet the other's
    assert r["sealed_bytes"] == r["opened_bytes"] and r["sealed_messages"] == r["opened_messages"], r
    assert r["chopped_sent"] == r["chopped_received"] == 10 and r["most_segments"] > 1 and r["most_threads"] >= 1, r
    assert r["epochs"] >= 2, r
assert 0 < r["crypto_share"] < 1, r
END

# 3. for the eye
must job --mca crypt_report 1 > "$CASE_DIR/text" 2>&1
cat "$CASE_DIR/text"
[ "$(grep -c 'ompi-crypt report' "$CASE_DIR/text")" = 1 ] || fail "not one report"
for name in job providers sealed_bytes crypto_share; do
    grep -q "^ *$name  *[^ ]" "$CASE_DIR/text" || fail "no $name"
done
must job --mca crypt_report 1 --mca crypt_audit warn > "$CASE_DIR/text" 2>&1
grep -q '^ *audit  *PLAINTEXT POSSIBLE' "$CASE_DIR/text" || fail "it keeps silent about crypt_audit=warn"

# Only rank 0 was asked: it waits for nobody, and says how many it speaks for.
cat > "$CASE_DIR/one" <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}" != 0 ] || export OMPI_MCA_crypt_report=1
exec "$@"
END
chmod +x "$CASE_DIR/one"
must vcluster mpirun -n 2 --map-by node "$CASE_DIR/one" "$program" > "$CASE_DIR/text" 2>&1 < /dev/null
cat "$CASE_DIR/text"
grep -q '^ *reporting  *1$' "$CASE_DIR/text" || fail "not one process reported"

# Rank 0 alone was not: there is no report, and no alarm.
sed 's/!= 0/= 0/' "$CASE_DIR/one" > "$CASE_DIR/others"
chmod +x "$CASE_DIR/others"
must vcluster mpirun -n 2 --map-by node "$CASE_DIR/others" "$program" > "$CASE_DIR/text" 2>&1 < /dev/null
cat "$CASE_DIR/text"
! grep -qE 'missing|ompi-crypt report|did not' "$CASE_DIR/text" || fail "a false alarm"
[ "$(grep -c 'is not set for rank 0' "$CASE_DIR/text")" = 1 ] || fail "it is not said why there is none"

# 4. for the system's log: one line, where it listens
if [ -e /dev/log ]; then
    echo "this machine's log daemon is not disturbed: syslog is not tried"
else (
    python3 - "$CASE_DIR/syslog" <<'END' &
import socket, sys

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("/dev/log")
open(sys.argv[1] + ".ready", "w").close()
line = b""
while b"ompi-crypt:" not in line:       # others may log, too
    line = s.recv(8192)
open(sys.argv[1], "wb").write(line)
END
    listener=$!
    trap 'kill $listener 2>/dev/null || :; rm -f /dev/log' EXIT
    until [ -e "$CASE_DIR/syslog.ready" ]; do kill -0 $listener || fail "no listener"; done
    must job --mca crypt_report syslog
    must wait $listener
    cat "$CASE_DIR/syslog"; echo
    grep -q 'ompi-crypt: job=.* sealed_bytes=[1-9]' "$CASE_DIR/syslog" || fail "not in the log"
) fi

# 5. mistakes
must_fail job --mca crypt_report yes > "$CASE_DIR/bad" 2>&1
must_fail job --mca crypt_report json: >> "$CASE_DIR/bad" 2>&1
must_fail job --mca crypt_report 1 --mca hook ^crypt >> "$CASE_DIR/bad" 2>&1
cat "$CASE_DIR/bad"
must job --mca crypt_report json:/nonexistent/report > "$CASE_DIR/bad" 2>&1
grep -q 'the report cannot be written to json:/nonexistent/report' "$CASE_DIR/bad" || fail "silence"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A signal to mpicrypt while it runs a launcher: the launcher ends, no other one is started,
# nothing stays in TMPDIR, and mpicrypt ends by the signal.  It does not wait for what the launcher has left behind, which
# still has its output.
. "$SRC/tests/lib.sh"
PATH=$PREFIX/bin:$PATH
set -eu

export TMPDIR=$CASE_DIR/tmp
mkdir "$TMPDIR"
cat > "$CASE_DIR/launcher" <<END
#!/bin/sh
sleep 60 & echo \$! > "$CASE_DIR/left"
echo \$\$ >> "$CASE_DIR/pids"
exec sleep 60
END
chmod +x "$CASE_DIR/launcher"
# A shell's background jobs may ignore SIGINT; these do not.
cat > "$CASE_DIR/default.py" <<END
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
END

gone() { ! kill -0 "$1" 2>/dev/null || [ "$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status")" = Z ]; }

for signal in TERM HUP; do
    for verb in "bench pingpong --html $CASE_DIR/page.html" "bench pingpong" doctor "tune --out $CASE_DIR/tuned.conf"; do
        rm -f "$CASE_DIR/pids"
        python3 "$CASE_DIR/default.py" mpicrypt $verb --mpirun "$CASE_DIR/launcher" > "$CASE_DIR/out" 2>&1 &
        tool=$!
        until [ -s "$CASE_DIR/pids" ]; do
            kill -0 $tool 2>/dev/null || fail "mpicrypt $verb ended: $(cat "$CASE_DIR/out")"
            sleep 0.02
        done
        launcher=$(head -n 1 "$CASE_DIR/pids")
        kill -$signal $tool
        status=0; wait $tool || status=$?
        [ $status -gt 128 ] && [ "$(kill -l $status)" = $signal ] ||
            fail "mpicrypt $verb, $signal: status $status: $(cat "$CASE_DIR/out")"
        ! gone "$(cat "$CASE_DIR/left")" || fail "mpicrypt $verb, $signal: waited for what the launcher left"
        kill "$(cat "$CASE_DIR/left")"
        gone "$launcher" || fail "mpicrypt $verb, $signal: the launcher goes on"
        [ "$(cat "$CASE_DIR/pids")" = "$launcher" ] || fail "mpicrypt $verb, $signal: another launcher was started"
        [ -z "$(ls -A "$TMPDIR")" ] || fail "mpicrypt $verb, $signal: left $(ls -A "$TMPDIR")"
        echo "mpicrypt $verb, $signal: ended"
    done
done

echo "a launcher that does not end: it is left, and named"
cat > "$CASE_DIR/deaf" <<END
#!/bin/sh
trap '' TERM
echo "\$OMPI_MCA_odls_base_sigkill_timeout \$PRTE_MCA_odls_base_sigkill_timeout" > "$CASE_DIR/deaf.grace"
echo \$\$ > "$CASE_DIR/deaf.pid"
while :; do sleep 1; done
END
chmod +x "$CASE_DIR/deaf"
for verb in "tune --out $CASE_DIR/tuned.conf" "bench pingpong"; do
    rm -f "$CASE_DIR/deaf.pid"
    PRTE_MCA_odls_base_sigkill_timeout=7 mpicrypt $verb --mpirun "$CASE_DIR/deaf" > "$CASE_DIR/out" 2>&1 &
    tool=$!
    until [ -s "$CASE_DIR/deaf.pid" ]; do
        kill -0 $tool 2>/dev/null || fail "mpicrypt $verb ended: $(cat "$CASE_DIR/out")"
        sleep 0.02
    done
    kill -TERM $tool
    status=0; wait $tool || status=$?
    deaf=$(cat "$CASE_DIR/deaf.pid")
    ! gone "$deaf" || fail "the launcher ended by itself"
    kill -KILL "$deaf"
    [ $status = 143 ] || fail "status $status: $(cat "$CASE_DIR/out")"
    # An mpirun would not wait between its signals to the ranks, unless the user says so.
    [ "$(cat "$CASE_DIR/deaf.grace")" = "0 7" ] || fail "an mpirun waits for its ranks: $(cat "$CASE_DIR/deaf.grace")"
    grep -q "deaf (process $deaf) has not ended yet" "$CASE_DIR/out" || fail "it does not name the launcher: $(cat "$CASE_DIR/out")"
done

echo "a signal that is ignored"
mkfifo "$CASE_DIR/go"
printf '#!/bin/sh\necho $$ > "%s"\ncat "%s"\nexit 5\n' "$CASE_DIR/ignoring.pid" "$CASE_DIR/go" > "$CASE_DIR/ignoring"
chmod +x "$CASE_DIR/ignoring"
(trap '' INT HUP; exec mpicrypt tune --out "$CASE_DIR/tuned.conf" --mpirun "$CASE_DIR/ignoring") > "$CASE_DIR/out" 2>&1 &
tool=$!
until [ -s "$CASE_DIR/ignoring.pid" ]; do
    kill -0 $tool 2>/dev/null || fail "mpicrypt tune ended: $(cat "$CASE_DIR/out")"
    sleep 0.02
done
kill -INT $tool
kill -HUP $tool
: > "$CASE_DIR/go"
status=0; wait $tool || status=$?
[ $status = 1 ] && grep -q 'ended with status 5' "$CASE_DIR/out" || fail "status $status: $(cat "$CASE_DIR/out")"

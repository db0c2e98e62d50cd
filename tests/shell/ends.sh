# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A run.sh that is ended by a signal leaves no process behind: it is sent to run.sh alone, by
# `timeout` to run.sh's process group, and as Ctrl-C sends it.  The run has two cases that would
# take an hour, a script with its cluster and an MPI program, and nothing to build.
set -eu
. "$SRC/tests/lib.sh"

inner=$CASE_DIR/inner                           # in the command, or the environment, of whatever is there
tests=$inner/src/tests
mkdir -p "$tests/shell" "$tests/mpi" "$inner/tmp"
cp "$SRC"/tests/{run,lib,build,cases}.sh "$SRC/tests/vcluster" "$tests"
cp "$(command -v sleep)" "$inner/sleep"
touch "$inner/src/configure.ac"
printf '#!/bin/sh\nexit 0\n' > "$inner/src/autogen.pl"
cat > "$inner/src/configure" <<'END'
#!/bin/sh
for dir in . opal/mca/common/crypt opal/mca/common/cryptfile tests/unit; do
    mkdir -p $dir
    echo 'all check install clean:' > $dir/Makefile
done
END
chmod +x "$inner/src/autogen.pl" "$inner/src/configure"

mkdir "$tests/unit"
: > "$tests/unit/tests.list"
echo 'hour default,timeout=3600' > "$tests/shell/tests.list"
echo 'hour default,timeout=3600 2x1' > "$tests/mpi/tests.list"
cat > "$tests/shell/hour.sh" <<END
. "\$SRC/tests/lib.sh"
cluster_up 2
timeout 3600 "$inner/sleep" 3600 &
setsid "$inner/sleep" 3600 &
vcluster exec node1 env -i setsid "$inner/sleep" 3600 &
vcluster mpirun -n 2 --map-by node sh -c 'echo here; exec "\$0" 3600' "$inner/sleep" > "$inner/script"
END
cat > "$tests/mpi/hour.c" <<END
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    char name[512];
    snprintf(name, sizeof(name), "$inner/program.%s", getenv("OMPI_COMM_WORLD_RANK"));
    fclose(fopen(name, "w"));
    return (int) sleep(3600);
}
END

# What belongs to the run: PID and name, one a line.
left() {
    local file pid
    for file in $(grep -lsaF -- "$inner" /proc/[0-9]*/cmdline /proc/[0-9]*/environ); do
        pid=${file#/proc/} pid=${pid%/*}
        # A process that ends has neither.
        name=$(cat "/proc/$pid/cmdline" 2>/dev/null | tr '\0' ' ')
        [ -z "$name" ] || echo "$pid $name"
    done | sort -u
}

# ended WAY COMMAND...: the run as COMMAND has it, ended by end_WAY.
ended() {
    local way=$1 rc=0 pid; shift
    rm -f "$inner"/{script,program.0,program.1}
    TMPDIR=$inner/tmp OMPI_CRYPT_TEST_DIR=$inner/work env --default-signal=INT setsid "$@" > "$inner/log" 2>&1 &
    pid=$!
    until [ -e "$inner/program.0" ] && [ -e "$inner/program.1" ] && [ "$(grep -c here "$inner/script" 2>/dev/null)" = 2 ] &&
        [ "$(left | grep -c "$inner/sleep 3600")" -ge 5 ]; do
        kill -0 "$pid" 2>/dev/null || fail "the run ended: $(cat "$inner/log"), $(left)"
        sleep 0.05
    done
    "end_$way" "$pid"
    wait "$pid" || rc=$?
    left > "$inner/left"
    [ ! -s "$inner/left" ] || fail "$way: the run left $(cat "$inner/left")"
    [ $rc = 130 ] || fail "$way: status $rc: $(cat "$inner/log")"
    [ -z "$(ls -A "$inner/tmp")" ] || fail "$way: files are left: $(ls "$inner/tmp")"
    echo "$way: nothing is left"
}

run=("$tests/run.sh" --no-packages)
end_alone()   { kill -TERM "$1"; }
end_twice()   { kill -TERM "$1"; kill -TERM "$1"; }
end_timeout() { kill -TERM "$1"; }              # hands it on as when the time is up, to the group as well
end_ctrl_c()  { kill -INT -- "-$1"; }
ended alone "${run[@]}"
ended twice "${run[@]}"
ended timeout timeout 3600 "${run[@]}"
ended ctrl_c "${run[@]}"

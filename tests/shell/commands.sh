# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# commands.sh [SECTION]: every command of README.md, HACKING.md and docs/ is in
# commands.list; those of a section are run here as they stand, on a virtual
# cluster.  What stands for places of a site is put into a scratch directory:
# /scratch, /keys, /var/lib and PREFIX; hosts, a, b are nodes of the cluster.
set -eu
. "$SRC/tests/lib.sh"
section=${1:-run}
python3 -c pass || skip "python3 is missing"

cd "$SRC"
python3 tests/shell/commands.py tests/shell/commands.list README.md HACKING.md tests/README.rst docs/*.rst docs/design/*.rst \
    > "$CASE_DIR/commands" || fail "tests/shell/commands.list and the documents differ"

# Sections that another test or nobody runs.
while IFS=$'\t' read -r where command; do
    case $where in
        run|measure-?*|'not: '?*) ;;
        packages)
            for package in ${command#apt install}; do
                grep -qE "^${package//+/\\+}( |\$)" tests/packages.txt || fail "$package is not in tests/packages.txt"
            done ;;
        *)  must test -e "tests/$where.sh" > "$CASE_DIR/null"
            grep -q "^${where#*/} " "tests/${where%/*}/tests.list" || fail "tests/${where%/*}/tests.list has no ${where#*/}" ;;
    esac
done < "$CASE_DIR/commands"

# ---- a place where they can run ----

nodes=4; [ "$section" = run ] || nodes=8
cluster_up $nodes --slots 4
# A home on a local file system that every node has of its own, as keygen wants.
home=/dev/shm/ompi-crypt-commands-$$
trap 'vcluster down > /dev/null 2>&1 || true; rm -rf "$home"' EXIT
mkdir -m 700 "$home"
for ((i = 0; i < nodes; i++)); do vcluster exec node$i mkdir -m 700 "$home"; done
export HOME=$home OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keystore
# As a user has it.
unset OMPI_MCA_crypt_transport
ln -s "$PREFIX" "$HOME/ompi-crypt"
mkdir "$CASE_DIR/bin" "$CASE_DIR/place"
cd "$CASE_DIR/place"
cp "$VCLUSTER_DIR/hostfile" hosts

# An application: messages and a file.
cat > app.c <<'END_C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, sum, one = 1, ranks;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (MPI_SUCCESS != MPI_File_open(MPI_COMM_WORLD, "output", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file)
        || MPI_SUCCESS != MPI_File_write_at_all(file, 4096 * rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE)
        || MPI_SUCCESS != MPI_File_close(&file)) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return sum != ranks;
}
END_C
must mpicc -Wall -o app app.c

# mpirun takes the cluster's nodes, the first two where ranks are dealt out (hosts
# a and b of the documents); ssh goes to one of them; what measures measures little.
cat > "$CASE_DIR/bin/mpirun" <<END_SH
#!/bin/bash
words=()
while ((\$#)); do
    case \$1 in --host|--hostfile) shift ;; *) words+=("\$1") ;; esac
    shift
done
[[ " \${words[*]} " != *" --map-by node "* ]] || words=(--host node0:8,node1:8 "\${words[@]}")
PATH=$PATH exec "$SRC/tests/vcluster" mpirun "\${words[@]}"
END_SH
cat > "$CASE_DIR/bin/ssh" <<END_SH
#!/bin/sh
exec "$SRC/tests/vcluster" agent "\$@"
END_SH
cat > "$CASE_DIR/bin/mpicrypt" <<END_SH
#!/bin/bash
case \$1 in
    bench) set -- "\$@" --fast 1 --rounds 1 --laps 1 --lap-ms 1 --per-cpu 8 ;;
    tune)  set -- "\$@" --rounds 1 --laps 1 --lap-ms 1 ;;
    speed) set -- "\$@" --rounds 2 --batch-ms 0.1 ;;
esac
exec "$PREFIX/bin/mpicrypt" "\$@"
END_SH
chmod +x "$CASE_DIR"/bin/*
export PATH=$CASE_DIR/bin:$PATH
[ ! -e /usr/share/modules/init/bash ] || . /usr/share/modules/init/bash

# ---- run ----

# This section's commands, with what prepares them, in the list's order.
sed -n "/^\[$section\]/,/^\[/{/^\[/d;/^$/d;/^#/d;p}" "$SRC/tests/shell/commands.list" > "$CASE_DIR/list"
while read -r line <&7; do
    command=${line#! }
    for place in /scratch /keys /var/lib; do
        command=$(sed -E "s#(^|[ =])$place/?#\1$CASE_DIR/place/${place##*/}/#g" <<<"$command")
    done
    command=${command//PREFIX/$PREFIX}
    case $command in
        *VERB\ --help)
            for verb in $(mpicrypt --help | sed -n '/^VERBS/,/^$/s/^       \([a-z]*\) .*/\1/p'); do
                must mpicrypt "$verb" --help > "$CASE_DIR/null"
            done
            continue ;;
        "mpirun "*" : "*) [ "$SERIES" = 4.1 ] || { echo "skipped: mpirun of 5.0.7 crashes over two application contexts: $command"; continue; } ;;
        module*) command -v module > "$CASE_DIR/null" || { echo "skipped: no environment modules: $command"; continue; } ;;
        "mpicrypt keygen"*) command="env -u OMPI_MCA_crypt_psk_file $command" ;;&
        *"speed --threads"*) [ "$(nproc)" -ge 4 ] || command=${command/1,2,4/1,$(nproc)} ;;
        *"--out $CASE_DIR/place/lib/"*) command=${command//"$CASE_DIR/place/lib"/"$home"} ;;
    esac
    echo "+ $command"
    # Not in a subshell: later commands need what `module` and `.` do.
    status=0; eval "$command" > "$CASE_DIR/out" 2>&1 < /dev/null || status=$?
    [ $status = 0 ] || { tail -n 30 "$CASE_DIR/out"; fail "status $status: $line"; }
done 7< "$CASE_DIR/list"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# An encrypted job where a node has nothing of ompi-crypt that can be loaded: only Open MPI can speak there.  The job ends, nothing
# of it runs, and what a user reads is quoted in docs/troubleshooting.rst.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
must in_variant mpicc -O2 -Wall -o "$CASE_DIR/ring" "$SRC/examples/ring.c"
echo "a text" > "$CASE_DIR/text"
cat > "$CASE_DIR/with" <<'END'
#!/bin/bash
[ "$(hostname)" != node1 ] || . "${0%/*}/node1.env"
exec "$@"
END
chmod +x "$CASE_DIR/with"
quotes=("A requested component was not found, or was unable to be opened" "No components were able to be opened in the pml framework"
        "PML crypt cannot be selected" "An error occurred in MPI_Init")
for quote in "${quotes[@]}"; do
    tr -s ' \n' ' ' < "$SRC/docs/troubleshooting.rst" | grep -qF -- "\"$quote" || fail "docs/troubleshooting.rst does not quote \"$quote\""
done

# ends WAY: and says one of these.  4.1's mpirun loses every text now and then, and says in a line about show_help.c that it did (4 of
# 20 plain jobs with `--mca pml nosuch`): that job has ended as it must, and only what it says is looked for in another.
ends() {
    local rc quote found lost
    for lost in {0..9}; do
        rc=0 found=
        timeout -k 5 100 "$SRC/tests/vcluster" mpirun -n 4 --map-by node "$CASE_DIR/with" "$CASE_DIR/ring" "$CASE_DIR/text" \
            > "$CASE_DIR/raw" 2>&1 < /dev/null || rc=$?
        tr -d '\0' < "$CASE_DIR/raw" > "$CASE_DIR/out"
        [ $rc != 0 ] && [ $rc != 124 ] && ! grep -q 'the messages came back' "$CASE_DIR/out" ||
            { cat "$CASE_DIR/out"; fail "$1: status $rc"; }
        for quote in "${quotes[@]}"; do
            tr -s ' \n' ' ' < "$CASE_DIR/out" | grep -qF -- "$quote" && found+=" \"$quote\"" || :
        done
        [ -z "$found" ] && [ "$SERIES" = 4.1 ] && grep -q 'ORTE_ERROR_LOG: .* in file .*/show_help\.c' "$CASE_DIR/out" || break
    done
    echo "+ $1: status $rc,$found (texts that mpirun lost before: $lost)"
    [ -n "$found" ] || { cat "$CASE_DIR/out"; fail "$1"; }
}
on() { local way=$1 node; shift; for node; do must vcluster exec "$node" "${with[@]}"; done; ends "$way, $*"
       for node; do must vcluster exec "$node" umount -l "$where"; done; }

: > "$CASE_DIR/node1.env"
where=$PREFIX with=(mount -t tmpfs none "$PREFIX")
for nodes in node0 node1 'node0 node1'; do on "not installed" $nodes; done
core=$(basename "$(echo "$PREFIX"/lib/lib*mca_common_crypt.so.*.*)")
cp -a "$PREFIX/lib" "$CASE_DIR/lib"
echo "not a library" > "$CASE_DIR/lib/$core"
where=$PREFIX/lib with=(mount --bind "$CASE_DIR/lib" "$PREFIX/lib")
for nodes in node0 node1 'node0 node1'; do on "a library that cannot be loaded" $nodes; done
echo 'unset OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path LD_LIBRARY_PATH' > "$CASE_DIR/node1.env"
ends "env.sh not for the processes of node1"
echo 'export OMPI_MCA_mca_base_component_path=SYS_DEFAULT:/opt/other/lib/ompi-crypt:USER_DEFAULT' > "$CASE_DIR/node1.env"
ends "another prefix on node1"
: > "$CASE_DIR/node1.env"
unset OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path LD_LIBRARY_PATH
ends "env.sh not sourced"

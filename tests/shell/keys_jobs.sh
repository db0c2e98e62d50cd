# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Jobs of two nodes whose processes are told by which keys to know each other:
# what the scripts keys*.sh share.  Sourced after lib.sh.

cluster_up 2
unset OMPI_MCA_crypt_auth OMPI_MCA_crypt_psk_file
export HOME=$CASE_DIR/home
mkdir "$HOME"

# What a node's processes have in their environment: set NODE NAME=VALUE...  It is
# in a script, as processes that are spawned do not inherit what mpirun passes on.
cat > "$CASE_DIR/with" <<END
#!/bin/bash
echo "\$PMIX_NAMESPACE" > "$CASE_DIR/namespace"
set -a
HOME=$HOME
. "$CASE_DIR/\$(hostname).env"
exec "\$@"
END
chmod +x "$CASE_DIR/with"
set_node() { local node=$1; shift; printf 'OMPI_MCA_%s\n' "$@" > "$CASE_DIR/$node.env"; }
set_both() { set_node node0 "$@"; set_node node1 "$@"; }

# The job of all that follows: $program, one process a node.
job() {
    vcluster mpirun -n 2 --map-by node "$CASE_DIR/with" "$program" ${arguments[@]+"${arguments[@]}"} > "$CASE_DIR/out" 2>&1 < /dev/null
}
arguments=()

runs() {
    echo "+ $1"
    job || { cat "$CASE_DIR/out"; fail "$1: the job failed"; }
}

# says_too TEXT: the last job said it, wherever lines break.
says_too() {
    tr -s ' \n' ' ' < "$CASE_DIR/out" | grep -qF -- "$1" ||
        { cat "$CASE_DIR/out"; fail "it does not say \"$1\""; }
}

# refused WHAT TEXT...: the job fails, and says each TEXT.
refused() {
    local what=$1 text; shift
    echo "+ ! $what"
    if job; then cat "$CASE_DIR/out"; fail "$what: the job ran"; fi
    for text in "$@"; do
        says_too "$text"
    done
}

# ---- munge: a daemon a node ----

has_munge() { vcluster exec node0 bash -c 'command -v munged' >/dev/null; }

munge_start() {     # NODE KEYFILE [MUNGED-OPTION...]
    local node=$1 key=$2; shift 2
    vcluster exec "$node" bash -c 'rm -rf /dev/shm/m; mkdir -m 755 /dev/shm/m; cd /dev/shm/m
        (umask 077; cat > key)
        munged --key-file=$PWD/key --socket=$PWD/s --pid-file=$PWD/pid --log-file=$PWD/log --seed-file=$PWD/seed "$@"' \
        munge "$@" < "$key"
}

munge_end() { vcluster exec "$1" bash -c 'kill $(cat /dev/shm/m/pid); while [ -e /dev/shm/m/s ]; do sleep 0.05; done'; }

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The ways of getting it wrong, in misuse.table: what each says first, and how the job ends.
# misuse.sh [TIER]: the rows of that tier; without one, those of the default tier.
set -eu
. "$SRC/tests/lib.sh"

tier=${1:-default}
cluster_up 2 --slots 2
must in_variant mpicc -O2 -Wall -Wextra -Werror -o "$CASE_DIR/job" "$SRC/tests/shell/misuse/job.c"
export HOME=$CASE_DIR/home
mkdir -p "$HOME/.openmpi"
home=$HOME/.openmpi/mca-params.conf
unset OMPI_MCA_pml

# key FAULT: a psk in $1, in which that is wrong.
key() {
    local path=$CASE_DIR/psk digits
    digits=$(od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n')
    rm -rf "$path" "$path.real"
    (umask 077
    case $1 in
        missing)   ;;
        mode640)   echo "$digits" > "$path"; chmod 640 "$path" ;;
        directory) mkdir "$path" ;;
        fifo)      mkfifo "$path" ;;
        symlink)   echo "$digits" > "$path.real"; ln -s "$path.real" "$path" ;;
        empty)     : > "$path" ;;
        truncated) echo "${digits:2}" > "$path" ;;
        crlf)      printf '%s\r\n' "$digits" > "$path" ;;
        text)      echo "correct horse battery staple, and some more words until it is 64" > "$path" ;;
        zero)      printf '%064d\n' 0 > "$path" ;;
        *)         fail "$1: no such fault of a key" ;;
    esac)
}

# What is said of windows depends on the series, and on osc/pt2pt of 4.1.
windows="cannot be encrypted with Open MPI 5.0"
threads="A selected component would bypass encryption:"
if [ "$SERIES" = 4.1 ]; then
    windows="osc/pt2pt, which is not selected"
    threads="Windows over several nodes need osc/pt2pt, which does not support"
fi

# job PROGRAM WHERE SETTING: what it says is in out, its status in $status.
job() {
    local name=${3%%=*} value=${3#*=} before=() arguments=() ranks=(-n 4)
    rm -f "$home" "$CASE_DIR/site.conf" "$CASE_DIR/file" "$CASE_DIR/file.mpicrypt"
    case $2 in
        key)  key "$3"
              before=("OMPI_MCA_crypt_auth=psk" "OMPI_MCA_crypt_psk_file=$CASE_DIR/psk") ;;
        shm)  ranks=(-n 2 --map-by node)
              vcluster exec node1 sh -c 'mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero > /dev/shm/full' ;;
        env)  before=("OMPI_MCA_$name=$value") ;;
        cli)  arguments=(--mca "$name" "$value") ;;
        home) echo "$name = $value" > "$home" ;;
        site) echo "$name = $value" > "$CASE_DIR/site.conf"
              before=("OMPI_MCA_mca_base_param_files=$CASE_DIR/site.conf") ;;
        *)    fail "$1: no such place" ;;
    esac
    command=("$CASE_DIR/job" "$1")
    [ "$1" != file ] || command+=("$CASE_DIR/file")
    status=0
    env ${before[@]+"${before[@]}"} "$SRC/tests/vcluster" mpirun "${ranks[@]}" -x HOME --mca pml "$pml" \
        ${arguments[@]+"${arguments[@]}"} "${command[@]}" > "$CASE_DIR/out" 2>&1 < /dev/null || status=$?
    [ "$2" != shm ] || vcluster exec node1 umount /dev/shm
}

wrong() { cat "$CASE_DIR/out"; fail "$row: $1"; }

count=0
while read -r row_tier pml program where setting outcome first; do
    case $row_tier in ''|'#'*) continue ;; esac
    [ "$row_tier" = default ] || [ "$tier" = full ] || continue
    row="$pml $program $where $setting" text=
    if [[ $first = *" // "* ]]; then
        text=${first#* // } first=${first%% // *}
    fi
    text=${text/\%WINDOW%/$windows} text=${text/\%THREADS%/$threads}
    job "$program" "$where" "$setting"
    # 5.0's mpirun may warn of its own launcher first.
    said=$(grep -vE '^(-*|job: done|.* plm:ssh: Warning: setpgid.*)$' "$CASE_DIR/out" | head -n 1 || true)
    case $first in
        any)  ;;
        none) [ -z "$said" ] || wrong "it says something" ;;
        *)    [[ $said = "$first"* ]] || wrong "it does not begin with \"$first\""
              # Later texts are shown once a node and, by Open MPI, for those that came second.
              [[ $first != *": ompi-crypt "* ]] || [ "$(grep -cF -- "$first" "$CASE_DIR/out")" -le 2 ] ||
                  wrong "it is said more than once a node" ;;
    esac
    [ -z "$text" ] || tr -s ' \n' ' ' < "$CASE_DIR/out" | grep -qF -- "$text" || wrong "it does not say \"$text\""
    case $outcome in
        ends) [ $status != 0 ] || wrong "the job ran"
              [ ! -e "$CASE_DIR/file" ] || wrong "it made the file" ;;
        runs) [ $status = 0 ] && grep -q '^job: done' "$CASE_DIR/out" || wrong "status $status" ;;
        *)    fail "$outcome: no such outcome" ;;
    esac
    echo "$row: status $status, \"$said\""
    count=$((count + 1))
done < "$SRC/tests/shell/misuse.table"
[ $count -ge 5 ] || fail "only $count rows"
echo "$count rows"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The ways of getting it wrong, in misuse.table: what each says first, and how the job ends.
# misuse.sh [TIER]: the rows of that tier; without one, those of the default tier.  silent: those about
# what is installed on the nodes, where Open MPI does not say what it cannot load.
set -eu
. "$SRC/tests/lib.sh"

tier=${1:-default}
# Seconds after which a job hangs: no measure of anything.
bound=100
cluster_up 2 --slots 2
must in_variant mpicc -O2 -Wall -Wextra -Werror -o "$CASE_DIR/job" "$SRC/tests/shell/misuse/job.c"
must in_variant gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/version.so" "$SRC/tests/shell/misuse/version.c" -ldl
must in_variant gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$CASE_DIR/slow.so" "$SRC/tests/shell/misuse/slow.c" -ldl
. "$SRC/tests/shell/misuse/faults.sh"
export HOME=$CASE_DIR/home
mkdir -p "$HOME/.openmpi"
must in_variant mpicrypt key new site
home=$HOME/.openmpi/mca-params.conf
unset OMPI_MCA_pml

# What is said of windows depends on the series, and on osc/pt2pt of 4.1.
windows="windows over several nodes cannot be encrypted here"
threads="A selected component would bypass encryption:"
if [ "$SERIES" = 4.1 ]; then
    windows="osc/pt2pt, which is not selected"
    threads="Windows over several nodes need osc/pt2pt, which does not support"
fi
[ "$tier" != silent ] || export OMPI_MCA_mca_base_component_show_load_errors=0
core=$(basename "$(echo "$PREFIX"/lib/lib*mca_common_crypt.so.*.*)")
ucx=(--mca pml_crypt_host ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)

# What the processes of a node have in their environment beside the job's.  From 5.0 on what they say
# themselves goes into a file, as mpirun may lose the last of it.
aside=
[ "$SERIES" = 4.1 ] || aside=">> '$CASE_DIR/aside' 2>&1"
cat > "$CASE_DIR/with" <<END
#!/bin/bash
set -a
[ ! -e "$CASE_DIR/\$(hostname).env" ] || . "$CASE_DIR/\$(hostname).env"
set +a
[ "\${HOME-}" != none ] || unset HOME
exec "\$@" $aside
END
chmod +x "$CASE_DIR/with"

# job PML PROGRAM WHERE SETTING: what it says is in out, its status in $status.
job() {
    local name=${4%%=*} value=${4#*=} before=() arguments=() ranks=(-n 4) pml=$1
    file=$CASE_DIR/file
    : > "$CASE_DIR/aside"
    rm -f "$home" "$CASE_DIR/site.conf" "$file" "$CASE_DIR"/node?.env
    [ "$pml" != ucx ] || { pml=crypt arguments=("${ucx[@]}"); }
    case $3 in
        key)   key "$4"
               before=("OMPI_MCA_crypt_auth=psk" "OMPI_MCA_crypt_psk_file=$psk") ;;
        shm)   ranks=(-n 2 --map-by node)
               over node1 -t tmpfs -o size=4k none /dev/shm
               vcluster exec node1 sh -c 'head -c 4096 /dev/zero > /dev/shm/full' ;;
        node)  node "$4" node1 ;;
        nodes) node "$4" node0 node1 ;;
        label|labels)
               node "$4" node1 $([ "$3" = label ] || echo node0)
               before=("OMPI_MCA_fs_crypt_key_label=site") ;;
        disk)  ranks=(-n 2 --host node0:2); disk "$4"
               before=("OMPI_MCA_fs_crypt_key_label=site") ;;
        file)  file "$4" ;;
        node1) echo "$name=$value" > "$CASE_DIR/node1.env" ;;
        slow)  echo "LD_PRELOAD=$CASE_DIR/slow.so" | tee "$CASE_DIR/node0.env" > "$CASE_DIR/node1.env"
               before=("OMPI_MCA_$name=$value") ;;
        nohome)
               echo "HOME=$4" | tee "$CASE_DIR/node0.env" > "$CASE_DIR/node1.env"
               before=(-u OMPI_MCA_crypt_psk_file "OMPI_MCA_crypt_auth=psk") ;;
        env)   before=("OMPI_MCA_$name=$value") ;;
        cli)   arguments+=(--mca "$name" "$value") ;;
        home)  echo "$name = $value" > "$home" ;;
        site)  echo "$name = $value" > "$CASE_DIR/site.conf"
               before=("OMPI_MCA_mca_base_param_files=$CASE_DIR/site.conf") ;;
        *)     fail "$3: no such place" ;;
    esac
    # A plain job that is given parameters of messages says first that it is plain.
    [ "$pml" != ob1 ] || before=(-u OMPI_MCA_crypt_psk_file -u OMPI_MCA_crypt_transport ${before[@]+"${before[@]}"})
    status=0
    env ${before[@]+"${before[@]}"} timeout -k 5 $bound "$SRC/tests/vcluster" mpirun "${ranks[@]}" -x HOME --mca pml "$pml" \
        ${arguments[@]+"${arguments[@]}"} "$CASE_DIR/with" "$CASE_DIR/job" "$2" "$file" > "$CASE_DIR/raw" 2>&1 < /dev/null || status=$?
    tr -d '\000' < "$CASE_DIR/raw" > "$CASE_DIR/shown"    # mpirun of 5.0 ends texts so
    cat "$CASE_DIR/shown" "$CASE_DIR/aside" > "$CASE_DIR/out"
    mend
}

wrong() { cat "$CASE_DIR/out"; fail "$row: $1"; }

# An encrypted file, as a job without fault makes it.
made() {
    job crypt file env fs_crypt_key_label=site
    [ "$status" = 0 ] && cmp -s -n 9 "$file" <(printf '\211MPICRYPT') || { cat "$CASE_DIR/out"; fail "a job without fault"; }
    mv "$file" "$1"
}
must made "$CASE_DIR/whole"

# first_line FILE.  5.0's mpirun may warn of its own launcher first, and of the end of a process, or of its MPI_Abort,
# mpirun may say before it shows what the process said.
first_line() {
    grep -vE '^ *(-*|job: done|.* plm:[rs]sh: Warning: setpgid.*)$' "$1" |
        sed '/^MPI_ABORT was invoked/,/^exactly when Open MPI kills/d; /^Primary job /,/^a non-zero exit/d' | head -n 1 || true
}

# check OUTCOME FIRST TEXT
check() {
    local said own count
    # mpirun may hang when all of the job has ended (tests/vcluster says so).
    [ "$status" != 124 ] && [ "$status" != 137 ] || grep -q '^vcluster: mpirun hung' "$CASE_DIR/out" || wrong "the job hangs"
    said=$(first_line "$CASE_DIR/shown") own=$(first_line "$CASE_DIR/aside")
    case $2 in
        any)  ;;
        none) [ -z "$said$own" ] || wrong "it says something" ;;
        *)    [[ $said = "$2"* || $own = "$2"* ]] || wrong "it does not begin with \"$2\""
              # Later texts are shown once a node and, by Open MPI, for those that came second.
              [[ $2 != *": ompi-crypt "* ]] || [ "$(grep -cF -- "$2" "$CASE_DIR/out")" -le 2 ] ||
                  wrong "it is said more than once a node" ;;
    esac
    [ -z "$3" ] || tr -s ' \n' ' ' < "$CASE_DIR/out" | grep -qF -- "$3" || wrong "it does not say \"$3\""
    case $1 in
        ends)  [ "$status" != 0 ] || wrong "the job ran"
               [ ! -e "$file" ] || wrong "it made the file" ;;
        fails) [ "$status" != 0 ] || wrong "the job ran" ;;
        runs)  [ "$status" = 0 ] && grep -q '^job: done' "$CASE_DIR/out" || wrong "status $status" ;;
        *)     fail "$1: no such outcome" ;;
    esac
    echo "$row: status $status, \"$said\"${own:+, \"$own\"}"
}

# shown FIRST: does the first line of a help text begin so, whatever stands for its %s?  Tested for all
# rows: of a text that has changed, those of the full tier would tell late.
shown() {
    awk -v first="$1" '
        text { n = split(first, wanted, " "); m = split($0, word, " "); good = m >= n
               for (i = 1; i <= n && good; i++)
                   good = word[i] ~ /%/ || word[i] == wanted[i] || (i == n && index(word[i], wanted[i]) == 1)
               found = found || good }
        { text = /^\[/ }
        END { exit !found }' "${help[@]}"
}
mapfile -t help < <(find "$SRC/opal" "$SRC/ompi" -name 'help-*.txt')
while read -r row_tier pml program where setting outcome first; do
    case $row_tier in ''|'#'*) continue ;; esac
    case $first in any*|none*|ERROR:*|WARNING:*) continue ;; esac
    shown "${first%% // *}" || fail "no help text begins with \"${first%% // *}\" ($setting)"
done < "$SRC/tests/shell/misuse.table"

wanted() {              # wanted TIER WHERE: is that row to be run?
    case $tier:$1 in
        silent:*)  [[ $2 = node || $2 = nodes || $2 = label || $2 = labels ]] ;;
        *:silent)  false ;;
        *)         [ "$1" = default ] || [ "$tier" = full ] ;;
    esac
}
count=0
while read -r row_tier pml program where setting outcome first; do
    case $row_tier in ''|'#'*) continue ;; esac
    wanted "$row_tier" "$where" || continue
    row="$pml $program $where $setting" text=
    if [[ $first = *" // "* ]]; then
        text=${first#* // } first=${first%% // *}
    fi
    text=${text/\%WINDOW%/$windows} text=${text/\%THREADS%/$threads} setting=${setting/\%CORE%/$core}
    job "$pml" "$program" "$where" "$setting"
    check "$outcome" "$first" "$text"
    count=$((count + 1))
done < "$SRC/tests/shell/misuse.table"
[ $count -ge 5 ] || fail "only $count rows"
echo "$count rows"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Which cases there are, and running one.  Sourced by run.sh.
#
# A case is known as KIND[-VARIANT]/NAME: KIND is the directory below tests/,
# VARIANT the build it runs on (none: for this system's Open MPI; 5.0; 6.0; asan: with
# sanitizers).  Where this system's Open MPI is 5.0 or 6.0, that is what `none` means.
#
# CASE_TRANSPORT says what protects the messages of a case's jobs:
#
#     user    what a user of TCP gets, who sets nothing: btl/crypt
#     ob1     pml/crypt over ob1, which has to be asked for (crypt_transport=pml)
#     ucx     pml/crypt over ucx (@UCX@, or a script's argument ucx)
#     cm      pml/crypt over cm (@RXM@, or a script's argument cm)
#     plain   nothing (@PLAIN@)
#     -       a unit test: there is no job
#
# A program that its line gives no transport has a second case, NAME+ob1, in the full tier.  A script
# may set another transport for some of its jobs.

declare -A CASE_TAGS CASE_FILE CASE_ARGS CASE_TRANSPORT
CASES=() SELECTED=() FAILED=()

# tests/*/tests.list -> CASES, by variant, and what belongs to each.  Unit tests
# come first: what they find explains what comes after.
read_cases() {
    local list suffixes=('' -5.0 -6.0 -asan)
    case $NATIVE in
        5.0) suffixes=('' -6.0 -asan) ;;
        6.0) suffixes=('' -asan) ;;
    esac
    for VARIANT_SUFFIX in "${suffixes[@]}"; do
        read_list "$SRC/tests/unit/tests.list"
        for list in "$SRC"/tests/*/tests.list; do
            [[ $list = */unit/tests.list ]] || read_list "$list"
        done
    done
}

# The lists' formats are in their heads, and in tests/README.rst.
read_list() {
    local list=$1 kind name tags rest file case n transport
    local -A seen
    kind=$(basename "$(dirname "$list")")
    while read -r name tags rest; do
        case $name in ''|'#'*) continue ;; esac
        case=$kind$VARIANT_SUFFIX/$name n=2
        while [ -n "${seen[$case]-}" ]; do
            case=$kind$VARIANT_SUFFIX/$name.$n n=$((n + 1))
        done
        seen[$case]=yes
        if [ "$kind" = unit ]; then
            [[ " $tags $rest " = *" once "* ]] && tags=default,sanitize || tags=default,5.0,sanitize
            file=$name rest=
        elif [ -e "$SRC/tests/$kind/$name.c" ]; then
            file=$name.c
        elif [ -e "$SRC/tests/$kind/$name.sh" ]; then
            file=$name.sh
        else
            die "$list: there is no $name.c or $name.sh beside it"
        fi
        case $kind,$tags, in
            unit,*)  transport=- ;;
            *,ob1,*) transport=ob1 ;;
            *)  case " $rest " in
                    *' @UCX@ '*|*' ucx '*) transport=ucx ;;
                    *' @RXM@ '*|*' cm '*)  transport=cm ;;
                    *' @PLAIN@ '*)         transport=plain ;;
                    *)                     transport=user ;;
                esac ;;
        esac
        add_case "$case" "$tags" "$file" "$rest" $transport
        if [[ $transport = user && $file = *.c && ,$tags, != *,not-ob1,* ]]; then
            add_case "$case+ob1" "$(sed -E 's/^(default|ci),?/full,/; s/,(5\.0|6\.0|sanitize)\b//g' <<<"$tags")" "$file" "$rest" ob1
        fi
    done < "$list"
}

# add_case CASE TAGS FILE ARGS TRANSPORT, unless it is not for this variant.
add_case() {
    case $VARIANT_SUFFIX in
        -5.0)  [[ $3 != *.sh || ,$2, = *,5.0,* || ,$2, = *,full-5.0,* ]] && [[ ! ,$2, =~ ,(4.1|not-5.0), ]] || return 0 ;;
        # All of 5.0's, unless the list says not.
        -6.0)  [[ $3 != *.sh || ,$2, = *,5.0,* || ,$2, = *,full-5.0,* ]] && [[ ! ,$2, =~ ,(4.1|both|both-6.0|not-6.0), ]] || return 0 ;;
        -asan) [[ ,$2, = *,sanitize,* ]] || return 0 ;;
    esac
    [[ ,$2, != *,not-$NATIVE,* ]] || return 0
    [[ " $4 " != *' @ACCEL@ '* || $VARIANT_SUFFIX = -[56].0 || $NATIVE != 4.1 ]] || return 0      # 4.1 has no accelerators
    CASES+=("$1")
    CASE_TAGS[$1]=$2 CASE_FILE[$1]=$3 CASE_ARGS[$1]=$4 CASE_TRANSPORT[$1]=$5
}

tagged() { [[ ,${CASE_TAGS[$1]}, = *,$2,* ]]; }

# match_cases PATTERN... -> SELECTED, in the order of the lists.  A pattern that
# matches nothing is a mistake: the case that was meant would pass unseen.
match_cases() {
    local case pattern
    local -A matched
    for case in "${CASES[@]}"; do
        for pattern in "$@"; do
            pattern=${pattern/-$NATIVE\//\/}
            [[ $case != $pattern ]] || matched[$pattern]=yes matched[$case]=yes
        done
        [ -z "${matched[$case]-}" ] || SELECTED+=("$case")
    done
    for pattern in "$@"; do
        pattern=${pattern/-$NATIVE\//\/}
        [ -n "${matched[$pattern]-}" ] || { echo "run.sh: no case matches $pattern" >&2; exit 2; }
    done
}

# select_cases TIER SANITIZE [PATTERN...] -> SELECTED
select_cases() {
    local tier=$1 sanitize=$2 case; shift 2
    if (($#)); then
        match_cases "$@"
        return
    fi
    for case in "${CASES[@]}"; do
        case ${case%%/*} in
            *-asan) [ "$sanitize" = yes ] || continue ;;
            *-5.0)  [ "$tier" = full ] || [ "$tier" = soak ] || tagged "$case" 5.0 || continue ;;
            *-6.0)  [ "$tier" = full ] || [ "$tier" = soak ] || tagged "$case" 6.0 || continue ;;
        esac
        case $tier in
            default) tagged "$case" default ;;
            ci)      tagged "$case" default || tagged "$case" ci ;;
            full)    tagged "$case" default || tagged "$case" ci || tagged "$case" full ;;
            soak)    tagged "$case" soak ;;
        esac && SELECTED+=("$case")
    done
}

# Seconds that a case may take: tag timeout=SECONDS.  On a machine that does nothing else:
# programs count the time that they had (tests/mpi/mt.c), and from outside a case is ended
# after three times as much.
limit_of() {
    local limit=300
    tagged "$1" soak && limit=86400
    [[ ${CASE_TAGS[$1]} =~ timeout=([0-9]+) ]] && limit=${BASH_REMATCH[1]}
    echo "$limit"
}

# variants_ready CASE VARIANT...: are they all built?  Else says why not.
variants_ready() {
    local case=$1 variant; shift
    for variant in "$@"; do
        case ${VARIANT_STATE[$variant]} in
            absent) skipped "$case" 0 "${VARIANT_REASON[$variant]}"; return 1 ;;
            broken) failed_build "$case" "$variant" "${VARIANT_REASON[$variant]}"; return 1 ;;
        esac
    done
}

# Everything that a case prints goes to its log, which is shown if it fails.
run_case() {
    local case=$1 kind=${1%%/*} variant=$NATIVE needed one rc log started took
    case $kind in *-5.0|*-6.0|*-asan) variant=${kind##*-} ;; esac
    kind=${kind%-5.0} kind=${kind%-6.0} kind=${kind%-asan}
    log=$WORK/log/${case//\//.}.log
    mkdir -p "$WORK/log"
    needed=("$variant")
    ! tagged "$case" both || needed+=(4.1 5.0)
    ! tagged "$case" both-6.0 || needed+=(4.1 6.0)
    ! tagged "$case" 4.1 || needed+=(4.1)
    # Not in a condition: build_variant relies on `set -e`.
    for one in "${needed[@]}"; do
        build_variant "$one"
    done
    variants_ready "$case" "${needed[@]}" || return 0
    started=$(milliseconds)
    # A subshell, so that `exit` in a helper ends the case only; outside of any
    # condition, where `set -e` would be off.
    ( set -e; run_in_variant "$case" "$kind" "$variant" ) >"$log" 2>&1 8>&-
    rc=$?
    took=$(($(milliseconds) - started))
    case $rc in
        0)  passed "$case" $took ;;
        77) reason=$(sed -n 's/^skipped[^:]*: *//p' "$log" | head -n 1)
            # Others use this status, too: libFuzzer for what it found.
            if [ -n "$reason" ]; then skipped "$case" $took "$reason"; else failed "$case" $took "$log"; fi ;;
        *)  [ $rc -ne 124 ] || echo "(ended after $((3 * $(limit_of "$case"))) seconds)" >> "$log"
            failed "$case" $took "$log"
            cluster_stop ;;     # whatever it left behind must not disturb the next
    esac
}

# run_in_variant CASE KIND VARIANT: the exit status is the case's.
run_in_variant() {
    local case=$1 kind=$2 variant=$3 name=${CASE_FILE[$1]} limit
    limit=$(limit_of "$case")
    use_variant "$variant"
    echo "transport: ${CASE_TRANSPORT[$case]}"
    [ "${CASE_TRANSPORT[$case]}" != ob1 ] || export OMPI_MCA_crypt_transport=pml
    case $kind:$name in
        unit:*) run_unit "$name" "$limit" ;;
        *.c)    run_mpi "$kind" "${name%.c}" "$limit" ${CASE_ARGS[$case]} ;;
        *.sh)   run_script "$kind" "$name" "$limit" ${CASE_ARGS[$case]} ;;
    esac
}

run_unit() {                                    # run_unit NAME LIMIT
    # As under `make check`; the core has no excuse for a leak.
    export srcdir=$SRC/tests/unit ASAN_OPTIONS=$SANITIZE:detect_leaks=1
    cd "$BUILD/tests/unit"
    in_variant timeout -k 10 $(($2 * 3)) "$BUILD/tests/unit/$1"
}

# run_mpi KIND NAME LIMIT NODESxRANKS [MPIRUN-ARG... ::] [ARG...]
run_mpi() {
    local kind=$1 name=$2 limit=$3 shape=$4 nodes ranks before=() after=() arg program place pml=$OMPI_MCA_pml; shift 4
    nodes=${shape%x*} ranks=${shape#*x}
    for arg in "$@"; do
        if [ "$arg" = :: ]; then
            before=("${after[@]}") after=()
        elif [ "$arg" = @UCX@ ]; then   # pml/crypt over ucx, and ucx over the virtual network
            after+=(--mca pml_crypt_host ucx --mca pml_ucx_tls any --mca pml_ucx_devices any
                    -x UCX_TLS=tcp,self -x UCX_NET_DEVICES=eth0)
        elif [ "$arg" = @RXM@ ]; then   # pml/crypt over cm, and libfabric over the virtual network
            after+=(--mca pml_crypt_host cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm')
        elif [ "$arg" = @ACCEL@ ]; then # buffers are in the memory of a pretended accelerator
            place=$(pretended_accelerator) || exit
            export OMPI_MCA_accelerator=cuda OMPI_MCA_mca_base_component_path=$place:$OMPI_MCA_mca_base_component_path
            after+=(-x LD_PRELOAD="$place/gate.so")
        elif [ "$arg" = @PLAIN@ ]; then # the control: Open MPI as it is
            pml=ob1
        else
            after+=("${arg//@DIR@/$CASE_DIR}")
        fi
    done
    before=(${before[@]+"${before[@]//@DIR@/$CASE_DIR}"})
    # btl/sm of 6.0.0~rc2 stops now and then when several threads communicate, over plain ob1, too.
    case $SERIES:$name in
        6.0:threads|6.0:probe_order|6.0:first_sends|6.0:session_threads) before+=(--mca btl ^sm) ;;
    esac
    program=$(mpi_program "$kind" "$name")
    cluster "$nodes" "$ranks"
    OMPI_MCA_pml=$pml timeout -k 10 $((limit * 3)) "$SRC/tests/vcluster" mpirun -n $((nodes * ranks)) \
        -x MT_WATCHDOG=$((limit > 20 ? limit - 10 : limit)) -x ASAN_OPTIONS -x UBSAN_OPTIONS \
        ${before[@]+"${before[@]}"} "$program" ${after[@]+"${after[@]}"}
}

run_script() {                                  # run_script KIND FILE LIMIT [ARG...]
    local file=$SRC/tests/$1/$2 limit=$3 rc=0; shift 3
    # A cluster of its own: run.sh's may be up.  A script that was killed leaves it behind.
    VCLUSTER_DIR=$CLUSTER_PLACE/script LIMIT=$limit timeout -k 10 $((limit * 3)) bash "$file" "$@" || rc=$?
    [ ! -e "$CLUSTER_PLACE/script/nodes" ] || VCLUSTER_DIR=$CLUSTER_PLACE/script "$SRC/tests/vcluster" down >&2 || true
    return $rc
}

# ---- two lanes ----

# A case waits for its launcher, for a timeout, for one rank, and the machine has two processors
# at least: two run side by side.  One lane begins with this system's Open MPI, the other with 5.0 and 6.0,
# so that each builds one variant, and then comes towards the first from the end.  A lane has its
# own cluster; whoever makes a case's mark runs the case.
run_lanes() {
    local case i first=() other=()
    for case in "${SELECTED[@]}"; do
        case ${case%%/*} in *-5.0|*-6.0) other+=("$case") ;; *) first+=("$case") ;; esac
    done
    for ((i = ${#first[@]} - 1; i >= 0; i--)); do
        other+=("${first[i]}")
    done
    export VCLUSTER_YIELD=${VCLUSTER_YIELD-1}
    trap end_lanes EXIT
    trap 'trap "" INT TERM; exit 130' INT TERM      # a second one would end end_lanes
    # In process groups of their own, which end_lanes can end.  `wait` is what a signal interrupts.
    set -m
    start_lane "${other[@]}"
    start_lane "${SELECTED[@]}"
    set +m
    wait
    LANES=()
    mapfile -t FAILED < <(sed -n 's/^FAIL //p' "$WORK/results")
}

LANES=() PLACES=()
start_lane() {                                  # start_lane CASE...
    PLACES+=("$(mktemp -d "${TMPDIR:-/tmp}/ompi-crypt-XXXXXX")")
    lane "${PLACES[-1]}" "$@" &
    LANES+=($!)
}

lane() {                                        # lane PLACE CASE...: a process of its own
    set +m
    trap - EXIT INT TERM
    CLUSTER_PLACE=$1; shift
    export VCLUSTER_DIR=$CLUSTER_PLACE/run
    for case; do
        ! mkdir "$WORK/taken/${case//\//.}" 2>/dev/null || run_case "$case"
    done
    cluster_stop
}

# Whatever run.sh ends with, none of its processes stays: the lanes, what lives in their clusters,
# and everything else of theirs, such as a script that `timeout` gave a process group.  That is known
# by its environment, where VCLUSTER_DIR has the lane's directory.
end_lanes() {
    local lane dir signal pids
    trap '' INT TERM
    for lane in "${LANES[@]}"; do
        ! kill -KILL -- "-$lane" 2>/dev/null || wait "$lane" 2>/dev/null
    done
    for dir in ${PLACES[@]+"${PLACES[@]/%//run}" "${PLACES[@]/%//script}"}; do
        VCLUSTER_DIR=$dir cluster_stop 2>/dev/null      # its script may do so, too
    done
    signal=TERM
    while mapfile -t pids < <(grep -lsF "${PLACES[@]/#/-e}" /proc/[0-9]*/environ) && [ ${#pids[@]} -gt 0 ]; do
        pids=("${pids[@]#/proc/}")
        kill -$signal "${pids[@]%/environ}" 2>/dev/null
        sleep 0.2
        signal=KILL
    done
    rm -rf --one-file-system "${PLACES[@]}"
}

counted() { grep -c "^$1 " "$WORK/results"; }

# ---- what is printed ----

milliseconds() { local t=$EPOCHREALTIME; echo $((${t%[.,]*} * 1000 + 10#${t#*[.,]} / 1000)); }
line() { printf '%-5s %-44s %3d.%d s  %s\n' "$1" "$2" $(($3 / 1000)) $(($3 % 1000 / 100)) "${4-}"; }

result()  { echo "$1 $2" >> "$WORK/results"; line "$@"; }
passed()  { result pass "$1" "$2"; }
skipped() { result skip "$1" "$2" "$3"; }

failed() {                                      # failed CASE MILLISECONDS LOG
    local text
    text=$(result FAIL "$1" "$2" "$3"
           tail -n 60 "$3" | sed 's/^/      | /'
           echo "      run it again: tests/run.sh $1")
    printf '%s\n' "$text"      # at once, or the other lane's lines stand in it
}

# A build that failed is shown once; its cases count as failed.
declare -A SHOWN
failed_build() {                                # failed_build CASE VARIANT LOG
    if [ -n "${SHOWN[$2]-}" ]; then
        result FAIL "$1" 0 "the build of $2 failed"
    else
        SHOWN[$2]=yes
        failed "$1" 0 "$3"
    fi
}

#!/bin/bash
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The command-line tool as a user meets it: exit codes, messages, comma lists,
# the forms of CSV, JSON and plots.  No figure is judged.
#
#     mpicrypt.sh [MPICRYPT]        one that is installed; default: in PATH
#     mpicrypt.sh --build DIR       the one in a build tree
#
# An installed one must find the aead components (env.sh lets it).  Prints a
# line per group, and exits 1 if a check failed.
set -u
tool=${1:-mpicrypt}
if [ "$tool" = --build ]; then
    build=$(cd "$2" && pwd) || exit 1
    tool=$build/ompi/tools/mpicrypt/mpicrypt
    components=$(printf '%s:' "$build"/opal/mca/aead/*/.libs)
    export OMPI_MCA_mca_base_component_path=${components}SYS_DEFAULT
fi
tool=$(realpath "$(command -v "$tool")") || exit 1
here=$(cd "$(dirname "$0")" && pwd)
manual=$here/../../docs/mpicrypt.rst
# As mpicrypt.c chooses it.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
profiles=$here/../../ompi/tools/mpicrypt/profiles
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1            # names here are ours alone
checks=0
failures=0

group() { echo "$1"; }

check() {                       # check WHAT COMMAND...: the command succeeds
    local what=$1
    shift
    checks=$((checks + 1))
    if ! "$@"; then
        failures=$((failures + 1))
        echo "${BASH_SOURCE[0]}:${BASH_LINENO[0]}: failed: $what" >&2
        sed 's/^/    /' "$work/err" >&2
    fi
}

# Runs the tool; leaves its exit code in rc, its output in out and err.
run() {
    if [ -n "${build-}" ] && [[ "${1-}" = @(bench|model|tune) ]]; then       # not installed yet
        "$python" -I -B "$here/../../ompi/tools/mpicrypt/mpicrypt-$1" "$tool" "$profiles" "${@:2}" > "$work/out" 2> "$work/err"
    else
        "$tool" "$@" > "$work/out" 2> "$work/err"
    fi
    rc=$?
}

expect() {                      # expect CODE TEXT ARGS...: TEXT is on stderr
    local code=$1 text=$2
    shift 2
    run "$@"
    check "exit code $code from: $* (was $rc)" test "$rc" -eq "$code"
    check "'$text' on stderr of: $*" grep -qF -- "$text" "$work/err"
}

quick=(--rounds 2 --batch-ms 0.05)

group "usage errors"
run
check "no arguments: usage" test "$rc" -eq 2
expect 2 "unknown verb 'frobnicate'" frobnicate
expect 2 "unknown option '--frobnicate'" --frobnicate
expect 2 "no verb 'frobnicate'" help frobnicate
expect 2 "unknown option '--frobnicate'" speed --frobnicate
expect 2 "unknown option '-x'" speed -x
expect 2 "unexpected word 'word'" speed word
expect 2 "unexpected word 'word'" speed -- word
expect 2 "--size needs a value" speed --size
expect 2 "--json takes no value" speed --json=yes
expect 2 "has an empty entry" speed --size 1,,2
expect 2 "'1x' is not a number" speed --size 1x
expect 2 "'-1' is not a number" speed --size -1
expect 2 "is not a number" speed --size 99999999999G
expect 2 "100 is not one of 128, 192, 256" speed --bits 128,100
expect 2 "'2K' is not a whole number" speed --rounds 2K
expect 2 "0 is not between" speed --rounds 0
expect 2 "'fast' is not a number" speed --batch-ms fast
expect 2 "nan" speed --batch-ms nan
expect 2 "every thread needs one" speed --threads 100000
expect 2 "ends in neither .svg nor .png" speed --plot picture.gif
expect 2 "both want standard output" speed --json --csv -
expect 2 "it is empty" speed --csv ""

expect 2 "which benchmark" bench
expect 2 "there is no benchmark 'ringring'" bench ringring
expect 2 "there is no 'frob'; there are: plain, tuned," bench pingpong --schemes frob
expect 2 "column tuned is there twice" bench pingpong --schemes tuned,tuned
expect 2 "'pml' is not PARAMETER=VALUE" bench pingpong 'mine pml crypt'
expect 2 "does not begin with a name" bench pingpong 'pml=crypt'
expect 2 "which only the host ob1 uses" bench pingpong --host ucx --schemes raised
expect 2 "a transport for the host ob1" bench pingpong --host ucx --schemes btl
expect 2 "socket is for pingpong and pairs only" bench stencil --schemes socket
expect 2 "socket-sealed has no messages of 0 bytes" bench pingpong --size 1,0 --schemes socket-sealed
expect 2 "there is no 'yalla'; there are: ob1, ucx, cm" bench pingpong --host yalla --schemes crypt
expect 2 "0 is not between 1 and" bench pairs --pairs 0
expect 2 "5 is not between 2 and 4" bench stencil --dims 5
expect 2 "96 is not between 0 and 95" bench stencil --compute 96
expect 2 "3 is not between 9 and" bench pingpong --rounds 3 --fast 9
expect 2 "--fast: 0 is not" bench pingpong --fast 0
expect 2 "--rounds: 0 is not" bench pingpong --rounds 0
expect 2 "--lap-ms: 0.0 is not" bench pingpong --lap-ms 0
expect 2 "io, nas or all?" bench
expect 2 "'-1x2' is not NODESxRANKS" bench bcast --shape=-1x2
expect 2 "' 4x 2' is not NODESxRANKS" bench bcast --shape ' 4x 2'
expect 2 "has more than 1048576 ranks" bench bcast --shape 999999x999999
expect 2 "nas has no --raw and --plot" bench nas --npb "$work" --plot "$work/left.svg"
expect 2 "nas has no --raw and --plot" bench nas --npb "$work" --raw "$work/left.csv"
expect 2 "the columns of io are always" bench io --label lab --schemes crypt
expect 2 "--cpus-per-rank: 1025 is not between 0 and 1024" tune --cpus-per-rank 1025
expect 2 "--size: 2147483648 is not between" tune --coll --size 2G
expect 2 "unexpected word 'word'" doctor word
expect 2 "DIR MOUNTPOINT; see --help" mount data
expect 2 "--label needs a value" mount data place --label

group "keys: what is wrong is said before a keystore is made"
keys=(--keystore-dir "$work/keys" --allow-netfs)
for day in 26-12-31 2030-02-31 2030-2-3 1969-12-31 2030-12-31x 2030-13-01 x; do
    expect 2 "--not-after is a day" key new lab --not-after "$day" "${keys[@]}"
done
for owner in 4294967295 4294967296 1K 0x10 no-such-user; do
    expect 2 "'$owner' is no user here" key new lab --owners "$owner" "${keys[@]}"
done
expect 2 "which command? new, info, rotate, " key
expect 2 "there is no command 'bogus': new, info, rotate, " key bogus "${keys[@]}"
expect 2 "new needs LABEL" key new "${keys[@]}"
expect 2 "1 operand(s) do not fit here: list;" key list lab "${keys[@]}"
expect 2 "--yes is for revoke and delete, not for new" key new lab --yes "${keys[@]}"
expect 2 "which command? info, " file
expect 2 "verify needs NAME..." file verify
expect 2 "encrypt needs a file and the name of the new one, or --to DIR" file encrypt plain
expect 2 "--sealed is for verify, decrypt and cat, not for info" file info x --sealed
expect 2 "file has no command 'bogus'" help file bogus
expect 2 "a label is 1 to" key new a/b "${keys[@]}"
check "no keystore was made" test ! -e "$work/keys"
expect 1 "there is no keystore $work/keys; 'mpicrypt key new LABEL' makes one" key list "${keys[@]}"
expect 1 "a new key cannot have a last day that has passed" key new lab --not-after 2020-01-01 "${keys[@]}"
run key new lab --not-after 2030-12-31 --owners "root,$(id -u),4294967294" "${keys[@]}"
check "a key is made" test "$rc" -eq 0
made=$(sed -n 's/^lab, version 1 (key \([0-9a-f]\{16\}\) of [-0-9]\{10\}), AES-256$/\1/p' "$work/out")
check "and named by its fingerprint" test -n "$made"
expect 1 "there is a key for this label already ('mpicrypt key rotate' replaces it): lab, version 1 (key $made of " key new lab "${keys[@]}"
run key rotate lab --owners "$(id -un)" "${keys[@]}"
check "and rotated" test "$rc" -eq 0
expect 1 "a new key cannot have a last day that has passed" key rotate lab --not-after 2020-01-01 "${keys[@]}"
for version in 0 65536 65537 4294967297 18446744073709551616 1K -1; do
    expect 2 "is not between 1 and 65535" key revoke lab --yes --version "$version" "${keys[@]}"
done
run key list "${keys[@]}"
check "the list" test "$rc" -eq 0
check "nothing was revoked" test "$(grep -c '^lab .* in use *$' "$work/out")" -eq 2
check "the fingerprint" grep -q "^lab  *1  *$made  *[-0-9]* " "$work/out"
check "the last day and the owners" grep -q " 2030-12-31 .*0,$(id -u),4294967294 " "$work/out"
run key info lab "${keys[@]}"
check "a label in detail" test "$rc" -eq 0
check "each version" test "$(grep -c '^lab, version [12]$' "$work/out")" -eq 2
check "all of the fingerprint" grep -Eq "^  fingerprint  $made[0-9a-f]{16}$" "$work/out"
check "and who may use it" grep -qx "  owners       0 (root), $(id -u) ($(id -un)), 4294967294 (no name here)" "$work/out"
expect 1 "lab2: the keystore has no key for this label" key info lab2 "${keys[@]}"
run key list --json "${keys[@]}"
check "the list as JSON" python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))
assert [(row["label"], row["version"]) for row in rows] == [("lab", 1), ("lab", 2)], rows
assert set(rows[0]) == set("label version fingerprint bits created not_after owners escrow state".split()), rows
assert rows[0]["fingerprint"].startswith(sys.argv[2]) and len(rows[0]["fingerprint"]) == 32 and rows[0]["fingerprint"] != rows[1]["fingerprint"]
assert rows[0]["owners"] == [0, int(sys.argv[3]), 4294967294] and rows[0]["not_after"] == 1924991999 and rows[0]["bits"] == 256
assert rows[0]["state"] == "in use" and rows[0]["escrow"] is False and rows[0]["created"] > 1700000000' "$work/out" "$made" "$(id -u)"
run key info lab --json "${keys[@]}"
check "and of one label" test "$(grep -c '"label": "lab"' "$work/out")" -eq 2
cp -p "$work/keys/lab.1" "$work/keys/other.1"
expect 1 "$work/keys/other.1: it is not what was written there" key list "${keys[@]}"
check "the others are listed" test "$(grep -c '^lab ' "$work/out")" -eq 2
rm "$work/keys/other.1"
"$tool" key rotate nobody "${keys[@]}" 2>&-
check "what was for a closed stderr is not in the log" sh -c '! grep -q "^mpicrypt" "$1"' - "$work/keys/log"
mkdir "$work/home"
( for name in keystore{,_dir,_log,_machine_key} pkcs11_{module,token,pin_file}; do export "OMPI_MCA_crypt_$name="; done
  HOME=$work/home exec "$tool" key new lab --allow-netfs ) > "$work/out" 2> "$work/err"
check "an empty parameter is one that is not set" test -e "$work/home/.ompi-crypt/keys/lab.1"
pids=()
for i in 1 2 3 4 5 6 7 8; do
    "$tool" key rotate lab "${keys[@]}" > "$work/rotate.$i" 2>&1 &
    pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do
    wait "$pid" || failed=$((failed + 1))
done
check "eight at once: $failed failed" test "$failed" -eq 0
run key list "${keys[@]}"
check "each made a version of its own" test "$(grep -c '^lab ' "$work/out")" -eq 10
run key new ours --not-after 2030-12-31 --owners "$(id -u)" "${keys[@]}"
run key rotate ours "${keys[@]}"
run key list "${keys[@]}"
check "a rotation keeps the last day and the owners" test "$(grep -c "^ours .* 2030-12-31 .* $(id -u) " "$work/out")" -eq 2
run key rotate ours --not-after none --owners all "${keys[@]}"
run key list "${keys[@]}"
check "and gives them up when told" test "$(grep -c "^ours .* 2030-12-31 .* $(id -u) " "$work/out")" -eq 2 -a \
    "$(grep -c '^ours .* - .* all ' "$work/out")" -eq 1
expect 2 "is final" key revoke ours --version 1 "${keys[@]}"
run key list "${keys[@]}"
check "nothing is revoked unasked" test "$(grep -c revoked "$work/out")" -eq 0
run key revoke ours --version 1 --yes "${keys[@]}"
check "a revocation says what it did" grep -q 'ours: version 1 is revoked.*Version 3 is used now' <(tr '\n' ' ' < "$work/out")
mkdir -m 777 "$work/open"
expect 1 "others can write to it" key list --keystore-dir "$work/open" --allow-netfs
if [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
    volatile=$(mktemp -d /dev/shm/ompi-crypt-test-XXXXXX)
    run key new lab --keystore-dir "$volatile"
    check "a key in memory is warned of" grep -q 'at the next reboot the key is lost' "$work/err"
    rm -r "$volatile"
else
    echo "not tried: /dev/shm is no tmpfs"
fi
( umask 077; od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' > "$work/machine" )
expect 1 "no machine key is set" key protect ours "${keys[@]}"
expect 1 "its key lies in the clear" key rotate ours --machine-key "$work/machine" "${keys[@]}"
run key protect ours --machine-key "$work/machine" "${keys[@]}"
check "keys are protected" grep -q '^ours: 3 keys wrapped' "$work/out"
run key rotate ours --machine-key "$work/machine" "${keys[@]}"
check "and used" test "$rc" -eq 0

group "files that cannot be written"
expect 1 "cannot write $work/none/x.csv" speed "${quick[@]}" --size 1 --csv "$work/none/x.csv"
expect 1 "cannot write $work/none/x.svg" speed "${quick[@]}" --size 1 --plot "$work/none/x.svg"
program=(--program /bin/true)
missing=("${program[@]}" --mpirun none-such)
expect 3 "none-such: No such file" bench pingpong "${missing[@]}" --csv "$work/left.csv" --plot "$work/left.svg"
expect 3 "none-such: No such file" tune "${missing[@]}" --out "$work/left.conf" --csv "$work/left.csv"
check "a run that fails leaves no files" test -z "$(ls "$work" | grep left)"
echo kept > "$work/kept.csv"
expect 3 "none-such: No such file" bench pingpong "${missing[@]}" --csv "$work/kept.csv"
check "but those that were there" grep -qx kept "$work/kept.csv"
"$tool" --help > /dev/full 2> "$work/err"
check "a full disk is noticed" test $? -eq 1

group "things that are missing"
expect 3 "there is no provider 'frobnicate' here; there are: " speed --provider frobnicate
mkdir "$work/empty"
OMPI_MCA_mca_base_component_path=$work/empty expect 3 "no aead component was found" speed

group "words for launchers"
mkdir "$work/bin"
for name in mpirun srun; do
    printf '#!/bin/sh\necho "$@" > "%s"\nexit 1\n' "$work/words" > "$work/bin/$name"
    chmod +x "$work/bin/$name"
done
# words TEXT LAUNCHER ARGS...: the launcher is started with just these, before the program
words() {
    local text=$1 launcher=$2
    shift 2
    run "$@" "${program[@]}" --mpirun "$work/bin/$launcher"
    check "$launcher $text from: $* (was $(cat "$work/words"))" grep -qE -- "^$text /bin/true " "$work/words"
}
unset OMPI_MCA_hwloc_base_binding_policy PRTE_MCA_hwloc_default_binding_policy
words "--map-by node -n 2" mpirun bench pingpong
words "--map-by node -n 2" mpirun bench pingpong --cpus-per-rank 8 --no-pin
words "--map-by node -n 2" mpirun tune --cpus-per-rank 1 --out "$work/t.conf"
words "--map-by node --bind-to none -n 2" mpirun bench pingpong --cpus-per-rank 8
words "--map-by node --bind-to none -n 2" mpirun tune --cpus-per-rank 8 --out "$work/t.conf"
words "--map-by node --bind-to none -n 2" mpirun tune --out "$work/t.conf"
words "--map-by ppr:1:node:PE=8 -n 2" mpirun bench pingpong --cpus-per-rank 8 --mapping "--map-by ppr:1:node:PE=8"
words "--bind-to core -n 2" mpirun bench pingpong --cpus-per-rank 8 --mapping "--bind-to core"
OMPI_MCA_hwloc_base_binding_policy=socket words "--map-by node -n 2" mpirun bench pingpong --cpus-per-rank 8
for pattern in pingpong pairs stencil; do
    words "--distribution=cyclic -n [24]" srun bench $pattern
done
words "--distribution=cyclic -n 2" srun tune --out "$work/t.conf"
words "--nodes=4 --ntasks-per-node=2 --distribution=cyclic -n 8" srun bench bcast --order cyclic
words "--map-by ppr:1:node" mpirun doctor
check "no node has reported" test "$rc" -eq 3
words "--ntasks-per-node=1" srun doctor
words "--map-by slot" srun doctor --mapping "--map-by slot"
# A rank that gets fewer processors than were asked for.
cat > "$work/bin/mpirun" <<'END'
#!/bin/sh
case "$*" in
    *" nodes") ;;
    *) exit 1 ;;
esac
echo "@mpicrypt rank 0 0 a boot-a cubic 0,1,2"
echo "@mpicrypt rank 1 1 b boot-b reno 0,1"
END
expect 1 "warning: --cpus-per-rank 3: '$work/bin/mpirun' leaves a rank only 1" \
    bench pingpong "${program[@]}" --mpirun "$work/bin/mpirun" --cpus-per-rank 3
run bench pingpong "${program[@]}" --mpirun "$work/bin/mpirun" --cpus-per-rank 2
check "enough: no warning" sh -c "! grep -q warning '$work/err'"
check "both get two" grep -q -- "--cpus=0+1,0+1" "$work/err"
run bench pingpong "${program[@]}" --mpirun "$work/bin/mpirun"
check "one each" grep -q -- "--cpus=0,0" "$work/err"
expect 2 "for one benchmark, not for all" bench --quick all --local
run bench --quick all --size 1 --lap-ms 0.01 "${program[@]}" --mpirun "$work/bin/mpirun"
check "the word after a flag is the benchmark" grep -q "alltoall failed (status 1)" "$work/err"
check "3 rounds of speed" grep -q "3 interleaved rounds" "$work/out"

group "help"
run --version
check "--version" grep -Eq '^mpicrypt \(ompi-crypt\) [0-9]+\.[0-9]+\.[0-9]+' "$work/out"
run --help
check "--help" test "$rc" -eq 0
check "--help lists speed" grep -q '^ *speed ' "$work/out"
# With what it includes: the options of the verbs in Python.
awk -v "docs=${manual%/*}/" '/^\.\. include:: / { while ((getline line < (docs $3)) > 0) print line; next } { print }' \
    "$manual" > "$work/manual"
verbs=$(sed -n '/^VERBS/,/^$/s/^       \([a-z]*\) .*/\1/p' "$work/out")
for verb in $verbs; do
    run "$verb" --help
    check "$verb --help" test "$rc" -eq 0
    for section in NAME SYNOPSIS DESCRIPTION OPTIONS "EXIT STATUS"; do
        check "$verb --help has $section" grep -qx "$section" "$work/out"
    done
    check "$verb --help is not too wide" test "$(wc -L < "$work/out")" -le 100
    cp "$work/out" "$work/page"
    if [ -n "${build-}" ] && [[ $verb = @(bench|model|tune) ]]; then
        echo "    not looked at before the installation: mpicrypt help $verb"
    else
        run help "$verb"
        check "help $verb is the same page" cmp -s "$work/out" "$work/page"
    fi
    # The manual names every verb and every option, and no others; --help once for all verbs.
    awk -v "verb=mpicrypt $verb" '$0 == verb { on = 1; next } /^mpicrypt [a-z]+$/ { on = 0 } on' "$work/manual" > "$work/section"
    for option in $(sed -n 's/^\(``\)\{0,1\}\(--[a-z][a-z0-9-]*\).*/\2/p' "$work/section"); do
        check "mpicrypt $verb has $option of docs/mpicrypt.rst" grep -qE "^ {7}$option( |\$)" "$work/page"
    done
    check "docs/mpicrypt.rst describes $verb" grep -q "^mpicrypt $verb\$" "$manual"
    for option in $(sed -n 's/^       \(--[a-z0-9-]*\).*/\1/p' "$work/page" | grep -vx -- --help); do
        check "docs/mpicrypt.rst names $option of $verb" grep -qE -- "^(\`\`)?$option\b" "$work/section"
    done
    # Commands of a verb: each has a page, with sentences of its own, and each option is on the page of a command.
    : > "$work/pages"
    for command in $(sed -n '/^SYNOPSIS/,/^$/s/^ *mpicrypt [a-z]* \([a-z].*\)/\1/p' "$work/page" | sed 's/ | /\n/g' |
                     sed 's/ .*//' | tr '|' '\n'); do
        run "$verb" "$command" --help
        check "$verb $command --help" grep -q "^       mpicrypt $verb $command " "$work/out"
        check "the description of $verb is about $command" test "$(sed -n '/^DESCRIPTION/,/^OPTIONS/p' "$work/out" | wc -l)" -gt 4
        check "$verb $command --help has fewer options" test "$(grep -c '^       --' "$work/out")" -le "$(grep -c '^       --' "$work/page")"
        cat "$work/out" >> "$work/pages"
        run help "$verb" "$command"
        check "help $verb $command is the same page" cmp -s "$work/out" <(tail -n "$(wc -l < "$work/out")" "$work/pages")
    done
    for option in $([ ! -s "$work/pages" ] || sed -n 's/^       \(--[a-z0-9-]*\).*/\1/p' "$work/page"); do
        check "$option is for a command of $verb" grep -qE "^       $option( |\$)" "$work/pages"
    done
done
run file verify --help
check "file verify has --sealed" grep -qx '       --sealed' "$work/out"
check "file verify has the keystore's options" grep -qx '       --keystore-dir DIR' "$work/out"
check "file verify has no --sparse, --new-key or --anew" test -z "$(grep -E -- '^ *--(sparse|new-key|anew)' "$work/out")"
check "file verify is described" grep -q 'verify opens every block' "$work/out"
check "seal and rekey are not" test -z "$(grep -E 'rekey wraps|seal verifies' "$work/out")"
check "file verify has examples" grep -q '^       mpicrypt file verify results$' "$work/out"
run file --json verify x -h
check "an option before the command" grep -q '^       mpicrypt file verify NAME' "$work/out"
run key list --help
check "key list has no operands" grep -qx '       mpicrypt key list \[OPTION\]...' "$work/out"

group "speed: CSV"
run speed "${quick[@]}" --provider openssl,openssl-naive --bits 128,256 --size 1,2K --csv "$work/x.csv"
check "exit code" test "$rc" -eq 0
check "the table is printed, too" grep -q '^provider ' "$work/out"
check "sizes are printed with suffix" grep -q ' 2K ' "$work/out"
check "first column is the provider" grep -q '^provider,bits,threads,bytes,' "$work/x.csv"
check "one header line" test "$(grep -c '^provider,' "$work/x.csv")" -eq 1
check "a line for each of 2 x 2 x 2" test "$(wc -l < "$work/x.csv")" -eq 9
check "as many fields on every line" \
    test "$(awk -F, '{ print NF }' "$work/x.csv" | sort -u | wc -l)" -eq 1
check "every field has a value" test -z "$(grep -E ',,|,$' "$work/x.csv")"
for provider in openssl openssl-naive; do
    for bits in 128 256; do
        for bytes in 1 2048; do
            check "$provider, $bits bits, $bytes bytes" \
                test "$(grep -c "^$provider,$bits,1,$bytes,2," "$work/x.csv")" -eq 1
        done
    done
done
check "times are positive" awk -F, 'NR > 1 && !($6 > 0 && $11 > 0) { bad = 1 } END { exit bad }' "$work/x.csv"
run speed "${quick[@]}" --provider openssl --bits 192 --size=3 --csv -
check "--csv - is CSV only" test "$(head -1 "$work/out" | cut -d, -f1) $(wc -l < "$work/out")" = "provider 2"
run speed "${quick[@]}" --provider openssl,openssl --bits 128 --size 3 --csv -
check "a provider named twice is measured once" test "$(wc -l < "$work/out")" -eq 2
run speed "${quick[@]}" --bits 256 --size 0 --csv -
check "all providers, the naive one included" grep -q '^openssl-naive,256,1,0,' "$work/out"
check "all providers, openssl included" grep -q '^openssl,256,1,0,' "$work/out"

group "speed: threads"
taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')" \
    "$tool" speed "${quick[@]}" --threads 2 --size 1 > "$work/out" 2> "$work/err"
check "more threads than processors left are refused" test $? -eq 2
if [ "$(nproc)" -ge 2 ]; then
    run speed "${quick[@]}" --provider openssl --bits 128 --threads 1,2 --size 64K --csv -
    check "two threads" grep -q '^openssl,128,2,65536,' "$work/out"
fi

group "speed: JSON and plots"
run speed "${quick[@]}" --bits 128 --size 1,64K --json
check "exit code" test "$rc" -eq 0
if command -v python3 > "$work/null"; then
    check "the JSON is some" python3 -c '
import json, sys
data = json.load(open(sys.argv[1]))
rows = data["results"]
assert {row["bytes"] for row in rows} == {1, 65536}, rows
assert {row["provider"] for row in rows} <= set(data["providers"]), rows
' "$work/out"
fi
if [ -n "${build-}" ]; then
    echo "    not looked at before the installation: plots of speed"
elif ! "$python" -c 'import matplotlib' 2> "$work/err"; then
    expect 3 "python3-matplotlib" speed "${quick[@]}" --size 1 --plot "$work/x.svg"
    check "the numbers all the same" grep -q '^openssl ' "$work/out"
    echo "    no matplotlib on this machine: plots not looked at"
else
    run speed "${quick[@]}" --bits 128 --size 1,64K --plot "$work/x.svg"
    check "exit code" test "$rc" -eq 0
    check "the numbers come first" grep -q '^openssl ' "$work/out"
    check "the SVG is one" sh -c "grep -q '<svg ' '$work/x.svg' && tail -1 '$work/x.svg' | grep -qx '</svg>'"
    check "a curve for openssl" grep -q '>openssl</text>' "$work/x.svg"
    # Of the axis of sizes: on a fast processor the other axis has a label 1, too.
    check "both sizes are labeled" python3 -c '
import re, sys
ticks = re.findall(r"<g id=\"xtick_\d+\">.*?>([^<>]+)</text>", open(sys.argv[1]).read(), re.S)
assert ticks == ["1", "64K"], ticks' "$work/x.svg"
    check "the SVG is XML" python3 -c '
import sys, xml.dom.minidom
xml.dom.minidom.parse(sys.argv[1])' "$work/x.svg"
    run speed "${quick[@]}" --bits 128 --size 1,64K --plot "$work/x.png"
    check "the PNG is one" test "$(head -c 4 "$work/x.png" | tail -c 3)" = PNG
    "$tool" speed "${quick[@]}" --size 1 --plot "$work/x.svg" > /dev/full 2> "$work/err"
    check "a full disk is noticed before the plot" test $? -eq 1
fi

finish() {
    echo "$checks checks, $failures failed"
    test "$failures" -eq 0
    exit
}
if ! command -v "$python" > "$work/null"; then
    echo "    no python3 on this machine: model not looked at"
    finish
fi

group "model: usage errors"
noleland=$profiles/noleland.conf
model() { run model --profile "$noleland" "$@"; }
model_refuses() { expect "$1" "$2" model --profile "$noleland" "${@:3}"; }
model_refuses 2 "there is no 'star'; there are: pingpong, pairs," --pattern star
[ -n "${build-}" ] || model_refuses 3 "there are: bridges, noleland" --profile ridges     # those that are installed
model_refuses 2 "--nodes: 1 is not between" --nodes 1
model_refuses 2 "--ranks: 0 is not between" --ranks 0
model_refuses 2 "more than the 64 hardware threads" --threads 32 --ranks 4
model_refuses 2 "--compute: 100 is not between" --compute 100
model_refuses 2 "there is no 'never'; there are: after, while" --opening never
model_refuses 2 "an entry is not FROM:ALPHA:BETA" --comm 0:1
model_refuses 2 "an entry is not FROM:ALPHA:A:B" --enc 0:1:2
model_refuses 2 "both want standard output" --json --csv -
model_refuses 2 "--oversubscription: 0.0 is not between" --oversubscription 0
model_refuses 2 "--latency: -1.0 is not between 0 and" --latency -1
model_refuses 2 "is not between 1 and 4194304" --window 18446744073709551615
model_refuses 2 "more than 4194304 ranks" --nodes 4194304 --ranks 2
model_refuses 2 "ends in neither .svg nor .png" --plot x.gif
expect 3 "cannot read the profile $work/none.conf" model --profile "$work/none.conf"
expect 3 "there-is-none.conf" model --profile there-is-none
expect 1 "has no model, only a table" model --profile "$profiles/bridges.conf"
printf 'mpicrypt_model_comm 5\n' > "$work/bad.conf"
expect 1 "is not 'name = value'" model --profile "$work/bad.conf"
printf 'pml_crypt_t = 64K:\n' > "$work/bad.conf"
expect 1 "an entry is not FROM:T" model --profile "$work/bad.conf"

group "model: predictions"
model --size 4M --threads 8 --k 1,8,32 --csv -
check "exit code" test "$rc" -eq 0
check "the header" grep -q '^pattern,nodes,ranks_per_node,gbps,compute_percent,bytes,' "$work/out"
check "a line for each" test "$(wc -l < "$work/out")" -eq 4
field() { awk -F, -v row="$1" -v name="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) n = i }
                                            NR == row + 1 { print $n }' "$work/out"; }
check "4M, plain" test "$(field 1 plain_us)" = 335.422
check "4M, t = 8, k = 1" test "$(field 1 crypt_us)" = 526.836
check "4M, t = 8, k = 8" test "$(field 2 crypt_us)" = 374.828
check "4M, t = 8, k = 32" test "$(field 3 crypt_us)" = 352.238
check "4M, naive" test "$(field 3 naive_us)" = 1769.05
model --size 4M,32K --hwthreads 10 --csv -
check "the chosen (k,t)" test "$(field 1 k),$(field 1 threads)" = 32,8
check "short messages are not chopped" test "$(field 2 k),$(field 2 threads)" = 1,1
model --size 4M --gbps 400 --threads 64 --csv -
check "4M at 400 Gb/s: 50000 bytes a microsecond" test "$(field 1 plain_us)" = 89.6361
model --size 1M --latency 2 --oversubscription 2 --gbps 8 --csv -
check "latency and oversubscription" test "$(field 1 plain_us)" = 2099.15
model --size 1M --latency 0 --gbps 8 --csv -
check "no latency" test "$(field 1 plain_us)" = 1048.58
# 4 nodes of 4 ranks: a 4 x 4 torus, a row on each node; 2 of 4 neighbors are elsewhere.
model --pattern stencil2d --nodes 4 --ranks 4 --size 1M --threads 1 --compute 0,50 --csv -
check "messages of a stencil" test "$(field 1 messages)" = 2
check "half of the time is computation" awk -v a="$(field 1 plain_us)" -v b="$(field 2 plain_us)" \
    'BEGIN { exit !(b / a > 1.999 && b / a < 2.001) }'
model --pattern stencil3d,stencil4d,alltoall --nodes 8,4096 --ranks 16 --size 64K --gbps 400 --csv -
check "thousands of nodes" test "$rc" -eq 0
check "messages of an all-to-all" test "$(field 6 messages)" = 65520
model --pattern pairs --ranks 1,2,4,8 --size 1M --threads 1 --csv -
check "the overhead falls as pairs are added" \
    awk -F, 'NR > 2 && !($14 < last) { bad = 1 } { last = $14 } END { exit bad }' "$work/out"
model --size 64K,1M --json
check "the JSON is some" "$python" -c '
import json, sys
data = json.load(open(sys.argv[1]))
assert (data["format"], data["verb"]) == (1, "model"), data
assert [row["bytes"] for row in data["results"]] == [65536, 1048576], data
assert data["model"]["comm"].startswith("0:5.54:"), data' "$work/out"

group "bench, model and tune: nothing is imported from a directory or an environment, and what a launcher writes is harmless"
mkdir -p "$work/planted/measure"
cd "$work/planted" || exit 1
for name in measure/__init__ json csv statistics matplotlib sitecustomize; do echo 'raise SystemExit(9)' > $name.py; done
export PYTHONPATH=$PWD PYTHONHOME=$PWD PYTHONSTARTUP=$PWD/json.py PYTHONINSPECT=1
model --size 1
check "modules planted" test "$rc" -eq 0
expect 3 "none-such: No such file" bench pingpong "${missing[@]}"
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONINSPECT
cd "$work" || exit 1
model --csv $'two\nlines.csv'
check "a name with a newline" grep -q '^pingpong,' $'two\nlines.csv'
run tune --help
check "the help of tune" grep -q '^       --quick$' "$work/out"
printf '#!/bin/sh\necho first >> /dev/stderr\nprintf "\\033]0;title\\007\\n" >&2\nexit 1\n' > evil
chmod +x evil
run tune "${program[@]}" --mpirun ./evil --out none.conf
check "what a launcher wrote, without what a terminal obeys" test "$(head -n 2 "$work/err" | tr '\n' ,)" = 'first,?]0;title?,'
check "its exit code" test "$rc" -eq 1
rm "$work/out"
for what in "" --json "--csv -"; do
    ln -sf /dev/full "$work/out"
    model --size 1 $what
    check "a full disk is noticed, $what" test "$rc" -eq 1
    check "and said once" test "$(wc -l < "$work/err")" -eq 1
done
rm "$work/out"
mkfifo "$work/out"
head -n 1 < "$work/out" > "$work/null" &
model --size "$(seq -s, 1 20000)" --csv -
wait
check "a closed pipe ends it (status $rc)" test "$rc" -eq 141 -a ! -s "$work/err"
rm "$work/out"

if "$python" -I -c 'import matplotlib' 2> "$work/null"; then
    printf 'text.usetex: True\nsvg.fonttype: path\n' > matplotlibrc
    model --size 64K,1M --plot "$work/model.svg"
    check "the plot has both panels" test "$(grep -c 'pingpong' "$work/model.svg")" -eq 2
    model --size 64K,1M --gbps "$(seq -s, 1 40)" --plot "$work/model.svg"
    check "forty curves of each kind, two of them in both panels" \
        test "$(grep -o '>[a-z]* [0-9]* Gb/s<' "$work/model.svg" | wc -l)" = 200
else
    echo "    no matplotlib on this machine: plots of model not looked at"
fi

finish

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A job that is given a parameter of ompi-crypt and not --mca pml crypt says that it is not encrypted, once; and where a site
# requires encryption, no job without it leaves a node.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2 --slots 8
job=$CASE_DIR/job
must in_variant mpicc -O2 -Wall -Wextra -Werror -o "$job" "$SRC/tests/shell/forgotten/job.c"
psk=$OMPI_MCA_crypt_psk_file
export HOME=$CASE_DIR/home
mkdir -p "$HOME/.openmpi"
unset OMPI_MCA_pml OMPI_MCA_crypt_transport OMPI_MCA_crypt_psk_file
two=(-n 4 --map-by node)
one=(-n 2 --host node0:8,node1:8 --map-by slot)
shared=$([ "$SERIES" = 4.1 ] && echo vader || echo sm)

# run SETTING... -- ARGUMENT...: a job, with these in its environment; its output is in out, its status in $rc.
run() {
    local settings=()
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    rc=0
    ( [ ${#settings[@]} = 0 ] || export "${settings[@]}"; mpirun_aside "$@" ) > "$CASE_DIR/raw" 2>&1 || rc=$?
    tr -d '\0' < "$CASE_DIR/raw" | tee "$CASE_DIR/out" | tr -s ' \n' ' ' > "$CASE_DIR/words"
    echo "+ ${settings[*]} $*: status $rc"
}
wrong() { cat "$CASE_DIR/out"; fail "$1"; }
said() { grep -oF -- "$1" "$CASE_DIR/words" | wc -l; }

plain="MESSAGES of this job are not encrypted"
# warns NAME ..., quiet ...: the job runs, and says so once, naming the parameter; or says nothing.
warns() {
    local name=$1; shift
    run "$@"
    [ $rc = 0 ] && [ "$(grep -c '^done' "$CASE_DIR/out")" -gt 0 ] || wrong "the job does not run"
    [ "$(said "$plain")" = 1 ] || wrong "said $(said "$plain") times"
    [ "$(said "It was given a parameter of ompi-crypt, $name, but")" = 1 ] || wrong "it does not name $name"
    [ "$(said 'Add "--mca pml crypt"')" = 1 ] || wrong "no remedy"
}
quiet() {
    run "$@"
    [ $rc = 0 ] && [ "$(grep -c '^done' "$CASE_DIR/out")" -gt 0 ] || wrong "the job does not run"
    [ "$(said "$plain")" = 0 ] || wrong "it warns"
}

warns crypt_report          -- "${two[@]}" --mca crypt_report 1 -- "$job"
warns crypt_transport       OMPI_MCA_crypt_transport=pml -- "${two[@]}" -- "$job"
warns crypt_report          -- "${two[@]}" --mca pml ob1 --mca crypt_report 1 -- "$job"
warns pml_crypt_chunk_size  OMPI_MCA_pml=ob1 OMPI_MCA_pml_crypt_chunk_size=65536 -- "${two[@]}" -- "$job"
warns btl_crypt_pq          -- "${one[@]}" --mca btl_crypt_pq auto -- "$job"
warns crypt_psk_file        "OMPI_MCA_crypt_psk_file=$psk" -- "${one[@]}" -- "$job" node0
[ "$SERIES" = 4.1 ] || warns crypt_report -- "${one[@]}" --mca crypt_report 1 -- "$job" session
quiet -- "${two[@]}" -- "$job"
# Those of files, and of nobody.
quiet OMPI_MCA_fs_crypt_block_size=4096 "OMPI_MCA_crypt_keystore_dir=$CASE_DIR" OMPI_MCA_aead=openssl -- "${two[@]}" -- "$job"
quiet OMPI_MCA_pml=crypt "OMPI_MCA_crypt_psk_file=$psk" -- "${two[@]}" -- "$job"
quiet OMPI_MCA_pml=ob1 "OMPI_MCA_btl=crypt,self,$shared" "OMPI_MCA_crypt_psk_file=$psk" -- "${two[@]}" -- "$job"
# Those of files of parameters: the user's and the site's, and one that is named.
echo "crypt_psk_file = $psk" > "$HOME/.openmpi/mca-params.conf"
quiet -- "${two[@]}" -x HOME -- "$job"
quiet "OMPI_MCA_mca_base_param_files=$HOME/.openmpi/mca-params.conf" -- "${two[@]}" -- "$job"
warns crypt_psk_file OMPI_MCA_crypt_psk_file=/another -- "${two[@]}" -x HOME -- "$job"
rm "$HOME/.openmpi/mca-params.conf"
etc=$(in_variant ompi_info --parsable --path sysconfdir | sed -n 's/^path:sysconfdir://p')
mkdir "$CASE_DIR/etc"
for node in node0 node1; do must vcluster exec $node mount --bind "$CASE_DIR/etc" "$etc"; done
printf '%s\n' "crypt_psk_file = $psk" "crypt_report = 1" "crypt_audit = abort" > "$CASE_DIR/etc/openmpi-mca-params.conf"
quiet -- "${two[@]}" -- "$job"
quiet -- "${two[@]}" --mca pml ob1 -- "$job"

echo "== a site requires encryption"
required="ERROR: messages of this job would leave a node unencrypted, which the site does not allow (crypt_required)"
# ends ..., runs DONE ...
ends() {
    run "$@"
    [ $rc != 0 ] && ! grep -q '^done' "$CASE_DIR/out" || wrong "the job runs"
    [ "$(said "$required")" -gt 0 ] || wrong "it does not say why"
    [ "$(said 'Add "--mca pml crypt"')" -gt 0 ] || wrong "no remedy"
    [[ $(cat "$CASE_DIR/words") != *spawned* ]] || wrong "the spawned process has got a message"
}
runs() {
    local lines=$1; shift
    run "$@"
    [ $rc = 0 ] && [ "$(grep -c '^done' "$CASE_DIR/out")" = "$lines" ] || wrong "the job does not run"
    [ "$(said "$required")" = 0 ] || wrong "it complains"
}
echo 'crypt_required = 1' > "$CASE_DIR/etc/openmpi-mca-params-override.conf"
ends -- "${two[@]}" -- "$job"
for pml in ob1 ucx cm ^crypt; do
    ends -- "${two[@]}" --mca pml $pml -- "$job"
    ends OMPI_MCA_pml=$pml -- "${two[@]}" -- "$job"
done
# What a user may say against it.
ends -- "${two[@]}" --mca crypt_required 0 -- "$job"
ends OMPI_MCA_crypt_required=0 -- "${two[@]}" --mca pml ob1 -- "$job"
ends -- "${two[@]}" -x OMPI_MCA_crypt_required=0 -- "$job"
ends -- "${two[@]}" --mca mca_base_param_files none -- "$job"
ends OMPI_MCA_mca_base_param_files=$etc/openmpi-mca-params-override.conf OMPI_MCA_crypt_required=0 -- "${two[@]}" -- "$job"
ends OMPI_MCA_mca_base_override_param_file=/dev/null -- "${two[@]}" -- "$job"
ends -- "${two[@]}" -x OPAL_SYS_PARAMS_GIVEN=1 -x OPAL_USER_PARAMS_GIVEN=1 --mca crypt_required 0 -- "$job"
ends OMPI_MCA_pml=crypt "OMPI_MCA_crypt_psk_file=$psk" OMPI_MCA_crypt_audit=warn -- "${two[@]}" -- "$job"
# On one node, and from there to another.
runs 2 -- "${one[@]}" -- "$job"
runs 2 -- "${one[@]}" --mca pml ob1 -- "$job" node0
ends -- "${one[@]}" -- "$job" node1
ends -- "${one[@]}" --mca pml ob1 -- "$job" node1
if [ "$SERIES" != 4.1 ]; then
    ends -- "${two[@]}" -- "$job" session
    runs 2 -- "${one[@]}" -- "$job" session
    ends -- "${one[@]}" -- "$job" session node1
fi
# Encrypted.
runs 4 OMPI_MCA_pml=crypt "OMPI_MCA_crypt_psk_file=$psk" -- "${two[@]}" -- "$job"
runs 4 OMPI_MCA_pml=crypt "OMPI_MCA_crypt_psk_file=$psk" OMPI_MCA_crypt_transport=pml -- "${two[@]}" -- "$job"
runs 4 OMPI_MCA_pml=ob1 "OMPI_MCA_btl=crypt,self,$shared" "OMPI_MCA_crypt_psk_file=$psk" -- "${two[@]}" -- "$job"
# As a default of the site users may override it.
mv "$CASE_DIR/etc/openmpi-mca-params-override.conf" "$CASE_DIR/etc/openmpi-mca-params.conf"
ends -- "${two[@]}" -- "$job"
runs 4 -- "${two[@]}" --mca crypt_required 0 -- "$job"

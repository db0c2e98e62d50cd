# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# mpicrypt doctor finds faults that are planted on one node of two, says of each
# on which node and by what check, and names the remedy.
set -eu
. "$SRC/tests/lib.sh"
PATH=$PREFIX/bin:$PATH
unset OMPI_MCA_crypt_auth OMPI_MCA_crypt_psk_file
export HOME=$CASE_DIR/home
mkdir "$HOME"
python3 -c pass || skip "python3 is missing"

# What a node's process has in its environment: set NODE NAME=VALUE...
cat > "$CASE_DIR/with" <<END
#!/bin/bash
set -a
. "$CASE_DIR/\$(hostname).env"
exec "$PREFIX/libexec/ompi-crypt/mpicrypt-mpi" "\$@"
END
chmod +x "$CASE_DIR/with"
set_node() {
    local node=$1; shift
    printf 'OMPI_MCA_%s\n' crypt_psk_file=$psk "$@" > "$CASE_DIR/$node.env"
}

# finds "CHECK:NODES..." TEXT...: exactly these checks fail, and each TEXT is said.
cat > "$CASE_DIR/read.py" <<'END'
import json, sys
data = json.load(open(sys.argv[1]))
failed = sorted({"%s:%s" % (f["check"], "+".join(sorted(f["nodes"]))) for f in data["findings"] if f["state"] == "fail"})
assert data["failed"] >= len(failed)
missing = [f for f in data["findings"] if f["state"] == "fail" and not f["remedy"]]
assert not missing, missing
print(" ".join(failed))
for f in data["findings"]:
    print(f["state"], f["check"], f["detail"], f["remedy"].replace("\n", " "))
END
finds() {
    local wanted=$1 status=0 text; shift
    mpicrypt doctor --json --mpirun "$SRC/tests/vcluster mpirun -x HOME${words:+ $words}" --program "$CASE_DIR/with" \
        ${directory:+--dir "$directory"} > "$CASE_DIR/json" 2> "$CASE_DIR/err" || status=$?
    python3 "$CASE_DIR/read.py" "$CASE_DIR/json" > "$CASE_DIR/out" ||
        fail "$wanted: no JSON: status $status, $(cat "$CASE_DIR/err")"
    [ "$(head -n 1 "$CASE_DIR/out")" = "$wanted" ] || { cat "$CASE_DIR/out"; fail "not '$wanted'"; }
    [ $status = "$([ -z "$wanted" ]; echo $?)" ] || fail "$wanted: status $status"
    for text in "$@"; do
        grep -qF -- "$text" "$CASE_DIR/out" || { cat "$CASE_DIR/out"; fail "$wanted: it does not say \"$text\""; }
    done
    echo "found: ${wanted:-nothing}"
}
clean() { set_node node0; set_node node1; directory= words=; }

printf '#!/bin/sh\nexec "%s/tests/vcluster" agent "$@"\n' "$SRC" > "$CASE_DIR/rsh"
chmod +x "$CASE_DIR/rsh"

# Keys lie in /dev/shm, of which every node has its own.
psk=/dev/shm/psk
give() { vcluster exec "$1" bash -c "umask 077; cat > $psk; chmod $3 $psk" <<< "$2"; }
new() { od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n'; }
cluster_up 2
key=$(new)
give node0 "$key" 600
give node1 "$key" 600
clean

echo "in order"
directory=$CASE_DIR
finds "" "1 of 1 authenticated by psk" "an encrypted job of 2 processes runs" "self-test passed"
clean

echo "the launcher's words have another PML: what runs is plain"
words="--mca pml ob1"
finds "job:launcher" "the PML should be crypt, but parameter pml is 'ob1'"
! grep -q "an encrypted job" "$CASE_DIR/out" || fail "it says that an encrypted job runs"
clean

echo "1. a component is missing on one node"
vcluster exec node1 mount -t tmpfs none "$PREFIX/lib/ompi-crypt"
finds "cipher:node1 component:node1" "mca_pml_crypt.so is in no directory of" \
    "Install ompi-crypt at the same place on every node" "Install a provider"
vcluster exec node1 umount "$PREFIX/lib/ompi-crypt"

cp -a "$PREFIX/lib/ompi-crypt" "$CASE_DIR/fewer"
rm "$CASE_DIR/fewer/mca_btl_crypt.so"
vcluster exec node1 mount --bind "$CASE_DIR/fewer" "$PREFIX/lib/ompi-crypt"
set_node node1 "mca_base_component_show_load_errors=0"
finds "component:node1" "fail component mca_btl_crypt.so is in no directory of" "note component mca_base_component_show_load_errors is off"
vcluster exec node1 umount "$PREFIX/lib/ompi-crypt"
clean

echo "2. a component of another series"
mkdir "$CASE_DIR/series"
cat > "$CASE_DIR/series.c" <<'END'
/* The head of every component struct; 7.3 is the series that it was built for. */
struct { int v[3]; char project[16]; int pv[3]; char type[32]; int tv[3]; char name[64]; int cv[3]; char rest[256]; }
    mca_pml_crypt_component = {.cv = {7, 3, 1}};
END
must gcc -shared -fPIC -o "$CASE_DIR/series/mca_pml_crypt.so" "$CASE_DIR/series.c"
set_node node1 "mca_base_component_path=$CASE_DIR/series:$PREFIX/lib/ompi-crypt:SYS_DEFAULT"
finds "component:node1" "was built for Open MPI 7.3, but $SERIES runs" "Build ompi-crypt for the Open MPI that runs"

echo "3. a key that others can read"
clean
give node1 "$key" 640
finds "key:node1" "0640" "chmod 600 FILE"

echo "4. no key"
vcluster exec node1 rm $psk
set_node node1 crypt_auth=psk
finds "key:node1" "The pre-shared key does not exist" "mpicrypt keygen" "note peers 0 of 1 authenticated"
echo OMPI_MCA_crypt_munge_socket="$CASE_DIR/none" > "$CASE_DIR/node1.env"
finds "key:node1" "No credentials were found to authenticate" "mpicrypt keygen --hosts"

echo "5. different keys"
clean
give node1 "$(new)" 600
finds "peers:node0 peers:node1" "refused: node1: the record was not made with" "Peer authentication failed" "mpicrypt keygen --force --hosts"
give node1 "$key" 600

echo "6. munge is down"
set_node node0 crypt_auth=munge "crypt_munge_socket=$CASE_DIR/none"
set_node node1 crypt_auth=munge "crypt_munge_socket=$CASE_DIR/none"
finds "key:node0+node1" "Start munged"

echo "7. a certificate has expired"
mkdir "$CASE_DIR/ca"
vcluster exec node1 bash -e -c '
    cd "$1"; umask 077
    openssl req -x509 -newkey ed25519 -nodes -keyout ca.key -out ca.pem -subj /CN=CA -days 30
    openssl genpkey -algorithm ed25519 -out /dev/shm/key
    openssl req -new -key /dev/shm/key -subj /CN=user -out leaf.csr
    echo "keyUsage = critical, digitalSignature" > ext
    openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile ext -days "$2" -out leaf.pem
    ' - "$CASE_DIR/ca" 5 2> "$CASE_DIR/openssl" || fail "$(cat "$CASE_DIR/openssl")"
certificate=("crypt_auth=x509" "crypt_x509_cert=$CASE_DIR/ca/leaf.pem" "crypt_x509_key=/dev/shm/key"
             "crypt_x509_ca=$CASE_DIR/ca/ca.pem")
vcluster exec node1 cat /dev/shm/key | vcluster exec node0 bash -c 'umask 077; cat > /dev/shm/key'
set_node node0 "${certificate[@]}"
set_node node1 "${certificate[@]}"
finds "" "1 of 1 authenticated by x509" "warn key x509" "before this one expires"
vcluster exec node1 bash -e -c '
    cd "$1"
    : > index; echo 01 > serial
    printf "%s\n" "[site]" database=index serial=serial new_certs_dir=. default_md=sha256 policy=any unique_subject=no "[any]" \
        commonName=supplied > ca.cnf
    openssl ca -config ca.cnf -name site -batch -notext -keyfile ca.key -cert ca.pem -extfile ext \
        -startdate 20200101000000Z -enddate 20200201000000Z -in leaf.csr -out old.pem
    ' - "$CASE_DIR/ca" 2> "$CASE_DIR/openssl" || fail "$(cat "$CASE_DIR/openssl")"
set_node node1 "${certificate[@]}" "crypt_x509_cert=$CASE_DIR/ca/old.pem"
finds "key:node1" "A certificate has expired" "Ask the CA for a new one"

echo "8. the component path is wrong"
clean
set_node node1 "mca_base_component_path=$CASE_DIR/none:SYS_DEFAULT"
# Open MPI 4.1 then finds none of its own either; those of 5.0 are a part of its libraries.
case $SERIES in
    4.1) finds "cipher:node1 component:node1 meet:launcher path:node1" "A plain MPI job does not run" \
             "names $CASE_DIR/none, which is not there" "source $PREFIX/share/ompi-crypt/env.sh" ;;
    *)   finds "cipher:node1 component:node1 path:node1" "names $CASE_DIR/none, which is not there" \
             "source $PREFIX/share/ompi-crypt/env.sh" ;;
esac

echo "9. a component goes around the encryption"
set_node node1 osc=ucx
finds "osc:node1 transport:node1" "osc=ucx: ucx carries one-sided communication around the encryption" "Unset osc"
set_node node0 crypt_audit=warn
set_node node1 osc=^ucx crypt_audit=warn
finds "" "PLAINTEXT POSSIBLE"
set_node node0
finds "job:launcher" "PLAINTEXT POSSIBLE" "crypt_audit=abort" "crypt_audit=warn"
set_node node0 crypt_transport=pml
set_node node1 crypt_transport=pml osc=ucx
case $SERIES in
    4.1) finds "osc:node1" "windows: refused between nodes: the list of components" "set it to pt2pt,sm" ;;
    *)   finds "osc:node1" "windows: refused between nodes: crypt_transport=pml" "not encrypted, because of this: crypt_transport=pml" ;;
esac
set_node node0 crypt_transport=pml crypt_audit=warn
set_node node1 crypt_transport=pml crypt_audit=warn
finds "" "windows: PLAINTEXT POSSIBLE"

echo "10. a file system without extended attributes"
clean
directory=$CASE_DIR/files
mkdir "$directory"
vcluster exec node1 mount -t ramfs none "$directory"
finds "directory:node1" "no extended attributes user.*" "ext4, xfs, btrfs"
vcluster exec node1 umount "$directory"

echo "core files: whether there are any, and who gets them"
clean
echo core > "$CASE_DIR/pattern.file"
echo '|/usr/libexec/collect %p %s' > "$CASE_DIR/pattern.pipe"
core() { # core PATTERN LIMIT TEXT...: with that pattern and soft limit in bytes on both nodes
    local pattern=$1 limit=$2 node; shift 2
    clean
    for node in node0 node1; do
        echo "prlimit --pid \$\$ --core=$limit:" >> "$CASE_DIR/$node.env"
        vcluster exec $node mount --bind "$CASE_DIR/pattern.$pattern" /proc/sys/kernel/core_pattern
    done
    finds "" "$@"
    for node in node0 node1; do
        vcluster exec $node umount /proc/sys/kernel/core_pattern
    done
}
core pipe 0 "note core core files go to the program /usr/libexec/collect, also with ulimit -c 0"
core file 0 "ok core no core files"
if ( ulimit -Sc unlimited ) 2>/dev/null; then
    core pipe unlimited "note core core files go to the program /usr/libexec/collect, also with ulimit -c 0"
    core file unlimited "note core core files are written"
    core pipe 1 "ok core no core files"
    core file 1 "ok core no core files"
else
    echo "not tried: other limits of core files, which the hard limit forbids here"
fi

echo "11. parameters that are misspelt, cannot be read, or are out of bounds"
clean
set_node node1 crypt_audti=abort fs_crytp_key_label=site pml_crypt_chop_min=eight pml_crypt_chunk_size=0
finds "parameter:node1" "crypt_audti is no parameter (from the environment" "did you mean crypt_audit" \
    "warn parameter fs_crytp_key_label (from the environment or the command line) looks like a misspelt fs_crypt_key_label" \
    "pml_crypt_chop_min=eight cannot be read" "pml_crypt_chunk_size=0 is out of its bounds"

echo "12. keys of files"
clean
keystore=/dev/shm/keys
vcluster exec node0 mpicrypt key new lab --keystore-dir $keystore > "$CASE_DIR/null"
set_node node0 crypt_keystore_dir=$keystore
set_node node1 crypt_keystore_dir=$keystore
finds "" "ok keystore 1 version of keys of files (together " "ok keystore no keys of files" "warn keystores no keys of files" \
    "mpicrypt key push LABEL --hosts LIST brings a key to the others"
set_node node0 crypt_keystore_dir=$keystore fs_crypt_key_label=lab
set_node node1 crypt_keystore_dir=$keystore fs_crypt_key_label=lab
finds "keystore:node1" "fs_crypt_key_label=lab: there is no keystore $keystore" "mpicrypt key push LABEL --hosts LIST"
must vcluster exec node0 mpicrypt key push lab --hosts node1 --rsh "$CASE_DIR/rsh" --keystore-dir $keystore
finds "" "ok keystore 1 version of keys of files (together "
! grep -q keystores "$CASE_DIR/out" || fail "the same keys differ"
must vcluster exec node1 mpicrypt key revoke lab --yes --keystore-dir $keystore
finds "keystore:node1" "the keystore of this node has no key of this label that encrypts"
vcluster exec node1 chmod 644 $keystore/lab.1
finds "keystore:node1" "0644" "chmod 600 FILE"
vcluster exec node1 chmod 600 $keystore/lab.1
set_node node1 crypt_keystore_dir=$keystore crypt_keystore_machine_key=/dev/shm/none
finds "keystore:node1" "machine key /dev/shm/none: No such file or directory" "at the same place"

echo "more than one, and what is printed"
clean
give node1 "$key" 640
set_node node0 osc=rdma
finds "key:node1 osc:node0 transport:node0"
must_fail mpicrypt doctor --mpirun "$SRC/tests/vcluster mpirun -x HOME" --program "$CASE_DIR/with" > "$CASE_DIR/out"
cat "$CASE_DIR/out"
grep -q '^FAIL  osc  .*\[node0\]$' "$CASE_DIR/out" || fail "osc is not printed"
grep -q '^ *chmod 600 FILE$' "$CASE_DIR/out" || fail "the remedy is not printed"
! grep -q '^ok' "$CASE_DIR/out" || fail "what is in order is printed"
[ "$(grep -v "^+" "$CASE_DIR/out" | wc -L)" -le 140 ] || fail "long lines"
! grep -rqF "$key" "$CASE_DIR" || fail "the key was written somewhere"

echo "one node, and launchers that fail"
clean
OMPI_MCA_crypt_psk_file=$CASE_DIR/mine must mpicrypt keygen --out "$CASE_DIR/mine"
OMPI_MCA_crypt_psk_file=$CASE_DIR/mine must mpicrypt doctor --all > "$CASE_DIR/out"
grep -q "^1 node: 0 failed" "$CASE_DIR/out" && grep -q "an encrypted job of 1 process runs" "$CASE_DIR/out" || fail "this node"
mkdir "$CASE_DIR/bin" "$CASE_DIR/empty"
cat > "$CASE_DIR/bin/mpirun" <<END
#!/bin/sh
shift 2
OMPI_MCA_mca_base_component_path=$CASE_DIR/empty exec "\$@"
END
chmod +x "$CASE_DIR/bin/mpirun"
PATH=$CASE_DIR/bin:$PATH says "mca_pml_crypt.so is in no directory of $CASE_DIR/empty" mpicrypt doctor > "$CASE_DIR/out"
grep -q "$PREFIX/share/ompi-crypt/env.sh" "$CASE_DIR/out" || fail "the remedy: $(cat "$CASE_DIR/out")"
OMPI_MCA_crypt_psk_file=$CASE_DIR/mine says "no mpirun in the PATH" env PATH="$PREFIX/bin" mpicrypt doctor --all
OMPI_MCA_coll=hcoll,basic says "coll=hcoll,basic: hcoll is switched off" mpicrypt doctor
status=0; mpicrypt doctor --mpirun none-such 2> "$CASE_DIR/err" || status=$?
[ $status = 3 ] && grep -q "none-such: No such file" "$CASE_DIR/err" || fail "status $status: $(cat "$CASE_DIR/err")"
status=0; mpicrypt doctor --mpirun false 2> "$CASE_DIR/err" || status=$?
[ $status = 3 ] && grep -q "false ended with status 1, and no node has reported" "$CASE_DIR/err" ||
    fail "status $status: $(cat "$CASE_DIR/err")"
# More than one report holds.
many=$(seq -s, -f "$CASE_DIR/none/there-is-no-directory-of-this-name-%g" 40)
must_fail mpicrypt doctor --json --dir "$many" > "$CASE_DIR/out"
[ "$(grep -c '"check": "directory"' "$CASE_DIR/out")" = 40 ] && ! grep -q '"check": "launch"' "$CASE_DIR/out" ||
    fail "a long report: $(cat "$CASE_DIR/out")"
status=0; mpicrypt doctor --program "$CASE_DIR/none" 2> "$CASE_DIR/err" || status=$?
[ $status = 3 ] || fail "status $status without a program"

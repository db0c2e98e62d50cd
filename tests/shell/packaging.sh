# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The recipes in packaging/ are what they say they are: each is parsed by its own language, has this
# version, and names files that exist; the command that prepares the key in a pod is run.
set -eu
. "$SRC/tests/lib.sh"
cd "$SRC/packaging"
version=$(cat "$SRC/VERSION")
# Debian's Python has Debian's packages, whichever is first in the PATH.
python=/usr/bin/python3
$python -c 'import yaml' 2>/dev/null || skip "PyYAML is missing (Debian: python3-yaml)"

for file in spack/ompi_crypt/package.py easybuild/*.eb; do
    must $python -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file"
done
must grep -qx "#define OPAL_CRYPT_VERSION \"$version\"" "$SRC/opal/mca/aead/aead_version.h"
must grep -q "version(\"$version\")" spack/ompi_crypt/package.py
must grep -q "^version = '$version'" easybuild/ompi-crypt-"$version"-*.eb
must grep -q "^Version: *$version$" ompi-crypt.spec
must grep -qx "version = \"$version\"" "$SRC/lib/python/pyproject.toml"

# commands FILE: what a shell is to run, by the rules of each format.
commands() {
    case $1 in
        *.def) awk '/^%/ || /^[A-Z][a-z]*:/ { on = $1 ~ /^%(post|environment|test)$/; next } on' "$1" ;;
        *)     sed -e ':a;/\\$/{N;s/\\\n//;ba}' "$1" | sed -n 's/^RUN //p' ;;
    esac
}
for file in containers/Containerfile containers/ompi-crypt.def; do
    commands "$file" > "$CASE_DIR/commands"
    must test "$(wc -l < "$CASE_DIR/commands")" -ge 5
    must sh -n "$CASE_DIR/commands"
    must grep -q configure "$CASE_DIR/commands"
done

# What YAML reads: the key reaches the workers alone, as a copy that the user of sshd owns.
must $python - kubernetes/mpijob.yaml "$CASE_DIR/prepare" <<'END'
import sys, yaml
job, policy = yaml.safe_load_all(open(sys.argv[1]))
assert (job["kind"], policy["kind"]) == ("MPIJob", "NetworkPolicy")
launcher, worker = (job["spec"]["mpiReplicaSpecs"][kind]["template"]["spec"] for kind in ("Launcher", "Worker"))
assert "volumes" not in launcher
key, = worker["initContainers"]
sshd, = worker["containers"]
user = sshd["securityContext"]["runAsUser"]
assert user == key["securityContext"]["runAsUser"] == launcher["containers"][0]["securityContext"]["runAsUser"]
assert worker["securityContext"]["fsGroup"] == user
volumes = {volume["name"]: volume for volume in worker["volumes"]}
assert volumes["secret"]["secret"]["defaultMode"] == 0o440
assert volumes["key"]["emptyDir"]["medium"] == "Memory"
assert [mount["name"] for mount in sshd["volumeMounts"]] == ["key"]
names = {entry["name"]: entry["value"] for entry in launcher["containers"][0]["env"]}
assert names["OMPI_MCA_pml"] == "crypt" and names["OMPI_MCA_crypt_psk_file"] == "/run/ompi-crypt/own/psk"
assert launcher["containers"][0]["args"][:2] == ["--hostfile", "/etc/mpi/hostfile"]
assert all(isinstance(value, str) for value in names.values())
assert policy["spec"]["podSelector"] == policy["spec"]["ingress"][0]["from"][0]["podSelector"]
assert key["command"] == ["sh", "-ec"]
open(sys.argv[2], "w").write(key["args"][0] + "\n")
END

# That command, with directories of ours: a Secret's file is a link to a link, and the volume for
# the copy is everybody's.
mkdir "$CASE_DIR/secret" "$CASE_DIR/secret/..1" "$CASE_DIR/run"
chmod 2777 "$CASE_DIR/run"
must mpicrypt keygen --out "$CASE_DIR/secret/..1/psk"
chmod 440 "$CASE_DIR/secret/..1/psk"
ln -s ..1 "$CASE_DIR/secret/..data"
ln -s ..data/psk "$CASE_DIR/secret/psk"
sed -i -e "s,/run/ompi-crypt,$CASE_DIR/run,g" -e "s, /secret, $CASE_DIR/secret,g" "$CASE_DIR/prepare"
must sh -ec "$(cat "$CASE_DIR/prepare")"
must test "$(stat -c %a "$CASE_DIR/run/own/psk")" = 400
export OMPI_MCA_crypt_auth=psk OMPI_MCA_crypt_psk_file=$CASE_DIR/secret/psk
says 'A secret key must be a regular file' mpicrypt doctor
OMPI_MCA_crypt_psk_file=$CASE_DIR/run/own/psk
must mpicrypt doctor

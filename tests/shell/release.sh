# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# packaging/release makes the same bytes in two directories, under two umasks and time zones, from files of other times;
# its signature verifies; it has what is under version control; it refuses changes that are not committed.  Its bill of
# materials, and the files for GitHub, are what their schemas ask for.
#
#     release.sh bookworm|trixie|forky    instead: the archive in bare roots of that system: README's commands as a user, word
#                                         for word, after that of docs/install.rst; and the quickstart
set -eu
. "$SRC/tests/lib.sh"
[ $# = 0 ] || . "$SRC/tests/roots.sh"

git -C "$SRC" -c safe.directory="$SRC" ls-files -z --cached --others --exclude-standard > "$CASE_DIR/files" || skip "$SRC is not a git repository"
export HOME=$CASE_DIR GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2026-11-21T12:00:00Z' GIT_COMMITTER_DATE='2026-11-21T12:00:00Z'
git config --global user.name tests
git config --global user.email tests@localhost

# repository DIRECTORY: a commit of all that is under version control, or would be
repository() {
    mkdir -p "$1"
    tar -C "$SRC" --null -T "$CASE_DIR/files" -cf - | tar -C "$1" -xmf -
    (cd "$1" && git init -q && git add -A && git commit -qm all)
}

# ---- the archive in bare roots ----

# commands FILE LINE: the block that follows this line
commands() { awk -v line="$2" 'index($0, line) { on = 1 } on && /^    / { print; block = 1 } block && !/^    / { exit }' "$1"; }

# unpacked NAME DIRECTORY: a bare root that has the archive there
unpacked() {
    overlay "$1"
    mkdir -p "$CASE_DIR/$1/root$2"
    must tar -C "$CASE_DIR/$1/root$2" --no-same-owner -xzf "$CASE_DIR"/out/ompi-crypt-*.tar.gz
}
if [ $# = 1 ]; then
    repository "$CASE_DIR/one"
    must "$CASE_DIR/one/packaging/release" "$CASE_DIR/out"
    name=ompi-crypt-$(cat "$SRC/VERSION")

    unpacked user /home/user
    printf 'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n' > "$CASE_DIR/user/root/etc/apt/apt.conf.d/10unattended"
    {   echo 'set -ex'
        commands "$CASE_DIR/user/root/home/user/$name/docs/install.rst" 'On Debian 12, 13 and forky this installs everything'
    } > "$CASE_DIR/user/root/home/user/as-root"
    {   printf '%s\n' 'set -ex' "cd $name" 'mkdir build' 'mpicc -o build/ring examples/ring.c' \
            "printf '#!/bin/sh\nexec ./ring ../README.md\n' > build/app" 'chmod +x build/app'
        commands "$CASE_DIR/user/root/home/user/$name/README.md" 'Then, as any user:'
    } > "$CASE_DIR/user/root/home/user/as-user"
    must grep -q 'apt install' "$CASE_DIR/user/root/home/user/as-root"
    must grep -q 'mpirun --mca pml crypt' "$CASE_DIR/user/root/home/user/as-user"
    in_root user su - -c 'bash /home/user/as-root' > "$CASE_DIR/user.log" 2>&1 || { tail -n 20 "$CASE_DIR/user.log"; fail "docs/install.rst"; }
    must in_root user bash -c 'useradd user && chown -R user: /home/user'
    in_root user su - user -c 'bash as-user' >> "$CASE_DIR/user.log" 2>&1 || { tail -n 20 "$CASE_DIR/user.log"; fail "README.md"; }
    must tail -n 3 "$CASE_DIR/user.log"
    must grep -q 'the messages came back as they were sent' "$CASE_DIR/user.log"

    unpacked root /root
    in_root root su - -c "$name/examples/quickstart.sh" | tee "$CASE_DIR/quickstart"
    must grep -q 'readable there 0 times' "$CASE_DIR/quickstart"
    must grep -qE 'readable there [1-9][0-9]* times' "$CASE_DIR/quickstart"
    must grep -qx 'The same program, and nobody on the network can read the second run.' "$CASE_DIR/quickstart"
    exit 0
fi

# ---- twice ----

must openssl genpkey -algorithm ed25519 -out "$CASE_DIR/key.pem"
must openssl pkey -in "$CASE_DIR/key.pem" -pubout -out "$CASE_DIR/public.pem"
repository "$CASE_DIR/one"
(umask 077; repository "$CASE_DIR/two/deeper")
must "$CASE_DIR/one/packaging/release" --key "$CASE_DIR/key.pem" "$CASE_DIR/out"
(cd / && umask 077 && must env TZ=Asia/Tokyo LC_ALL=C.UTF-8 "$CASE_DIR/two/deeper/packaging/release" --key "$CASE_DIR/key.pem" "$CASE_DIR/again")
must diff -r "$CASE_DIR/out" "$CASE_DIR/again"

cd "$CASE_DIR/out"
must test "$(ls | wc -l)" = 4
must sha256sum -c SHA256SUMS
verify() { openssl pkeyutl -verify -rawin -pubin -inkey "$CASE_DIR/public.pem" -in "$1" -sigfile SHA256SUMS.sig; }
must verify SHA256SUMS
sed 's/^0/1/; t; s/^./0/' SHA256SUMS > "$CASE_DIR/changed"
must_fail verify "$CASE_DIR/changed"

archive=$(ls ompi-crypt-*.tar.gz)
tar -tzf "$archive" | sed 's|^[^/]*/||' | grep -v '/$' | sort > "$CASE_DIR/packed"
tr '\0' '\n' < "$CASE_DIR/files" | sort | comm -23 - "$CASE_DIR/packed" > "$CASE_DIR/missing"
[ ! -s "$CASE_DIR/missing" ] || fail "not in the tarball: $(cat "$CASE_DIR/missing")"
must grep -qx configure "$CASE_DIR/packed"
must_fail grep -E '(^|/)(\.git|autom4te\.cache)/' "$CASE_DIR/packed"

echo >> "$CASE_DIR/one/README.md"
says "there are changes that are not committed" "$CASE_DIR/one/packaging/release" "$CASE_DIR/refused"
must git -C "$CASE_DIR/one" commit -qam more
sed -i 's/.*/9.9.9/' "$CASE_DIR/one/VERSION"
must git -C "$CASE_DIR/one" commit -qam version
says "NEWS.md does not name 9.9.9" "$CASE_DIR/one/packaging/release" "$CASE_DIR/refused"
must test ! -e "$CASE_DIR/refused/SHA256SUMS"

# ---- schemas ----

venv=$CACHE/schemas-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
(
    flock 6
    [ -e "$venv/complete" ] || {
        rm -rf "$venv"
        must python3 -m venv "$venv"
        "$venv/bin/pip" install -q --disable-pip-version-check check-jsonschema 'cyclonedx-python-lib[json-validation]' || exit 1
        touch "$venv/complete"
    }
) 6> "$venv.lock" || { echo "not tried: schemas (PyPI: check-jsonschema, cyclonedx-python-lib)"; exit 0; }
bill() {
    "$venv/bin/python" - "$1" <<'END'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
sys.exit(JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read()))
END
}
must bill "$CASE_DIR/out/${archive%.tar.gz}.cdx.json"
sed 's/"required"/"needed"/' "$CASE_DIR/out/${archive%.tar.gz}.cdx.json" > "$CASE_DIR/changed"
must_fail bill "$CASE_DIR/changed"
schema() { "$venv/bin/check-jsonschema" --builtin-schema "vendor.github-$1" "$2"; }
must schema workflows "$SRC/.github/workflows/tests.yml"
for form in "$SRC"/.github/ISSUE_TEMPLATE/*.yml; do must schema issue-forms "$form"; done
sed 's/runs-on/runs_on/' "$SRC/.github/workflows/tests.yml" > "$CASE_DIR/changed.yml"
must_fail schema workflows "$CASE_DIR/changed.yml"

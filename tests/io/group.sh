# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A keystore that a group shares: what its owner, a member and a user outside of the group can do with mpicrypt and
# in a program, each as a user of its own.
. "$SRC/tests/io/common.sh"
[ "$(id -u)" = 0 ] || skip "only root can be several users"
cluster_up 1

project=$(mktemp -d)                                    # where other users can get
trap 'rm -rf "$project"; vcluster down >/dev/null 2>&1 || true' EXIT
chmod 711 "$project"
for user in 4712 4713 4714; do
    mkdir -m 700 "$project/$user"
    chown $user:$user "$project/$user"
done
mkdir "$project/shared"
chown 4712:4715 "$project/shared"
export OMPI_MCA_crypt_keystore_dir=$project/shared/keys OMPI_MCA_crypt_secret_on_netfs=1
# as USER GROUP COMMAND...
as() {
    local user=$1 group=$2; shift 2
    in_variant env HOME="$project/$user" setpriv --reuid="$user" --regid="$user" --groups "$group" "$@"
}
owner() { OMPI_MCA_crypt_keystore_group=4715 as 4712 4715 "$@"; }
member() { OMPI_MCA_crypt_keystore_group=4712:4715 as 4713 4715 "$@"; }
outside() { OMPI_MCA_crypt_keystore_group=4712:4715 as 4714 4714 "$@"; }
member test -x "$PREFIX/bin/mpicrypt" || skip "other users cannot run what is in $PREFIX"

echo "--- the owner makes it"
must as 4712 4715 mpicrypt key new lab --keystore-group 4715
[ "$(stat -c '%u:%g %a' "$project/shared/keys" "$project/shared/keys/lab.1" | tr '\n' ' ')" = "4712:4715 750 4712:4715 640 " ] ||
    fail "$(stat -c '%n %u:%g %a' "$project/shared/keys" "$project/shared/keys"/*)"
[ "$(stat -c %a "$project/shared/keys/log")" = 600 ] || fail "the owner's log"

echo "--- a member uses it, and logs in a file of its own"
seq 1 30000 > "$project/plain"
chmod 444 "$project/plain"
must member mpicrypt file encrypt "$project/plain" "$project/4713/made" --label lab
is_encrypted "$project/4713/made" || fail "it is plain"
must member mpicrypt file verify "$project/4713/made"
must member mpicrypt key list
log=$project/4713/.ompi-crypt/keystore.log
grep -q " uid=4713 .* wrap label=lab version=1 file=[0-9a-f]\{32\} keystore=$project/shared/keys granted$" "$log" || fail "$(cat "$log")"
grep -q " unwrap label=lab version=1 .* granted$" "$log" || fail "$(cat "$log")"
! grep -q uid=4713 "$project/shared/keys/log" || fail "a member wrote the owner's log"
cp "$project/4713/made" "$project/4712/made"
chown 4712:4712 "$project/4712/made"
must owner mpicrypt file decrypt "$project/4712/made" "$project/4712/back"
must cmp "$project/plain" "$project/4712/back"

echo "--- and changes nothing"
before=$(cksum "$project/shared/keys"/*)
for verb in "new more" "rotate lab" "revoke lab --yes"; do
    # shellcheck disable=SC2086
    must_refuse "$project/shared/keys: only its owner changes a group's keystore" member mpicrypt key $verb
done
must_refuse "only its owner changes a group's keystore" in_variant env OMPI_MCA_crypt_keystore_group=4712:4715 mpicrypt key rotate lab     # not root either
[ "$(cksum "$project/shared/keys"/*)" = "$before" ] || fail "the keystore was changed"

must_refuse "cannot be made: another user would own it, by crypt_keystore_group (4712:4715)" \
    member mpicrypt key new lab --keystore-dir "$project/4713/keys"
[ ! -e "$project/4713/keys" ] || fail "it was made"

echo "--- without the parameter, or the group"
must_refuse "it belongs to user id 4712, this process runs as 4713" as 4713 4715 mpicrypt key list
must_refuse "its mode is 0640" as 4712 4715 mpicrypt file verify "$project/4712/made"
must_refuse "$project/shared/keys: Permission denied" outside mpicrypt key list
must_refuse "it belongs to user id 4712; 4713 is expected" member mpicrypt key list --keystore-group 4715
chmod 644 "$project/shared/keys/lab.1"
must_refuse "its mode is 0644; group id 4715 and 0640 are expected" member mpicrypt file verify "$project/4713/made"
chmod 640 "$project/shared/keys/lab.1"

echo "--- a program of a member"
alone() {
    local who=$1; shift
    OMPI_MCA_pml=ob1 OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_fs_crypt_key_label=lab "$who" "$(mpi_program io odd)" own "$@"
}
must alone member "$project/4713/program"
is_encrypted "$project/4713/program" || fail "it is plain"
must member mpicrypt file verify "$project/4713/program"
must_refuse "Permission denied" alone outside "$project/4714/program"
! is_encrypted "$project/4714/program" || fail "it was made"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A file's life (docs/life.rst): what programs that know nothing of encryption do to an encrypted file, and what a job or
# mpicrypt finds then.  Never wrong bytes, never plaintext where ciphertext was, and no file is lost but the deleted one.
. "$SRC/tests/io/common.sh"

[ "$(id -u)" = 0 ] || skip "only root can mount a second file system"
cd "$CASE_DIR"
mkdir elsewhere
mount -t tmpfs none elsewhere || skip "tmpfs cannot be mounted here"
unmount() { umount -l "$CASE_DIR/elsewhere" 2>/dev/null || true; }
trap unmount EXIT
cluster_up 1 --slots 3
trap 'vcluster down >/dev/null 2>&1 || true; unmount' EXIT
python3 -c "import os; open('f', 'w'); os.setxattr('f', 'user.x', b'')" 2>/dev/null || skip "the file system has no extended attributes"
keys_in keys lab other
program=$(mpi_program io named)
here() { echo "$CASE_DIR/$1"; }
tool() { in_variant mpicrypt file "$@" --keystore-dir "$CASE_DIR/keys"; }
job() { # job VERB FILE ARGUMENT...: without a label
    local verb=$1 name=$2; shift 2
    run_io 3 "$program" "$verb" "$(here plain)" "$(here "$name")" "$@"
}
labeled() { # the same, with one
    local verb=$1 name=$2; shift 2
    run_io 3 --mca fs_crypt_key_label lab "$program" "$verb" "$(here plain)" "$(here "$name")" "$@"
}
head -c 300001 /dev/urandom > plain
python3 - <<'END'
plain = open("plain", "rb").read()
for version in range(10):
    open("plain.%d" % version, "wb").write(bytes((byte + version) % 256 for byte in plain))
END

# is FILE VERSION: by a job without a label, by one with it, and by mpicrypt.
is() {
    rm -f back
    must tool verify "$(here "$1")" > verified || { cat verified; fail "$1"; }
    must tool decrypt "$(here "$1")" "$(here back)"
    must cmp plain."$2" back
    must job read "$1" "$2"
}
# No bytes of PLAIN in any file here.
no_plaintext() {
    local name
    for name in "$@"; do
        python3 -c "
import sys
plain, there = (open(name, 'rb').read() for name in sys.argv[1:])
for version in range(10):
    if bytes((byte + version) % 256 for byte in plain[1000:1032]) in there or bytes((byte + version) % 256 for byte in plain[200000:200032]) in there:
        sys.exit('plaintext of version %d in %s' % (version, sys.argv[2]))" plain "$name" || fail "plaintext"
    done
}
both="job tool"
# made HOW FILE VERSION
made() {
    rm -f "$2"
    if [ "$1" = job ]; then
        must labeled make "$2" "$3" > made.out
    else
        must in_variant mpicrypt file encrypt "$(here plain."$3")" "$(here "$2")" --label lab --keystore-dir "$CASE_DIR/keys"
    fi
    no_plaintext "$2"
}

echo "--- written, then renamed: 100 steps"
mkdir steps
must run_io 3 --mca fs_crypt_key_label lab "$program" steps "$(here plain)" "$(here steps)" 100
[ "$(ls steps | wc -l)" = 100 ] || fail "in steps: $(ls steps)"
for i in 0 7; do is steps/ck.$i $i; done
no_plaintext steps/ck.*
rm -r steps

echo "--- renamed, unlinked, replaced while it is open"
must labeled renamed new "$(here moved)"
[ ! -e new ] || fail "new is there"
is moved 1
must labeled unlinked new
[ ! -e new ] || fail "new is there"
made tool beside 3
must labeled replaced new "$(here beside)"
is new 3
is moved 1

for how in $both; do
    echo "--- by $how: mv, also to another file system; ln; copies"
    made $how F 1
    must mv F elsewhere/F
    is elsewhere/F 1
    must mv elsewhere/F G
    is G 1
    must ln G F
    must ln -s G S
    must labeled make F 2                              # over it
    for name in F G S; do is $name 2; done
    must rm G S
    is F 2

    copies=()
    copy() { # copy NAME COMMAND...
        local name=$1; shift
        must "$@"
        is "$name" 2
        copies+=("$name")
    }
    rm -rf to; mkdir to
    copy to/cp cp F to/cp
    copy to/cp-a cp -a F to/cp-a
    copy to/full cp --sparse=never F to/full
    copy to/sparse cp --sparse=always to/full to/sparse
    [ "$(stat -c %b to/sparse)" -lt "$(stat -c %b to/full)" ] || fail "cp wrote the holes: $(stat -c %b to/sparse)"
    for options in -a -aX -aS -aXS; do
        copy to/rsync$options rsync $options F to/rsync$options
    done
    mkdir to/tar to/tar-x
    must tar -Scf F.tar F
    must tar --xattrs -cf Fx.tar F
    [ "$(stat -c %s F.tar)" -lt "$(stat -c %s F)" ] || fail "tar -S wrote the holes"
    copy to/tar/F tar -xf F.tar -C to/tar
    copy to/tar-x/F tar --xattrs --xattrs-include='user.*' -xf Fx.tar -C to/tar-x
    copy to/scp sh -c 'cat F > to/scp'                  # as scp and object stores do
    copy elsewhere/F cp F elsewhere/F
    python3 -c "import os, sys; sys.exit('user.mpicrypt.map' in os.listxattr('to/scp'))" || fail "it has the attribute"
    # Each is a file of its own.
    for name in "${copies[@]}"; do
        must labeled make "$name" 3 > made.out
        no_plaintext "$name"
    done
    for name in "${copies[@]}"; do is "$name" 3 > is.out; done
    is F 2
    rm -rf to F.tar Fx.tar elsewhere/F

    echo "--- by $how: deleted"
    must ln F kept
    must labeled delete F 4
    is F 4
    is kept 2
    rm kept

    echo "--- by $how: clobbered, emptied"
    for what in truncate redirect clobber; do
        made $how F 1
        case $what in
            truncate) must truncate -s 0 F ;;
            redirect) : > F ;;
            clobber)  ;;
        esac
        if [ $what != clobber ]; then
            must job empty F                            # and nothing brings the old bytes back
            must_fail job read F 1
            must_refuse "" job make F 5
            must_refuse "" run_io 3 --mca fs_crypt_require 1 "$program" read "$(here plain)" "$(here F)" 1
            [ ! -s F ] || fail "$what: something was written"
            must_fail tool verify "$(here F)"
            must labeled make F 5
        else
            must labeled clobber F 5
        fi
        is F 5
        no_plaintext F
    done

    echo "--- by $how: cut in the middle, and lengthened"
    made $how F 1
    size=$(stat -c %s F)
    for bytes in $((size - 1)) $((size - 100000)) 300000; do
        cp --preserve=all F cut
        must truncate -s $bytes cut
        must_fail job read cut 1
        must_fail labeled read cut 1
        must truncate -s "$size" cut                    # zeros are not ciphertext
        must_fail tool verify "$(here cut)"
        must_fail job read cut 1
        must labeled clobber cut 6
        is cut 6
    done
    is F 1

    echo "--- by $how: another program writes over its head"
    for bytes in 16 512 8192 100000; do
        for attribute in yes no; do
            cp --preserve=all F head
            head -c "$bytes" /dev/urandom | dd of=head conv=notrunc status=none
            [ $attribute = yes ] || must python3 -c "import os; os.removexattr('head', 'user.mpicrypt.map')"
            before=$(sha256sum < head)
            must_fail job read head 1
            must_fail labeled read head 1
            must_fail labeled make head 2
            must_fail tool decrypt "$(here head)" "$(here never)"
            if [ $attribute = yes ]; then               # without it, it is any file for a job without a label
                must_fail job make head 2
            fi
            must_fail run_io 3 --mca fs_crypt_require 1 "$program" read "$(here plain)" "$(here head)" 1
            [ "$(sha256sum < head)" = "$before" ] && [ ! -e never ] || fail "$bytes $attribute: it was changed"
        done
    done
done

echo "--- it is as long as a file can be, says the storage"
made tool F 1
cp F elsewhere/F
must truncate -s $((1 << 61)) elsewhere/F
must timeout 60 $(in_other_root && echo "$SRC/tests/vcluster exec node0") mpicrypt file info "$(here elsewhere/F)" --keystore-dir "$CASE_DIR/keys"
rm elsewhere/F

echo "--- another file is copied over it"
made tool F 1
made tool G 2
cp --preserve=all F over
must cp G over                                          # which keeps the target's attribute
must job read over 2
must_refuse "the map in its attribute is another" tool verify "$(here over)"
must labeled make over 3                                # and the first writer replaces it
is over 3
must cp plain.4 over
must_fail job read over 4
must_fail job make over 5
must_fail labeled make over 5
must cmp plain.4 over
must labeled clobber over 5
is over 5

echo "--- a log is rotated"
must labeled append log 1
must mv log log.1
must labeled append log 2
must labeled append log 3
is log.1 1
cat plain.2 plain.3 > plain.23
must tool decrypt "$(here log)" "$(here log.plain)"
must cmp plain.23 log.plain
must cp log log.2                                       # copytruncate
: > log
must labeled append log 4
is log 4
rm log.plain
must tool decrypt "$(here log.2)" "$(here log.plain)"
must cmp plain.23 log.plain
no_plaintext log log.1 log.2

echo "--- a plain file that begins like one of ours"
{ head -c 16 F; cat plain; } > magic
before=$(sha256sum < magic)
must_fail job read magic 0
must_fail labeled make magic 1
must_fail tool decrypt "$(here magic)" "$(here never)"
must in_variant mpicrypt file encrypt "$(here magic)" "$(here magic.made)" --label lab --keystore-dir "$CASE_DIR/keys"
must tool decrypt "$(here magic.made)" "$(here magic.back)"
must cmp magic magic.back
[ "$(sha256sum < magic)" = "$before" ] || fail "it was changed"

echo "--- what shows by a root that was kept, and by nothing else"
made tool F 1
made tool G 2
for name in F G; do
    must tool seal "$(here $name)" > $name.said
    eval "root_$name=$(sed -n 's/^root //p' $name.said)"
done
cp --preserve=all F old
must labeled make F 3
must tool seal "$(here F)" > said
root=$(sed -n 's/^root //p' said)
cp --preserve=all F new
cp --preserve=all old F                                 # a whole older file
is F 1
must_fail tool verify "$(here F)" --root "$root"
must tool verify "$(here F)" --root "$root_F"
cp --preserve=all G F                                   # another file
is F 2
must_fail tool verify "$(here F)" --root "$root"
cp --preserve=all new F
must tool verify "$(here F)" --root "$root"
# Whole blocks missing at the end: only sealed files know how many there were.
made tool F 1
head -c 262144 plain.1 > shorter
size=$(stat -c %s F)
must truncate -s $((size - (300001 - 262144))) F
must tool decrypt "$(here F)" "$(here shorter.back)"
must cmp shorter shorter.back
# Header and attribute gone: just any bytes, unless encryption is asked for.
made tool F 1
must cp F bare
dd if=/dev/urandom of=bare bs=512 count=1 conv=notrunc status=none
must run_io 3 "$program" make "$(here plain)" "$(here bare)" 0
must_refuse "" labeled read bare 0

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# readers.sh [READER...]: one file that a job wrote with parallel HDF5 on two nodes, and everything that reads it: each reader finds what it finds
# in the file that the same program wrote without encryption.  Where bytes were changed, blocks exchanged, the end cut
# off, a plain file put in its place, or the key is missing, each has an error, and never another value.
. "$SRC/tests/io/common.sh"
. "$SRC/tests/io/offsets.sh"
unset ${!HDF5_*}

driver=$PREFIX/lib/ompi-crypt/hdf5
[ -e "$driver/libmpicrypt_hdf5.so" ] || skip "this build has no driver for HDF5: no hdf5.h of 1.14 or later"
[ -x "$PREFIX/libexec/ompi-crypt/mpicrypt-mount" ] || skip "this build has no mpicrypt-mount (Debian: libfuse3-dev)"
[ -w /dev/fuse ] || skip "/dev/fuse cannot be opened"
mkdir -p "$CACHE/python-readers"
cluster_up 2 --bind "$CACHE/python-readers"
cd "$CASE_DIR"
in_variant sh -c 'command -v h5dump && command -v ncdump && command -v fusermount3 && python3 -c "import mpi4py, h5py._debian_h5py_mpi"' \
    > null 2>&1 || skip "missing (Debian): hdf5-tools, netcdf-bin, fuse3 or python3-h5py-mpi"
keys_in "$CASE_DIR/keys" lab
keys_in "$CASE_DIR/others" other

# ---- PyPI's packages, for the Python that reads; VTK is large, and not for each machine ----

version=$(in_variant python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
site=$CACHE/python-readers/$version
for_version=(--python-version "$version" --implementation cp --only-binary=:all:
    --platform "manylinux_2_28_$(uname -m)" --platform "manylinux2014_$(uname -m)")
(
    flock 6
    [ -e "$site/complete" ] && exit
    rm -rf "$site"
    must python3 -m venv pip
    pip_install pip "${for_version[@]}" --target "$site" h5py h5netcdf xarray pandas tables netCDF4
    (pip_install pip "${for_version[@]}" --no-deps --target "$site.vtk" vtk) || echo "vtk cannot be installed: $(tail -n 1 pip.out)"
    touch "$site/complete"
) 6> "$CACHE/python-readers.lock" || exit $?

# ---- the file, and what can happen to it ----

must vcluster mpirun -n 4 --mca pml ob1 python3 "$SRC/tests/io/readers/write.py" "$CASE_DIR/twin"
mkdir data
must vcluster mpirun -n 4 --mca fs_crypt_key_label lab --mca fs_crypt_block_size 4096 python3 "$SRC/tests/io/readers/write.py" "$CASE_DIR/data/whole"
must is_encrypted data/whole
must_fail grep -qa the-canary-sings data/whole
must grep -qa the-canary-sings twin
must file decrypt "$CASE_DIR/data/whole" "$CASE_DIR/decrypted"
must cmp twin decrypted
rm decrypted

# In each set of values, a block that has nothing else.
in_variant python3 - > blocks <<'END'
import h5py
with h5py.File("twin", "r") as file:
    for at in (file["field"].id.get_offset(), file["tables/steps"].id.get_chunk_info(4).byte_offset,
               file["VTKHDF/PointData/level"].id.get_offset()):
        print(-(-at // 4096))
END
mapfile -t blocks < blocks
[ ${#blocks[@]} = 3 ] || fail "blocks"
swap() {                                        # swap FILE AT OTHER BYTES
    python3 - "$@" <<'END'
import sys
name, (one, other, size) = sys.argv[1], map(int, sys.argv[2:])
with open(name, "r+b") as file:
    bytes_ = open(name, "rb").read()
    for to, of in ((one, other), (other, one)):
        file.seek(to)
        file.write(bytes_[of:of + size])
END
}
for name in inside border sealed; do copy data/whole data/$name; done
# A block that was overwritten is read from its room if it is damaged.  Without rooms (docs/file-format.rst) all is there, too.
copy data/whole roomless
zero roomless 24576 4096
must file verify "$CASE_DIR/roomless"
for name in flipped swapped; do cp roomless data/$name; done
for block in "${blocks[@]}"; do
    poke data/flipped "$(data_at data/whole $((block * 4096 + 77)))"
    swap data/swapped "$(data_at data/whole $((block * 4096)))" "$(data_at data/whole $((block * 4096 + 4096)))" 4096
    swap data/swapped "$(entry_at data/whole "$block")" "$(entry_at data/whole $((block + 1)))" 128
done
must truncate -s "$(data_at data/whole $((blocks[0] * 4096 + 2048)))" data/inside
must truncate -s "$(data_at data/whole $((blocks[0] * 4096)))" data/border
must file seal "$CASE_DIR/data/sealed"
copy data/sealed data/cut
must truncate -s "$(data_at data/sealed $((blocks[0] * 4096)))" data/cut
cp twin data/plain
copy data/whole data/nokey

# What the product says of each.  That a file was cut between two blocks is known from a seal alone, or from what the file
# says of itself, as one of HDF5 does.
declare -A reason=(
    [flipped]="no holder of the key wrote this block" [swapped]="no holder of the key wrote this block"
    [inside]="no holder of the key wrote this block" [border]="" [cut]="the seal does not hold" [plain]="it is not encrypted"
    [nokey]="the keystore holds no key for the file")
damages=(flipped swapped inside border cut plain nokey)

# ---- readers: each is called with files, and leaves got/READER.FILE.out, or .err and perhaps .part ----

mkdir got
keystore_of() { [[ $1 = */nokey ]] && echo "$CASE_DIR/others" || echo "$CASE_DIR/keys"; }
# one READER FILE COMMAND...
one() {
    local to=got/$1.${2##*/} keystore; keystore=$(keystore_of "$2"); shift 2
    if OMPI_MCA_crypt_keystore_dir=$keystore "$@" > "$to.part" 2> "$to.err"; then mv "$to.part" "$to.out"; rm "$to.err"; fi
}
# python_of READER FUNCTION [ENVIRONMENT...] -- FILE...
python_of() {
    local reader=$1 function=$2 words=() of=() file; shift 2
    while [ "$1" != -- ]; do words+=("$1"); shift; done
    shift
    for file; do of+=("got/$reader.${file##*/}" "$file" "$(keystore_of "$file")"); done
    in_variant env "${words[@]}" python3 -B "$SRC/tests/io/readers/read.py" "$function" "${of[@]}" 2>> "got/$reader.said" ||
        fail "$reader: status $?: $(cat "got/$reader.said")"
}
by_driver=(HDF5_DRIVER=mpicrypt "HDF5_PLUGIN_PATH=$driver")
through() { local file; for file; do [[ $file = */nokey ]] && echo without/nokey || echo "with/${file##*/}"; done; }

# Its first line is the name of the file, and it prints handles of objects; --vfd-name keeps it from trying other drivers.
h5dump_of() {
    local rc=0
    in_variant "${@:2}" "$1" > h5dumped || rc=$?
    tail -n +2 h5dumped | sed -E 's/DATASET [0-9]+ "/DATASET "/g'
    return $rc
}
read_h5dump() { local file; for file; do one h5dump "$file" h5dump_of "$file" env "${by_driver[@]}" h5dump --vfd-name=mpicrypt; done; }
read_h5py() { python_of h5py h5py "${by_driver[@]}" -- "$@"; }
read_h5py_pypi() { python_of h5py_pypi h5py "${by_driver[@]}" "PYTHONPATH=$site" -- "$@"; }
read_xarray() { python_of xarray xarray "${by_driver[@]}" "PYTHONPATH=$site" -- "$@"; }
read_pandas() { python_of pandas pandas "${by_driver[@]}" "PYTHONPATH=$site" -- "$@"; }
read_netcdf4() { python_of netcdf4 netcdf4 "${by_driver[@]}" "PYTHONPATH=$site" -- "${@/#/"file://$CASE_DIR/"}"; }
read_ncdump() { local file; for file; do one ncdump "$file" in_variant ncdump -n twin "$(through "$file")"; done; }
read_vtk() { python_of vtk vtk "PYTHONPATH=$site:$site.vtk" -- $(through "$@"); }
read_vtk_driver() { python_of vtk_driver vtk "${by_driver[@]}" "PYTHONPATH=$site:$site.vtk" -- "$@"; }
read_cat() { local file; for file; do one cat "$file" in_variant mpicrypt file cat "$file" --range $((blocks[0] * 4096 - 5000))-$((blocks[0] * 4096 + 9000)); done; }
read_ompi_crypt() { python_of ompi_crypt ompi_crypt "PYTHONPATH=$PREFIX/share/ompi-crypt/python" -- "$@"; }
read_library() { local file; for file; do one library "$file" in_variant ./reader cat "$file"; done; }
readers=(h5dump h5py h5py_pypi xarray pandas netcdf4 ncdump vtk vtk_driver cat ompi_crypt library)
[ $# = 0 ] || readers=("$@")

# The same of the plain twin.
plain_h5dump() { h5dump_of twin h5dump; }
plain_h5py() { python_of plain h5py PYTHONPATH= -- twin; }
plain_h5py_pypi() { python_of plain h5py "PYTHONPATH=$site" -- twin; }
plain_xarray() { python_of plain xarray "PYTHONPATH=$site" -- twin; }
plain_pandas() { python_of plain pandas "PYTHONPATH=$site" -- twin; }
plain_netcdf4() { python_of plain netcdf4 "PYTHONPATH=$site" -- twin; }
plain_ncdump() { in_variant ncdump twin; }
plain_vtk() { python_of plain vtk "PYTHONPATH=$site:$site.vtk" -- twin; }
plain_vtk_driver() { plain_vtk; }
plain_cat() { tail -c +$((blocks[0] * 4096 - 4999)) twin | head -c 14001; }
plain_ompi_crypt() { od -An -v -tx1 twin | tr -d ' \n'; }
plain_library() { cat twin; }

must in_variant cc -std=gnu11 -O1 -o reader "$SRC/tests/library/programs/reader.c" \
    $(in_variant env PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig" pkg-config --cflags --libs mpicrypt_file) -Wl,-rpath,"$PREFIX/lib" -lpthread
# mount_up KEYSTORE MOUNTPOINT
mount_up() {
    mkdir "$2"
    : > "$2.out"
    OMPI_MCA_crypt_keystore_dir=$CASE_DIR/$1 in_variant mpicrypt mount "$CASE_DIR/data" "$CASE_DIR/$2" > "$2.out" 2> "$2.log" &
    until grep -q '^mounted ' "$2.out"; do
        kill -0 $! 2> null || fail "mpicrypt mount ended: $(cat "$2.log")"
        sleep 0.05
    done
}
mount_up keys with
mount_up others without

# ---- values, then damages ----

if [ ! -e "$site.vtk" ]; then
    echo "not tried: vtkHDFReader, as PyPI has no vtk for Python $version here"
    readers=("${readers[@]/vtk*}")
fi
for reader in ${readers[@]}; do
    rm -f got/plain.*
    plain_$reader > got/plain.wanted
    [ ! -e got/plain.twin.out ] || mv got/plain.twin.out got/plain.wanted
    mv got/plain.wanted got/$reader.wanted
    [ -s got/$reader.wanted ] || fail "$reader reads nothing of the plain file: $(cat got/plain.*)"
    read_$reader data/whole data/sealed "${damages[@]/#/data/}"
done

# answer READER DAMAGE: what came of it, in a word; in capitals if that must not be.
answer() {
    local to=got/$1.$2 wanted=got/$1.wanted
    if [ -e "$to.out" ]; then
        # How long an unsealed file is only the storage says; what is read is right.
        [ "$2" = border ] && [[ $1 = @(cat|ompi_crypt|library) ]] && cmp -s -n "$(stat -c %s "$to.out")" "$to.out" "$wanted" &&
            echo shorter || echo VALUES
    elif [ ! -s "$to.err" ]; then
        echo SILENT
    elif [ -s "$to.part" ] && ! right_before_error "$1" "$to.part" "$wanted"; then
        echo PARTLY
    elif ! says_why "$1" "$2"; then
        echo REASON
    else
        echo error
    fi
}

# What was printed before an error is right: a beginning, or lines that are there.
right_before_error() {
    case $1 in
        cat|library) cmp -s -n "$(stat -c %s "$2")" "$2" "$3" ;;
        *) ! head -n -1 "$2" | grep -v '^h5dump error: ' | grep -vqxFf "$3" ;;
    esac
}

# Where a reader's messages are.
said_by() {
    case $1 in
        ncdump|vtk) [ "$2" = nokey ] && echo without.log || echo with.log ;;
        h5dump|cat|library|ompi_crypt) echo "got/$1.$2.err" ;;
        *) echo "got/$1.said" ;;
    esac
}

# In a mount, a plain file is not there.  HDF5 looks at the length that the file says before it reads its end.
says_why() {
    if [ "$2" = plain ] && [[ $1 = @(ncdump|vtk) ]]; then
        ! in_variant test -e with/plain
    elif [ "$2" = inside ] && [[ $1 != @(cat|ompi_crypt|library) ]]; then
        return 0
    else
        grep -hE "(: |/)$2(#.*)?: " "$(said_by "$1" "$2")" | grep -qF -- "${reason[$2]}" || [ -z "${reason[$2]}" ]
    fi
}

{
    printf '%-11s' reader whole sealed "${damages[@]}"
    for reader in ${readers[@]}; do
        printf '\n%-11s' $reader
        for name in whole sealed; do
            cmp -s got/$reader.wanted got/$reader.$name.out && printf '%-11s' same || printf '%-11s' DIFFERS
        done
        for name in "${damages[@]}"; do printf '%-11s' "$(answer $reader $name)"; done
    done
    echo
} > table
cat table
must_fail grep -E '[A-Z]{6}' table
for mountpoint in with without; do must in_variant fusermount3 -u "$CASE_DIR/$mountpoint"; done
wait

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A program of the standard ABI, which has libmpi_abi where others have libmpi: its messages are sealed
# like theirs.  And no component of ours wants a function of MPI, which only programs bring.
set -eu
. "$SRC/tests/lib.sh"
case $SERIES in 4.1|5.0) skip "this Open MPI has no libmpi_abi" ;; esac

for file in "$PREFIX"/lib/ompi-crypt/*.so "$PREFIX"/lib/libmca_*.so; do
    calls=$(nm --dynamic --undefined-only "$file" | grep -E ' P?MPI_[A-Z]' || true)
    [ -z "$calls" ] || fail "$file calls"$'\n'"$calls"
done

cluster_up 2
cd "$CASE_DIR"
# Debian's package has what the wrapper reads, but not its name.
wrapper=$(in_variant sh -c 'command -v mpicc_abi || echo "$(dirname "$(readlink -f "$(command -v mpicc)")")/opal_wrapper"')
ln -s "$wrapper" mpicc_abi
must in_variant ./mpicc_abi -o ring "$SRC/examples/ring.c"
must in_variant sh -c 'ldd ring | grep libmpi_abi'
must_fail in_variant sh -c 'ldd ring | grep "libmpi\.so"'
head -c 3000 "$SRC/LICENSE" > text
must vcluster mpirun -n 4 --mca crypt_report 1 ring text > out 2>&1
cat out
grep -qE "sealed_messages +[1-9]" out || fail "nothing was sealed"

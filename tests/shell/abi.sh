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

# compiled NAME SOURCE...: it is a program of the standard ABI, and of nothing else.
compiled() {
    local name=$1; shift
    must in_variant ./mpicc_abi -std=gnu11 -O2 -Wno-deprecated-declarations -pthread -o "$name" "$@" -lm
    must in_variant sh -c "ldd $name | grep libmpi_abi"
    must_fail in_variant sh -c "ldd $name | grep 'libmpi\\.so'"
}

# In clear on the wire over ob1, sealed over pml/crypt.
readable() { grep -qaF "$text" wire; }
text="secret-$(od -An -tx1 -N8 /dev/urandom | tr -d ' \n') of the ring"
yes "$text" | head -n 50 > text
compiled ring "$SRC/examples/ring.c"
for pml in ob1 crypt; do
    capture_start node1 wire -B 65536
    OMPI_MCA_pml=$pml must vcluster mpirun -n 4 --mca crypt_report 1 ring text > out.$pml 2>&1
    capture_stop node1
    cat out.$pml
    if [ $pml = ob1 ]; then must readable; else must_fail readable; fi
done
grep -qE "sealed_messages +[1-9]" out.crypt || fail "nothing was sealed"

# Programs of the other cases: point-to-point, collectives, files.
shared=($(grep -L '^int main(' "$SRC"/tests/mpi/*.c))
for name in p2p_modes coll io; do
    compiled $name "$SRC/tests/mpi/$name.c" "${shared[@]}"
done
must vcluster mpirun -n 4 p2p_modes max=200000
for way in blocking nonblocking persistent; do
    must vcluster mpirun -n 4 coll $way
done
mkdir files
must vcluster mpirun -n 4 io "$CASE_DIR/files"

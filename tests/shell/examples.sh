# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Each program of examples/ compiles as its head says and runs encrypted on two
# nodes; files do not show what was written; the set-up scripts set up what a
# job then runs with.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
examples=$SRC/examples
export HOME=$CASE_DIR/home OMPI_MCA_crypt_keystore_dir=$CASE_DIR/keys
mkdir "$HOME"
cd "$CASE_DIR"
echo "secret-$(od -An -tx1 -N8 /dev/urandom | tr -d ' \n') of the ring" > secret.txt
options=()
job() { mpirun_aside -n 4 ${options[@]+"${options[@]}"} -- "$@"; }
flags="-I$PREFIX/include -L$PREFIX/lib -Wl,-rpath,$PREFIX/lib"
must in_variant mpicrypt key new results --keystore-dir "$CASE_DIR/keys"

# compiled COMPILER OUTPUT SOURCE [WORD...]
compiled() {
    local compiler=$1 output=$2 source=$3; shift 3
    must in_variant "$compiler" -Wall -Wextra -o "$CASE_DIR/$output" "$examples/$source" $flags "$@"
}

# encrypted FILE: made by the job before, and nothing of it can be read.
encrypted() {
    must_fail grep -qa "secret of" "$1"
    must in_variant mpicrypt file verify "$CASE_DIR/$1" --keystore-dir "$CASE_DIR/keys"
}

# complains PROGRAM...: a ring without a text ends, and says why.
complains() {
    local text rc
    for text in "" /nonexistent /dev/null; do
        rc=0
        timeout -k 5 100 "$SRC/tests/vcluster" mpirun -n 4 "$@" $text > ring.out 2>&1 < /dev/null || rc=$?
        echo "+ ! $* $text: status $rc"
        [ $rc != 0 ] && [ $rc != 124 ] && grep -q "ring.*: cannot read a text: " ring.out || fail "status $rc: $(cat ring.out)"
    done
}

echo "C"
compiled mpicc ring ring.c
complains "$CASE_DIR/ring"
says "4 ranks: the messages came back as they were sent" job "$CASE_DIR/ring" "$CASE_DIR/secret.txt"
compiled mpicc regions regions.c -lmpi_crypt
says "4 ranks: each read what it had written" job "$CASE_DIR/regions" "$CASE_DIR/c.out"
must grep -qa "lines of 1024 bytes, one a rank, encrypted" c.out
encrypted c.out

if in_variant sh -c 'command -v gfortran' > /dev/null; then
    echo "Fortran"
    compiled mpifort ring_f ring.f90
    says "4 ranks: the message came back as it was sent" job "$CASE_DIR/ring_f" "$CASE_DIR/secret.txt"
    compiled mpifort regions_f regions.f90 -lmpi_crypt
    says "each read what it had written" job "$CASE_DIR/regions_f" "$CASE_DIR/f.out"
    must grep -qa "lines of 1024 bytes, one a rank, encrypted" f.out
    encrypted f.out
else
    echo "skipped: Fortran is missing (Debian: gfortran)"
fi

# Debian's Python has Debian's packages, whichever is first in the PATH.
python=python3
in_variant $python -c 'import mpi4py' 2>/dev/null || python=/usr/bin/python3
if in_variant $python -c 'import mpi4py' 2>/dev/null; then
    echo "Python"
    says "4 ranks: the messages came back as they were sent" job $python "$examples/ring.py" "$CASE_DIR/secret.txt"
    complains $python "$examples/ring.py"
    says "4 ranks: each read what it had written" job $python "$examples/file.py" "$CASE_DIR/py.out"
    encrypted py.out
else
    echo "skipped: mpi4py is missing (Debian: python3-mpi4py)"
fi

if in_variant pkg-config --exists hdf5-openmpi; then
    echo "HDF5"
    compiled mpicc hdf5 hdf5.c $(in_variant pkg-config --cflags --libs hdf5-openmpi)
    says "4 ranks: each read what it had written" job "$CASE_DIR/hdf5" "$CASE_DIR/results.h5"
    must_fail env LC_ALL=C grep -qaP '\x89HDF\r' results.h5         # how plain ones begin; three bytes come by chance, too
    encrypted results.h5
else
    echo "skipped: parallel HDF5 is missing (Debian: libhdf5-openmpi-dev)"
fi

echo "a site's parameters"
key=/dev/shm/psk
for node in node0 node1; do
    vcluster exec "$node" bash -c "umask 077; cat > $key" < "$OMPI_MCA_crypt_psk_file"
done
mkdir "$HOME/.openmpi"
# The lines for a site without MUNGE in the place of those for one with it.
sed -e "/^crypt_auth = munge/d; s|^# crypt_psk_file = .*|crypt_psk_file = $key|; s|^crypt_report = .*|crypt_report = 1|" \
    -e 's/^# \(crypt_auth = psk\)/\1/' "$examples/mca-params.conf" > "$HOME/.openmpi/mca-params.conf"
must grep -E '^crypt_(auth = psk|psk_file = )' "$HOME/.openmpi/mca-params.conf"
(
    unset OMPI_MCA_pml OMPI_MCA_crypt_transport OMPI_MCA_crypt_psk_file
    options=(-x HOME)
    says "AES-256-GCM" job "$CASE_DIR/ring" "$CASE_DIR/secret.txt"
)
rm -r "$HOME/.openmpi"

echo "x509"
command -v openssl > /dev/null || { echo "skipped: openssl is missing"; exit 0; }
must "$examples/x509.sh" "$CASE_DIR/ca" alice 2> openssl.log || fail "$(cat openssl.log)"
must_fail "$examples/x509.sh" "$CASE_DIR/ca" alice
# Who was interrupted begins again.
mkdir ca/bob.pem
must_fail "$examples/x509.sh" "$CASE_DIR/ca" bob
rmdir ca/bob.pem
must "$examples/x509.sh" "$CASE_DIR/ca" bob
options=(--mca crypt_auth x509 --mca crypt_x509_ca "$CASE_DIR/ca/ca.pem" --mca crypt_x509_cert "$CASE_DIR/ca/alice.pem"
         --mca crypt_x509_key "$CASE_DIR/ca/alice.key" --mca crypt_report 1)
unset OMPI_MCA_crypt_psk_file
says "authentication           x509" job "$CASE_DIR/ring" "$CASE_DIR/secret.txt"

echo "munge"
in_variant sh -c 'command -v munged' > /dev/null || { echo "skipped: munge is missing"; exit 0; }
for node in node0 node1; do
    vcluster exec "$node" mkdir -m 755 /dev/shm/m
done
m=/dev/shm/m
RSH="$SRC/tests/vcluster agent" KEY=$m/key OWNER=root:root \
    RESTART="munged --key-file=$m/key --socket=$m/s --pid-file=$m/pid --log-file=$m/log --seed-file=$m/seed" \
    must "$examples/munge.sh" node0 node1
options=(--mca crypt_auth munge --mca crypt_munge_socket $m/s --mca crypt_report 1)
says "authentication           munge" job "$CASE_DIR/ring" "$CASE_DIR/secret.txt"

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# apps.sh [ROUNDS [RANKS...]]: whole programs on two nodes, plain and encrypted in turn (the default transport, cubic, no limit
# on the link): LAMMPS, a Lennard-Jones liquid of 32,000 atoms, GROMACS, water with PME, and HPC Challenge (HPL, transposition,
# random access and FFT over all ranks).  They are Debian's packages lammps, gromacs and hpcc, which the case does not
# install.  With as many ranks as processors each is pinned to one.  It prints times relative to plain, and fails if results
# differ.
set -eu -o pipefail
. "$SRC/tests/lib.sh"

rounds=${1:-9}
[ $# -gt 1 ] && shift && counts=("$@") || counts=(2 4)
unset OMPI_MCA_crypt_transport
programs=()
! in_variant sh -c 'command -v lmp' > /dev/null || programs+=(lammps)
! in_variant sh -c 'command -v gmx_mpi || command -v gmx_mpi.openmpi' > /dev/null || programs+=(gromacs)
! in_variant sh -c 'command -v hpcc' > /dev/null || programs+=(hpcc)
[ ${#programs[@]} -gt 0 ] || skip "neither lmp (package lammps) nor gmx_mpi (gromacs) nor hpcc is installed"
cd "$CASE_DIR"

cat > in.lj <<'END'
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 50
thermo_modify format float %.10g
run 300
END

# The input of HPC Challenge for this number of ranks: one problem.
make_hpcc() {
    local rows=1
    [ "$1" -lt 4 ] || rows=2
    cat > hpccinf.txt <<END
HPLinpack benchmark input file
one problem
HPL.out
8            device out
1            number of problem sizes
2000         N
1            number of NBs
80           NB
0            row-major
1            number of grids
$rows            P
$(($1 / rows))            Q
16.0         threshold
1            number of panel factorizations
2            right
1            number of stopping criteria
4            NBMIN
1            number of panels in recursion
2            NDIV
1            number of recursive factorizations
1            Crout
1            number of broadcasts
1            1ring modified
1            number of lookahead depths
1            depth
2            swap: mix
64           threshold
0            L1 transposed
0            U transposed
1            equilibration
8            alignment
#### the problems above are PTRANS' too ####
0            number of additional problem sizes for PTRANS
0            values of N
0            number of additional blocking sizes for PTRANS
80           values of NB
END
}

# A box of water, prepared for mdrun.
make_water() {
    cat > water.top <<'END'
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spc.itp"
[ system ]
water
[ molecules ]
END
    cat > settle.mdp <<'END'
integrator = steep
nsteps = 60
emtol = 500
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
END
    cat > water.mdp <<'END'
integrator = md
nsteps = 300
dt = 0.002
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = no
gen_vel = yes
gen_seed = 1
nstenergy = 50
nstcalcenergy = 50
END
    # Molecules that are too close to each other, as at the edges of the box, would fly apart.
    in_variant gmx_mpi solvate -cs spc216 -box 5 5 5 -o box.gro -p water.top > water.log 2>&1 &&
        in_variant gmx_mpi grompp -f settle.mdp -c box.gro -p water.top -o settle.tpr -maxwarn 5 >> water.log 2>&1 &&
        in_variant gmx_mpi mdrun -s settle.tpr -deffnm settle -c water.gro -ntomp 2 -pin off >> water.log 2>&1 &&
        in_variant gmx_mpi grompp -f water.mdp -c water.gro -p water.top -o water.tpr -maxwarn 5 >> water.log 2>&1 ||
        fail "$(cat water.log)"
}

# The program's results, from its output.  RandomAccess loses some updates, also in plain runs; HPCC tolerates 1%.
results() {
    case $1 in
        lammps) sed -n '/^ *Step/,/^Loop/{/^Loop/d;p}' "$2" ;;
        gromacs) sed -n '/Energies (/,/^$/p' "$2.log" ;;
        hpcc) sed -n -E '/^(Success|HPL_N|HPL_RnormI|HPL_XnormI|PTRANS_residual|MPIFFT_maxErr)=/p' "$2.txt" ;;
    esac
}

# The program's own times, without start-up and finalization, one a line: NAME SECONDS.
seconds_of() {
    case $1 in
        lammps) sed -n 's/^Loop time of \([0-9.]*\).*/lammps \1/p' "$2" ;;
        gromacs) awk '$1 == "Time:" { print "gromacs", $3 }' "$2.log" ;;
        hpcc) awk -F= '
                  /^(HPL|PTRANS|MPIRandomAccess)_time=/ { print "hpcc/" substr($1, 1, length($1) - 5), $2 }
                  /^MPIFFT_time[0-9]=/ { fft += $2 }
                  END { print "hpcc/MPIFFT", fft }' "$2.txt" ;;
    esac
}

run() {                                         # run PROGRAM PML RANKS OUT
    local program=$1 pml=$2 ranks=$3 out=$4 command=()
    case $program in
        lammps) command=(lmp -in "$CASE_DIR/in.lj" -log none) ;;
        gromacs) command=(gmx_mpi mdrun -s "$CASE_DIR/water.tpr" -g "$out.log" -e "$out.edr" -c "$out.gro" -cpo "$out.cpt" -ntomp 1
                          -reprod -notunepme -pin off) ;;
        hpcc) command=(hpcc) ; rm -f hpccoutf.txt ;;
    esac
    [ "$ranks" -gt "$(nproc)" ] || command=("$CASE_DIR/pinned" "${command[@]}")
    vcluster mpirun -n "$ranks" --map-by node --mca pml "$pml" "${command[@]}" > "$out" 2>&1 < /dev/null || fail "$(tail -n 20 "$out")"
    [ "$program" != hpcc ] || mv hpccoutf.txt "$out.txt"
}

cat > pinned <<'END'
#!/bin/sh
exec taskset -c "${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}" "$@"
END
chmod +x pinned
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg); $rounds rounds"
cluster_up 2 --slots 8
for node in node0 node1; do
    vcluster net $node sysctl -qw net.ipv4.tcp_congestion_control=cubic
done
for program in "${programs[@]}"; do
    [ "$program" != gromacs ] || make_water
    for ranks in "${counts[@]}"; do
        [ "$program" != hpcc ] || make_hpcc "$ranks"
        : > times
        for ((i = 0; i < rounds; i++)); do
            run "$program" ob1 "$ranks" plain
            run "$program" crypt "$ranks" sealed
            results "$program" plain > expected
            [ -s expected ] || fail "$program printed no results: $(cat plain)"
            results "$program" sealed | cmp - expected || fail "$program: other results than plain's"
            join <(seconds_of "$program" plain | sort) <(seconds_of "$program" sealed | sort) >> times
        done
        [ "$(($(wc -l < times) % rounds))" = 0 ] && [ -s times ] || fail "$program: figures are missing: $(cat times)"
        python3 - "$ranks" <<'END'
import collections, statistics, sys

rows = collections.OrderedDict()
for line in open("times"):
    what, plain, sealed = line.split()
    rows.setdefault(what, []).append((float(plain), float(sealed)))
for what, pairs in rows.items():
    ratios = sorted(sealed / plain for plain, sealed in pairs)
    print(f"{what}, {sys.argv[1]} ranks: plain {statistics.median(plain for plain, _ in pairs):.4g} s, "
          f"encrypted {statistics.median(ratios):.2f} of it ({ratios[0]:.2f} to {ratios[-1]:.2f})")
END
    done
done

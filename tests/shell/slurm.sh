# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# examples/job.slurm under Slurm on two virtual nodes: sbatch, srun --mpi=pmix,
# munge for Slurm and for us.
set -eu
. "$SRC/tests/lib.sh"

for program in slurmctld slurmd srun sbatch munged; do
    command -v $program > /dev/null || skip "$program is missing (Debian: slurmctld, slurmd, slurm-client, munge)"
done
[ "$(id -u)" = 0 ] || skip "slurmd needs root"
ls /usr/lib/*/slurm*/mpi_pmix.so > /dev/null 2>&1 || skip "this Slurm has no plugin for PMIx"
cluster_up 2
cd "$CASE_DIR"
must mpicc -o ring "$SRC/examples/ring.c"
echo "secret-$(od -An -tx1 -N8 /dev/urandom | tr -d ' \n') of the job" > secret.txt

# One file for all; every node has a /dev/shm of its own.
cat > slurm.conf <<CONF
ClusterName=virtual
SlurmctldHost=node0
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/dev/shm/m/s
CryptoType=crypto/munge
StateSaveLocation=/dev/shm/slurmctld
SlurmdSpoolDir=/dev/shm/slurmd
SlurmctldPidFile=/dev/shm/slurmctld.pid
SlurmdPidFile=/dev/shm/slurmd.pid
SlurmctldLogFile=$CASE_DIR/slurmctld.log
SlurmdLogFile=$CASE_DIR/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
MpiDefault=pmix
ReturnToService=2
NodeName=node[0-1] CPUs=2 State=UNKNOWN
PartitionName=all Nodes=node[0-1] Default=YES State=UP
CONF
# No cgroups are used, but slurmd wants to know which kind they would be, and
# does not find out where a node has a /sys of its own.
echo CgroupPlugin=cgroup/v1 > cgroup.conf
# Virtual nodes share /tmp.
echo PMIxCliTmpDirBase=/dev/shm > mpi.conf
on() { local node=$1; shift; vcluster exec "$node" env SLURM_CONF="$CASE_DIR/slurm.conf" "$@"; }

head -c 128 /dev/urandom > munge.key
for node in node0 node1; do
    vcluster exec "$node" bash -c 'mkdir -m 755 /dev/shm/m /dev/shm/slurmd; cd /dev/shm/m; (umask 077; cat > key)
        munged --key-file=$PWD/key --socket=$PWD/s --pid-file=$PWD/pid --log-file=$PWD/log --seed-file=$PWD/seed' < munge.key
done
on node0 mkdir /dev/shm/slurmctld
must on node0 slurmctld
must on node0 slurmd -N node0
must on node1 slurmd -N node1
for ((i = 0; i < 300; i++)); do
    [ "$(on node0 sinfo -h -t idle -o %D 2> sinfo.err || true)" != 2 ] || break
    sleep 0.1
done
[ "$(on node0 sinfo -h -t idle -o %D)" = 2 ] || { on node0 sinfo; tail -n 5 slurm*.log; fail "Slurm's nodes did not come up"; }

capture_start node1 wire.pcap
must on node0 env OMPI_CRYPT="$PREFIX" RING="$CASE_DIR/ring" SECRET="$CASE_DIR/secret.txt" \
    OMPI_MCA_crypt_munge_socket=/dev/shm/m/s OMPI_MCA_crypt_report=1 OMPI_MCA_btl_tcp_if_include=eth0 \
    sbatch --wait --chdir="$CASE_DIR" --output="$CASE_DIR/job.out" "$SRC/examples/job.slurm"
capture_stop node1
cat job.out
must grep -qx "4 ranks: the messages came back as they were sent" job.out
must grep -q "authentication  *munge" job.out
must test "$(stat -c %s wire.pcap)" -gt 1000000
must_fail grep -qaF "$(cat secret.txt)" wire.pcap

# What goes between the nodes beside MPI's messages, as docs/security.rst has it.  Words are there
# twice, so that one of them is not divided between two packets.
word() { od -An -tx1 -N12 /dev/urandom | tr -d ' \n' | tr 0-9 g-p; }
cat > step.sh <<'END'
cat output.txt
exec ./ring secret.txt
END
# beside [SRUN-OPTION...]: a step with a word in its environment, in its arguments and in its output.
beside() {
    environment=$(word) argument=$(word) output=$(word)
    echo "$output $output" > output.txt
    capture_start node1 wire.pcap
    must on node0 env WORD="$environment $environment" OMPI_MCA_pml=crypt OMPI_MCA_crypt_auth=munge OMPI_MCA_btl_tcp_if_include=eth0 \
        OMPI_MCA_crypt_munge_socket=/dev/shm/m/s srun --mpi=pmix --nodes=2 --ntasks-per-node=2 "$@" sh step.sh "$argument $argument"
    capture_stop node1
}
onwire() { grep -qaF "$1" wire.pcap; }
beside
for text in "$environment" "$argument" "$output" crypt.record; do must onwire "$text"; done
must_fail onwire "$(cat secret.txt)"
beside --export=PATH,HOME,LD_LIBRARY_PATH,$(compgen -v OMPI_MCA_ | paste -sd,),OMPI_MCA_pml,OMPI_MCA_crypt_auth,OMPI_MCA_btl_tcp_if_include,OMPI_MCA_crypt_munge_socket \
    --output="$CASE_DIR/step.%t"
must onwire "$argument"
for text in "$environment" "$output" "$(cat secret.txt)"; do must_fail onwire "$text"; done
must grep -qx "4 ranks: the messages came back as they were sent" step.0

# The same with mpirun, which has its daemons started by srun: without -x, too, they get all of its environment.
# by_mpirun [MPIRUN-OPTION...] in an allocation of both nodes; $exports, if set, is SLURM_EXPORT_ENV.
exports=
by_mpirun() {
    environment=$(word) argument=$(word) output=$(word)
    echo "$output $output" > output.txt
    capture_start node1 wire.pcap
    must on node0 env WORD="$environment $environment" OMPI_MCA_pml=crypt OMPI_MCA_crypt_auth=munge OMPI_MCA_btl_tcp_if_include=eth0 \
        OMPI_MCA_crypt_munge_socket=/dev/shm/m/s OMPI_MCA_oob_tcp_if_include=eth0 ${exports:+"SLURM_EXPORT_ENV=$exports"} \
        salloc --quiet --nodes=2 --ntasks-per-node=2 mpirun --allow-run-as-root "$@" sh step.sh "$argument $argument" > mpirun.out
    capture_stop node1
}
by_mpirun
must grep -qx "4 ranks: the messages came back as they were sent" mpirun.out
for text in "$environment" "$argument" "$output" crypt.record; do must onwire "$text"; done
must_fail onwire "$(cat secret.txt)"
exports=PATH,HOME,LD_LIBRARY_PATH
by_mpirun --output-filename "$CASE_DIR/written:nocopy"
must onwire "$argument"
for text in "$environment" "$output" "$(cat secret.txt)"; do must_fail onwire "$text"; done
must grep -rqx "4 ranks: the messages came back as they were sent" written

# A job that hangs is explained by its number, from either node: each reaches the other by srun.
must mpicc -o hang "$SRC/tests/tool/hang.c"
id=$(on node0 env OMPI_MCA_pml=crypt OMPI_MCA_crypt_auth=munge OMPI_MCA_crypt_munge_socket=/dev/shm/m/s OMPI_MCA_btl_tcp_if_include=eth0 \
    sbatch --parsable --nodes=2 --ntasks-per-node=1 --chdir="$CASE_DIR" --output="$CASE_DIR/hang.out" \
    --wrap "srun --mpi=pmix ./hang tag $CASE_DIR/pid")
# look NODE: ps from there.
look() {
    status=0
    on "$1" mpicrypt ps --after 1 --slurm "$id" > seen 2> said || status=$?
}
sees() { grep -qE 'has waited [0-9]+ s in a receive from rank 0, tag 6; rank 0 has sent it 1 message that it has not received: tag 5$' seen; }
for node in node0 node1; do
    until look $node; sees; do
        [ "$(on node0 squeue -h -j "$id" | wc -l)" = 1 ] || fail "the job ended: $(cat hang.out seen said)"
    done
    cat seen said
    [ $status = 1 ] && grep -q ': 2 of 2 processes seen$' seen || fail "from $node: status $status"
done

# A node whose daemon does not answer, or is gone, is named; the other one is looked at.
daemon=$(vcluster exec node1 cat /dev/shm/slurmd.pid)
for signal in STOP KILL; do
    kill -$signal "$daemon"
    look node0
    cat seen said
    [ $status = 3 ] && grep -q '^mpicrypt ps: node1: it cannot be looked at' said && grep -q ': 1 of 2 processes seen$' seen ||
        fail "slurmd and SIG$signal: status $status"
done
must on node1 slurmd -N node1
until look node0; sees; do :; done
on node0 scancel "$id"
while [ -n "$(on node0 squeue -h -j "$id" 2> null)" ]; do sleep 0.1; done
look node0
cat said
[ $status = 3 ] && grep -q "Slurm job $id" said || fail "a job that is over: status $status"

# The doctor by srun, as docs/mpicrypt.rst has it, in an allocation of two nodes.
must on node0 salloc --quiet --nodes=2 env OMPI_MCA_crypt_auth=munge OMPI_MCA_crypt_munge_socket=/dev/shm/m/s OMPI_MCA_btl_tcp_if_include=eth0 \
    mpicrypt doctor --mpirun 'srun --mpi=pmix' --json > doctor.json
sed -i '/^+ /d' doctor.json
must grep -q '"nodes": \["node[01]", "node[01]"\]' doctor.json
must grep -q "an encrypted job of 2 processes runs" doctor.json

# And by mpirun.
must on node0 salloc --quiet --nodes=2 --ntasks-per-node=1 env OMPI_MCA_crypt_auth=munge OMPI_MCA_crypt_munge_socket=/dev/shm/m/s \
    OMPI_MCA_btl_tcp_if_include=eth0 mpicrypt doctor --mpirun 'mpirun --allow-run-as-root' --json > doctor.json
sed -i '/^+ /d' doctor.json
must grep -q '"nodes": \["node[01]", "node[01]"\]' doctor.json
must grep -q "an encrypted job of 2 processes runs" doctor.json

# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# btl/crypt is used only where it is named, and then by all: whatever would send past it, or cannot
# work, ends the job with a text that says what to do.
set -eu
. "$SRC/tests/lib.sh"

cluster_up 2
program=$(mpi_program mpi p2p_empty)
over_btl
beside=${OMPI_MCA_btl#crypt,}

# refused TEXT SETTING...: the job ends, and says so.
refused() {
    local text=$1 said rc=0; shift
    ( [ $# = 0 ] || export "$@"; vcluster mpirun -n 2 --map-by node "$program" ) > "$CASE_DIR/out" 2>&1 || rc=$?
    said=$(tr -s ' \n' ' ' < "$CASE_DIR/out")
    echo "$*: status $rc"
    [ $rc != 0 ] && [[ "$said" == *"$text"* ]] || fail "not \"$text\": $(cat "$CASE_DIR/out")"
}

must vcluster mpirun -n 2 --map-by node --mca crypt_verbose 10 "$program"
VCLUSTER_IF=10.0.0.0/8 must vcluster mpirun -n 2 --map-by node --mca crypt_key_bits 256 "$program"
must vcluster mpirun -n 2 --map-by node --mca crypt_auth none "$program"
must vcluster mpirun -n 2 --map-by node --mca coll basic,libnbc,self,tuned,inter,cryptag "$program"
must vcluster mpirun -n 2 --map-by node --mca coll ^hcoll "$program"

# Interfaces are what is set for btl/tcp, as that understands it.  On one node no network is needed; from a node without one,
# nobody is reached.
VCLUSTER_IF=none0 must vcluster mpirun -n 2 -host node0:2 "$program"
VCLUSTER_IF=none0 refused 'its node had no network address'
if [ "$SERIES" != 6.0 ]; then           # whose Debian has btl_tcp_if_include=lo in a file
    VCLUSTER_IF= refused 'its node had no network address' OMPI_MCA_btl_tcp_if_exclude=lo,et
    VCLUSTER_IF= refused 'its node had no network address' OMPI_MCA_btl_tcp_if_exclude=lo,10.0.0.0/8
    VCLUSTER_IF= must vcluster mpirun -n 2 --map-by node "$program"
fi

# IPv6: each node has an address of it, and no other may be used.
for i in 0 1; do
    vcluster net "node$i" sh -c "echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6
        echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6; ip -6 addr add fd99::$((i + 1))/64 dev eth0 nodad"
done
capture_start node0 "$CASE_DIR/six.pcap" -B 262144 '(ip6 and tcp) or udp port 9'
VCLUSTER_IF=fd99::/64 must vcluster mpirun -n 2 --map-by node "$program"
capture_stop node0
tcpdump -nr "$CASE_DIR/six.pcap" 2>/dev/null | grep -q 'IP6 fd99::[12]\.[0-9]* > fd99::[12]\.' || fail "nothing went over IPv6"

refused 'another PML than ob1 could be used'        OMPI_MCA_pml=crypt OMPI_MCA_crypt_transport=pml
refused 'another PML than ob1 could be used'        OMPI_MCA_pml=ob1,ucx
refused 'a BTL that would send in plaintext'        "OMPI_MCA_btl=crypt,tcp,$beside"
refused 'a component is allowed that would go around it' OMPI_MCA_osc=ucx,sm
refused 'a component is allowed that has a network of its own' OMPI_MCA_coll=basic,ucc,libnbc
VCLUSTER_IF=10.0.0.0/33 refused 'neither the name of an interface nor a network'
refused 'parameters of btl/crypt do not fit together' OMPI_MCA_btl_crypt_eager_limit=2000000
if [ "$SERIES" = 4.1 ]; then     # OpenSSL 3.0 does not know it
    must vcluster mpirun -n 2 --map-by node -x SSLKEYLOGFILE="$CASE_DIR/keys" "$program"
else
    refused 'SSLKEYLOGFILE'                         SSLKEYLOGFILE="$CASE_DIR/keys"
fi
[ ! -e "$CASE_DIR/keys" ] || fail "keys were written"
refused 'TLS 1.3'                                   OMPI_MCA_crypt_key_bits=192
refused 'psk'                                       OMPI_MCA_crypt_psk_file=/nonexistent/psk
refused 'did you mean btl_crypt_port_min?'           OMPI_MCA_btl_crypt_port_mn=21000

# A job that does not name it has nothing of it, and listens as before.
cat > "$CASE_DIR/plain.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char line[1024];
    int rank, ours = 0, ssl = 0;
    FILE *maps;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    maps = fopen("/proc/self/maps", "r");
    while (NULL != maps && NULL != fgets(line, sizeof(line), maps)) {
        ours += NULL != strstr(line, "mca_btl_crypt");
        ssl += NULL != strstr(line, "libssl");
    }
    printf("rank %d: %d, %d\n", rank, ours > 0, ssl > 0);
    MPI_Finalize();
    return NULL == maps;
}
END
must in_variant mpicc -O2 -o "$CASE_DIR/plain" "$CASE_DIR/plain.c"
# Where something of Open MPI's own needs OpenSSL it is there without us, too.
( unset OMPI_MCA_btl OMPI_MCA_mca_base_component_path; vcluster mpirun -n 2 --map-by node "$CASE_DIR/plain" ) | grep "^rank " | sort > "$CASE_DIR/without"
( unset OMPI_MCA_btl; must vcluster mpirun -n 2 --map-by node "$CASE_DIR/plain" ) | grep '^rank ' | sort > "$CASE_DIR/out"
[ "$(grep -c '^rank [01]: 0, [01]$' "$CASE_DIR/out")" = 2 ] && cmp "$CASE_DIR/without" "$CASE_DIR/out" ||
    fail "it is there: $(cat "$CASE_DIR/without" "$CASE_DIR/out")"
vcluster mpirun -n 2 --map-by node "$CASE_DIR/plain" > "$CASE_DIR/out"
[ "$(grep -c '^rank [01]: 1, 1' "$CASE_DIR/out")" = 2 ] || fail "this would not have been found: $(cat "$CASE_DIR/out")"

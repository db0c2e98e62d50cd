# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Events of MPI_T: a tool that listens hears of a peer that was refused, of new keys, and of what
# crypt_audit=warn lets pass.
set -eu
. "$SRC/tests/lib.sh"
case $SERIES in 4.1|5.0) skip "this Open MPI has no events" ;; esac

cluster_up 2
program=$(mpi_program shell events_job)
(umask 077; od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' > "$CASE_DIR/psk")
cat > "$CASE_DIR/stranger" <<END
#!/bin/sh
[ "\$OMPI_COMM_WORLD_RANK" = 0 ] || export OMPI_MCA_crypt_psk_file=$CASE_DIR/psk
exec "\$@"
END
chmod +x "$CASE_DIR/stranger"

must vcluster mpirun -n 2 --map-by node --mca crypt_on_auth_failure error "$CASE_DIR/stranger" "$program" refused
must vcluster mpirun -n 2 --map-by node "$program" rekeyed
must vcluster mpirun -n 2 --map-by node --mca crypt_audit warn "$program" audit

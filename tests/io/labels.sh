# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# One job whose processes have different keystores: two with both labels, one
# with one of them, one with none.  Then once more with MPI_THREAD_MULTIPLE.
. "$SRC/tests/io/common.sh"

mkdir "$CASE_DIR/files"
cluster_up 2
keys_in "$CASE_DIR/both" lab other
keys_in "$CASE_DIR/none" else
cp -a "$CASE_DIR/both" "$CASE_DIR/other"
rm "$CASE_DIR"/other/lab.*
program=$(mpi_program io access)
export OMPI_MCA_io_ompio_pipeline_buffer_size=256       # rows are processed in pieces
if [ "$SERIES" = 4.1 ]; then
    context() { echo "-n $1 env OMPI_MCA_crypt_keystore_dir=$CASE_DIR/$2 $program $CASE_DIR/files $2 ${3-}"; }
    for way in '' threads; do
        must vcluster mpirun $(context 2 both $way) : $(context 1 other $way) : $(context 1 none $way)
        rm "$CASE_DIR"/files/*
    done
else
    # The prterun of Debian 13 crashes with any two contexts.
    cat > "$CASE_DIR/with" <<END
#!/bin/bash
keys=(both both other none)
keys=\${keys[OMPI_COMM_WORLD_RANK]}
OMPI_MCA_crypt_keystore_dir=$CASE_DIR/\$keys exec "$program" "$CASE_DIR/files" "\$keys" "\$@"
END
    chmod +x "$CASE_DIR/with"
    for way in '' threads; do
        must vcluster mpirun -n 4 "$CASE_DIR/with" $way
        rm "$CASE_DIR"/files/*
    done
fi

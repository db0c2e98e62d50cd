# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Ways around pml/crypt: other components, other parameters, nodes that lack it.
# Either the job runs and nothing of its payload is in a capture, or it ends with a
# text that says why, and there is nothing in the capture, either.
set -eu
. "$SRC/tests/lib.sh"

. "$SRC/tests/attack/around/jobs.sh"

# on NODE... -- COMMAND...: in their own mounts.
on() {
    local which=() node
    while [ "$1" != -- ]; do which+=("$1"); shift; done
    shift
    for node in "${which[@]}"; do must vcluster exec "$node" "$@"; done
}

cluster_up 2
program=$(mpi_program attack/around canary)
make_check tests/attack/around/coll
statfs() { in_variant gcc -shared -fPIC -o "$CASE_DIR/$1.so" "$SRC/tests/attack/around/preload/statfs.c" "${@:2}"; }
statfs nfs
statfs broken -DSTATFS_ERRNO=EIO
statfs gone -DSTATFS_ERRNO=ENOENT
ours=$PREFIX/lib/ompi-crypt
# A job over the nodes shows what it sends; one text for all ranks would come late.
export OMPI_MCA_orte_base_help_aggregate=0

echo "== the control"
rc=0; job --mca pml ob1 -- send || rc=$?
in_plaintext
rc=0; job -- send || rc=$?
sealed

echo "== hosts that cannot be wrapped"
for host in yalla ob1,ucx no-such-pml; do
    rc=0; job --mca pml_crypt_host $host -- send || rc=$?
    refused "but pml/crypt can only wrap ob1, ucx and cm"
done

echo "== beside another PML"
for list in ob1,crypt crypt,ob1; do
    rc=0; job --mca pml $list -- send || rc=$?
    refused "names crypt beside other PMLs"
    rc=0; job --mca hook ^crypt --mca pml $list -- send || rc=$?
    refused "names crypt beside other PMLs"
done

echo "== a node that lacks the component"
for list in crypt crypt,ob1; do
    on node1 -- mount -t tmpfs none "$ours"
    rc=0; job --mca pml $list -- send || rc=$?
    # With a list, the node that finds nothing of it may speak first.
    refused "names crypt beside other PMLs" "Component: crypt" "No components were able to be opened in the pml framework" "PML $list cannot be selected" \
        "An error occurred in MPI_Init_thread"          # what mpirun of 5.0 does not lose
    on node1 -- umount "$ours"
done
# Of ranks on mpirun's own node Open MPI 4.1.4 loses such texts.
on node0 -- mount -t tmpfs none "$ours"
rc=0; job -- send || rc=$?
refused ""
on node0 -- umount "$ours"

echo "== a site pins it"
etc=$(in_variant ompi_info --parsable --path sysconfdir | sed -n 's/^path:sysconfdir://p')
mkdir "$CASE_DIR/etc"
echo 'pml = crypt' > "$CASE_DIR/etc/openmpi-mca-params-override.conf"
on $nodes -- mount --bind "$CASE_DIR/etc" "$etc"
rc=0; job --mca pml ob1 -- send || rc=$?
sealed
rc=0; OMPI_MCA_pml=ob1 job -- send || rc=$?
sealed
rc=0; OMPI_MCA_pml=ob1 OMPI_MCA_mca_base_override_param_file=/dev/null job -- send || rc=$?
sealed
on $nodes -- umount "$etc"

echo "== collectives of a component that is not known"
export OMPI_MCA_mca_base_component_path=$BUILD/tests/attack/around/coll/.libs:$OMPI_MCA_mca_base_component_path
rc=0; job --mca pml ob1 -- send || rc=$?
in_plaintext
says_now 'coll/around was asked'
rc=0; job -- send || rc=$?
sealed
says_not 'coll/around'
rc=0; job --mca crypt_audit warn -- send || rc=$?
says_now 'PLAINTEXT POSSIBLE'
says_now 'coll/around was asked'

echo "== windows"
rc=0; job -- node || rc=$?
sealed
if [ "$SERIES" = 4.1 ]; then
    rc=0; job -- window || rc=$?
    sealed
    rc=0; job --mca osc rdma,sm -- window || rc=$?
else
    rc=0; job --mca pml ob1 -- window || rc=$?
    in_plaintext
    rc=0; job -- window || rc=$?
fi
refused 'component: osc/rdma'
refused 'windows over several nodes'
rc=0; job --mca crypt_scope all --mca osc ^pt2pt -- node || rc=$?
refused 'component: osc/'
# Within a node, too, osc/ucx may choose an adapter.
if in_variant ompi_info | grep -q 'MCA osc: ucx'; then
    rc=0; job --mca osc ucx -- node || rc=$?
    refused 'component: osc/ucx'
else
    echo "not tried: this Open MPI has no osc/ucx"
fi

echo "== shared memory in files on the network"
rc=0; job -x LD_PRELOAD="$CASE_DIR/nfs.so" -- send || rc=$?
refused "is on a file system that is a network's, or of an unknown kind (nfs"
# Where it cannot be told, either: neither of the directory nor of any above it.
rc=0; job -x LD_PRELOAD="$CASE_DIR/broken.so" -- send || rc=$?
refused "is on a file system that is a network's, or of an unknown kind (Input/output error"
rc=0; job -x LD_PRELOAD="$CASE_DIR/gone.so" -- send || rc=$?
refused "is on a file system that is a network's, or of an unknown kind (No such file or directory"
# (For 4.1 osc/rdma is not opened.)
for parameter in osc_sm_backing_directory $([ "$SERIES" = 4.1 ] || echo osc_rdma_backing_directory); do
    rc=0; job --mca $parameter /proc -- send || rc=$?
    refused "$parameter is on a file system that is a network's, or of an unknown kind (unknown: /proc"
done
rc=0; job --mca shmem_mmap_relocate_backing_file 1 --mca shmem_mmap_backing_file_base_dir /proc -- send || rc=$?
refused "shmem_mmap_backing_file_base_dir is on a file system"

echo "== OpenSHMEM in the same program"
echo 'void shmem_init(void) {}' > "$CASE_DIR/init.c"
echo 'void shmem_putmem(void) {}' | cat "$CASE_DIR/init.c" - > "$CASE_DIR/shmem.c"
for name in init shmem; do in_variant gcc -shared -fPIC -o "$CASE_DIR/$name.so" "$CASE_DIR/$name.c"; done
rc=0; job -x LD_PRELOAD="$CASE_DIR/init.so" -- send || rc=$?     # a function of the program's own
sealed
rc=0; job -x LD_PRELOAD="$CASE_DIR/shmem.so" -- send || rc=$?
refused "OpenSHMEM, with which the program is linked"

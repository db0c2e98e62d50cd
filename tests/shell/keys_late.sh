# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# First contact long after the records were made, with munge: between processes
# that started together (their credentials are expired by then, which is no
# reason to refuse them), and between jobs that meet at run time (whose
# credentials are then too old, so that they have to be renewed).
set -eu
. "$SRC/tests/lib.sh"
. "$SRC/tests/shell/keys_jobs.sh"

program=$CASE_DIR/late
cat > "$program.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wrong;

/* Everybody on this side and everybody on the other. */
static void talk(MPI_Comm inter, int side)
{
    enum { COUNT = 20000 };
    static int out[COUNT], in[COUNT];
    int rank, far;

    MPI_Comm_rank(inter, &rank);
    MPI_Comm_remote_size(inter, &far);
    for (int peer = 0; peer < far; peer++) {
        for (int i = 0; i < COUNT; i++) {
            out[i] = i * (2 * rank + side + 1);
        }
        MPI_Sendrecv(out, COUNT, MPI_INT, peer, 7, in, COUNT, MPI_INT, peer, 7, inter, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; i++) {
            wrong += in[i] != i * (2 * peer + (1 - side) + 1);
        }
    }
}

/* The first children wait by a port for the second, if there are to be any. */
static void child(MPI_Comm parent, const char *which)
{
    int second = 0 == strcmp("second", which);
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    talk(parent, 1);
    if (0 == strcmp("only", which)) {
        MPI_Comm_disconnect(&parent);
        return;
    }
    if (!second) {
        if (0 == rank) {
            MPI_Open_port(MPI_INFO_NULL, port);
            MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 8, parent);
        }
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    } else {
        if (0 == rank) {
            MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 8, parent, MPI_STATUS_IGNORE);
        }
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    }
    talk(inter, second);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_disconnect(&parent);
}

static MPI_Comm spawn(char *program, char *which)
{
    char *arguments[] = {program, which, NULL};
    MPI_Comm children;

    MPI_Comm_spawn(getenv("WITH"), arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    talk(children, 0);
    return children;
}

/* ./late SECONDS [spawn | again | twice] */
int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm parent, first, second;
    int rank, got = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (MPI_COMM_NULL != parent) {
        child(parent, argv[1]);
    } else if (argc < 3) {
        sleep((unsigned) atoi(argv[1]));        /* credentials get older */
        MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 7, &got, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        wrong += got != 1 - rank;
    } else if (0 == strcmp("spawn", argv[2]) || 0 == strcmp("again", argv[2])) {
        for (int times = 'a' == *argv[2] ? 2 : 1; times > 0; times--) {
            sleep((unsigned) atoi(argv[1]));
            first = spawn(argv[0], "only");
            MPI_Comm_disconnect(&first);
        }
    } else {
        sleep((unsigned) atoi(argv[1]));
        first = spawn(argv[0], "first");
        sleep((unsigned) atoi(argv[1]));
        second = spawn(argv[0], "second");
        if (0 == rank) {
            MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 8, first, MPI_STATUS_IGNORE);
            MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 8, second);
        }
        MPI_Comm_disconnect(&first);
        MPI_Comm_disconnect(&second);
    }
    if (0 != wrong) {
        fprintf(stderr, "%d wrong integers\n", wrong);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
END
must in_variant mpicc -O2 -Wall -Werror -o "$program" "$program.c"
has_munge || skip "munge (Debian: munge)"
export WITH=$CASE_DIR/with
head -c 128 /dev/urandom > "$CASE_DIR/key"
for node in node0 node1; do
    munge_start "$node" "$CASE_DIR/key" --max-ttl=1
done
late() {
    vcluster mpirun -n 2 --map-by node --host node0:8,node1:8 \
        -x WITH ${SLOW+-x SLOW} "$WITH" "$program" "$@" > "$CASE_DIR/out" 2>&1 < /dev/null || { cat "$CASE_DIR/out"; fail "late $*"; }
}

set_both crypt_auth=munge crypt_munge_socket=/dev/shm/m/s
echo "+ munge: first contact after the credentials expired"
credential=$(vcluster exec node0 munge --socket=/dev/shm/m/s --no-input)
late 3
# One of the job's age, to be sure that they had.
vcluster exec node1 unmunge --socket=/dev/shm/m/s <<< "$credential" | grep "STATUS:.*Expired" ||
    fail "the credentials had not expired"

set_both crypt_auth=munge crypt_munge_socket=/dev/shm/m/s crypt_munge_age=6
echo "+ munge: jobs that meet when their credentials are too old"
late 8 spawn
# The parents' renewals come later than the children, who find those of the first meeting.  (Up to 5.0
# Open MPI has all wait for all before they speak.)
echo "+ munge: again, with a daemon that takes its time at the parents"
cat > "$CASE_DIR/slow.py" <<'END'
import socket, threading, time

def carry(one, other):
    while data := one.recv(65536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)

def serve(client):
    time.sleep(1)          # libmunge itself waits for two seconds
    with socket.socket(socket.AF_UNIX) as munged:
        munged.connect("/dev/shm/m/s")
        there = threading.Thread(target=carry, args=(client, munged))
        there.start()
        carry(munged, client)
        there.join()
    client.close()

listener = socket.socket(socket.AF_UNIX)
listener.bind("/dev/shm/m/slow")
listener.listen()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
END
for node in node0 node1; do
    vcluster exec "$node" bash -c 'setsid python3 "$0" < /dev/null > /dev/null 2>&1 & while [ ! -S /dev/shm/m/slow ]; do sleep 0.1; done' "$CASE_DIR/slow.py"
done
set_both crypt_auth=munge 'crypt_munge_socket=/dev/shm/m/${SLOW-s}' crypt_munge_age=6
export SLOW=slow
late 8 again
unset SLOW
set_both crypt_auth=munge crypt_munge_socket=/dev/shm/m/s crypt_munge_age=6
# Twice with a connection between the children ends PRRTE's own daemons on 5.0,
# also over ob1.
if [ "$SERIES" = 4.1 ]; then
    late 8 twice
fi

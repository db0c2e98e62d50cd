/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A rank may fork: the child runs something else, the parent goes on sending
 * and receiving, and nothing is sent twice.
 */
#include "mt.h"

#include <sys/wait.h>
#include <unistd.h>

static void talk(int seed)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    for (int i = 0; i < mt_few_sizes_count; i++) {
        size_t n = mt_few_sizes[i];
        unsigned char *p = malloc(n + 1);
        mt_buf_t buf;
        MPI_Status status;
        mt_buf_new(&buf, n);
        mt_fill(p, n, mt_key(seed, mt_rank, i, 0));
        MT_MPI(MPI_Sendrecv(p, (int) n, MPI_BYTE, to, 1, buf.p, (int) n, MPI_BYTE, from, 1, MPI_COMM_WORLD, &status));
        MT_STATUS(&status, from, 1, n);
        MT_BUF(&buf, n, mt_key(seed, from, i, 0));
        mt_buf_free(&buf);
        free(p);
    }
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    talk(1);
    for (int round = 0; round < 3; round++) {
        int status;
        pid_t child = fork();
        MT_CHECK(child >= 0, "fork");
        if (0 == child) {
            if (round % 2) {
                _exit(42);
            }
            execl("/bin/sh", "sh", "-c", "exit 42", (char *) NULL);
            _exit(1);
        }
        talk(2 + round);                /* while the child lives */
        MT_CHECK(child == waitpid(child, &status, 0) && WIFEXITED(status) && 42 == WEXITSTATUS(status), "child: %x", status);
        talk(10 + round);
    }
    mt_group("3 forks, messages during and after");
    return mt_end();
}

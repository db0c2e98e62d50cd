/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * See mt_inter.h.
 */
#include "mt_inter.h"

#include <dirent.h>

enum { TAG_FIRST = 77 };

void mt_inter_talk(MPI_Comm inter, int side, int turn)
{
    int rank, far, n_own;
    MPI_Comm merged;
    MPI_Status status;
    mt_buf_t buf;
    MT_MPI(MPI_Comm_rank(inter, &rank));
    MT_MPI(MPI_Comm_size(inter, &n_own));
    MT_MPI(MPI_Comm_remote_size(inter, &far));
    for (int s = 0; s < mt_few_sizes_count; s++) {
        size_t n = mt_few_sizes[s];
        unsigned char *p = mt_alloc((size_t) far * n + 1);
        MPI_Request *req = malloc((size_t) far * sizeof(*req));
        for (int i = 0; i < far; i++) {
            mt_fill(p + (size_t) i * n, n, mt_key(turn, rank * 2 + side, i, s));
            MT_MPI(MPI_Isend(p + (size_t) i * n, (int) n, MPI_BYTE, i, s, inter, &req[i]));
        }
        for (int i = 0; i < far; i++) {
            mt_buf_new(&buf, n);
            MT_MPI(MPI_Probe(s % 2 ? i : MPI_ANY_SOURCE, s, inter, &status));
            MT_STATUS(&status, status.MPI_SOURCE, s, n);
            MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, status.MPI_SOURCE, s, inter, &status));
            MT_BUF(&buf, n, mt_key(turn, status.MPI_SOURCE * 2 + 1 - side, rank, s));
            mt_buf_free(&buf);
        }
        MT_MPI(MPI_Waitall(far, req, MPI_STATUSES_IGNORE));
        free(req);
        free(p);
    }
    MT_MPI(MPI_Intercomm_merge(inter, side, &merged));
    int me, all, sum = 0, expected;
    MT_MPI(MPI_Comm_rank(merged, &me));
    MT_MPI(MPI_Comm_size(merged, &all));
    MT_CHECK(all == n_own + far, "merged size %d", all);
    MT_MPI(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, merged));
    expected = all * (all - 1) / 2;
    MT_CHECK(sum == expected, "sum %d of %d", sum, expected);
    unsigned char *big = mt_alloc(300001);
    mt_fill(big, 300001, mt_key(turn, 0 == me ? 5 : 6, 0, 0));
    MT_MPI(MPI_Bcast(big, 300001, MPI_BYTE, 0, merged));
    MT_SAME(big, 300001, mt_key(turn, 5, 0, 0), "bcast over the merged communicator");
    free(big);
    MT_MPI(MPI_Comm_free(&merged));
}

void mt_inter_first_words(MPI_Comm inter, bool speaks)
{
    int rank, far, word;

    MT_MPI(MPI_Comm_rank(inter, &rank));
    MT_MPI(MPI_Comm_remote_size(inter, &far));
    for (int i = 0; i < far; i++) {
        if (speaks) {
            word = 100 * rank + i;
            MT_MPI(MPI_Send(&word, 1, MPI_INT, i, TAG_FIRST, inter));
        } else {
            MT_MPI(MPI_Recv(&word, 1, MPI_INT, i, TAG_FIRST, inter, MPI_STATUS_IGNORE));
            MT_CHECK(100 * i + rank == word, "%d from %d", word, i);
        }
    }
}

mt_kept_t mt_kept(void)
{
    mt_kept_t now = {0, 0};
    char line[200];
    FILE *status = fopen("/proc/self/status", "r");
    DIR *files = opendir("/proc/self/fd");

    while (NULL != status && NULL != fgets(line, sizeof(line), status)) {
        if (1 == sscanf(line, "RssAnon: %ld", &now.kib)) {
            break;
        }
    }
    while (NULL != files && NULL != readdir(files)) {
        now.files++;
    }
    MT_CHECK(NULL != status && NULL != files && now.kib > 0, "/proc cannot be read");
    fclose(status);
    closedir(files);
    return now;
}

void mt_kept_check(const mt_kept_t *before, int meetings)
{
    const mt_kept_t now = mt_kept();
    const long kib = 100 * (now.kib - before->kib) / meetings, files = 100 * (now.files - before->files) / meetings;

    printf("rank %d kept %ld KiB and %ld descriptors of each 100 meetings\n", mt_rank, kib, files);
    MT_CHECK(kib <= mt_arg("kib", kib) && files <= mt_arg("files", files), "that is too much");
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One-sided operations drawn at random (mt_rma.h), and all memory compared with a model.
 *
 *   rma_random [seed=S] [first=CASE] [cases=N] [steps=N] [most=BYTES] [WORD...] [no-WORD...] [verbose]
 *
 * A case is a window: of all ranks, in their order or backwards, or without one of them; created, allocated,
 * dynamic, or shared by those of a node.  A step is an epoch: fence, post-start-complete-wait, a lock for each
 * target, or lock_all with flushes.  An origin's buffer is overwritten as soon as MPI allows it.
 *
 * What Open MPI does wrong by itself is left out, and printed (mt_rma.c has the words); with its WORD it is done.
 */
#include "mt_rma.h"

enum { CREATE, ALLOCATE, DYNAMIC, SHARED, MAKES };
enum { FENCE, POST_START, LOCK, LOCK_ALL, SYNCS };
static const char *const makes[] = {"create", "allocate", "dynamic", "shared"}, *const syncs[] = {"fence", "post-start", "lock",
                                                                                                  "lock_all"};
enum { GUARD = 16, POISON = 0x5b, DONE = 0xee, PARTS = 3 };

static struct {                         /* a case */
    uint64_t state;
    int make, ranks, rank;
    MPI_Comm comm;
    MPI_Win win;
    mt_rma_model_t model;
    unsigned char *memory, *base;       /* ours: with guards, if it is ours; the window itself */
    MPI_Aint *at;                       /* of each rank */
    int *unit;
    char what[200];
    const mt_rma_step_t *step;
    long operations, bytes;
} my;

typedef struct mine {                   /* one of our operations on its way */
    mt_rma_op_t *op;
    unsigned char *out, *in;
    MPI_Request request;
} mine_t;

/* ---- windows ---- */

static void make_memory(void)
{
    const size_t n = my.model.sizes[my.rank];

    my.memory = malloc(n + 2 * GUARD);
    MT_CHECK(NULL != my.memory, "memory");
    memset(my.memory, POISON, n + 2 * GUARD);
    my.base = my.memory + GUARD;
}

static void attach(void)
{
    MPI_Aint here;

    MT_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, my.comm, &my.win));
    if (my.model.sizes[my.rank] > 0) {
        MT_MPI(MPI_Win_attach(my.win, my.base, (MPI_Aint) my.model.sizes[my.rank]));
    }
    MT_MPI(MPI_Get_address(my.base, &here));
    MT_MPI(MPI_Allgather(&here, 1, MPI_AINT, my.at, 1, MPI_AINT, my.comm));
}

static void make_window(void)
{
    const MPI_Aint n = (MPI_Aint) my.model.sizes[my.rank];

    my.at = calloc((size_t) my.ranks, sizeof(*my.at));
    my.unit = calloc((size_t) my.ranks, sizeof(*my.unit));
    for (int r = 0; r < my.ranks; r++) {
        my.unit[r] = r > 0 && !mt_rma_may(&my.model, "units") ? my.unit[0] : DYNAMIC == my.make || 0 == mt_below(&my.state, 2) ? 1 : 8;
    }
    if (CREATE == my.make || DYNAMIC == my.make) {
        make_memory();
    }
    switch (my.make) {
    case CREATE:   MT_MPI(MPI_Win_create(my.base, n, my.unit[my.rank], MPI_INFO_NULL, my.comm, &my.win)); break;
    case ALLOCATE: MT_MPI(MPI_Win_allocate(n, my.unit[my.rank], MPI_INFO_NULL, my.comm, &my.base, &my.win)); break;
    case SHARED:   MT_MPI(MPI_Win_allocate_shared(n, my.unit[my.rank], MPI_INFO_NULL, my.comm, &my.base, &my.win)); break;
    default:       attach();
    }
    MT_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, my.rank, 0, my.win));
    memcpy(my.base, my.model.windows[my.rank], (size_t) n);
    MT_MPI(MPI_Win_unlock(my.rank, my.win));
    MT_MPI(MPI_Barrier(my.comm));
}

static void free_window(void)
{
    if (DYNAMIC == my.make && my.model.sizes[my.rank] > 0) {
        MT_MPI(MPI_Win_detach(my.win, my.base));
    }
    MT_MPI(MPI_Win_free(&my.win));
    free(my.memory);
    free(my.at);
    free(my.unit);
    my.memory = NULL;
}

/* Print what was done in a step around a byte of a window. */
static void tell(int target, size_t at)
{
    const mt_rma_step_t *s = my.step;

    for (int i = 0; NULL != s && i < s->count; i++) {
        const mt_rma_op_t *o = &s->ops[i];
        if (o->target == target && at >= o->displacement && at < o->displacement + o->room) {
            fprintf(stderr, "    %d: %s of %d x %zu bytes, by rank %d at %zu; there %s, here %s\n", i, mt_rma_name(o), o->to.n,
                    o->to.unit, o->origin, o->displacement, o->to.derived ? "spread" : "together",
                    o->from.derived ? "spread" : "together");
        }
    }
}

static void check_window(void)
{
    const size_t n = my.model.sizes[my.rank];
    const unsigned char *want = my.model.windows[my.rank];
    size_t at = 0;

    MT_MPI(MPI_Barrier(my.comm));
    MT_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, my.rank, 0, my.win));
    while (at < n && my.base[at] == want[at]) {
        at++;
    }
    if (at < n) {
        tell(my.rank, at);
    }
    MT_CHECK(at == n, "%s: byte %zu of %zu of the window is %02x and must be %02x", my.what, at, n, my.base[at], want[at]);
    for (size_t i = 0; NULL != my.memory && i < GUARD; i++) {
        MT_CHECK(POISON == my.memory[i] && POISON == my.base[n + i], "%s: a byte beside the window", my.what);
    }
    MT_MPI(MPI_Win_unlock(my.rank, my.win));
    MT_MPI(MPI_Barrier(my.comm));
}

/* ---- buffers at the origin ---- */

static unsigned char *new_buffer(const mt_layout_t *l)
{
    unsigned char *p = malloc(l->bytes + 2 * GUARD);

    MT_CHECK(NULL != p, "memory");
    memset(p, POISON, l->bytes + 2 * GUARD);
    return p;
}

static void begin(mine_t *m, mt_rma_op_t *op)
{
    *m = (mine_t) {.op = op, .request = MPI_REQUEST_NULL};
    if (MT_GET != op->kind) {
        m->out = new_buffer(&op->from);
        mt_layout_put(&op->from, m->out + GUARD, op->sent);
    }
    if (MT_PUT != op->kind && MT_ACCUMULATE != op->kind) {
        m->in = new_buffer(&op->from);
    }
}

/* MPI has taken the data to send: the buffer is ours again. */
static void taken(mine_t *m)
{
    if (NULL != m->out) {
        memset(m->out, DONE, m->op->from.bytes + 2 * GUARD);
    }
}

static void end(mine_t *m)
{
    const mt_rma_op_t *op = m->op;
    unsigned char *want;

    if (NULL != m->in && NULL != op->old && !op->chain) {
        want = new_buffer(&op->from);
        mt_layout_put(&op->from, want + GUARD, op->old);
        for (size_t i = 0; i < op->from.bytes + 2 * GUARD; i++) {
            if (want[i] != m->in[i]) {
                tell(op->target, op->displacement);
            }
            MT_CHECK(want[i] == m->in[i], "%s: %s of %d x %zu bytes from rank %d at %zu: byte %zu of %zu is %02x, must be %02x",
                     my.what, mt_rma_name(op), op->to.n, op->to.unit, op->target, op->displacement, i - GUARD,
                     op->from.bytes, m->in[i], want[i]);
        }
        free(want);
    }
    my.operations++;
    my.bytes += op->to.n * (long) op->to.unit;
    free(m->out);
    free(m->in);
}

/* ---- operations ---- */

static void start(mine_t *m, bool passive)
{
    mt_rma_op_t *op = m->op;
    const int t = op->target, n = op->from.count, k = op->to.count;
    const MPI_Aint at = my.at[t] + (MPI_Aint) op->displacement / my.unit[t];
    const MPI_Datatype from = op->from.type, to = op->to.type;
    unsigned char *out = m->out + GUARD, *in = m->in + GUARD;
    MPI_Request *r = &m->request;
    unsigned char expected[8];

    op->request = op->request && passive;
    switch (op->kind) {
    case MT_PUT:
        MT_MPI(op->request ? MPI_Rput(out, n, from, t, at, k, to, my.win, r) : MPI_Put(out, n, from, t, at, k, to, my.win));
        break;
    case MT_GET:
        MT_MPI(op->request ? MPI_Rget(in, n, from, t, at, k, to, my.win, r) : MPI_Get(in, n, from, t, at, k, to, my.win));
        break;
    case MT_ACCUMULATE:
        MT_MPI(op->request ? MPI_Raccumulate(out, n, from, t, at, k, to, op->op, my.win, r)
                           : MPI_Accumulate(out, n, from, t, at, k, to, op->op, my.win));
        break;
    case MT_GET_ACCUMULATE:
        MT_MPI(op->request ? MPI_Rget_accumulate(out, n, from, in, n, from, t, at, k, to, op->op, my.win, r)
                           : MPI_Get_accumulate(out, n, from, in, n, from, t, at, k, to, op->op, my.win));
        break;
    case MT_FETCH:
        MT_MPI(MPI_Fetch_and_op(out, in, op->element, t, at, op->op, my.win));
        break;
    default:
        memcpy(expected, op->sent + op->to.unit, op->to.unit);
        MT_MPI(MPI_Compare_and_swap(out, expected, in, op->element, t, at, my.win));
    }
}

/* What is drawn to follow an operation in a passive epoch. */
static void then(mine_t *all, mine_t *m)
{
    const int t = m->op->target;
    static const char *const words[] = {"", "flush", "flush_local", "flush_all", "flush_local_all", "wait"};
    const mt_rma_then_t what = mt_rma_may(&my.model, words[m->op->then]) ? m->op->then : MT_NOTHING;

    switch (what) {
    case MT_NOTHING:         return;
    case MT_FLUSH:           MT_MPI(MPI_Win_flush(t, my.win)); break;
    case MT_FLUSH_LOCAL:     MT_MPI(MPI_Win_flush_local(t, my.win)); break;
    case MT_FLUSH_ALL:       MT_MPI(MPI_Win_flush_all(my.win)); break;
    case MT_FLUSH_LOCAL_ALL: MT_MPI(MPI_Win_flush_local_all(my.win)); break;
    default:
        if (m->op->request) {
            MT_MPI(MPI_Wait(&m->request, MPI_STATUS_IGNORE));
            taken(m);
        }
        return;
    }
    for (mine_t *o = all; o <= m; o++) {
        if (o->op->target == t || MT_FLUSH_ALL == what || MT_FLUSH_LOCAL_ALL == what) {
            MT_MPI(MPI_Wait(&o->request, MPI_STATUS_IGNORE));
            taken(o);
        }
    }
}

static void run(mine_t *all, int count, int target, bool passive)
{
    for (int i = 0; i < count; i++) {
        if (target < 0 || all[i].op->target == target) {
            start(&all[i], passive);
            if (passive && target < 0) {
                then(all, &all[i]);
            }
        }
    }
    for (int i = 0; i < count; i++) {
        if (target < 0 || all[i].op->target == target) {
            MT_MPI(MPI_Wait(&all[i].request, MPI_STATUS_IGNORE));
        }
    }
}

/* ---- epochs ---- */

/* Ranks that we exchange with: the targets of our operations, or those whose target we are; and some others. */
static MPI_Group partners(const mt_rma_step_t *s, uint64_t others, bool targets)
{
    int *ranks = malloc(sizeof(*ranks) * (size_t) my.ranks), n = 0;
    MPI_Group all, some;

    for (int r = 0; r < my.ranks; r++) {
        const int from = targets ? my.rank : r, to = targets ? r : my.rank;
        bool has = 0 == (mt_mix(others + (uint64_t) (from * my.ranks + to)) & 3);
        for (int i = 0; i < s->count && !has; i++) {
            has = s->ops[i].origin == from && s->ops[i].target == to;
        }
        if (has) {
            ranks[n++] = r;
        }
    }
    MT_MPI(MPI_Comm_group(my.comm, &all));
    MT_MPI(MPI_Group_incl(all, n, ranks, &some));
    MT_MPI(MPI_Group_free(&all));
    free(ranks);
    return some;
}

static void free_group(MPI_Group *group)
{
    if (MPI_GROUP_EMPTY != *group) {
        MT_MPI(MPI_Group_free(group));
    }
}

static void post_start(const mt_rma_step_t *s, mine_t *all, int count, uint64_t others)
{
    MPI_Group from = partners(s, others, false), to = partners(s, others, true);
    int over = 0;

    MT_MPI(MPI_Win_post(from, 0, my.win));
    MT_MPI(MPI_Win_start(to, 0, my.win));
    run(all, count, -1, false);
    MT_MPI(MPI_Win_complete(my.win));
    while (0 == others % 2 && !over) {
        MT_MPI(MPI_Win_test(my.win, &over));
    }
    if (!over) {
        MT_MPI(MPI_Win_wait(my.win));
    }
    free_group(&from);
    free_group(&to);
}

static void locks(mine_t *all, int count, uint64_t order)
{
    for (int i = 0; i < my.ranks; i++) {
        const int t = (int) ((uint64_t) i + order) % my.ranks;
        MT_MPI(MPI_Win_lock(mt_mix(order + (uint64_t) i) % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, t, 0, my.win));
        run(all, count, t, true);
        MT_MPI(MPI_Win_unlock(t, my.win));
    }
}

static void epoch(int sync, const mt_rma_step_t *s, mine_t *all, int count, uint64_t more)
{
    switch (sync) {
    case FENCE:
        MT_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, my.win));
        run(all, count, -1, false);
        MT_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, my.win));
        break;
    case POST_START:
        post_start(s, all, count, more);
        break;
    case LOCK:
        locks(all, count, more % 1000 + (uint64_t) my.rank);
        break;
    default:
        MT_MPI(MPI_Win_lock_all(0, my.win));
        run(all, count, -1, true);
        MT_MPI(MPI_Win_unlock_all(my.win));
    }
}

/* ---- chains ---- */

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* From one value the sums of all numbers lead to the next, each exactly once. */
static void check_chain(const mt_rma_step_t *s, int first, const uint64_t *found)
{
    uint64_t (*link)[2] = malloc(sizeof(*link) * (size_t) s->count), start = 0, sum = 0;
    int n = 0;

    for (int i = 0; i < s->count; i++) {
        if (s->ops[i].place == s->ops[first].place) {
            if (NULL != s->ops[i].old) {
                memcpy(&start, s->ops[i].old, sizeof(start));
            }
            memcpy(&link[n][1], s->ops[i].sent, sizeof(link[n][1]));
            link[n++][0] = found[i];
        }
    }
    for (int i = 0; i < n; i++) {
        link[i][0] -= start;
    }
    qsort(link, (size_t) n, sizeof(*link), by_value);
    for (int i = 0; i < n; i++) {
        MT_CHECK(link[i][0] == sum, "%s: fetch_and_op: %d of %d fetched %llu more than there was, must be %llu", my.what, i, n,
                 (unsigned long long) link[i][0], (unsigned long long) sum);
        sum += link[i][1];
    }
    free(link);
}

static void check_chains(const mt_rma_step_t *s, const uint64_t *mine)
{
    uint64_t *found = calloc((size_t) s->count + 1, sizeof(*found));
    bool *seen = calloc((size_t) s->places + 1, sizeof(*seen));

    MT_MPI(MPI_Allreduce(mine, found, s->count, MPI_UINT64_T, MPI_SUM, my.comm));
    for (int i = 0; i < s->count; i++) {
        if (s->ops[i].chain && !seen[s->ops[i].place]) {
            seen[s->ops[i].place] = true;
            check_chain(s, i, found);
        }
    }
    free(found);
    free(seen);
}

/* ---- steps and cases ---- */

static void step(int sync)
{
    mt_rma_step_t s = mt_rma_step_draw(&my.state, &my.model);
    const uint64_t more = mt_random(&my.state);
    mine_t *all = calloc((size_t) s.count + 1, sizeof(*all));
    uint64_t *chained = calloc((size_t) s.count + 1, sizeof(*chained));
    int count = 0, at = 0;

    for (int i = 0; i < s.count; i++) {
        if (s.ops[i].origin == my.rank) {
            begin(&all[count++], &s.ops[i]);
        }
    }
    my.step = &s;
    epoch(sync, &s, all, count, more);
    for (int i = 0; i < s.count; i++) {
        if (s.ops[i].origin == my.rank) {
            if (s.ops[i].chain) {
                memcpy(&chained[i], all[at].in + GUARD, sizeof(chained[i]));
            }
            end(&all[at++]);
        }
    }
    check_window();
    check_chains(&s, chained);
    my.step = NULL;
    free(all);
    free(chained);
    mt_rma_step_free(&s);
}

/* All, in their order or backwards, or without one; of a node, for windows that it shares. */
static void make_comm(void)
{
    const int how = (int) mt_below(&my.state, 3), without = how < 2 ? -1 : (int) mt_below(&my.state, (size_t) mt_size);

    if (SHARED == my.make) {
        MT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mt_rank, MPI_INFO_NULL, &my.comm));
    } else {
        MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, mt_rank == without ? MPI_UNDEFINED : 0, 0 == how ? mt_rank : mt_size - mt_rank,
                              &my.comm));
    }
}

static void try_one(long seed, long number, long steps, size_t most)
{
    int sync;

    my.state = mt_key((int) seed, 0, 0, (int) number);
    my.model = (mt_rma_model_t) {.nearby = false};
    do {
        my.make = (int) mt_below(&my.state, MAKES);
    } while (!mt_rma_may(&my.model, makes[my.make]));
    make_comm();
    if (MPI_COMM_NULL == my.comm) {
        return;
    }
    MT_MPI(MPI_Comm_size(my.comm, &my.ranks));
    MT_MPI(MPI_Comm_rank(my.comm, &my.rank));
    my.model = mt_rma_model_draw(&my.state, my.ranks, most);
    my.model.nearby = SHARED == my.make;
    snprintf(my.what, sizeof(my.what), "seed=%ld case %ld (%s)", seed, number, makes[my.make]);
    make_window();
    for (long i = 0; i < steps; i++) {
        do {
            sync = (int) mt_below(&my.state, SYNCS);
        } while (!mt_rma_may(&my.model, syncs[sync]));
        snprintf(my.what, sizeof(my.what), "seed=%ld case %ld (%s) step %ld (%s)", seed, number, makes[my.make], i, syncs[sync]);
        if (mt_flag("verbose") && 0 == my.rank) {
            printf("%s\n", my.what);
            fflush(stdout);
        }
        step(sync);
    }
    free_window();
    mt_rma_model_free(&my.model);
    MT_MPI(MPI_Comm_free(&my.comm));
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const long seed = mt_arg("seed", 1), first = mt_arg("first", 0), cases = mt_arg("cases", 20), steps = mt_arg("steps", 8),
               most = mt_arg("most", 400000);

    mt_rma_tell();
    for (long i = first; i < first + cases; i++) {
        try_one(seed, i, steps, (size_t) most);
    }
    mt_group("seed=%ld: %ld windows, %ld steps each; rank 0: %ld operations, %ld bytes", seed, cases, steps, my.operations,
             my.bytes);
    return mt_end();
}

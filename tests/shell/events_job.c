/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * events_job refused|rekeyed|audit: two ranks listen to this event of MPI_T, and do what makes it happen.
 * For tests/shell/events.sh.
 */
#include "mt.h"

#if MT_HAS_MPI5
enum { ENOUGH = 4 << 20 };      /* messages: several epochs */

static volatile int happened, numbers[3];
static int elements;

static void on_event(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety, void *data)
{
    int value;

    (void) handle, (void) safety, (void) data;
    for (int i = 0; i < elements; i++) {
        MT_MPI(MPI_T_event_read(event, i, &value));
        numbers[i] = value;
    }
    happened++;
}

static MPI_T_event_registration listen_to(const char *name)
{
    MPI_T_event_registration handle;
    char full[64];
    int index, verbosity, bind, bytes = sizeof(full);

    snprintf(full, sizeof(full), "ompi.crypt_%s", name);
    MT_MPI(MPI_T_event_get_index(full, &index));
    MT_MPI(MPI_T_event_get_info(index, full, &bytes, &verbosity, NULL, NULL, &elements, NULL, NULL, NULL, NULL, &bind));
    MT_CHECK(elements >= 1 && elements <= 3, "%d elements", elements);
    MT_MPI(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &handle));
    MT_MPI(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL, on_event));
    return handle;
}

/* Rank 1 has another key. */
static void be_refused(int rank)
{
    int data = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MT_CHECK(MPI_SUCCESS != MPI_Send(&data, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD), "a stranger got a message");
    MT_CHECK(1 == happened && -1 == numbers[0] && -1 == numbers[1], "%d events: %d %d", happened, numbers[0], numbers[1]);
}

static void use_keys_up(int rank)
{
    int data = 0, others[2] = {0, 0};

    for (int i = 0; i < ENOUGH; i++) {
        if (0 == rank) {
            MT_MPI(MPI_Send(&data, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
        } else {
            MT_MPI(MPI_Recv(&data, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        if (0 == i % 10000) {           /* until both have heard */
            MT_MPI(MPI_Allreduce((int[]) {happened > 0}, others, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
            if (others[0]) {
                break;
            }
        }
    }
    MT_CHECK(happened >= 1 && 1 - rank == numbers[0] && numbers[rank ? 2 : 1] >= 1, "%d events: %d %d %d", happened, numbers[0],
             numbers[1], numbers[2]);
}

/* Between nodes, whatever makes it. */
static void make_window(void)
{
    MPI_Win window;
    void *base;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_SUCCESS == MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window)) {
        MT_MPI(MPI_Win_free(&window));
    }
    MT_CHECK(happened >= 1 && numbers[0] >= happened, "%d events: %d", happened, numbers[0]);
}

int main(int argc, char **argv)
{
    MPI_T_event_registration handle;
    int level, rank;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    handle = listen_to(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    switch (argv[1][2]) {
    case 'f': be_refused(rank); break;
    case 'k': use_keys_up(rank); break;
    default:  make_window();
    }
    MT_MPI(MPI_T_event_handle_free(handle, NULL, NULL));
    printf("%s: %d events, the last %d %d %d\n", argv[1], happened, numbers[0], numbers[1], numbers[2]);
    MPI_Finalize();
    MPI_T_finalize();
    return 0;
}
#else
int main(void)
{
    return MT_SKIP;
}
#endif

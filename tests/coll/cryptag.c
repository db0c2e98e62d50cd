/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * See cryptag.h.
 */
#include "cryptag.h"

int algorithms;
const char *algorithm_name[ALGORITHMS_MOST];
const char *const metric_name[METRICS] = { "r_c", "s_c", "r_e", "s_e", "r_d", "s_d" };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle metric[METRICS];

/* ---- MPI_T ---- */

void cryptag_start(void)
{
    int provided;

    MT_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MT_MPI(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < METRICS; i++) {
        char name[64];
        int index, count;

        snprintf(name, sizeof(name), "coll_cryptag_%s", metric_name[i]);
        if (MPI_SUCCESS != MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index)) {
            mt_skip("coll/cryptag is not there");
        }
        MT_MPI(MPI_T_pvar_handle_alloc(session, index, NULL, &metric[i], &count));
        MT_CHECK(1 == count, "%s has %d elements", name, count);
    }
    algorithms = cryptag_algorithms("allgather", algorithm_name);
    MT_CHECK(0 == strcmp(algorithm_name[ALGORITHM_HS1], "hs1") && 0 == strcmp(algorithm_name[ALGORITHM_HS3], "hs3")
             && 0 == strcmp(algorithm_name[ALGORITHM_HOP], "hop"), "an algorithm has another number");
}

void cryptag_stop(void)
{
    for (int i = 0; i < METRICS; i++) {
        MPI_T_pvar_handle_free(session, &metric[i]);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

static MPI_T_cvar_handle parameter_handle(const char *parameter)
{
    MPI_T_cvar_handle handle;
    char name[64];
    int index, count;

    snprintf(name, sizeof(name), "coll_cryptag_%s", parameter);
    MT_MPI(MPI_T_cvar_get_index(name, &index));
    MT_MPI(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    return handle;
}

void cryptag_set(const char *parameter, int value)
{
    MPI_T_cvar_handle handle = parameter_handle(parameter);

    MT_MPI(MPI_T_cvar_write(handle, &value));
    MPI_T_cvar_handle_free(&handle);
}

int cryptag_get(const char *parameter)
{
    MPI_T_cvar_handle handle = parameter_handle(parameter);
    int value;

    MT_MPI(MPI_T_cvar_read(handle, &value));
    MPI_T_cvar_handle_free(&handle);
    return value;
}

int cryptag_algorithms(const char *collective, const char *words[ALGORITHMS_MOST])
{
    char parameter[64], text[256];
    int index, verbosity, binding, scope, bytes = sizeof(text), described = 0, count;
    MPI_Datatype type;
    MPI_T_enum list;

    snprintf(parameter, sizeof(parameter), "coll_cryptag_%s_algorithm", collective);
    MT_MPI(MPI_T_cvar_get_index(parameter, &index));
    MT_MPI(MPI_T_cvar_get_info(index, text, &bytes, &verbosity, &type, &list, NULL, &described, &binding, &scope));
    bytes = sizeof(text);
    MT_MPI(MPI_T_enum_get_info(list, &count, text, &bytes));
    MT_CHECK(2 < count && count <= ALGORITHMS_MOST, "%s takes %d words", parameter, count);
    for (int i = 0; i < count; i++) {
        int value;

        bytes = sizeof(text);
        MT_MPI(MPI_T_enum_get_item(list, i, &value, text, &bytes));
        MT_CHECK(i == value, "word %d of %s, %s, stands for %d", i, parameter, text, value);
        words[i] = strdup(text);
    }
    return count;
}

void cryptag_metrics(metrics_t now)
{
    for (int i = 0; i < METRICS; i++) {
        MT_MPI(MPI_T_pvar_read(session, metric[i], &now[i]));
    }
}

/* ---- node maps ---- */

/* "3,1,4" or "5x3" -> ranks of each node; returns how many nodes. */
static int sizes_of(const char *text, int sizes[MAP_RANKS])
{
    int nodes, width, n = 0;
    char end;

    if (2 == sscanf(text, "%dx%d%c", &nodes, &width, &end)) {
        for (n = 0; n < nodes && n < MAP_RANKS; n++) {
            sizes[n] = width;
        }
        return n;
    }
    for (const char *at = text; NULL != at && n < MAP_RANKS; at = NULL != (at = strchr(at, ',')) ? at + 1 : NULL) {
        sizes[n++] = atoi(at);
    }
    return n;
}

int map_parse(const char *text, int nodes[MAP_RANKS])
{
    const bool cyclic = 0 == strncmp(text, "cyclic:", 7), list = 0 == strncmp(text, "list:", 5);
    int sizes[MAP_RANKS], count, p = 0, widest = 0;

    count = sizes_of(text + (cyclic ? 7 : list ? 5 : 0), sizes);
    if (list) {
        memcpy(nodes, sizes, (size_t) count * sizeof(int));
        return count;
    }
    for (int n = 0; n < count; n++) {
        widest = sizes[n] > widest ? sizes[n] : widest;
        for (int i = 0; !cyclic && i < sizes[n]; i++) {
            MT_CHECK(p < MAP_RANKS, "%s has too many ranks", text);
            nodes[p++] = n;
        }
    }
    for (int i = 0; cyclic && i < widest; i++) {
        for (int n = 0; n < count; n++) {
            if (i < sizes[n]) {
                MT_CHECK(p < MAP_RANKS, "%s has too many ranks", text);
                nodes[p++] = n;
            }
        }
    }
    return p;
}

/* The number of the node that each world rank lives on, in order of their first ranks. */
static int *world_nodes(void)
{
    int *leaders = malloc((size_t) mt_size * sizeof(int)), *nodes = malloc((size_t) mt_size * sizeof(int));
    int leader = mt_rank, count = 0;
    MPI_Comm node;

    MT_CHECK(NULL != leaders && NULL != nodes, "memory");
    MT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mt_rank, MPI_INFO_NULL, &node));
    MT_MPI(MPI_Bcast(&leader, 1, MPI_INT, 0, node));
    MT_MPI(MPI_Comm_free(&node));
    MT_MPI(MPI_Allgather(&leader, 1, MPI_INT, leaders, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < mt_size; i++) {
        nodes[i] = leaders[i] == i ? count++ : nodes[leaders[i]];
    }
    free(leaders);
    return nodes;
}

MPI_Comm map_comm(const char *text)
{
    int map[MAP_RANKS], count = map_parse(text, map), *nodes = world_nodes(), key = -1;
    bool *used = calloc((size_t) mt_size, sizeof(*used));
    MPI_Comm comm;

    MT_CHECK(NULL != used, "memory");
    for (int i = 0; i < count; i++) {
        int at = 0;

        while (at < mt_size && (used[at] || nodes[at] != map[i])) {
            at++;
        }
        if (at == mt_size) {
            mt_fail(__FILE__, __LINE__, "there are not enough ranks for the map %s", text);
        }
        used[at] = true;
        key = at == mt_rank ? i : key;
    }
    free(used);
    free(nodes);
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, key >= 0 ? 0 : MPI_UNDEFINED, key, &comm));
    return comm;
}

int map_arguments(int argc, char **argv, const char *maps[], int room)
{
    int count = 0;

    for (int i = 1; i < argc && count < room; i++) {
        if (NULL == strchr(argv[i], '=')) {
            maps[count++] = argv[i];
        }
    }
    return count;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Under which conditions `mpicrypt bench` measured: the library, the nodes, how ranks are
 * bound to processors.  Each variant asks for places of its own, and what differs between
 * them is said for each.
 */
#include <string.h>

#include "bench.h"

static const char *pinning(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places)
{
    return !plan->pin || places->yield ? "not pinned" : NULL == places->cpus ? "bound by the launcher" : "pinned";
}

/* What all variants have in common. */
typedef struct common {
    bool library, nodes, shared, pinning, yield, tcp;
} common_t;

static common_t compare(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places, int count)
{
    common_t same = {true, true, true, true, true, true};

    for (int v = 1; v < count; ++v) {
        same.library = same.library && 0 == strcmp(places[0].library, places[v].library);
        same.nodes = same.nodes && places[0].nodes == places[v].nodes;
        same.shared = same.shared && places[0].shared == places[v].shared;
        same.pinning = same.pinning && 0 == strcmp(pinning(plan, &places[0]), pinning(plan, &places[v]));
        same.yield = same.yield && places[0].yield == places[v].yield;
        same.tcp = same.tcp && 0 == strcmp(places[0].tcp, places[v].tcp);
    }
    return same;
}

static void print_one(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places, FILE *out)
{
    fprintf(out, "%zu node%s%s, ranks %s%s\n", places->nodes, 1 == places->nodes ? "" : "s",
            places->shared ? " (virtual: they share one machine)" : "", pinning(plan, places),
            places->yield ? ", more ranks than processors" : "");
}

void mpicrypt_bench_print_places(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                                 const mpicrypt_bench_values_t *values, int count, FILE *out)
{
    common_t same = compare(plan, places, count);
    char text[96];

    fprintf(out, "%s\n", same.library ? places[0].library : "the library differs by variant");
    if (same.nodes && same.shared && same.pinning && same.yield) {
        print_one(plan, places, out);
    } else {
        fputs("nodes and ranks: differs by variant\n", out);
        for (int v = 0; v < count; ++v) {
            mpicrypt_bench_variant_text(plan, values[v].variant, text, sizeof(text));
            fprintf(out, "    %s: ", text);
            print_one(plan, &places[v], out);
        }
    }
    fprintf(out, "TCP congestion control: %s\n\n", same.tcp ? places[0].tcp : "differs by variant");
}

static void json_one(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places, common_t with)
{
    printf(with.nodes ? "\"nodes\": %zu, " : "\"nodes\": null, ", places->nodes);
    printf("\"one_machine\": %s, ", !with.shared ? "null" : places->shared ? "true" : "false");
    printf(with.pinning ? "\"ranks\": \"%s\", " : "\"ranks\": null, ", pinning(plan, places));
    printf("\"more_ranks_than_processors\": %s, ", !with.yield ? "null" : places->yield ? "true" : "false");
    printf(with.tcp ? "\"tcp\": \"%s\"" : "\"tcp\": null", places->tcp);
}

void mpicrypt_bench_json_places(const mpicrypt_bench_plan_t *plan, const mpicrypt_bench_places_t *places,
                                const mpicrypt_bench_values_t *values, int count)
{
    const common_t all = {true, true, true, true, true, true};
    common_t same = compare(plan, places, count);
    char text[96];

    printf("\"library\": ");
    if (same.library) {
        mpicrypt_json_text(stdout, places[0].library);
    } else {
        printf("null");
    }
    printf(",\n  ");
    json_one(plan, places, same);
    printf(",\n  \"variants\": [");
    for (int v = 0; v < count; ++v) {
        mpicrypt_bench_variant_text(plan, values[v].variant, text, sizeof(text));
        printf("%s\n    {\"variant\": ", 0 == v ? "" : ",");
        mpicrypt_json_text(stdout, text);
        printf(", \"library\": ");
        mpicrypt_json_text(stdout, places[v].library);
        printf(", ");
        json_one(plan, &places[v], all);
        putchar('}');
    }
    printf("]");
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Findings of `mpicrypt doctor`.  Remedies are the texts that a job shows: the
 * help files' entries, with the detail in them.
 */
#include <stdlib.h>
#include <string.h>

#include "opal_config.h"
#include "opal/mca/aead/base/aead_base_help.h"

#include "doctor.h"

enum { INDENT = 6 };

static void add_name(mpicrypt_names_t *names, const char *name)
{
    if (!mpicrypt_names_contain(names, name)) {
        mpicrypt_names_add(names, strdup(name));
    }
}

void mpicrypt_findings_node(mpicrypt_findings_t *findings, const char *node)
{
    add_name(&findings->nodes, node);
}

/* Line ends arrive as \036. */
static char *copy(const char *text)
{
    char *mine = mpicrypt_checked(strdup(text));

    for (char *p = mine; '\0' != *p; ++p) {
        *p = '\036' == *p ? '\n' : *p;
    }
    return mine;
}

void mpicrypt_findings_add(mpicrypt_findings_t *findings, const char *node, const char *state, const char *check,
                           const char *remedy, const char *detail)
{
    char *text = copy(detail);

    for (int i = 0; i < findings->count; ++i) {
        mpicrypt_finding_t *known = &findings->value[i];
        if (0 == strcmp(known->state, state) && 0 == strcmp(known->check, check) && 0 == strcmp(known->detail, text)) {
            add_name(&known->nodes, node);
            free(text);
            return;
        }
    }
    findings->value = mpicrypt_checked(realloc(findings->value, ((size_t) findings->count + 1) * sizeof(*findings->value)));
    mpicrypt_finding_t *finding = &findings->value[findings->count++];
    *finding = (mpicrypt_finding_t){.state = copy(state), .check = copy(check), .remedy = copy(remedy), .detail = text};
    add_name(&finding->nodes, node);
}

void mpicrypt_findings_free(mpicrypt_findings_t *findings)
{
    for (int i = 0; i < findings->count; ++i) {
        free(findings->value[i].state);
        free(findings->value[i].check);
        free(findings->value[i].remedy);
        free(findings->value[i].detail);
        mpicrypt_names_free(&findings->value[i].nodes);
    }
    free(findings->value);
    mpicrypt_names_free(&findings->nodes);
    memset(findings, 0, sizeof(*findings));
}

int mpicrypt_findings_count(const mpicrypt_findings_t *findings, const char *state)
{
    int count = 0;

    for (int i = 0; i < findings->count; ++i) {
        count += 0 == strcmp(findings->value[i].state, state);
    }
    return count;
}

/* ---- text ---- */

/* To be freed by the caller; an entry of a help file if the finding names one. */
static char *remedy_text(const mpicrypt_finding_t *finding)
{
    const char *colon = strchr(finding->remedy, ':');
    char file[128], *text = NULL;

    if (0 == strncmp(finding->remedy, "help-", 5) && NULL != colon) {
        snprintf(file, sizeof(file), "%.*s", (int) (colon - finding->remedy), finding->remedy);
        text = opal_aead_base_help_string(file, colon + 1, false, finding->detail);
    }
    return NULL != text ? text : mpicrypt_checked(strdup(finding->remedy));
}

/* Print lines as they are, but wrap those that are too long. */
static void print_indented(const char *text, int indent)
{
    enum { WIDTH = 86 };

    while ('\0' != *text) {
        size_t bytes = strcspn(text, "\n"), most = (size_t) (WIDTH - indent), cut = bytes;
        while (cut > most) {
            for (--cut; cut > 0 && ' ' != text[cut]; --cut) {
            }
        }
        cut = 0 == cut ? bytes : cut;
        printf("%*s%.*s\n", bytes > 0 ? indent : 0, "", (int) cut, text);
        text += cut + ('\0' != text[cut]);
    }
}

static void print_nodes(const mpicrypt_findings_t *findings, const mpicrypt_finding_t *finding)
{
    if (finding->nodes.count == findings->nodes.count && findings->nodes.count > 1) {
        printf("  [all %d nodes]", findings->nodes.count);
        return;
    }
    printf("  [");
    for (int i = 0; i < finding->nodes.count; ++i) {
        printf("%s%s", 0 == i ? "" : ", ", finding->nodes.value[i]);
    }
    putchar(']');
}

static void print_finding(const mpicrypt_findings_t *findings, const mpicrypt_finding_t *finding)
{
    bool bad = 0 == strcmp(finding->state, "fail");
    bool help = 0 == strncmp(finding->remedy, "help-", 5);
    char *remedy = remedy_text(finding);
    size_t first = strcspn(finding->detail, "\n");

    printf("%-5s %-10s %.*s", bad ? "FAIL" : finding->state, finding->check, (int) first, finding->detail);
    print_nodes(findings, finding);
    putchar('\n');
    if ('\n' == finding->detail[first] && !help) {
        print_indented(finding->detail + first + 1, INDENT);
    }
    if ('\0' != remedy[0]) {
        print_indented(remedy, INDENT);
    }
    free(remedy);
}

void mpicrypt_findings_print(const mpicrypt_findings_t *findings, bool all)
{
    static const char *const states[] = {"ok", "note", "warn", "fail", NULL};

    for (int s = all ? 0 : 2; NULL != states[s]; ++s) {
        for (int i = 0; i < findings->count; ++i) {
            if (0 == strcmp(findings->value[i].state, states[s])) {
                print_finding(findings, &findings->value[i]);
            }
        }
    }
    printf("\n%d node%s: %d failed, %d warnings, %d notes, %d ok\n", findings->nodes.count,
           1 == findings->nodes.count ? "" : "s", mpicrypt_findings_count(findings, "fail"),
           mpicrypt_findings_count(findings, "warn"), mpicrypt_findings_count(findings, "note"),
           mpicrypt_findings_count(findings, "ok"));
}

/* ---- JSON ---- */

static void json_names(const mpicrypt_names_t *names)
{
    putchar('[');
    for (int i = 0; i < names->count; ++i) {
        printf("%s", 0 == i ? "" : ", ");
        mpicrypt_json_text(stdout, names->value[i]);
    }
    putchar(']');
}

static void json_field(const char *name, const char *value)
{
    printf("\"%s\": ", name);
    mpicrypt_json_text(stdout, value);
    printf(", ");
}

void mpicrypt_findings_json(const mpicrypt_findings_t *findings)
{
    printf("{\n  \"nodes\": ");
    json_names(&findings->nodes);
    printf(",\n  \"failed\": %d, \"warnings\": %d,\n  \"findings\": [", mpicrypt_findings_count(findings, "fail"),
           mpicrypt_findings_count(findings, "warn"));
    for (int i = 0; i < findings->count; ++i) {
        const mpicrypt_finding_t *finding = &findings->value[i];
        char *remedy = remedy_text(finding);
        printf("%s\n    {", 0 == i ? "" : ",");
        json_field("check", finding->check);
        json_field("state", finding->state);
        json_field("detail", finding->detail);
        json_field("remedy", remedy);
        printf("\"nodes\": ");
        json_names(&finding->nodes);
        putchar('}');
        free(remedy);
    }
    printf("\n  ]\n}\n");
}

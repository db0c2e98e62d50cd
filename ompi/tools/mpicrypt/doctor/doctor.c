/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt doctor: is everything in place for an encrypted job?
 *
 *     1. check   every node for itself, without MPI
 *     2. meet    a plain MPI job, in which the nodes authenticate each other
 *     3. nodes   the same with pml=crypt: does an encrypted job run?
 *
 * or, with --path, nothing but
 *
 *     path       a plain MPI job, in which the nodes find out what the file system of a directory does between them
 *
 * 2 is for several nodes (--mpirun).  All are started by a launcher, as a job is: it may change
 * where Open MPI looks for components.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "opal_config.h"
#include "opal/constants.h"
#include "opal/runtime/opal.h"

#include "doctor.h"
#include "mpicrypt_launch.h"

static const char *mpirun, *mapping, *program, *path, *forbid;
static bool here;                       /* one process, by the mpirun of the PATH; with mpirun NULL, by no launcher */
static mpicrypt_names_t directories;
static bool json, all, fabric;

static const mpicrypt_option_t options[] = {
    {"mpirun", MPICRYPT_TEXT, "COMMAND", NULL, &mpirun,
     "Check the nodes on which this launcher starts processes. Its arguments are separated by blanks: 'mpirun "
     "--hostfile hosts', or 'mpirun' in a batch job. Default: one process, by the mpirun of the PATH."},
    {"mapping", MPICRYPT_TEXT, "WORDS", NULL, &mapping,
     "The launcher's options for one process on each node. Default: --map-by ppr:1:node; for srun "
     "--ntasks-per-node=1."},
    {"dir", MPICRYPT_NAMES, "LIST", "-", &directories,
     "Directories for encrypted files: do they support extended attributes and locks?"},
    {"path", MPICRYPT_TEXT, "DIR", NULL, &path,
     "Find out, in a minute, what the file system of this directory does between the nodes, and nothing else: may other nodes read a "
     "file, and may one process, several on one node or several nodes write it? Makes small files there, and deletes them."},
    {"forbid", MPICRYPT_TEXT, "FILE", NULL, &forbid,
     "With --path, if writers on several nodes are not safe: add to this file of MCA parameters that jobs must not do it there."},
    {"fabric", MPICRYPT_FLAG, NULL, NULL, &fabric,
     "Instead of the checks: the nodes' networks, what carries a job over each host (ob1, ucx, cm), what protects it or why it is "
     "refused, and, with --mpirun, a self-test of two nodes that takes at most 30 seconds: every byte, latency and throughput, "
     "plain and encrypted. Needs Python."},
    {"all", MPICRYPT_FLAG, NULL, NULL, &all, "Print passed checks, too."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &json, "Print all findings as JSON."},
    {"program", MPICRYPT_TEXT, "FILE", NULL, &program,
     "Run this on the nodes instead of the installed mpicrypt-mpi."},
    {NULL, MPICRYPT_FLAG, NULL, NULL, NULL, NULL}
};

static bool has_directories(void)
{
    return directories.count > 1 || (1 == directories.count && 0 != strcmp(directories.value[0], "-"));
}

/* ---- starting ---- */

static void make_command(const char *verb, mpicrypt_words_t *command)
{
    if (NULL != mpirun) {
        mpicrypt_words_split(command, mpirun);
        const char *one = mpicrypt_launch_is_srun(command) ? "--ntasks-per-node=1" : "--map-by ppr:1:node";
        mpicrypt_words_split(command, NULL == mapping ? one : mapping);
    }
    mpicrypt_words_add(command, "%s", program);
    mpicrypt_words_add(command, "%s", verb);
    if (0 == strcmp(verb, "nodes")) {           /* a command line may have another PML than the environment */
        mpicrypt_words_add(command, "--pml=crypt");
    }
    if (0 == strcmp(verb, "path")) {
        mpicrypt_words_add(command, "--io-dir=%s", path);
    }
    if (0 != strcmp(verb, "check") || !has_directories()) {
        return;
    }
    char list[8192] = "";
    for (int i = 0; i < directories.count; ++i) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", 0 == i ? "" : ",", directories.value[i]);
    }
    mpicrypt_words_add(command, "--dir=%s", list);
}

/* The end of what the job wrote to stderr, for a finding. */
static const char *tail_of(const char *text)
{
    enum { MOST = 3000 };
    size_t bytes = strlen(text);

    return bytes > MOST ? text + bytes - MOST : text;
}

static void job_failed(mpicrypt_findings_t *findings, const char *check, const mpicrypt_words_t *command,
                       const mpicrypt_launch_t *result, const char *remedy)
{
    char *detail = NULL, line[4096] = "";

    for (int i = 0; i < command->count; ++i) {
        size_t used = strlen(line);
        snprintf(line + used, sizeof(line) - used, "%s%s", 0 == i ? "" : " ", command->value[i]);
    }
    if (asprintf(&detail, "status %d from: %s\n%s", result->code, line, tail_of(result->err)) < 0) {
        exit(mpicrypt_error(MPICRYPT_FAILED, "out of memory"));
    }
    mpicrypt_findings_add(findings, "launcher", "fail", check, remedy, detail);
    free(detail);
}

/* ---- what came back ---- */

static void take_finding(mpicrypt_findings_t *findings, char *text)
{
    char *field[5];

    for (int i = 0; i < 5; ++i) {
        field[i] = i < 4 ? strsep(&text, "\t") : text;
        if (NULL == field[i]) {
            return;
        }
    }
    mpicrypt_findings_add(findings, field[0], field[1], field[2], field[3], field[4]);
}

/* False when a report lacks findings that its node made. */
static bool take_reports(mpicrypt_findings_t *findings, char *text)
{
    int seen = 0, said, reports = 0;
    char host[64];

    for (char *line = mpicrypt_launch_line(&text); NULL != line; line = mpicrypt_launch_line(&text)) {
        if (0 == strncmp(line, "finding ", 8)) {
            take_finding(findings, line + 8);
            ++seen;
        } else if (2 == sscanf(line, "end %63s %d", host, &said)) {
            mpicrypt_findings_node(findings, host);
            seen -= said;
            ++reports;
        }
    }
    return reports > 0 && 0 == seen;
}

/* ---- the three steps ---- */

static int run_step(const char *verb, const mpicrypt_words_t *settings, mpicrypt_words_t *command,
                    mpicrypt_launch_t *result)
{
    make_command(verb, command);
    mpicrypt_progress(verb, 0, 1);
    int rc = mpicrypt_launch(command, settings, result);
    mpicrypt_progress_end();
    return rc;
}

/* mpirun does not run as root unless it is told to; what it starts here is ours. */
static void settings_here(mpicrypt_words_t *settings)
{
    if (here) {
        mpicrypt_words_add(settings, "OMPI_ALLOW_RUN_AS_ROOT=1");
        mpicrypt_words_add(settings, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
}

/* No launcher was named, and mpirun started nothing: check the node without it. */
static void without_launcher(mpicrypt_findings_t *findings, const mpicrypt_words_t *command, const mpicrypt_launch_t *result)
{
    mpirun = NULL;
    if (127 == result->code) {
        mpicrypt_findings_add(findings, "launcher", "note", "launch", "Name it: --mpirun 'srun --mpi=pmix'.",
                              "no mpirun in the PATH: what a launcher changes was not looked at");
    } else {
        job_failed(findings, "launch", command, result, "mpirun starts no process here. Its messages are above.");
    }
}

static int check(mpicrypt_findings_t *findings)
{
    mpicrypt_words_t command = {NULL, 0}, settings = {NULL, 0};
    mpicrypt_launch_t result;
    bool again = false;

    settings_here(&settings);
    int rc = run_step("check", &settings, &command, &result);
    if (MPICRYPT_OK == rc) {
        bool complete = take_reports(findings, result.out);
        if (0 == findings->nodes.count && here && NULL != mpirun) {
            without_launcher(findings, &command, &result);
            again = true;
        } else if (0 == findings->nodes.count) {
            fputs(result.err, stderr);
            rc = mpicrypt_error(MPICRYPT_MISSING,
                                "%s ended with status %d, and no node has reported; its messages are above",
                                command.value[0], result.code);
        } else if (0 != result.code || !complete) {
            job_failed(findings, "launch", &command, &result,
                       "A node did not report, or not all: install ompi-crypt at the same place on every node, and see "
                       "what the launcher says.");
        }
        mpicrypt_launch_free(&result);
    }
    mpicrypt_words_free(&command);
    mpicrypt_words_free(&settings);
    return again ? check(findings) : rc;
}

static bool answers(const mpicrypt_finding_t *finding, const char *check)
{
    return 0 == strcmp(finding->check, check) && 0 == strcmp(finding->state, "ok");
}

/* Two answers of nodes to one check are two findings; where they must not differ, each is repeated under the name `together`. */
static void compare_nodes(mpicrypt_findings_t *findings, const char *check, const char *state, const char *together, const char *remedy)
{
    const int count = findings->count;
    int different = 0;

    for (int i = 0; i < count; ++i) {
        different += answers(&findings->value[i], check);
    }
    for (int i = 0; i < count && different > 1; ++i) {
        for (int n = 0; answers(&findings->value[i], check) && n < findings->value[i].nodes.count; ++n) {
            mpicrypt_findings_add(findings, findings->value[i].nodes.value[n], state, together, remedy, findings->value[i].detail);
        }
    }
}

static int job(mpicrypt_findings_t *findings, const char *verb, const char *pml, const char *name, const char *remedy)
{
    mpicrypt_words_t command = {NULL, 0}, settings = {NULL, 0};
    mpicrypt_launch_t result;
    char detail[128];

    mpicrypt_words_add(&settings, "OMPI_MCA_pml=%s", pml);
    settings_here(&settings);
    if (0 != strcmp(pml, "crypt")) {
        /* It would warn that the job is plain, and end it where the site requires encryption. */
        mpicrypt_words_add(&settings, "OMPI_MCA_hook=^crypt");
    }
    int rc = run_step(verb, &settings, &command, &result);
    if (MPICRYPT_OK == rc) {
        bool complete = 0 != strcmp(verb, "nodes") ? take_reports(findings, result.out)
                                                   : NULL != strstr(result.out, "@mpicrypt done");
        if (0 != result.code || !complete) {
            job_failed(findings, name, &command, &result, remedy);
        } else if (0 == strcmp(pml, "crypt")) {
            snprintf(detail, sizeof(detail), "an encrypted job of %d process%s runs", findings->nodes.count,
                     1 == findings->nodes.count ? "" : "es");
            mpicrypt_findings_add(findings, "launcher", "ok", name, "", detail);
        }
        mpicrypt_launch_free(&result);
    }
    mpicrypt_words_free(&command);
    mpicrypt_words_free(&settings);
    return rc;
}

/* Only to forbid: what is safe now need not be so when a job opens a file. */
static int test_path(mpicrypt_findings_t *findings)
{
    char real[PATH_MAX];
    int rc = job(findings, "path", "ob1", "path", "The job that tests the directory did not end well. Its messages are above.");

    all = true;
    for (int i = 0; i < findings->count && MPICRYPT_OK == rc && NULL != forbid; ++i) {
        if (0 == strcmp(findings->value[i].check, "nodes") && 0 == strcmp(findings->value[i].state, "fail")) {
            rc = mpicrypt_forbid(forbid, NULL != realpath(path, real) ? real : path);
        }
    }
    return rc;
}

static int examine(mpicrypt_findings_t *findings)
{
    if (NULL == mpirun) {
        here = true;
        mpirun = "mpirun";
        mapping = NULL == mapping ? "-n 1" : mapping;
    }
    if (NULL != path) {
        return test_path(findings);
    }
    int rc = check(findings);
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    compare_nodes(findings, "version", "fail", "versions",
                  "Install the same ompi-crypt and the same Open MPI on every node: a job refuses to run with two.");
    compare_nodes(findings, "keystore", "warn", "keystores",
                  "A process can use only files whose keys its node has. mpicrypt key push LABEL --hosts LIST brings a key to the others.");
    if (!here) {
        rc = job(findings, "meet", "ob1", "meet",
                 "A plain MPI job does not run on these nodes: fix that first. Its messages are above.");
    }
    if (MPICRYPT_OK == rc && NULL != mpirun && 0 == mpicrypt_findings_count(findings, "fail")) {
        rc = job(findings, "nodes", "crypt", "job", "Its messages are above.");
    }
    return rc;
}

static int run(int operand_count, char **operands)
{
    mpicrypt_findings_t findings = {.count = 0};

    (void) operand_count;
    (void) operands;
    if (has_directories() + (NULL != path) + fabric > 1) {
        return mpicrypt_error(MPICRYPT_USAGE, "--dir, --path and --fabric do not go together");
    }
    if (NULL != forbid && NULL == path) {
        return mpicrypt_error(MPICRYPT_USAGE, "--forbid is for --path");
    }
    int rc = mpicrypt_mpi_program(program, &program);
    if (MPICRYPT_OK == rc && fabric) {
        const char *words[] = {NULL == mpirun ? "" : mpirun, NULL == mapping ? "" : mapping, program, json ? "json" : ""};
        return mpicrypt_become("fabric", 4, (char **) words);
    }
    if (MPICRYPT_OK == rc && OPAL_SUCCESS != opal_init_util(NULL, NULL)) {
        rc = mpicrypt_error(MPICRYPT_MISSING, "Open MPI's utility layer does not start here");
    }
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    rc = examine(&findings);
    if (MPICRYPT_OK == rc) {
        if (json) {
            mpicrypt_findings_json(&findings);
        } else {
            mpicrypt_findings_print(&findings, all);
        }
        rc = mpicrypt_findings_count(&findings, "fail") > 0 ? MPICRYPT_FAILED : MPICRYPT_OK;
    }
    mpicrypt_findings_free(&findings);
    opal_finalize_util();
    return rc;
}

const mpicrypt_verb_t mpicrypt_doctor_verb = {
    .name = "doctor",
    .summary = "check whether encrypted jobs can run on these nodes",
    .synopsis = "[--mpirun COMMAND] [--dir LIST | --path DIR | --fabric] [OPTION]...",
    .description =
        "Checks what an encrypted job started from here needs, with its parameters, and names a remedy for each "
        "failure: version and components of ompi-crypt and where Open MPI looks for them, misspelt parameters and "
        "values out of range, the crypto provider and its self-test, keys, MUNGE and certificates, limits of memory "
        "and core files, parameters that would let messages bypass the encryption, directories for encrypted files.\n\n"
        "What it checks is started by a launcher, as a job is, and finally it runs an encrypted job: on this node by the "
        "mpirun of the PATH. With --mpirun it checks every node, and lets the nodes authenticate each other. Nodes with the "
        "same finding are listed together. With --path it does nothing of this, and tests a file system.\n\n"
        "The exit status is 0 if nothing failed (warnings do not count), 1 if something failed, 3 if no node "
        "reported.",
    .options = options,
    .examples =
        "mpicrypt doctor --all\n"
        "mpicrypt doctor --mpirun 'mpirun --hostfile hosts' --dir /scratch/me\n"
        "mpicrypt doctor --mpirun 'mpirun --hostfile hosts' --path /scratch/me\n"
        "mpicrypt doctor --mpirun 'srun --mpi=pmix' --json\n"
        "mpicrypt doctor --fabric --mpirun 'mpirun --host a,b'",
    .run = run
};

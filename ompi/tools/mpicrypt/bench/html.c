/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The page of `mpicrypt bench --html`.  Pictures are the SVG that --plot draws,
 * within the page, and one more for each benchmark of which papers print
 * figures: ratios to plain, ours beside theirs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "html.h"
#include "opal/mca/aead/aead_version.h"
#include "ompi/tools/mpicrypt/plot/plot.h"
#include "ompi/tools/mpicrypt/speed/speed.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>mpicrypt bench</title>\n<style>\n"
    "body { font-family: sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222; }\n"
    "pre { background: #f4f4f4; padding: 1em; overflow-x: auto; font-size: 80%; }\n"
    "svg { max-width: 100%; height: auto; display: block; margin: 1em 0; }\n"
    "table { border-collapse: collapse; margin: 1em 0; }\n"
    "td, th { border: 1px solid #ccc; padding: 0.2em 0.6em; text-align: left; }\n"
    "nav a { margin-right: 1em; }\n"
    "</style>\n</head>\n<body>\n<h1>mpicrypt bench</h1>\n";

FILE *mpicrypt_html_begin(const char *path, const char *command)
{
    FILE *out = fopen(path, "w");
    char host[64] = "", cpu[256], when[64];
    time_t now = time(NULL);
    struct tm utc;

    if (NULL == out) {
        mpicrypt_error(MPICRYPT_FAILED, "cannot write %s: %s", path, strerror(errno));
        return NULL;
    }
    gethostname(host, sizeof(host) - 1);
    mpicrypt_processor(cpu, sizeof(cpu));
    strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
    fprintf(out, "%s<p>ompi-crypt %s, %s, started on ", head, OPAL_CRYPT_VERSION, when);
    mpicrypt_xml_text(out, host);
    fprintf(out, " (%ld processors, ", sysconf(_SC_NPROCESSORS_ONLN));
    mpicrypt_xml_text(out, cpu);
    fputs(")</p>\n<pre>", out);
    mpicrypt_xml_text(out, command);
    fputs("</pre>\n<p>Ratios are times over that of plain MPI of the same run: 1 is as fast as plain, 2 takes twice as "
          "long. Tables say how often each value was measured, and how far the values are apart.</p>\n", out);
    return out;
}

/* Copies the file from its "<svg" on. */
static bool insert_svg(FILE *out, const char *path)
{
    FILE *in = fopen(path, "r");
    char line[65536];
    bool begun = false;

    while (NULL != in && NULL != fgets(line, sizeof(line), in)) {
        begun = begun || NULL != strstr(line, "<svg ");
        if (begun) {
            fputs(line, out);
        }
    }
    if (NULL != in) {
        fclose(in);
    }
    return begun;
}

/* ---- ours beside the papers' ---- */

/* Cuts a line of CSV in place; fields may be in quotes. */
static int cut(char *line, char **field, int most)
{
    int count = 0;

    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; NULL != at && count < most;) {
        if ('"' == *at) {
            field[count++] = ++at;
            at += strcspn(at, "\"");
            if ('\0' != *at) {
                *at++ = '\0';
            }
            at = ',' == *at ? at + 1 : NULL;
        } else {
            field[count++] = strsep(&at, ",");
        }
    }
    return count;
}

static int column_of(char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; ++i) {
        if (0 == strcmp(names[i], name)) {
            return i;
        }
    }
    return -1;
}

enum { FIELDS = 64 };

/* Columns that say how well we do as a whole; single algorithms, and plain with
 * other settings, are in the other picture. */
static bool is_whole(const char *column)
{
    static const char *const parts[] = {"plain", "tuned", "raised", "socket", "ring", "o-ring", "o-rd", "o-rd2", "c-ring",
                                        "c-rd", "hs1", "hs2", "hs3", "binomial", "chain", "node", "rows", "pairs",
                                        "hop", NULL};
    char name[64];
    size_t bytes = (size_t) snprintf(name, sizeof(name), "%.63s", column);

    /* "hs1-256": with the size of its key */
    if (bytes > 4 && '-' == name[bytes - 4] && 3 == strspn(name + bytes - 3, "0123456789")) {
        name[bytes - 4] = '\0';
    }
    for (int i = 0; NULL != parts[i]; ++i) {
        if (0 == strcmp(name, parts[i])) {
            return false;
        }
    }
    return true;
}

static void our_curves(mpicrypt_plot_t *picture, const char *csv)
{
    FILE *in = fopen(csv, "r");
    char header[4096] = "", line[4096], curve[256], *names[FIELDS], *field[FIELDS];
    int count = NULL != in && NULL != fgets(header, sizeof(header), in) ? cut(header, names, FIELDS) : 0;
    int variant = column_of(names, count, "variant"), bytes = column_of(names, count, "bytes"),
        column = column_of(names, count, "column"), ratio = column_of(names, count, "ratio");

    while (variant >= 0 && bytes >= 0 && column >= 0 && ratio >= 0 && NULL != fgets(line, sizeof(line), in)) {
        if (cut(line, field, FIELDS) == count && is_whole(field[column]) && atof(field[bytes]) > 0) {
            snprintf(curve, sizeof(curve), "%.100s, %.100s", field[column], field[variant]);
            mpicrypt_plot_point(picture, 0, curve, atof(field[bytes]), atof(field[ratio]));
        }
    }
    if (NULL != in) {
        fclose(in);
    }
}

static void paper_table(FILE *out, const char *pattern)
{
    char size[32];

    fputs("<details><summary>The papers' figures</summary>\n<table><tr><th>curve</th><th>size</th><th>time / plain</th>"
          "<th>source</th></tr>\n", out);
    for (const mpicrypt_paper_t *p = mpicrypt_paper_next(NULL, pattern); NULL != p; p = mpicrypt_paper_next(p, pattern)) {
        fputs("<tr><td>", out);
        mpicrypt_xml_text(out, p->curve);
        fprintf(out, "</td><td>%s</td><td>%.3f</td><td>", mpicrypt_size_text((size_t) p->bytes, size), p->ratio);
        mpicrypt_xml_text(out, p->source);
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n<p>Other machines, networks and plain MPI libraries: what can be compared is how the ratio goes "
          "with the size.</p></details>\n", out);
}

static int compare(FILE *out, const mpicrypt_section_t *section, const char *scratch)
{
    if (NULL == section->csv || NULL == mpicrypt_paper_next(NULL, section->name)) {
        return MPICRYPT_OK;
    }
    mpicrypt_plot_t *picture = mpicrypt_plot_new("beside the papers", 1);
    mpicrypt_plot_panel(picture, 0, "time / plain: this run, and what the papers print", "message size (bytes)",
                        "time / plain");
    mpicrypt_plot_axes(picture, 0, MPICRYPT_AXIS_BYTES, MPICRYPT_AXIS_LINEAR);
    our_curves(picture, section->csv);
    for (const mpicrypt_paper_t *p = mpicrypt_paper_next(NULL, section->name); NULL != p;
         p = mpicrypt_paper_next(p, section->name)) {
        mpicrypt_plot_point(picture, 0, p->curve, p->bytes, p->ratio);
    }
    int rc = mpicrypt_plot_write(picture, scratch);
    mpicrypt_plot_free(picture);
    if (MPICRYPT_OK == rc && !insert_svg(out, scratch)) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "%s holds no picture", scratch);
    }
    paper_table(out, section->name);
    return rc;
}

/* ---- a section ---- */

int mpicrypt_html_section(FILE *out, const mpicrypt_section_t *section, const char *scratch)
{
    int rc = MPICRYPT_OK;

    fprintf(out, "<section id=\"%s\">\n<h2>%s</h2>\n<p>", section->name, section->name);
    mpicrypt_xml_text(out, section->about);
    fputs("</p>\n", out);
    if (NULL != section->svg && !insert_svg(out, section->svg)) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "%s holds no picture", section->svg);
    }
    rc = rc ? rc : compare(out, section, scratch);
    fprintf(out, "<details%s><summary>Table</summary>\n<pre>", NULL == section->svg ? " open" : "");
    mpicrypt_xml_text(out, section->said);
    fputs("</pre></details>\n</section>\n", out);
    return rc;
}

int mpicrypt_html_end(FILE *out, const char *path)
{
    fputs("</body>\n</html>\n", out);
    int error = ferror(out) ? EIO : 0;
    error = 0 != fclose(out) ? errno : error;
    return 0 == error ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "cannot write %s: %s", path, strerror(error));
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Every reason that the core can give has an entry in the help file, with
 * exactly one place for the detail, and no entry is left over.
 */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <dirent.h>
#include <regex.h>

#define TOPICS 200

static char directory[1024];
static char topics[TOPICS][64];         /* of the help file */
static int used[TOPICS], topic_count;

static char *whole(const char *name)
{
    char path[2048], *text = calloc(1, 1 << 20);
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    UNIT_REQUIRE(NULL != text && NULL != (file = fopen(path, "r")));
    UNIT_REQUIRE(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void read_help(void)
{
    char *text = whole("help-opal-common-crypt.txt"), *line, *rest = text;
    int definitions = 1;

    UNIT_GROUP("every entry has one place for the detail");
    while (NULL != (line = strsep(&rest, "\n"))) {
        if ('[' == line[0]) {
            UNIT_CHECK(1 == definitions);
            UNIT_REQUIRE(topic_count < TOPICS && strlen(line) < sizeof(topics[0]));
            memcpy(topics[topic_count], line + 1, strlen(line) - 2);
            for (int i = 0; i < topic_count; ++i) {
                UNIT_CHECK(0 != strcmp(topics[i], topics[topic_count]));
            }
            topic_count++;
            definitions = 0;
        } else if ('#' != line[0]) {
            UNIT_CHECK(strlen(line) <= 79);
            for (char *p = line; NULL != (p = strchr(p, '%')); ++p) {
                UNIT_CHECK('s' == p[1]);
                definitions++;
            }
        }
    }
    UNIT_CHECK(1 == definitions && topic_count > 50);
    free(text);
}

static void mark(const char *topic)
{
    for (int i = 0; i < topic_count; ++i) {
        if (0 == strcmp(topics[i], topic)) {
            used[i] = 1;
            return;
        }
    }
    fprintf(stderr, "no help for '%s'\n", topic);
    UNIT_CHECK(!"a topic without an entry");
}

/* Topics are string constants of two or more words joined by '-'; so are a few
 * other strings, which are listed here. */
static int is_other(const char *text)
{
    static const char *const others[] = { "x509-", "secret-id" };   /* the latter is a line of vault.conf */

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        if (0 == strcmp(text, others[i])) {
            return 1;
        }
    }
    return 0;
}

static void scan(const char *name, regex_t *pattern)
{
    char *text = whole(name), *at = text;
    regmatch_t match[3];

    while (0 == regexec(pattern, at, 3, match, 0)) {
        char topic[64];

        snprintf(topic, sizeof(topic), "%.*s", (int) (match[1].rm_eo - match[1].rm_so), at + match[1].rm_so);
        if (!is_other(topic)) {
            UNIT_CHECK(1);
            mark(topic);
        }
        at += match[0].rm_eo;
    }
    free(text);
}

static void enter(const char *relative)
{
    const char *source = getenv("srcdir");

    snprintf(directory, sizeof(directory), "%s/../../%s", NULL == source ? "." : source, relative);
}

static void scan_all(regex_t *pattern, regex_t *library)
{
    struct dirent *entry;
    DIR *files;
    int count = 0;

    UNIT_REQUIRE(NULL != (files = opendir(directory)));
    while (NULL != (entry = readdir(files))) {
        size_t length = strlen(entry->d_name);

        if (length > 2 && 0 == strcmp(entry->d_name + length - 2, ".c")) {
            scan(entry->d_name, pattern);
            scan(entry->d_name, library);
            count++;
        }
    }
    closedir(files);
    UNIT_CHECK(count > 1);
}

int main(void)
{
    static const char *const directories[] = {"opal/mca/common/crypt/base", "opal/mca/common/crypt/identity",
                                        "opal/mca/common/crypt/tls", "opal/mca/common/crypt/wire",
                                        "opal/mca/common/cryptfile/keystore",
                                        "opal/mca/common/cryptfile/file", "ompi/tools/mpicrypt/key"};
    regex_t pattern, library;

    enter("opal/mca/common/crypt");
    read_help();

    UNIT_GROUP("every reason in the sources has an entry");
    UNIT_REQUIRE(0 == regcomp(&pattern, "\"((auth|clocks|fips|keygen|munge|no|node|psk|record|secret|shared|tls|trust|x509)"
                                        "(-[a-z0-9]+)+)\"", REG_EXTENDED));
    UNIT_REQUIRE(0 == regcomp(&library, "\"(library)\"", REG_EXTENDED));
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); ++i) {
        enter(directories[i]);
        scan_all(&pattern, &library);
    }
    regfree(&pattern);
    regfree(&library);

    UNIT_GROUP("no entry is left over");
    for (int i = 0; i < topic_count; ++i) {
        if (!UNIT_CHECK(used[i])) {
            fprintf(stderr, "nothing gives the reason '%s'\n", topics[i]);
        }
    }
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Read what a file of MCA parameters says about the model: "name = value",
 * comments after '#'.  Other parameters are nothing to us.
 */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <string.h>

#include "model.h"

/* Cut off comment and blanks. */
static char *trimmed(char *line)
{
    line[strcspn(line, "#\n")] = '\0';
    while (isspace((unsigned char) *line)) {
        ++line;
    }
    size_t bytes = strlen(line);
    while (0 < bytes && isspace((unsigned char) line[bytes - 1])) {
        line[--bytes] = '\0';
    }
    return line;
}

/* The table of a profile uses chunk_size, which may stand behind it. */
typedef struct pending {
    char table[1024];
} pending_t;

static int number(const char *path, const char *name, const char *value, size_t *target)
{
    return 0 == mpicrypt_size_parse(value, target) ? MPICRYPT_OK
         : mpicrypt_error(MPICRYPT_FAILED, "%s: %s: '%s' is not a number", path, name, value);
}

static int take(const char *path, const char *name, const char *value, mpicrypt_profile_t *profile,
                pending_t *pending)
{
    opal_crypt_why_t why;
    int rc = OPAL_CRYPT_OK;

    if (0 == strcmp(name, "mpicrypt_model_comm")) {
        rc = opal_crypt_model_parse_comm(&profile->model, value, &why);
    } else if (0 == strcmp(name, "mpicrypt_model_enc")) {
        rc = opal_crypt_model_parse_enc(&profile->model, value, &why);
    } else if (0 == strcmp(name, "pml_crypt_t") && NULL != strchr(value, ':')) {
        snprintf(pending->table, sizeof(pending->table), "%s", value);
    } else if (0 == strcmp(name, "pml_crypt_chunk_size")) {
        return number(path, name, value, &profile->chunk_size);
    } else if (0 == strcmp(name, "pml_crypt_chop_min")) {
        return number(path, name, value, &profile->chop_min);
    } else if (0 == strcmp(name, "mpicrypt_comm_threads")) {
        return number(path, name, value, &profile->comm_threads);
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK
         : mpicrypt_error(MPICRYPT_FAILED, "%s: %s: %s", path, name, why.detail);
}

static int read_lines(FILE *in, const char *path, mpicrypt_profile_t *profile)
{
    pending_t pending = {""};
    opal_crypt_why_t why;
    char line[2048];
    int rc = MPICRYPT_OK;

    while (MPICRYPT_OK == rc && NULL != fgets(line, sizeof(line), in)) {
        char *name = trimmed(line), *equals = strchr(name, '=');
        if ('\0' == *name) {
            continue;
        }
        if (NULL == equals) {
            return mpicrypt_error(MPICRYPT_FAILED, "%s: '%s' is not 'name = value'", path, name);
        }
        *equals = '\0';
        rc = take(path, trimmed(name), trimmed(equals + 1), profile, &pending);
    }
    if (MPICRYPT_OK == rc && '\0' != pending.table[0]
        && OPAL_CRYPT_OK != opal_crypt_rule_parse(&profile->rule, pending.table, profile->chunk_size, &why)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: pml_crypt_t: %s", path, why.detail);
    }
    return rc;
}

/* The names of those that are installed. */
static void list_profiles(char *names, size_t bytes)
{
    glob_t found;
    size_t used = 0;

    names[0] = '\0';
    if (0 == glob(OMPI_CRYPT_PROFILE_DIR "/*.conf", 0, NULL, &found)) {
        for (size_t i = 0; i < found.gl_pathc && used < bytes; ++i) {
            const char *name = strrchr(found.gl_pathv[i], '/') + 1;
            used += (size_t) snprintf(names + used, bytes - used, "%s%.*s", 0 == i ? "; there are: " : ", ",
                                      (int) (strlen(name) - strlen(".conf")), name);
        }
        globfree(&found);
    }
}

int mpicrypt_profile_read(const char *name, mpicrypt_profile_t *profile)
{
    char path[4096];

    snprintf(path, sizeof(path), NULL == strchr(name, '/') ? OMPI_CRYPT_PROFILE_DIR "/%s.conf" : "%s", name);
    *profile = (mpicrypt_profile_t){.chop_min = 64 << 10, .comm_threads = 1};
    FILE *in = fopen(path, "r");
    if (NULL == in) {
        const char *reason = strerror(errno);
        char names[512];

        list_profiles(names, sizeof(names));
        return mpicrypt_error(MPICRYPT_MISSING, "cannot read the profile %s: %s%s", path, reason, names);
    }
    int rc = read_lines(in, path, profile);
    if (MPICRYPT_OK == rc && ferror(in)) {
        rc = mpicrypt_error(MPICRYPT_FAILED, "cannot read the profile %s", path);
    }
    fclose(in);
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One of the files that `mpicrypt file` works on: what was found, what it is called, and what to do about it.
 */
#include <string.h>

#include "file.h"

static const struct {
    const char *name, *advice;
} states[MPICRYPT_FILE_STATES] = {
    [MPICRYPT_FILE_IS_WHOLE] = {"whole", NULL},
    [MPICRYPT_FILE_IS_THERE] = {"done before", NULL},
    [MPICRYPT_FILE_IS_PLAIN] = {"not encrypted", NULL},
    [MPICRYPT_FILE_IS_ENCRYPTED] = {"encrypted already", NULL},
    [MPICRYPT_FILE_IS_LINK] = {"symbolic link", NULL},
    [MPICRYPT_FILE_IS_SPECIAL] = {"not a regular file", NULL},
    [MPICRYPT_FILE_IS_LEFT] =
        {"leftover", "a process was killed: delete this file if none is at work here, and run the interrupted command again"},
    [MPICRYPT_FILE_IS_BUSY] = {"busy", "another process works on the whole file: run this command again when that has finished"},
    [MPICRYPT_FILE_IS_OTHER] = {"other version", "use the version of ompi-crypt that made the file"},
    [MPICRYPT_FILE_IS_BEGUN] = {"unfinished", "its maker was killed before there was any data: delete the file and make it again"},
    [MPICRYPT_FILE_IS_HALF] = {"unfinished", "a copy of the map is out of date or damaged: run the interrupted command again, or "
                                             "'mpicrypt file rekey'"},
    [MPICRYPT_FILE_HAS_NO_KEY] = {"no key", "get the right to use the label ('mpicrypt file info' shows which), or use --recovery"},
    [MPICRYPT_FILE_IS_TORN] = {"torn", "a writer was killed: write the blocks again that 'mpicrypt file verify' lists; all others are "
                                       "whole"},
    [MPICRYPT_FILE_IS_FORGED] = {"forged", "keep the file for analysis, restore it from a backup, and find out what changed it"},
    [MPICRYPT_FILE_HAS_ERROR] = {"error", "see the message"},
};

void mpicrypt_file_finds(mpicrypt_file_subject_t *subject, mpicrypt_file_state_t state)
{
    subject->state = state > subject->state ? state : subject->state;
}

const char *mpicrypt_file_state_name(mpicrypt_file_state_t state) { return states[state].name; }
const char *mpicrypt_file_state_of(const mpicrypt_file_subject_t *subject)
{
    return MPICRYPT_FILE_IS_WHOLE == subject->state ? subject->done : states[subject->state].name;
}

const char *mpicrypt_file_state_advice(mpicrypt_file_state_t state) { return states[state].advice; }

/* ---- refusals ---- */

static mpicrypt_file_state_t state_of(const mpicrypt_file_error_t *error)
{
    static const mpicrypt_file_state_t states_of[] = {
        [MPICRYPT_FILE_ERR_PLAIN] = MPICRYPT_FILE_IS_PLAIN, [MPICRYPT_FILE_ERR_FORGED] = MPICRYPT_FILE_IS_FORGED,
        [MPICRYPT_FILE_ERR_TORN] = MPICRYPT_FILE_IS_TORN, [MPICRYPT_FILE_ERR_KEY] = MPICRYPT_FILE_HAS_NO_KEY,
        [MPICRYPT_FILE_ERR_UNEXPECTED] = MPICRYPT_FILE_IS_FORGED, [MPICRYPT_FILE_ERR_UNFINISHED] = MPICRYPT_FILE_IS_BEGUN,
        [MPICRYPT_FILE_ERR_FORMAT] = MPICRYPT_FILE_IS_OTHER,
    };
    const size_t status = (size_t) error->status;

    return status < sizeof(states_of) / sizeof(states_of[0]) && 0 != states_of[status] ? states_of[status] : MPICRYPT_FILE_HAS_ERROR;
}

int mpicrypt_file_says(mpicrypt_file_subject_t *subject, const char *path, const mpicrypt_file_error_t *error)
{
    mpicrypt_file_finds(subject, state_of(error));
    return subject->found && MPICRYPT_FILE_ERR_PLAIN == error->status ? MPICRYPT_FAILED
                                                                     : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, error->text);
}

int mpicrypt_file_refused(mpicrypt_file_subject_t *subject, const char *path, int status, int rc, const opal_crypt_why_t *why)
{
    mpicrypt_file_error_t error;

    (void) mpicrypt_fail_refused(&error, status, rc, NULL, why);
    return mpicrypt_file_says(subject, path, &error);
}

/* ---- by name and beginning ---- */

enum { NUMBER = 16 };                   /* hexadecimal digits of the number in the name of a part, or of a probe */

static bool is_number(const char *digits) { return NUMBER == strspn(digits, "0123456789abcdef"); }

bool mpicrypt_file_is_left(const char *path)
{
    static const char part[] = ".part", probe[] = ".mpicrypt-probe.";
    const char *slash = strrchr(path, '/'), *name = NULL == slash ? path : slash + 1;
    const size_t bytes = strlen(name), probe_bytes = sizeof(probe) - 1, part_bytes = 1 + NUMBER + sizeof(part) - 1;

    if (probe_bytes + NUMBER == bytes && 0 == memcmp(name, probe, probe_bytes)) {
        return is_number(name + probe_bytes);
    }
    const char *tail = name + bytes - (bytes < part_bytes ? bytes : part_bytes);
    return bytes > part_bytes && '.' == tail[0] && is_number(tail + 1) && 0 == strcmp(tail + 1 + NUMBER, part);
}

bool mpicrypt_file_seems_encrypted(int fd, uint64_t *bytes)
{
    ompi_common_cryptmpio_posix_t posix;
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t state;
    struct stat status;
    bool magic = false;

    ompi_common_cryptmpio_posix_init(&posix, fd, false);
    int rc = opal_cryptfile_beginning_read(&posix.super, &magic, &header, &state);

    *bytes = 0;
    if (magic && OPAL_CRYPT_OK == rc && 0 == fstat(fd, &status)) {
        *bytes = opal_cryptfile_geometry_size(&header.geometry, (uint64_t) status.st_size);
    }
    return magic;
}

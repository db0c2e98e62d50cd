/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key delete: end a label here, after saying what cannot be known.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "move.h"
#include "opal/mca/common/cryptfile/keystore/exchange.h"

typedef struct deleting {
    const char *label;
    unsigned newest, count;
    bool damaged;                       /* a version of some label cannot be read, and may be one of this */
} deleting_t;

static int note_version(const opal_cryptfile_keystore_record_t *record, void *arg)
{
    deleting_t *deleting = arg;

    if (0 == strcmp(deleting->label, record->label)) {
        ++deleting->count;
        deleting->newest = record->version > deleting->newest ? record->version : deleting->newest;
    }
    return 0;
}

static void note_damage(const opal_crypt_why_t *why, void *arg)
{
    (void) why;
    ((deleting_t *) arg)->damaged = true;
}

static int scan_first(const mpicrypt_key_move_t *move, const char *label)
{
    mpicrypt_key_scan_t scan;

    if (NULL == move->scan) {
        return MPICRYPT_OK;
    }
    if (!mpicrypt_key_scan(move->scan, label, &scan)) {
        return mpicrypt_error(MPICRYPT_FAILED, "--scan %s: %s", move->scan, strerror(errno));
    }
    printf("%s: %llu files, %llu encrypted, %llu under %s%s%s", move->scan, scan.files, scan.encrypted, scan.found, label,
           0 == scan.found ? "" : ", one is ", scan.example);
    printf(0 == scan.skipped ? "\n" : "; %llu could not be read\n", scan.skipped);
    fflush(stdout);
    return 0 == scan.found || move->lose_files ? MPICRYPT_OK
           : mpicrypt_error(MPICRYPT_FAILED, "%s: nothing was deleted, since files need it: rekey or decrypt them first, or say "
                            "--yes-lose-files", label);
}

/* The label itself is the answer: "yes" is typed too fast. */
static bool agreed(const mpicrypt_key_move_t *move, const deleting_t *deleting)
{
    char answer[OPAL_CRYPTFILE_KEY_LABEL_MAX + 8] = "";
    static const char warning[] = "files that need it can then be read only with a backup or a recovery key, and which files those are "
                                  "is not known here (--scan DIR counts those below DIR)";

    if (move->yes) {
        return true;
    }
    if (!isatty(STDIN_FILENO)) {
        mpicrypt_error(MPICRYPT_USAGE, "deleting %s is final: %s. Say --yes", deleting->label, warning);
        return false;
    }
    fprintf(stderr, "Delete %s (%u version%s, the newest is %u)? This is final: %s.\nType the label: ", deleting->label, deleting->count,
            1 == deleting->count ? "" : "s", deleting->newest, warning);
    if (NULL == fgets(answer, sizeof(answer), stdin)) {
        return false;
    }
    answer[strcspn(answer, "\n")] = '\0';
    if (0 == strcmp(answer, deleting->label)) {
        return true;
    }
    mpicrypt_error(MPICRYPT_USAGE, "%s: nothing was deleted", deleting->label);
    return false;
}

static int remove_it(opal_cryptfile_keystore_t *keystore, const mpicrypt_key_move_t *move, const char *label)
{
    deleting_t deleting = {.label = label};
    opal_crypt_why_t why = {.topic = NULL};
    unsigned count = 0;
    int rc = opal_cryptfile_keystore_moves(keystore, label, &why);

    rc = rc ? rc : opal_cryptfile_keystore_list(keystore, note_version, note_damage, &deleting, &why);
    if (OPAL_CRYPT_OK == rc && 0 == deleting.count && !deleting.damaged) {
        rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "keystore-no-label", "%s", label);
    }
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused(label, rc, &why);
    }
    int code = scan_first(move, label);
    if (MPICRYPT_OK != code) {
        return code;
    }
    if (!agreed(move, &deleting)) {
        return MPICRYPT_USAGE;
    }
    rc = opal_cryptfile_keystore_delete(keystore, label, &count, &why);
    if (count > 0) {
        printf("%s: deleted, %u version%s.  Backups and other hosts may still have the key, and the storage may keep the deleted "
               "bytes.\n", label, count, 1 == count ? "" : "s");
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(label, rc, &why);
}

int mpicrypt_key_delete(const mpicrypt_key_move_t *move, const char *label)
{
    opal_cryptfile_keystore_t *keystore;
    int code = mpicrypt_keystore_open(move->where, &keystore);

    if (MPICRYPT_OK == code) {
        code = remove_it(keystore, move, label);
        opal_cryptfile_keystore_close(keystore);
    }
    return code;
}

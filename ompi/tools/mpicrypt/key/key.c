/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key: the labels of a keystore.
 */
#include <pwd.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "list.h"
#include "move.h"

static mpicrypt_keystore_t where;
static const char *not_after, *recovery, *version;
static mpicrypt_names_t owners;
static mpicrypt_key_move_t move = {.where = &where};
static bool yes, json;

static const mpicrypt_option_t options[] = {
    MPICRYPT_KEYSTORE_OPTIONS(where),
    {"not-after", MPICRYPT_TEXT, "DATE", NULL, &not_after,
     "For new and rotate: the last day (YYYY-MM-DD, UTC) on which the key encrypts; afterwards it only decrypts. "
     "\"none\": no limit. By default a new key has no limit, and a rotated one keeps its own."},
    {"owners", MPICRYPT_NAMES, "USERS", NULL, &owners,
     "For new and rotate: the users that may use the key, by name or number. \"all\": everyone who can open the keystore. By "
     "default a new key is for all, and a rotated one keeps its owners."},
    {"recovery", MPICRYPT_TEXT, "PEM", NULL, &recovery,
     "For new and rotate: a public recovery key (RSA of at least 2048 bits, or P-256), to which data keys are also "
     "wrapped."},
    {"version", MPICRYPT_TEXT, "N", NULL, &version, "For revoke: only this version. Default: all."},
    {"yes", MPICRYPT_FLAG, NULL, NULL, &yes, "For revoke and delete: do not ask."},
    {"json", MPICRYPT_FLAG, NULL, NULL, &json, "For list and info: print JSON."},
    MPICRYPT_KEY_MOVE_OPTIONS(move),
    {NULL}
};

/* What the words and options ask for, checked before a keystore is opened or made. */
typedef struct wanted {
    const char *verb, *label, *pem;
    uint16_t version;                   /* to revoke; 0: all */
    unsigned how;                       /* new, rotate */
    opal_cryptfile_keystore_record_t record;            /* to make */
} wanted_t;

/* Digits only: a suffix or a number that does not fit is an error, never another number. */
static bool plain_number(const char *text, uint64_t max, uint64_t *value)
{
    *value = 0;
    for (const char *p = text; '\0' != *p; ++p) {
        if (*p < '0' || *p > '9' || *value > (max - (uint64_t) (*p - '0')) / 10) {
            return false;
        }
        *value = 10 * *value + (uint64_t) (*p - '0');
    }
    return '\0' != *text;
}

/* The last second of a day.  Formatted again, a day that the calendar does not have gives another text. */
static int parse_day(const char *text, int64_t *end)
{
    struct tm day = {.tm_hour = 0};
    const char *rest = strptime(text, "%Y-%m-%d", &day);
    char again[32];

    day.tm_hour = 23;
    day.tm_min = day.tm_sec = 59;
    *end = NULL == rest || '\0' != *rest ? -1 : (int64_t) timegm(&day);
    if (*end < 0 || 0 != strcmp(text, mpicrypt_key_day(*end, again))) {
        return mpicrypt_error(MPICRYPT_USAGE, "--not-after is a day from 1970 on, as 2030-12-31, not '%s'", text);
    }
    return MPICRYPT_OK;
}

/* A number need not be known here; (uid_t) -1 is not a user. */
static bool user_of(const char *text, uint64_t *user)
{
    const struct passwd *found = '\0' == text[strspn(text, "0123456789")] ? NULL : getpwnam(text);

    if (NULL != found) {
        *user = found->pw_uid;
    }
    return NULL != found || plain_number(text, UINT32_MAX - 1, user);
}

static int parse_owners(opal_cryptfile_keystore_record_t *record)
{
    uint64_t owner;

    if (1 == owners.count && 0 == strcmp("all", owners.value[0])) {
        return MPICRYPT_OK;
    }
    if (owners.count > OPAL_CRYPTFILE_KEYSTORE_OWNERS) {
        return mpicrypt_error(MPICRYPT_USAGE, "at most %d owners", OPAL_CRYPTFILE_KEYSTORE_OWNERS);
    }
    for (int i = 0; i < owners.count; ++i) {
        if (!user_of(owners.value[i], &owner)) {
            return mpicrypt_error(MPICRYPT_USAGE, "--owners: '%s' is no user here", owners.value[i]);
        }
        record->owners[record->owner_count++] = (uint32_t) owner;
    }
    return MPICRYPT_OK;
}

static int parse(int count, char **words, wanted_t *wanted)
{
    static const struct {
        const char *verb;
        int operands;
    } verbs[] = {{"new", 1}, {"list", 0}, {"info", 1}, {"rotate", 1}, {"revoke", 1}, {"protect", 1}, {"escrow", 2}};
    uint64_t number = 0;
    size_t i = 0;

    while (i < sizeof(verbs) / sizeof(verbs[0]) && (0 == count || 0 != strcmp(words[0], verbs[i].verb) || count != 1 + verbs[i].operands)) {
        ++i;
    }
    if (i == sizeof(verbs) / sizeof(verbs[0])) {
        return mpicrypt_command_wrong(&mpicrypt_key_verb, count, words);
    }
    *wanted = (wanted_t){.verb = verbs[i].verb, .label = count > 1 ? words[1] : NULL, .pem = count > 2 ? words[2] : NULL};
    if (NULL != wanted->label && !opal_cryptfile_key_label_valid(wanted->label)) {
        return mpicrypt_error(MPICRYPT_USAGE, "a label is 1 to %d letters, digits, dots, dashes and underscores: '%s'",
                              OPAL_CRYPTFILE_KEY_LABEL_MAX, wanted->label);
    }
    strcpy(wanted->record.label, NULL == wanted->label ? "" : wanted->label);
    if (NULL != version && (!plain_number(version, UINT16_MAX, &number) || 0 == number)) {
        return mpicrypt_error(MPICRYPT_USAGE, "--version: '%s' is not between 1 and %d; all versions: without it", version, UINT16_MAX);
    }
    wanted->version = (uint16_t) number;
    wanted->how = 0 != strcmp(wanted->verb, "rotate") ? OPAL_CRYPTFILE_KEYSTORE_NEW
                  : OPAL_CRYPTFILE_KEYSTORE_ROTATE | (0 == owners.count ? OPAL_CRYPTFILE_KEYSTORE_KEEP_OWNERS : 0)
                        | (NULL == not_after ? OPAL_CRYPTFILE_KEYSTORE_KEEP_NOT_AFTER : 0);
    if (NULL != not_after && 0 != strcmp(not_after, "none") && MPICRYPT_OK != parse_day(not_after, &wanted->record.not_after)) {
        return MPICRYPT_USAGE;
    }
    return parse_owners(&wanted->record);
}

static int make(opal_cryptfile_keystore_t *keystore, wanted_t *wanted)
{
    opal_cryptfile_keystore_record_t *record = &wanted->record;
    char name[OPAL_CRYPTFILE_RECORD_TEXT_BYTES];
    opal_crypt_why_t why = {.topic = NULL};
    int rc = NULL == recovery ? OPAL_CRYPT_OK
                              : opal_cryptfile_escrow_key(keystore, recovery, record->escrow, &record->escrow_bytes, &why);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_keystore_new(keystore, wanted->how, record, &why);
    }
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused(wanted->label, rc, &why);
    }
    printf("%s, AES-%u\n", opal_cryptfile_record_text(record, name), record->bits);
    mpicrypt_keystore_warn(&where);
    if (OPAL_CRYPTFILE_KEYSTORE_NEW != wanted->how) {
        printf("New files and regions use it.  \"mpicrypt file rekey FILE\" brings a file that exists under it.\n");
    }
    return MPICRYPT_OK;
}

/* Revoking is final, so it must not happen by mistake. */
static bool confirmed(const wanted_t *wanted)
{
    char answer[8] = "";
    char which[32] = "all its versions";

    if (0 != wanted->version) {
        snprintf(which, sizeof(which), "version %u", wanted->version);
    }
    if (yes) {
        return true;
    }
    if (!isatty(STDIN_FILENO)) {
        mpicrypt_error(MPICRYPT_USAGE, "revoking %s (%s) is final: what is encrypted under it can then be read only with a "
                       "recovery key. Say --yes", wanted->label, which);
        return false;
    }
    fprintf(stderr, "Revoke %s (%s)? This is final: what is encrypted under it can then be read only with a recovery key. "
            "Type yes: ", wanted->label, which);
    return NULL != fgets(answer, sizeof(answer), stdin) && 0 == strcmp(answer, "yes\n");
}

static int revoke_key(opal_cryptfile_keystore_t *keystore, const wanted_t *wanted)
{
    opal_cryptfile_keystore_record_t record;
    char text[OPAL_CRYPTFILE_KEY_TEXT_BYTES];
    opal_crypt_why_t why = {.topic = NULL};

    if (!confirmed(wanted)) {
        return MPICRYPT_USAGE;
    }
    int rc = opal_cryptfile_keystore_revoke(keystore, wanted->label, wanted->version, &why);
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused(wanted->label, rc, &why);
    }
    if (0 == wanted->version) {
        printf("%s: revoked, all versions.  ", wanted->label);
    } else {
        printf("%s: version %u is revoked.  ", wanted->label, wanted->version);
    }
    printf("No process can encrypt or decrypt with it any more.\n");
    if (OPAL_CRYPT_OK == opal_cryptfile_keystore_find(keystore, wanted->label, 0, &record, NULL)) {
        printf("Version %u is used now (%s).\n", record.version, opal_cryptfile_key_text(record.fingerprint, record.created, text));
    } else {
        printf("\"mpicrypt key rotate %s\" makes a version for new files.\n", wanted->label);
    }
    return MPICRYPT_OK;
}

static int protect_key(opal_cryptfile_keystore_t *keystore, const wanted_t *wanted)
{
    opal_crypt_why_t why = {.topic = NULL};
    unsigned count;
    int rc = opal_cryptfile_keystore_protect(keystore, wanted->label, &count, &why);

    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused(wanted->label, rc, &why);
    }
    printf("%s: %u key%s wrapped under the machine key\n", wanted->label, count, 1 == count ? "" : "s");
    return MPICRYPT_OK;
}

static int act(opal_cryptfile_keystore_t *keystore, wanted_t *wanted)
{
    opal_crypt_why_t why = {.topic = NULL};

    if (0 == strcmp(wanted->verb, "list") || 0 == strcmp(wanted->verb, "info")) {
        return mpicrypt_key_list(keystore, wanted->label, json);
    }
    if (0 == strcmp(wanted->verb, "new") || 0 == strcmp(wanted->verb, "rotate")) {
        return make(keystore, wanted);
    }
    if (0 == strcmp(wanted->verb, "revoke")) {
        return revoke_key(keystore, wanted);
    }
    if (0 == strcmp(wanted->verb, "protect")) {
        return protect_key(keystore, wanted);
    }
    int rc = opal_cryptfile_keystore_escrow(keystore, wanted->label, wanted->pem, &why);
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused(wanted->label, rc, &why);
    }
    printf("%s: new files and regions are wrapped to the recovery key, too.  \"mpicrypt file rekey FILE\" does it for a file that exists.\n",
           wanted->label);
    return MPICRYPT_OK;
}

static int run(int operand_count, char **operands)
{
    opal_cryptfile_keystore_t *keystore;
    wanted_t wanted;

    if (operand_count > 0 && mpicrypt_key_moves(operands[0])) {
        move.yes = yes;
        return mpicrypt_key_move(&move, operand_count, operands);
    }
    int code = parse(operand_count, operands, &wanted);

    if (MPICRYPT_OK == code && 0 == strcmp(wanted.verb, "new")) {
        code = mpicrypt_keystore_directory(&where);
    }
    code = MPICRYPT_OK == code ? mpicrypt_keystore_open(&where, &keystore) : code;
    if (MPICRYPT_OK == code) {
        code = act(keystore, &wanted);
        opal_cryptfile_keystore_close(keystore);
    }
    return code;
}

const mpicrypt_verb_t mpicrypt_key_verb = {
    .name = "key",
    .summary = "manage the keys of encrypted files",
    .synopsis = "new|info|rotate|revoke|protect|export|push|delete LABEL\n"
                "       mpicrypt key escrow LABEL PEM | import|restore FILE | list|backup",
    .description =
        "Files are encrypted under labels. The key of a label stays in the keystore, which only wraps and unwraps "
        "the data keys of files, and logs every use.\n\n"
        "new makes a key. list shows all keys. info shows one in detail. rotate makes the next version, which new files "
        "use; existing files "
        "keep theirs until they are rekeyed. revoke ends all use of a key, including decryption, for good: only a "
        "recovery key can then read what was encrypted. protect wraps the versions that the keystore holds in the "
        "clear under the machine key; if one is set, jobs refuse keys in the clear. escrow sets a recovery key, to "
        "which data keys are also wrapped from now on.\n\n"
        "export makes one encrypted message of a label's keys. import puts the keys of a message into another keystore, and "
        "never replaces a label of another key. push exports a label's keys and imports them on many hosts, through ssh. "
        "backup and restore are export and import of the "
        "whole keystore. delete removes a label; other hosts and backups may still have it. "
        "See docs/key-exchange.rst.",
    .options = options,
    .examples = "mpicrypt key new results\nmpicrypt key new results-2099 --not-after 2099-12-31 --recovery site.pem\n"
                "mpicrypt key list\n"
                "mpicrypt key export results --to bob.pem --cert my.pem --key my.key\n"
                "mpicrypt key import keys.cms --from bob.pem --cert my.pem --key my.key\n"
                "mpicrypt key push results --hosts node1,node2",
    .run = run,
    .takes_operands = true,
};

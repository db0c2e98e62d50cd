/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt key import, restore: the keys of a message go into the keystore.
 *
 *     read  ->  check its form  ->  who signed it  ->  passphrase or private key  ->  open  ->  keystore
 *
 * The message is an attacker's until the signature, or the passphrase, has said whose it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/x509.h>

#include "certificate.h"
#include "list.h"
#include "move.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/cryptfile/keystore/exchange.h"

enum { PUSHED_LINE_BYTES = 65 };        /* 64 digits and the end of their line */

typedef struct importing {
    const mpicrypt_key_move_t *move;
    const char *path;
    uint8_t *memory;                    /* secret memory: what push sends begins with a passphrase */
    const uint8_t *message;
    size_t bytes;
    mpicrypt_envelope_t envelope;
} importing_t;

/* ---- reading ---- */

static int read_message(importing_t *in)
{
    const size_t most = MPICRYPT_ENVELOPE_MAX + PUSHED_LINE_BYTES + 1;
    const bool standard = 0 == strcmp(in->path, "-");
    int fd = standard ? STDIN_FILENO : open(in->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t got = 1;

    in->memory = opal_crypt_secmem_alloc(most);
    if (fd < 0 || NULL == in->memory) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", in->path, fd < 0 ? strerror(errno) : "there is no memory for secret keys (ulimit -l)");
    }
    while (in->bytes < most && (got > 0 || (got < 0 && EINTR == errno))) {
        got = read(fd, in->memory + in->bytes, most - in->bytes);
        in->bytes += got > 0 ? (size_t) got : 0;
    }
    int error = errno;
    if (!standard) {
        close(fd);
    }
    if (got < 0) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", in->path, strerror(error));
    }
    in->message = in->memory;
    if (in->move->pushed) {
        if (in->bytes <= PUSHED_LINE_BYTES || '\n' != in->memory[PUSHED_LINE_BYTES - 1]) {
            return mpicrypt_error(MPICRYPT_FAILED, "what 'mpicrypt key push' sends was cut off");
        }
        in->message += PUSHED_LINE_BYTES;
        in->bytes -= PUSHED_LINE_BYTES;
    }
    return MPICRYPT_OK;
}

/* ---- who made it ---- */

static int check_pin(const importing_t *in, X509 *signer, opal_crypt_why_t *why)
{
    X509 *pin;
    int rc = mpicrypt_certificate_read(in->move->from, in->move->where->netfs, &pin, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = 0 == X509_cmp(pin, signer) ? OPAL_CRYPT_OK
             : opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "envelope-signer", "%s", in->move->from);
        X509_free(pin);
    }
    return rc;
}

static int check_signature(const importing_t *in)
{
    const mpicrypt_key_move_t *move = in->move;
    opal_crypt_why_t why = {.topic = NULL};
    X509 *signer = NULL;
    int rc = mpicrypt_envelope_verify(in->message, in->bytes, &in->envelope, &signer, &why);

    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused(in->path, rc, &why);
    }
    mpicrypt_certificate_print(stdout, "signed by", signer);
    if (NULL != move->from) {
        rc = check_pin(in, signer, &why);
    }
    if (OPAL_CRYPT_OK == rc && (NULL != move->from || NULL != move->ca)) {
        rc = mpicrypt_certificate_check(signer, MPICRYPT_CERTIFICATE_SIGNS, move->ca, move->where->netfs, &why);
    }
    X509_free(signer);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(in->path, rc, &why);
}

static int check_sender(const importing_t *in)
{
    const mpicrypt_key_move_t *move = in->move;
    const bool named = NULL != move->from || NULL != move->ca, vouched = MPICRYPT_TO_PASSPHRASE == in->envelope.kind;

    if (NULL == in->envelope.certificate) {
        return named ? mpicrypt_error(MPICRYPT_FAILED, "%s: it is not signed", in->path)
               : vouched || move->without_signature ? MPICRYPT_OK
               : mpicrypt_error(MPICRYPT_FAILED, "%s: it is not signed, and anyone can encrypt to your certificate: an attacker could plant a "
                                "key of theirs. --unsigned accepts it; compare the key's fingerprint with the sender's", in->path);
    }
    if (!named && !vouched && !move->without_signature) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: name the certificate of the sender (--from) or its CA (--ca), or say --unsigned and compare "
                              "the key's fingerprint with the sender's", in->path);
    }
    int code = check_signature(in);
    if (MPICRYPT_OK == code && !named) {
        printf("    (anyone can have made this certificate: neither --from nor --ca was given)\n");
    }
    return code;
}

/* ---- opening ---- */

static int derive_kek(const importing_t *in, uint8_t **kek)
{
    const mpicrypt_key_move_t *move = in->move;
    mpicrypt_passphrase_t passphrase = {(char *) in->memory, PUSHED_LINE_BYTES - 1};
    opal_crypt_why_t why = {.topic = NULL};
    int code = move->pushed ? MPICRYPT_OK
                            : mpicrypt_passphrase_read(move->passphrase_file, move->where->netfs, false, &passphrase);

    if (MPICRYPT_OK != code) {
        return code;
    }
    int rc = mpicrypt_passphrase_key(&passphrase, &in->envelope.scrypt, kek, &why);
    if (!move->pushed) {
        opal_crypt_secmem_free(passphrase.text);
    }
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(in->path, rc, &why);
}

static int read_own(const importing_t *in, mpicrypt_identity_t *own)
{
    const mpicrypt_key_move_t *move = in->move;
    opal_crypt_why_t why = {.topic = NULL};

    if (NULL == move->certificate) {
        return mpicrypt_error(MPICRYPT_USAGE, "%s: it is encrypted to a certificate: name yours and its key (--cert, --key)", in->path);
    }
    int rc = mpicrypt_identity_read(move->certificate, move->private_key, move->where->netfs, own, &why);
    if (OPAL_CRYPT_OK != rc) {
        return mpicrypt_refused("--cert", rc, &why);
    }
    if (!mpicrypt_envelope_is_for(&in->envelope, own->certificate)) {
        mpicrypt_identity_free(own);
        return mpicrypt_error(MPICRYPT_FAILED, "%s: it is encrypted to another certificate than %s", in->path, move->certificate);
    }
    return MPICRYPT_OK;
}

static int open_message(const importing_t *in, char **text, size_t *bytes)
{
    mpicrypt_identity_t own = {NULL, NULL};
    opal_crypt_why_t why = {.topic = NULL};
    uint8_t *kek = NULL;
    int code = MPICRYPT_TO_PASSPHRASE == in->envelope.kind ? derive_kek(in, &kek) : read_own(in, &own);

    if (MPICRYPT_OK != code) {
        return code;
    }
    int rc = mpicrypt_envelope_open(&in->envelope, kek, &own, text, bytes, &why);
    opal_crypt_secmem_free(kek);
    mpicrypt_identity_free(&own);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused(in->path, rc, &why);
}

/* ---- into the keystore ---- */

typedef struct imported {
    mpicrypt_table_t *table;
    unsigned count[OPAL_CRYPTFILE_IMPORT_REFUSED + 1];
    char refused[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];     /* the label whose refusal was reported last */
} imported_t;

static void add_imported(const opal_cryptfile_keystore_record_t *record, opal_cryptfile_import_t done, const opal_crypt_why_t *why, void *arg)
{
    static const char *const results[] = {"added", "had it", "revoked now", "stays revoked", "added, stays revoked", "REFUSED"};
    imported_t *imported = arg;
    char text[32], fingerprint[2 * MPICRYPT_KEY_SHOWN_BYTES + 1];

    ++imported->count[done];
    mpicrypt_table_text(imported->table, record->label);
    mpicrypt_table_count(imported->table, record->version);
    opal_crypt_hex_write(record->fingerprint, MPICRYPT_KEY_SHOWN_BYTES, fingerprint);
    mpicrypt_table_text(imported->table, fingerprint);
    mpicrypt_table_text(imported->table, mpicrypt_key_day(record->created, text));
    mpicrypt_table_text(imported->table, mpicrypt_key_day(record->not_after, text));
    mpicrypt_table_text(imported->table, 0 != record->escrow_bytes ? "yes" : "no");
    mpicrypt_table_text(imported->table, record->revoked ? "revoked" : "active");
    mpicrypt_table_text(imported->table, results[done]);
    if (OPAL_CRYPTFILE_IMPORT_REFUSED == done && 0 != strcmp(imported->refused, record->label)) {
        strcpy(imported->refused, record->label);
        (void) mpicrypt_refused(record->label, OPAL_CRYPT_ERR_CONFIG, why);
    }
}

/* A message that is sent again is older than one would think. */
static void print_time(int64_t seconds)
{
    time_t at = (time_t) seconds;
    struct tm parts;
    char text[64];

    if (NULL != gmtime_r(&at, &parts) && 0 != strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts)) {
        printf("exported %s\n\n", text);
    }
}

static int put_keys(const importing_t *in, opal_cryptfile_keystore_t *keystore, const char *text, size_t bytes)
{
    static const mpicrypt_column_t columns[] = {{"label", "label", 0}, {"version", "version", 0}, {"fingerprint", "fingerprint", 0}, {"created", "created", 0},
                                                {"not_after", "not after", 0}, {"escrow", "escrow", 0}, {"state", "state", 0},
                                                {"result", "result", 0}, {NULL, NULL, 0}};
    imported_t imported = {.table = mpicrypt_table_new(columns)};
    opal_cryptfile_import_to_t to = {.dry_run = in->move->dry_run, .each = add_imported, .arg = &imported};
    opal_crypt_why_t why = {.topic = NULL};
    int rc = opal_cryptfile_keystore_import(keystore, text, bytes, &to, &why);
    const unsigned refused = imported.count[OPAL_CRYPTFILE_IMPORT_REFUSED];

    if (0 != to.exported) {
        print_time(to.exported);
        mpicrypt_table_print(imported.table, stdout);
        printf("\n%s%u added, %u revoked, %u as before, %u refused\n", to.dry_run ? "Nothing was changed; it would be: " : "",
               imported.count[OPAL_CRYPTFILE_IMPORT_NEW] + imported.count[OPAL_CRYPTFILE_IMPORT_BACK],
               imported.count[OPAL_CRYPTFILE_IMPORT_REVOKED],
               imported.count[OPAL_CRYPTFILE_IMPORT_HELD] + imported.count[OPAL_CRYPTFILE_IMPORT_STAYS], refused);
    }
    mpicrypt_table_free(imported.table);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : refused > 0 ? MPICRYPT_FAILED : mpicrypt_refused(in->path, rc, &why);
}

int mpicrypt_key_import(const mpicrypt_key_move_t *move, const char *path)
{
    importing_t in = {.move = move, .path = path};
    opal_cryptfile_keystore_t *keystore = NULL;
    opal_crypt_why_t why = {.topic = NULL};
    char *text = NULL;
    size_t bytes = 0;

    if (move->pushed && 0 != strcmp(path, "-")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--pushed reads standard input: import - --pushed");
    }
    int code = mpicrypt_keystore_begin(move->where);
    code = code ? code : read_message(&in);
    if (MPICRYPT_OK == code) {
        int rc = mpicrypt_envelope_check(in.message, in.bytes, &in.envelope, &why);
        code = OPAL_CRYPT_OK == rc ? check_sender(&in) : mpicrypt_refused(path, rc, &why);
    }
    code = code ? code : open_message(&in, &text, &bytes);
    opal_crypt_secmem_free(in.memory);
    if (MPICRYPT_OK == code && !move->dry_run) {
        code = mpicrypt_keystore_directory(move->where);
    }
    /* A dry run for a keystore that does not exist yet shows what an empty one would get. */
    const bool none = move->dry_run && mpicrypt_keystore_missing(move->where);
    code = code || none ? code : mpicrypt_keystore_open(move->where, &keystore);
    if (MPICRYPT_OK == code) {
        code = put_keys(&in, keystore, text, bytes);
        opal_cryptfile_keystore_close(keystore);
        if (!move->dry_run) {
            mpicrypt_keystore_warn(move->where);
        }
    }
    opal_crypt_secmem_free(text);
    return code;
}

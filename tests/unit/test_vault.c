/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The backend `vault` without a server: its settings, what is parsed from answers, and a keystore that cannot ask.
 * tool/key_server has the rest, with a real server and with one that lies.
 *
 *     test_vault DIRECTORY SECONDS       wrap and unwrap under `lab` of that keystore for so long, in one thread, which
 *                                        outlives the keystore: OpenSSL frees its random numbers then
 */
#include "keystore_cases.h"

#include "opal/mca/common/cryptfile/keystore/vault.h"

#include <pthread.h>
#include <time.h>

static opal_crypt_why_t why;

/* ---- JSON ---- */

static bool is_json(const char *text)
{
    opal_cryptfile_json_t value;
    const size_t bytes = strlen(text);
    char *exact = malloc(bytes + 1);            /* a sanitizer sees what is read behind it */

    memcpy(exact, text, bytes);
    bool is = opal_cryptfile_json_check(exact, bytes, &value);
    free(exact);
    return is;
}

static void case_json(void)
{
    static const char *const good[] = {"{}", "[]", " [ ] ", "0", "-0", "12", "1.5", "1e9", "-1.25E-3", "\"\"", "\"a\\n\\u00e9\\\"\"", "true", "false", "null",
                                       "{\"a\":1}", "{ \"a\" : [ 1 , { } , \"]\" ] }", "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]"};
    static const char *const bad[] = {"", " ", "{", "[", "}", "{]", "[}", "[1,]", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}", "01", "-", "+1",
                                      ".5", "1.", "1e", "1e+", "tru", "True", "\"", "\"\\\"", "\"\\x\"", "\"\\u12g4\"", "\"\\u123", "\"\n\"", "1 2", "[] []",
                                      "{\"a\":1 \"b\":2}", "[1 2]", "nul", "\"a\"b", "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]"};
    opal_cryptfile_json_t value, member, rest, name;
    const char *text;
    size_t bytes;
    uint64_t number;

    UNIT_GROUP("JSON");
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); ++i) {
        UNIT_CHECK(is_json(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        if (is_json(bad[i])) {
            printf("%s\n", bad[i]);
            UNIT_CHECK(!"it is not JSON");
        }
    }
    static const char answer[] = "{\"x\":{\"data\":0}, \"data\" : {\"keys\":{\"1\":17,\"2\":18}, \"b\":true, \"s\":\"q\\n\", \"n\":18446744073709551615, \"e\":[]}}";
    UNIT_REQUIRE(opal_cryptfile_json_check(answer, sizeof(answer) - 1, &value));
    UNIT_CHECK(!opal_cryptfile_json_member(&value, "keys", &member) && !opal_cryptfile_json_member(&value, "dat", &member));
    UNIT_REQUIRE(opal_cryptfile_json_member(&value, "data", &value) && opal_cryptfile_json_member(&value, "keys", &rest));
    UNIT_CHECK(opal_cryptfile_json_next(&rest, &name, &member) && opal_cryptfile_json_equals(&name, "1") && opal_cryptfile_json_number(&member, 17, &number) && 17 == number);
    UNIT_CHECK(opal_cryptfile_json_next(&rest, &name, &member) && opal_cryptfile_json_equals(&name, "2") && !opal_cryptfile_json_number(&member, 17, &number));
    UNIT_CHECK(!opal_cryptfile_json_next(&rest, &name, &member) && !opal_cryptfile_json_next(&rest, &name, &member));
    UNIT_CHECK(opal_cryptfile_json_member(&value, "b", &member) && opal_cryptfile_json_true(&member) && !opal_cryptfile_json_string(&member, &text, &bytes));
    UNIT_CHECK(opal_cryptfile_json_member(&value, "s", &member) && !opal_cryptfile_json_string(&member, &text, &bytes) && !opal_cryptfile_json_number(&member, 9, &number));
    UNIT_CHECK(opal_cryptfile_json_member(&value, "n", &member) && opal_cryptfile_json_number(&member, UINT64_MAX, &number) && UINT64_MAX == number);
    UNIT_CHECK(opal_cryptfile_json_member(&value, "e", &rest) && !opal_cryptfile_json_next(&rest, &name, &member));
    UNIT_CHECK(!opal_cryptfile_json_member(&member, "x", &member));
}

/* Each byte of an answer replaced by each other: what is accepted is read to its end, within its bounds. */
static void case_damage(void)
{
    static const char answer[] = "{\"data\":{\"batch_results\":[{\"plaintext\":\"AA\",\"error\":\"\\u0041\"}],\"n\":-1.5e3}}";
    const size_t bytes = sizeof(answer) - 1;
    unsigned accepted = 0;

    UNIT_GROUP("answers with one byte changed, or cut");
    for (size_t cut = 0; cut <= bytes; ++cut) {
        for (unsigned byte = 0; cut < bytes && byte < 256; ++byte) {
            char *exact = malloc(bytes);
            opal_cryptfile_json_t value, rest, name;
            memcpy(exact, answer, bytes);
            exact[cut] = (char) byte;
            if (opal_cryptfile_json_check(exact, bytes, &value) && ('{' == *value.at || '[' == *value.at)) {
                ++accepted;
                rest = value;
                while (opal_cryptfile_json_next(&rest, &name, &value)) {
                    UNIT_CHECK(name.at >= exact && value.end <= exact + bytes && value.at < value.end);
                }
            }
            free(exact);
        }
        char *exact = malloc(cut + 1);
        opal_cryptfile_json_t value;
        memcpy(exact, answer, cut);
        UNIT_CHECK((cut == bytes) == opal_cryptfile_json_check(exact, cut, &value));
        free(exact);
    }
    UNIT_CHECK(accepted > 1000);
}

/* ---- HTTP ---- */

/* The status; 0: not all of it yet, or no answer. */
static unsigned split(const char *text, bool ended, const char *body)
{
    opal_cryptfile_https_answer_t answer = {.max = strlen(text) + 1};

    answer.bytes = strdup(text);
    bool whole = opal_cryptfile_https_split(&answer, strlen(text), ended);
    UNIT_CHECK(!whole || (strlen(body) == answer.body_bytes && 0 == memcmp(body, answer.body, answer.body_bytes)));
    free(answer.bytes);
    return whole ? answer.status : 0;
}

static void case_http(void)
{
    UNIT_GROUP("answers of HTTP");
    UNIT_CHECK(200 == split("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", false, "{}"));
    UNIT_CHECK(200 == split("HTTP/1.1 200 OK\r\nA: b\r\ncontent-length:2\r\nC: d\r\n\r\n{}more", false, "{}"));
    UNIT_CHECK(0 == split("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n{}", false, "") && 0 == split("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n{}", true, ""));
    UNIT_CHECK(0 == split("HTTP/1.0 200 OK\r\n\r\n{}", false, "") && 200 == split("HTTP/1.0 200 OK\r\n\r\n{}", true, "{}"));
    UNIT_CHECK(204 == split("HTTP/1.0 204 No Content\r\n\r\n", true, ""));
    UNIT_CHECK(200 == split("HTTP/1.0 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}", true, "{}"));
    UNIT_CHECK(200 == split("HTTP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n{}", true, "{}"));
    static const char *const none[] = {"", "HTTP/1.0", "HTTP/1.0 200 OK\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.0 20 OK\r\n\r\n", "SSH-2.0-x\r\n\r\n", "HTTP/1.0x200 OK\r\n\r\n"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); ++i) {
        UNIT_CHECK(0 == split(none[i], true, ""));
    }
}

/* ---- vault.conf ---- */

static char directory[128];

/* What a file of settings is refused with; "" if it is not. */
static const char *settings_of(const char *text, opal_cryptfile_vault_settings_t *settings)
{
    char path[160];

    snprintf(path, sizeof(path), "%s/vault.conf", directory);
    FILE *file = fopen(path, "w");
    UNIT_REQUIRE(NULL != file && fputs(text, file) >= 0 && 0 == fclose(file) && 0 == chmod(path, 0600));
    why = (opal_crypt_why_t){.topic = NULL};
    if (OPAL_CRYPT_OK == opal_cryptfile_vault_settings(directory, true, settings, &why)) {
        return "";
    }
    UNIT_CHECK(NULL != why.topic);
    return why.detail;
}

static void case_settings(void)
{
    static const struct { const char *text, *detail; } bad[] = {
        {"", "there is no address"},
        {"address https://h\nca c\n", "there must be one login"},
        {"address https://h\ntoken t\n", "a ca belongs to an address with https"},
        {"address unix:/s\nca c\n", "a ca belongs to an address with https"},
        {"address http://h\n", "an address is https://HOST[:PORT] or unix:/PATH, not http://h"},
        {"address https://h/v1\n", "an address is"}, {"address https://\n", "an address is"}, {"address https://h:\n", "an address is"},
        {"address https://h:99999x\n", "an address is"}, {"address https://[::1\n", "an address is"}, {"address https://u@h\n", "an address is"},
        {"address unix:s\n", "an address is"}, {"address https://h\naddress https://h\n", "two lines have the name address"},
        {"mount a\nmount b\n", "two lines have the name mount"}, {"mount \n", "no usable value for mount"}, {"mount a b\n", "no usable value for mount"},
        {"role \"x\"\n", "no usable value for role"}, {"namespace a\rb\n", "no usable value for namespace"}, {"tokens t\n", "there is no setting tokens"},
        {"timeout 0\n", "a timeout has 1 to 600 seconds, not 0"}, {"timeout 601\n", "a timeout"}, {"timeout -1\n", "a timeout"}, {"timeout 3s\n", "a timeout"},
        {"token hvs.abcdef\n", "only the name of a file"}, {"hvs.abcdef\n", "only the name of a file"}, {"jwt eyJhbGciOi\n", "only the name of a file"},
        {"token s.abcdefghijklmnopqrstuvwx\n", "only the name of a file"},
        {"address https://h\nca c\ntoken t\njwt j\n", "there must be one login"}, {"address https://h\nca c\nsecret-id s\n", "there must be one login"},
        {"address https://h\nca c\nkey k\n", "there must be one login"}, {"address unix:/s\nkey k\ncertificate c\n", "there must be one login"}};
    opal_cryptfile_vault_settings_t s;
    char path[160];

    UNIT_GROUP("settings");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        const char *detail = settings_of(bad[i].text, &s);
        if (NULL == strstr(detail, bad[i].detail)) {
            printf("%s--> %s\n", bad[i].text, detail);
            UNIT_CHECK(!"the reason");
        }
        UNIT_CHECK(NULL == strstr(detail, "abcdef") && NULL == strstr(detail, "hbGci"));
    }
    setenv("HOME", "/home/of/nobody", 1);
    UNIT_CHECK(0 == strcmp("", settings_of("# a comment\n\n  address   https://h.example:8300/  \r\nca /etc/ca.pem\ntoken token\ntimeout 7", &s)));
    UNIT_CHECK(0 == strcmp("h.example", s.to.host) && 0 == strcmp("8300", s.to.port) && NULL == s.to.socket && 7 == s.timeout);
    UNIT_CHECK(0 == strcmp("/etc/ca.pem", s.to.ca) && 0 == strcmp("/home/of/nobody/.ompi-crypt/token", s.token) && 0 == strcmp("transit", s.mount));
    opal_cryptfile_vault_settings_free(&s);
    UNIT_CHECK(0 == strcmp("", settings_of("address https://[2001:db8::1]\nca /c\nrole r-1\nsecret-id /s\nauth site/approle\nmount m\nnamespace a/b\n", &s)));
    UNIT_CHECK(0 == strcmp("2001:db8::1", s.to.host) && 0 == strcmp("8200", s.to.port) && 0 == strcmp("site/approle", s.auth) && 30 == s.timeout);
    opal_cryptfile_vault_settings_free(&s);
    UNIT_CHECK(0 == strcmp("", settings_of("address unix:/run/agent.sock\n", &s)) && 0 == strcmp("/run/agent.sock", s.to.socket));
    opal_cryptfile_vault_settings_free(&s);

    UNIT_GROUP("settings that others can change, and none");
    snprintf(path, sizeof(path), "%s/vault.conf", directory);
    UNIT_CHECK(0 == chmod(path, 0622) && OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_vault_settings(directory, true, &s, &why) && 0 == strcmp("trust-mode", why.topic));
    UNIT_CHECK(0 == unlink(path) && OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_vault_settings(directory, true, &s, &why));
    UNIT_CHECK(0 == strcmp("keystore-vault", why.topic) && NULL != strstr(why.detail, "vault.conf") && NULL != strstr(why.detail, "No such file"));
}

/* ---- a keystore whose server is not there ---- */

static void case_gone(void)
{
    opal_cryptfile_keystore_options_t options = {.backend = OPAL_CRYPTFILE_KEYSTORE_VAULT, .directory = directory, .secret_on_netfs = true};
    opal_cryptfile_keystore_t *keystore = NULL;
    opal_cryptfile_keystore_record_t record = {.label = "lab"};
    opal_cryptfile_wrapped_t wrapped = {.bytes = 92, .blob = {1, 3, 1, 0, [28] = 60}};
    opal_cryptfile_grant_t grant;
    opal_cryptfile_vault_settings_t s;
    uint8_t out[32] = {1};
    char text[256];

    UNIT_GROUP("a server that is not there: one message, nothing of a key, nothing changed");
    snprintf(text, sizeof(text), "address unix:%s/nobody\ntimeout 1\n", directory);
    UNIT_CHECK(0 == strcmp("", settings_of(text, &s)));
    opal_cryptfile_vault_settings_free(&s);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_open(&options, &keystore, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_PEER == unwrap(keystore, "lab", &wrapped, out, &grant, &why) && 0 == strcmp("keystore-vault", why.topic) && 0 == out[0]);
    UNIT_CHECK(NULL != strstr(why.detail, "no connection: No such file") && 1 == log_lines(directory, " unwrap ", "label=lab", "refused: the key server"));
    UNIT_CHECK(OPAL_CRYPT_ERR_PEER == opal_cryptfile_keystore_wrap(keystore, "lab", case_uuid, case_key, &wrapped, &why) && 0 == wrapped.bytes);
    UNIT_CHECK(OPAL_CRYPT_ERR_PEER == opal_cryptfile_keystore_new(keystore, 0, &record, &why) && 0 == strcmp("keystore-vault", why.topic));

    UNIT_GROUP("what is done at the server is refused before it is asked");
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_revoke(keystore, "lab", 0, &why) && 0 == strcmp("keystore-at-server", why.topic));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_revoke(keystore, "lab", 1, &why) && 0 == strcmp("keystore-at-server", why.topic));
    unsigned count;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_keystore_protect(keystore, "lab", &count, &why));

    UNIT_GROUP("a wrapped key of a server has 92 bytes, and of no other length");
    opal_cryptfile_wrapped_by_t by;
    for (unsigned bytes = 0; bytes < 120; ++bytes) {
        opal_cryptfile_wrapped_t other = {.bytes = (uint16_t) bytes, .blob = {1, 3, 1, 0, [28] = 60}};
        UNIT_CHECK((92 == bytes) == (OPAL_CRYPT_OK == opal_cryptfile_wrapped_parse(&other, &by)));
        other.blob[28] = 40;
        UNIT_CHECK(OPAL_CRYPT_OK != opal_cryptfile_wrapped_parse(&other, &by));
        other.blob[1] = 1;
        UNIT_CHECK((72 == bytes) == (OPAL_CRYPT_OK == opal_cryptfile_wrapped_parse(&other, &by)));
    }
    opal_cryptfile_keystore_close(keystore);
}

static opal_cryptfile_keystore_t *used;
static pthread_barrier_t used_by_thread;
static int used_seconds;

static void *use_in_thread(void *arg)
{
    const int64_t end = opal_crypt_milliseconds() + 1000 * used_seconds;
    opal_cryptfile_wrapped_t wrapped;
    opal_cryptfile_grant_t grant;
    uint8_t out[32];

    do {
        if (!UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_keystore_wrap(used, "lab", case_uuid, case_key, &wrapped, &why)) ||
            !UNIT_CHECK(OPAL_CRYPT_OK == unwrap(used, "lab", &wrapped, out, &grant, &why))) {
            fprintf(stderr, "%s: %s\n", why.topic, why.detail);
            break;
        }
        UNIT_EQUAL_BYTES(out, case_key, 32);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    } while (opal_crypt_milliseconds() < end);
    pthread_barrier_wait(&used_by_thread);
    pthread_barrier_wait(&used_by_thread);          /* it is closed */
    return arg;
}

static int use(const char *where, int seconds)
{
    const opal_cryptfile_keystore_options_t options = {.backend = OPAL_CRYPTFILE_KEYSTORE_VAULT, .directory = where, .secret_on_netfs = true};
    pthread_t thread;

    used_seconds = seconds;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_open(&options, &used, &why));
    UNIT_REQUIRE(0 == pthread_barrier_init(&used_by_thread, NULL, 2) && 0 == pthread_create(&thread, NULL, use_in_thread, NULL));
    pthread_barrier_wait(&used_by_thread);
    opal_cryptfile_keystore_close(used);
    pthread_barrier_wait(&used_by_thread);
    UNIT_REQUIRE(0 == pthread_join(thread, NULL));
    return unit_done();
}

int main(int argc, char **argv)
{
    if (3 == argc) {
        return use(argv[1], atoi(argv[2]));
    }
    strcpy(directory, scratch());
    case_json();
    case_damage();
    case_http();
    case_settings();
    case_gone();
    UNIT_CHECK(0 == shell("rm -r %s", directory));
    return unit_done();
}

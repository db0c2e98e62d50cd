/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Byte order helpers, reasons and patience of the core's base.
 */
#include "tests/unit/unit.h"

#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/base/patience.h"
#include "opal/mca/common/crypt/base/text.h"

static void test_integers(void)
{
    uint8_t bytes[8];
    static const uint8_t wanted[8] = { 1, 2, 3, 4, 5, 6, 7, 0xf8 };

    UNIT_GROUP("integers are big-endian and come back");
    opal_crypt_put64(bytes, 0x01020304050607f8);
    UNIT_EQUAL_BYTES(bytes, wanted, 8);
    UNIT_CHECK(0x01020304050607f8 == opal_crypt_get64(bytes));
    UNIT_CHECK(0x010203040506 == opal_crypt_get48(bytes));
    UNIT_CHECK(0x01020304 == opal_crypt_get32(bytes));
    UNIT_CHECK(0x0102 == opal_crypt_get16(bytes));
    memset(bytes, 0, sizeof(bytes));
    opal_crypt_put48(bytes, 0x010203040506);
    UNIT_EQUAL_BYTES(bytes, wanted, 6);
    UNIT_CHECK(0 == bytes[6] && 0 == bytes[7]);
}

static void test_refuse(void)
{
    opal_crypt_why_t why;
    char text[2000];

    UNIT_GROUP("a refusal keeps its code and its reason, cut to fit");
    UNIT_CHECK(OPAL_CRYPT_ERR_PEER
               == opal_crypt_refuse(&why, OPAL_CRYPT_ERR_PEER, "topic", "%s %d", "rank", 7));
    UNIT_CHECK(0 == strcmp(why.topic, "topic") && 0 == strcmp(why.detail, "rank 7"));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_refuse(NULL, OPAL_CRYPT_ERR_AUTH, "topic", "x"));
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "topic", "%s", text);
    UNIT_CHECK(sizeof(why.detail) - 1 == strlen(why.detail));
}

static void test_strerror(void)
{
    UNIT_GROUP("every code has words of its own");
    for (int a = OPAL_CRYPT_ERR_LIBRARY - 1; a <= OPAL_CRYPT_OK; a++) {
        for (int b = a + 1; b <= OPAL_CRYPT_OK; b++) {
            UNIT_CHECK(0 != strcmp(opal_crypt_strerror(a), opal_crypt_strerror(b)));
        }
    }
}

/* However long a process was stopped, little of that time counts. */
static void test_patience(void)
{
    const struct timespec stopped = {.tv_nsec = 150000000};
    opal_crypt_patience_t patience = opal_crypt_patience(250), none = opal_crypt_patience(0);

    UNIT_GROUP("of the time between two looks a tenth of a second counts");
    for (int64_t left = 150; left >= -50; left -= 100) {
        nanosleep(&stopped, NULL);
        UNIT_CHECK((left > 0 ? left : 0) == opal_crypt_patience_left(&patience));
    }
    UNIT_CHECK(0 == opal_crypt_patience_left(&none));
}

static void test_harmless(void)
{
    static const struct {
        const char *text, *shown;
    } texts[] = {
        {"a \xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\x92", "a \xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\x92"},
        {"\x1b[2J\n\x7f", "?[2J\n?"},
        {"\xc2\x9b", "??"},                         /* C1 */
        {"\xff \xe2\x82 \xed\xa0\x80", "? ?? ???"},  /* not UTF-8, cut short, a surrogate */
        {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf", "\xe2\x80\xa7??????\xe2\x80\xaf"},    /* U+2028 to U+202E */
        {"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", "\xe2\x81\xa5??????\xe2\x81\xaa"},    /* U+2066 to U+2069 */
    };

    UNIT_GROUP("terminals get no controls, separators of lines and marks of directions");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        char text[32];

        strcpy(text, texts[i].text);
        UNIT_CHECK(0 == strcmp(opal_crypt_harmless(text, "\n"), texts[i].shown));
    }
}

int main(void)
{
    test_integers();
    test_refuse();
    test_strerror();
    test_patience();
    test_harmless();
    return unit_done();
}

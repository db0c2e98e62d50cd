/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Any bytes as the answer of a key server.  What HTTP and JSON leave of it lies within it, and what is taken from a value is
 * what a look at its characters says.
 */
#include "fuzz.h"

#include "opal/mca/common/cryptfile/keystore/https.h"
#include "opal/mca/common/cryptfile/keystore/json.h"

static void fuzz_value(const opal_cryptfile_json_t *value, const char *begin, const char *end)
{
    opal_cryptfile_json_t rest = *value, name, inner;
    const char *text;
    size_t bytes;
    uint64_t number;

    FUZZ_CHECK(value->at >= begin && value->at < value->end && value->end <= end);
    if (opal_cryptfile_json_string(value, &text, &bytes)) {
        FUZZ_CHECK(text > value->at && text + bytes + 1 == value->end && '"' == *value->at && '"' == text[bytes]);
    }
    FUZZ_CHECK(!opal_cryptfile_json_number(value, 1000, &number) || number <= 1000);
    FUZZ_CHECK(!opal_cryptfile_json_true(value) || 4 == value->end - value->at);
    while (('{' == *value->at || '[' == *value->at) && opal_cryptfile_json_next(&rest, &name, &inner)) {
        FUZZ_CHECK(name.at > value->at && inner.end < value->end);
        fuzz_value(&inner, value->at, value->end);
    }
    FUZZ_CHECK(!opal_cryptfile_json_member(value, "data", &inner) || (inner.at > value->at && inner.end < value->end));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size + 1);
    opal_cryptfile_https_answer_t answer = {.bytes = bytes, .max = size + 1};
    opal_cryptfile_json_t value;

    FUZZ_CHECK(NULL != bytes);
    if (size > 0) {
        memcpy(bytes, data, size);
    }
    if (opal_cryptfile_https_split(&answer, size, true)) {
        FUZZ_CHECK(answer.status < 1000 && answer.body > bytes && answer.body + answer.body_bytes <= bytes + size);
        if (opal_cryptfile_json_check(answer.body, answer.body_bytes, &value)) {
            fuzz_value(&value, answer.body, answer.body + answer.body_bytes);
        }
    }
    free(bytes);
    return 0;
}

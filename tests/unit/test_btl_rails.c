/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Several connections of a peer: what arrives over them is delivered in the order that the first one says
 * (tests/vectors/rails-v1.txt), whichever is read first, however long its frames, and also where a kernel opens records.
 */
#include "btl_items.h"
#include "vectors.h"

enum { SESSION = 77, PUT = 40000, LONGER = 70000 };
enum { AS_IT_COMES, FIRST_RAIL_FIRST, LAST_RAIL_FIRST, WAYS };

static ends_t rails[OPAL_BTL_CRYPT_RAILS];
static opal_btl_crypt_order_t order;
static char delivered[200];
static unsigned puts_sent;

static bool deliver(opal_btl_crypt_link_t *link, uint8_t tag, void *bytes, size_t count)
{
    char text[8];

    UNIT_CHECK(0 == memcmp(bytes, data, count));
    UNIT_CHECK(0 == link->identity.link || order.awaited == link->identity.link);
    snprintf(text, sizeof(text), "%s%u", '\0' == delivered[0] ? "" : " ", (unsigned) tag);
    strcat(delivered, text);
    return true;
}

/* `kernel`: over the sockets goes plaintext, as a kernel that has the keys takes it and gives it. */
static void open_all(bool kernel)
{
    order = (opal_btl_crypt_order_t) {.session = SESSION};
    delivered[0] = '\0';
    puts_sent = 0;
    memset(memory, 0, sizeof(memory));
    for (uint16_t i = 0; i < OPAL_BTL_CRYPT_RAILS; i++) {
        ends_open(&rails[i]);
        rails[i].b->identity.link = i;
        rails[i].b->order = &order;
        rails[i].a->kernel_out = rails[i].b->kernel_in = kernel;
    }
}

static void free_all(void)
{
    for (int i = 0; i < OPAL_BTL_CRYPT_RAILS; i++) {
        ends_free(&rails[i]);
    }
}

/* All that can be read: more rounds than anything here needs. */
static void read_all(bool last_first)
{
    enum { ROUNDS = 40 };

    for (int n = 0; n < ROUNDS * OPAL_BTL_CRYPT_RAILS; n++) {
        const int i = n % OPAL_BTL_CRYPT_RAILS;
        const ends_t *ends = &rails[last_first ? OPAL_BTL_CRYPT_RAILS - 1 - i : i];

        opal_btl_crypt_link_read(ends->b);
        opal_btl_crypt_link_pump(ends->a);
    }
}

/* "1f", "2p" or "0j1,3": over rail 1 a fragment, over rail 2 a put, over rail 0 a join for 3 frames of rail 1. */
static void send_word(const char *word, uint8_t *fragments, bool longer, opal_btl_crypt_item_t *item)
{
    const ends_t *ends = &rails[word[0] - '0'];
    opal_btl_crypt_frame_t join = {.type = OPAL_BTL_CRYPT_JOIN, .session = SESSION};

    if ('f' == word[1]) {
        fragment_make(item, (*fragments)++, 0, longer ? LONGER : 10);
    } else if ('p' == word[1]) {
        put_make(item, memory + PUT * puts_sent++, longer ? PUT : 8);
    } else {
        join.rail = (uint8_t) (word[2] - '0');
        join.count = (uint64_t) (word[4] - '0');
        opal_btl_crypt_item_make(item, &join, NULL, 0);
    }
    (void) opal_btl_crypt_link_post(ends->a, item);
}

static void one_order(const vector_block_t *vector, int way, bool longer, bool kernel)
{
    static opal_btl_crypt_item_t items[16];
    char frames[100], *rest = frames;
    uint8_t fragments = 0;
    int sent = 0;

    open_all(kernel);
    snprintf(frames, sizeof(frames), "%s", vector_text(vector, "frames"));
    for (const char *word; NULL != (word = strsep(&rest, " "));) {
        send_word(word, &fragments, longer, &items[sent++]);
        if (AS_IT_COMES == way) {
            read_all(false);
        }
    }
    read_all(LAST_RAIL_FIRST == way);
    if (0 != strcmp(delivered, vector_text(vector, "delivered"))) {
        printf("  %s: %s\n", vector_text(vector, "frames"), delivered);
        UNIT_CHECK(false);
    }
    for (int i = 0; i < OPAL_BTL_CRYPT_RAILS; i++) {
        UNIT_CHECK(OPAL_BTL_CRYPT_OPEN == rails[i].b->state);
    }
    free_all();
}

static void orders(void)
{
    for (int kernel = 0; kernel < 2; kernel++) {
        FILE *file = vector_file("rails-v1.txt");
        vector_block_t vector = {.count = 0};
        unsigned seen = 0;

        UNIT_GROUP("what is delivered, and in which order%s", kernel ? ", where a kernel opens" : "");
        while (vector_next(file, &vector)) {
            if (0 == strcmp("order", vector_text(&vector, "kind"))) {
                for (int way = 0; way < WAYS; way++) {
                    one_order(&vector, way, false, kernel);
                    one_order(&vector, way, true, kernel);
                }
                seen++;
            }
        }
        UNIT_CHECK(14 == seen);
        fclose(file);
    }
}

/* Puts of another rail need nobody's permission, and are where they belong when the join has been passed. */
static void puts_first(void)
{
    static opal_btl_crypt_item_t put, join, fragment;
    uint8_t fragments = 0;

    UNIT_GROUP("a fragment is not delivered before the put that a join waits for");
    open_all(false);
    send_word("0j1,1", &fragments, false, &join);
    send_word("0f", &fragments, false, &fragment);
    read_all(false);
    UNIT_CHECK('\0' == delivered[0] && opal_btl_crypt_link_waits(rails[0].b) && rails[0].b->paused);
    put_make(&put, memory, BIG);
    UNIT_CHECK(!opal_btl_crypt_link_post(rails[1].a, &put));
    for (int i = 0; i < 10000 && order.done[1] < 1; i++) {
        opal_btl_crypt_link_read(rails[0].b);
        UNIT_CHECK('\0' == delivered[0]);
        opal_btl_crypt_link_read(rails[1].b);
        opal_btl_crypt_link_pump(rails[1].a);
    }
    UNIT_EQUAL_BYTES(memory, data, BIG);
    read_all(false);
    UNIT_CHECK(0 == strcmp("0", delivered));
    free_all();
}

/* What no end sends.  `on`: over which rail. */
static void refuse(const char *what, int on, uint8_t rail, uint64_t session, bool several)
{
    const opal_btl_crypt_frame_t join = {.type = OPAL_BTL_CRYPT_JOIN, .rail = rail, .session = session, .count = 1};
    opal_btl_crypt_item_t item;

    UNIT_GROUP("%s", what);
    open_all(false);
    if (!several) {
        rails[on].b->order = NULL;
    }
    opal_btl_crypt_item_make(&item, &join, NULL, 0);
    (void) opal_btl_crypt_link_post(rails[on].a, &item);
    opal_btl_crypt_link_read(rails[on].b);
    UNIT_CHECK(failed(rails[on].b, "a join that belongs elsewhere") && 0 == order.awaited);
    free_all();
}

static void sessions(void)
{
    FILE *file = vector_file("rails-v1.txt");
    vector_block_t vector = {.count = 0};
    unsigned seen = 0;

    UNIT_GROUP("the session of two processes");
    while (vector_next(file, &vector)) {
        opal_crypt_tls_identity_t identity = {.attempt = 0};
        uint8_t claimed[OPAL_CRYPT_TLS_NAME_BYTES], session[8];

        if (0 == strcmp("session", vector_text(&vector, "kind"))) {
            UNIT_REQUIRE(sizeof(claimed) == vector_bytes(&vector, "claimed", claimed, sizeof(claimed)));
            UNIT_REQUIRE(sizeof(session) == vector_bytes(&vector, "session", session, sizeof(session)));
            identity.attempt = (uint32_t) strtoul(vector_text(&vector, "attempt"), NULL, 10);
            memcpy(identity.claimed.nspace, claimed, 32);
            identity.claimed.rank = opal_crypt_get32(claimed + 32);
            UNIT_CHECK(opal_crypt_get64(session) == opal_btl_crypt_session(&identity));
            seen++;
        }
    }
    UNIT_CHECK(2 == seen);
    fclose(file);
}

static void headers(void)
{
    FILE *file = vector_file("rails-v1.txt");
    vector_block_t vector = {.count = 0};
    unsigned good = 0, bad = 0;

    UNIT_GROUP("headers of joins");
    while (vector_next(file, &vector)) {
        uint8_t bytes[32], packed[OPAL_BTL_CRYPT_HEADER_MAX];
        opal_btl_crypt_frame_t frame;

        if (0 == strcmp("header", vector_text(&vector, "kind"))) {
            const size_t count = vector_bytes(&vector, "header", bytes, sizeof(bytes));

            UNIT_CHECK(count == opal_btl_crypt_frame_unpack(bytes, count, &frame) && OPAL_BTL_CRYPT_JOIN == frame.type);
            UNIT_CHECK(frame.rail == strtoul(vector_text(&vector, "rail"), NULL, 10)
                       && frame.session == strtoull(vector_text(&vector, "session"), NULL, 10)
                       && frame.count == strtoull(vector_text(&vector, "count"), NULL, 10));
            UNIT_CHECK(count == opal_btl_crypt_frame_pack(&frame, packed) && 0 == memcmp(packed, bytes, count));
            good++;
        } else if (0 == strcmp("no header", vector_text(&vector, "kind"))) {
            UNIT_CHECK(0 == opal_btl_crypt_frame_unpack(bytes, vector_bytes(&vector, "record", bytes, sizeof(bytes)), &frame));
            bad++;
        }
    }
    UNIT_CHECK(2 == good && 10 == bad);
    fclose(file);
}

int main(void)
{
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);

    UNIT_REQUIRE(NULL != tls);
    btl_start(tls);
    btl_engine.deliver = deliver;
    data_fill();
    headers();
    sessions();
    orders();
    puts_first();
    refuse("a join of another session", 0, 1, SESSION + 1, true);
    refuse("a join over another rail than the first", 1, 2, SESSION, true);
    refuse("a join where there is one connection", 0, 1, SESSION, false);
    opal_btl_crypt_engine_stop(&btl_engine);
    opal_crypt_tls_destroy(tls);
    return unit_done();
}

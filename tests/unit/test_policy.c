/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What protects a job: the tables of cryptproc_policy.c, walked for every transport, host and set of facts, and held
 * against the lines of the manual; and the manual's tables, which have the same rows.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "../../opal/mca/common/cryptproc/cryptproc_lists.c"
#include "../../opal/mca/common/cryptproc/cryptproc_policy.c"

enum { DECISIONS = OPAL_CRYPTPROC_TRANSPORTS * OPAL_CRYPTPROC_HOSTS * OPAL_CRYPTPROC_FACTS };

/* If sockets may be used: over them only btl/crypt, or pml/crypt if it was asked for. */
static void check_one(opal_cryptproc_transport_t asked, opal_cryptproc_host_t host, unsigned facts)
{
    const opal_cryptproc_policy_row_t *row = opal_cryptproc_policy(asked, host, facts);
    const bool by_name = OPAL_CRYPTPROC_TRANSPORT_PML == asked, fabric = OPAL_CRYPTPROC_HOST_FABRIC == host;
    const unsigned early = OPAL_CRYPTPROC_NO_HOOK | OPAL_CRYPTPROC_LIST_READ | OPAL_CRYPTPROC_OTHER_BTL;
    const unsigned impossible = early | OPAL_CRYPTPROC_AES_192 | OPAL_CRYPTPROC_ERRORS | OPAL_CRYPTPROC_OTHER_OSC
                                | OPAL_CRYPTPROC_OTHER_COLL;

    UNIT_CHECK(NULL != row->when && NULL != row->why && '\0' != *row->why);
    UNIT_CHECK((OPAL_CRYPTPROC_PML_SEALS == row->seals)
               == (by_name || (fabric && OPAL_CRYPTPROC_TRANSPORT_AUTO == asked)));
    if (OPAL_CRYPTPROC_BTL_SEALS == row->seals) {
        UNIT_CHECK(!by_name && !fabric && 0 == (facts & impossible));
    }
    if (OPAL_CRYPTPROC_BY_HOST == row->seals) {
        UNIT_CHECK(OPAL_CRYPTPROC_TRANSPORT_AUTO == asked && OPAL_CRYPTPROC_HOST_AUTO == host && 0 == (facts & early)
                   && 0 != (facts & OPAL_CRYPTPROC_FABRIC));
        for (int h = OPAL_CRYPTPROC_HOST_OB1; h < OPAL_CRYPTPROC_HOSTS; h++) {          /* the second answer is one */
            UNIT_CHECK(OPAL_CRYPTPROC_BY_HOST != opal_cryptproc_policy(asked, (opal_cryptproc_host_t) h, facts)->seals);
        }
    }
    if (OPAL_CRYPTPROC_REFUSE == row->seals) {
        UNIT_CHECK(!by_name && (0 != (facts & impossible) || fabric));
    }
    /* One fact more never leads to less protection. */
    for (unsigned more = 1; OPAL_CRYPTPROC_BTL_SEALS == row->seals && more < OPAL_CRYPTPROC_FACTS; more <<= 1) {
        UNIT_CHECK(OPAL_CRYPTPROC_PML_SEALS != opal_cryptproc_policy(asked, host, facts | more)->seals);
    }
}

/* btl/crypt for windows alone: beside ucx and cm, and only where it can be the one network and osc/rdma is there. */
static void check_windows(opal_cryptproc_transport_t asked, opal_cryptproc_host_t host, unsigned facts)
{
    const opal_cryptproc_policy_row_t *row = opal_cryptproc_policy_windows(asked, host, facts);
    const unsigned in_the_way = OPAL_CRYPTPROC_NO_HOOK | OPAL_CRYPTPROC_LIST_READ | OPAL_CRYPTPROC_OTHER_BTL | OPAL_CRYPTPROC_NO_CRYPT
                                | OPAL_CRYPTPROC_AES_192 | OPAL_CRYPTPROC_ERRORS | OPAL_CRYPTPROC_OTHER_OSC | OPAL_CRYPTPROC_NO_RDMA;
    const bool beside = OPAL_CRYPTPROC_TRANSPORT_PML != asked && OPAL_CRYPTPROC_HOST_FABRIC == host && 0 == (facts & in_the_way);

    UNIT_CHECK(NULL != row->when && NULL != row->why && '\0' != *row->why);
    UNIT_CHECK((0 != (facts & OPAL_CRYPTPROC_NO_PT2PT) ? OPAL_CRYPTPROC_REFUSE
                : 0 != (facts & OPAL_CRYPTPROC_PT2PT)  ? OPAL_CRYPTPROC_PML_SEALS
                : beside                               ? OPAL_CRYPTPROC_BTL_SEALS : OPAL_CRYPTPROC_REFUSE) == row->seals);
}

static void check_all(void)
{
    int count = 0;

    for (int asked = 0; asked < OPAL_CRYPTPROC_TRANSPORTS; asked++) {
        for (int host = 0; host < OPAL_CRYPTPROC_HOSTS; host++) {
            for (unsigned facts = 0; facts < OPAL_CRYPTPROC_FACTS; facts++, count++) {
                check_one((opal_cryptproc_transport_t) asked, (opal_cryptproc_host_t) host, facts);
                check_windows((opal_cryptproc_transport_t) asked, (opal_cryptproc_host_t) host, facts);
            }
        }
    }
    UNIT_CHECK(DECISIONS == count);
    printf("%d decisions\n", count);
}

static void check_lists(void)
{
    static const char needed[] = "rdma,sm", networks[] = "hcoll,ucc";
    static const struct {
        const char *btl, *osc, *coll;
        unsigned facts;
    } cases[] = {
        {"", "rdma,sm", "", 0},
        {"", "", "", 0},
        {"tcp,self,sm", "rdma", "tuned,basic", 0},
        {"^openib", "^ucx", "^hcoll", 0},
        {"tcp,ofi", "", "", OPAL_CRYPTPROC_OTHER_BTL},
        {"tcpx", "", "", OPAL_CRYPTPROC_OTHER_BTL | OPAL_CRYPTPROC_NO_CRYPT},
        {"self,sm", "", "", OPAL_CRYPTPROC_NO_CRYPT},
        {"^crypt", "", "", OPAL_CRYPTPROC_NO_CRYPT},
        {"^tcp", "sm", "", OPAL_CRYPTPROC_NO_RDMA},
        {"crypt", "^rdma", "", OPAL_CRYPTPROC_NO_RDMA},
        {"", "ucx,sm", "", OPAL_CRYPTPROC_OTHER_OSC | OPAL_CRYPTPROC_NO_RDMA},
        {"", "rdma,ucx", "", OPAL_CRYPTPROC_OTHER_OSC},
        {"", "^rdma,sm", "", OPAL_CRYPTPROC_OTHER_OSC | OPAL_CRYPTPROC_NO_RDMA},
        {"", "", "tuned,ucc", OPAL_CRYPTPROC_OTHER_COLL},
        {"usnic", "portals4", "hcoll", OPAL_CRYPTPROC_OTHER_BTL | OPAL_CRYPTPROC_OTHER_OSC | OPAL_CRYPTPROC_OTHER_COLL
                                       | OPAL_CRYPTPROC_NO_CRYPT | OPAL_CRYPTPROC_NO_RDMA},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        UNIT_CHECK(cases[i].facts == opal_cryptproc_policy_lists(cases[i].btl, cases[i].osc, needed, cases[i].coll, networks));
    }
    /* 4.1 */
    UNIT_CHECK(0 == opal_cryptproc_policy_lists("", "^ucx", "pt2pt,sm", "", networks));
    UNIT_CHECK(OPAL_CRYPTPROC_NO_RDMA == opal_cryptproc_policy_lists("", "pt2pt,sm", "pt2pt,sm", "", networks));
    UNIT_CHECK(OPAL_CRYPTPROC_NO_PT2PT == opal_cryptproc_policy_lists("", "^pt2pt", "pt2pt,sm", "", networks));
    UNIT_CHECK((OPAL_CRYPTPROC_NO_PT2PT | OPAL_CRYPTPROC_NO_RDMA)
               == opal_cryptproc_policy_lists("", "sm", "pt2pt,sm", "", networks));
}

/* Each row's words are in the manual, in the table's order, the last one's too. */
static const char *find_rows(const char *at, const opal_cryptproc_policy_row_t *row, const char *last)
{
    for (; NULL != at; row++) {
        at = strstr(at, row->when);
        if (NULL == at) {
            fprintf(stderr, "docs/transport.rst lacks, or has in another place: %s\n", row->when);
        } else if (0 == strcmp(last, row->when)) {
            break;
        }
    }
    return at;
}

static void check_manual(void)
{
    const char *source = getenv("srcdir"), *at;
    char path[4096], *text = calloc(1, 1 << 20);
    FILE *file;

    snprintf(path, sizeof(path), "%s/../../docs/transport.rst", NULL == source ? "." : source);
    file = fopen(path, "r");
    UNIT_REQUIRE(NULL != file && NULL != text && fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    at = find_rows(text, opal_cryptproc_policy_rows, "otherwise");
    UNIT_CHECK(NULL != at);
    UNIT_CHECK(NULL != at && NULL != find_rows(at, opal_cryptproc_policy_windows_rows, "none of these applies"));
    free(text);
}

int main(void)
{
    UNIT_GROUP("the table");
    check_all();
    UNIT_GROUP("lists of components");
    check_lists();
    UNIT_GROUP("the manual");
    check_manual();
    return unit_done();
}

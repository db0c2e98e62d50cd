/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The algorithms of coll/cryptag, once.  These lists make the words of its parameters (params.def), its enumerations,
 * prototypes and names (coll_cryptag_call.h, _rules.c), the columns of `mpicrypt bench` and `tune` (measure/columns.py,
 * which parses them: one row a line), and what the tests in tests/coll try.
 *
 *     RUN(NAME, function, "word")     ompi_coll_cryptag_function() runs it
 *     NAMED(NAME, "word")             the file of the operation decides; HOP: left to the component below, and pml/crypt
 *                                     or the transport seals every message by itself
 *
 * The number of a row, counted from 1 ("auto" is 0), is in the AAD of pieces: add rows at the end, never move or remove
 * one.
 */
#ifndef OPAL_CRYPT_BASE_ALGORITHMS_H
#define OPAL_CRYPT_BASE_ALGORITHMS_H

#define OPAL_CRYPT_ALLGATHERS(RUN, NAMED) \
    RUN(NAIVE, naive, "naive") \
    RUN(O_RING, o_ring, "o-ring") \
    RUN(O_RD, o_rd, "o-rd") \
    RUN(O_RD2, o_rd2, "o-rd2") \
    RUN(C_RING, c_ring, "c-ring") \
    RUN(C_RD, c_rd, "c-rd") \
    RUN(HS1, hs1, "hs1") \
    RUN(HS2, hs2, "hs2") \
    RUN(HS3, hs3, "hs3") \
    NAMED(HOP, "hop")

#define OPAL_CRYPT_BCASTS(RUN, NAMED) \
    NAMED(BCAST_HOP, "hop") \
    NAMED(BCAST_BINOMIAL, "binomial") \
    NAMED(BCAST_CHAIN, "chain")

#define OPAL_CRYPT_ALLTOALLS(RUN, NAMED) \
    NAMED(ALLTOALL_HOP, "hop") \
    NAMED(ALLTOALL_NODE, "node") \
    NAMED(ALLTOALL_PAIRS, "pairs") \
    NAMED(ALLTOALL_ROWS, "rows")

/* "auto naive ...": the words of a parameter, by number */
#define OPAL_CRYPT_WORD_OF_RUN(name, function, word) " " word
#define OPAL_CRYPT_WORD_OF_NAMED(name, word) " " word
#define OPAL_CRYPT_WORDS_OF(list) "auto" list(OPAL_CRYPT_WORD_OF_RUN, OPAL_CRYPT_WORD_OF_NAMED)

#endif

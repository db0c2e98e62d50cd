/* crypt/base/algorithms.h as it would have been when NAME.expected were recorded. */
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
    NAMED(ALLTOALL_ROWS, "rows") \
    NAMED(ALLTOALL_PAIRS, "pairs")

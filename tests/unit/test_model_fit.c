/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Fits must find the parameters from which noisy samples were made; and the
 * text form of a model must say what the model says.
 */
#include "unit.h"

#include <locale.h>

#include "ompi/tools/mpicrypt/tune/model_fit.c"

#define KiB 1024.0
#define MiB (1024.0 * 1024.0)
#define SAMPLES_MAX 2000

static mpicrypt_sample_t samples[SAMPLES_MAX];
static int count;

/* The same noise in every run: a linear congruential generator, sum of twelve
 * uniform numbers, standard deviation 1. */
static uint64_t state = 1;

static double noise(void)
{
    double sum = -6;

    for (int i = 0; i < 12; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        sum += (double) (state >> 11) / 0x1p53;
    }
    return sum;
}

static int within(double value, double expected, double share)
{
    double off = value / expected - 1;
    return off <= share && -off <= share;
}

static const opal_crypt_model_t truth = {
    .comm = {{0, 5.54, 7.29e-5}, {64 * KiB, 17.5, 5.1e-5}},
    .enc = {{0, 0.4, 5265, 843}, {32 * KiB, 1.643, 6072, 4106}, {MiB, 5.07, 5893, 5769}},
    .comm_count = 2, .enc_count = 3
};

static void make_comm(double deviation)
{
    count = 0;
    for (double bytes = 1; bytes <= 16 * MiB; bytes *= 2) {
        for (int repeat = 0; repeat < 20; ++repeat) {
            double us = opal_crypt_model_comm_us(&truth, bytes, 1);
            samples[count++] = (mpicrypt_sample_t){bytes, 1, us * (1 + deviation * noise())};
        }
    }
}

static void make_enc(double deviation, int max_threads)
{
    count = 0;
    for (double bytes = 64; bytes <= 16 * MiB; bytes *= 2) {
        for (int threads = 1; threads <= max_threads; threads *= 2) {
            for (int repeat = 0; repeat < 10; ++repeat) {
                double us = opal_crypt_model_enc_us(&truth, bytes, 1, threads);
                samples[count++] = (mpicrypt_sample_t){bytes, threads, us * (1 + deviation * noise())};
            }
        }
    }
}

static void comm_fits(mpicrypt_fit_weight_t weight, double eager, double deviation, double share)
{
    opal_crypt_model_t fitted = {.comm_count = 0};

    make_comm(deviation);
    UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_fit_comm(samples, count, eager, weight, &fitted));
    UNIT_REQUIRE(2 == fitted.comm_count);
    UNIT_CHECK(64 * KiB == fitted.comm[1].from_bytes);
    for (int i = 0; i < 2; ++i) {
        UNIT_CHECK(within(fitted.comm[i].alpha_us, truth.comm[i].alpha_us, share));
        UNIT_CHECK(within(fitted.comm[i].beta_us, truth.comm[i].beta_us, share));
    }
}

static void communication(void)
{
    opal_crypt_model_t fitted = {.comm_count = 0};

    UNIT_GROUP("communication: exact, noisy, eager limit given and searched for");
    comm_fits(MPICRYPT_FIT_RELATIVE, 64 * KiB, 0, 1e-9);
    comm_fits(MPICRYPT_FIT_ABSOLUTE, 64 * KiB, 0, 1e-9);
    comm_fits(MPICRYPT_FIT_RELATIVE, 0, 0, 1e-9);
    comm_fits(MPICRYPT_FIT_RELATIVE, 64 * KiB, 0.02, 0.05);
    comm_fits(MPICRYPT_FIT_RELATIVE, 0, 0.02, 0.05);

    UNIT_GROUP("communication: a negative alpha is replaced");
    const mpicrypt_sample_t steep[] = {{1, 1, 8}, {1000, 1, 10}, {2000, 1, 100}, {3000, 1, 190}};
    UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_fit_comm(steep, 4, -1, MPICRYPT_FIT_ABSOLUTE, &fitted));
    UNIT_CHECK(1 == fitted.comm_count && 8 == fitted.comm[0].alpha_us);
    /* beta alone: sum x (y - 8) / sum x^2 */
    UNIT_CHECK(within(fitted.comm[0].beta_us, (1000 * 2 + 2000 * 92 + 3000 * 182.0) / (1 + 1e6 + 4e6 + 9e6), 1e-9));

    UNIT_GROUP("communication: too few samples are refused");
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == mpicrypt_fit_comm(steep, 1, -1, MPICRYPT_FIT_RELATIVE, &fitted));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == mpicrypt_fit_comm(steep, 4, 2500, MPICRYPT_FIT_RELATIVE, &fitted));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == mpicrypt_fit_comm(steep, 3, 0, MPICRYPT_FIT_RELATIVE, &fitted));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == mpicrypt_fit_comm(steep, 0, 0, MPICRYPT_FIT_RELATIVE, &fitted));
}

static void encryption(void)
{
    static const double from[] = {0, 32 * KiB, MiB};
    opal_crypt_model_t fitted = {.enc_count = 0};

    UNIT_GROUP("encryption: exact");
    make_enc(0, 8);
    UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_fit_enc(samples, count, from, 3, MPICRYPT_FIT_RELATIVE, &fitted));
    UNIT_REQUIRE(3 == fitted.enc_count);
    for (int i = 0; i < 3; ++i) {
        UNIT_CHECK(from[i] == fitted.enc[i].from_bytes);
        UNIT_CHECK(within(fitted.enc[i].alpha_us, truth.enc[i].alpha_us, 1e-5));
        UNIT_CHECK(within(fitted.enc[i].first_rate, truth.enc[i].first_rate, 1e-5));
        UNIT_CHECK(within(fitted.enc[i].next_rate, truth.enc[i].next_rate, 1e-5));
    }

    UNIT_GROUP("encryption: two percent of noise");
    make_enc(0.02, 16);
    UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_fit_enc(samples, count, from, 3, MPICRYPT_FIT_RELATIVE, &fitted));
    for (int i = 0; i < 3; ++i) {
        UNIT_CHECK(within(fitted.enc[i].first_rate, truth.enc[i].first_rate, 0.05));
        UNIT_CHECK(within(fitted.enc[i].next_rate, truth.enc[i].next_rate, 0.1));
    }
    UNIT_CHECK(within(fitted.enc[0].alpha_us, truth.enc[0].alpha_us, 0.05));
    UNIT_CHECK(within(fitted.enc[1].alpha_us, truth.enc[1].alpha_us, 0.2));
    for (double bytes = 64; bytes <= 16 * MiB; bytes *= 2) {
        for (int threads = 1; threads <= 16; threads *= 2) {
            UNIT_CHECK(within(opal_crypt_model_enc_us(&fitted, bytes, 1, threads),
                              opal_crypt_model_enc_us(&truth, bytes, 1, threads), 0.04));
        }
    }

    UNIT_GROUP("encryption: one thread only, an alpha of zero, refusals");
    make_enc(0.01, 1);
    UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_fit_enc(samples, count, from, 3, MPICRYPT_FIT_RELATIVE, &fitted));
    UNIT_CHECK(0 == fitted.enc[2].next_rate && within(fitted.enc[2].first_rate, 5893, 0.03));
    const mpicrypt_sample_t fast[] = {{1000, 1, 1}, {2000, 1, 3}, {4000, 1, 7}, {4000, 2, 4}};
    UNIT_REQUIRE(OPAL_CRYPT_OK == mpicrypt_fit_enc(fast, 4, from, 1, MPICRYPT_FIT_RELATIVE, &fitted));
    UNIT_CHECK(0 <= fitted.enc[0].alpha_us && 0 < fitted.enc[0].first_rate);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG
               == mpicrypt_fit_enc(fast, 4, from, 3, MPICRYPT_FIT_RELATIVE, &fitted));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG
               == mpicrypt_fit_enc(fast, 4, from, 0, MPICRYPT_FIT_RELATIVE, &fitted));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG
               == mpicrypt_fit_enc(fast, 4, from, 5, MPICRYPT_FIT_RELATIVE, &fitted));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG
               == mpicrypt_fit_enc(fast + 2, 2, from, 1, MPICRYPT_FIT_RELATIVE, &fitted));
}

static void text(void)
{
    opal_crypt_model_t model = truth, again = {.comm_count = 0};
    opal_crypt_rule_t rule, rule_again;
    opal_crypt_why_t why;
    char room[512];

    UNIT_GROUP("text: what was printed reads the same");
    UNIT_CHECK(opal_crypt_model_print_comm(&model, room, sizeof(room)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_model_parse_comm(&again, room, &why));
    UNIT_CHECK(2 == again.comm_count);
    UNIT_EQUAL_BYTES(again.comm, truth.comm, 2 * sizeof(truth.comm[0]));
    UNIT_CHECK(opal_crypt_model_print_enc(&model, room, sizeof(room)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_model_parse_enc(&again, room, &why));
    UNIT_CHECK(3 == again.enc_count);
    UNIT_EQUAL_BYTES(again.enc, truth.enc, 3 * sizeof(truth.enc[0]));
    UNIT_CHECK(!opal_crypt_model_print_enc(&model, room, 10));
    UNIT_CHECK(!opal_crypt_model_print_comm(&model, room, 10));

    UNIT_GROUP("text: size-to-t tables");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_rule_parse(&rule, "64K:2,128K:4:1M,512K:8", 512 << 10, &why));
    UNIT_CHECK(3 == rule.count && 65536 == rule.step[0].from_bytes && 2 == rule.step[0].threads);
    UNIT_CHECK(512 << 10 == rule.step[0].chunk_bytes && 1 << 20 == rule.step[1].chunk_bytes);
    UNIT_CHECK(opal_crypt_rule_print(&rule, room, sizeof(room)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_rule_parse(&rule_again, room, 0, &why));
    UNIT_CHECK(3 == rule_again.count);
    UNIT_EQUAL_BYTES(rule.step, rule_again.step, 3 * sizeof(rule.step[0]));

    UNIT_GROUP("text: what is refused leaves the model alone");
    static const char *const bad_comm[] = {
        "", "1", "0:1", "0:1:2:3", "1:1:2", "0:1:2,0:1:2", "0:1:2,", ",", "0:1:2,5", "0:-1:2", "0:nan:2",
        "0:inf:1", "0:1:2;", "0:1:2 ", "0::2", "0:1:2,1:1:1,2:1:1,3:1:1,4:1:1", "x"
    };
    for (size_t i = 0; i < sizeof(bad_comm) / sizeof(bad_comm[0]); ++i) {
        again = truth;
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_model_parse_comm(&again, bad_comm[i], &why));
        UNIT_EQUAL_BYTES(&again, &truth, sizeof(truth));
    }
    static const char *const bad_enc[] = {"", "0:1:2", "0:1:0:1", "0:1:2:3:4", "5:1:2:3", "0:1:2:3,"};
    for (size_t i = 0; i < sizeof(bad_enc) / sizeof(bad_enc[0]); ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_model_parse_enc(&again, bad_enc[i], &why));
        UNIT_EQUAL_BYTES(&again, &truth, sizeof(truth));
    }
    static const char *const bad_rule[] = {"", "64K", "64K:0", "64K:1.5", "64K:2,64K:4", "64K:2:3:4", "0.5:1", "1:1e9"};
    for (size_t i = 0; i < sizeof(bad_rule) / sizeof(bad_rule[0]); ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_rule_parse(&rule, bad_rule[i], 1, &why));
    }
    UNIT_CHECK(3 == rule.count);
}

/* A program may have set a locale with decimal commas before MPI_Init. */
static void foreign_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "pl_PL.UTF-8"};
    opal_crypt_model_t model = {.comm_count = 0};
    char room[512];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (NULL != setlocale(LC_NUMERIC, names[i])) {
            UNIT_GROUP("text: in the locale %s", names[i]);
            UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_model_parse_comm(&model, "0:5.54:7.29e-05", NULL));
            UNIT_CHECK(5.54 == model.comm[0].alpha_us);
            UNIT_CHECK(opal_crypt_model_print_comm(&model, room, sizeof(room)));
            UNIT_CHECK(0 == strcmp(room, "0:5.54:7.29e-05"));
            setlocale(LC_NUMERIC, "C");
            return;
        }
    }
    printf("no locale with decimal commas on this machine\n");
}

int main(void)
{
    communication();
    encryption();
    text();
    foreign_locale();
    return unit_done();
}

/* Encoding loops of every instruction set against their definitions, and packing several values at
 * a time against packing one by one. */
#include "base/hash.h"
#include "base/random.h"
#include "slc_test.h"
#include "storage/codec/bitpack.h"
#include "storage/codec/encode_ops.h"
#include "storage/codec/value_stats.h"

#include <stdlib.h>
#include <string.h>

enum { NNZ = 203 };

static uint64_t random_word(uint64_t index)
{
    return slc_random_u64(slc_test_seed(), 78, index);
}

/* Calls `check` with each available table. */
static void for_each_table(void (*check)(const struct slc_encode_ops *ops))
{
    const struct slc_encode_ops *tables[] = {slc_encode_ops_portable(), slc_encode_ops_avx512()};

    for (unsigned t = 0; t < SLC_COUNT(tables); t++) {
        if (tables[t] != NULL) {
            check(tables[t]);
        }
    }
}

/* One nonzero at a time, from the definitions in docs/FORMAT.md. */
static void check_survey(const struct slc_encode_ops *ops, const struct slc_tile_source *source)
{
    struct slc_value_survey survey;
    double squares = 0, low = source->values[0], high = low;
    uint64_t content = 0;
    bool all_f32 = true, all_integer = true;

    for (uint32_t i = 0; i < source->nnz; i++) {
        const double value = source->values[i];
        const uint64_t hi = source->key_hi == NULL ? source->upper : source->key_hi[i];
        uint64_t bits;

        memcpy(&bits, &value, sizeof bits);
        squares += value * value;
        content += slc_content_term(source->key_lo[i], hi, bits);
        low = value < low ? value : low;
        high = value > high ? value : high;
        all_f32 = all_f32 && (double)(float)value == value;
        all_integer =
            all_integer && value >= -0x1p53 && value <= 0x1p53 && (double)(int64_t)value == value;
    }
    ops->survey(source, &survey);
    CU_ASSERT_EQUAL(memcmp(&survey.squares, &squares, sizeof squares), 0);
    CU_ASSERT_EQUAL(survey.content, content);
    CU_ASSERT_EQUAL(survey.low, low);
    CU_ASSERT_EQUAL(survey.high, high);
    CU_ASSERT_EQUAL(survey.all_f32, all_f32);
    CU_ASSERT_EQUAL(survey.all_integer, all_integer);
}

/* Values of every kind; each special value alone among integers, at every position. */
static void check_surveys(const struct slc_encode_ops *ops)
{
    static const double special[] = {0.5,         0.1,        0x1p53,    0x1p53 + 2, -0x1p53,
                                     -0x1p53 - 2, 0x1.8p1000, 0x1p-1074, -0x1p128,   16777217};
    uint64_t lo[NNZ], hi[NNZ];
    double values[NNZ];

    for (uint32_t i = 0; i < NNZ; i++) {
        lo[i] = random_word(2 * i);
        hi[i] = random_word(2 * i + 1);
        values[i] = (double)(int64_t)(random_word(900 + i) % 2000) - 1000.5;
    }
    for (uint32_t nnz = 1; nnz <= NNZ; nnz += nnz < 20 ? 1 : 61) {
        struct slc_tile_source source = {nnz, lo, hi, values, 0};

        check_survey(ops, &source);
        source.key_hi = NULL;
        source.upper = 12345;
        check_survey(ops, &source);
    }
    for (uint32_t i = 0; i < NNZ; i++) {
        values[i] = (double)(1 + random_word(i) % 100);
    }
    for (uint32_t s = 0; s < SLC_COUNT(special); s++) {
        for (uint32_t at = 0; at < 19; at++) {
            const struct slc_tile_source source = {19, lo, NULL, values, 0};
            const double kept = values[at];

            values[at] = special[s];
            check_survey(ops, &source);
            values[at] = kept;
        }
    }
}

static void test_survey(void)
{
    for_each_table(check_surveys);
}

static void check_above(const struct slc_encode_ops *ops)
{
    static const int64_t lows[] = {0, -7, -(INT64_C(1) << 53)};

    for (uint32_t count = 1; count <= 40; count++) {
        for (uint32_t l = 0; l < SLC_COUNT(lows); l++) {
            double values[40];
            uint64_t above[41];
            bool equal = true;

            for (uint32_t i = 0; i < count; i++) {
                values[i] = (double)(lows[l] + (int64_t)(random_word(i) >> 11));
            }
            above[count] = 0xee;
            ops->above(values, count, lows[l], above);
            for (uint32_t i = 0; i < count; i++) {
                equal = equal && above[i] == (uint64_t)((int64_t)values[i] - lows[l]);
            }
            CU_ASSERT(equal);
            CU_ASSERT_EQUAL(above[count], 0xee);
        }
    }
}

static void test_above(void)
{
    for_each_table(check_above);
}

static void check_longer(const struct slc_encode_ops *ops)
{
    for (uint32_t count = 1; count <= SLC_GROUP_NNZ; count += count < 20 ? 1 : 27) {
        for (unsigned bits = 0; bits <= 64; bits++) {
            uint64_t *values = malloc(count * sizeof *values); /* exact size */
            uint8_t longer[64];
            unsigned longest = 0, found;

            for (uint32_t i = 0; i < count; i++) {
                unsigned length = (unsigned)(random_word(i) % (bits + 1));

                values[i] = random_word(1000 + i + bits) & slc_low_mask(length);
                length = slc_bit_length_u64(values[i]);
                longest = length > longest ? length : longest;
            }
            found = ops->longer(values, count, longer);
            CU_ASSERT_EQUAL_FATAL(found, longest);
            for (unsigned width = 0; width < longest; width++) {
                uint32_t above = 0;

                for (uint32_t i = 0; i < count; i++) {
                    above += slc_bit_length_u64(values[i]) > width;
                }
                CU_ASSERT_EQUAL(longer[width], above);
            }
            free(values);
        }
    }
}

static void test_longer(void)
{
    for_each_table(check_longer);
}

/* The same bytes as packing one value after the other, and none after them. */
static void test_pack(void)
{
    for (unsigned width = 0; width <= SLC_MAX_KEY_BITS; width++) {
        for (uint32_t count = 1; count <= NNZ; count += count < 20 ? 1 : 61) {
            uint64_t lo[NNZ], hi[NNZ];
            const uint64_t bytes = slc_packed_bytes(count, width);
            uint8_t packed[NNZ * 16 + 1], expected[NNZ * 16 + 8];
            struct slc_bit_writer writer = {expected, 0, 0};

            for (uint32_t i = 0; i < count; i++) {
                lo[i] = random_word(i);
                hi[i] = random_word(1000 + i);
                slc_bits_put_wide(&writer, lo[i], hi[i], width);
            }
            (void)slc_bits_finish(&writer);
            packed[bytes] = 0xee;
            CU_ASSERT_PTR_EQUAL(slc_bits_pack(lo, width <= 64 ? NULL : hi, count, width, packed),
                                packed + bytes);
            CU_ASSERT_EQUAL(memcmp(packed, expected, bytes), 0);
            CU_ASSERT_EQUAL(packed[bytes], 0xee);
        }
    }
}

/* Statistics by definition: a list of the distinct values, sorted by insertion. */
static void expect_stats(const double *values, uint32_t count, struct slc_value_stats *stats)
{
    double all[NNZ] = {0};
    unsigned distinct = 0;

    *stats = (struct slc_value_stats){.integers = true, .low = values[0], .high = values[0]};
    for (uint32_t i = 0; i < count; i++) {
        unsigned at = distinct;
        bool known = false;

        for (unsigned k = 0; k < distinct; k++) {
            known = known || all[k] == values[i];
        }
        for (; !known && at > 0 && all[at - 1] > values[i]; at--) {
            all[at] = all[at - 1];
        }
        all[known ? distinct : at] = known ? 0 : values[i];
        distinct += !known;
        stats->zeros += values[i] == 0;
        stats->integers = stats->integers && values[i] == (double)(int64_t)values[i];
    }
    stats->low = all[0];
    stats->high = all[distinct - 1];
    stats->distinct = distinct > SLC_DISTINCT_MAX ? SLC_DISTINCT_MAX + 1 : distinct;
    if (distinct <= SLC_DISTINCT_MAX) {
        memcpy(stats->listed, all, distinct * sizeof *all);
    }
}

/* Statistics of few and many distinct values, and the same merged from pieces in both orders. */
static void test_stats(void)
{
    for (unsigned round = 0; round < 400; round++) {
        const unsigned kinds = 1 + round % 20;
        struct slc_value_stats want, got, pieces[2] = {{.distinct = 0}, {.distinct = 0}};
        double values[NNZ];

        for (uint32_t i = 0; i < NNZ - 1; i++) {
            values[i] = (double)(random_word(round * NNZ + i) % kinds) - (round % 3 == 0 ? 4 : 0);
            values[i] *= round % 2 == 0 ? 0.5 : 3;
        }
        expect_stats(values, NNZ - 1, &want);
        got = want;
        got.distinct = 99;
        slc_value_stats_collect(&got, values, NNZ - 1);
        CU_ASSERT(slc_value_stats_same(&got, &want));
        for (uint32_t i = 0; i < NNZ - 1; i += 29) {
            const uint32_t count = NNZ - 1 - i < 29 ? NNZ - 1 - i : 29;

            expect_stats(values + i, count, &got);
            slc_value_stats_collect(&got, values + i, count);
            slc_value_stats_merge(&pieces[0], &got);
            slc_value_stats_merge(&got, &pieces[1]);
            pieces[1] = got;
        }
        CU_ASSERT(slc_value_stats_same(&pieces[0], &want));
        CU_ASSERT(slc_value_stats_same(&pieces[1], &want));
    }
}

static const struct slc_test tests[] = {
    {"statistics of values", test_stats},
    {"surveys of values", test_survey},
    {"integers above the smallest", test_above},
    {"lengths in bits", test_longer},
    {"packing several values at a time", test_pack},
};

SLC_SUITE(encode_ops)
{
    return slc_test_main("encode_ops", tests, SLC_COUNT(tests), argc, argv);
}

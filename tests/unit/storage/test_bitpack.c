/* Packed bits and patched groups: round trips at every width, costs against a brute-force search,
 * each check of the reader, and the unpacking loops of all instruction sets against bit
 * arithmetic. */
#include "base/random.h"
#include "slc_test.h"
#include "storage/codec/bitpack.h"
#include "storage/codec/decode_ops.h"

#include <stdlib.h>
#include <string.h>

enum { SLACK = 64, ROOM = SLC_GROUP_NNZ + 16 };

static uint64_t random_word(uint64_t index)
{
    return slc_random_u64(slc_test_seed(), 77, index);
}

/* Returns bit `bit` of a byte string, by the definition. */
static unsigned bit_of(const uint8_t *bytes, uint64_t bit)
{
    return bytes[bit / 8] >> (bit % 8) & 1;
}

static void test_bits(void)
{
    uint8_t bytes[3 * 200 + 16];
    uint64_t index = 0;

    for (unsigned width = 0; width <= 64; width++) {
        struct slc_bit_writer writer = {bytes, 0, 0};
        uint64_t values[20];
        uint8_t *end;

        memset(bytes, 0xee, sizeof bytes);
        for (unsigned i = 0; i < 20; i++) {
            values[i] = random_word(index++) & slc_low_mask(width);
            slc_bits_put(&writer, values[i], width);
        }
        end = slc_bits_finish(&writer);
        CU_ASSERT_EQUAL((uint64_t)(end - bytes), slc_packed_bytes(20, width));
        CU_ASSERT_EQUAL(*end, 0xee);
        for (unsigned i = 0; i < 20; i++) {
            uint64_t slow = 0;

            for (unsigned b = 0; b < width; b++) {
                slow |= (uint64_t)bit_of(bytes, (uint64_t)i * width + b) << b;
            }
            CU_ASSERT_EQUAL(slow, values[i]);
            CU_ASSERT_EQUAL(slc_bits_get(bytes, (uint64_t)i * width, width), values[i]);
        }
        CU_ASSERT(slc_bits_zero_from(bytes, UINT64_C(20) * width, (uint64_t)(end - bytes)));
    }
}

/* All unpacking loops, every width and count, on buffers of the exact size. */
static void test_unpack(void)
{
    const struct slc_decode_ops *tables[] = {slc_decode_ops_portable(), slc_decode_ops_avx2(),
                                             slc_decode_ops_avx512(), slc_decode_ops_neon()};

    for (unsigned width = 0; width <= 64; width++) {
        for (uint32_t count = 1; count <= SLC_GROUP_NNZ; count += count < 20 ? 1 : 27) {
            uint64_t bytes = slc_packed_bytes(count, width);
            uint8_t *packed = malloc(bytes + SLACK);

            for (uint64_t i = 0; i < bytes + SLACK; i++) {
                packed[i] = (uint8_t)random_word(i * 131 + width);
            }
            for (unsigned t = 0; t < SLC_COUNT(tables); t++) {
                uint64_t values[ROOM];
                bool equal = true;

                if (tables[t] == NULL) {
                    continue;
                }
                tables[t]->unpack(packed, width, count, values);
                for (uint32_t i = 0; i < count; i++) {
                    equal &= values[i] == slc_bits_get(packed, (uint64_t)i * width, width);
                }
                CU_ASSERT(equal);
            }
            free(packed);
        }
    }
}

/* The other loops against their definitions. */
static void test_loops(void)
{
    const struct slc_decode_ops *tables[] = {slc_decode_ops_portable(), slc_decode_ops_avx2(),
                                             slc_decode_ops_avx512(), slc_decode_ops_neon()};

    for (unsigned t = 0; t < SLC_COUNT(tables); t++) {
        for (uint32_t round = 0; round < 120 && tables[t] != NULL; round++) {
            uint32_t count = 1 + (uint32_t)(random_word(round) % SLC_GROUP_NNZ);
            uint64_t mask = random_word(round + 1000) & random_word(round + 2000);
            uint64_t words[ROOM], keys[ROOM], wide[ROOM], key = random_word(round) - 1, most = 0;
            uint32_t narrow[ROOM], base = (uint32_t)random_word(round + 3000), largest = 0;
            struct slc_gather gather;
            bool equal = true;

            /* Masks that span at most 32 bits use another code path. */
            mask = round % 2 == 0 ? mask : mask >> 32 << (round % 33);
            mask = round == 0 ? 0 : round == 1 ? UINT64_MAX : mask;
            slc_gather_init(&gather, mask);
            CU_ASSERT_EQUAL(gather.bits, (unsigned)__builtin_popcountll(mask));
            for (uint32_t i = 0; i < ROOM; i++) {
                words[i] = random_word(10000 + i + 500 * round);
            }
            tables[t]->sum(words, count, key + 1, keys);
            tables[t]->gather(&gather, words, count, narrow);
            tables[t]->gather_wide(&gather, words, count, wide);
            for (uint32_t i = 0; i < count; i++) {
                uint32_t field = (uint32_t)slc_bits_gather(words[i], mask);

                key += words[i] + 1;
                equal &= keys[i] == key && wide[i] == slc_bits_gather(words[i], mask) &&
                         narrow[i] == field;
                largest = field - base > largest ? field - base : largest;
            }
            CU_ASSERT_EQUAL(tables[t]->subtract_base(narrow, count, base), largest);
            for (uint32_t i = 0; i < count; i++) {
                equal &= narrow[i] == (uint32_t)slc_bits_gather(words[i], mask) - base;
                keys[i] = (words[i] >> 7 & 0xfffff) + base;
                most = keys[i] > most ? keys[i] : most;
            }
            CU_ASSERT_EQUAL(
                tables[t]->field((const uint8_t *)words, count, 7, 0xfffff, base, narrow), most);
            for (uint32_t i = 0; i < count; i++) {
                equal &= narrow[i] == (uint32_t)keys[i];
            }
            CU_ASSERT(equal);
        }
    }
}

static unsigned length_of(const uint64_t *lo, const uint64_t *hi, uint32_t i)
{
    return slc_bit_length_u128(lo[i], hi == NULL ? 0 : hi[i]);
}

/* Returns the bytes of a group at the cheapest width, by trying all widths. */
static uint64_t cheapest(const uint64_t *lo, const uint64_t *hi, uint32_t size, unsigned *at_width)
{
    uint64_t best = UINT64_MAX;

    for (unsigned width = 0; width <= 128; width++) {
        unsigned extra = 0;
        uint64_t exceptions = 0, bytes;

        for (uint32_t i = 0; i < size; i++) {
            unsigned length = length_of(lo, hi, i);

            if (length > width) {
                exceptions++;
                extra = length - width > extra ? length - width : extra;
            }
        }
        bytes = slc_packed_bytes(size, width) + exceptions + slc_packed_bytes(exceptions, extra);
        if (bytes < best) {
            best = bytes;
            *at_width = width;
        }
    }
    return best;
}

/* Random values with exceptions; the plan is optimal and the groups decode to the values. */
static void test_patched(void)
{
    static uint64_t lo[1000], hi[1000];
    uint64_t index = 50000;

    for (unsigned round = 0; round < 300; round++) {
        uint32_t count = 1 + (uint32_t)(random_word(index++) % 1000);
        unsigned common = (unsigned)(random_word(index++) % 129);
        unsigned rare = (unsigned)(random_word(index++) % 129), longest = 0;
        bool wide = round % 2 == 0;
        struct slc_patched_plan plan;
        struct slc_patched_view view;
        struct slc_damage damage;
        uint64_t bytes = 0, used = 0, out_lo[ROOM], out_hi[ROOM];
        uint8_t *packed, *end;
        bool equal = true;

        for (uint32_t i = 0; i < count; i++) {
            unsigned width = random_word(index++) % 20 == 0 ? rare : common;

            width = wide ? width : width / 2;
            lo[i] = random_word(index++) & slc_low_mask(width);
            hi[i] = width > 64 ? random_word(index++) & slc_low_mask(width - 64) : 0;
            longest = length_of(lo, hi, i) > longest ? length_of(lo, hi, i) : longest;
        }
        slc_patched_measure(lo, wide ? hi : NULL, count, &plan);
        for (uint32_t g = 0; g < slc_groups_of(count); g++) {
            unsigned width = 0;

            bytes += cheapest(lo + 128 * g, hi + 128 * g, slc_group_size(count, g), &width);
            CU_ASSERT_EQUAL(plan.width[g], width);
        }
        bytes += (3 * slc_groups_of(count) + 7) & ~7U;
        CU_ASSERT_EQUAL(plan.bytes, bytes);
        CU_ASSERT(bytes <= slc_patched_bound(count, longest));
        packed = calloc(1, bytes + SLACK);
        end = slc_patched_write(&plan, lo, wide ? hi : NULL, packed);
        CU_ASSERT_EQUAL((uint64_t)(end - packed), bytes);
        CU_ASSERT_FATAL(slc_patched_open(&view, packed, bytes, count, longest, &used, &damage));
        CU_ASSERT_EQUAL(used, bytes);
        for (uint32_t g = 0; g < slc_groups_of(count); g++) {
            uint32_t size = slc_group_size(count, g);

            CU_ASSERT(slc_patched_group(&view, slc_decode_ops()->unpack, g, out_lo,
                                        longest > 64 ? out_hi : NULL, &damage));
            equal &= memcmp(out_lo, lo + 128 * g, size * sizeof *lo) == 0;
            equal &= longest <= 64 || memcmp(out_hi, hi + 128 * g, size * sizeof *hi) == 0;
        }
        CU_ASSERT(equal);
        CU_ASSERT(longest == 0 ||
                  !slc_patched_open(&view, packed, bytes, count, longest - 1, &used, &damage));
        CU_ASSERT(!slc_patched_open(&view, packed, bytes - 1, count, longest, &used, &damage) ||
                  bytes == used + 1);
        free(packed);
    }
}

/* Encodes a group of 100 values, of which two are exceptions and the others are below 16, and
 * violates each rule once. */
static void test_damage(void)
{
    uint64_t lo[100], values[ROOM], used;
    uint8_t good[400], bytes[400];
    struct slc_patched_plan plan;
    struct slc_patched_view view;
    struct slc_damage damage;
    /* Bytes: 8 of widths, 50 of low bits, positions 10 and 90, and two high parts of 16 bits. */
    static const struct {
        unsigned at;
        uint8_t value;
        const char *what;
    } cases[] = {
        {0, 65, "the width of a group"},
        {0, 6, "the size of the groups"},
        {1, 0, "the exception width of a group with exceptions"},
        {1, 61, "the width of a group"},
        {2, 0, "the exception width of a group without exceptions"},
        {2, 101, "the number of exceptions of a group"},
        {3, 1, "padding after group widths"},
        {7, 1, "padding after group widths"},
        {58, 90, "the position of an exception"},
        {59, 10, "the position of an exception"},
        {59, 100, "the position of an exception"},
    };

    for (unsigned i = 0; i < 100; i++) {
        lo[i] = i % 16;
    }
    lo[10] = 0xfffff;
    lo[90] = 0xffff3;
    memset(good, 0, sizeof good);
    slc_patched_measure(lo, NULL, 100, &plan);
    CU_ASSERT_EQUAL(plan.width[0], 4);
    CU_ASSERT_EQUAL(plan.extra[0], 16);
    CU_ASSERT_EQUAL(plan.exceptions[0], 2);
    CU_ASSERT_EQUAL_FATAL(plan.bytes, 64);
    slc_patched_write(&plan, lo, NULL, good);
    CU_ASSERT(slc_patched_open(&view, good, 64, 100, 64, &used, &damage));
    CU_ASSERT(slc_patched_group(&view, slc_decode_ops()->unpack, 0, values, NULL, &damage));
    for (size_t c = 0; c < SLC_COUNT(cases); c++) {
        memcpy(bytes, good, sizeof bytes);
        bytes[cases[c].at] = cases[c].value;
        CU_ASSERT(!slc_patched_open(&view, bytes, 64, 100, 64, &used, &damage) ||
                  !slc_patched_group(&view, slc_decode_ops()->unpack, 0, values, NULL, &damage));
        CU_ASSERT(strstr(damage.what, cases[c].what) != NULL);
        CU_ASSERT(damage.where >= bytes && damage.where < bytes + 64);
    }
    memcpy(bytes, good, sizeof bytes);
    bytes[60] = 0; /* the first high part becomes zero */
    bytes[61] = 0;
    CU_ASSERT(slc_patched_open(&view, bytes, 64, 100, 64, &used, &damage));
    CU_ASSERT(!slc_patched_group(&view, slc_decode_ops()->unpack, 0, values, NULL, &damage));
    CU_ASSERT_STRING_EQUAL(damage.what, "the high part of an exception");
    CU_ASSERT(!slc_patched_open(&view, good, 7, 100, 64, &used, &damage));
    CU_ASSERT_STRING_EQUAL(damage.what, "the number of bytes for group widths");
}

static const struct slc_test tests[] = {
    {"bits of every width", test_bits},
    {"every unpacking loop at every width", test_unpack},
    {"sums, gathers and fields of every table", test_loops},
    {"patched groups are cheapest and come back", test_patched},
    {"broken groups are refused", test_damage},
};

SLC_SUITE(bitpack)
{
    return slc_test_main("bitpack", tests, SLC_COUNT(tests), argc, argv);
}

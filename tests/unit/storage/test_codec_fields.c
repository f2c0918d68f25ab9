/* Fields extracted from keys: every table of decoding loops agrees with the definition of each
 * field, for any disjoint masks and any bit matrices that they need. */
#include "codec_image.h"
#include "slc_test.h"
#include "storage/codec/decode_ops.h"

/* COUNT_MAX keys are several blocks of keys that decode_avx512_fields.c processes together. */
enum { COUNT_MAX = 600, ROOM = COUNT_MAX + 16 };

static uint32_t offsets[SLC_MAX_ORDER][ROOM];

static const struct slc_decode_ops *table(unsigned t)
{
    return t == 0   ? slc_decode_ops_portable()
           : t == 1 ? slc_decode_ops_avx2()
           : t == 2 ? slc_decode_ops_avx512()
                    : slc_decode_ops_neon();
}

/* Assigns every bit of a key to one of `count` fields or to none; a field gets at most 32. */
static void draw_masks(struct random_stream *random, unsigned count, uint64_t masks[SLC_MAX_ORDER])
{
    const unsigned scattered = (unsigned)draw_below(random, 2);
    unsigned owner = 0;

    for (unsigned f = 0; f < SLC_MAX_ORDER; f++) {
        masks[f] = 0;
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        /* Assign scattered bits, or runs of a few bits each. */
        if (scattered || draw_below(random, 6) == 0) {
            owner = (unsigned)draw_below(random, count + 1);
        }
        if (owner < count && __builtin_popcountll(masks[owner]) < 32) {
            masks[owner] |= UINT64_C(1) << bit;
        }
    }
}

static bool equals_definition(const struct slc_fields *plan,
                              const uint64_t *keys,
                              uint32_t count,
                              const uint32_t *largest)
{
    bool equal = true;

    for (unsigned f = 0; f < plan->count; f++) {
        const struct slc_field *field = &plan->field[f];
        uint32_t most = 0;

        for (uint32_t i = 0; i < count; i++) {
            uint32_t offset = (uint32_t)slc_bits_gather(keys[i], field->gather->mask) - field->base;

            equal &= field->offsets[i] == offset;
            most = offset > most ? offset : most;
        }
        equal &= largest[f] == most;
    }
    return equal;
}

/* Checks plans that need only bits of the lower halves. */
static void check_small(const struct slc_decode_ops *ops,
                        const struct slc_fields *plan,
                        const uint64_t *keys,
                        uint32_t count)
{
    uint32_t small[ROOM], largest[SLC_MAX_ORDER];

    for (unsigned f = 0; f < plan->count; f++) {
        if (plan->field[f].gather->mask > UINT32_MAX) {
            return;
        }
    }
    for (uint32_t i = 0; i < ROOM; i++) {
        small[i] = (uint32_t)keys[i];
    }
    ops->small_fields(plan, small, count, largest);
    CU_ASSERT(equals_definition(plan, keys, count, largest));
}

static void check_plan(struct random_stream *random, const struct slc_fields *plan, uint32_t count)
{
    uint64_t keys[ROOM];
    uint32_t largest[SLC_MAX_ORDER];

    for (uint32_t i = 0; i < ROOM; i++) {
        keys[i] = draw(random);
    }
    for (unsigned t = 0; t < 4; t++) {
        if (table(t) != NULL) {
            table(t)->fields(plan, keys, count, largest);
            CU_ASSERT(equals_definition(plan, keys, count, largest));
        }
        if (table(t) != NULL && table(t)->small_fields != NULL) {
            check_small(table(t), plan, keys, count);
        }
    }
}

static void test_random_masks(void)
{
    struct random_stream random = {slc_test_seed(), 1, 0};
    static struct slc_fields plan;

    for (unsigned round = 0; round < 400; round++) {
        struct slc_gather gathers[SLC_MAX_ORDER];
        uint64_t masks[SLC_MAX_ORDER];

        draw_masks(&random, 1 + round % SLC_MAX_ORDER, masks);
        for (unsigned f = 0; f < SLC_MAX_ORDER && round % 2 == 1; f++) {
            masks[f] &= UINT32_MAX;
        }
        slc_fields_clear(&plan);
        for (unsigned f = 0; f < SLC_MAX_ORDER; f++) {
            slc_gather_init(&gathers[f], masks[f]);
            if (masks[f] != 0) {
                uint32_t base = (uint32_t)draw_below(&random, 1 + slc_low_mask(gathers[f].bits));

                slc_fields_add(&plan, &gathers[f], base, f, offsets[f]);
            }
        }
        check_plan(&random, &plan, 1 + (uint32_t)draw_below(&random, COUNT_MAX));
    }
}

/* One field from bit 0 on, and the first keys that agree above it. */
static void test_small_low(void)
{
    struct random_stream random = {slc_test_seed(), 3, 0};

    for (unsigned round = 0; round < 400; round++) {
        const struct slc_decode_ops *ops = table(round % 4);
        const uint32_t count = 1 + (uint32_t)draw_below(&random, COUNT_MAX);
        const unsigned bits = (unsigned)draw_below(&random, 25);
        const uint32_t mask = (uint32_t)slc_low_mask(bits);
        const uint32_t base = (uint32_t)draw_below(&random, 1 + (uint64_t)mask);
        uint32_t keys[ROOM], begin[ROOM], low[ROOM], key = (uint32_t)draw(&random), runs = 0;
        uint32_t most = 0, found;
        bool equal = true;

        if (ops == NULL || ops->small_low == NULL) {
            continue;
        }
        for (uint32_t i = 0; i < ROOM; i++) {
            keys[i] = key += 1 + (uint32_t)draw_below(&random, 1 + mask / 4);
        }
        found = ops->small_runs(keys, count, bits, begin);
        for (uint32_t i = 0; i < count; i++) {
            most = (keys[i] & mask) - base > most ? (keys[i] & mask) - base : most;
        }
        CU_ASSERT_EQUAL(ops->small_low(keys, count, mask, base, low), most);
        for (uint32_t i = 0; i < count; i++) {
            equal &= low[i] == (keys[i] & mask) - base;
            if (i == 0 || keys[i] >> bits != keys[i - 1] >> bits) {
                equal &= begin[runs++] == i;
            }
        }
        CU_ASSERT(equal && runs == found);
    }
}

/* The largest number of matrices, and of terms: a byte that depends on every key byte. */
static void test_limits(void)
{
    struct random_stream random = {slc_test_seed(), 2, 0};
    static struct slc_fields plan;
    struct slc_gather gathers[SLC_MAX_ORDER];

    slc_fields_clear(&plan);
    for (unsigned f = 0; f < SLC_MAX_ORDER; f++) {
        slc_gather_init(&gathers[f], UINT64_C(0x5555555555555555) << f % 2);
        slc_fields_add(&plan, &gathers[f], f, f, offsets[f]);
    }
    CU_ASSERT_EQUAL(plan.matrices, SLC_MAX_ORDER / 2);
    check_plan(&random, &plan, COUNT_MAX);
    slc_fields_clear(&plan);
    slc_gather_init(&gathers[0], 0x0101010101010101);
    slc_fields_add(&plan, &gathers[0], 0, 0, offsets[0]);
    CU_ASSERT_EQUAL(plan.matrix[0].terms, 8);
    check_plan(&random, &plan, COUNT_MAX);
}

static const struct slc_test tests[] = {
    {"random fields by every table", test_random_masks},
    {"as many matrices and terms as there can be", test_limits},
    {"one field from bit 0 and the beginnings of runs", test_small_low},
};

SLC_SUITE(codec_fields)
{
    return slc_test_main("codec_fields", tests, SLC_COUNT(tests), argc, argv);
}

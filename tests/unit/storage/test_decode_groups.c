/* Loops that decode whole groups at once (decode_ops.h: keys, integers, lookup, byte_runs), of
 * every instruction set, against groups unpacked one by one by slc_patched_group and plain
 * arithmetic, also with every byte of the groups changed. */
#include "base/random.h"
#include "slc_test.h"
#include "storage/codec/bitpack.h"
#include "storage/codec/decode_ops.h"

#include <stdlib.h>
#include <string.h>

enum { TABLES = 4, SLACK = 64, GROUPS_MOST = 19, VALUES_MOST = GROUPS_MOST * SLC_GROUP_NNZ };

static uint64_t next_word;

static uint64_t draw(uint64_t limit)
{
    return slc_random_below(slc_test_seed(), 78, next_word++, limit);
}

static const struct slc_decode_ops *table(unsigned t)
{
    return t == 0   ? slc_decode_ops_portable()
           : t == 1 ? slc_decode_ops_avx2()
           : t == 2 ? slc_decode_ops_avx512()
                    : slc_decode_ops_neon();
}

/* Patched groups in memory of exactly their size plus the slack. */
struct sequence {
    uint64_t values[VALUES_MOST];
    uint8_t *bytes;
    uint64_t size;
    struct slc_patched_view view;
};

static bool sequence_open(struct sequence *sequence, uint32_t count)
{
    struct slc_damage damage;
    uint64_t used;

    return slc_patched_open(&sequence->view, sequence->bytes, sequence->size, count, 64, &used,
                            &damage);
}

static void sequence_make(struct sequence *sequence, uint32_t count)
{
    struct slc_patched_plan plan;

    slc_patched_measure(sequence->values, NULL, count, &plan);
    sequence->size = plan.bytes;
    sequence->bytes = malloc(plan.bytes + SLACK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(sequence->bytes);
    memset(sequence->bytes, 0xa5, plan.bytes + SLACK);
    slc_patched_write(&plan, sequence->values, NULL, sequence->bytes);
    CU_ASSERT_FATAL(sequence_open(sequence, count));
}

/* Most values have `common` bits, some are longer: none, few or half, by group. */
static void draw_values(struct sequence *sequence, uint32_t count, unsigned common, unsigned rare)
{
    uint64_t odds = 1;

    for (uint32_t i = 0; i < count; i++) {
        if (i % SLC_GROUP_NNZ == 0) {
            odds = (uint64_t[]){2, 10, 60, 100000}[draw(4)];
        }
        sequence->values[i] = draw(UINT64_C(1) << (draw(odds) == 0 ? rare : common));
    }
}

static bool keys_right(const struct slc_decode_ops *ops,
                       const struct sequence *sequence,
                       uint32_t group,
                       uint32_t groups)
{
    static uint64_t keys[VALUES_MOST + 16];
    uint64_t key = 12345 - 1;

    if (!ops->keys(&sequence->view, group, groups, key + 1, keys)) {
        return false;
    }
    for (uint32_t i = 0; i < groups * SLC_GROUP_NNZ; i++) {
        key += sequence->values[group * SLC_GROUP_NNZ + i] + 1;
        if (keys[i] != key) {
            return false;
        }
    }
    return true;
}

/* No gap is so long that a group of them could reach 2^32. */
static bool small_groups(const struct sequence *sequence, uint32_t group, uint32_t groups)
{
    bool small = true;

    for (uint32_t g = group; g < group + groups; g++) {
        small &= sequence->view.widths[g] + sequence->view.extras[g] <= 24;
    }
    return small;
}

/* Lower halves of keys, from the point where they pass 2^32. */
static bool small_keys_right(const struct slc_decode_ops *ops,
                             const struct sequence *sequence,
                             uint32_t group,
                             uint32_t groups)
{
    static uint32_t keys[VALUES_MOST + 16];
    uint32_t key = UINT32_MAX - 200;

    if (ops->small_keys == NULL) {
        return true;
    }
    if (!ops->small_keys(&sequence->view, group, groups, key + 1, keys)) {
        return !small_groups(sequence, group, groups);
    }
    for (uint32_t i = 0; i < groups * SLC_GROUP_NNZ; i++) {
        key += (uint32_t)sequence->values[group * SLC_GROUP_NNZ + i] + 1;
        if (keys[i] != key) {
            return false;
        }
    }
    return true;
}

/* Valid input of byte_runs: gaps within the bits of a run, with as many exceptions as small_keys
 * accepts. */
static bool
byte_groups(const struct sequence *sequence, uint32_t group, uint32_t groups, unsigned bits)
{
    bool short_gaps = small_groups(sequence, group, groups);

    for (uint32_t g = group; g < group + groups; g++) {
        short_gaps &= sequence->view.widths[g] <= bits;
    }
    return short_gaps;
}

/* Runs of `bits` key bits, of which the lowest `own` belong to their own field. */
static bool byte_runs_right(const struct slc_decode_ops *ops,
                            const struct sequence *sequence,
                            uint32_t group,
                            uint32_t groups,
                            unsigned bits,
                            unsigned own)
{
    static uint32_t offsets[VALUES_MOST + 16], begin[VALUES_MOST + 16], heads[VALUES_MOST + 16];
    const uint8_t mask = (uint8_t)slc_low_mask(own), base = (uint8_t)draw((uint64_t)mask + 1);
    uint32_t key = draw(2) == 0 ? UINT32_MAX : UINT32_MAX - 200, count = 0, largest = 0;
    struct slc_byte_runs runs = {.first = key + 1,
                                 .bits = bits,
                                 .mask = mask,
                                 .base = base,
                                 .offsets = offsets,
                                 .begin = begin,
                                 .heads = heads};
    bool right = true;

    if (ops->byte_runs == NULL) {
        return true;
    }
    if (!ops->byte_runs(&sequence->view, group, groups, &runs)) {
        return !byte_groups(sequence, group, groups, bits);
    }
    for (uint32_t i = 0; i < groups * SLC_GROUP_NNZ; i++) {
        const uint32_t before = key;
        uint8_t offset;

        key += (uint32_t)sequence->values[group * SLC_GROUP_NNZ + i] + 1;
        offset = (uint8_t)((key & mask) - base);
        largest = offset > largest ? offset : largest;
        if (i == 0 || key >> bits != before >> bits) {
            right &= begin[count] == i && heads[count] == (key >> bits) << bits;
            count++;
        }
        right &= offsets[i] == offset;
        right &= (i + 1) % SLC_GROUP_NNZ != 0 || runs.ends[i / SLC_GROUP_NNZ] == key;
    }
    return right && runs.runs == count && runs.largest == largest;
}

static bool integers_right(const struct slc_decode_ops *ops,
                           const struct sequence *sequence,
                           uint32_t group,
                           uint32_t groups,
                           double low)
{
    static double values[VALUES_MOST + 16];
    bool equal = true, zero = false;
    const bool sound = ops->integers(&sequence->view, group, groups, low, false, values);

    for (uint32_t i = 0; i < groups * SLC_GROUP_NNZ; i++) {
        const double want = (double)sequence->values[group * SLC_GROUP_NNZ + i] + low;

        zero |= want == 0;
        equal &= values[i] == want;
    }
    equal &= ops->integers(&sequence->view, group, groups, low, true, values);
    for (uint32_t i = 0; i < groups * SLC_GROUP_NNZ; i++) {
        equal &= values[i] == (double)sequence->values[group * SLC_GROUP_NNZ + i] + low;
    }
    return sound == !zero && equal;
}

static void test_groups(void)
{
    static struct sequence sequence;

    for (unsigned round = 0; round < 200; round++) {
        const uint32_t groups = 1 + (uint32_t)draw(GROUPS_MOST);
        const unsigned common = (unsigned)draw(round % 2 == 0 ? 12 : 30);
        const unsigned rare = common + (unsigned)draw(round % 2 == 0 ? 13 : 23);

        draw_values(&sequence, groups * SLC_GROUP_NNZ, common, rare);
        sequence_make(&sequence, groups * SLC_GROUP_NNZ);
        CU_ASSERT(sequence.view.all_short && sequence.view.bits_max <= 52);
        for (unsigned t = 0; t < TABLES; t++) {
            const uint32_t from = (uint32_t)draw(groups);

            if (table(t) == NULL) {
                continue;
            }
            CU_ASSERT(keys_right(table(t), &sequence, 0, groups));
            CU_ASSERT(keys_right(table(t), &sequence, from, groups - from));
            CU_ASSERT(small_keys_right(table(t), &sequence, 0, groups));
            CU_ASSERT(small_keys_right(table(t), &sequence, from, groups - from));
            CU_ASSERT(integers_right(table(t), &sequence, 0, groups, 1.0));
            CU_ASSERT(integers_right(table(t), &sequence, 0, groups, -0x1p53));
            CU_ASSERT(integers_right(table(t), &sequence, 0, groups, 0x1p30 - 1));
            CU_ASSERT(integers_right(table(t), &sequence, from, groups - from, -5.0));
        }
        free(sequence.bytes);
    }
}

/* Groups in which none to all gaps are longer than a run, up to 24 bits and sometimes more. */
static void test_byte_runs(void)
{
    static struct sequence sequence;

    for (unsigned round = 0; round < 400; round++) {
        const uint32_t groups = 1 + (uint32_t)draw(SLC_CHUNK_GROUPS);
        const unsigned common = (unsigned)draw(10), rare = common + (unsigned)draw(26 - common);
        const uint32_t from = (uint32_t)draw(groups);

        draw_values(&sequence, groups * SLC_GROUP_NNZ, common, rare);
        sequence_make(&sequence, groups * SLC_GROUP_NNZ);
        for (unsigned t = 0; t < TABLES; t++) {
            for (unsigned bits = 1; bits <= 8 && table(t) != NULL; bits++) {
                const unsigned own = 1 + (unsigned)draw(bits);

                CU_ASSERT(byte_runs_right(table(t), &sequence, 0, groups, bits, own));
                CU_ASSERT(byte_runs_right(table(t), &sequence, from, groups - from, bits, own));
            }
        }
        free(sequence.bytes);
    }
}

static bool groups_sound(const struct sequence *sequence, uint32_t groups)
{
    uint64_t values[SLC_GROUP_NNZ + 16];
    struct slc_damage damage;

    for (uint32_t g = 0; g < groups; g++) {
        if (!slc_patched_group(&sequence->view, slc_decode_ops()->unpack, g, values, NULL,
                               &damage)) {
            return false;
        }
    }
    return true;
}

static bool refuses_alike(const struct slc_decode_ops *ops, const struct sequence *sequence)
{
    static uint64_t keys[VALUES_MOST + 16];
    static uint32_t small_keys[VALUES_MOST + 16], begin[VALUES_MOST + 16], heads[VALUES_MOST + 16];
    struct slc_byte_runs runs = {
        .bits = 8, .mask = 0xFF, .offsets = small_keys, .begin = begin, .heads = heads};
    const bool sound = groups_sound(sequence, 2);
    bool alike = ops->keys(&sequence->view, 0, 2, 0, keys) == sound;

    if (ops->small_keys != NULL) {
        alike &= ops->small_keys(&sequence->view, 0, 2, 0, small_keys) ==
                 (small_groups(sequence, 0, 2) && sound);
    }
    if (ops->byte_runs != NULL) {
        alike &= ops->byte_runs(&sequence->view, 0, 2, &runs) ==
                 (byte_groups(sequence, 0, 2, 8) && sound);
    }
    return alike;
}

/* A changed byte is rejected exactly when slc_patched_group rejects it. */
static void test_damaged_groups(void)
{
    static struct sequence sequence;

    for (unsigned round = 0; round < 12; round++) {
        draw_values(&sequence, 2 * SLC_GROUP_NNZ, 3, 17);
        sequence_make(&sequence, 2 * SLC_GROUP_NNZ);
        for (uint64_t at = 0; at < sequence.size; at++) {
            const uint8_t good = sequence.bytes[at];

            sequence.bytes[at] = (uint8_t)(good ^ (1 + draw(255)));
            for (unsigned t = 0; t < TABLES && sequence_open(&sequence, 2 * SLC_GROUP_NNZ); t++) {
                if (table(t) == NULL || !sequence.view.all_short) {
                    continue;
                }
                CU_ASSERT(refuses_alike(table(t), &sequence));
            }
            sequence.bytes[at] = good;
        }
        free(sequence.bytes);
    }
}

static bool lookup_right(const struct slc_decode_ops *ops,
                         const uint8_t *packed,
                         unsigned width,
                         uint32_t count,
                         const double *dictionary,
                         uint32_t entries)
{
    double values[300 + 16];
    bool inside = true, equal = true;
    const bool sound =
        ops->lookup(packed, width, count, (const uint8_t *)dictionary, entries, values);

    for (uint32_t i = 0; i < count; i++) {
        const uint64_t index = slc_bits_get(packed, (uint64_t)i * width, width);

        inside &= index < entries;
        equal &= index >= entries || !sound || values[i] == dictionary[index];
    }
    return sound == inside && equal;
}

static void test_lookup(void)
{
    for (unsigned width = 1; width <= 16; width++) {
        for (unsigned round = 0; round < 40; round++) {
            const uint32_t entries =
                (UINT32_C(1) << (width - 1)) + 1 + (uint32_t)draw(UINT64_C(1) << (width - 1));
            const uint32_t count = 1 + (uint32_t)draw(300);
            double *dictionary = malloc(entries * sizeof *dictionary);
            uint8_t *packed = calloc(1, slc_packed_bytes(count, width) + SLACK);
            struct slc_bit_writer writer = {packed, 0, 0};

            CU_ASSERT_FATAL(dictionary != NULL && packed != NULL);
            for (uint32_t i = 0; i < entries; i++) {
                dictionary[i] = 1.5 + i;
            }
            for (uint32_t i = 0; i < count; i++) {
                /* Every other round an index may be too large. */
                slc_bits_put(&writer, draw(round % 2 == 0 ? entries : UINT64_C(1) << width), width);
            }
            slc_bits_finish(&writer);
            for (unsigned t = 0; t < TABLES; t++) {
                CU_ASSERT(table(t) == NULL ||
                          lookup_right(table(t), packed, width, count, dictionary, entries));
            }
            free(packed);
            free(dictionary);
        }
    }
}

static const struct slc_test tests[] = {
    {"keys and integers of whole groups", test_groups},
    {"runs of at most eight bits", test_byte_runs},
    {"damaged groups are refused by all alike", test_damaged_groups},
    {"dictionaries of every width", test_lookup},
};

SLC_SUITE(decode_groups)
{
    return slc_test_main("decode_groups", tests, SLC_COUNT(tests), argc, argv);
}

/* Decoding loops for NEON, which every 64-bit Arm processor has.
 *
 * Unpacking works as in decode_avx2.c: eight values of w bits occupy exactly w bytes, so one table
 * lookup moves the bytes of two values to their vector elements, with the same table in every step
 * of a group.
 *
 * NEON has no instruction that multiplies by a bit matrix, but a lookup in a table of 16 bytes
 * multiplies 16 nibbles by half an 8 x 8 block of the matrix (struct slc_bit_matrix). The keys of a
 * step are split into planes, one vector per byte of 16 keys, and planes into nibbles; an output
 * byte of 16 keys is the sum of the lookups of its contributing nibbles. Extracting the fields of
 * three modes, of any lengths, takes about 20 instructions per key. This is a third of the cost of
 * moving the bits by shifts and masks. */
#include "storage/codec/decode_ops.h"

#if defined(__aarch64__) && defined(__AARCH64EL__)

#include "storage/codec/decode_loops.h"

#include <arm_neon.h>

/* After the lookup by `bytes`, element i has the bytes of value `first` + i. */
struct step {
    uint8x16_t bytes;
    int64x2_t left; /* left shifts; a negative shift is a right shift */
    unsigned at;    /* byte offset of the 16 bytes to load */
};

static inline struct step step_init(unsigned width, unsigned first)
{
    uint8_t bytes[16];
    int64_t left[2];
    struct step step;

    step.at = first * width / 8;
    for (unsigned i = 0; i < 2; i++) {
        const unsigned bit = (first + i) * width;

        for (unsigned b = 0; b < 8; b++) {
            bytes[8 * i + b] = (uint8_t)(bit / 8 - step.at + b);
        }
        left[i] = -(int64_t)(bit % 8);
    }
    step.bytes = vld1q_u8(bytes);
    step.left = vld1q_s64(left);
    return step;
}

static inline void
unpack_two(const uint8_t *packed, const struct step *step, uint64x2_t mask, uint64_t *values)
{
    const uint8x16_t bytes = vqtbl1q_u8(vld1q_u8(packed + step->at), step->bytes);

    vst1q_u64(values, vandq_u64(vshlq_u64(vreinterpretq_u64_u8(bytes), step->left), mask));
}

static void neon_unpack(const uint8_t *packed, unsigned width, uint32_t count, uint64_t *values)
{
    const uint64x2_t mask = vdupq_n_u64(slc_low_mask(width));
    struct step step[4];

    /* Values of 58 bits or more can extend into a ninth byte. */
    if (width == 0 || width > 57) {
        slc_loop_unpack(packed, width, count, values);
        return;
    }
    for (unsigned s = 0; s < 4; s++) {
        step[s] = step_init(width, 2 * s);
    }
    for (uint32_t i = 0; i < count; i += 8) {
        unpack_two(packed, &step[0], mask, values + i);
        unpack_two(packed, &step[1], mask, values + i + 2);
        unpack_two(packed, &step[2], mask, values + i + 4);
        unpack_two(packed, &step[3], mask, values + i + 6);
        packed += width;
    }
}

enum {
    STEP_KEYS = 16,
    /* Below this number of keys, building the tables costs more than it saves. */
    FEW_KEYS = 64
};

/* Contribution of one nibble of the keys to an output byte. */
struct half {
    uint64_t table[2];
    unsigned nibble; /* index of the nibble in the key; 0 is the lowest nibble */
};

/* The half blocks that contribute to one output byte of a matrix (without empty half blocks). */
struct half_list {
    unsigned count;
    struct half half[16];
};

/* Transposes a block: rows in the order of GF2P8AFFINEQB become columns, column 0 lowest. */
static uint64_t columns_of(uint64_t block)
{
    uint64_t x = __builtin_bswap64(block), swap;

    swap = (x ^ x >> 7) & UINT64_C(0x00AA00AA00AA00AA);
    x ^= swap ^ swap << 7;
    swap = (x ^ x >> 14) & UINT64_C(0x0000CCCC0000CCCC);
    x ^= swap ^ swap << 14;
    swap = (x ^ x >> 28) & UINT64_C(0x00000000F0F0F0F0);
    return x ^ swap ^ swap << 28;
}

/* Adds half a block to the list as a table. Byte i of the table is the sum of the columns selected
 * by the bits of i. Rows have a single 1 bit, so columns share no bits and the sum is an OR. */
static void half_add(struct half_list *list, uint32_t columns, unsigned nibble)
{
    struct half *half = &list->half[list->count];

    if (columns == 0) {
        return;
    }
    half->nibble = nibble;
    half->table[0] = (columns & 0xFF) * UINT64_C(0x0100010001000100) |
                     (columns >> 8 & 0xFF) * UINT64_C(0x0101000001010000) |
                     (columns >> 16 & 0xFF) * UINT64_C(0x0101010100000000);
    half->table[1] = half->table[0] | (columns >> 24) * UINT64_C(0x0101010101010101);
    list->count++;
}

static void halves_init(const struct slc_bit_matrix *matrix, unsigned byte, struct half_list *list)
{
    list->count = 0;
    for (unsigned t = 0; t < matrix->terms; t++) {
        const uint64_t columns = columns_of(matrix->block[t][byte]);
        const unsigned source = matrix->source[t][byte];

        half_add(list, (uint32_t)columns, 2 * source);
        half_add(list, (uint32_t)(columns >> 32), 2 * source + 1);
    }
}

/* Collects nibble n of the 16 keys in the elements of nibble[n]. */
static inline void nibbles_of(const uint64_t *keys, uint8x16_t nibble[16])
{
    /* Element 2i + h of vector b is byte b of half h of key i. */
    const uint8x16x4_t low = vld4q_u8((const uint8_t *)keys);
    const uint8x16x4_t high = vld4q_u8((const uint8_t *)(keys + 8));
    const uint8x16_t mask = vdupq_n_u8(15);

    for (unsigned b = 0; b < 4; b++) {
        const uint8x16_t lower = vuzp1q_u8(low.val[b], high.val[b]);
        const uint8x16_t upper = vuzp2q_u8(low.val[b], high.val[b]);

        nibble[2 * b] = vandq_u8(lower, mask);
        nibble[2 * b + 1] = vshrq_n_u8(lower, 4);
        nibble[8 + 2 * b] = vandq_u8(upper, mask);
        nibble[8 + 2 * b + 1] = vshrq_n_u8(upper, 4);
    }
}

static inline uint8x16_t byte_of(const struct half_list *list, const uint8x16_t nibble[16])
{
    uint8x16_t sum = vdupq_n_u8(0);

    for (unsigned h = 0; h < list->count; h++) {
        const struct half *half = &list->half[h];
        const uint8x16_t table = vreinterpretq_u8_u64(vld1q_u64(half->table));

        sum = vorrq_u8(sum, vqtbl1q_u8(table, nibble[half->nibble]));
    }
    return sum;
}

/* Assembles a field of a step's keys and subtracts the base; updates the largest offset. */
static inline uint32x4_t
subtract_base_step(const uint8x16_t byte[4], uint32_t base, uint32_t *offsets, uint32x4_t largest)
{
    const uint16x8_t low[2] = {vreinterpretq_u16_u8(vzip1q_u8(byte[0], byte[1])),
                               vreinterpretq_u16_u8(vzip2q_u8(byte[0], byte[1]))};
    const uint16x8_t high[2] = {vreinterpretq_u16_u8(vzip1q_u8(byte[2], byte[3])),
                                vreinterpretq_u16_u8(vzip2q_u8(byte[2], byte[3]))};

    for (unsigned h = 0; h < 2; h++) {
        const uint16x8_t first = vzip1q_u16(low[h], high[h]), second = vzip2q_u16(low[h], high[h]);
        const uint32x4_t less = vdupq_n_u32(base);
        const uint32x4_t four = vsubq_u32(vreinterpretq_u32_u16(first), less);
        const uint32x4_t next = vsubq_u32(vreinterpretq_u32_u16(second), less);

        vst1q_u32(offsets + 8 * h, four);
        vst1q_u32(offsets + 8 * h + 4, next);
        largest = vmaxq_u32(largest, vmaxq_u32(four, next));
    }
    return largest;
}

/* Computes all fields of matrix `m`. */
static void neon_matrix(const struct slc_fields *plan,
                        unsigned m,
                        const uint64_t *keys,
                        uint32_t count,
                        uint32_t largest[SLC_MAX_ORDER])
{
    struct half_list lists[8];
    uint32x4_t most[8];
    unsigned of[8], fields = 0;

    for (unsigned b = 0; b < plan->matrix[m].bytes; b++) {
        halves_init(&plan->matrix[m], b, &lists[b]);
    }
    for (unsigned f = 0; f < plan->count; f++) {
        if (plan->field[f].matrix == m) {
            most[fields] = vdupq_n_u32(0);
            of[fields++] = f;
        }
    }
    for (uint32_t i = 0; i < count; i += STEP_KEYS) {
        uint8x16_t nibble[16];

        nibbles_of(keys + i, nibble);
        for (unsigned f = 0; f < fields; f++) {
            const struct slc_field *field = &plan->field[of[f]];
            const unsigned bytes = (field->gather->bits + 7) / 8;
            uint8x16_t byte[4];

            for (unsigned b = 0; b < 4; b++) {
                byte[b] = b < bytes ? byte_of(&lists[field->byte + b], nibble) : vdupq_n_u8(0);
            }
            most[f] = subtract_base_step(byte, field->base, field->offsets + i, most[f]);
        }
    }
    for (unsigned f = 0; f < fields; f++) {
        largest[of[f]] = vmaxvq_u32(most[f]);
    }
}

static void
neon_gather(const struct slc_gather *gather, const uint64_t *keys, uint32_t count, uint32_t *fields)
{
    slc_loop_gather(gather, keys, count, fields);
}

static void neon_fields(const struct slc_fields *plan,
                        uint64_t *keys,
                        uint32_t count,
                        uint32_t largest[SLC_MAX_ORDER])
{
    if (count < FEW_KEYS) {
        slc_loop_fields(plan, keys, count, neon_gather, largest);
        return;
    }
    /* Elements past the end repeat the last key, so they do not change the largest offset. */
    for (uint32_t i = 0; i < STEP_KEYS; i++) {
        keys[count + i] = keys[count - 1];
    }
    for (unsigned m = 0; m < plan->matrices; m++) {
        neon_matrix(plan, m, keys, count, largest);
    }
}

/* The other members are plain loops, which the compiler makes as fast as NEON intrinsics. */
#define LOOP_TARGET
#define LOOP_UNPACK neon_unpack
#include "storage/codec/decode_loops_tmpl.h"

static const struct slc_decode_ops neon_ops = {
    .name = "neon",
    .unpack = neon_unpack,
    .gather = neon_gather,
    .gather_wide = loop_gather_wide,
    .fields = neon_fields,
    LOOP_OPS,
};

const struct slc_decode_ops *slc_decode_ops_neon(void)
{
    return &neon_ops;
}

#else

const struct slc_decode_ops *slc_decode_ops_neon(void)
{
    return NULL;
}

#endif

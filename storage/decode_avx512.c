/*
 * Decoding loops for AVX-512 with VBMI and GFNI (Ice Lake, Zen 4 and later), compiled in every
 * x86-64 build and chosen at run time.
 *
 * Unpacking rests on eight values of w bits taking exactly w bytes: which bytes hold value i of
 * eight, and by how many bits it must move, is the same in every step of a group. One byte
 * permutation of 64 bytes moves the eight bytes of each value into its lane; a variable shift and a
 * mask do the rest. A value of 58 bits and more can reach into a ninth byte: it takes two.
 */
#include "storage/decode_ops.h"

#if defined(__x86_64__)

#include "storage/decode_loops.h"

#include <immintrin.h>

#define AVX512                                                                                     \
    __attribute__((target("avx2,bmi2,popcnt,gfni,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))

/* Where the bits of eight values of at most 57 bits are. */
struct eight {
    __m512i bytes, shift, mask;
};

AVX512 static inline __attribute__((always_inline)) struct eight eight_init(unsigned width)
{
    const __m512i lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i spread = _mm512_set_epi64(0x0808080808080808, 0, 0x0808080808080808, 0,
                                            0x0808080808080808, 0, 0x0808080808080808, 0);
    const __m512i bits = _mm512_mul_epu32(lanes, _mm512_set1_epi64(width));
    struct eight eight;

    /* Byte b of lane i: the byte where value i starts, plus b. */
    eight.bytes = _mm512_add_epi8(_mm512_shuffle_epi8(_mm512_srli_epi64(bits, 3), spread),
                                  _mm512_set1_epi64(0x0706050403020100));
    eight.shift = _mm512_and_si512(bits, _mm512_set1_epi64(7));
    eight.mask = _mm512_set1_epi64((int64_t)slc_low_mask(width));
    return eight;
}

AVX512 static inline __attribute__((always_inline)) __m512i eight_get(const struct eight *eight,
                                                                      const uint8_t *packed)
{
    const __m512i part = _mm512_permutexvar_epi8(eight->bytes, _mm512_loadu_si512(packed));

    return _mm512_and_si512(_mm512_srlv_epi64(part, eight->shift), eight->mask);
}

AVX512 static void
avx512_unpack(const uint8_t *packed, unsigned width, uint32_t count, uint64_t *values)
{
    const struct eight eight = eight_init(width);

    if (width == 0) {
        slc_loop_unpack(packed, width, count, values);
    } else if (width <= 57) {
        for (uint32_t i = 0; i < count; i += 8) {
            _mm512_storeu_si512(values + i, eight_get(&eight, packed));
            packed += width;
        }
    } else {
        const __m512i back = _mm512_sub_epi64(_mm512_set1_epi64(64), eight.shift);

        for (uint32_t i = 0; i < count; i += 8) {
            __m512i part = _mm512_permutexvar_epi8(eight.bytes, _mm512_loadu_si512(packed));
            __m512i next = _mm512_permutexvar_epi8(eight.bytes, _mm512_loadu_si512(packed + 8));

            part = _mm512_or_si512(_mm512_srlv_epi64(part, eight.shift),
                                   _mm512_sllv_epi64(next, back));
            _mm512_storeu_si512(values + i, _mm512_and_si512(part, eight.mask));
            packed += width;
        }
    }
}

/*
 * Key i is key i - 8 plus the eight gaps up to i: sums over a window, which do not wait for one
 * another, and one addition that does.
 */
struct window {
    __m512i key, one, two, four;
};

AVX512 static inline __attribute__((always_inline)) struct window window_init(uint64_t first)
{
    const __m512i before = _mm512_set_epi64(-1, -2, -3, -4, -5, -6, -7, -8);
    const __m512i zero = _mm512_setzero_si512();

    return (struct window){_mm512_add_epi64(_mm512_set1_epi64((int64_t)first), before), zero, zero,
                           zero};
}

AVX512 static inline __attribute__((always_inline)) __m512i window_next(struct window *window,
                                                                        __m512i ones)
{
    const __m512i twos = _mm512_add_epi64(ones, _mm512_alignr_epi64(ones, window->one, 7));
    const __m512i fours = _mm512_add_epi64(twos, _mm512_alignr_epi64(twos, window->two, 6));
    const __m512i eights = _mm512_add_epi64(fours, _mm512_alignr_epi64(fours, window->four, 4));

    window->key = _mm512_add_epi64(window->key, _mm512_add_epi64(eights, _mm512_set1_epi64(8)));
    window->one = ones;
    window->two = twos;
    window->four = fours;
    return window->key;
}

AVX512 static void avx512_sum(const uint64_t *gaps, uint32_t count, uint64_t first, uint64_t *keys)
{
    struct window window = window_init(first);

    for (uint32_t i = 0; i < count; i += 8) {
        _mm512_storeu_si512(keys + i, window_next(&window, _mm512_loadu_si512(gaps + i)));
    }
}

/* Groups that are patched together: those of a chunk of the decoder. */
enum { PATCH_GROUPS = 8 };

/* The exceptions of a group: which lanes have one, and their high parts one after the other. */
struct patch {
    uint64_t lanes[2];
    const uint64_t *high;
};

/* Both halves of the lanes as the union of what eight lanes at a time say. */
AVX512 static inline __attribute__((always_inline)) void
patch_lanes(__m512i below, __m512i above, uint64_t lanes[2])
{
    const __m512i pairs =
        _mm512_or_si512(_mm512_unpacklo_epi64(below, above), _mm512_unpackhi_epi64(below, above));
    const __m256i four =
        _mm256_or_si256(_mm512_castsi512_si256(pairs), _mm512_extracti64x4_epi64(pairs, 1));
    const __m128i two =
        _mm_or_si128(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));

    lanes[0] = (uint64_t)_mm_cvtsi128_si64(two);
    lanes[1] = (uint64_t)_mm_extract_epi64(two, 1);
}

/* True where `count` bytes ascend strictly. */
AVX512 static inline bool ascend(const uint8_t *bytes, uint32_t count)
{
    bool ascending = true;

    for (uint32_t i = 0; i + 1 < count; i += 64) {
        const uint32_t pairs = count - 1 - i;
        const __mmask64 wanted = pairs < 64 ? (UINT64_C(1) << pairs) - 1 : UINT64_MAX;
        const __m512i now = _mm512_maskz_loadu_epi8(wanted, bytes + i);
        const __m512i next = _mm512_maskz_loadu_epi8(wanted, bytes + i + 1);

        ascending &= _mm512_cmplt_epu8_mask(now, next) == wanted;
    }
    return ascending;
}

/*
 * Reads the exceptions of a group: high parts, shifted to where they belong, to `high`. Returns
 * whether they are sound.
 */
AVX512 static inline bool
patch_read(const struct slc_patched_view *view, uint32_t group, uint64_t *high, struct patch *patch)
{
    const unsigned width = view->widths[group], extra = view->extras[group];
    const uint32_t count = view->exceptions[group];
    const uint8_t *positions = view->data + view->group_at[group] + SLC_GROUP_NNZ / 8 * width;
    const uint8_t *packed = positions + count;
    const uint32_t bits = count * extra;
    const struct eight eight = eight_init(extra);
    const __m512i one = _mm512_set1_epi64(1), half = _mm512_set1_epi64(64);
    __m512i below = _mm512_setzero_si512(), above = below;
    uint32_t zeros = 0;

    for (uint32_t i = 0; i < count; i += 8) {
        const __mmask8 inside = (__mmask8)(count - i < 8 ? (1U << (count - i)) - 1 : 0xFF);
        const __m512i value = eight_get(&eight, packed + i / 8 * extra);
        const __m512i position =
            _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(positions + i)));

        zeros |= _mm512_mask_testn_epi64_mask(inside, value, value);
        _mm512_storeu_si512(high + i, _mm512_sll_epi64(value, _mm_cvtsi32_si128((int)width)));
        /* Shifts by 64 and more, and by less than 0, give 0. */
        below = _mm512_or_si512(below, _mm512_maskz_sllv_epi64(inside, one, position));
        above = _mm512_or_si512(
            above, _mm512_maskz_sllv_epi64(inside, one, _mm512_sub_epi64(position, half)));
    }
    patch_lanes(below, above, patch->lanes);
    patch->high = high;
    /* As many lanes as exceptions: none is past the group's end. */
    return zeros == 0 && ascend(positions, count) &&
           (uint32_t)__builtin_popcountll(patch->lanes[0]) +
                   (uint32_t)__builtin_popcountll(patch->lanes[1]) ==
               count &&
           (bits % 8 == 0 || packed[bits / 8] >> bits % 8 == 0);
}

/* What becomes of the values of groups. */
struct make {
    struct window window;
    __m512d low;
    __mmask8 zeros;
};

AVX512 static inline __attribute__((always_inline)) void
make_eight(struct make *make, const bool keys, __m512i values, uint64_t *out)
{
    if (keys) {
        _mm512_storeu_si512(out, window_next(&make->window, values));
    } else {
        const __m512i two_52 = _mm512_set1_epi64(0x4330000000000000);
        __m512d real = _mm512_castsi512_pd(_mm512_or_si512(values, two_52));

        real = _mm512_add_pd(_mm512_sub_pd(real, _mm512_castsi512_pd(two_52)), make->low);
        make->zeros |= _mm512_cmp_pd_mask(real, _mm512_setzero_pd(), _CMP_EQ_OQ);
        _mm512_storeu_pd(out, real);
    }
}

/* Unpacks a group, puts high parts in place on the way, and makes keys or reals of the values. */
AVX512 static inline __attribute__((always_inline)) void
make_group(struct make *make,
           const bool keys,
           const struct slc_patched_view *view,
           uint32_t group,
           const struct patch *patch,
           uint64_t *out)
{
    const unsigned width = view->widths[group];
    const uint8_t *packed = view->data + view->group_at[group];
    const struct eight eight = eight_init(width);
    const uint64_t *high = patch->high;

    if (view->exceptions[group] == 0) {
        for (uint32_t i = 0; i < SLC_GROUP_NNZ; i += 8) {
            make_eight(make, keys, eight_get(&eight, packed), out + i);
            packed += width;
        }
        return;
    }
    for (uint32_t i = 0; i < SLC_GROUP_NNZ; i += 8) {
        const __mmask8 lanes = (__mmask8)(patch->lanes[i / 64] >> i % 64);
        const __m512i low = eight_get(&eight, packed);
        const __m512i part = _mm512_maskz_expand_epi64(lanes, _mm512_loadu_si512(high));

        make_eight(make, keys, _mm512_or_si512(low, part), out + i);
        high += __builtin_popcount(lanes);
        packed += width;
    }
}

/*
 * High parts of all groups first: an unaligned vector cannot be loaded from two that were just
 * stored without waiting for the stores.
 */
AVX512 static inline __attribute__((always_inline)) bool
make_groups(struct make *make,
            const bool keys,
            const struct slc_patched_view *view,
            uint32_t group,
            uint32_t groups,
            uint64_t *out)
{
    uint64_t high[PATCH_GROUPS * SLC_GROUP_NNZ + 8];
    struct patch patch[PATCH_GROUPS];

    for (uint32_t done = 0; done < groups; done += PATCH_GROUPS) {
        const uint32_t now = groups - done < PATCH_GROUPS ? groups - done : PATCH_GROUPS;
        uint64_t *free_high = high;

        for (uint32_t g = 0; g < now; g++) {
            const uint32_t exceptions = view->exceptions[group + done + g];

            if (exceptions > 0 && !patch_read(view, group + done + g, free_high, &patch[g])) {
                return false;
            }
            free_high += exceptions;
        }
        for (uint32_t g = 0; g < now; g++) {
            make_group(make, keys, view, group + done + g, &patch[g],
                       out + (size_t)(done + g) * SLC_GROUP_NNZ);
        }
    }
    return true;
}

AVX512 static bool avx512_keys(const struct slc_patched_view *gaps,
                               uint32_t group,
                               uint32_t groups,
                               uint64_t first,
                               uint64_t *keys)
{
    struct make make = {.window = window_init(first)};

    return make_groups(&make, true, gaps, group, groups, keys);
}

AVX512 static bool avx512_integers(const struct slc_patched_view *above,
                                   uint32_t group,
                                   uint32_t groups,
                                   double low,
                                   double *values)
{
    struct make make = {.low = _mm512_set1_pd(low)};

    return make_groups(&make, false, above, group, groups, (uint64_t *)(void *)values) &&
           make.zeros == 0;
}

/* Byte 8 * j + i of what a matrix makes: output byte j of key i. */
struct field_lanes {
    __m512i
        bytes; /* where the four bytes of each lane's field are; what follows it is masked off */
    __m512i mask, base, largest;
    uint32_t *offsets;
};

/* The sum of `terms` products for eight keys. */
AVX512 static inline __attribute__((always_inline)) __m512i
matrix_times(const __m512i *source, const __m512i *block, const unsigned terms, __m512i keys)
{
    __m512i part[8], sum;

    for (unsigned t = 0; t < terms; t++) {
        part[t] =
            _mm512_gf2p8affine_epi64_epi8(_mm512_permutexvar_epi8(source[t], keys), block[t], 0);
    }
    sum = part[0];
    for (unsigned t = 1; t + 1 < terms; t += 2) {
        sum = _mm512_ternarylogic_epi64(sum, part[t], part[t + 1], 0x96); /* exclusive or */
    }
    return terms % 2 == 0 ? _mm512_xor_si512(sum, part[terms - 1]) : sum;
}

/* All fields of one matrix; a constant number of terms keeps the matrix in registers. */
AVX512 static inline __attribute__((always_inline)) void
matrix_fields(const struct slc_bit_matrix *matrix,
              const unsigned terms,
              const uint64_t *keys,
              uint32_t count,
              struct field_lanes *lanes,
              unsigned fields)
{
    const __m512i spread = _mm512_set_epi64(
        0x3830282018100800, 0x3830282018100800, 0x3830282018100800, 0x3830282018100800,
        0x3830282018100800, 0x3830282018100800, 0x3830282018100800, 0x3830282018100800);
    const __mmask64 upper = 0xFFFFFFFF00000000;
    __m512i source[8], block[8];

    for (unsigned t = 0; t < terms; t++) {
        __m512i bytes =
            _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)matrix->source[t]));

        bytes = _mm512_mullo_epi64(bytes, _mm512_set1_epi64(0x0101010101010101));
        source[t] = _mm512_add_epi8(bytes, spread);
        block[t] = _mm512_loadu_si512(matrix->block[t]);
    }
    for (uint32_t i = 0; i < count; i += 16) {
        const __m512i low = matrix_times(source, block, terms, _mm512_loadu_si512(keys + i));
        const __m512i high = matrix_times(source, block, terms, _mm512_loadu_si512(keys + i + 8));

        for (unsigned f = 0; f < fields; f++) {
            struct field_lanes *lane = &lanes[f];
            __m512i field = _mm512_permutexvar_epi8(lane->bytes, low);

            field = _mm512_mask_permutexvar_epi8(field, upper, lane->bytes, high);
            field = _mm512_sub_epi32(_mm512_and_si512(field, lane->mask), lane->base);
            _mm512_storeu_si512(lane->offsets + i, field);
            lane->largest = _mm512_max_epu32(lane->largest, field);
        }
    }
}

AVX512 static void avx512_matrix(const struct slc_bit_matrix *matrix,
                                 const uint64_t *keys,
                                 uint32_t count,
                                 struct field_lanes *lanes,
                                 unsigned fields)
{
    switch (matrix->terms) {
    case 1:
        matrix_fields(matrix, 1, keys, count, lanes, fields);
        break;
    case 2:
        matrix_fields(matrix, 2, keys, count, lanes, fields);
        break;
    case 3:
        matrix_fields(matrix, 3, keys, count, lanes, fields);
        break;
    case 4:
        matrix_fields(matrix, 4, keys, count, lanes, fields);
        break;
    case 5:
        matrix_fields(matrix, 5, keys, count, lanes, fields);
        break;
    case 6:
        matrix_fields(matrix, 6, keys, count, lanes, fields);
        break;
    case 7:
        matrix_fields(matrix, 7, keys, count, lanes, fields);
        break;
    default:
        matrix_fields(matrix, 8, keys, count, lanes, fields);
        break;
    }
}

AVX512 static void avx512_fields(const struct slc_fields *plan,
                                 uint64_t *keys,
                                 uint32_t count,
                                 uint32_t largest[SLC_MAX_ORDER])
{
    /* Byte c of lane l: byte l % 8 of output byte c. */
    const __m512i order = _mm512_set_epi64(
        0x1F170F071E160E06, 0x1D150D051C140C04, 0x1B130B031A120A02, 0x1911090118100800,
        0x1F170F071E160E06, 0x1D150D051C140C04, 0x1B130B031A120A02, 0x1911090118100800);
    const __m512i last = _mm512_set1_epi64((int64_t)keys[count - 1]);
    struct field_lanes lanes[8];

    /* Lanes past the end repeat the last key: they do not change the largest offset. */
    _mm512_storeu_si512(keys + count, last);
    _mm512_storeu_si512(keys + count + 8, last);
    for (unsigned m = 0; m < plan->matrices; m++) {
        unsigned of[8], fields = 0;

        for (unsigned f = 0; f < plan->count; f++) {
            const struct slc_field *field = &plan->field[f];

            if (field->matrix != m) {
                continue;
            }
            lanes[fields].bytes = _mm512_add_epi8(order, _mm512_set1_epi8((char)(8 * field->byte)));
            lanes[fields].mask = _mm512_set1_epi32((int32_t)slc_low_mask(field->gather->bits));
            lanes[fields].base = _mm512_set1_epi32((int32_t)field->base);
            lanes[fields].largest = _mm512_setzero_si512();
            lanes[fields].offsets = field->offsets;
            of[fields++] = f;
        }
        avx512_matrix(&plan->matrix[m], keys, count, lanes, fields);
        for (unsigned f = 0; f < fields; f++) {
            largest[of[f]] = _mm512_reduce_max_epu32(lanes[f].largest);
        }
    }
}

AVX512 static void avx512_gather(const struct slc_gather *gather,
                                 const uint64_t *keys,
                                 uint32_t count,
                                 uint32_t *fields)
{
    const uint64_t mask = gather->mask;

    for (uint32_t i = 0; i < count; i++) {
        fields[i] = (uint32_t)_pext_u64(keys[i], mask);
    }
}

AVX512 static void avx512_gather_wide(const struct slc_gather *gather,
                                      const uint64_t *keys,
                                      uint32_t count,
                                      uint64_t *fields)
{
    const uint64_t mask = gather->mask;

    for (uint32_t i = 0; i < count; i++) {
        fields[i] = _pext_u64(keys[i], mask);
    }
}

AVX512 static uint32_t
avx512_runs(const uint64_t *keys, uint32_t count, unsigned shift, uint32_t *begin)
{
    const __m512i above = _mm512_set1_epi64((int64_t)~slc_low_mask(shift));
    __m256i index = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8);
    uint32_t runs = 1;

    begin[0] = 0;
    for (uint32_t i = 1; i < count; i += 8) {
        const __m512i now = _mm512_loadu_si512(keys + i);
        const __m512i before = _mm512_loadu_si512(keys + i - 1);
        const uint32_t inside = count - i < 8 ? (1U << (count - i)) - 1 : 0xFF;
        const __mmask8 differ =
            (__mmask8)(_mm512_test_epi64_mask(_mm512_xor_si512(now, before), above) & inside);

        _mm256_storeu_si256((__m256i *)(void *)(begin + runs),
                            _mm256_maskz_compress_epi32(differ, index));
        runs += (uint32_t)__builtin_popcount(differ);
        index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
    }
    return runs;
}

AVX512 static uint32_t avx512_settle(uint32_t *fields, uint32_t count, uint32_t base)
{
    return slc_loop_settle(fields, count, base);
}

/* Without optimization the gather is a macro that turns its mask into a char. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
/* Up to 16 entries stay in two registers; more are gathered. */
AVX512 static bool avx512_lookup(const uint8_t *packed,
                                 unsigned width,
                                 uint32_t count,
                                 const uint8_t *dictionary,
                                 uint32_t entries,
                                 double *values)
{
    const struct eight eight = eight_init(width);
    const __m512i last = _mm512_set1_epi64((int64_t)entries - 1);
    const uint32_t inside = entries < 16 ? (1U << entries) - 1 : 0xFFFF;
    const __m512d low = _mm512_maskz_loadu_pd((__mmask8)inside, dictionary);
    const __m512d high = _mm512_maskz_loadu_pd((__mmask8)(inside >> 8), dictionary + 64);
    __mmask8 faults = 0;

    for (uint32_t i = 0; i < count; i += 8) {
        const uint32_t rest = count - i;
        const __mmask8 lanes = (__mmask8)(rest < 8 ? (1U << rest) - 1 : 0xFF);
        const __m512i index = eight_get(&eight, packed);
        const __m512i sound = _mm512_min_epu64(index, last);

        faults |= _mm512_mask_cmpneq_epu64_mask(lanes, index, sound);
        _mm512_storeu_pd(values + i, entries <= 16 ? _mm512_permutex2var_pd(low, sound, high)
                                                   : _mm512_i64gather_pd(sound, dictionary, 8));
        packed += width;
    }
    return faults == 0;
}
#pragma GCC diagnostic pop

AVX512 static bool avx512_plain(const uint8_t *bytes, uint32_t count, double *values)
{
    return slc_loop_plain(bytes, count, values);
}

AVX512 static uint64_t avx512_field(const uint8_t *indices,
                                    uint32_t count,
                                    unsigned shift,
                                    uint64_t mask,
                                    uint64_t add,
                                    uint32_t *offsets)
{
    return slc_loop_field(indices, count, shift, mask, add, offsets);
}

static const struct slc_decode_ops avx512_ops = {
    .name = "avx512",
    .unpack = avx512_unpack,
    .sum = avx512_sum,
    .keys = avx512_keys,
    .runs = avx512_runs,
    .gather = avx512_gather,
    .gather_wide = avx512_gather_wide,
    .fields = avx512_fields,
    .settle = avx512_settle,
    .integers = avx512_integers,
    .lookup = avx512_lookup,
    .plain = avx512_plain,
    .field = avx512_field,
};

const struct slc_decode_ops *slc_decode_ops_avx512(void)
{
    __builtin_cpu_init();
    if (slc_decode_ops_avx2() == NULL || !__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512vbmi") ||
        !__builtin_cpu_supports("gfni")) {
        return NULL;
    }
    return &avx512_ops;
}

#else

const struct slc_decode_ops *slc_decode_ops_avx512(void)
{
    return NULL;
}

#endif

/* Decodes whole patched groups with AVX-512: unpacks values, adds their exceptions and computes
 * keys or reals, all in registers.
 *
 * Nearly all groups of real tensors have values of at most SMALL_BITS bits, low and high part
 * together. These groups use 32-bit elements and 16 values per step; the sum of a group still fits
 * into an element. Other groups use 64-bit elements.
 *
 * First, the high parts of the exceptions of all groups of a chunk are scattered to the positions
 * of their values in an array of zeros. Unpacking then combines low and high parts with one OR. The
 * scatter comes first because loading a vector from recent narrower stores has to wait for these
 * stores. The high parts are kept in the memory of the group's results, because additional memory
 * would compete with a kernel's factor rows for the L1 cache. */
#include "storage/codec/decode_ops.h"

#if defined(__x86_64__)

#include "storage/codec/decode_avx512.h"
#include "storage/codec/decode_loops.h"

enum {
    /* Number of groups that are patched at once: all groups of a chunk. */
    PATCH_GROUPS = SLC_CHUNK_GROUPS,
    /* Largest bit length of small values: 128 gaps of this length, each plus 1, add up to less than
     * 2^32. */
    SMALL_BITS = 24,
    SMALL_LANES = 16,
    WIDE_LANES = 8
};

/* Unpacks sixteen values and adds their high parts, which are already shifted left by the width. */
AVX512_INLINE __m512i sixteen_patched(const struct sixteen *sixteen,
                                      const uint8_t *packed,
                                      const uint32_t *high)
{
    return _mm512_ternarylogic_epi32(sixteen_move(sixteen, packed), sixteen->mask,
                                     _mm512_loadu_si512(high), 0xEA); /* (a & b) | c */
}

/* Like struct window, but for sixteen keys per step, modulo 2^32. */
struct small_window {
    __m512i key, one, two, four, eight;
};

AVX512_INLINE struct small_window small_window_init(uint32_t first)
{
    const __m512i before =
        _mm512_set_epi32(-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15, -16);
    const __m512i zero = _mm512_setzero_si512();

    return (struct small_window){_mm512_add_epi32(_mm512_set1_epi32((int32_t)first), before), zero,
                                 zero, zero, zero};
}

AVX512_INLINE __m512i small_window_next(struct small_window *window, __m512i ones)
{
    const __m512i twos = _mm512_add_epi32(ones, _mm512_alignr_epi32(ones, window->one, 15));
    const __m512i fours = _mm512_add_epi32(twos, _mm512_alignr_epi32(twos, window->two, 14));
    const __m512i eights = _mm512_add_epi32(fours, _mm512_alignr_epi32(fours, window->four, 12));
    const __m512i sum = _mm512_add_epi32(eights, _mm512_alignr_epi32(eights, window->eight, 8));

    window->key = _mm512_add_epi32(window->key, _mm512_add_epi32(sum, _mm512_set1_epi32(16)));
    window->one = ones;
    window->two = twos;
    window->four = fours;
    window->eight = eights;
    return window->key;
}

static bool is_small(const struct slc_patched_view *view, uint32_t group)
{
    return view->widths[group] + view->extras[group] <= SMALL_BITS;
}

/* Faults of exceptions, accumulated over all groups of a chunk without a branch for each. */
struct faults {
    uint32_t order;  /* positions that do not ascend or are outside the group */
    uint32_t unused; /* unused bits that are not zero */
    __mmask16 zeros; /* high parts that are zero */
};

/* Checks that `lanes` positions, starting at `from`, and the next position ascend. */
AVX512_INLINE void check_order(
    struct faults *faults, const uint8_t *positions, uint32_t from, uint32_t count, uint32_t lanes)
{
    const __mmask16 pairs = (__mmask16)_bzhi_u32((1U << lanes) - 1, count - 1 - from);
    const __m128i now = _mm_loadu_si128((const __m128i *)(const void *)(positions + from));
    const __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(positions + from + 1));

    faults->order |= _mm_mask_cmpge_epu8_mask(pairs, now, next);
}

/* Checks the last position and the bits after the high parts; needs at least one exception. */
AVX512_INLINE void
check_end(struct faults *faults, const uint8_t *positions, uint32_t count, unsigned extra)
{
    const uint32_t last = count * extra - 1;

    faults->order |= positions[count - 1] & ~(uint32_t)(SLC_GROUP_NNZ - 1);
    /* Shift the last byte by its number of used bits. */
    faults->unused |= (uint32_t)positions[count + last / 8] >> (last % 8 + 1);
}

/* Returns the positions of eight exceptions, modulo the group size in case they are invalid. */
AVX512_INLINE __m512i positions_of_eight(const uint8_t *positions)
{
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)positions);

    return _mm512_and_si512(_mm512_cvtepu8_epi64(bytes), _mm512_set1_epi64(SLC_GROUP_NNZ - 1));
}

/* Without optimization, scatter intrinsics are macros that convert masks to char. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/* Reads the exceptions (at least one) of a group of small values. Stores their high parts, shifted
 * left by the width, at their positions in `high`, and zeros at all other positions. */
AVX512_INLINE void patch_small(const struct slc_patched_view *view,
                               uint32_t group,
                               uint32_t *high,
                               struct faults *faults)
{
    const unsigned width = view->widths[group], extra = view->extras[group];
    const uint32_t count = view->exceptions[group];
    const uint8_t *positions = view->data + view->group_at[group] + SLC_GROUP_NNZ / 8 * width;
    const uint8_t *packed = positions + count;
    const struct sixteen sixteen = sixteen_init(extra);
    const __m512i inside_group = _mm512_set1_epi32(SLC_GROUP_NNZ - 1);

    for (uint32_t i = 0; i < SLC_GROUP_NNZ; i += SMALL_LANES) {
        _mm512_storeu_si512(high + i, _mm512_setzero_si512());
    }
    for (uint32_t i = 0; i < count; i += SMALL_LANES) {
        const __mmask16 lanes = (__mmask16)_bzhi_u32(0xFFFF, count - i);
        const __m512i value = sixteen_get(&sixteen, packed + i / 8 * extra);
        const __m512i position = _mm512_and_si512(
            _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(positions + i))),
            inside_group);

        faults->zeros |= _mm512_mask_testn_epi32_mask(lanes, value, value);
        check_order(faults, positions, i, count, SMALL_LANES);
        _mm512_mask_i32scatter_epi32(high, lanes, position,
                                     _mm512_sll_epi32(value, _mm_cvtsi32_si128((int)width)), 4);
    }
    check_end(faults, positions, count, extra);
}

AVX512_INLINE void patch_wide(const struct slc_patched_view *view,
                              uint32_t group,
                              uint64_t *high,
                              struct faults *faults)
{
    const unsigned width = view->widths[group], extra = view->extras[group];
    const uint32_t count = view->exceptions[group];
    const uint8_t *positions = view->data + view->group_at[group] + SLC_GROUP_NNZ / 8 * width;
    const uint8_t *packed = positions + count;
    const struct eight eight = eight_init(extra);

    for (uint32_t i = 0; i < SLC_GROUP_NNZ; i += WIDE_LANES) {
        _mm512_storeu_si512(high + i, _mm512_setzero_si512());
    }
    for (uint32_t i = 0; i < count; i += WIDE_LANES) {
        const __mmask8 lanes = (__mmask8)_bzhi_u32(0xFF, count - i);
        const __m512i value = eight_get(&eight, packed + i / 8 * extra);

        faults->zeros |= _mm512_mask_testn_epi64_mask(lanes, value, value);
        check_order(faults, positions, i, count, WIDE_LANES);
        _mm512_mask_i64scatter_epi64(high, lanes, positions_of_eight(positions + i),
                                     _mm512_sll_epi64(value, _mm_cvtsi32_si128((int)width)), 8);
    }
    check_end(faults, positions, count, extra);
}

#pragma GCC diagnostic pop

/* Types of results into which values are converted. */
enum make {
    MAKE_KEYS,       /* 64-bit sums */
    MAKE_SMALL_KEYS, /* lower halves of the sums */
    MAKE_REALS       /* each value plus `low`, as f64 */
};

static inline uint32_t make_bytes(enum make make)
{
    return make == MAKE_SMALL_KEYS ? 4 : 8;
}

/* Returns the memory for the high parts (4 bytes each) of a small group: the memory of its results
 * or, if results have 8 bytes, the second half of it, so that no result overwrites a high part
 * before its use. */
static inline uint32_t *high_parts(enum make make, unsigned char *out)
{
    return (uint32_t *)(void *)(out + SLC_GROUP_NNZ * (make_bytes(make) - 4));
}

struct maker {
    struct small_window small_window; /* MAKE_SMALL_KEYS: state after the previous group */
    uint64_t next;                    /* MAKE_KEYS: the group's first key minus its first gap */
    double low;
    /* MAKE_REALS, small groups: smallest result as unsigned; 0 if a result was zero */
    __m512i nearest;
    __mmask8 zeros; /* MAKE_REALS, other groups: elements in which a result was zero */
};

AVX512_INLINE __m512d real_of(__m512i value, double low)
{
    /* If the bits of an integer below 2^52 replace the mantissa of the f64 number 2^52, the result
     * is 2^52 plus the integer, so no conversion instruction is needed. */
    const __m512i two_52 = _mm512_set1_epi64(0x4330000000000000);
    const __m512d real = _mm512_castsi512_pd(_mm512_or_si512(value, two_52));

    return _mm512_add_pd(_mm512_sub_pd(real, _mm512_castsi512_pd(two_52)), _mm512_set1_pd(low));
}

AVX512_INLINE void make_sixteen(
    struct maker *maker, struct small_window *window, enum make make, __m512i values, void *out)
{
    if (make == MAKE_SMALL_KEYS) {
        _mm512_storeu_si512(out, small_window_next(window, values));
    } else if (make == MAKE_KEYS) {
        const __m512i keys = small_window_next(window, values);
        const __m512i next = _mm512_set1_epi64((int64_t)maker->next);
        uint64_t *to = out;

        _mm512_storeu_si512(
            to, _mm512_add_epi64(next, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(keys))));
        _mm512_storeu_si512(
            to + 8,
            _mm512_add_epi64(next, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(keys, 1))));
    } else {
        const __m512i sums = _mm512_add_epi32(values, _mm512_set1_epi32((int32_t)maker->low));
        double *to = out;

        maker->nearest = _mm512_min_epu32(maker->nearest, sums);
        _mm512_storeu_pd(to, _mm512_cvtepi32_pd(_mm512_castsi512_si256(sums)));
        _mm512_storeu_pd(to + 8, _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(sums, 1)));
    }
}

AVX512_INLINE void make_small_group(struct maker *maker,
                                    enum make make,
                                    const struct slc_patched_view *view,
                                    uint32_t group,
                                    unsigned char *out)
{
    const uint32_t *high = high_parts(make, out);
    const uint32_t step = SMALL_LANES * make_bytes(make);
    const unsigned width = view->widths[group];
    const uint8_t *packed = view->data + view->group_at[group];
    const struct sixteen sixteen = sixteen_init(width);
    struct small_window window =
        make == MAKE_SMALL_KEYS ? maker->small_window : small_window_init(0);

    if (view->exceptions[group] == 0) {
        for (uint32_t i = 0; i < SLC_GROUP_NNZ; i += SMALL_LANES) {
            make_sixteen(maker, &window, make, sixteen_get(&sixteen, packed), out);
            packed += 2 * width;
            out += step;
        }
    } else {
        for (uint32_t i = 0; i < SLC_GROUP_NNZ; i += SMALL_LANES) {
            make_sixteen(maker, &window, make, sixteen_patched(&sixteen, packed, high + i), out);
            packed += 2 * width;
            out += step;
        }
    }
    if (make == MAKE_SMALL_KEYS) {
        maker->small_window = window;
    } else if (make == MAKE_KEYS) {
        const __m128i last = _mm512_extracti32x4_epi32(window.key, 3);

        maker->next += (uint64_t)(uint32_t)_mm_extract_epi32(last, 3) + 1;
    }
}

AVX512_INLINE void make_wide_group(struct maker *maker,
                                   enum make make,
                                   const struct slc_patched_view *view,
                                   uint32_t group,
                                   uint64_t *out)
{
    const bool patched = view->exceptions[group] > 0;
    const unsigned width = view->widths[group];
    const uint8_t *packed = view->data + view->group_at[group];
    const struct eight eight = eight_init(width);
    struct window window = window_init(maker->next);

    for (uint32_t i = 0; i < SLC_GROUP_NNZ; i += WIDE_LANES) {
        __m512i value = eight_get(&eight, packed);

        if (patched) {
            value = _mm512_or_si512(value, _mm512_loadu_si512(out + i));
        }
        if (make == MAKE_KEYS) {
            _mm512_storeu_si512(out + i, window_next(&window, value));
        } else {
            const __m512d real = real_of(value, maker->low);

            maker->zeros |= _mm512_cmp_pd_mask(real, _mm512_setzero_pd(), _CMP_EQ_OQ);
            _mm512_storeu_pd(out + i, real);
        }
        packed += width;
    }
    if (make == MAKE_KEYS) {
        const __m128i last = _mm512_extracti64x2_epi64(window.key, 3);

        maker->next = (uint64_t)_mm_extract_epi64(last, 1) + 1;
    }
}

/* Without optimization, scatter intrinsics are macros that convert masks to char. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/* Implements MAKE_REALS for a group of width 0; most groups of counts have width 0. All values
 * equal `low`, except for the exceptions, which are scattered over the results. */
AVX512_INLINE void make_constant_group(struct maker *maker,
                                       const struct slc_patched_view *view,
                                       uint32_t group,
                                       double *out,
                                       struct faults *faults)
{
    const unsigned extra = view->extras[group];
    const uint32_t count = view->exceptions[group];
    const uint8_t *positions = view->data + view->group_at[group];
    const uint8_t *packed = positions + count;
    const struct eight eight = eight_init(extra);

    for (uint32_t i = 0; i < SLC_GROUP_NNZ; i += WIDE_LANES) {
        _mm512_storeu_pd(out + i, _mm512_set1_pd(maker->low));
    }
    for (uint32_t i = 0; i < count; i += WIDE_LANES) {
        const __mmask8 lanes = (__mmask8)_bzhi_u32(0xFF, count - i);
        const __m512i value = eight_get(&eight, packed + i / 8 * extra);
        const __m512d real = real_of(value, maker->low);

        faults->zeros |= _mm512_mask_testn_epi64_mask(lanes, value, value);
        check_order(faults, positions, i, count, WIDE_LANES);
        maker->zeros |= _mm512_mask_cmp_pd_mask(lanes, real, _mm512_setzero_pd(), _CMP_EQ_OQ);
        _mm512_mask_i64scatter_pd(out, lanes, positions_of_eight(positions + i), real, 8);
    }
    maker->zeros |= maker->low == 0 && count < SLC_GROUP_NNZ;
    if (count > 0) {
        check_end(faults, positions, count, extra);
    }
}

#pragma GCC diagnostic pop

/* True if make_constant_group can compute the group. */
static bool is_constant(enum make make, const struct slc_patched_view *view, uint32_t group)
{
    return make == MAKE_REALS && view->widths[group] == 0;
}

/* Reads the exceptions of groups whose results go to `out`, and computes the results of constant
 * groups. Returns false if exceptions are invalid. */
AVX512_INLINE bool patch_groups(struct maker *maker,
                                enum make make,
                                const struct slc_patched_view *view,
                                uint32_t group,
                                uint32_t groups,
                                unsigned char *out)
{
    struct faults faults = {0};

    for (uint32_t g = group; g < group + groups; g++) {
        if (is_constant(make, view, g)) {
            make_constant_group(maker, view, g, (double *)(void *)out, &faults);
        } else if (view->exceptions[g] > 0 && (make == MAKE_SMALL_KEYS || is_small(view, g))) {
            patch_small(view, g, high_parts(make, out), &faults);
        } else if (view->exceptions[g] > 0) {
            patch_wide(view, g, (uint64_t *)(void *)out, &faults);
        }
        out += SLC_GROUP_NNZ * make_bytes(make);
    }
    return (faults.order | faults.unused | faults.zeros) == 0;
}

/* Converts groups to results of type `make`. With MAKE_SMALL_KEYS, all groups must be small. */
AVX512_INLINE bool make_groups(struct maker *maker,
                               enum make make,
                               const struct slc_patched_view *view,
                               uint32_t group,
                               uint32_t groups,
                               unsigned char *out)
{
    for (const uint32_t end = group + groups; group < end;) {
        const uint32_t last = end - group < PATCH_GROUPS ? end : group + PATCH_GROUPS;

        if (!patch_groups(maker, make, view, group, last - group, out)) {
            return false;
        }
        for (; group < last; group++) {
            if (is_constant(make, view, group)) {
                /* patch_groups has already converted this group */
            } else if (make == MAKE_SMALL_KEYS || is_small(view, group)) {
                make_small_group(maker, make, view, group, out);
            } else {
                make_wide_group(maker, make, view, group, (uint64_t *)(void *)out);
            }
            out += SLC_GROUP_NNZ * make_bytes(make);
        }
    }
    return true;
}

AVX512 bool slc_avx512_keys(const struct slc_patched_view *gaps,
                            uint32_t group,
                            uint32_t groups,
                            uint64_t first,
                            uint64_t *keys)
{
    struct maker maker = {.next = first};

    return make_groups(&maker, MAKE_KEYS, gaps, group, groups, (unsigned char *)keys);
}

AVX512 bool slc_avx512_small_keys(const struct slc_patched_view *gaps,
                                  uint32_t group,
                                  uint32_t groups,
                                  uint32_t first,
                                  uint32_t *keys)
{
    struct maker maker = {.small_window = small_window_init(first)};

    for (uint32_t g = group; g < group + groups; g++) {
        if (!is_small(gaps, g)) {
            return false;
        }
    }
    return make_groups(&maker, MAKE_SMALL_KEYS, gaps, group, groups, (unsigned char *)keys);
}

AVX512 bool slc_avx512_integers(const struct slc_patched_view *above,
                                uint32_t group,
                                uint32_t groups,
                                double low,
                                bool zeros,
                                double *values)
{
    struct maker maker = {.low = low, .nearest = _mm512_set1_epi32(-1)};

    /* If the magnitude of `low` is at most 2^30, its sum with a small value fits into a 32-bit
     * element. Use the plain loop for other values of `low`. */
    if (low < -0x1p30 || low > 0x1p30) {
        return slc_loop_integers(above, slc_avx512_unpack, group, groups, low, zeros, values);
    }
    return make_groups(&maker, MAKE_REALS, above, group, groups, (unsigned char *)values) &&
           (zeros || (maker.zeros | _mm512_testn_epi32_mask(maker.nearest, maker.nearest)) == 0);
}

#endif

/* Finds fiber runs from short gaps with AVX-512: 64 gaps per step, one byte each, without forming
 * keys.
 *
 * If a fiber run has at most eight key bits and all gaps of a group except its exceptions fit into
 * these bits, the low bits of keys are sums modulo a power of two. These sums are the offsets
 * within the fiber. A run starts where a sum wraps around or an exception exceeds the run's bits.
 * The upper bits of the key change only where a run starts, so they are summed once per run.
 *
 * Exceptions are not scattered one by one: their positions become a 128-bit mask, and an expand
 * instruction moves their high parts to the positions in the mask. The exceptions of all groups are
 * read first, because reading one takes about 100 cycles from the first load to the last store, and
 * these latencies overlap. */
#include "storage/codec/decode_ops.h"

#if defined(__x86_64__)

#include "storage/codec/decode_avx512.h"

enum {
    HALF = 64,  /* nonzeros per step: half a group */
    LANES = 16, /* exceptions or runs per step */
    /* Largest bit length of gaps: 128 gaps of this length, each plus 1, add up to less than
     * 2^32. */
    GAP_BITS = 24,
    WIDTH_MOST = 8,
    CHUNK_NNZ = SLC_CHUNK_GROUPS * SLC_GROUP_NNZ
};

/* Positions of packed values of w bits; eight values occupy w bytes. There is one struct for each
 * w; loading it replaces a dozen instructions. Byte b of element l of `source` is the index of the
 * byte in which the values of the element start, plus b. Byte b of `shift` is the bit at which
 * value b of the element starts. */
struct byte_lanes {
    _Alignas(64) uint8_t source[64];
    uint64_t shift, mask;
    uint64_t half_bytes; /* number of bytes that 64 values occupy */
};

#define LANE(w, l)                                                                                 \
    (l) * (w), (l) * (w) + 1, (l) * (w) + 2, (l) * (w) + 3, (l) * (w) + 4, (l) * (w) + 5,          \
        (l) * (w) + 6, (l) * (w) + 7
#define BYTE_LANES(w)                                                                              \
    {                                                                                              \
        {LANE(w, 0), LANE(w, 1), LANE(w, 2), LANE(w, 3),                                           \
         LANE(w, 4), LANE(w, 5), LANE(w, 6), LANE(w, 7)},                                          \
            (w)*UINT64_C(0x0706050403020100), ((1U << (w)) - 1) * UINT64_C(0x0101010101010101),    \
            8 * (w)                                                                                \
    }

static const struct byte_lanes byte_lanes[WIDTH_MOST + 1] = {
    BYTE_LANES(0), BYTE_LANES(1), BYTE_LANES(2), BYTE_LANES(3), BYTE_LANES(4),
    BYTE_LANES(5), BYTE_LANES(6), BYTE_LANES(7), BYTE_LANES(8)};

/* A group whose exceptions have been read. */
struct group {
    /* high parts of the exceptions at their positions, reduced to the bits of a run */
    __m512i part[2];
    uint64_t place[2]; /* positions of jumps: exceptions that change the key above a run's bits */
    const uint8_t *packed;
    const struct byte_lanes *lanes;
    uint32_t runs_to; /* number of runs up to the group's last nonzero */
    uint32_t end;     /* low bits of the group's last key */
};

/* Data passed between the passes over a chunk. */
struct chunk {
    struct group group[SLC_CHUNK_GROUPS];
    /* One bit per run, for its start: `wrapped` if the sum wraps around, `jumped` at a jump. */
    uint64_t wrapped[CHUNK_NNZ / 64 + 1], jumped[CHUNK_NNZ / 64 + 1];
    uint32_t jumps[CHUNK_NNZ + 1 + LANES]; /* change of the upper bits at each jump */
};

/* Sets the bits of sixteen positions: 0..63 in place[0], 64..127 in place[1]; ignores others. */
AVX512_INLINE void places_of(__m128i positions, uint64_t place[2])
{
    const __m512i one = _mm512_set1_epi64(1), half = _mm512_set1_epi64(HALF);
    const __m512i first = _mm512_cvtepu8_epi64(positions);
    const __m512i second = _mm512_cvtepu8_epi64(_mm_srli_si128(positions, 8));
    /* Shifts by 64 or more, or by a negative count, yield zero. */
    const __m512i low =
        _mm512_or_si512(_mm512_sllv_epi64(one, first), _mm512_sllv_epi64(one, second));
    const __m512i high = _mm512_or_si512(_mm512_sllv_epi64(one, _mm512_sub_epi64(first, half)),
                                         _mm512_sllv_epi64(one, _mm512_sub_epi64(second, half)));
    const __m512i twos =
        _mm512_or_si512(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
    const __m256i fours =
        _mm256_or_si256(_mm512_castsi512_si256(twos), _mm512_extracti64x4_epi64(twos, 1));
    const __m128i all =
        _mm_or_si128(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));

    place[0] = (uint64_t)_mm_cvtsi128_si64(all);
    place[1] = (uint64_t)_mm_extract_epi64(all, 1);
}

/* Adds up to sixteen exceptions to *group and stores their parts above the lowest `bits` bits in
 * `jumps`. Returns the number of jumps; sets bits of *faults if exceptions are invalid. */
AVX512_INLINE uint32_t patch_step(struct group *group,
                                  const uint8_t *positions,
                                  uint32_t count,
                                  __m512i value,
                                  unsigned width,
                                  unsigned bits,
                                  uint32_t *jumps,
                                  __mmask16 *faults)
{
    /* Selects the lowest byte of each of sixteen words. */
    const __m128i lowest =
        _mm_setr_epi8(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60);
    const __mmask16 lanes = (__mmask16)_bzhi_u32(0xFFFF, count);
    const __m128i now = _mm_mask_loadu_epi8(_mm_set1_epi8(-1), lanes, positions);
    /* Each position must be below the next position, and the last position below the group size. */
    const __m128i next = _mm_mask_loadu_epi8(_mm_set1_epi8((char)SLC_GROUP_NNZ),
                                             _kshiftri_mask16(lanes, 1), positions + 1);
    const __m512i whole = _mm512_sll_epi32(value, _mm_cvtsi32_si128((int)width));
    const __m512i low =
        _mm512_and_si512(whole, _mm512_set1_epi32((int32_t)_bzhi_u32(UINT32_MAX, bits)));
    const __m512i above = _mm512_srl_epi32(whole, _mm_cvtsi32_si128((int)bits));
    const __mmask16 jumping = _mm512_mask_test_epi32_mask(lanes, above, above);
    const uint32_t jumped = _cvtmask16_u32(jumping);
    uint64_t place[2];
    uint32_t inside;
    __m128i second;

    *faults = _kor_mask16(*faults, _kor_mask16(_mm512_mask_testn_epi32_mask(lanes, value, value),
                                               _mm_mask_cmpge_epu8_mask(lanes, now, next)));
    places_of(now, place);
    inside = (uint32_t)_mm_popcnt_u64(place[0]);
    second = _mm_add_epi8(lowest, _mm_set1_epi8((char)(4 * inside)));
    group->part[0] = _mm512_or_si512(
        group->part[0],
        _mm512_maskz_expand_epi8(place[0],
                                 _mm512_permutexvar_epi8(_mm512_castsi128_si512(lowest), low)));
    group->part[1] = _mm512_or_si512(
        group->part[1],
        _mm512_maskz_expand_epi8(place[1],
                                 _mm512_permutexvar_epi8(_mm512_castsi128_si512(second), low)));
    _mm512_storeu_si512(jumps, _mm512_maskz_compress_epi32(jumping, above));
    group->place[0] |= _pdep_u64(jumped, place[0]);
    group->place[1] |= _pdep_u64(jumped >> inside, place[1]);
    return (uint32_t)_mm_popcnt_u32(jumped);
}

/* Reads the exceptions of the groups; returns false if they are invalid. This pass and sum_groups
 * are not inlined, so that each can use all registers. */
AVX512 __attribute__((noinline)) static bool read_groups(struct chunk *chunk,
                                                         const struct slc_patched_view *view,
                                                         uint32_t first,
                                                         uint32_t groups,
                                                         unsigned bits)
{
    uint32_t *jumps = chunk->jumps + 1;
    __mmask16 faults = 0;
    uint32_t wrong = 0;

    for (uint32_t g = 0; g < groups; g++) {
        const unsigned width = view->widths[first + g], extra = view->extras[first + g];
        const struct sixteen sixteen = sixteen_init(extra);
        uint32_t left = view->exceptions[first + g];
        const uint32_t used = left * extra + 7;
        struct group group = {.packed = view->data + view->group_at[first + g],
                              .lanes = &byte_lanes[width],
                              .part = {_mm512_setzero_si512(), _mm512_setzero_si512()}};
        const uint8_t *positions = group.packed + SLC_GROUP_NNZ / 8 * width;
        const uint8_t *packed = positions + left;

        /* Checks unused bits: shifts the last byte by its number of used bits, or by 8 if none is
         * used. */
        wrong |= (uint32_t)packed[(int32_t)(used / 8) - 1] >> (used % 8 + 1);
        jumps += patch_step(&group, positions, left, sixteen_get(&sixteen, packed), width, bits,
                            jumps, &faults);
        while (__builtin_expect(left > LANES, 0)) {
            /* Compare the last position of a step with the first position of the next step. */
            wrong |= positions[LANES - 1] >= positions[LANES];
            positions += LANES;
            packed += LANES / 8 * extra;
            left -= LANES;
            jumps += patch_step(&group, positions, left, sixteen_get(&sixteen, packed), width, bits,
                                jumps, &faults);
        }
        chunk->group[g] = group;
    }
    return (_cvtmask16_u32(faults) | wrong) == 0;
}

/* Returns prefix sums of 64 steps (gap + 1) modulo 2^8, each plus the previous sum, `before`. */
AVX512_INLINE __m512i sums_of(__m512i steps, __m512i before, __mmask64 later)
{
    const __m512i zero = _mm512_setzero_si512();
    /* All bytes of element l become the last byte of element l - 1. */
    const __m512i lane_before = _mm512_set_epi64(
        0x3737373737373737, 0x2F2F2F2F2F2F2F2F, 0x2727272727272727, 0x1F1F1F1F1F1F1F1F,
        0x1717171717171717, 0x0F0F0F0F0F0F0F0F, 0x0707070707070707, 0);
    __m512i lane = _mm512_add_epi8(steps, _mm512_slli_epi64(steps, 8));
    __m512i sum;

    lane = _mm512_add_epi8(lane, _mm512_slli_epi64(lane, 16));
    lane = _mm512_add_epi8(lane, _mm512_slli_epi64(lane, 32));
    /* Add up the last bytes of the elements. */
    sum = _mm512_add_epi8(lane, _mm512_alignr_epi64(lane, zero, 7));
    sum = _mm512_add_epi8(sum, _mm512_alignr_epi64(sum, zero, 6));
    sum = _mm512_add_epi8(sum, _mm512_alignr_epi64(sum, zero, 4));
    sum = _mm512_maskz_permutexvar_epi8(later, lane_before, sum);
    return _mm512_add_epi8(_mm512_add_epi8(lane, before), sum);
}

/* State of the pass over gaps. */
struct runner {
    __m512i bits, mask, base, largest;
    __m512i at;     /* the step's first nonzero: its index in the chunk */
    __m512i before; /* low bits of the last key, in every byte */
    /* masks: the lowest byte of every four bytes; all bytes except the first eight */
    __mmask64 lowest, later;
    struct chunk *chunk;
    uint32_t *offsets, *begin;
    uint64_t wrapped, jumped; /* words of chunk->wrapped and chunk->jumped that are being filled */
    uint32_t runs;
};

/* Records the runs among 64 nonzeros: a run starts at each bit of `wrapped` and of `jumped`. */
AVX512_INLINE void note_runs(struct runner *runner, uint64_t wrapped, uint64_t jumped)
{
    const __m512i iota = _mm512_set_epi8(
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41,
        40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,
        17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const uint64_t begins = wrapped | jumped;
    const uint32_t count = (uint32_t)_mm_popcnt_u64(begins);
    uint32_t *begin = runner->begin + runner->runs;
    __m512i where = _mm512_maskz_compress_epi8(begins, iota);

    _mm512_storeu_si512(
        begin, _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(where)), runner->at));
    for (uint32_t i = LANES; __builtin_expect(i < count, 0); i += LANES) {
        where = _mm512_shuffle_i64x2(where, where, 0x39); /* the next sixteen bytes */
        _mm512_storeu_si512(
            begin + i,
            _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(where)), runner->at));
    }
    runner->at = _mm512_add_epi32(runner->at, _mm512_set1_epi32(HALF));
    wrapped = _pext_u64(wrapped, begins);
    jumped = _pext_u64(jumped, begins);
    runner->wrapped |= wrapped << runner->runs % 64;
    runner->jumped |= jumped << runner->runs % 64;
    if (__builtin_expect(runner->runs % 64 + count >= 64, 0)) {
        runner->chunk->wrapped[runner->runs / 64] = runner->wrapped;
        runner->chunk->jumped[runner->runs / 64] = runner->jumped;
        /* Shift by 64 - runs % 64 in two steps, because this difference may be 64. */
        runner->wrapped = wrapped >> 1 >> (63 - runner->runs % 64);
        runner->jumped = jumped >> 1 >> (63 - runner->runs % 64);
    }
    runner->runs += count;
}

/* Zero-extends bytes 16 * q .. 16 * q + 15 of `bytes` to 32-bit words. */
AVX512_INLINE __m512i sixteen_words(__m512i bytes, int q, __mmask64 lowest)
{
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);

    return _mm512_maskz_permutexvar_epi8(
        lowest, _mm512_add_epi8(first, _mm512_set1_epi8((char)(LANES * q))), bytes);
}

/* Computes offsets and run starts of half a group. */
AVX512_INLINE void sum_half(struct runner *runner, const struct group *group, uint32_t half)
{
    const struct byte_lanes *lanes = group->lanes;
    const __m512i source = _mm512_load_si512(lanes->source);
    const __m512i packed = _mm512_loadu_si512(group->packed + (half == 0 ? 0 : lanes->half_bytes));
    const __m512i moved = _mm512_multishift_epi64_epi8(_mm512_set1_epi64((int64_t)lanes->shift),
                                                       _mm512_permutexvar_epi8(source, packed));
    const __m512i gap = _mm512_ternarylogic_epi32(moved, _mm512_set1_epi64((int64_t)lanes->mask),
                                                  group->part[half], 0xEA); /* (a & b) | c */
    const __m512i steps = _mm512_add_epi8(gap, _mm512_set1_epi8(1));
    const __m512i sum =
        _mm512_and_si512(sums_of(steps, runner->before, runner->later), runner->bits);
    const __m512i offset = _mm512_sub_epi8(_mm512_and_si512(sum, runner->mask), runner->base);

    runner->before = _mm512_permutexvar_epi8(_mm512_set1_epi8(63), sum);
    runner->largest = _mm512_max_epu8(runner->largest, offset);
    _mm512_storeu_si512(runner->offsets, sixteen_words(offset, 0, runner->lowest));
    _mm512_storeu_si512(runner->offsets + 16, sixteen_words(offset, 1, runner->lowest));
    _mm512_storeu_si512(runner->offsets + 32, sixteen_words(offset, 2, runner->lowest));
    _mm512_storeu_si512(runner->offsets + 48, sixteen_words(offset, 3, runner->lowest));
    runner->offsets += HALF;
    /* A sum that is at most the gap just added has wrapped around. */
    note_runs(runner, _cvtmask64_u64(_mm512_cmple_epu8_mask(sum, gap)), group->place[half]);
}

AVX512_INLINE uint32_t largest_byte(__m512i bytes)
{
    const __m256i half =
        _mm256_max_epu8(_mm512_castsi512_si256(bytes), _mm512_extracti64x4_epi64(bytes, 1));
    const __m128i fourth =
        _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));

    return _mm512_reduce_max_epu32(_mm512_cvtepu8_epi32(fourth));
}

/* Computes offsets and run starts of all groups. */
AVX512 __attribute__((noinline)) static void
sum_groups(struct chunk *chunk, uint32_t groups, struct slc_byte_runs *runs)
{
    struct runner runner = {.bits = _mm512_set1_epi8((char)slc_low_mask(runs->bits)),
                            .mask = _mm512_set1_epi8((char)runs->mask),
                            .base = _mm512_set1_epi8((char)runs->base),
                            .largest = _mm512_setzero_si512(),
                            .at = _mm512_setzero_si512(),
                            .before = _mm512_set1_epi8((char)(runs->first - 1)),
                            .lowest = 0x1111111111111111,
                            .later = ~UINT64_C(0xFF),
                            .chunk = chunk,
                            .offsets = runs->offsets,
                            .begin = runs->begin};

    for (struct group *group = chunk->group; group < chunk->group + groups; group++) {
        /* Keep the masks in registers; otherwise the compiler would load them in each step. */
        __asm__("" : "+k"(runner.lowest), "+k"(runner.later));
        sum_half(&runner, group, 0);
        sum_half(&runner, group, 1);
        group->end = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(runner.before)) & 0xFF;
        group->runs_to = runner.runs;
    }
    chunk->wrapped[runner.runs / 64] = runner.wrapped;
    chunk->jumped[runner.runs / 64] = runner.jumped;
    runs->runs = runner.runs;
    runs->largest = largest_byte(runner.largest);
}

/* Computes the upper key bits of every run; `jump` points to the first jump to be added. */
AVX512_INLINE void
find_heads(const struct chunk *chunk, const uint32_t *jump, struct slc_byte_runs *runs)
{
    const __m512i zero = _mm512_setzero_si512();
    const __m128i bits = _mm_cvtsi32_si128((int)runs->bits);
    __m512i before = _mm512_set1_epi32((int32_t)((runs->first - 1) >> runs->bits));

    for (uint32_t r = 0; r < runs->runs; r += LANES) {
        const __mmask16 wrapped = (__mmask16)(chunk->wrapped[r / 64] >> r % 64);
        const __mmask16 jumped = (__mmask16)(chunk->jumped[r / 64] >> r % 64);
        __m512i sum = _mm512_maskz_expand_epi32(jumped, _mm512_loadu_si512(jump));

        jump += _mm_popcnt_u32(jumped);
        sum = _mm512_mask_add_epi32(sum, wrapped, sum, _mm512_set1_epi32(1));
        sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 15));
        sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 14));
        sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 12));
        sum = _mm512_add_epi32(sum, _mm512_alignr_epi32(sum, zero, 8));
        sum = _mm512_add_epi32(sum, before);
        _mm512_storeu_si512(runs->heads + r, _mm512_sll_epi32(sum, bits));
        before = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sum);
    }
}

AVX512 bool slc_avx512_byte_runs(const struct slc_patched_view *gaps,
                                 uint32_t group,
                                 uint32_t groups,
                                 struct slc_byte_runs *runs)
{
    struct chunk chunk;

    for (uint32_t g = group; g < group + groups; g++) {
        if (gaps->widths[g] > runs->bits || gaps->widths[g] + gaps->extras[g] > GAP_BITS) {
            return false;
        }
    }
    if (!read_groups(&chunk, gaps, group, groups, runs->bits)) {
        return false;
    }
    /* The start of the first run counts as a jump, whose change may be zero. */
    chunk.jumps[0] = 0;
    /* Stored by vectors: NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    const uint32_t *jump = chunk.group[0].place[0] % 2 == 0 ? chunk.jumps : chunk.jumps + 1;
    chunk.group[0].place[0] |= 1;
    sum_groups(&chunk, groups, runs);
    find_heads(&chunk, jump, runs);
    for (uint32_t g = 0; g < groups; g++) {
        runs->ends[g] = runs->heads[chunk.group[g].runs_to - 1] + chunk.group[g].end;
    }
    return true;
}

#endif

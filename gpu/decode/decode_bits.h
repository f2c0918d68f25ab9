/* Reads numbers from unaligned bytes: bit strings and byte planes. Device code.
 *
 * Each warp lane reads SLC_LANE_NNZ consecutive nonzeros of a group, so that one prefix sum over
 * the warp suffices for the group. For positions after the group's last nonzero, the last nonzero
 * is read again. Therefore, reads end at most one word after the bytes of the numbers, and the
 * slack of blocks allows this word (docs/FORMAT.md, section 5). */
#ifndef SLC_GPU_DECODE_BITS_H
#define SLC_GPU_DECODE_BITS_H

#include "gpu/cuda/batch.h"

enum { SLC_LANE_NNZ = SLC_GROUP_NNZ / SLC_WARP };

__host__ __device__ static inline uint32_t slc_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Type of keys and gaps of more than 64 bits. */
__extension__ typedef unsigned __int128 slc_wide;

/* The nonzeros of a group, and the warp lane that reads SLC_LANE_NNZ of them. */
struct slc_group_place {
    uint32_t first; /* ordinal of the group's first nonzero within the tile */
    uint32_t size;
    uint32_t lane;
};

/* Returns true if nonzero j of the warp lane exists: the last group of a tile may be shorter. */
__device__ static inline bool slc_lane_has(const struct slc_group_place &place, uint32_t j)
{
    return SLC_LANE_NNZ * place.lane + j < place.size;
}

/* Returns the position in the group of the warp lane's nonzero j, or of the group's last nonzero if
 * j does not exist. */
__device__ static inline uint32_t slc_lane_index(const struct slc_group_place &place, uint32_t j)
{
    return slc_least(SLC_LANE_NNZ * place.lane + j, place.size - 1);
}

template <typename Word> __device__ static inline Word slc_low_bits(unsigned width)
{
    return width >= 8 * sizeof(Word) ? ~(Word)0 : ((Word)1 << width) - 1;
}

/* A string of bits that begins at bit `start` of `words`. */
struct slc_bit_string {
    const uint32_t *words;
    uint32_t start;
};

__device__ static inline struct slc_bit_string slc_bit_string_at(const uint8_t *bytes)
{
    const uint32_t odd = (uint32_t)(reinterpret_cast<uintptr_t>(bytes) % sizeof(uint32_t));
    struct slc_bit_string string;

    string.words = reinterpret_cast<const uint32_t *>(bytes - odd);
    string.start = 8 * odd;
    return string;
}

/* Returns bits [bit, bit + 32) of `words`. The shift instruction itself reduces its count modulo
 * 32. */
__device__ static inline uint32_t slc_bits_load(const uint32_t *words, uint32_t bit)
{
    const uint32_t *from = words + bit / 32;

    return __funnelshift_r(__ldg(from), __ldg(from + 1), bit);
}

/* Returns the number in bits [bit, bit + width) of the string. Needs: `width` is at most the bits
 * of Word. */
template <typename Word>
__device__ static inline Word
slc_bits_read(const struct slc_bit_string &string, uint32_t bit, unsigned width)
{
    Word bits = slc_bits_load(string.words, string.start + bit);

    if constexpr (sizeof(Word) > 4) {
        for (unsigned at = 32; at < 8 * sizeof(Word); at += 32) {
            if (width > at) {
                bits |= (Word)slc_bits_load(string.words, string.start + bit + at) << at;
            }
        }
    }
    return bits & slc_low_bits<Word>(width);
}

/* Byte planes of `nnz` numbers of `count` bytes. Plane 0 has the lowest byte of every number. */
struct slc_planes {
    struct slc_bit_string string;
    uint32_t last_word; /* last word with bytes of the planes; memory after it may not exist */
    uint32_t nnz, count;
};

__device__ static inline struct slc_planes
slc_planes_at(const uint8_t *bytes, uint32_t nnz, uint32_t count)
{
    struct slc_planes planes;

    planes.string = slc_bit_string_at(bytes);
    planes.last_word = count == 0 ? 0 : (planes.string.start / 8 + nnz * count - 1) / 4;
    planes.nnz = nnz;
    planes.count = count;
    return planes;
}

/* Returns bytes i .. i + 3 of plane b; bytes after the last plane are undefined. */
__device__ static inline uint32_t
slc_planes_load(const struct slc_planes &planes, uint32_t b, uint32_t i)
{
    const uint32_t bit = planes.string.start + 8 * (b * planes.nnz + i);
    const uint32_t word = bit / 32;
    const uint32_t next = slc_least(word + 1, planes.last_word);

    return __funnelshift_r(__ldg(planes.string.words + word), __ldg(planes.string.words + next),
                           bit);
}

/* Reads the warp lane's numbers of a group; numbers of nonzeros that do not exist are undefined. */
template <typename Word>
__device__ static inline void slc_planes_read(const struct slc_planes &planes,
                                              const struct slc_group_place &place,
                                              Word numbers[SLC_LANE_NNZ])
{
    const uint32_t first = place.first + slc_lane_index(place, 0);

    for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
        numbers[j] = 0;
    }
    SLC_ROLL
    for (uint32_t b = 0; b < planes.count; b++) {
        const uint32_t bytes = slc_planes_load(planes, b, first);

        for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
            numbers[j] |= (Word)(bytes >> 8 * j & 0xff) << 8 * b;
        }
    }
}

/* Returns number i. */
__device__ static inline slc_wide slc_planes_number(const struct slc_planes &planes, uint32_t i)
{
    slc_wide number = 0;

    SLC_ROLL
    for (uint32_t b = 0; b < planes.count; b++) {
        number |= (slc_wide)(slc_planes_load(planes, b, i) & 0xff) << 8 * b;
    }
    return number;
}

/* Sums the numbers [begin, end) with all warp lanes together. The sum is at most 2^16 times the
 * largest number. Cost: one load of two words per four bytes. */
__device__ static inline slc_wide
slc_planes_sum(const struct slc_planes &planes, uint32_t begin, uint32_t end, uint32_t lane)
{
    slc_wide sum = 0;

    SLC_ROLL
    for (uint32_t b = 0; b < planes.count; b++) {
        uint32_t mine = 0;

        SLC_ROLL
        for (uint32_t i = begin + 4 * lane; i < end; i += 4 * SLC_WARP) {
            const uint32_t bytes = slc_planes_load(planes, b, i);
            const uint32_t there = end - i < 4 ? slc_low_bits<uint32_t>(8 * (end - i)) : ~0U;

            mine = __dp4a(bytes & there, 0x01010101U, mine);
        }
        sum += (slc_wide)__reduce_add_sync(SLC_ALL_LANES, mine) << 8 * b;
    }
    return sum;
}

#endif

/* Decodes patched groups (docs/FORMAT.md, section 6): numbers of one width, and exceptions whose
 * high parts are stored separately. Device code. */
#ifndef SLC_GPU_DECODE_PATCHED_H
#define SLC_GPU_DECODE_PATCHED_H

#include "gpu/decode/decode_bits.h"

/* Position in a sequence of groups: the number of the next group, and its offset in the block. */
struct slc_patched_cursor {
    uint32_t group, at;
};

struct slc_patched_group {
    const uint8_t *bytes;
    uint32_t width, extra, exceptions;
};

__device__ static inline struct slc_patched_group
slc_patched_header(const uint8_t *block,
                   const struct slc_encoded_patched &patched,
                   const struct slc_patched_cursor &cursor)
{
    struct slc_patched_group found;

    found.bytes = block + cursor.at;
    found.width = __ldg(block + patched.widths_at + cursor.group);
    found.extra = __ldg(block + patched.extras_at + cursor.group);
    found.exceptions = __ldg(block + patched.counts_at + cursor.group);
    return found;
}

/* Returns the bytes of the packed low parts of a group. */
__device__ static inline uint32_t slc_patched_low_bytes(const struct slc_patched_group &group,
                                                        uint32_t size)
{
    return (size * group.width + 7) / 8;
}

__device__ static inline uint32_t slc_patched_bytes(const struct slc_patched_group &group,
                                                    uint32_t size)
{
    return slc_patched_low_bytes(group, size) + group.exceptions +
           (group.exceptions * group.extra + 7) / 8;
}

/* Returns a cursor at the first group of run `run`. The warp sums the bytes of the earlier groups,
 * of which there are at most 508, all full. In each step, a warp lane sums the bytes of the four
 * groups of one run. */
__device__ static inline struct slc_patched_cursor slc_patched_seek(
    const uint8_t *block, const struct slc_encoded_patched &patched, uint32_t run, uint32_t lane)
{
    const struct slc_bit_string widths = slc_bit_string_at(block + patched.widths_at);
    const struct slc_bit_string extras = slc_bit_string_at(block + patched.extras_at);
    const struct slc_bit_string counts = slc_bit_string_at(block + patched.counts_at);
    uint32_t width_sum = 0, others = 0;

    static_assert(SLC_RUN_NNZ / SLC_GROUP_NNZ == 4, "a word has the bytes of a run's groups");
    SLC_ROLL
    for (uint32_t before = lane; before < run; before += SLC_WARP) {
        const uint32_t extra = slc_bits_load(extras.words + before, extras.start);
        const uint32_t count = slc_bits_load(counts.words + before, counts.start);

        width_sum =
            __dp4a(slc_bits_load(widths.words + before, widths.start), 0x01010101U, width_sum);
        others = __dp4a(count, 0x01010101U, others);
        for (uint32_t g = 0; g < 32; g += 8) {
            others += ((count >> g & 0xff) * (extra >> g & 0xff) + 7) / 8;
        }
    }
    others += SLC_GROUP_NNZ / 8 * width_sum;
    const struct slc_patched_cursor cursor = {run * (SLC_RUN_NNZ / SLC_GROUP_NNZ),
                                              patched.data_at +
                                                  __reduce_add_sync(SLC_ALL_LANES, others)};

    return cursor;
}

/* Returns the group at the cursor, which has `size` numbers, and advances the cursor. */
__device__ static inline struct slc_patched_group
slc_patched_next(const uint8_t *block,
                 const struct slc_encoded_patched &patched,
                 uint32_t size,
                 struct slc_patched_cursor *cursor)
{
    const struct slc_patched_group group = slc_patched_header(block, patched, *cursor);

    cursor->group++;
    cursor->at += slc_patched_bytes(group, size);
    return group;
}

/* Adds the high parts of exceptions to the numbers of the warp lanes, but only to bits 32 * word ..
 * 32 * word + 31 of the numbers. Returns false on all warp lanes, with some high parts missing, if
 * a high part is zero, or if positions do not ascend or are not below the group's size. Ascending
 * positions ensure that no two warp lanes write to the same place. */
template <typename Word>
__device__ static inline bool slc_patched_add_word(const struct slc_patched_group &group,
                                                   const struct slc_group_place &place,
                                                   unsigned word,
                                                   struct slc_decode_scratch *scratch,
                                                   Word numbers[SLC_LANE_NNZ])
{
    const uint8_t *positions = group.bytes + slc_patched_low_bytes(group, place.size);
    const struct slc_bit_string high = slc_bit_string_at(positions + group.exceptions);
    uint4 *mine = reinterpret_cast<uint4 *>(scratch->parts) + place.lane;
    bool sound = true;

    *mine = make_uint4(0, 0, 0, 0);
    SLC_PLANT(decode_parts_not_clear, __syncwarp());
    SLC_ROLL
    for (uint32_t first = 0; first < group.exceptions && sound; first += SLC_WARP) {
        const uint32_t k = first + place.lane;
        uint32_t position = 0, bits = 0;
        bool ascends = true;

        if (k < group.exceptions) {
            const Word part = slc_bits_read<Word>(high, k * group.extra, group.extra);

            position = __ldg(positions + k);
            ascends = position < place.size && part != 0 &&
                      (k == 0 || position > __ldg(positions + k - 1));
            bits = (uint32_t)(part << group.width >> 32 * word);
        }
        sound = __all_sync(SLC_ALL_LANES, ascends);
        if (sound && bits != 0) {
            scratch->parts[position] = bits;
        }
    }
    SLC_PLANT(decode_parts_not_there, __syncwarp());
    numbers[0] |= (Word)mine->x << 32 * word;
    numbers[1] |= (Word)mine->y << 32 * word;
    numbers[2] |= (Word)mine->z << 32 * word;
    numbers[3] |= (Word)mine->w << 32 * word;
    return sound;
}

/* Reads the warp lane's numbers of a group, which must fit in a Word. Returns false on all warp
 * lanes, with undefined numbers, if the exceptions contradict the format. */
template <typename Word>
__device__ static inline bool slc_patched_read(const struct slc_patched_group &group,
                                               const struct slc_group_place &place,
                                               struct slc_decode_scratch *scratch,
                                               Word numbers[SLC_LANE_NNZ])
{
    const struct slc_bit_string low = slc_bit_string_at(group.bytes);
    const uint32_t last = (place.size - 1) * group.width;
    uint32_t bit = SLC_LANE_NNZ * place.lane * group.width;
    bool sound = true;

    for (uint32_t j = 0; j < SLC_LANE_NNZ; j++) {
        numbers[j] = slc_bits_read<Word>(low, slc_least(bit, last), group.width);
        bit += group.width;
    }
    if (group.exceptions == 0) {
        return true;
    }
    SLC_ROLL
    for (unsigned word = 0; word < sizeof(Word) / 4; word++) {
        if (sizeof(Word) == 4 ||
            (group.width < 32 * (word + 1) && group.width + group.extra > 32 * word)) {
            sound = slc_patched_add_word(group, place, word, scratch, numbers) && sound;
        }
    }
    return sound;
}

/* Checks positions and high parts as slc_patched_add_word does, without reading the numbers. */
__device__ static inline bool slc_patched_is_sound(const struct slc_patched_group &group,
                                                   const struct slc_group_place &place)
{
    const uint8_t *positions = group.bytes + slc_patched_low_bytes(group, place.size);
    const struct slc_bit_string high = slc_bit_string_at(positions + group.exceptions);
    bool sound = true;

    for (uint32_t k = place.lane; k < group.exceptions; k += SLC_WARP) {
        const uint32_t position = __ldg(positions + k);

        sound &= position < place.size && (k == 0 || position > __ldg(positions + k - 1)) &&
                 slc_bits_read<slc_wide>(high, k * group.extra, group.extra) != 0;
    }
    return __all_sync(SLC_ALL_LANES, sound);
}

/* Returns number i of a group of `size` numbers. Searches the positions of exceptions for the high
 * part of the number. */
__device__ static inline slc_wide
slc_patched_number(const struct slc_patched_group &group, uint32_t size, uint32_t i)
{
    const uint8_t *positions = group.bytes + slc_patched_low_bytes(group, size);
    const slc_wide low =
        slc_bits_read<slc_wide>(slc_bit_string_at(group.bytes), i * group.width, group.width);
    uint32_t begin = 0, end = group.exceptions;

    SLC_ROLL
    while (begin < end) {
        const uint32_t middle = (begin + end) / 2;

        if (__ldg(positions + middle) < i) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    if (begin == group.exceptions || __ldg(positions + begin) != i) {
        return low;
    }
    return low | slc_bits_read<slc_wide>(slc_bit_string_at(positions + group.exceptions),
                                         begin * group.extra, group.extra)
                     << group.width;
}

#endif

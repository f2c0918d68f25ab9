/* Plain C bodies of the inner loops of storage/codec/decode_ops.h. Each table wraps them in
 * functions for its own instruction set, so that the compiler vectorizes the same source for each
 * set. */
#ifndef SLC_STORAGE_DECODE_LOOPS_H
#define SLC_STORAGE_DECODE_LOOPS_H

#include "storage/codec/decode_ops.h"

#define SLC_LOOP static inline __attribute__((always_inline))

SLC_LOOP void
slc_loop_unpack(const uint8_t *packed, unsigned width, uint32_t count, uint64_t *values)
{
    const uint64_t mask = slc_low_mask(width);

    if (width == 0) {
        /* The loop below would load past the section for a zero-width group at its end. */
        memset(values, 0, count * sizeof *values);
    } else if (width <= 57) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t bit = i * width;

            values[i] = (slc_load_u64(packed + (bit >> 3)) >> (bit & 7)) & mask;
        }
    } else {
        for (uint32_t i = 0; i < count; i++) {
            values[i] = slc_bits_get(packed, (uint64_t)i * width, width);
        }
    }
}

SLC_LOOP void slc_loop_sum(const uint64_t *gaps, uint32_t count, uint64_t first, uint64_t *keys)
{
    uint64_t key = first - 1;

    for (uint32_t i = 0; i < count; i++) {
        key += gaps[i] + 1;
        keys[i] = key;
    }
}

SLC_LOOP uint32_t slc_loop_runs(const uint64_t *keys,
                                uint32_t count,
                                unsigned shift,
                                uint32_t *begin)
{
    uint32_t runs = 1;

    begin[0] = 0;
    for (uint32_t i = 1; i < count; i++) {
        begin[runs] = i;
        runs += (keys[i] ^ keys[i - 1]) >> shift != 0;
    }
    return runs;
}

SLC_LOOP uint64_t slc_loop_gather_long(const struct slc_gather *gather, uint64_t key)
{
    uint64_t bits = key >> gather->shift & gather->picked;

    for (unsigned k = 0; k < 6; k++) {
        uint64_t moving = bits & gather->move[k];

        bits = (bits ^ moving) | moving >> (1U << k);
    }
    return bits;
}

/* Gathers the bits of a mask that spans at most 32 bits. Compared with slc_loop_gather_long, a
 * vector holds twice as many elements, because they have 32 bits, and the loop has five steps
 * instead of six. */
SLC_LOOP uint32_t slc_loop_gather_short(const struct slc_gather *gather, uint64_t key)
{
    uint32_t bits = (uint32_t)(key >> gather->shift) & (uint32_t)gather->picked;

    for (unsigned k = 0; k < 5; k++) {
        uint32_t moving = bits & (uint32_t)gather->move[k];

        bits = (bits ^ moving) | moving >> (1U << k);
    }
    return bits;
}

SLC_LOOP void slc_loop_gather(const struct slc_gather *gather,
                              const uint64_t *keys,
                              uint32_t count,
                              uint32_t *fields)
{
    const struct slc_gather plan = *gather;

    if (plan.picked <= UINT32_MAX) {
        for (uint32_t i = 0; i < count; i++) {
            fields[i] = slc_loop_gather_short(&plan, keys[i]);
        }
    } else {
        for (uint32_t i = 0; i < count; i++) {
            fields[i] = (uint32_t)slc_loop_gather_long(&plan, keys[i]);
        }
    }
}

SLC_LOOP void slc_loop_gather_wide(const struct slc_gather *gather,
                                   const uint64_t *keys,
                                   uint32_t count,
                                   uint64_t *fields)
{
    const struct slc_gather plan = *gather;

    for (uint32_t i = 0; i < count; i++) {
        fields[i] = slc_loop_gather_long(&plan, keys[i]);
    }
}

SLC_LOOP uint32_t slc_loop_subtract_base(uint32_t *fields, uint32_t count, uint32_t base)
{
    uint32_t largest = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t offset = fields[i] - base;

        fields[i] = offset;
        largest = offset > largest ? offset : largest;
    }
    return largest;
}

typedef void slc_gather_fn(const struct slc_gather *gather,
                           const uint64_t *keys,
                           uint32_t count,
                           uint32_t *fields);

SLC_LOOP void slc_loop_fields(const struct slc_fields *plan,
                              const uint64_t *keys,
                              uint32_t count,
                              slc_gather_fn *gather,
                              uint32_t largest[SLC_MAX_ORDER])
{
    for (unsigned f = 0; f < plan->count; f++) {
        const struct slc_field *field = &plan->field[f];

        gather(field->gather, keys, count, field->offsets);
        largest[f] = slc_loop_subtract_base(field->offsets, count, field->base);
    }
}

SLC_LOOP bool slc_loop_keys(const struct slc_patched_view *gaps,
                            slc_unpack_fn *unpack,
                            uint32_t group,
                            uint32_t groups,
                            uint64_t first,
                            uint64_t *keys)
{
    for (uint32_t g = 0; g < groups; g++) {
        if (!slc_patched_whole(gaps, unpack, group + g, keys + (size_t)g * SLC_GROUP_NNZ)) {
            return false;
        }
    }
    slc_loop_sum(keys, groups * SLC_GROUP_NNZ, first, keys);
    return true;
}

SLC_LOOP bool slc_loop_integers(const struct slc_patched_view *above,
                                slc_unpack_fn *unpack,
                                uint32_t group,
                                uint32_t groups,
                                double low,
                                bool zeros,
                                double *values)
{
    uint64_t found = 0;

    for (uint32_t g = 0; g < groups; g++, values += SLC_GROUP_NNZ) {
        uint64_t words[SLC_GROUP_NNZ + 8];

        if (!slc_patched_whole(above, unpack, group + g, words)) {
            return false;
        }
        /* If the bits of an integer below 2^52 replace the mantissa of the f64 number 2^52, the
         * result is 2^52 plus the integer, so no conversion instruction is needed. */
        for (uint32_t i = 0; i < SLC_GROUP_NNZ; i++) {
            const uint64_t bits = words[i] | UINT64_C(0x4330000000000000);
            double value;

            memcpy(&value, &bits, sizeof value);
            value = (value - 0x1p52) + low;
            values[i] = value;
            found |= value == 0 ? UINT64_MAX : 0;
        }
    }
    return zeros || found == 0;
}

SLC_LOOP bool slc_loop_lookup(const uint8_t *packed,
                              slc_unpack_fn *unpack,
                              unsigned width,
                              uint32_t count,
                              const uint8_t *dictionary,
                              uint32_t entries,
                              double *values)
{
    for (uint32_t done = 0; done < count; done += SLC_GROUP_NNZ) {
        const uint32_t size = count - done < SLC_GROUP_NNZ ? count - done : SLC_GROUP_NNZ;
        uint64_t index[SLC_GROUP_NNZ + 8], largest = 0;

        unpack(packed + (size_t)done * width / 8, width, size, index);
        for (uint32_t i = 0; i < size; i++) {
            largest = index[i] > largest ? index[i] : largest;
        }
        if (largest >= entries) {
            return false;
        }
        for (uint32_t i = 0; i < size; i++) {
            values[done + i] = slc_load_f64(dictionary + 8 * index[i]);
        }
    }
    return true;
}

SLC_LOOP bool slc_loop_plain(const uint8_t *bytes, uint32_t count, bool zeros, double *values)
{
    const uint64_t zero_fault = zeros ? 0 : UINT64_MAX;
    uint64_t faults = 0;

    /* Infinity or NaN minus itself is NaN, which is unequal to 0. */
    for (uint32_t i = 0; i < count; i++) {
        double value = slc_load_f64(bytes + 8 * (size_t)i);

        values[i] = value;
        faults |= value == 0 ? zero_fault : 0;
        faults |= value - value == 0 ? 0 : UINT64_MAX;
    }
    return faults == 0;
}

SLC_LOOP uint64_t slc_loop_field(const uint8_t *indices,
                                 uint32_t count,
                                 unsigned shift,
                                 uint64_t mask,
                                 uint64_t add,
                                 uint32_t *offsets)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t offset = ((slc_load_u64(indices + 8 * (size_t)i) >> shift) & mask) + add;

        offsets[i] = (uint32_t)offset;
        largest = offset > largest ? offset : largest;
    }
    return largest;
}

#endif

/* Instantiates the loops of storage/codec/decode_loops.h for the instruction set of one table.
 * Needs LOOP_TARGET, the function attribute of the instruction set (may be empty), and LOOP_UNPACK,
 * the table's unpack function. LOOP_OPS initializes the corresponding members of struct
 * slc_decode_ops. */
#include "storage/codec/decode_loops.h"

LOOP_TARGET static void
loop_sum(const uint64_t *gaps, uint32_t count, uint64_t first, uint64_t *keys)
{
    slc_loop_sum(gaps, count, first, keys);
}

LOOP_TARGET static uint32_t
loop_runs(const uint64_t *keys, uint32_t count, unsigned shift, uint32_t *begin)
{
    return slc_loop_runs(keys, count, shift, begin);
}

LOOP_TARGET static void loop_gather_wide(const struct slc_gather *gather,
                                         const uint64_t *keys,
                                         uint32_t count,
                                         uint64_t *fields)
{
    slc_loop_gather_wide(gather, keys, count, fields);
}

LOOP_TARGET static uint32_t loop_subtract_base(uint32_t *fields, uint32_t count, uint32_t base)
{
    return slc_loop_subtract_base(fields, count, base);
}

LOOP_TARGET static bool loop_keys(const struct slc_patched_view *gaps,
                                  uint32_t group,
                                  uint32_t groups,
                                  uint64_t first,
                                  uint64_t *keys)
{
    return slc_loop_keys(gaps, LOOP_UNPACK, group, groups, first, keys);
}

LOOP_TARGET static bool loop_integers(const struct slc_patched_view *above,
                                      uint32_t group,
                                      uint32_t groups,
                                      double low,
                                      bool zeros,
                                      double *values)
{
    return slc_loop_integers(above, LOOP_UNPACK, group, groups, low, zeros, values);
}

LOOP_TARGET static bool loop_lookup(const uint8_t *packed,
                                    unsigned width,
                                    uint32_t count,
                                    const uint8_t *dictionary,
                                    uint32_t entries,
                                    double *values)
{
    return slc_loop_lookup(packed, LOOP_UNPACK, width, count, dictionary, entries, values);
}

LOOP_TARGET static bool loop_plain(const uint8_t *bytes, uint32_t count, bool zeros, double *values)
{
    return slc_loop_plain(bytes, count, zeros, values);
}

LOOP_TARGET static uint64_t loop_field(const uint8_t *indices,
                                       uint32_t count,
                                       unsigned shift,
                                       uint64_t mask,
                                       uint64_t add,
                                       uint32_t *offsets)
{
    return slc_loop_field(indices, count, shift, mask, add, offsets);
}

#define LOOP_OPS                                                                                   \
    .sum = loop_sum, .keys = loop_keys, .runs = loop_runs, .subtract_base = loop_subtract_base,    \
    .integers = loop_integers, .lookup = loop_lookup, .plain = loop_plain, .field = loop_field

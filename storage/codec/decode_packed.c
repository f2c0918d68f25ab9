/* Decodes codec 1, `packed` (docs/FORMAT.md, section 7.1): sums patched gaps to keys, and compares
 * them with the bases.
 *
 * Sequential decoding only checks the bases; devices need them to decode a tile in parallel. */
#include "storage/codec/decode_internal.h"

bool slc_packed_open(struct slc_decoder *decoder, struct slc_damage *damage)
{
    struct slc_packed_plan *packed = &decoder->plan.packed;
    const uint8_t *data = decoder->data;
    uint32_t bases = slc_bases_of(decoder->entry.nnz);
    uint64_t values_at = slc_load_u32(data + 4);
    uint64_t base_bits, gaps_at, gaps_bytes = 0;
    unsigned width = data[0];

    if (width > decoder->span_bits) {
        return slc_damage_set(damage, data, "the width of bases", width, "at most ",
                              decoder->span_bits);
    }
    if (slc_load_u16(data + 2) != 0) {
        return slc_damage_set(damage, data + 2, "a reserved field", slc_load_u16(data + 2), "", 0);
    }
    base_bits = (uint64_t)bases * width;
    gaps_at = 8 + ((slc_packed_bytes(bases, width) + 7) & ~UINT64_C(7));
    if (values_at < gaps_at || values_at % 8 != 0 || values_at > decoder->entry.data_bytes) {
        return slc_damage_set(damage, data + 4, "the offset of the values", values_at,
                              "a multiple of 8 and at most ", decoder->entry.data_bytes);
    }
    if (!slc_bits_zero_from(data + 8, base_bits, gaps_at - 8)) {
        return slc_damage_set(damage, data + gaps_at - 8, "padding after bases", 1, "", 0);
    }
    packed->bases = data + 8;
    packed->base_width = width;
    if (!slc_patched_open(&packed->gaps, data + gaps_at, values_at - gaps_at, decoder->entry.nnz,
                          decoder->span_bits, &gaps_bytes, damage)) {
        return false;
    }
    if (((gaps_bytes + 7) & ~UINT64_C(7)) != values_at - gaps_at) {
        return slc_damage_set(damage, data + 4, "the offset of the values", values_at, "",
                              gaps_at + gaps_bytes);
    }
    if (!slc_bits_zero_from(data + gaps_at, gaps_bytes * 8, values_at - gaps_at)) {
        return slc_damage_set(damage, data + gaps_at + gaps_bytes, "padding after gaps", 1, "", 0);
    }
    return slc_values_open(decoder, data[1], data + values_at,
                           decoder->entry.data_bytes - values_at, damage);
}

static bool check_base(const struct slc_decoder *decoder, uint32_t index, struct slc_damage *damage)
{
    const struct slc_packed_plan *packed = &decoder->plan.packed;
    unsigned width = packed->base_width;
    uint64_t bit = (uint64_t)index * width;
    slc_u128 base = slc_bits_get(packed->bases, bit, width < 64 ? width : 64);

    if (width > 64) {
        base |= (slc_u128)slc_bits_get(packed->bases, bit + 64, width - 64) << 64;
    }
    if (base != decoder->next) {
        return slc_damage_set(damage, packed->bases + bit / 8, "a base", (uint64_t)base, "",
                              (uint64_t)decoder->next);
    }
    if (index + 1 == slc_bases_of(decoder->entry.nnz) &&
        slc_bit_length_u128((uint64_t)base, (uint64_t)(base >> 64)) != width) {
        return slc_damage_set(damage, decoder->data, "the width of bases", width, "",
                              slc_bit_length_u128((uint64_t)base, (uint64_t)(base >> 64)));
    }
    return true;
}

/* Checks the keys of `count` nonzeros, starting at nonzero `start`, group by group; sums their gaps
 * to keys first unless `summed` is true. */
static bool check_groups(struct slc_decoder *decoder,
                         uint32_t start,
                         uint32_t count,
                         bool summed,
                         struct slc_damage *damage)
{
    const uint8_t *widths = decoder->plan.packed.gaps.widths;

    for (uint32_t done = 0; done < count; done += SLC_GROUP_NNZ) {
        const uint32_t group = (start + done) / SLC_GROUP_NNZ;
        const uint32_t size = slc_group_size(decoder->entry.nnz, group);
        const uint32_t at = start + done - decoder->position;

        if ((start + done) % SLC_BASE_NNZ == 0 &&
            !check_base(decoder, (start + done) / SLC_BASE_NNZ, damage)) {
            return false;
        }
        if (!(summed ? slc_decoder_check_keys(decoder, at, size, widths + group, damage)
                     : slc_decoder_sum(decoder, at, size, widths + group, damage))) {
            return false;
        }
    }
    return true;
}

/* Decodes keys of `count` nonzeros, starting at nonzero `start`, group by group. Works for all
 * groups, while ops->keys needs an all_short sequence. */
static bool
any_groups(struct slc_decoder *decoder, uint32_t start, uint32_t count, struct slc_damage *damage)
{
    const struct slc_patched_view *gaps = &decoder->plan.packed.gaps;

    for (uint32_t done = 0; done < count; done += SLC_GROUP_NNZ) {
        const uint32_t at = start + done - decoder->position;
        /* Even if upper words vary, all gaps may be short; the upper words of gaps are then 0. */
        uint64_t *hi = decoder->two_words ? decoder->key_hi + at : NULL;

        if (!slc_patched_group(gaps, decoder->ops->unpack, (start + done) / SLC_GROUP_NNZ,
                               decoder->key_lo + at, hi, damage)) {
            return false;
        }
    }
    return check_groups(decoder, start, count, false, damage);
}

bool slc_packed_keys(struct slc_decoder *decoder,
                     uint32_t start,
                     uint32_t count,
                     struct slc_damage *damage)
{
    const struct slc_patched_view *gaps = &decoder->plan.packed.gaps;
    const uint64_t first = decoder->entry.first_lo + (uint64_t)decoder->next;
    uint32_t whole = count / SLC_GROUP_NNZ;

    if (decoder->two_words || !gaps->all_short ||
        !decoder->ops->keys(gaps, start / SLC_GROUP_NNZ, whole, first, decoder->key_lo)) {
        whole = 0; /* decode all groups by any_groups, which reports damage */
    }
    return check_groups(decoder, start, whole * SLC_GROUP_NNZ, true, damage) &&
           any_groups(decoder, start + whole * SLC_GROUP_NNZ, count - whole * SLC_GROUP_NNZ,
                      damage);
}

/* Checks the last key of each whole group, and advances decoder->next. The keys were summed modulo
 * 2^32, but the gaps of a group add up to less than 2^32, so the differences of the last keys are
 * exact. In last_key[], the last keys of successive groups are `apart` elements apart. Returns
 * false, with decoder->next unchanged, if any check fails. */
static bool check_small_groups(struct slc_decoder *decoder,
                               uint32_t start,
                               uint32_t groups,
                               const uint32_t *last_key,
                               uint32_t apart)
{
    const slc_u128 before = decoder->next;
    uint64_t next = (uint64_t)before;
    uint32_t first = (uint32_t)(decoder->entry.first_lo + next);
    struct slc_damage ignored;
    bool sound = true;

    for (uint32_t g = 0; g < groups && sound; g++) {
        const uint32_t at = start + g * SLC_GROUP_NNZ;

        decoder->next = next;
        sound = at % SLC_BASE_NNZ != 0 || check_base(decoder, at / SLC_BASE_NNZ, &ignored);
        next += (uint32_t)(*last_key + 1 - first);
        first = *last_key + 1;
        last_key += apart;
    }
    sound = sound && next <= (uint64_t)decoder->span + 1;
    decoder->next = sound ? next : before;
    return sound;
}

bool slc_packed_small_keys(struct slc_decoder *decoder,
                           uint32_t start,
                           uint32_t count,
                           struct slc_damage *damage)
{
    const uint32_t first = (uint32_t)(decoder->entry.first_lo + (uint64_t)decoder->next);
    const uint32_t groups = count / SLC_GROUP_NNZ, whole = groups * SLC_GROUP_NNZ;
    uint32_t done = 0;

    if (decoder->ops->small_keys(&decoder->plan.packed.gaps, start / SLC_GROUP_NNZ, groups, first,
                                 decoder->key_small) &&
        (start > 0 || decoder->key_small[0] == first) &&
        check_small_groups(decoder, start, groups, decoder->key_small + SLC_GROUP_NNZ - 1,
                           SLC_GROUP_NNZ)) {
        done = whole;
    }
    /* Decode the groups that ops->small_keys did not decode: an incomplete group, groups with large
     * sums, or invalid groups, which slc_packed_keys reports. */
    if (done < count && !slc_packed_keys(decoder, start + done, count - done, damage)) {
        return false;
    }
    for (uint32_t i = done; i < count; i++) {
        decoder->key_small[i] = (uint32_t)decoder->key_lo[i];
    }
    return true;
}

/* True if the first gap of the tile is 0. Needs: the low parts of gaps have at most eight bits. */
static bool first_gap_is_zero(const struct slc_patched_view *gaps)
{
    const unsigned width = gaps->widths[0];
    const uint8_t *positions = gaps->data + (size_t)SLC_GROUP_NNZ / 8 * width;

    return slc_bits_get(gaps->data, 0, width) == 0 &&
           (gaps->exceptions[0] == 0 || positions[0] != 0);
}

bool slc_packed_byte_runs(struct slc_decoder *decoder, uint32_t count, uint32_t *runs)
{
    const struct slc_patched_view *gaps = &decoder->plan.packed.gaps;
    const struct slc_field *own = &decoder->own_fields.field[0];
    const uint32_t start = decoder->position, groups = count / SLC_GROUP_NNZ;
    struct slc_byte_runs found;

    if (!decoder->byte_runs || count % SLC_GROUP_NNZ != 0) {
        return false;
    }
    found.first = (uint32_t)(decoder->entry.first_lo + (uint64_t)decoder->next);
    found.bits = decoder->keys.run.bits;
    found.mask = (uint8_t)own->gather->mask;
    found.base = (uint8_t)own->base;
    found.offsets = own->offsets;
    found.begin = decoder->run_begin;
    found.heads = decoder->run_small;
    if (!decoder->ops->byte_runs(gaps, start / SLC_GROUP_NNZ, groups, &found) ||
        (start == 0 && !first_gap_is_zero(gaps)) ||
        found.largest > decoder->entry.extent[own->mode] ||
        !check_small_groups(decoder, start, groups, found.ends, 1)) {
        return false;
    }
    decoder->run_begin[found.runs] = count;
    *runs = found.runs;
    return true;
}

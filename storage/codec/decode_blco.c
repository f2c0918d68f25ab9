/* Decodes codec 3, `blco` (docs/FORMAT.md, section 7.3; [Nguyen2022] sections 4.1 and 4.2): shifts
 * and masks extract coordinates from indices, and each sub-block stores the upper key bits once.
 *
 * Checks the first and last key and the upper bits, and that offsets are at most the extent. Does
 * not check the order of the indices. */
#include "storage/codec/decode_internal.h"

enum { SUB_BLOCK_BYTES = 16 };

static uint32_t sub_block_first(const struct slc_blco_plan *blco, uint32_t s)
{
    return slc_load_u32(blco->sub_blocks + (size_t)s * SUB_BLOCK_BYTES + 8);
}

static uint32_t sub_block_count(const struct slc_blco_plan *blco, uint32_t s)
{
    return slc_load_u32(blco->sub_blocks + (size_t)s * SUB_BLOCK_BYTES + 12);
}

static bool check_sub_blocks(const struct slc_decoder *decoder, struct slc_damage *damage)
{
    const struct slc_blco_plan *blco = &decoder->plan.blco;
    uint64_t first = 0, upper_before = 0;

    for (uint32_t s = 0; s < blco->sub_block_count; s++) {
        const uint8_t *at = blco->sub_blocks + (size_t)s * SUB_BLOCK_BYTES;
        uint64_t upper = slc_load_u64(at);
        uint32_t count = sub_block_count(blco, s);

        if (s == 0 ? upper != decoder->entry.first_hi : upper <= upper_before) {
            return slc_damage_set(damage, at, "the upper key bits of a sub-block", upper,
                                  s == 0 ? "" : "above ",
                                  s == 0 ? decoder->entry.first_hi : upper_before);
        }
        if (sub_block_first(blco, s) != first) {
            return slc_damage_set(damage, at + 8, "the first nonzero of a sub-block",
                                  sub_block_first(blco, s), "", first);
        }
        if (count == 0 || count > decoder->entry.nnz - first) {
            return slc_damage_set(damage, at + 12, "the number of nonzeros of a sub-block", count,
                                  "1 to ", decoder->entry.nnz - first);
        }
        first += count;
        upper_before = upper;
    }
    if (first != decoder->entry.nnz || upper_before != decoder->entry.last_hi) {
        return slc_damage_set(damage, blco->sub_blocks, "the number of nonzeros of all sub-blocks",
                              first, "", decoder->entry.nnz);
    }
    return true;
}

/* Returns the low word of the key that belongs to a re-encoded index. */
static uint64_t key_of_index(const struct slc_decoder *decoder, uint64_t index)
{
    uint64_t key = 0;

    for (unsigned n = 0; n < decoder->keys.order; n++) {
        uint64_t mask = decoder->keys.mask_lo[n];

        if (mask != 0) {
            key |= slc_bits_spread(index >> decoder->plan.blco.shift[n], mask);
        }
    }
    return key;
}

unsigned slc_blco_shifts(const struct slc_key_layout *keys, uint32_t shift[SLC_MAX_ORDER])
{
    unsigned bits = 0;

    for (unsigned n = 0; n < keys->order; n++) {
        shift[n] = bits < 64 ? bits : 0; /* the earlier modes may use all 64 bits */
        bits += (unsigned)__builtin_popcountll(keys->mask_lo[n]);
    }
    return bits;
}

bool slc_blco_open(struct slc_decoder *decoder, struct slc_damage *damage)
{
    struct slc_blco_plan *blco = &decoder->plan.blco;
    const uint8_t *data = decoder->data;
    uint32_t nnz = decoder->entry.nnz, count = slc_load_u32(data);
    uint64_t bytes = 8 + (uint64_t)SUB_BLOCK_BYTES * count + UINT64_C(16) * nnz;

    if (count == 0 || count > nnz) {
        return slc_damage_set(damage, data, "the number of sub-blocks", count, "1 to ", nnz);
    }
    if (slc_load_u32(data + 4) != 0) {
        return slc_damage_set(damage, data + 4, "a reserved field", slc_load_u32(data + 4), "", 0);
    }
    if (bytes != decoder->entry.data_bytes) {
        return slc_damage_set(damage, data, "the size of its data", decoder->entry.data_bytes, "",
                              bytes);
    }
    blco->index_bits = slc_blco_shifts(&decoder->keys, blco->shift);
    blco->sub_blocks = data + 8;
    blco->sub_block_count = count;
    blco->sub_block = 0;
    blco->indices = data + 8 + (size_t)SUB_BLOCK_BYTES * count;
    if (!check_sub_blocks(decoder, damage)) {
        return false;
    }
    uint64_t first = key_of_index(decoder, slc_load_u64(blco->indices));
    uint64_t last = key_of_index(decoder, slc_load_u64(blco->indices + 8 * (size_t)(nnz - 1)));
    if (first != decoder->entry.first_lo || last != decoder->entry.last_lo) {
        bool start = first != decoder->entry.first_lo;

        return slc_damage_set(damage, blco->indices + (start ? 0 : 8 * (size_t)(nnz - 1)),
                              start ? "its first key" : "its last key", start ? first : last, "",
                              start ? decoder->entry.first_lo : decoder->entry.last_lo);
    }
    return slc_values_open(decoder, SLC_FORM_F64, blco->indices + 8 * (size_t)nnz,
                           UINT64_C(8) * nnz, damage);
}

/* Decodes offsets of `count` nonzeros with equal upper bits into the chunk, from index `at` on. */
static bool decode_run(struct slc_decoder *decoder,
                       const uint8_t *indices,
                       uint64_t upper,
                       uint32_t at,
                       uint32_t count,
                       struct slc_damage *damage)
{
    const struct slc_key_layout *keys = &decoder->keys;

    for (unsigned n = 0; n < keys->order; n++) {
        unsigned bits = (unsigned)__builtin_popcountll(keys->mask_lo[n]);
        uint64_t add = 0 - decoder->entry.corner[n];

        if (keys->mask_hi[n] != 0) {
            add += slc_bits_gather(upper, keys->mask_hi[n]) << bits;
        }
        uint64_t largest = decoder->ops->field(indices, count, decoder->plan.blco.shift[n],
                                               slc_low_mask(bits), add, decoder->offset[n] + at);
        if (largest > decoder->entry.extent[n]) {
            return slc_damage_set(damage, indices,
                                  "the offset of a coordinate from the tile's corner", largest,
                                  "at most ", decoder->entry.extent[n]);
        }
    }
    return true;
}

bool slc_blco_offsets(struct slc_decoder *decoder,
                      uint32_t start,
                      uint32_t count,
                      struct slc_damage *damage)
{
    struct slc_blco_plan *blco = &decoder->plan.blco;
    const uint8_t *indices = blco->indices + 8 * (size_t)start;
    uint64_t used = 0;

    for (uint32_t i = 0; i < count; i++) {
        used |= slc_load_u64(indices + 8 * (size_t)i);
    }
    if ((used & ~slc_low_mask(blco->index_bits)) != 0) {
        return slc_damage_set(damage, indices, "the bit length of a re-encoded index",
                              slc_bit_length_u64(used), "at most ", blco->index_bits);
    }
    for (uint32_t done = 0; done < count;) {
        uint32_t s = blco->sub_block;
        uint32_t end = sub_block_first(blco, s) + sub_block_count(blco, s);
        uint32_t run = end - (start + done);

        run = run < count - done ? run : count - done;
        if (!decode_run(decoder, indices + 8 * (size_t)done,
                        slc_load_u64(blco->sub_blocks + (size_t)s * SUB_BLOCK_BYTES), done, run,
                        damage)) {
            return false;
        }
        done += run;
        blco->sub_block += start + done == end;
    }
    return true;
}

/* True if nonzero i of the chunk differs from the previous nonzero outside the run's bits. */
static bool starts_run(const struct slc_decoder *decoder, uint32_t i)
{
    const struct slc_fiber_run run = decoder->keys.run;
    const uint64_t corner = decoder->entry.corner[run.mode];
    const uint32_t *own = decoder->offset[run.mode];

    if (((corner + own[i]) ^ (corner + own[i - 1])) >> run.bits != 0) {
        return true;
    }
    for (unsigned n = 0; n < decoder->keys.order; n++) {
        if (n != run.mode && decoder->offset[n][i] != decoder->offset[n][i - 1]) {
            return true;
        }
    }
    return false;
}

uint32_t slc_blco_runs(struct slc_decoder *decoder, uint32_t count)
{
    uint32_t *begin = decoder->run_begin;
    uint32_t runs = 1;

    begin[0] = 0;
    for (uint32_t i = 1; i < count; i++) {
        begin[runs] = i;
        runs += starts_run(decoder, i);
    }
    begin[runs] = count;
    for (unsigned n = 0; n < decoder->keys.order; n++) {
        uint32_t *offset = decoder->offset[n];

        for (uint32_t r = 0; n != decoder->keys.run.mode && r < runs; r++) {
            offset[r] = offset[begin[r]];
        }
    }
    return runs;
}

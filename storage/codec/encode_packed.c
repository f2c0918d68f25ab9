/* Encodes codec 1, `packed` (docs/FORMAT.md, section 7.1). */
#include "base/memory/bytes.h"
#include "storage/codec/encode_internal.h"

/* Returns base `index`: 1 + the key before nonzero SLC_BASE_NNZ * `index`, minus the first key. */
static slc_u128 base_at(const struct slc_tile_source *source, uint32_t index)
{
    const uint64_t *lo = source->key_lo, *hi = source->key_hi;
    uint32_t before = index * SLC_BASE_NNZ - 1;

    if (index == 0) {
        return 0;
    }
    if (hi == NULL) {
        return lo[before] - lo[0] + 1;
    }
    return ((slc_u128)hi[before] << 64 | lo[before]) - ((slc_u128)hi[0] << 64 | lo[0]) + 1;
}

uint32_t slc_packed_encode(struct slc_encoder *encoder,
                           const struct slc_tile_source *source,
                           uint32_t *index_bytes)
{
    const uint64_t *gap_hi = source->key_hi == NULL ? NULL : encoder->gap_hi;
    uint8_t *const out = encoder->out;
    uint32_t count = slc_bases_of(source->nnz);
    uint64_t base_lo[SLC_TILE_NNZ / SLC_BASE_NNZ], base_hi[SLC_TILE_NNZ / SLC_BASE_NNZ];
    uint8_t *end, *values, form = 0;

    for (uint32_t i = 0; i < count; i++) {
        slc_u128 base = base_at(source, i);

        base_lo[i] = (uint64_t)base;
        base_hi[i] = (uint64_t)(base >> 64);
    }
    /* Bases ascend, so the last base is the longest. */
    unsigned base_width = slc_bit_length_u128(base_lo[count - 1], base_hi[count - 1]);
    end = slc_pad8(out, slc_bits_pack(base_lo, base_hi, count, base_width, out + 8));
    values = slc_pad8(
        out, slc_patched_encode(&encoder->gaps, encoder->gap_lo, gap_hi, source->nnz, end));
    end = slc_values_encode(encoder, source, values, &form);
    out[0] = (uint8_t)base_width;
    out[1] = form;
    slc_store_u16(out + 2, 0);
    slc_store_u32(out + 4, (uint32_t)(values - out));
    *index_bytes = (uint32_t)(values - out);
    return (uint32_t)(end - out);
}

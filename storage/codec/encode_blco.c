/* Encodes codec 3, `blco` (docs/FORMAT.md, section 7.3; [Nguyen2022] sections 4.1 and 4.2). */
#include "base/memory/bytes.h"
#include "storage/codec/encode_internal.h"

static uint64_t upper_bits(const struct slc_tile_source *source, uint32_t i)
{
    return source->key_hi == NULL ? source->upper : source->key_hi[i];
}

/* Writes one sub-block (hi, first, count) per sequence of nonzeros with equal upper key bits.
 * Returns the end. */
static uint8_t *
write_sub_blocks(const struct slc_tile_source *source, uint8_t *out, uint32_t *sub_blocks)
{
    uint32_t first = 0;

    *sub_blocks = 0;
    for (uint32_t i = 1; i <= source->nnz; i++) {
        if (i < source->nnz && upper_bits(source, i) == upper_bits(source, first)) {
            continue;
        }
        slc_store_u64(out, upper_bits(source, first));
        slc_store_u32(out + 8, first);
        slc_store_u32(out + 12, i - first);
        out += 16;
        first = i;
        (*sub_blocks)++;
    }
    return out;
}

uint32_t slc_blco_encode(struct slc_encoder *encoder,
                         const struct slc_tile_source *source,
                         uint32_t *index_bytes)
{
    const struct slc_key_layout *keys = &encoder->keys;
    uint8_t *const out = encoder->out;
    uint32_t sub_blocks;
    uint8_t *end = write_sub_blocks(source, out + 8, &sub_blocks);

    slc_store_u32(out, sub_blocks);
    slc_store_u32(out + 4, 0);
    for (uint32_t i = 0; i < source->nnz; i++) {
        uint64_t index = 0;
        unsigned shift = 0;

        for (unsigned n = 0; n < keys->order; n++) {
            if (keys->mask_lo[n] != 0) {
                index |= slc_bits_gather(source->key_lo[i], keys->mask_lo[n]) << shift;
                shift += (unsigned)__builtin_popcountll(keys->mask_lo[n]);
            }
        }
        slc_store_u64(end, index);
        end += 8;
    }
    *index_bytes = (uint32_t)(end - out);
    for (uint32_t i = 0; i < source->nnz; i++) {
        slc_store_f64(end, source->values[i]);
        end += 8;
    }
    return (uint32_t)(end - out);
}

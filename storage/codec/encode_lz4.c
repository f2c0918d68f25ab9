/* Encodes codec 2, `lz4` (docs/FORMAT.md, section 7.2): byte planes of gaps and values, compressed
 * by LZ4. The `packed` codec encodes its values with the same functions for byte planes and LZ4. */
#include "base/memory/bytes.h"
#include "storage/codec/encode_internal.h"

#include <lz4.h>
#include <string.h>

uint8_t *slc_planes_of_words(const uint64_t *words, uint32_t count, unsigned bytes, uint8_t *out)
{
    for (unsigned b = 0; b < bytes; b++) {
        for (uint32_t i = 0; i < count; i++) {
            out[i] = (uint8_t)(words[i] >> (8 * b));
        }
        out += count;
    }
    return out;
}

uint8_t *slc_planes_of_values(const double *values, uint32_t count, unsigned bytes, uint8_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits = slc_bits_f64(values[i]);

        if (bytes == 4) {
            float value = (float)values[i];
            uint32_t bits32;

            memcpy(&bits32, &value, sizeof bits32);
            bits = bits32;
        }
        for (unsigned b = 0; b < bytes; b++) {
            out[(size_t)b * count + i] = (uint8_t)(bits >> (8 * b));
        }
    }
    return out + (size_t)bytes * count;
}

uint32_t slc_lz4_compress(struct slc_encoder *encoder,
                          const uint8_t *bytes,
                          uint64_t count,
                          uint8_t *out,
                          uint64_t capacity)
{
    /* All sizes are at most the sizes of a tile, which are far below INT_MAX. Acceleration 1 is the
     * default. */
    int made = LZ4_compress_fast_extState(encoder->lz4_state, (const char *)bytes, (char *)out,
                                          (int)count, (int)capacity, 1);

    return made > 0 ? (uint32_t)made : 0;
}

/* Returns the number of bytes of the longest gap. */
static unsigned gap_bytes(const struct slc_encoder *encoder, uint32_t count)
{
    uint64_t lo = 0, hi = 0;

    for (uint32_t i = 0; i < count; i++) {
        lo |= encoder->gap_lo[i];
        hi |= encoder->gap_hi == NULL ? 0 : encoder->gap_hi[i];
    }
    return (slc_bit_length_u128(lo, hi) + 7) / 8;
}

uint32_t slc_lz4_encode(struct slc_encoder *encoder,
                        const struct slc_tile_source *source,
                        uint32_t *index_bytes)
{
    uint8_t *const out = encoder->out;
    unsigned gaps = gap_bytes(encoder, source->nnz);
    unsigned values = encoder->survey.all_f32 ? 4 : 8;
    uint64_t plain = (uint64_t)(gaps + values) * source->nnz;
    uint8_t *end = encoder->planes;

    end = slc_planes_of_words(encoder->gap_lo, source->nnz, gaps < 8 ? gaps : 8, end);
    if (gaps > 8) {
        end = slc_planes_of_words(encoder->gap_hi, source->nnz, gaps - 8, end);
    }
    slc_planes_of_values(source->values, source->nnz, values, end);
    uint32_t stored = slc_lz4_compress(encoder, encoder->planes, plain, out + 8, plain - 1);
    out[2] = stored != 0;
    if (stored == 0) {
        memcpy(out + 8, encoder->planes, plain);
        stored = (uint32_t)plain;
    }
    out[0] = (uint8_t)gaps;
    out[1] = (uint8_t)values;
    out[3] = 0;
    slc_store_u32(out + 4, stored);
    /* Estimate the bytes of coordinates: the output, in which LZ4 mixes gaps and values, times the
     * fraction of gaps in the input. */
    *index_bytes = (uint32_t)((uint64_t)stored * gaps / (gaps + values));
    return (uint32_t)(slc_pad8(out, out + 8 + stored) - out);
}

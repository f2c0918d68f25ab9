/* Decodes codec 2, `lz4` (docs/FORMAT.md, section 7.2): byte planes of gaps and values, which LZ4
 * compressed. Expands the planes into the decoder's scratch before the first chunk. Codec packed
 * also uses these functions for values that LZ4 compressed. */
#include "storage/codec/decode_internal.h"

#include <lz4.h>
#include <string.h>

static bool set_size_damage(const uint8_t *section,
                            uint64_t made,
                            uint64_t expanded_bytes,
                            struct slc_damage *damage)
{
    return slc_damage_set(damage, section, "the expanded size of an LZ4 section", made, "",
                          expanded_bytes);
}

bool slc_planes_note(struct slc_decoder *decoder,
                     const uint8_t *section,
                     uint64_t bytes,
                     uint64_t expanded_bytes,
                     struct slc_damage *damage)
{
    /* Both sizes are bounded by the sizes of a tile, which are far below INT_MAX. */
    decoder->lz4 = (struct slc_lz4_section){section, (uint32_t)bytes, (uint32_t)expanded_bytes};
    return bytes > 0 || set_size_damage(section, 0, expanded_bytes, damage);
}

bool slc_planes_expand(struct slc_decoder *decoder, struct slc_damage *damage)
{
    const struct slc_lz4_section *lz4 = &decoder->lz4;

    if (lz4->bytes == 0) {
        return true;
    }
    int made = LZ4_decompress_safe((const char *)lz4->at, (char *)decoder->planes, (int)lz4->bytes,
                                   (int)lz4->expanded_bytes);
    return (made >= 0 && (uint32_t)made == lz4->expanded_bytes) ||
           set_size_damage(lz4->at, made < 0 ? 0 : (uint64_t)made, lz4->expanded_bytes, damage);
}

bool slc_lz4_open(struct slc_decoder *decoder, struct slc_damage *damage)
{
    struct slc_lz4_plan *lz4 = &decoder->plan.lz4;
    const uint8_t *data = decoder->data;
    unsigned gap_bytes = data[0], value_bytes = data[1];
    uint64_t stored = slc_load_u32(data + 4);
    uint64_t capacity = decoder->entry.data_bytes - 8;
    uint64_t planes = (uint64_t)(gap_bytes + value_bytes) * decoder->entry.nnz;

    if (gap_bytes > (decoder->span_bits + 7) / 8) {
        return slc_damage_set(damage, data, "the number of bytes of a gap", gap_bytes, "at most ",
                              (decoder->span_bits + 7) / 8);
    }
    if (value_bytes != 4 && value_bytes != 8) {
        return slc_damage_set(damage, data + 1, "the number of bytes of a value", value_bytes,
                              "4 or ", 8);
    }
    if (data[2] > 1 || data[3] != 0) {
        return slc_damage_set(damage, data + 2, "the compression flag", slc_load_u16(data + 2),
                              "at most ", 1);
    }
    if (stored > capacity || ((stored + 7) & ~UINT64_C(7)) != capacity) {
        return slc_damage_set(damage, data + 4, "the size of the planes", stored, "at most ",
                              capacity);
    }
    if (!slc_bits_zero_from(data + 8, stored * 8, capacity)) {
        return slc_damage_set(damage, data + 8 + stored, "padding after the planes", 1, "", 0);
    }
    if (data[2] == 0) {
        if (stored != planes) {
            return slc_damage_set(damage, data + 4, "the size of the planes", stored, "", planes);
        }
        lz4->planes = data + 8;
    } else {
        if (!slc_planes_note(decoder, data + 8, stored, planes, damage)) {
            return false;
        }
        lz4->planes = decoder->planes;
    }
    lz4->gap_bytes = gap_bytes;
    decoder->value.form = value_bytes == 4 ? SLC_FORM_F32_LZ4 : SLC_FORM_F64_LZ4;
    decoder->value.bytes = lz4->planes + (size_t)gap_bytes * decoder->entry.nnz;
    return true;
}

bool slc_lz4_keys(struct slc_decoder *decoder,
                  uint32_t start,
                  uint32_t count,
                  struct slc_damage *damage)
{
    static const uint8_t zeros[SLC_GROUP_NNZ + SLC_CHUNK_SLACK];
    const struct slc_lz4_plan *lz4 = &decoder->plan.lz4;

    for (uint32_t done = 0; done < count; done += SLC_GROUP_NNZ) {
        uint32_t size = count - done < SLC_GROUP_NNZ ? count - done : SLC_GROUP_NNZ;
        uint64_t *lo = decoder->key_lo + done, *hi = decoder->key_hi + done;
        const uint8_t *planes[16];

        for (unsigned b = 0; b < 16; b++) {
            planes[b] = b < lz4->gap_bytes
                            ? lz4->planes + (size_t)b * decoder->entry.nnz + start + done
                            : zeros;
        }
        slc_unshuffle8(planes, size, (uint8_t *)lo);
        if (decoder->two_words) {
            slc_unshuffle8(planes + 8, size, (uint8_t *)hi);
        }
        for (uint32_t i = 0; i < size; i++) {
            lo[i] = SLC_LE64(lo[i]);
            if (decoder->two_words) {
                hi[i] = SLC_LE64(hi[i]);
            }
        }
        if (!slc_decoder_sum(decoder, done, size, decoder->data + 8, damage)) {
            return false;
        }
    }
    return true;
}

/* A vector of 16 bytes. gcc 12 and clang compile the two builtins below to SSE2 or NEON. */
typedef uint8_t byte_vector __attribute__((vector_size(16)));

static inline byte_vector load_vector(const uint8_t *bytes)
{
    byte_vector vector;

    memcpy(&vector, bytes, sizeof vector);
    return vector;
}

/* zip_low and zip_high interleave the bytes of the lower and of the upper halves of a and b. */
static inline byte_vector zip_low(byte_vector a, byte_vector b)
{
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline byte_vector zip_high(byte_vector a, byte_vector b)
{
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
}

/* Collects the eight bytes of each element by a perfect shuffle in three steps: interleaves planes
 * 0 with 4, 1 with 5, 2 with 6 and 3 with 7, then the results at distance two, then at distance
 * one. */
void slc_unshuffle8(const uint8_t *const planes[8], uint32_t count, uint8_t *out)
{
    for (uint32_t i = 0; i < count; i += 16) {
        byte_vector pair[8], quad[8];

        for (unsigned b = 0; b < 4; b++) {
            byte_vector low = load_vector(planes[b] + i);
            byte_vector high = load_vector(planes[b + 4] + i);

            pair[2 * b] = zip_low(low, high);
            pair[2 * b + 1] = zip_high(low, high);
        }
        for (unsigned b = 0; b < 2; b++) {
            for (unsigned half = 0; half < 2; half++) {
                byte_vector even = pair[2 * b + half], odd = pair[2 * (b + 2) + half];

                quad[4 * b + 2 * half] = zip_low(even, odd);
                quad[4 * b + 2 * half + 1] = zip_high(even, odd);
            }
        }
        for (unsigned part = 0; part < 4; part++) {
            byte_vector first = zip_low(quad[part], quad[part + 4]);
            byte_vector second = zip_high(quad[part], quad[part + 4]);

            memcpy(out + 8 * (size_t)i + 32 * part, &first, sizeof first);
            memcpy(out + 8 * (size_t)i + 32 * part + 16, &second, sizeof second);
        }
    }
}

void slc_unshuffle4(const uint8_t *const planes[4], uint32_t count, uint8_t *out)
{
    for (uint32_t i = 0; i < count; i += 16) {
        byte_vector even[2], odd[2];
        byte_vector a = load_vector(planes[0] + i), c = load_vector(planes[2] + i);
        byte_vector b = load_vector(planes[1] + i), d = load_vector(planes[3] + i);

        even[0] = zip_low(a, c);
        even[1] = zip_high(a, c);
        odd[0] = zip_low(b, d);
        odd[1] = zip_high(b, d);
        for (unsigned part = 0; part < 2; part++) {
            byte_vector first = zip_low(even[part], odd[part]);
            byte_vector second = zip_high(even[part], odd[part]);

            memcpy(out + 4 * (size_t)i + 32 * part, &first, sizeof first);
            memcpy(out + 4 * (size_t)i + 32 * part + 16, &second, sizeof second);
        }
    }
}

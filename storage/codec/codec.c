/* Names of codecs, and the encoder: computes what every codec needs (gaps, coordinate ranges,
 * sums), then calls the codec.
 *
 * Cost: one pass for gaps and sums, one pass per mode for ranges, then two passes of the codec. */
#include "storage/codec/codec.h"

#include "base/column_range.h"
#include "base/memory/bytes.h"
#include "storage/codec/decode_ops.h"
#include "storage/codec/encode_internal.h"

#include <assert.h>
#include <lz4.h>
#include <string.h>

static const char *const codec_names[] = {
    [SLC_CODEC_PACKED] = "packed",
    [SLC_CODEC_LZ4] = "lz4",
    [SLC_CODEC_BLCO] = "blco",
};

const char *slc_codec_name(enum slc_codec codec)
{
    return codec >= SLC_CODEC_PACKED && codec <= SLC_CODEC_BLCO ? codec_names[codec] : "?";
}

bool slc_codec_parse(const char *name, enum slc_codec *codec)
{
    for (unsigned c = SLC_CODEC_PACKED; c <= SLC_CODEC_BLCO; c++) {
        if (strcmp(name, codec_names[c]) == 0) {
            *codec = (enum slc_codec)c;
            return true;
        }
    }
    return false;
}

static unsigned gap_bytes_max(const struct slc_key_layout *layout)
{
    return (layout->bits + 7) / 8;
}

uint64_t slc_encoder_bound(const struct slc_key_layout *layout, enum slc_codec codec, uint32_t nnz)
{
    switch (codec) {
    case SLC_CODEC_PACKED:
        /* Values need at most 8 bytes (plain f64); each section may have 7 bytes of padding. */
        return (8 + slc_packed_bytes(slc_bases_of(nnz), layout->bits) + 7 +
                slc_patched_bound(nnz, layout->bits) + 7 + UINT64_C(8) * nnz + 7) &
               ~UINT64_C(7);
    case SLC_CODEC_LZ4:
        return (8 + (uint64_t)(gap_bytes_max(layout) + 8) * nnz + 7) & ~UINT64_C(7);
    case SLC_CODEC_BLCO:
        return 8 + (layout->bits > 64 ? UINT64_C(16) * nnz : 16) + UINT64_C(16) * nnz;
    }
    return 0;
}

/* Sizes of the encoder's arrays in bytes, rounded up to multiples of 64. */
struct scratch_sizes {
    uint64_t out, gaps, planes, distinct, slots, lz4_state;
};

static uint64_t round_up_64(uint64_t bytes)
{
    return (bytes + 63) & ~UINT64_C(63);
}

static struct scratch_sizes scratch_sizes(const struct slc_key_layout *layout, enum slc_codec codec)
{
    struct scratch_sizes sizes = {0, 0, 0, 0, 0, 0};

    sizes.out = round_up_64(slc_encoder_bound(layout, codec, SLC_TILE_NNZ) + 8);
    sizes.gaps = UINT64_C(8) * SLC_TILE_NNZ;
    if (codec == SLC_CODEC_BLCO) {
        return sizes;
    }
    sizes.lz4_state = round_up_64((uint64_t)LZ4_sizeofState());
    if (codec == SLC_CODEC_LZ4) {
        sizes.planes = (gap_bytes_max(layout) + UINT64_C(8)) * SLC_TILE_NNZ;
    } else {
        sizes.planes = UINT64_C(8) * SLC_TILE_NNZ;
        sizes.distinct = UINT64_C(8) * SLC_TILE_NNZ;
        sizes.slots = UINT64_C(4) * SLC_DISTINCT_SLOTS;
    }
    return sizes;
}

static uint64_t scratch_bytes(const struct slc_key_layout *layout, enum slc_codec codec)
{
    struct scratch_sizes sizes = scratch_sizes(layout, codec);

    return sizes.out + (layout->bits > 64 ? 2 : 1) * sizes.gaps + sizes.planes + sizes.distinct +
           sizes.slots + sizes.lz4_state;
}

uint64_t slc_encoder_memory_bytes(const struct slc_key_layout *layout, enum slc_codec codec)
{
    return sizeof(struct slc_encoder) +
           slc_buffer_footprint(scratch_bytes(layout, codec), SLC_PAGES_SMALL) +
           slc_key_moves_memory_bytes(layout->bits, layout->bits);
}

static void *carve_array(uint8_t **free_bytes, uint64_t bytes)
{
    void *part = bytes == 0 ? NULL : *free_bytes;

    *free_bytes += bytes;
    return part;
}

enum slc_status slc_encoder_create(const struct slc_key_layout *layout,
                                   enum slc_codec codec,
                                   struct slc_encoder **encoder,
                                   struct slc_error *err)
{
    struct scratch_sizes sizes = scratch_sizes(layout, codec);
    struct slc_encoder *made = slc_calloc(1, sizeof *made);

    assert(codec >= SLC_CODEC_PACKED && codec <= SLC_CODEC_BLCO);
    SLC_TRY(slc_check_memory(made != NULL, err, "for an encoder of %zu bytes", sizeof *made));
    enum slc_status status =
        slc_buffer_create(&made->memory, scratch_bytes(layout, codec), SLC_PAGES_SMALL, err);
    if (status != SLC_OK) {
        slc_free(made);
        return status;
    }
    made->keys = *layout;
    made->codec = codec;
    uint8_t *free_bytes = made->memory.data;
    made->out = carve_array(&free_bytes, sizes.out);
    made->gap_lo = carve_array(&free_bytes, sizes.gaps);
    made->gap_hi = carve_array(&free_bytes, layout->bits > 64 ? sizes.gaps : 0);
    made->planes = carve_array(&free_bytes, sizes.planes);
    made->distinct = carve_array(&free_bytes, sizes.distinct);
    made->slots = carve_array(&free_bytes, sizes.slots);
    made->lz4_state = carve_array(&free_bytes, sizes.lz4_state);
    *encoder = made;
    return SLC_OK;
}

enum slc_status slc_encoder_sum_over(struct slc_encoder *encoder,
                                     const struct slc_key_layout *content,
                                     struct slc_error *err)
{
    slc_key_moves_destroy(&encoder->content);
    return slc_key_layout_same(&encoder->keys, content)
               ? SLC_OK
               : slc_key_moves_between(&encoder->content, &encoder->keys, content, err);
}

void slc_encoder_destroy(struct slc_encoder *encoder)
{
    if (encoder == NULL) {
        return;
    }
    slc_key_moves_destroy(&encoder->content);
    slc_buffer_destroy(&encoder->memory);
    slc_free(encoder);
}

static uint64_t key_hi(const struct slc_tile_source *source, uint32_t i)
{
    return source->key_hi == NULL ? source->upper : source->key_hi[i];
}

/* Computes gap[i] = key[i] - key[i-1] - 1, gap[0] = 0. */
static void make_gaps(struct slc_encoder *encoder, const struct slc_tile_source *source)
{
    encoder->gap_lo[0] = 0;
    if (source->key_hi == NULL || encoder->gap_hi == NULL) { /* short keys have no upper half */
        for (uint32_t i = 1; i < source->nnz; i++) {
            assert(source->key_lo[i] > source->key_lo[i - 1]);
            encoder->gap_lo[i] = source->key_lo[i] - source->key_lo[i - 1] - 1;
        }
        if (encoder->gap_hi != NULL) {
            memset(encoder->gap_hi, 0, source->nnz * sizeof *encoder->gap_hi);
        }
        return;
    }
    encoder->gap_hi[0] = 0;
    for (uint32_t i = 1; i < source->nnz; i++) {
        slc_u128 before = slc_key_join(source->key_lo[i - 1], key_hi(source, i - 1));
        slc_u128 key = slc_key_join(source->key_lo[i], key_hi(source, i));

        assert(key > before);
        key -= before + 1;
        encoder->gap_lo[i] = (uint64_t)key;
        encoder->gap_hi[i] = (uint64_t)(key >> 64);
    }
}

/* Number of keys that are processed for all modes in turn, so that they stay in the L1 cache. */
enum { PIECE = 1024 };

/* Finds the smallest and largest coordinate of every mode if only the lower half of keys varies. */
static void find_half_ranges(const struct slc_encoder *encoder,
                             const struct slc_tile_source *source,
                             struct slc_tile_blob *blob)
{
    const struct slc_key_layout *keys = &encoder->keys;
    uint64_t smallest[SLC_MAX_ORDER], largest[SLC_MAX_ORDER];

    for (unsigned n = 0; n < keys->order; n++) {
        smallest[n] = UINT64_MAX;
        largest[n] = 0;
    }
    for (uint32_t at = 0; at < source->nnz; at += PIECE) {
        uint32_t count = source->nnz - at < PIECE ? source->nnz - at : PIECE;

        for (unsigned n = 0; n < keys->order; n++) {
            slc_column_range_masked(source->key_lo + at, count, keys->mask_lo[n], &smallest[n],
                                    &largest[n]);
        }
    }
    for (unsigned n = 0; n < keys->order; n++) {
        unsigned low_bits = (unsigned)__builtin_popcountll(keys->mask_lo[n]);
        uint64_t above = 0;

        if (keys->mask_hi[n] != 0) {
            /* Constant part of the coordinates; a mode has at most 62 bits. */
            above = slc_bits_gather(source->upper, keys->mask_hi[n]) << low_bits;
        }
        blob->min[n] = slc_bits_gather(smallest[n], keys->mask_lo[n]) | above;
        blob->max[n] = slc_bits_gather(largest[n], keys->mask_lo[n]) | above;
    }
}

/* Finds the smallest and largest coordinate of a mode if both halves of keys vary. */
static void find_mode_range(const struct slc_encoder *encoder,
                            const struct slc_tile_source *source,
                            unsigned n,
                            uint64_t *min,
                            uint64_t *max)
{
    const struct slc_decode_ops *ops = slc_decode_ops();
    uint64_t field[PIECE + 16], upper[PIECE + 16];
    struct slc_gather lo, hi;

    slc_gather_init(&lo, encoder->keys.mask_lo[n]);
    slc_gather_init(&hi, encoder->keys.mask_hi[n]);
    *min = UINT64_MAX;
    *max = 0;
    for (uint32_t at = 0; at < source->nnz; at += PIECE) {
        uint32_t count = source->nnz - at < PIECE ? source->nnz - at : PIECE;

        ops->gather_wide(&lo, source->key_lo + at, count, field);
        if (hi.bits > 0) {
            ops->gather_wide(&hi, source->key_hi + at, count, upper);
            for (uint32_t i = 0; i < count; i++) {
                field[i] |= upper[i] << lo.bits; /* a mode has at most 62 bits */
            }
        }
        slc_column_range(field, count, min, max);
    }
}

static void find_ranges(const struct slc_encoder *encoder,
                        const struct slc_tile_source *source,
                        struct slc_tile_blob *blob)
{
    if (source->key_hi == NULL) {
        find_half_ranges(encoder, source, blob);
    } else {
        for (unsigned n = 0; n < encoder->keys.order; n++) {
            find_mode_range(encoder, source, n, &blob->min[n], &blob->max[n]);
        }
    }
    for (unsigned n = 0; n < encoder->keys.order; n++) {
        assert(blob->max[n] - blob->min[n] < UINT32_MAX);
    }
}

/* Returns the nonzeros with the keys for content sums. These keys overwrite the gaps. */
static struct slc_tile_source under_content_keys(struct slc_encoder *encoder,
                                                 const struct slc_tile_source *source)
{
    struct slc_tile_source moved = *source;

    moved.key_lo = encoder->gap_lo;
    moved.key_hi = encoder->gap_hi;
    moved.upper = 0;
    for (uint32_t i = 0; i < source->nnz; i++) {
        if (encoder->gap_hi == NULL) {
            encoder->gap_lo[i] =
                (uint64_t)slc_key_moves_apply(&encoder->content, source->key_lo[i], 0, false);
        } else {
            slc_u128 key =
                slc_key_moves_apply(&encoder->content, source->key_lo[i], key_hi(source, i), true);

            encoder->gap_lo[i] = (uint64_t)key;
            encoder->gap_hi[i] = (uint64_t)(key >> 64);
        }
    }
    return moved;
}

static void survey_values(struct slc_encoder *encoder,
                          const struct slc_tile_source *source,
                          struct slc_tile_blob *blob)
{
    struct slc_value_survey *survey = &encoder->survey;

    if (encoder->content.bytes > 0) {
        const struct slc_tile_source moved = under_content_keys(encoder, source);

        slc_encode_ops()->survey(&moved, survey);
    } else {
        slc_encode_ops()->survey(source, survey);
    }
    blob->sum_of_squares = survey->squares;
    blob->content_sum = survey->content;
    blob->all_f32 = survey->all_f32;
    blob->stats = (struct slc_value_stats){
        .integers = survey->all_integer, .low = survey->low, .high = survey->high};
    slc_value_stats_collect(&blob->stats, source->values, source->nnz);
}

/* Counts fiber runs. A run starts at the first key, and at every key that differs from the previous
 * key in a bit that is not one of the low bits of a run. */
static uint32_t count_fibers(const struct slc_encoder *encoder,
                             const struct slc_tile_source *source)
{
    const unsigned bits = encoder->keys.run.bits; /* at most 62 */
    uint32_t fibers = 1;

    for (uint32_t i = 1; i < source->nnz; i++) {
        const uint64_t differ = (source->key_lo[i] ^ source->key_lo[i - 1]) >> bits;

        fibers += source->key_hi == NULL
                      ? differ != 0
                      : (differ | (source->key_hi[i] ^ source->key_hi[i - 1])) != 0;
    }
    return fibers;
}

enum slc_status slc_tile_encode(struct slc_encoder *encoder,
                                const struct slc_tile_source *source,
                                struct slc_tile_blob *blob,
                                struct slc_error *err)
{
    uint32_t last = source->nnz - 1, index_bytes = 0, bytes = 0;

    (void)err;
    assert(source->nnz >= 1 && source->nnz <= SLC_TILE_NNZ);
    memset(blob, 0, sizeof *blob);
    blob->nnz = source->nnz;
    blob->first_lo = source->key_lo[0];
    blob->first_hi = key_hi(source, 0);
    blob->last_lo = source->key_lo[last];
    blob->last_hi = key_hi(source, last);
    find_ranges(encoder, source, blob);
    survey_values(encoder, source, blob);
    blob->fibers = count_fibers(encoder, source);
    switch (encoder->codec) {
    case SLC_CODEC_PACKED:
        make_gaps(encoder, source);
        bytes = slc_packed_encode(encoder, source, &index_bytes);
        break;
    case SLC_CODEC_LZ4:
        make_gaps(encoder, source);
        bytes = slc_lz4_encode(encoder, source, &index_bytes);
        break;
    case SLC_CODEC_BLCO:
        bytes = slc_blco_encode(encoder, source, &index_bytes);
        break;
    }
    assert(bytes % 8 == 0 && bytes <= slc_encoder_bound(&encoder->keys, encoder->codec, blob->nnz));
    blob->data = encoder->out;
    blob->data_bytes = bytes;
    blob->index_bytes = index_bytes;
    return SLC_OK;
}

/* Describes encoded tiles: translates the state that slc_tile_check sets in a decoder into the
 * structs of base/encoded.h. Pointers become offsets in the block. */
#include "storage/codec/describe.h"

#include "base/compress.h"
#include "base/memory/checked.h"
#include "storage/codec/codec.h"
#include "storage/codec/decode_internal.h"

#include <string.h>

enum {
    /* Alignment of expanded sections, so that devices can load them in words of 16 bytes. */
    EXPANDED_ALIGNMENT = 16,
    /* The described bytes of a single tile start at a multiple of this number (a cache line of a
     * device) in the block. */
    DATA_ALIGNMENT = 128
};

_Static_assert((int)SLC_ENCODING_PACKED == (int)SLC_CODEC_PACKED &&
                   (int)SLC_ENCODING_PLANES == (int)SLC_CODEC_LZ4 &&
                   (int)SLC_ENCODING_FIELDS == (int)SLC_CODEC_BLCO,
               "encodings are numbered like codecs");

void slc_describe_layout(const struct slc_layout_info *info, struct slc_encoded_layout *layout)
{
    const struct slc_key_layout *keys = &info->keys;

    memset(layout, 0, sizeof *layout);
    layout->order = keys->order;
    layout->key_bits = keys->bits;
    memcpy(layout->dims, info->dims, sizeof layout->dims);
    for (unsigned n = 0; n < keys->order; n++) {
        slc_compress_init(&layout->word[n], keys->mask_lo[n] & UINT32_MAX);
        slc_compress_init(&layout->lo[n], keys->mask_lo[n]);
        slc_compress_init(&layout->hi[n], keys->mask_hi[n]);
    }
    slc_blco_shifts(keys, layout->field_shift);
}

uint64_t slc_describe_expanded_bound(const struct slc_layout_info *info,
                                     const struct slc_block_entry *entry)
{
    /* The reader has checked that nnz fits into tile_count tiles, so nothing overflows. */
    const uint64_t padding = (uint64_t)(EXPANDED_ALIGNMENT - 1) * entry->tile_count;

    switch (entry->codec) {
    case SLC_CODEC_PACKED: /* expands values */
        return 8 * entry->nnz + padding;
    case SLC_CODEC_LZ4: /* expands gaps and values */
        return ((info->keys.bits + 7) / 8 + 8) * entry->nnz + padding;
    case SLC_CODEC_BLCO:
        break;
    }
    return 0;
}

/* Returns an upper bound on the number of nonzeros of a tile. */
static uint32_t tile_nnz(const struct slc_layout_info *info)
{
    return (uint32_t)slc_min_u64(info->max_block_nnz, SLC_TILE_NNZ);
}

uint64_t slc_describe_tile_bound(const struct slc_layout_info *info)
{
    const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};
    uint64_t bytes = 0;

    for (size_t c = 0; c < sizeof codecs / sizeof codecs[0]; c++) {
        bytes = slc_max_u64(bytes, slc_encoder_bound(&info->keys, codecs[c], tile_nnz(info)));
    }
    bytes += DATA_ALIGNMENT - 1 + SLC_BLOCK_SLACK_BYTES;
    return slc_min_u64(bytes, info->max_block_bytes);
}

uint64_t slc_describe_tile_expanded_bound(const struct slc_layout_info *info)
{
    /* A block with one full tile: no other tile expands to more bytes. */
    const struct slc_block_entry full = {
        .codec = SLC_CODEC_LZ4, .nnz = tile_nnz(info), .tile_count = 1};

    return slc_describe_expanded_bound(info, &full);
}

/* The decoder of a tile, and the positions to which the tile's offsets are relative. */
struct frame {
    const struct slc_decoder *decoder; /* decoder in which the tile is open */
    const uint8_t *start;              /* start of the described block's bytes */
    uint64_t expanded_at;              /* position of the tile's section in the expanded bytes */
};

static uint32_t offset_of(const struct frame *frame, const uint8_t *at)
{
    return (uint32_t)(at - frame->start); /* a block is at most 1 GiB */
}

static struct slc_encoded_patched describe_patched(const struct frame *frame,
                                                   const struct slc_patched_view *view)
{
    return (struct slc_encoded_patched){
        offset_of(frame, view->widths), offset_of(frame, view->extras),
        offset_of(frame, view->exceptions), offset_of(frame, view->data)};
}

/* Returns the offset of plane bytes: in the expanded bytes, or in the block if nothing expands. */
static uint64_t place_expanded(const struct frame *frame, const uint8_t *at)
{
    return frame->decoder->lz4.bytes > 0
               ? frame->expanded_at + (uint64_t)(at - frame->decoder->planes)
               : offset_of(frame, at);
}

static void describe_keys(const struct frame *frame, struct slc_encoded_tile *tile)
{
    const struct slc_decoder *decoder = frame->decoder;

    switch (decoder->codec) {
    case SLC_CODEC_PACKED:
        tile->gaps = describe_patched(frame, &decoder->plan.packed.gaps);
        tile->bases_at = offset_of(frame, decoder->plan.packed.bases);
        tile->base_width = decoder->plan.packed.base_width;
        break;
    case SLC_CODEC_LZ4:
        tile->planes_at = place_expanded(frame, decoder->plan.lz4.planes);
        tile->gap_bytes = decoder->plan.lz4.gap_bytes;
        break;
    case SLC_CODEC_BLCO:
        tile->sub_blocks_at = offset_of(frame, decoder->plan.blco.sub_blocks);
        tile->sub_block_count = decoder->plan.blco.sub_block_count;
        tile->indices_at = offset_of(frame, decoder->plan.blco.indices);
        break;
    }
}

static void describe_values(const struct frame *frame, struct slc_encoded_tile *tile)
{
    const struct slc_value_plan *value = &frame->decoder->value;

    tile->form = (uint8_t)value->form;
    tile->has_zeros = frame->decoder->has_zeros ? 1 : 0;
    switch (value->form) {
    case SLC_FORM_INTEGER:
        tile->low = value->low;
        tile->integers = describe_patched(frame, &value->integers);
        break;
    case SLC_FORM_DICTIONARY:
        tile->dictionary_at = offset_of(frame, value->dictionary);
        tile->dictionary_count = value->dictionary_count;
        tile->index_width = value->width;
        tile->values_at = offset_of(frame, value->bytes);
        break;
    case SLC_FORM_CONSTANT:
    case SLC_FORM_F32:
    case SLC_FORM_F64:
        tile->values_at = offset_of(frame, value->bytes);
        break;
    case SLC_FORM_F32_LZ4:
    case SLC_FORM_F64_LZ4:
        tile->values_at = place_expanded(frame, value->bytes);
        break;
    }
}

/* Describes the tile that slc_tile_check has checked. */
static void
describe_tile(const struct frame *frame, uint64_t ordinal, struct slc_encoded_tile *tile)
{
    const struct slc_decoder *decoder = frame->decoder;
    const struct slc_tile_entry *entry = &decoder->entry;

    memset(tile, 0, sizeof *tile);
    tile->ordinal = ordinal;
    tile->first_lo = entry->first_lo;
    tile->first_hi = entry->first_hi;
    tile->last_lo = entry->last_lo;
    tile->last_hi = entry->last_hi;
    memcpy(tile->corner, entry->corner, sizeof tile->corner);
    memcpy(tile->extent, entry->extent, sizeof tile->extent);
    slc_key_decode(&decoder->keys,
                   slc_key_join(entry->first_lo & ~(uint64_t)UINT32_MAX, entry->first_hi),
                   tile->above);
    tile->nnz = entry->nnz;
    tile->encoding = (uint8_t)decoder->codec;
    tile->key_words = 4;
    if (!decoder->two_words) {
        tile->key_words = (entry->first_lo ^ entry->last_lo) > UINT32_MAX ? 2 : 1;
    }
    for (unsigned n = 0; n < decoder->keys.order; n++) {
        tile->long_modes |= decoder->modes[n].wide ? 1U : 0U;
    }
    describe_keys(frame, tile);
    describe_values(frame, tile);
    if (decoder->lz4.bytes > 0) {
        tile->lz4.at = offset_of(frame, decoder->lz4.at);
        tile->lz4.bytes = decoder->lz4.bytes;
        tile->lz4.expanded_at = frame->expanded_at;
        tile->lz4.expanded_bytes = decoder->lz4.expanded_bytes;
    }
}

static uint64_t expanded_bytes_of(const struct slc_encoded_tile *tile)
{
    return (tile->lz4.expanded_bytes + (uint64_t)EXPANDED_ALIGNMENT - 1) / EXPANDED_ALIGNMENT *
           EXPANDED_ALIGNMENT;
}

enum slc_status slc_describe_block(struct slc_decoder *decoder,
                                   const struct slc_block_view *block,
                                   struct slc_encoded_tile *tiles,
                                   struct slc_encoded_block *described,
                                   struct slc_error *err)
{
    uint64_t expanded_bytes = 0;

    for (uint32_t t = 0; t < block->entry.tile_count; t++) {
        SLC_TRY(slc_tile_check(decoder, block, t, err));
        describe_tile(&(struct frame){decoder, block->data, expanded_bytes},
                      block->entry.first_tile + t, &tiles[t]);
        expanded_bytes += expanded_bytes_of(&tiles[t]);
    }
    *described = (struct slc_encoded_block){
        .block = block->block,
        .offset = block->entry.offset,
        .bytes = block->entry.bytes,
        .expanded_bytes = expanded_bytes,
        .nnz = block->entry.nnz,
        .tile_count = block->entry.tile_count,
        .tiles = tiles,
        .data = block->data,
    };
    return SLC_OK;
}

enum slc_status slc_tile_describe(struct slc_tile_view *tile,
                                  struct slc_encoded_block *described,
                                  struct slc_error *err)
{
    struct slc_decoder *decoder = tile->decoder;
    const struct slc_tile_entry *entry = &decoder->entry;
    /* A device copies the tile's bytes: keep the alignment that they have in the block. */
    const uint64_t skipped = entry->data_offset % DATA_ALIGNMENT;
    const uint8_t *start = decoder->data - skipped;
    const bool expands = decoder->lz4.bytes > 0;
    /* Only the last section of a tile can be compressed with LZ4. It is expanded here, so the
     * device does not copy the compressed bytes. */
    const uint8_t *end = expands ? decoder->lz4.at : decoder->data + entry->data_bytes;
    struct slc_damage damage;

    if (!slc_planes_expand(decoder, &damage)) {
        return slc_decoder_fail(decoder, &damage, err);
    }
    describe_tile(&(struct frame){decoder, start, 0}, tile->ordinal, &decoder->encoded);
    *described = (struct slc_encoded_block){
        .block = decoder->block,
        .offset = decoder->block_offset,
        .bytes = (uint64_t)(end - start) + SLC_BLOCK_SLACK_BYTES,
        .expanded_bytes = decoder->encoded.lz4.expanded_bytes,
        .nnz = entry->nnz,
        .tile_count = 1,
        .tiles = &decoder->encoded,
        .data = start,
        .expanded = expands ? decoder->planes : NULL,
    };
    return SLC_OK;
}

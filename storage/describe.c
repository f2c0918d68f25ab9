/*
 * See describe.h. What is described is what the decoder's own opening found (slc_tile_check), with
 * places in the block in the stead of pointers.
 */
#include "storage/describe.h"

#include "base/compress.h"
#include "storage/decode_internal.h"

#include <string.h>

/* Expanded sections begin at multiples of this, so that devices load them in words of 16 bytes. */
enum { EXPANDED_ALIGNMENT = 16 };

_Static_assert((int)SLC_ENCODING_PACKED == (int)SLC_CODEC_PACKED &&
                   (int)SLC_ENCODING_PLANES == (int)SLC_CODEC_LZ4 &&
                   (int)SLC_ENCODING_FIELDS == (int)SLC_CODEC_BLCO,
               "encodings have the numbers of codecs");

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
    /* The reader has seen to it that nnz is at most tile_count full tiles: nothing overflows. */
    const uint64_t padding = (uint64_t)(EXPANDED_ALIGNMENT - 1) * entry->tile_count;

    switch (entry->codec) {
    case SLC_CODEC_PACKED: /* values, of any form */
        return 8 * entry->nnz + padding;
    case SLC_CODEC_LZ4: /* gaps, too */
        return ((info->keys.bits + 7) / 8 + 8) * entry->nnz + padding;
    case SLC_CODEC_BLCO:
        break;
    }
    return 0;
}

static uint32_t place(const struct slc_decoder *decoder, const uint8_t *at)
{
    return (uint32_t)(at - decoder->block_data); /* a block is at most 1 GiB */
}

static struct slc_encoded_patched describe_patched(const struct slc_decoder *decoder,
                                                   const struct slc_patched_view *view)
{
    return (struct slc_encoded_patched){place(decoder, view->widths), place(decoder, view->extras),
                                        place(decoder, view->exceptions),
                                        place(decoder, view->data)};
}

/* Of planes and what is in them: in the expanded bytes, or in the block. */
static uint64_t
place_expanded(const struct slc_decoder *decoder, uint64_t expanded_at, const uint8_t *at)
{
    return decoder->lz4.bytes > 0 ? expanded_at + (uint64_t)(at - decoder->planes)
                                  : place(decoder, at);
}

static void describe_keys(const struct slc_decoder *decoder,
                          uint64_t expanded_at,
                          struct slc_encoded_tile *tile)
{
    switch (decoder->codec) {
    case SLC_CODEC_PACKED:
        tile->gaps = describe_patched(decoder, &decoder->plan.packed.gaps);
        tile->bases_at = place(decoder, decoder->plan.packed.bases);
        tile->base_width = decoder->plan.packed.base_width;
        break;
    case SLC_CODEC_LZ4:
        tile->planes_at = place_expanded(decoder, expanded_at, decoder->plan.lz4.planes);
        tile->gap_bytes = decoder->plan.lz4.gap_bytes;
        break;
    case SLC_CODEC_BLCO:
        tile->sub_blocks_at = place(decoder, decoder->plan.blco.sub_blocks);
        tile->sub_block_count = decoder->plan.blco.sub_block_count;
        tile->indices_at = place(decoder, decoder->plan.blco.indices);
        break;
    }
}

static void describe_values(const struct slc_decoder *decoder,
                            uint64_t expanded_at,
                            struct slc_encoded_tile *tile)
{
    const struct slc_value_plan *value = &decoder->value;

    tile->form = (uint8_t)value->form;
    switch (value->form) {
    case SLC_FORM_INTEGER:
        tile->low = value->low;
        tile->integers = describe_patched(decoder, &value->integers);
        break;
    case SLC_FORM_DICTIONARY:
        tile->dictionary_at = place(decoder, value->dictionary);
        tile->dictionary_count = value->dictionary_count;
        tile->index_width = value->width;
        tile->values_at = place(decoder, value->bytes);
        break;
    case SLC_FORM_CONSTANT:
    case SLC_FORM_F32:
    case SLC_FORM_F64:
        tile->values_at = place(decoder, value->bytes);
        break;
    case SLC_FORM_F32_LZ4:
    case SLC_FORM_F64_LZ4:
        tile->values_at = place_expanded(decoder, expanded_at, value->bytes);
        break;
    }
}

/* The tile that was checked; a section of it expands at `expanded_at`. */
static void describe_tile(const struct slc_decoder *decoder,
                          const struct slc_block_view *block,
                          uint64_t expanded_at,
                          struct slc_encoded_tile *tile)
{
    const struct slc_tile_entry *entry = &decoder->entry;

    memset(tile, 0, sizeof *tile);
    tile->ordinal = block->entry.first_tile + decoder->tile;
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
    describe_keys(decoder, expanded_at, tile);
    describe_values(decoder, expanded_at, tile);
    if (decoder->lz4.bytes > 0) {
        tile->lz4.at = place(decoder, decoder->lz4.at);
        tile->lz4.bytes = decoder->lz4.bytes;
        tile->lz4.expanded_at = expanded_at;
        tile->lz4.expanded_bytes = decoder->lz4.expanded_bytes;
    }
}

enum slc_status slc_describe_block(struct slc_decoder *decoder,
                                   const struct slc_block_view *block,
                                   struct slc_encoded_tile *tiles,
                                   struct slc_encoded_block *described,
                                   struct slc_error *err)
{
    uint64_t expanded_bytes = 0;

    for (uint32_t t = 0; t < block->entry.tile_count; t++) {
        const enum slc_status status = slc_tile_check(decoder, block, t, err);

        if (status != SLC_OK) {
            return status;
        }
        describe_tile(decoder, block, expanded_bytes, &tiles[t]);
        expanded_bytes += (tiles[t].lz4.expanded_bytes + (uint64_t)EXPANDED_ALIGNMENT - 1) /
                          EXPANDED_ALIGNMENT * EXPANDED_ALIGNMENT;
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

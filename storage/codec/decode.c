/* The decoder: opens a tile of an encoded block, checks its directory entry, and delivers chunks of
 * decoded nonzeros.
 *
 * Invariants of a delivered chunk, for arbitrary input bytes: offsets are at most the tile's
 * extent, corner plus extent is below the mode size, and values (before rounding to f32) are
 * finite, and not zero unless the file may have zeros. Keys strictly ascend from the directory's
 * first to its last key; for blco, only the first and last key are checked here, and all keys by
 * slc_verify_store. A kernel that trusts chunks therefore never accesses memory outside its arrays.
 *
 * Cost: unpacking and summing take about one cycle per nonzero. The offsets of all modes together
 * take one more cycle with AVX-512 (a product of bit matrices), otherwise one more cycle per mode
 * (pext or shifts). */
#include "storage/codec/decode_internal.h"

#include "base/memory/checked.h"

#include <assert.h>
#include <string.h>

static uint64_t plane_bytes(const struct slc_layout_info *info)
{
    /* The lz4 codec needs the most scratch: one plane per byte of a gap and of a value. */
    return ((info->keys.bits + 7) / 8 + 8) * (uint64_t)SLC_TILE_NNZ + SLC_BLOCK_SLACK_BYTES;
}

static uint64_t scratch_bytes(const struct slc_layout_info *info)
{
    const uint64_t chunk = SLC_CHUNK_NNZ + SLC_CHUNK_SLACK;
    const uint64_t group = SLC_GROUP_NNZ + SLC_CHUNK_SLACK;

    return chunk * 8 * 8 + group * 8 + chunk * 4 * (info->order + 4) + plane_bytes(info);
}

uint64_t slc_decoder_memory_bytes(const struct slc_layout_info *info,
                                  enum slc_value_type value_type)
{
    (void)value_type; /* scratch is sized for f64 */
    return sizeof(struct slc_decoder) + slc_buffer_footprint(scratch_bytes(info), SLC_PAGES_SMALL);
}

static void *carve_array(uint8_t **free_bytes, uint64_t bytes)
{
    void *part = *free_bytes;

    *free_bytes += bytes;
    return part;
}

void slc_decoder_bind(struct slc_decoder *decoder, const struct slc_layout_info *info)
{
    decoder->keys = info->keys;
    memcpy(decoder->dims, info->dims, sizeof decoder->dims);
    decoder->partitioned = info->layout == SLC_LAYOUT_SORTED;
    decoder->has_zeros = info->has_zeros;
    /* The loops that find runs shift 32-bit words, so they cannot find runs of more than
     * SLC_FIBER_BITS_MAX bits. */
    decoder->finds_runs = info->keys.run.bits > 0 && info->keys.run.bits <= SLC_FIBER_BITS_MAX;
}

enum slc_status slc_decoder_create(const struct slc_layout_info *info,
                                   enum slc_value_type value_type,
                                   struct slc_decoder **decoder,
                                   struct slc_error *err)
{
    const uint64_t chunk = SLC_CHUNK_NNZ + SLC_CHUNK_SLACK;
    const uint64_t group = SLC_GROUP_NNZ + SLC_CHUNK_SLACK;
    struct slc_decoder *made = slc_calloc(1, sizeof *made);

    SLC_TRY(slc_check_memory(made != NULL, err, "for a decoder of %zu bytes", sizeof *made));
    enum slc_status status =
        slc_buffer_create(&made->memory, scratch_bytes(info), SLC_PAGES_SMALL, err);
    if (status != SLC_OK) {
        slc_free(made);
        return status;
    }
    slc_decoder_bind(made, info);
    made->value_type = value_type;
    uint8_t *free_bytes = made->memory.data;
    made->key_scratch = carve_array(&free_bytes, chunk * 8);
    made->key_hi = carve_array(&free_bytes, chunk * 8);
    made->wide_lo = carve_array(&free_bytes, chunk * 8);
    made->wide_hi = carve_array(&free_bytes, chunk * 8);
    made->values = carve_array(&free_bytes, chunk * 8);
    made->exact = carve_array(&free_bytes, chunk * 8);
    made->raw = carve_array(&free_bytes, chunk * 8);
    made->packed = carve_array(&free_bytes, group * 8);
    for (unsigned n = 0; n < info->order; n++) {
        made->offset[n] = carve_array(&free_bytes, chunk * 4);
    }
    made->spare = carve_array(&free_bytes, chunk * 4);
    made->run_begin = carve_array(&free_bytes, chunk * 4);
    made->run_keys = carve_array(&free_bytes, chunk * 8);
    made->small_scratch = carve_array(&free_bytes, chunk * 4);
    made->run_small = carve_array(&free_bytes, chunk * 4);
    made->planes = carve_array(&free_bytes, plane_bytes(info));
    *decoder = made;
    return SLC_OK;
}

void slc_decoder_destroy(struct slc_decoder *decoder)
{
    if (decoder == NULL) {
        return;
    }
    slc_buffer_destroy(&decoder->memory);
    slc_free(decoder);
}

enum slc_status slc_decoder_fail(const struct slc_decoder *decoder,
                                 const struct slc_damage *damage,
                                 struct slc_error *err)
{
    uint64_t at = (uint64_t)(damage->where - decoder->block_data);
    enum slc_status status =
        slc_fail(err, SLC_ERR_DAMAGED,
                 "tile %u of the block: %s is %llu, expected %s%llu; the file was altered or "
                 "written by a faulty program: restore the file or convert it again",
                 decoder->tile, damage->what, (unsigned long long)damage->found, damage->relation,
                 (unsigned long long)damage->expected);

    slc_error_locate_block(err, decoder->path, decoder->block, decoder->block_offset + at);
    return status;
}

static bool check_place(struct slc_decoder *decoder,
                        const struct slc_block_view *block,
                        const uint8_t *at,
                        struct slc_damage *damage)
{
    const struct slc_tile_entry *entry = &decoder->entry;
    uint64_t first = slc_tile_entry_offset(decoder->keys.order, block->entry.tile_count);
    uint64_t end = block->entry.bytes - SLC_BLOCK_SLACK_BYTES;

    if (entry->data_offset < first || entry->data_offset % 8 != 0 || entry->data_offset > end) {
        return slc_damage_set(damage, at + SLC_TILE_AT_DATA_OFFSET, "the offset of its data",
                              entry->data_offset, "a multiple of 8 and at most ", end);
    }
    if (entry->data_bytes % 8 != 0 || entry->data_bytes < 8 ||
        entry->data_bytes > end - entry->data_offset) {
        return slc_damage_set(damage, at + SLC_TILE_AT_DATA_BYTES, "the size of its data",
                              entry->data_bytes, "a multiple of 8 and at most ",
                              end - entry->data_offset);
    }
    if (entry->nnz == 0 || entry->nnz > SLC_TILE_NNZ) {
        return slc_damage_set(damage, at + SLC_TILE_AT_NNZ, "its nonzero count", entry->nnz,
                              "1 to ", SLC_TILE_NNZ);
    }
    decoder->data = block->data + entry->data_offset;
    return true;
}

static bool check_keys(struct slc_decoder *decoder, const uint8_t *at, struct slc_damage *damage)
{
    const struct slc_tile_entry *entry = &decoder->entry;
    slc_u128 first = slc_key_join(entry->first_lo, entry->first_hi);
    slc_u128 last = slc_key_join(entry->last_lo, entry->last_hi);
    unsigned last_bits = slc_bit_length_u128(entry->last_lo, entry->last_hi);

    if (last_bits > decoder->keys.bits) {
        return slc_damage_set(damage, at + SLC_TILE_AT_LAST_KEY, "the bit length of its last key",
                              last_bits, "at most ", decoder->keys.bits);
    }
    if (first > last || last - first < entry->nnz - 1 || (entry->nnz == 1 && first != last)) {
        slc_u128 span = first > last ? 0 : last - first;

        return slc_damage_set(damage, at + SLC_TILE_AT_LAST_KEY,
                              "the distance from its first to its last key", (uint64_t)span,
                              entry->nnz == 1 ? "" : "at least ", entry->nnz - 1);
    }
    decoder->span = last - first;
    decoder->span_bits =
        slc_bit_length_u128((uint64_t)decoder->span, (uint64_t)(decoder->span >> 64));
    decoder->two_words = entry->first_hi != entry->last_hi;
    decoder->small = decoder->codec == SLC_CODEC_PACKED && decoder->ops->small_keys != NULL &&
                     !decoder->two_words && (entry->first_lo ^ entry->last_lo) <= UINT32_MAX;
    return true;
}

/* Splits every mode's coordinate into the bits that all keys from first to last share and the bits
 * that vary, and checks corner and extent against both. An offset computed modulo 2^32 from at most
 * 32 varying bits is then exact: if a coordinate is below the corner, its offset wraps to a value
 * above the extent. */
static bool plan_modes(struct slc_decoder *decoder, const uint8_t *at, struct slc_damage *damage)
{
    const struct slc_tile_entry *entry = &decoder->entry;
    uint64_t differ_lo = entry->first_lo ^ entry->last_lo;
    uint64_t differ_hi = entry->first_hi ^ entry->last_hi;
    unsigned varying = slc_bit_length_u128(differ_lo, differ_hi);
    uint64_t vary_lo = slc_low_mask(varying);
    uint64_t vary_hi = varying <= 64 ? 0 : slc_low_mask(varying - 64);
    unsigned order = decoder->keys.order;
    uint64_t common[SLC_MAX_ORDER];

    slc_key_decode(&decoder->keys,
                   slc_key_join(entry->first_lo & ~vary_lo, entry->first_hi & ~vary_hi), common);
    for (unsigned n = 0; n < order; n++) {
        struct slc_mode_plan *mode = &decoder->modes[n];
        const uint8_t *corner_at = at + SLC_TILE_AT_CORNER + 8 * n;
        const uint8_t *extent_at = at + SLC_TILE_AT_CORNER + 8 * order + 4 * n;
        uint64_t corner = entry->corner[n], reach, top;

        slc_gather_init(&mode->lo, decoder->keys.mask_lo[n] & vary_lo);
        slc_gather_init(&mode->hi, decoder->keys.mask_hi[n] & vary_hi);
        mode->wide = mode->lo.bits + mode->hi.bits > 32;
        reach = slc_low_mask(mode->lo.bits + mode->hi.bits);
        top = slc_min_u64(common[n] + reach, decoder->dims[n] - 1);
        if (corner < common[n] || corner > top) {
            return slc_damage_set(damage, corner_at, "its smallest coordinate in a mode", corner,
                                  corner < common[n] ? "at least " : "at most ",
                                  corner < common[n] ? common[n] : top);
        }
        mode->base = corner - common[n];
        top = slc_min_u64(top - corner, UINT32_MAX - 1);
        if (entry->extent[n] > top) {
            return slc_damage_set(damage, extent_at, "its extent in a mode", entry->extent[n],
                                  "at most ", top);
        }
    }
    if (slc_load_u32(at + slc_tile_entry_bytes(order) - 4) != 0 && order % 2 != 0) {
        return slc_damage_set(damage, at + slc_tile_entry_bytes(order) - 4,
                              "the padding of its directory entry", 1, "", 0);
    }
    return true;
}

static void plan_fields(struct slc_decoder *decoder, bool fibers)
{
    slc_fields_clear(&decoder->fields);
    slc_fields_clear(&decoder->own_fields);
    slc_fields_clear(&decoder->run_fields);
    for (unsigned n = 0; n < decoder->keys.order; n++) {
        const struct slc_mode_plan *mode = &decoder->modes[n];

        if (!slc_mode_is_plain(mode)) {
            continue;
        }
        slc_fields_add(&decoder->fields, &mode->lo, (uint32_t)mode->base, n, decoder->offset[n]);
        if (fibers) {
            slc_fields_add(n == decoder->keys.run.mode ? &decoder->own_fields
                                                       : &decoder->run_fields,
                           &mode->lo, (uint32_t)mode->base, n, decoder->offset[n]);
        }
    }
}

/* True if the preconditions of ops->byte_runs hold. */
static bool has_byte_runs(const struct slc_decoder *decoder)
{
    const struct slc_fields *own = &decoder->own_fields;

    return decoder->small && decoder->ops->byte_runs != NULL && decoder->keys.run.bits <= 8 &&
           own->count == 1 && own->field[0].gather->bits <= decoder->keys.run.bits &&
           own->field[0].gather->mask == slc_low_mask(own->field[0].gather->bits);
}

/* Lets keys and values share memory, because keys are consumed before values are decoded. This
 * saves cache misses: the kernel's factor rows evict a chunk's memory from the L1 cache, so all
 * memory that decoding writes must be loaded again. If all values are equal, they are stored only
 * once per tile, so keys then need separate memory. */
static void place_keys(struct slc_decoder *decoder)
{
    const bool stay =
        decoder->codec == SLC_CODEC_PACKED && decoder->value.form == SLC_FORM_CONSTANT;

    decoder->key_lo = stay || decoder->small ? decoder->key_scratch : decoder->values;
    decoder->key_small = stay ? decoder->small_scratch : decoder->values;
}

/* Prepares the data that all chunks share, and expands planes. Called before the first chunk rather
 * than when the tile is opened, because describing a tile for a device does not need this data. */
static bool prepare_chunks(struct slc_decoder *decoder, struct slc_damage *damage)
{
    if (decoder->position > 0) {
        return true;
    }
    for (unsigned n = 0; n < decoder->keys.order; n++) {
        if (decoder->modes[n].lo.bits + decoder->modes[n].hi.bits == 0) {
            memset(decoder->offset[n], 0, SLC_CHUNK_NNZ * sizeof *decoder->offset[n]);
        }
    }
    if (decoder->value.form == SLC_FORM_CONSTANT) {
        slc_values_fill(decoder);
    }
    return slc_planes_expand(decoder, damage);
}

static bool check_data(struct slc_decoder *decoder, struct slc_damage *damage)
{
    switch (decoder->codec) {
    case SLC_CODEC_PACKED:
        return slc_packed_open(decoder, damage);
    case SLC_CODEC_LZ4:
        return slc_lz4_open(decoder, damage);
    case SLC_CODEC_BLCO:
        return slc_blco_open(decoder, damage);
    }
    return slc_damage_set(damage, decoder->block_data + SLC_BLOCK_AT_CODEC, "the codec",
                          (uint64_t)decoder->codec, "at most ", SLC_CODEC_BLCO);
}

/* Decodes the keys of the next `count` nonzeros (packed and lz4). */
static bool decode_keys(struct slc_decoder *decoder, uint32_t count, struct slc_damage *damage)
{
    const uint32_t start = decoder->position;

    if (decoder->small) {
        return slc_packed_small_keys(decoder, start, count, damage);
    }
    return decoder->codec == SLC_CODEC_PACKED ? slc_packed_keys(decoder, start, count, damage)
                                              : slc_lz4_keys(decoder, start, count, damage);
}

/* Decodes the next `count` values, advances the position, and checks the last key at the end of the
 * tile. */
static bool finish_chunk(struct slc_decoder *decoder, uint32_t count, struct slc_damage *damage)
{
    if (!slc_values_chunk(decoder, decoder->position, count, damage)) {
        return false;
    }
    decoder->position += count;
    if (decoder->codec == SLC_CODEC_PACKED) {
        /* Prefetch the next chunk: saves 6 % of the time to decode gaps of 34 bits from memory. */
        const uint32_t group = decoder->position / SLC_GROUP_NNZ, groups = count / SLC_GROUP_NNZ;

        slc_patched_fetch(&decoder->plan.packed.gaps, group, groups);
        if (decoder->value.form == SLC_FORM_INTEGER) {
            slc_patched_fetch(&decoder->value.integers, group, groups);
        }
    }
    if (decoder->position == decoder->entry.nnz && decoder->codec != SLC_CODEC_BLCO &&
        decoder->next != decoder->span + 1) {
        return slc_damage_set(damage, decoder->data, "the last key, relative to the tile's first",
                              (uint64_t)(decoder->next - 1), "", (uint64_t)decoder->span);
    }
    return true;
}

/* Returns the size of the next chunk: whole groups, or the rest of the tile. */
static uint32_t chunk_size(const struct slc_decoder *decoder, uint32_t max_nnz)
{
    const uint32_t rest = decoder->entry.nnz - decoder->position;
    uint32_t count = max_nnz < SLC_CHUNK_NNZ ? max_nnz : SLC_CHUNK_NNZ;

    assert(max_nnz >= SLC_GROUP_NNZ);
    count -= count % SLC_GROUP_NNZ;
    return count < rest ? count : rest;
}

static enum slc_status next_chunk(struct slc_tile_view *tile,
                                  uint32_t max_nnz,
                                  struct slc_chunk_view *chunk,
                                  struct slc_error *err)
{
    struct slc_decoder *decoder = tile->decoder;
    const uint32_t count = chunk_size(decoder, max_nnz);
    struct slc_damage damage;
    bool sound = true;

    chunk->nnz = count;
    chunk->values = decoder->values;
    for (unsigned n = 0; n < decoder->keys.order; n++) {
        chunk->offset[n] = decoder->offset[n];
    }
    if (count == 0) {
        return SLC_OK;
    }
    if (!prepare_chunks(decoder, &damage)) {
        sound = false;
    } else if (decoder->codec == SLC_CODEC_BLCO) {
        sound = slc_blco_offsets(decoder, decoder->position, count, &damage);
    } else {
        sound =
            decode_keys(decoder, count, &damage) && slc_decoder_offsets(decoder, count, &damage);
    }
    if (!sound || !finish_chunk(decoder, count, &damage)) {
        chunk->nnz = 0;
        return slc_decoder_fail(decoder, &damage, err);
    }
    return SLC_OK;
}

static enum slc_status next_fibers(struct slc_tile_view *tile,
                                   uint32_t max_nnz,
                                   struct slc_fiber_view *fibers,
                                   struct slc_error *err)
{
    struct slc_decoder *decoder = tile->decoder;
    const uint32_t count = chunk_size(decoder, max_nnz);
    struct slc_damage damage;
    bool sound;

    fibers->nnz = count;
    fibers->runs = 0;
    fibers->mode = decoder->keys.run.mode;
    fibers->begin = decoder->run_begin;
    fibers->values = decoder->values;
    for (unsigned n = 0; n < decoder->keys.order; n++) {
        fibers->offset[n] = decoder->offset[n];
    }
    if (count == 0) {
        return SLC_OK;
    }
    if (!prepare_chunks(decoder, &damage)) {
        sound = false;
    } else if (decoder->codec == SLC_CODEC_BLCO) {
        sound = slc_blco_offsets(decoder, decoder->position, count, &damage);
        fibers->runs = sound ? slc_blco_runs(decoder, count) : 0;
    } else if (slc_packed_byte_runs(decoder, count, &fibers->runs)) {
        sound = slc_decoder_run_offsets(decoder, fibers->runs, &damage);
    } else {
        sound = decode_keys(decoder, count, &damage) &&
                slc_decoder_runs(decoder, count, &fibers->runs, &damage);
    }
    if (!sound || !finish_chunk(decoder, count, &damage)) {
        fibers->nnz = 0;
        return slc_decoder_fail(decoder, &damage, err);
    }
    return SLC_OK;
}

enum slc_status slc_tile_check(struct slc_decoder *decoder,
                               const struct slc_block_view *block,
                               uint32_t index,
                               struct slc_error *err)
{
    uint64_t directory_end = slc_tile_entry_offset(decoder->keys.order, index + 1);
    const uint8_t *at = block->data + slc_tile_entry_offset(decoder->keys.order, index);
    struct slc_damage damage;

    assert(index < block->entry.tile_count);
    decoder->ops = slc_decode_ops();
    decoder->path = block->path;
    decoder->block = block->block;
    decoder->block_offset = block->entry.offset;
    decoder->block_data = block->data;
    decoder->tile = index;
    decoder->codec = block->entry.codec;
    decoder->lz4 = (struct slc_lz4_section){NULL, 0, 0};
    decoder->position = 0;
    decoder->next = 0;
    if (block->entry.bytes < directory_end + SLC_BLOCK_SLACK_BYTES ||
        block->entry.bytes > block->entry.padded_bytes) {
        slc_damage_set(&damage, block->data, "the size of the block", block->entry.bytes,
                       "at least ", directory_end + SLC_BLOCK_SLACK_BYTES);
        return slc_decoder_fail(decoder, &damage, err);
    }
    slc_tile_entry_load(at, decoder->keys.order, &decoder->entry);
    if (!check_place(decoder, block, at, &damage) || !check_keys(decoder, at, &damage) ||
        !plan_modes(decoder, at, &damage) || !check_data(decoder, &damage)) {
        return slc_decoder_fail(decoder, &damage, err);
    }
    return SLC_OK;
}

enum slc_status slc_tile_open(struct slc_decoder *decoder,
                              const struct slc_block_view *block,
                              uint32_t index,
                              struct slc_tile_view *tile,
                              struct slc_error *err)
{
    SLC_TRY(slc_tile_check(decoder, block, index, err));
    /* Fiber runs can be found only if a single word of the keys varies; a tile in which two words
     * vary has no long runs. */
    tile->next_fibers = decoder->finds_runs && !decoder->two_words ? next_fibers : NULL;
    plan_fields(decoder, tile->next_fibers != NULL);
    decoder->byte_runs = tile->next_fibers != NULL && has_byte_runs(decoder);
    place_keys(decoder);
    tile->ordinal = block->entry.first_tile + index;
    tile->partition = decoder->partitioned ? block->entry.partition : 0;
    tile->continued = block->entry.continued;
    tile->block = block->block;
    tile->nnz = decoder->entry.nnz;
    tile->order = decoder->keys.order;
    tile->value_type = decoder->value_type;
    memcpy(tile->corner, decoder->entry.corner, sizeof tile->corner);
    memcpy(tile->extent, decoder->entry.extent, sizeof tile->extent);
    tile->next = next_chunk;
    tile->describe = slc_tile_describe;
    tile->decoder = decoder;
    return SLC_OK;
}

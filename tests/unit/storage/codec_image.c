/* Random tiles, encoded into minimal block images. */
#include "codec_image.h"

#include "base/memory/bytes.h"
#include "base/random.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t draw(struct random_stream *random)
{
    return slc_random_u64(random->seed, random->stream, random->index++);
}

uint64_t draw_below(struct random_stream *random, uint64_t bound)
{
    return slc_random_below(random->seed, random->stream, random->index++, bound);
}

static int compare_keys(const void *a, const void *b)
{
    const slc_u128 *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double draw_value(struct random_stream *random, enum value_kind kind, uint32_t i)
{
    double uniform = (double)(draw(random) >> 11) * 0x1p-53;

    switch (kind) {
    case VALUES_CONSTANT:
        return 2.5;
    case VALUES_INTEGER: {
        /* Most values are small, some are negative, and a few, the exceptions of their groups, have
         * magnitudes of up to 2^53. */
        int64_t value = (int64_t)draw_below(random, 40) - 4;

        if (draw_below(random, 100) == 0) {
            value = (int64_t)(draw(random) >> 11);
        }
        return value == 0 ? 7 : (double)value;
    }
    case VALUES_DICTIONARY:
        return 0.1 + (double)(int)draw_below(random, 5) * -0.7;
    case VALUES_F32:
        /* Many exponents, because LZ4 would compress a narrow range of them. */
        return (double)(float)ldexp(uniform + 1e-3, (int)draw_below(random, 120) - 60);
    case VALUES_F64:
        return ldexp(uniform + 1e-3, (int)draw_below(random, 600) - 300);
    case VALUES_F32_SMOOTH:
        return 1 + i * 0x1p-17;
    case VALUES_F64_SMOOTH:
    case VALUE_KINDS:
        break;
    }
    return 1 + i * 0x1p-40;
}

static void fill_case(struct tile_case *tile,
                      struct random_stream *random,
                      unsigned order,
                      const uint64_t *dims,
                      struct slc_fiber_run run,
                      const slc_u128 *keys,
                      uint32_t nnz,
                      enum value_kind kind)
{
    struct slc_error err = SLC_ERROR_INIT;

    memset(tile, 0, sizeof *tile);
    SLC_ASSERT_OK(slc_key_layout_init_run(&tile->info.keys, order, dims, run, &err), &err);
    tile->info.order = order;
    memcpy(tile->info.dims, dims, order * sizeof *dims);
    tile->nnz = nnz;
    tile->key_lo = malloc(nnz * sizeof *tile->key_lo);
    tile->key_hi = malloc(nnz * sizeof *tile->key_hi);
    tile->values = malloc(nnz * sizeof *tile->values);
    for (uint32_t i = 0; i < nnz; i++) {
        tile->key_lo[i] = (uint64_t)keys[i];
        tile->key_hi[i] = (uint64_t)(keys[i] >> 64);
        tile->values[i] = draw_value(random, kind, i);
    }
}

void tile_case_from_keys(struct tile_case *tile,
                         struct random_stream *random,
                         unsigned order,
                         const uint64_t *dims,
                         const slc_u128 *keys,
                         uint32_t nnz,
                         enum value_kind kind)
{
    const struct slc_fiber_run none = {0, 0};

    fill_case(tile, random, order, dims, none, keys, nnz, kind);
}

void tile_case_make(struct tile_case *tile,
                    struct random_stream *random,
                    unsigned order,
                    const uint64_t *dims,
                    unsigned varying,
                    uint32_t nnz,
                    enum value_kind kind)
{
    const struct slc_fiber_run run = {
        (unsigned)draw_below(random, order),
        draw_below(random, 3) == 0 ? 0 : (unsigned)draw_below(random, SLC_FIBER_BITS_MAX + 1)};
    struct slc_key_layout layout;
    uint64_t coords[SLC_MAX_ORDER];
    slc_u128 *keys = malloc(nnz * sizeof *keys);
    slc_u128 fixed, mask;
    uint32_t count = 0;

    SLC_ASSERT_OK(slc_key_layout_init_run(&layout, order, dims, run, NULL), NULL);
    varying = varying < layout.bits ? varying : layout.bits;
    mask = varying == 128 ? ~(slc_u128)0 : ((slc_u128)1 << varying) - 1;
    for (unsigned n = 0; n < order; n++) {
        coords[n] = draw_below(random, dims[n]);
    }
    fixed = slc_key_encode(&layout, coords) & ~mask;
    for (uint32_t i = 0; i < nnz; i++) {
        slc_u128 key = ((slc_u128)draw(random) << 64 | draw(random)) & mask;

        /* Dense runs and far jumps, so that gaps have all lengths. */
        if (draw_below(random, 4) != 0 && i > 0) {
            key = (keys[draw_below(random, i)] + draw_below(random, 9)) & mask;
        }
        keys[i] = (fixed | key);
    }
    qsort(keys, nnz, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < nnz; i++) {
        bool inside = true;

        slc_key_decode(&layout, keys[i], coords);
        for (unsigned n = 0; n < order; n++) {
            inside &= coords[n] < dims[n];
        }
        if (inside && (count == 0 || keys[i] != keys[count - 1])) {
            keys[count++] = keys[i];
        }
    }
    if (count == 0) { /* every random key was out of range */
        keys[count++] = 0;
    }
    fill_case(tile, random, order, dims, run, keys, count, kind);
    free(keys);
}

void tile_case_make_runs(struct tile_case *tile,
                         struct random_stream *random,
                         unsigned bits,
                         uint32_t nnz,
                         enum value_kind kind)
{
    const struct slc_fiber_run run = {(unsigned)draw_below(random, 3), bits};
    uint64_t dims[3] = {1 << 10, 1 << 9, 1 << 10};
    slc_u128 *keys = malloc(nnz * sizeof *keys);
    slc_u128 key = draw_below(random, 1000);

    /* The fibers' own mode has no more bits than the run; in one of four cases two more. */
    dims[run.mode] = UINT64_C(1) << (bits + (draw_below(random, 4) == 0 ? 2 : 0));
    for (uint32_t i = 0; i < nnz; i++) {
        /* Small steps or far jumps; the product of the mode sizes is large enough for all of
         * them. */
        key += 1 + draw_below(random, draw_below(random, 40) == 0 ? 1000U << bits : 1U << bits / 2);
        keys[i] = key;
    }
    fill_case(tile, random, 3, dims, run, keys, nnz, kind);
    free(keys);
}

void tile_case_free(struct tile_case *tile)
{
    free(tile->key_lo);
    free(tile->key_hi);
    free(tile->values);
}

void block_image_make(struct block_image *image, const struct tile_case *tile, enum slc_codec codec)
{
    unsigned order = tile->info.order;
    uint64_t data_at = slc_tile_entry_offset(order, 1);
    struct slc_tile_source source = {tile->nnz, tile->key_lo, tile->key_hi, tile->values, 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_encoder *encoder = NULL;
    struct slc_tile_entry entry;

    if (tile->info.keys.bits <= 64) {
        source.key_hi = NULL;
    }
    memset(image, 0, sizeof *image);
    SLC_ASSERT_OK(slc_encoder_create(&tile->info.keys, codec, &encoder, &err), &err);
    SLC_ASSERT_OK(slc_tile_encode(encoder, &source, &image->blob, &err), &err);
    image->view.entry.bytes = data_at + image->blob.data_bytes + SLC_BLOCK_SLACK_BYTES;
    image->view.entry.padded_bytes = image->view.entry.bytes;
    image->view.entry.offset = SLC_PAGE_BYTES;
    image->view.entry.nnz = tile->nnz;
    image->view.entry.tile_count = 1;
    image->view.entry.codec = codec;
    image->bytes = calloc(1, image->view.entry.bytes);
    image->view.data = image->bytes;
    memset(&entry, 0, sizeof entry);
    entry.data_offset = data_at;
    entry.data_bytes = image->blob.data_bytes;
    entry.nnz = tile->nnz;
    entry.first_lo = image->blob.first_lo;
    entry.first_hi = image->blob.first_hi;
    entry.last_lo = image->blob.last_lo;
    entry.last_hi = image->blob.last_hi;
    for (unsigned n = 0; n < order; n++) {
        entry.corner[n] = image->blob.min[n];
        entry.extent[n] = (uint32_t)(image->blob.max[n] - image->blob.min[n]);
    }
    slc_tile_entry_store(image->bytes + SLC_BLOCK_HEADER_BYTES, order, &entry);
    memcpy(image->bytes + data_at, image->blob.data, image->blob.data_bytes);
    image->blob.data = image->bytes + data_at;
    slc_encoder_destroy(encoder);
}

void block_image_free(struct block_image *image)
{
    free(image->bytes);
}

static bool
chunk_sound(const struct slc_tile_view *view, const struct slc_chunk_view *chunk, bool zeros)
{
    bool sound = true;

    for (unsigned n = 0; n < view->order; n++) {
        for (uint32_t i = 0; i < chunk->nnz; i++) {
            sound &= chunk->offset[n][i] <= view->extent[n];
        }
    }
    for (uint32_t i = 0; i < chunk->nnz && view->value_type == SLC_F64; i++) {
        double value = ((const double *)chunk->values)[i];

        sound &= isfinite(value) && (zeros || value != 0);
    }
    return sound;
}

static bool chunk_equal(const struct slc_tile_view *view,
                        const struct slc_chunk_view *chunk,
                        const struct tile_case *tile,
                        uint32_t start)
{
    bool equal = true;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        slc_u128 key = (slc_u128)tile->key_hi[start + i] << 64 | tile->key_lo[start + i];
        double value = tile->values[start + i];
        uint64_t coords[SLC_MAX_ORDER];

        slc_key_decode(&tile->info.keys, key, coords);
        for (unsigned n = 0; n < view->order; n++) {
            equal &= coords[n] == view->corner[n] + chunk->offset[n][i];
        }
        if (view->value_type == SLC_F64) {
            equal &= slc_bits_f64(value) == slc_bits_f64(((const double *)chunk->values)[i]);
        } else {
            float rounded = (float)value;

            equal &= memcmp(&rounded, (const float *)chunk->values + i, sizeof rounded) == 0;
        }
    }
    return equal;
}

/* Whether the keys of a chunk ascend, starting with the tile's first key in the first chunk; *last
 * is the previous key. Codec blco guarantees this of whole tiles only to the verifier. */
static bool chunk_ascends(const struct slc_layout_info *info,
                          const struct slc_tile_entry *entry,
                          const struct slc_tile_view *view,
                          const struct slc_chunk_view *chunk,
                          uint32_t start,
                          slc_u128 *last)
{
    bool ascends = true;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];
        slc_u128 key;

        for (unsigned n = 0; n < view->order; n++) {
            coords[n] = view->corner[n] + chunk->offset[n][i];
        }
        key = slc_key_encode(&info->keys, coords);
        ascends &=
            start + i == 0 ? key == slc_key_join(entry->first_lo, entry->first_hi) : key > *last;
        *last = key;
    }
    return ascends;
}

/* The offsets per nonzero of a chunk, expanded from runs. Static below, because thousands of
 * images are decoded. */
struct expanded {
    uint32_t offset[SLC_MAX_ORDER][2048]; /* as long as the longest chunk */
};

/* Decodes the next chunk by `next`, or by `next_fibers` if available and `fibers` is set, and then
 * checks that runs begin exactly where a coordinate outside the bits of the run changes. */
static enum slc_status next_either(struct slc_tile_view *view,
                                   const struct slc_fiber_run *run,
                                   bool by_fibers,
                                   uint32_t chunk_nnz,
                                   struct expanded *expanded,
                                   struct slc_chunk_view *chunk,
                                   struct slc_error *err)
{
    struct slc_fiber_view fibers;
    enum slc_status status;
    bool cut_right = true;

    if (!by_fibers || view->next_fibers == NULL) {
        return view->next(view, chunk_nnz, chunk, err);
    }
    status = view->next_fibers(view, chunk_nnz, &fibers, err);
    chunk->nnz = fibers.nnz;
    chunk->values = fibers.values;
    if (status != SLC_OK || fibers.nnz == 0) {
        return status;
    }
    CU_ASSERT_EQUAL(fibers.mode, run->mode);
    CU_ASSERT_EQUAL(fibers.begin[0], 0);
    CU_ASSERT_EQUAL(fibers.begin[fibers.runs], fibers.nnz);
    for (uint32_t r = 0; r < fibers.runs; r++) {
        bool changed = r == 0;

        for (unsigned n = 0; n < view->order; n++) {
            for (uint32_t i = fibers.begin[r]; i < fibers.begin[r + 1]; i++) {
                expanded->offset[n][i] = fibers.offset[n][n == run->mode ? i : r];
            }
        }
        for (unsigned n = 0; n < view->order && r > 0; n++) {
            const uint32_t at = fibers.begin[r];
            const uint64_t now = view->corner[n] + expanded->offset[n][at];
            const uint64_t before = view->corner[n] + expanded->offset[n][at - 1];

            changed |= (now ^ before) >> (n == run->mode ? run->bits : 0) != 0;
        }
        cut_right &= changed && fibers.begin[r] < fibers.begin[r + 1];
    }
    CU_ASSERT(cut_right);
    for (unsigned n = 0; n < view->order; n++) {
        chunk->offset[n] = expanded->offset[n];
    }
    return SLC_OK;
}

enum slc_status block_image_decode_by(struct slc_decoder *decoder,
                                      const struct block_image *image,
                                      const struct slc_layout_info *info,
                                      uint32_t chunk_nnz,
                                      const struct tile_case *tile,
                                      struct slc_error *err)
{
    static struct expanded expanded;
    struct slc_tile_view view;
    struct slc_chunk_view chunk = {.nnz = 1};
    struct slc_tile_entry entry;
    enum slc_status status;
    uint32_t start = 0;
    slc_u128 last = 0;
    bool sound = true, equal = true, ascends = true;

    slc_tile_entry_load(image->bytes + SLC_BLOCK_HEADER_BYTES, info->order, &entry);
    status = slc_tile_open(decoder, &image->view, 0, &view, err);
    while (status == SLC_OK && chunk.nnz > 0) {
        /* Two chunks as runs, then two nonzero by nonzero: every change occurs. */
        status = next_either(&view, &info->keys.run, start / chunk_nnz % 4 < 2, chunk_nnz,
                             &expanded, &chunk, err);
        sound &= chunk_sound(&view, &chunk, info->has_zeros);
        ascends &= chunk_ascends(info, &entry, &view, &chunk, start, &last);
        if (tile != NULL) {
            equal &= start + chunk.nnz <= tile->nnz && chunk_equal(&view, &chunk, tile, start);
        }
        start += chunk.nnz;
    }
    CU_ASSERT(sound);
    if (image->view.entry.codec != SLC_CODEC_BLCO) {
        CU_ASSERT(ascends);
        CU_ASSERT(status != SLC_OK || last == slc_key_join(entry.last_lo, entry.last_hi));
    }
    CU_ASSERT(status != SLC_OK || start == view.nnz);
    if (tile != NULL) {
        CU_ASSERT(equal);
        CU_ASSERT_EQUAL(start, tile->nnz);
    }
    return status;
}

enum slc_status block_image_decode(const struct block_image *image,
                                   const struct slc_layout_info *info,
                                   enum slc_value_type type,
                                   uint32_t chunk_nnz,
                                   const struct tile_case *tile,
                                   struct slc_error *err)
{
    struct slc_decoder *decoder = NULL;
    enum slc_status status;

    SLC_ASSERT_OK(slc_decoder_create(info, type, &decoder, NULL), NULL);
    status = block_image_decode_by(decoder, image, info, chunk_nnz, tile, err);
    slc_decoder_destroy(decoder);
    return status;
}

/* Arbitrary bytes as the data of one tile, in each codec, with directory entries from the input:
 * exercises the decoders alone, without checksums. A tile that decodes as fiber runs must decode
 * nonzero by nonzero to the same result. */
#include "forged_tile.h"
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include <stdlib.h>
#include <string.h>

/* Checks the offset in mode n of one nonzero, or of all nonzeros of a run. */
static void check_offset(const struct slc_tile_view *tile, unsigned n, uint32_t offset)
{
    if (offset > tile->extent[n] || tile->corner[n] + offset >= forged_dims[n]) {
        abort();
    }
}

static void check_chunk(const struct slc_tile_view *tile, const struct slc_chunk_view *chunk)
{
    for (unsigned n = 0; n < FORGED_MODES; n++) {
        for (uint32_t i = 0; i < chunk->nnz; i++) {
            check_offset(tile, n, chunk->offset[n][i]);
        }
    }
}

/* Runs must cover the chunk and agree with `chunk`, which has the same nonzeros one by one. */
static void check_fibers(const struct slc_tile_view *tile,
                         const struct slc_fiber_view *fibers,
                         const struct slc_chunk_view *chunk)
{
    const size_t element = tile->value_type == SLC_F64 ? 8 : 4;

    if (chunk->nnz != fibers->nnz || fibers->begin[0] != 0 ||
        fibers->begin[fibers->runs] != fibers->nnz ||
        memcmp(fibers->values, chunk->values, fibers->nnz * element) != 0) {
        abort();
    }
    for (uint32_t r = 0; r < fibers->runs; r++) {
        if (fibers->begin[r] >= fibers->begin[r + 1]) {
            abort();
        }
        for (uint32_t i = fibers->begin[r]; i < fibers->begin[r + 1]; i++) {
            for (unsigned n = 0; n < FORGED_MODES; n++) {
                const uint32_t offset = fibers->offset[n][n == fibers->mode ? i : r];

                check_offset(tile, n, offset);
                if (offset != chunk->offset[n][i]) {
                    abort();
                }
            }
        }
    }
}

static uint64_t decode_nonzeros(struct slc_tile_view *tile)
{
    struct slc_chunk_view chunk;
    uint64_t seen = 0;

    while (tile->next(tile, 256, &chunk, NULL) == SLC_OK && chunk.nnz > 0) {
        seen += chunk.nnz;
        check_chunk(tile, &chunk);
    }
    return seen;
}

/* Compares the runs of one decoder with the nonzeros of another. */
static uint64_t decode_fibers(struct slc_tile_view *tile, struct slc_tile_view *twin)
{
    struct slc_fiber_view fibers;
    struct slc_chunk_view chunk;
    uint64_t seen = 0;

    while (tile->next_fibers(tile, 256, &fibers, NULL) == SLC_OK && fibers.nnz > 0) {
        seen += fibers.nnz;
        if (twin->next(twin, 256, &chunk, NULL) != SLC_OK) {
            abort();
        }
        check_fibers(tile, &fibers, &chunk);
    }
    return seen;
}

static void decode(const struct forged_tile *forged, enum slc_value_type type)
{
    const struct slc_layout_info *info = slc_reader_info(forged->view.reader);
    struct slc_decoder *decoder = NULL, *other = NULL;
    struct slc_tile_view tile, twin;

    if (slc_decoder_create(info, type, &decoder, NULL) == SLC_OK &&
        slc_decoder_create(info, type, &other, NULL) == SLC_OK &&
        slc_tile_open(decoder, &forged->view, 0, &tile, NULL) == SLC_OK &&
        slc_tile_open(other, &forged->view, 0, &twin, NULL) == SLC_OK) {
        const uint64_t seen =
            tile.next_fibers ? decode_fibers(&tile, &twin) : decode_nonzeros(&tile);

        if (seen > forged->entry.nnz) {
            abort();
        }
    }
    slc_decoder_destroy(decoder);
    slc_decoder_destroy(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct forged_tile forged;

    if (!forged_tile_make(&forged, data, bytes)) {
        return 0;
    }
    (void)slc_decoder_force(data[3] % 2 ? "portable" : NULL);
    decode(&forged, data[3] % 4 < 2 ? SLC_F64 : SLC_F32);
    forged_tile_free(&forged);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    return fuzz_mutate_behind(data, bytes, room, seed, FORGED_HEAD_BYTES);
}

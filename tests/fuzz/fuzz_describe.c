/* Descriptions of forged tiles (storage/codec/describe.h): rejected exactly when opening the tile
 * fails; otherwise the naive decoder follows them and must not leave the block and its expanded
 * bytes. If storage's own decoder accepts the tile, both yield the same nonzeros. */
#include "forged_tile.h"
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "naive_decode.h"
#include "storage/codec/describe.h"

#include <stdlib.h>
#include <string.h>

/* The result of following the description of the tile. */
struct followed {
    struct slc_encoded_layout layout;
    struct slc_encoded_block block;
    struct slc_encoded_tile tile;
    uint8_t *expanded;
};

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool same_error(const struct slc_error *a, const struct slc_error *b)
{
    return a->status == b->status && a->offset == b->offset && strcmp(a->message, b->message) == 0;
}

static void same_chunk(const struct slc_naive_run *run,
                       const struct slc_tile_view *tile,
                       const struct slc_chunk_view *chunk)
{
    must(run->nnz == chunk->nnz);
    must(memcmp(run->values, chunk->values, run->nnz * sizeof run->values[0]) == 0);
    for (unsigned n = 0; n < FORGED_MODES; n++) {
        for (uint32_t i = 0; i < run->nnz; i++) {
            must(run->coords[n][i] == tile->corner[n] + chunk->offset[n][i]);
        }
    }
}

/* Decodes every run and compares it with the decoder's chunks until a fault is found. */
static void follow(const struct followed *followed, struct slc_tile_view *tile)
{
    static struct slc_naive_run run;
    bool sound = true;

    for (uint32_t r = 0; r < slc_naive_runs(&followed->tile); r++) {
        struct slc_chunk_view chunk;
        const bool decoded = slc_naive_decode(&followed->layout, &followed->block, &followed->tile,
                                              followed->expanded, r, &run);

        sound = sound && tile->next(tile, SLC_RUN_NNZ, &chunk, NULL) == SLC_OK;
        must(decoded || !sound);
        if (sound) {
            same_chunk(&run, tile, &chunk);
        }
    }
}

static void describe(const struct forged_tile *forged)
{
    const struct slc_layout_info *info = slc_reader_info(forged->view.reader);
    struct slc_error open_err = SLC_ERROR_INIT, describe_err = SLC_ERROR_INIT;
    struct slc_decoder *decoder = NULL;
    struct slc_tile_view tile;
    struct followed followed;
    enum slc_status described, open;

    if (slc_decoder_create(info, SLC_F64, &decoder, NULL) != SLC_OK) {
        return;
    }
    slc_describe_layout(info, &followed.layout);
    described =
        slc_describe_block(decoder, &forged->view, &followed.tile, &followed.block, &describe_err);
    open = slc_tile_open(decoder, &forged->view, 0, &tile, &open_err);
    if (described != SLC_OK) {
        must(open == described && same_error(&open_err, &describe_err));
    } else {
        must(followed.block.expanded_bytes <=
             slc_describe_expanded_bound(info, &forged->view.entry));
        followed.expanded = malloc(followed.block.expanded_bytes + 1);
        must(followed.expanded != NULL);
        must(open == SLC_OK);
        if (slc_naive_expand(&followed.block, &followed.tile, followed.expanded)) {
            follow(&followed, &tile);
        } else {
            struct slc_chunk_view chunk;

            must(tile.next(&tile, SLC_RUN_NNZ, &chunk, NULL) == SLC_ERR_DAMAGED);
        }
        free(followed.expanded);
    }
    slc_decoder_destroy(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct forged_tile forged;

    if (forged_tile_make(&forged, data, bytes)) {
        (void)slc_decoder_force(data[3] % 2 ? "portable" : NULL);
        describe(&forged);
        forged_tile_free(&forged);
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    return fuzz_mutate_behind(data, bytes, room, seed, FORGED_HEAD_BYTES);
}

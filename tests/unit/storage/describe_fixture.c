/* Describes blocks and expands their LZ4 sections. */
#include "describe_fixture.h"

#include "naive_decode.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

enum slc_status follow_describe(struct followed *followed,
                                const struct slc_layout_info *info,
                                const struct slc_block_view *view,
                                struct slc_error *err)
{
    struct slc_decoder *decoder = NULL;
    enum slc_status status;

    memset(followed, 0, sizeof *followed);
    followed->tiles = calloc(view->entry.tile_count, sizeof *followed->tiles);
    slc_describe_layout(info, &followed->layout);
    SLC_ASSERT_OK(slc_decoder_create(info, SLC_F64, &decoder, NULL), NULL);
    status = slc_describe_block(decoder, view, followed->tiles, &followed->block, err);
    slc_decoder_destroy(decoder);
    return status;
}

bool follow_expand(struct followed *followed)
{
    const uint64_t bytes = followed->block.expanded_bytes;
    uint64_t end = 0;
    bool sound = true;

    followed->expanded = malloc(bytes > 0 ? bytes : 1);
    for (uint32_t t = 0; t < followed->block.tile_count; t++) {
        const struct slc_encoded_lz4 *lz4 = &followed->tiles[t].lz4;

        if (lz4->bytes > 0) {
            CU_ASSERT_EQUAL(lz4->expanded_at % 16, 0);
            CU_ASSERT(lz4->expanded_at >= end);
            end = lz4->expanded_at + lz4->expanded_bytes;
        }
        CU_ASSERT(end <= bytes);
        sound &= slc_naive_expand(&followed->block, &followed->tiles[t], followed->expanded);
    }
    return sound;
}

void follow_end(struct followed *followed)
{
    free(followed->tiles);
    free(followed->expanded);
}

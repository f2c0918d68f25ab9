/* Described blocks with their expanded LZ4 sections, for tests of storage/codec/describe.h. */
#ifndef SLC_DESCRIBE_FIXTURE_H
#define SLC_DESCRIBE_FIXTURE_H

#include "storage/codec/describe.h"

struct followed {
    struct slc_encoded_layout layout;
    struct slc_encoded_block block;
    struct slc_encoded_tile *tiles;
    uint8_t *expanded; /* expanded bytes; NULL before follow_expand */
};

/* Describes the block; `followed` holds memory for any result. */
enum slc_status follow_describe(struct followed *followed,
                                const struct slc_layout_info *info,
                                const struct slc_block_view *view,
                                struct slc_error *err) SLC_NODISCARD;
/* Expands all tiles, and asserts that sections have disjoint places, in order, in the expanded
 * bytes. Returns whether all could be expanded. */
bool follow_expand(struct followed *followed);
void follow_end(struct followed *followed);

#endif

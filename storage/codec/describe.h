/*
 * Describes encoded blocks for devices that decode by themselves (base/encoded.h). What is checked
 * is what the decoder checks when it opens a tile: places, widths, counts and sizes, so that
 * whoever follows a description stays within the block; not what only decoding shows.
 */
#ifndef SLC_STORAGE_DESCRIBE_H
#define SLC_STORAGE_DESCRIBE_H

#include "base/encoded.h"
#include "storage/codec/decoder.h"

/* How keys of the layout become coordinates. Cost: some operations per mode and key bit. */
void slc_describe_layout(const struct slc_layout_info *info, struct slc_encoded_layout *layout);

/* The most that slc_encoded_block.expanded_bytes can be of a block, from its entry in the index. */
uint64_t slc_describe_expanded_bound(const struct slc_layout_info *info,
                                     const struct slc_block_entry *entry);

/*
 * The most that slc_encoded_block.bytes can be of a tile of the layout alone
 * (slc_tile_view.describe). Its expanded_bytes are at most those of a block with one full tile.
 */
uint64_t slc_describe_tile_bound(const struct slc_layout_info *info);
uint64_t slc_describe_tile_expanded_bound(const struct slc_layout_info *info);

/*
 * Fills in `tiles` (entry.tile_count of them, the caller's) and `described` for a block that was
 * opened; both borrow. `decoder` is bound to the block's layout and lends its scratch.
 * Cost: a few operations per group of each tile; no byte is decompressed or decoded.
 * Errors: SLC_ERR_DAMAGED with file, block and offset, as slc_tile_open.
 */
enum slc_status slc_describe_block(struct slc_decoder *decoder,
                                   const struct slc_block_view *block,
                                   struct slc_encoded_tile *tiles,
                                   struct slc_encoded_block *described,
                                   struct slc_error *err) SLC_NODISCARD;

#endif

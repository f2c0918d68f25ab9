/* Describes encoded blocks for devices that decode them (base/encoded.h). Performs the same checks
 * as the decoder does when it opens a tile (offsets, widths, counts and sizes), so that a device
 * that follows a description stays within the block. Errors that only decoding reveals are not
 * detected. */
#ifndef SLC_STORAGE_DESCRIBE_H
#define SLC_STORAGE_DESCRIBE_H

#include "base/encoded.h"
#include "storage/codec/decoder.h"

/* Describes how keys become coordinates. Cost: a few operations per mode and key bit. */
void slc_describe_layout(const struct slc_layout_info *info, struct slc_encoded_layout *layout);

/* Returns an upper bound on slc_encoded_block.expanded_bytes of the block with this index entry. */
uint64_t slc_describe_expanded_bound(const struct slc_layout_info *info,
                                     const struct slc_block_entry *entry);

/* Returns an upper bound on slc_encoded_block.bytes of a single tile (slc_tile_view.describe). The
 * expanded_bytes of the tile are at most the bound for a block with one full tile. */
uint64_t slc_describe_tile_bound(const struct slc_layout_info *info);
uint64_t slc_describe_tile_expanded_bound(const struct slc_layout_info *info);

/* Fills `tiles` (entry.tile_count elements, owned by the caller) and `described` for an opened
 * block; both borrow its data. Uses the scratch of `decoder`, which must be bound to the block's
 * layout.
 * Cost: a few operations per group of each tile; no byte is decompressed or decoded.
 * Errors: SLC_ERR_DAMAGED with file, block and offset, like slc_tile_open. */
enum slc_status slc_describe_block(struct slc_decoder *decoder,
                                   const struct slc_block_view *block,
                                   struct slc_encoded_tile *tiles,
                                   struct slc_encoded_block *described,
                                   struct slc_error *err) SLC_NODISCARD;

#endif

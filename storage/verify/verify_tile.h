/* The part of the verifier that looks into blocks and tiles; private to storage/verify*.c. */
#ifndef SLC_STORAGE_VERIFY_TILE_H
#define SLC_STORAGE_VERIFY_TILE_H

#include "storage/block/reader.h"

#include <stdint.h>

/*
 * Checks that tile `index` of an open block holds as many nonzeros as the rules for cutting tiles
 * give it, as far as can be seen without decoding (docs/FORMAT.md, section 5).
 * Errors: SLC_ERR_DAMAGED with file, block and offset.
 */
enum slc_status slc_verify_tile_cut(const struct slc_block_view *block,
                                    uint32_t index,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Decodes tile `index` with `decoder` (of f64) and compares everything that the directory and the
 * header claim of it: count, keys, coordinate ranges, sum of squares, content sum, value type.
 * *fibers: pieces of fibers of the keys' run in it, where all is well.
 * Errors: SLC_ERR_DAMAGED with file, block and offset.
 */
enum slc_status slc_verify_tile(struct slc_decoder *decoder,
                                const struct slc_block_view *block,
                                uint32_t index,
                                uint64_t *fibers,
                                struct slc_error *err) SLC_NODISCARD;

/* Of the `pieces` of fibers that tile `index` of fiber-n holds, those that do not go on in the next
 * one. */
uint64_t
slc_verify_fibers_ended(const struct slc_block_view *block, uint32_t index, uint64_t pieces);

#endif

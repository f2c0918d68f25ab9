/* Decodes tiles of an encoded block in memory, which storage/block/reader.h has checked
 * (docs/FORMAT.md, sections "Tile data"). */
#ifndef SLC_STORAGE_DECODER_H
#define SLC_STORAGE_DECODER_H

#include "base/block.h"
#include "base/error/error.h"
#include "storage/codec/layout_info.h"

#include <stdbool.h>
#include <stdint.h>

/* Decodes tiles; each worker has its own decoder. */
struct slc_decoder;

/* Creates a decoder that delivers values of `value_type`, regardless of their value form in the
 * file. Scratch: about 1 MiB plus one chunk. Ownership: release with slc_decoder_destroy, which
 * accepts NULL. */
enum slc_status slc_decoder_create(const struct slc_layout_info *info,
                                   enum slc_value_type value_type,
                                   struct slc_decoder **decoder,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_decoder_destroy(struct slc_decoder *decoder);
/* Switches the decoder to blocks of another layout of the same store. Cost: copying `info`. */
void slc_decoder_bind(struct slc_decoder *decoder, const struct slc_layout_info *info);
uint64_t slc_decoder_memory_bytes(const struct slc_layout_info *info,
                                  enum slc_value_type value_type);

/* Opens tile `index` (0 .. entry.tile_count - 1) of an open block as `tile`, which uses the
 * decoder's scratch. Opening a tile closes the previous tile of the decoder. Errors:
 * SLC_ERR_DAMAGED. */
enum slc_status slc_tile_open(struct slc_decoder *decoder,
                              const struct slc_block_view *block,
                              uint32_t index,
                              struct slc_tile_view *tile,
                              struct slc_error *err) SLC_NODISCARD;

/* Restricts decoding in this process to instruction set `name` ("portable", "avx2", "avx512",
 * "neon"); NULL selects the best instruction set of this machine. Returns false if `name` is
 * unknown or not available. For tests and benchmarks. */
bool slc_decoder_force(const char *name);

#endif

/* Divides a product into parts that processes compute independently: the N-1-dimensional partition
 * of [SPTV] section 3.1. A result of a product has the indices of the *kept* modes: all modes
 * without a vector for TTV, all but one for TTM, one for MTTKRP. The key of a result is the key of
 * its nonzeros without the bits of all other modes. A part is an interval of these keys, that is, a
 * few boxes of the kept modes that contain all indices of the other modes. So every part sums whole
 * fibers (or rows), and no sum is exchanged.
 *
 * The intervals follow from the index of the layout, so processes need not agree on them. Each
 * contains about the same number of encoded bytes. An interval begins at the key with the most
 * trailing zeros within a quarter of a part's bytes: blocks are boxes that end at such keys, so few
 * blocks belong to two parts. */
#ifndef SLC_ENGINE_PART_H
#define SLC_ENGINE_PART_H

#include "base/error/error.h"
#include "base/key.h"
#include "storage/block/reader.h"

#include <stdbool.h>
#include <stdint.h>

/* Which part of how many; count 0 means the whole product. */
struct slc_part_choice {
    unsigned number; /* from 0 */
    unsigned count;
};

/* Largest number of parts. */
enum { SLC_PARTS_MAX = 1024 };

struct slc_part {
    struct slc_part_choice choice;
    struct slc_key_layout keys; /* keys of results; modes that are not kept have no bits */
    bool empty;                 /* no key belongs to the part */
    slc_u128 first, last;       /* unless empty: smallest and largest key of the part */
    /* Numbers of the blocks that may have nonzeros of the part, ascending; in sorted-n, all blocks
     * from the first to the last of them. */
    uint64_t *blocks;
    uint64_t block_count;
    uint64_t tile_count; /* tiles of these blocks */
    uint64_t bytes;      /* padded bytes of these blocks */
    uint64_t *skipped;   /* per block of the layout: tiles of earlier blocks that are not listed */
};

/* Returns the bytes that an open part holds. */
uint64_t slc_part_memory_bytes(const struct slc_layout_info *info);

/* Computes a part of the results over the layout of `reader`. Bit n of `kept` is set if mode n is
 * kept. Ownership: release with slc_part_close, which accepts an all-zero struct. Cost: about
 * twenty passes over the index. Errors: SLC_ERR_USAGE if there is no such part; SLC_ERR_MEMORY. */
enum slc_status slc_part_open(struct slc_part *part,
                              const struct slc_reader *reader,
                              uint32_t kept,
                              struct slc_part_choice choice,
                              struct slc_error *err) SLC_NODISCARD;
void slc_part_close(struct slc_part *part);

/* Returns true if the result with these coordinates, one per mode of the layout, belongs to the
 * part. Coordinates of modes that are not kept are ignored. */
bool slc_part_holds(const struct slc_part *part, const uint64_t *coords);

enum slc_part_overlap { SLC_PART_NONE, SLC_PART_SOME, SLC_PART_ALL };

/* Returns whether none, maybe some, or all results in the box from `least` to `most` belong to the
 * part. */
enum slc_part_overlap
slc_part_overlap(const struct slc_part *part, const uint64_t *least, const uint64_t *most);

/* Returns the number of a tile among the tiles of the part's blocks. */
static inline uint64_t
slc_part_ordinal(const struct slc_part *part, uint64_t block, uint64_t ordinal)
{
    return ordinal - part->skipped[block];
}

#endif

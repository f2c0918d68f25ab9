/* The partitions of a sorted-n file, as its index tells them; private to storage/block/reader.c. */
#ifndef SLC_STORAGE_PARTITIONS_H
#define SLC_STORAGE_PARTITIONS_H

#include "base/memory/memory.h"
#include "storage/block/reader.h"

#include <stdint.h>

/* What is kept of a partition; the rest is in the index entries of its blocks. */
struct slc_partition_mark {
    uint64_t first_block;
    uint64_t first_nnz; /* nonzeros of all partitions before it */
    uint64_t first_row;
    uint64_t last_row;
};

struct slc_partitions {
    struct slc_buffer marks; /* room for one a block, as there are no more partitions than blocks */
    uint64_t nnz;            /* of all blocks taken in */
    uint64_t first_offset;   /* of the last partition's first block */
    bool continued;          /* the flag of the last partition */
};

/* All of this is nothing for other layouts. Owns: slc_partitions_destroy. */
enum slc_status slc_partitions_create(struct slc_partitions *partitions,
                                      const struct slc_layout_info *info,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_partitions_destroy(struct slc_partitions *partitions);
uint64_t slc_partitions_memory_bytes(const struct slc_layout_info *info);

/*
 * Takes in the next entry of the index, whose place, count and ranges have been checked, and counts
 * partitions in `info`. `flags` are as in the file. Errors: SLC_ERR_DAMAGED where ordinals, rows or
 * flags break the rules of docs/FORMAT.md, section 4.2.
 */
enum slc_status slc_partitions_add(struct slc_partitions *partitions,
                                   struct slc_layout_info *info,
                                   uint64_t block,
                                   const struct slc_block_entry *entry,
                                   uint32_t flags,
                                   struct slc_error *err) SLC_NODISCARD;

/* Fills in blocks, nonzeros and rows of partition `ordinal`, once all entries are taken in. */
void slc_partitions_get(const struct slc_partitions *partitions,
                        const struct slc_layout_info *info,
                        uint64_t ordinal,
                        struct slc_partition *partition);

#endif

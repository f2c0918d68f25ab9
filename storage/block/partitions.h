/* Partitions of a sorted-n file, built from its index; private to storage/block/reader.c. */
#ifndef SLC_STORAGE_PARTITIONS_H
#define SLC_STORAGE_PARTITIONS_H

#include "base/memory/memory.h"
#include "storage/block/reader.h"

#include <stdint.h>

/* Data stored per partition; all other data is in the index entries of the partition's blocks. */
struct slc_partition_mark {
    uint64_t first_block;
    uint64_t first_nnz; /* number of nonzeros in all previous partitions */
    uint64_t first_row;
    uint64_t last_row;
};

struct slc_partitions {
    /* Space for one mark per block, because a partition has at least one block. */
    struct slc_buffer marks;
    uint64_t nnz;          /* nonzeros of all added blocks */
    uint64_t first_offset; /* offset of the last partition's first block */
    bool continued;        /* the last partition continues the row of the partition before it */
};

/* Creates an empty table; allocates memory only for sorted-n. Ownership: release with
 * slc_partitions_destroy. */
enum slc_status slc_partitions_create(struct slc_partitions *partitions,
                                      const struct slc_layout_info *info,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_partitions_destroy(struct slc_partitions *partitions);
uint64_t slc_partitions_memory_bytes(const struct slc_layout_info *info);

/* Adds the next index entry, whose position, counts and ranges have been checked, and updates the
 * number of partitions in `info` (fiber-n: the number of fibers). `flags` are the partition flags
 * of the entry in the file. Errors: SLC_ERR_DAMAGED if ordinals, rows or flags break the rules of
 * docs/FORMAT.md, section 4.2. */
enum slc_status slc_partitions_add(struct slc_partitions *partitions,
                                   struct slc_layout_info *info,
                                   uint64_t block,
                                   const struct slc_block_entry *entry,
                                   uint32_t flags,
                                   struct slc_error *err) SLC_NODISCARD;

/* Sets all members of partition `ordinal`. Call it after all entries have been added. */
void slc_partition_from_marks(const struct slc_partitions *partitions,
                              const struct slc_layout_info *info,
                              uint64_t ordinal,
                              struct slc_partition *partition);

#endif

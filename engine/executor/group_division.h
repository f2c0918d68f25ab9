/* Divides the work on one mode between several devices. Each device owns some blocks and some rows
 * of the factor: it multiplies its blocks and solves its rows. */
#ifndef SLC_ENGINE_GROUP_DIVISION_H
#define SLC_ENGINE_GROUP_DIVISION_H

#include "base/error/error.h"
#include "engine/executor/assign.h"
#include "engine/executor/exchange.h"
#include "storage/block/reader.h"

#include <stdint.h>

struct slc_group_division {
    unsigned devices;
    uint64_t block_count;
    uint32_t *owner; /* owner of each block */
    /* Order in which all blocks are read. At any time all devices have done about the same fraction
     * of their work. The blocks of a partition are adjacent and ascending. */
    uint64_t *order;
    /* Rows in units of at most slc_group_unit_rows, grouped by device. The units depend only on the
     * layout or, with SLC_SPLIT_NNZ, on the number of rows. */
    uint64_t unit_count;
    struct slc_row_span *units;
    uint64_t *ordinal; /* position of each unit in row order */
    /* For each device, its units, and the nonzeros and encoded bytes of its blocks. */
    struct slc_device_rows pieces[SLC_MAX_DEVICES];
    uint64_t nnz[SLC_MAX_DEVICES];
    uint64_t bytes[SLC_MAX_DEVICES];
};

/* Returns the number of rows per unit for a mode with `rows` rows: at most the rows that fit in 256
 * KiB, and few enough that each of many devices gets several units. The result is a multiple of the
 * number of rows that dense algebra processes at once. It does not depend on the number of
 * devices. */
uint64_t slc_group_unit_rows(uint64_t row_bytes, uint64_t rows);

/* Divides the blocks of a layout and the `rows` rows of the mode. SLC_SPLIT_PARTITIONS needs a
 * layout sorted by the mode. A row that is split between partitions belongs to the owner of its
 * first partition. A row without nonzeros belongs to an arbitrary device. Ownership: release with
 * slc_group_division_destroy, which accepts an all-zero struct. Order: the division depends only on
 * the layout, `split` and the number of devices. Errors: SLC_ERR_USAGE if the number of devices is
 * invalid, or if SLC_SPLIT_PARTITIONS is given and the layout has no partitions; SLC_ERR_MEMORY. */
enum slc_status slc_group_division_create(const struct slc_reader *reader,
                                          enum slc_split split,
                                          unsigned devices,
                                          uint64_t rows,
                                          uint64_t unit_rows,
                                          struct slc_group_division *division,
                                          struct slc_error *err) SLC_NODISCARD;
void slc_group_division_destroy(struct slc_group_division *division);

/* For plans. Sets owner[b] to the device that owns block b in a division. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_group_owners(const struct slc_reader *reader,
                                 enum slc_split split,
                                 unsigned devices,
                                 uint32_t *owner,
                                 struct slc_error *err) SLC_NODISCARD;

/* For plans. Return upper bounds on the number of units, and on the bytes that
 * slc_group_division_create allocates, including its working memory. */
uint64_t slc_group_units_max(const struct slc_reader *reader,
                             unsigned devices,
                             uint64_t rows,
                             uint64_t unit_rows);
uint64_t slc_group_division_memory_bytes(const struct slc_reader *reader,
                                         unsigned devices,
                                         uint64_t rows,
                                         uint64_t unit_rows);

#endif

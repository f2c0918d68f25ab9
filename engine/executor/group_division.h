/*
 * The work of each of several devices for one mode: the blocks it computes from, and the rows of
 * the factor that it solves.
 */
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
    /* All blocks in the best order for reading: at any time every device has done about the same
     * share of its work. The blocks of a partition are adjacent and ascending. */
    uint64_t *order;
    /* Rows in units of at most slc_group_unit_rows, grouped by device. The units depend only on the
     * layout or, with SLC_SPLIT_NNZ, on the number of rows. */
    uint64_t unit_count;
    struct slc_row_span *units;
    uint64_t *ordinal; /* position of each unit in row order */
    /* Per device: its units, and the nonzeros and encoded bytes of its blocks. */
    struct slc_row_piece pieces[SLC_MAX_DEVICES];
    uint64_t nnz[SLC_MAX_DEVICES];
    uint64_t bytes[SLC_MAX_DEVICES];
};

/*
 * Rows per unit of work in a mode of `rows` rows: as many as fit in 256 KiB, but few enough that
 * each of many devices gets several units. A multiple of the number of rows that dense algebra
 * processes at once. Larger modes have more units. Independent of the number of devices.
 */
uint64_t slc_group_unit_rows(uint64_t row_bytes, uint64_t rows);

/*
 * Divides the blocks of a layout and the `rows` rows of the mode. PARTITIONS needs a layout sorted
 * by the mode; a row split between partitions belongs to the owner of the first of them, and a row
 * without nonzeros to an arbitrary device. Owns: release with slc_group_division_destroy, which
 * accepts an all-zero struct. Order: determined by the layout and the number of devices alone.
 * Errors: SLC_ERR_USAGE for an invalid number of devices, and for PARTITIONS if the layout has
 * none; SLC_ERR_MEMORY.
 */
enum slc_status slc_group_division_create(const struct slc_reader *reader,
                                          enum slc_split split,
                                          unsigned devices,
                                          uint64_t rows,
                                          uint64_t unit_rows,
                                          struct slc_group_division *division,
                                          struct slc_error *err) SLC_NODISCARD;
void slc_group_division_destroy(struct slc_group_division *division);

/* Upper bounds on the number of units, and on the bytes that slc_group_division_create allocates
 * including working memory. For plans. */
uint64_t slc_group_units_max(const struct slc_reader *reader,
                             unsigned devices,
                             uint64_t rows,
                             uint64_t unit_rows);
uint64_t slc_group_division_memory_bytes(const struct slc_reader *reader,
                                         unsigned devices,
                                         uint64_t rows,
                                         uint64_t unit_rows);

#endif

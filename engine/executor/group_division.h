/*
 * What each of several devices has to do for one mode: the blocks it computes from, and the rows of
 * the factor that it solves for.
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
    uint32_t *owner; /* of each block */
    /*
     * All blocks as they are best read: every device has done about the same share of its work at
     * any time. Those of a partition stand together and ascend.
     */
    uint64_t *order;
    /*
     * Rows in units of at most slc_group_unit_rows, those of a device together. They follow from
     * the layout alone; with SLC_SPLIT_NNZ from the number of rows.
     */
    uint64_t unit_count;
    struct slc_row_span *units;
    uint64_t *ordinal; /* of each unit among all, by rows */
    /* Per device: its units; nonzeros and encoded bytes of its blocks. */
    struct slc_row_piece pieces[SLC_MAX_DEVICES];
    uint64_t nnz[SLC_MAX_DEVICES];
    uint64_t bytes[SLC_MAX_DEVICES];
};

/*
 * Rows of a unit of work in a mode of so many rows: as many as fit 256 KiB, a multiple of what
 * dense algebra takes at once, but few enough for several units to go to each of many devices.
 * More in a longer mode, and whatever the number of devices.
 */
uint64_t slc_group_unit_rows(uint64_t row_bytes, uint64_t rows);

/*
 * Divides the blocks of a layout and the `rows` rows of the mode. PARTITIONS takes a layout sorted
 * by the mode; a row that several partitions share is of the owner of the first of them, and a row
 * without nonzeros of somebody.
 * Owns: slc_group_division_destroy, which takes an all-zero struct. Order: follows from the layout
 * and the number of devices alone. Errors: SLC_ERR_USAGE for numbers of devices that cannot be, and
 * for PARTITIONS without any; SLC_ERR_MEMORY.
 */
enum slc_status slc_group_division_create(const struct slc_reader *reader,
                                          enum slc_split split,
                                          unsigned devices,
                                          uint64_t rows,
                                          uint64_t unit_rows,
                                          struct slc_group_division *division,
                                          struct slc_error *err) SLC_NODISCARD;
void slc_group_division_destroy(struct slc_group_division *division);

/* The most units, and the most that the above holds, working memory included. For plans. */
uint64_t slc_group_units_max(const struct slc_reader *reader,
                             unsigned devices,
                             uint64_t rows,
                             uint64_t unit_rows);
uint64_t slc_group_division_memory_bytes(const struct slc_reader *reader,
                                         unsigned devices,
                                         uint64_t rows,
                                         uint64_t unit_rows);

#endif

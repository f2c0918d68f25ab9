/*
 * Buckets to tiles in the file: a worker sorts the next bucket when it finds a free area, and
 * encodes the next tile when it finds none, so that reading the spill, sorting, encoding and
 * writing go on at the same time.
 */
#ifndef SLC_CONVERT_BUILD_PIPELINE_H
#define SLC_CONVERT_BUILD_PIPELINE_H

#include "base/error/error.h"
#include "convert/build/bucket_sort.h"
#include "convert/build/build_output.h"
#include "convert/build/build_tiles.h"
#include "convert/build/build_types.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_build_queue;

struct slc_pipeline_options {
    const struct slc_sort_plan *plan;
    unsigned workers; /* and areas */
    void *areas;      /* workers * area_bytes */
    uint64_t area_bytes;
    uint8_t *const *chunk_data; /* SLC_BUILD_FETCH_BYTES per worker */
    uint8_t *ahead_memory;      /* ahead_buffers * ahead_bytes, in pages */
    uint32_t ahead_buffers;     /* 0: nothing is read ahead */
    uint32_t ahead_bytes;
    struct slc_tiles *tiles;
    struct slc_output *output;
    struct slc_build_queue *queue;
    const struct slc_builder_options *builder; /* whose progress is called .. */
    uint64_t entries;                          /* .. with so many in all */
};

/*
 * Runs until no bucket that fits an area is next in the queue and everything is in the file, but
 * for what the output keeps for a tile that is not complete. *sort_seconds: of all workers, added
 * to what is there. Errors: of buckets that cannot be sorted the first in key order; otherwise the
 * first fault.
 */
enum slc_status slc_pipeline_run(const struct slc_pipeline_options *options,
                                 double *sort_seconds,
                                 struct slc_error *err) SLC_NODISCARD;

#endif

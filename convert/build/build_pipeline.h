/* Turns buckets into tiles in the block file. A worker sorts the next bucket if an area is free and
 * otherwise encodes the next tile, so that reading the spill file, sorting, encoding and writing
 * overlap. */
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
    unsigned workers; /* number of workers and of areas */
    void *areas;      /* workers * area_bytes bytes */
    uint64_t area_bytes;
    uint8_t *const *chunk_data; /* SLC_BUILD_FETCH_BYTES per worker */
    uint8_t *ahead_memory;      /* ahead_buffers * ahead_bytes, page-aligned */
    uint32_t ahead_buffers;     /* 0: chunks are not read ahead */
    uint32_t ahead_bytes;
    struct slc_tiles *tiles;
    struct slc_output *output;
    struct slc_build_queue *queue;
    const struct slc_builder_options *builder; /* has the progress callback */
    uint64_t entries;                          /* total passed to the progress callback */
};

/* Runs until the queue is empty or its next bucket does not fit an area. On return, the nonzeros of
 * all processed buckets are in the file, except for those of an incomplete tile, which the output
 * keeps. Adds the seconds of sorting, summed over workers, to *sort_seconds. Errors: if a bucket
 * cannot be sorted, the error of the first such bucket in key order; otherwise the first error. */
enum slc_status slc_pipeline_run(const struct slc_pipeline_options *options,
                                 double *sort_seconds,
                                 struct slc_error *err) SLC_NODISCARD;

#endif

/*
 * Divides the builder's memory between two phases that do not overlap: pushing input needs scatter
 * buffers and the newest part of the spill stream; writing the store needs sort areas, encoders and
 * the writer.
 */
#ifndef SLC_CONVERT_BUILD_MEMORY_H
#define SLC_CONVERT_BUILD_MEMORY_H

#include "convert/build/build_types.h"
#include "convert/build/spill/scatter.h"

#include <stdint.h>

enum {
    /* Largest chunk: packed scatter buffers of at most 256 KiB, including runs. */
    SLC_BUILD_CHUNK_BYTES = 320 << 10,
    SLC_BUILD_FETCH_BYTES = SLC_BUILD_CHUNK_BYTES + SLC_SPILL_FETCH_EXTRA_BYTES,
    SLC_BUILD_SEGMENT_BYTES_MAX = 4 << 20, /* of the spill stream: larger writes are no faster */
    /* Smaller areas would split buckets of a few thousand nonzeros. */
    SLC_BUILD_AREA_BYTES_MIN = 2 << 20,
    /* Key and value of the nonzeros of a tile that spans buckets. */
    SLC_BUILD_STAGE_BYTES = SLC_TILE_NNZ * 24,
    /* Areas of at least this size use huge pages and are multiples of 2 MiB. */
    SLC_BUILD_HUGE_AREA_BYTES = 16 << 20
};

/* Push phase. There may be fewer buckets than requested. */
struct slc_push_memory {
    struct slc_scatter_shape shape;
    uint32_t segment_bytes;
    uint32_t segment_count;
};

/* Write phase. */
struct slc_sort_memory {
    unsigned workers;
    uint64_t area_bytes; /* per worker; 0: does not fit */
};

/* `entries`: expected number, so that no more memory is mapped than they can fill; 0: unknown. */
struct slc_push_memory slc_push_memory_plan(const struct slc_builder_options *options,
                                            unsigned order,
                                            uint32_t buckets,
                                            uint64_t entries);

/* Whether pushing can continue with this number of buckets and this segment size of the spill
 * stream. */
bool slc_push_memory_suits(const struct slc_builder_options *options,
                           unsigned order,
                           uint32_t buckets,
                           uint64_t entries,
                           uint32_t segment_bytes);

/* The smallest memory_bytes that slc_builder_create accepts for this order, codec, block size and
 * workers. */
uint64_t slc_builder_memory_min(const struct slc_builder_options *options, unsigned order);

/* Bytes for counting pieces of fibers. */
uint64_t slc_build_fibers_bytes(const struct slc_builder_options *options, unsigned order);

/* Memory while entries are pushed, if all of it is filled. */
uint64_t slc_push_memory_bytes(const struct slc_builder_options *options,
                               unsigned order,
                               const struct slc_push_memory *plan);

/* Memory while the store is written, without the part of the spill stream in memory. */
uint64_t slc_sort_memory_bytes(const struct slc_builder_options *options,
                               const struct slc_sort_memory *plan);

/* Number of buckets for entries from which `sample` was drawn (slc_builder_sample). */
uint32_t slc_build_bucket_count(const struct slc_builder_options *options,
                                const struct slc_entries *sample,
                                uint64_t entries_expected);

/* Largest memory of a writer with this block size (0: the default), without its index. */
uint64_t slc_build_writer_bytes(uint64_t block_bytes);

/* Threads that sort: one more if they read spilled chunks, since one of them then waits for the
 * disk. */
unsigned slc_sort_workers(const struct slc_builder_options *options, bool spilled);

/* At most `workers`. `resident_bytes`: part of the spill stream still in memory. `area_limit`: no
 * area needs to be larger. */
struct slc_sort_memory slc_sort_memory_plan(const struct slc_builder_options *options,
                                            unsigned workers,
                                            uint64_t resident_bytes,
                                            uint64_t area_limit);

/* Memory for reading the spill file ahead of the sort. */
struct slc_ahead_memory {
    uint32_t buffers; /* 0: too little memory is left for a benefit */
    uint32_t buffer_bytes;
};

/* Divides the rest of the budget after `sort`, for chunks of at most `chunk_bytes`. */
struct slc_ahead_memory slc_ahead_memory_plan(const struct slc_builder_options *options,
                                              const struct slc_sort_memory *sort,
                                              uint64_t resident_bytes,
                                              uint32_t chunk_bytes);

#endif

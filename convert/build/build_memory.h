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
    /* Largest chunk. A chunk is a packed scatter buffer of at most 256 KiB, plus its runs. */
    SLC_BUILD_CHUNK_BYTES = 320 << 10,
    SLC_BUILD_FETCH_BYTES = SLC_BUILD_CHUNK_BYTES + SLC_SPILL_FETCH_EXTRA_BYTES,
    /* Largest segment of the spill stream; larger writes are no faster. */
    SLC_BUILD_SEGMENT_BYTES_MAX = 4 << 20,
    /* Smallest sort area. Smaller areas would split buckets of only a few thousand nonzeros. */
    SLC_BUILD_AREA_BYTES_MIN = 2 << 20,
    /* Keys and values of a tile whose nonzeros come from several buckets. */
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

/* `entries`: expected number of entries, which limits the memory that is mapped; 0: unknown. */
struct slc_push_memory slc_push_memory_plan(const struct slc_builder_options *options,
                                            unsigned order,
                                            uint32_t buckets,
                                            uint64_t entries);

/* True if a resumed push can use this number of buckets and this segment size of the spill stream.
 */
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

/* Largest memory in use while entries are pushed. */
uint64_t slc_push_memory_bytes(const struct slc_builder_options *options,
                               unsigned order,
                               const struct slc_push_memory *plan);

/* Memory in use while the store is written, except for the part of the spill stream in memory. */
uint64_t slc_sort_memory_bytes(const struct slc_builder_options *options,
                               const struct slc_sort_memory *plan);

/* Number of buckets for an input from which `sample` was drawn (slc_builder_sample). */
uint32_t slc_build_bucket_count(const struct slc_builder_options *options,
                                const struct slc_entries *sample,
                                uint64_t entries_expected);

/* Largest memory of a writer with this block size (0: the default), without its index. */
uint64_t slc_build_writer_bytes(uint64_t block_bytes);

/* Number of sorting threads: one more than `workers` if they read spilled chunks, because one
 * thread then usually waits for the disk. */
unsigned slc_sort_workers(const struct slc_builder_options *options, bool spilled);

/* Plans at most `workers` sorting threads. `resident_bytes`: part of the spill stream still in
 * memory. `area_limit`: largest useful area. */
struct slc_sort_memory slc_sort_memory_plan(const struct slc_builder_options *options,
                                            unsigned workers,
                                            uint64_t resident_bytes,
                                            uint64_t area_limit);

/* Memory for reading the spill file ahead of the sort. */
struct slc_ahead_memory {
    uint32_t buffers; /* 0: too little memory is left to be useful */
    uint32_t buffer_bytes;
};

/* Plans buffers for chunks of at most `chunk_bytes` in the memory that `sort` leaves of the budget.
 */
struct slc_ahead_memory slc_ahead_memory_plan(const struct slc_builder_options *options,
                                              const struct slc_sort_memory *sort,
                                              uint64_t resident_bytes,
                                              uint32_t chunk_bytes);

#endif

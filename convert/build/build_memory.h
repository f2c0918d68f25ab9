/* Divides the builder's memory. A build has two phases that do not overlap. The push phase needs
 * scatter buffers and memory for the newest segments of the spill stream. The write phase needs
 * sort areas, encoders and the writer. */
#ifndef SLC_CONVERT_BUILD_MEMORY_H
#define SLC_CONVERT_BUILD_MEMORY_H

#include "convert/build/build_types.h"
#include "convert/build/spill/scatter.h"

#include <stdint.h>

enum {
    /* Largest size of a chunk: a packed scatter buffer of at most 256 KiB, and its runs. */
    SLC_BUILD_CHUNK_BYTES = 320 << 10,
    SLC_BUILD_FETCH_BYTES = SLC_BUILD_CHUNK_BYTES + SLC_SPILL_FETCH_EXTRA_BYTES,
    /* Largest segment of the spill stream. Larger segments are not written faster. */
    SLC_BUILD_SEGMENT_BYTES_MAX = 4 << 20,
    /* Smallest sort area; with less, even buckets of a few thousand nonzeros would be split. */
    SLC_BUILD_AREA_BYTES_MIN = 2 << 20,
    /* Bytes for the keys and values of a tile whose nonzeros come from several buckets. */
    SLC_BUILD_STAGE_BYTES = SLC_TILE_NNZ * 24,
    /* Areas of at least this size use huge pages and are multiples of 2 MiB. */
    SLC_BUILD_HUGE_AREA_BYTES = 16 << 20
};

/* Memory of the push phase. shape.buckets may be smaller than the requested number. */
struct slc_push_memory {
    struct slc_scatter_shape shape;
    uint32_t segment_bytes;
    uint32_t segment_count;
};

/* Memory of the write phase. */
struct slc_sort_memory {
    unsigned workers;
    uint64_t area_bytes; /* sort area of one worker; 0: the budget is too small */
};

/* Plans the push phase with at most `buckets` buckets. `entries`: expected number of entries, which
 * limits the memory for the spill stream; 0: unknown. */
struct slc_push_memory slc_push_memory_plan(const struct slc_builder_options *options,
                                            unsigned order,
                                            uint32_t buckets,
                                            uint64_t entries);

/* Returns true if a resumed push can use these numbers of buckets and of bytes per segment. */
bool slc_push_memory_suits(const struct slc_builder_options *options,
                           unsigned order,
                           uint32_t buckets,
                           uint64_t entries,
                           uint32_t segment_bytes);

/* Returns the smallest memory_bytes that slc_builder_create accepts for this order, codec, block
 * size and number of workers. */
uint64_t slc_builder_memory_min(const struct slc_builder_options *options, unsigned order);

/* Returns the bytes for counting pieces of fibers (sort/fibers.h). */
uint64_t slc_build_fibers_bytes(const struct slc_builder_options *options, unsigned order);

/* Returns the peak memory in bytes while entries are pushed. */
uint64_t slc_push_memory_bytes(const struct slc_builder_options *options,
                               unsigned order,
                               const struct slc_push_memory *plan);

/* Returns the peak memory in bytes while the store is written, without segments of the spill stream
 * that are still in memory. */
uint64_t slc_sort_memory_bytes(const struct slc_builder_options *options,
                               const struct slc_sort_memory *plan);

/* Returns the number of buckets for an input from which `sample` was drawn (slc_builder_sample). */
uint32_t slc_build_bucket_count(const struct slc_builder_options *options,
                                const struct slc_entries *sample,
                                uint64_t entries_expected);

/* Returns the maximum memory in bytes of a writer with this block size (0: the default), without
 * its index. */
uint64_t slc_build_writer_bytes(uint64_t block_bytes);

/* Returns the number of sorting threads: options->workers, plus 1 if chunks were spilled, because
 * one thread then usually waits for the disk. */
unsigned slc_sort_workers(const struct slc_builder_options *options, bool spilled);

/* Plans at most `workers` sorting threads. `resident_bytes`: bytes of the spill stream that are
 * still in memory. `area_limit`: largest useful size of an area. */
struct slc_sort_memory slc_sort_memory_plan(const struct slc_builder_options *options,
                                            unsigned workers,
                                            uint64_t resident_bytes,
                                            uint64_t area_limit);

/* Memory for reading the spill file ahead of the sort. */
struct slc_ahead_memory {
    uint32_t buffers; /* 0: too little memory is left for useful buffers */
    uint32_t buffer_bytes;
};

/* Plans buffers for chunks of at most `chunk_bytes` in the budget that `sort` leaves unused. */
struct slc_ahead_memory slc_ahead_memory_plan(const struct slc_builder_options *options,
                                              const struct slc_sort_memory *sort,
                                              uint64_t resident_bytes,
                                              uint32_t chunk_bytes);

#endif

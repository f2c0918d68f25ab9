/*
 * How the builder's memory is divided. It has two phases that do not overlap: while input is
 * pushed, memory holds scatter buffers and the newest part of the spill stream; while the store is
 * written, sort areas, encoders and the writer.
 */
#ifndef SLC_CONVERT_BUILD_MEMORY_H
#define SLC_CONVERT_BUILD_MEMORY_H

#include "convert/build/build_types.h"
#include "convert/build/spill/scatter.h"

#include <stdint.h>

enum {
    /* No chunk is larger: what scatter buffers of at most 256 KiB pack to, runs included. */
    SLC_BUILD_CHUNK_BYTES = 320 << 10,
    SLC_BUILD_FETCH_BYTES = SLC_BUILD_CHUNK_BYTES + SLC_SPILL_FETCH_EXTRA_BYTES,
    SLC_BUILD_SEGMENT_BYTES_MAX = 4 << 20, /* of the spill stream: larger writes gain nothing */
    /* Less would split buckets of a few thousand nonzeros. */
    SLC_BUILD_AREA_BYTES_MIN = 2 << 20,
    /* A nonzero under assembly into a tile that spans buckets: key and value. */
    SLC_BUILD_STAGE_BYTES = SLC_TILE_NNZ * 24,
    /* Areas from here on are in huge pages, and so multiples of 2 MiB. */
    SLC_BUILD_HUGE_AREA_BYTES = 16 << 20
};

/* The phase of pushing. buckets may be fewer than asked. */
struct slc_push_memory {
    struct slc_scatter_shape shape;
    uint32_t segment_bytes;
    uint32_t segment_count;
};

/* The phase of writing. */
struct slc_sort_memory {
    unsigned workers;
    uint64_t area_bytes; /* per worker; 0: does not fit */
};

/* `entries`: how many are expected, so that no more is mapped than they can fill; 0: unknown. */
struct slc_push_memory slc_push_memory_plan(const struct slc_builder_options *options,
                                            unsigned order,
                                            uint32_t buckets,
                                            uint64_t entries);

/* Whether pushing can go on with so many buckets, and such segments of the spill stream. */
bool slc_push_memory_suits(const struct slc_builder_options *options,
                           unsigned order,
                           uint32_t buckets,
                           uint64_t entries,
                           uint32_t segment_bytes);

/* The smallest memory_bytes that slc_builder_create accepts for this order, codec, block size and
 * workers. */
uint64_t slc_builder_memory_min(const struct slc_builder_options *options, unsigned order);

/* Bytes that counting pieces of fibers takes. */
uint64_t slc_build_fibers_bytes(const struct slc_builder_options *options, unsigned order);

/* What is held while entries are pushed, if all of it is filled. */
uint64_t slc_push_memory_bytes(const struct slc_builder_options *options,
                               unsigned order,
                               const struct slc_push_memory *plan);

/* What is held while the store is written, beside what the spill stream keeps in memory. */
uint64_t slc_sort_memory_bytes(const struct slc_builder_options *options,
                               const struct slc_sort_memory *plan);

/* How many buckets entries go to of which `sample` is a sample (slc_builder_sample). */
uint32_t slc_build_buckets_wanted(const struct slc_builder_options *options,
                                  const struct slc_entries *sample,
                                  uint64_t entries_expected);

/* What a writer of blocks of that size (0: the default) takes at most, but for its index. */
uint64_t slc_build_writer_bytes(uint64_t block_bytes);

/* Threads that sort: one more where they read what was spilled, for one of them waits then. */
unsigned slc_sort_workers(const struct slc_builder_options *options, bool spilled);

/*
 * `workers` at most; `resident_bytes`: what the spill stream keeps in memory meanwhile;
 * `area_wanted`: no area needs to be larger.
 */
struct slc_sort_memory slc_sort_memory_plan(const struct slc_builder_options *options,
                                            unsigned workers,
                                            uint64_t resident_bytes,
                                            uint64_t area_wanted);

/* Reading the spill ahead of the sort. */
struct slc_ahead_memory {
    uint32_t buffers; /* 0: what is left is too little to gain anything */
    uint32_t buffer_bytes;
};

/* What `sort` leaves of the budget, for chunks of at most `chunk_bytes`. */
struct slc_ahead_memory slc_ahead_memory_plan(const struct slc_builder_options *options,
                                              const struct slc_sort_memory *sort,
                                              uint64_t resident_bytes,
                                              uint32_t chunk_bytes);

#endif

#include "convert/build/build_memory.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/bucket_sort.h"
#include "convert/build/sort/fibers.h"
#include "storage/block/writer.h"

#include <assert.h>

enum {
    MIB = 1 << 20,
    SEGMENTS_MAX = 1 << 20,
    /* Alignment of areas: one cache line, so that no two workers write to the same line. */
    AREA_ALIGN_BYTES = 64,
    SCATTER_BUFFER_BYTES_MIN = 4 << 10,
    /* Size of a scatter buffer if its chunks stay in memory. It is large enough to make the size of
     * a chunk's header and runs negligible. */
    MEMORY_BUFFER_BYTES = 32 << 10,
    /* Estimated bytes per entry in a chunk. Tensors converted from text need 6 to 14. */
    CHUNK_ENTRY_BYTES = 16,
    /* Allowances: for small objects (key tables, splitters, chains, the writer's index, paths), and
     * for the stack of each thread. */
    SMALL_OBJECTS_BYTES = 1 * MIB,
    STACK_BYTES = 128 << 10,
    /* Most entries per bucket with which the first distribution of the sort stays in the cache.
     * With smaller buckets, the push would lose as much time as the sort would save. */
    CACHE_BUCKET_ENTRIES = 256 << 10,
    /* With fewer buffers than this, a thread that reads ahead is not worthwhile. */
    AHEAD_BUFFERS_MIN = 4,
    /* Even a large bucket has fewer chunks than this, so more buffers would stay unused. */
    AHEAD_BUFFERS_MAX = 64
};

uint64_t slc_build_writer_bytes(uint64_t block_bytes)
{
    const uint64_t target = block_bytes == 0 ? SLC_DEFAULT_BLOCK_BYTES : block_bytes;

    /* A block grows by whole tiles. It exceeds the target by at most one tile, about 2.5 MiB. */
    return slc_max_u64(target, 3 * MIB) + 1 * MIB;
}

/* Returns the bytes of an encoder for the longest keys, because mode sizes are not known yet. */
static uint64_t encoder_bytes(enum slc_codec codec)
{
    static const uint64_t dims[] = {UINT64_C(1) << 62, UINT64_C(1) << 62, 16};
    struct slc_key_layout layout;
    enum slc_status status = slc_key_layout_init(&layout, 3, dims, NULL);

    assert(status == SLC_OK);
    (void)status;
    return slc_encoder_memory_bytes(&layout, codec);
}

uint64_t slc_build_fibers_bytes(const struct slc_builder_options *options, unsigned order)
{
    return options->fibers == SLC_FIBERS_AUTO ? options->workers * slc_fiber_counts_bytes(order)
                                              : 0;
}

/* Returns the bytes of the write phase with `workers` threads, without their sort areas. */
static uint64_t sort_fixed_bytes(const struct slc_builder_options *options, unsigned workers)
{
    uint64_t per_worker = encoder_bytes(options->codec) + SLC_BUILD_FETCH_BYTES + STACK_BYTES;

    return SMALL_OBJECTS_BYTES + slc_build_writer_bytes(options->block_bytes) +
           workers * per_worker + (workers + UINT64_C(1)) * SLC_BUILD_STAGE_BYTES;
}

/* Returns the memory for saving the state of a commit (builder_resume.c). */
static uint64_t
commit_bytes(const struct slc_builder_options *options, unsigned order, uint32_t buckets)
{
    uint64_t chain = (10 + 3 * SLC_CHAIN_MARKS) * UINT64_C(8);

    if (!options->resumable) {
        return 0;
    }
    /* Twice the size of the state, which is copied when it grows and when its header is added. */
    return 2 *
           ((UINT64_C(64) << 10) + slc_build_fibers_bytes(options, order) / options->workers / 2 +
            buckets * (chain + order * UINT64_C(8)));
}

static uint64_t
push_fixed_bytes(const struct slc_builder_options *options, unsigned order, uint32_t buckets)
{
    return SMALL_OBJECTS_BYTES + slc_build_fibers_bytes(options, order) +
           commit_bytes(options, order, buckets) + (uint64_t)options->workers * STACK_BYTES +
           /* While chains are converted to buckets, both exist at the same time. */
           buckets * (uint64_t)(sizeof(struct slc_chain) + sizeof(struct slc_bucket));
}

uint64_t slc_builder_memory_min(const struct slc_builder_options *options, unsigned order)
{
    uint64_t spill = (uint64_t)SLC_SPILL_SEGMENTS_MIN * SLC_BUILD_CHUNK_BYTES;
    uint64_t scatter = (uint64_t)options->workers * 3 * SCATTER_BUFFER_BYTES_MIN;
    uint64_t push = push_fixed_bytes(options, order, 1) + spill + 2 * scatter;
    uint64_t sort = sort_fixed_bytes(options, 1) + spill + SLC_BUILD_AREA_BYTES_MIN;

    return slc_max_u64(push, sort);
}

/* Returns true if this number of entries will probably stay in memory until they are sorted. Small
 * buckets and chunks then save cache misses; chunks on the disk must be large. */
static bool stays_in_memory(const struct slc_builder_options *options, uint64_t entries)
{
    return entries > 0 && entries <= options->memory_bytes / 2 / CHUNK_ENTRY_BYTES;
}

struct slc_push_memory slc_push_memory_plan(const struct slc_builder_options *options,
                                            unsigned order,
                                            uint32_t buckets,
                                            uint64_t entries)
{
    struct slc_push_memory plan;
    /* Upper bound for a packed entry: 24 bytes of row, 64 bytes of run and chunk header. */
    uint64_t entry_bytes = 24 + 64;
    uint64_t memory = options->memory_bytes;
    uint64_t buffer = stays_in_memory(options, entries) ? MEMORY_BUFFER_BYTES : UINT32_MAX;
    uint64_t rest, most, segment;

    for (;; buckets -= buckets / 8 + 1) {
        uint64_t fixed = push_fixed_bytes(options, order, buckets);
        uint64_t free_bytes = memory > fixed ? memory - fixed : 0;
        uint64_t count = (uint64_t)options->workers * buckets;
        uint64_t buffers = count * SCATTER_BUFFER_BYTES_MIN;

        /* Up to three quarters of the memory go to the scatter buffers. Chunks are read back one by
         * one, so large chunks save more time than more segments of the spill stream in memory
         * would. The stream still gets 1 MiB or more, because a budget has at least several MiB. */
        plan.shape = slc_scatter_fit(options->workers, buckets,
                                     slc_min_u64(free_bytes / 4 * 3, count * buffer + MIB));
        rest = free_bytes;
        if (buckets == 1 || (plan.shape.entries > 0 && buffers <= free_bytes / 2)) {
            break;
        }
    }
    rest -= plan.shape.entries > 0 ? slc_scatter_bytes(&plan.shape) : 0;
    if (entries > 0 && entries < UINT64_MAX / entry_bytes / 2) {
        uint64_t needed = entries * entry_bytes + UINT64_C(16) * SLC_BUILD_CHUNK_BYTES;

        rest = slc_min_u64(rest, needed);
    }
    /* The segments that stay in memory must leave enough memory for the sort, which needs more
     * memory if blocks are large. */
    most = sort_fixed_bytes(options, 1) + SLC_BUILD_AREA_BYTES_MIN;
    most = memory > most ? (memory - most) / SLC_SPILL_SEGMENTS_MIN : 0;
    segment = slc_min_u64(slc_min_u64(rest / 64, most), SLC_BUILD_SEGMENT_BYTES_MAX);
    segment &= ~(uint64_t)(SLC_PAGE_BYTES - 1);
    segment = slc_max_u64(segment, SLC_BUILD_CHUNK_BYTES);
    plan.segment_bytes = (uint32_t)segment;
    plan.segment_count = (uint32_t)slc_min_u64(rest / segment, SEGMENTS_MAX);
    return plan;
}

uint64_t slc_push_memory_bytes(const struct slc_builder_options *options,
                               unsigned order,
                               const struct slc_push_memory *plan)
{
    return push_fixed_bytes(options, order, plan->shape.buckets) + slc_scatter_bytes(&plan->shape) +
           (uint64_t)plan->segment_bytes * plan->segment_count;
}

uint64_t slc_sort_memory_bytes(const struct slc_builder_options *options,
                               const struct slc_sort_memory *plan)
{
    return sort_fixed_bytes(options, plan->workers) + plan->workers * plan->area_bytes;
}

bool slc_push_memory_suits(const struct slc_builder_options *options,
                           unsigned order,
                           uint32_t buckets,
                           uint64_t entries,
                           uint32_t segment_bytes)
{
    struct slc_push_memory plan = slc_push_memory_plan(options, order, buckets, entries);

    return plan.shape.buckets == buckets && (uint64_t)plan.segment_bytes * plan.segment_count >=
                                                (uint64_t)SLC_SPILL_SEGMENTS_MIN * segment_bytes;
}

unsigned slc_sort_workers(const struct slc_builder_options *options, bool spilled)
{
    return options->workers + (spilled ? 1 : 0);
}

struct slc_sort_memory slc_sort_memory_plan(const struct slc_builder_options *options,
                                            unsigned workers,
                                            uint64_t resident_bytes,
                                            uint64_t area_limit)
{
    struct slc_sort_memory plan = {0, 0};

    /* Round area_limit up to the alignment, or down if rounding up would overflow. */
    area_limit = area_limit > UINT64_MAX - AREA_ALIGN_BYTES
                     ? UINT64_MAX / AREA_ALIGN_BYTES * AREA_ALIGN_BYTES
                     : slc_div_up_u64(area_limit, AREA_ALIGN_BYTES) * AREA_ALIGN_BYTES;
    /* Use fewer workers if each area would otherwise be too small. */
    for (; workers >= 1; workers--) {
        uint64_t taken = sort_fixed_bytes(options, workers) + resident_bytes;
        uint64_t area =
            options->memory_bytes > taken ? (options->memory_bytes - taken) / workers : 0;
        uint64_t worth = slc_min_u64(area_limit, 2 * SLC_BUILD_AREA_BYTES_MIN);

        /* Areas are consecutive, and each area begins with records, which need this alignment. */
        area -= area % AREA_ALIGN_BYTES;

        worth = slc_max_u64(workers > 1 ? worth : 0, SLC_BUILD_AREA_BYTES_MIN);
        if (area >= worth) {
            plan.workers = workers;
            plan.area_bytes = slc_min_u64(area, slc_max_u64(area_limit, SLC_BUILD_AREA_BYTES_MIN));
            break;
        }
    }
    if (plan.area_bytes >= SLC_BUILD_HUGE_AREA_BYTES) {
        uint64_t rounded = slc_buffer_footprint(plan.area_bytes, SLC_PAGES_HUGE);

        /* Round up to whole huge pages if the areas then fit the budget, else round down. */
        if (plan.workers * rounded + sort_fixed_bytes(options, plan.workers) + resident_bytes >
            options->memory_bytes) {
            rounded -= slc_buffer_footprint(1, SLC_PAGES_HUGE);
        }
        plan.area_bytes = rounded;
    }
    return plan;
}

struct slc_ahead_memory slc_ahead_memory_plan(const struct slc_builder_options *options,
                                              const struct slc_sort_memory *sort,
                                              uint64_t resident_bytes,
                                              uint32_t chunk_bytes)
{
    struct slc_ahead_memory plan = {0, 0};
    uint64_t taken = sort_fixed_bytes(options, sort->workers) + sort->workers * sort->area_bytes +
                     resident_bytes + STACK_BYTES;
    uint64_t rest = options->memory_bytes > taken ? options->memory_bytes - taken : 0;
    uint64_t bytes =
        slc_div_up_u64(chunk_bytes, SLC_PAGE_BYTES) * SLC_PAGE_BYTES + SLC_SPILL_FETCH_EXTRA_BYTES;

    if (rest / bytes >= AHEAD_BUFFERS_MIN) {
        plan.buffers = (uint32_t)slc_min_u64(rest / bytes, AHEAD_BUFFERS_MAX);
        plan.buffer_bytes = (uint32_t)bytes;
    }
    return plan;
}

/* Chooses the number of buckets so that an average bucket fills about six tenths of a sort area;
 * buckets differ in size because the splitters come from a sample. Large inputs get at least four
 * buckets per worker. There is at most one bucket per eight sampled entries, plus one. */
uint32_t slc_build_bucket_count(const struct slc_builder_options *options,
                                const struct slc_entries *sample,
                                uint64_t entries_expected)
{
    uint64_t resident = (uint64_t)SLC_SPILL_SEGMENTS_MIN * SLC_BUILD_CHUNK_BYTES * 4;
    bool spilled = !stays_in_memory(options, entries_expected);
    struct slc_sort_memory plan =
        slc_sort_memory_plan(options, slc_sort_workers(options, spilled), resident, UINT64_MAX);
    uint64_t area = slc_max_u64(plan.area_bytes, SLC_BUILD_AREA_BYTES_MIN);
    /* Number of buckets if the number of entries is unknown. A bucket fills about 0.6 of a sort
     * area, so 256 buckets suffice for an input of about 150 sort areas. */
    uint64_t buckets = 256;
    unsigned bits = 0;

    for (unsigned mode = 0; mode < sample->order; mode++) {
        uint64_t largest = 0;

        for (uint32_t i = 0; i < sample->count; i++) {
            largest = slc_max_u64(largest, sample->coords[mode][i]);
        }
        bits += slc_bits_for_length(largest == UINT64_MAX ? largest : largest + 1);
    }
    if (entries_expected > 0) {
        /* Bytes of a sort area per entry: the record, its copy, and its part of a run. */
        uint64_t each = bits > 62 ? 50 : 34;

        buckets = entries_expected / (area / each * 6 / 10 + 1) + 1;
        if (!spilled) {
            buckets = slc_max_u64(buckets, entries_expected / CACHE_BUCKET_ENTRIES);
        }
        if (entries_expected >= UINT64_C(16) * SLC_TILE_NNZ) {
            buckets = slc_max_u64(buckets, UINT64_C(4) * options->workers);
        }
    }
    buckets = slc_min_u64(buckets, slc_min_u64(sample->count / 8 + 1, SLC_BUCKETS_MAX));
    return slc_push_memory_plan(options, sample->order, (uint32_t)buckets, 0).shape.buckets;
}

/* Chooses the shapes of best and worst cases and generates them. */
#include "tools/bench/roofline/roofline_bound.h"

#include "base/memory/checked.h"
#include "convert/build/sort/fibers.h"
#include "convert/generate/full_box.h"
#include "tools/bench/mttkrp/mttkrp_model.h"
#include "tools/bench/product/fiber_count.h"

#include <math.h>

enum {
    /* bytes per nonzero of a replica, without offsets: value, share of a fiber run */
    COPY_BYTES = 16,
    STORE_BYTES = 24, /* bytes per nonzero of a store: a key of at most 128 bits and a value */
    BLOCK_BYTES = 4 << 20
};

/* Returns the bytes of memory per nonzero of the worst case: factor rows, an output row and its
 * private copies (one per thread), replicas (counted twice, because sorting needs the same amount
 * again), and the store. */
static uint64_t
worst_bytes_per_nnz(unsigned order, enum slc_value_type precision, uint32_t rank, unsigned threads)
{
    const uint64_t row_bytes = bench_model_row_bytes(precision, rank);
    const uint64_t sums_bytes = bench_model_row_bytes(SLC_F64, rank);
    const uint64_t copy_bytes = COPY_BYTES + 4 * (uint64_t)order;

    return order * row_bytes + (1 + (uint64_t)threads) * sums_bytes + 2 * order * copy_bytes +
           STORE_BYTES;
}

void roofline_bound_init(struct roofline_bound *bound,
                         const struct slc_manifest *manifest,
                         enum slc_value_type precision,
                         uint32_t rank,
                         unsigned threads,
                         uint64_t memory_bytes)
{
    const uint64_t each = worst_bytes_per_nnz(manifest->order, precision, rank, threads);
    const unsigned key_bits = SLC_MAX_KEY_BITS / manifest->order;

    *bound = (struct roofline_bound){.order = manifest->order,
                                     .nnz = slc_min_u64(manifest->nnz, memory_bytes / 2 / each),
                                     .value_type = manifest->value_type,
                                     .threads = threads,
                                     .memory_bytes = memory_bytes};
    if (key_bits < 64) {
        bound->nnz = slc_min_u64(bound->nnz, UINT64_C(1) << key_bits);
    }
}

/* The places of dense slices and fibers are this many times as many per mode as there are slices or
 * fibers, so that these are scattered. */
#define SCATTER UINT64_C(4)

/* The least length of the fibers of dense slices, unless it exceeds the square root of nnz. With
 * such fibers, the work per fiber is small next to the work per nonzero, and up to rank 16 the rows
 * of a slice still fit in a first-level cache of 48 KiB. */
#define FIBER_LENGTH UINT64_C(256)

/* Sets the sides of a full box for MTTKRPs of mode `mode`: equal, except that its fibers in the
 * last other mode may be longer. */
static void set_slice_sides(const struct roofline_bound *bound,
                            unsigned mode,
                            const uint64_t *dims,
                            uint64_t *sides)
{
    slc_full_box_sides(bound->order, dims, bound->nnz, 0, sides);
    if (bound->order > 1) {
        const unsigned last = fiber_count_mode(bound->order, mode);
        const uint64_t root = (uint64_t)sqrt((double)bound->nnz);
        const uint64_t length = slc_max_u64(sides[last], slc_min_u64(root, FIBER_LENGTH));

        slc_full_box_sides(bound->order - 1, dims, slc_div_up_u64(bound->nnz, length), 0, sides);
        /* The other modes have these sides, in any order. */
        sides[bound->order - 1] = sides[last];
        sides[last] = length;
    }
}

/* Sets the shape of a best case: that of a full box (full_box.h), with more indices in the modes of
 * the places. Dense fibers have the length of the box that touches the fewest rows in a TTM, the
 * square root of nnz. */
static void set_best(const struct roofline_bound *bound,
                     const struct roofline_best *best,
                     struct slc_generate_options *wanted)
{
    const bool fibers = best->distribution == SLC_DIST_DENSE_FIBERS;
    uint64_t sides[SLC_MAX_ORDER];

    if (fibers) {
        slc_full_box_sides(bound->order, wanted->dims, bound->nnz, best->mode + 1, sides);
    } else {
        set_slice_sides(bound, best->mode, wanted->dims, sides);
    }
    wanted->distribution = best->distribution;
    wanted->mode = best->mode + 1;
    /* Keep the dense fibers together, or those of the slices that are longest. The automatic
     * choice, from a sample, does not find this mode. */
    wanted->fibers = SLC_FIBERS_GIVEN;
    wanted->run = (struct slc_fiber_run){.bits = SLC_FIBER_BITS,
                                         .mode = fibers || bound->order == 1
                                                     ? best->mode
                                                     : fiber_count_mode(bound->order, best->mode)};
    for (unsigned n = 0; n < bound->order; n++) {
        const bool placed = (n == best->mode) != fibers && bound->order > 1;

        wanted->dims[n] = placed ? SCATTER * sides[n] : sides[n];
    }
}

enum slc_status roofline_bound_make(const struct roofline_bound *bound,
                                    const struct roofline_best *best,
                                    const char *path,
                                    struct slc_error *err)
{
    struct slc_generate_options wanted = {.output = path,
                                          .order = bound->order,
                                          .nnz = bound->nnz,
                                          .distribution = SLC_DIST_WORST,
                                          /* Rank 0 makes integers, which f32 stores exactly. f32
                                             would round the values of a model of rank 1. */
                                          .rank = bound->value_type == SLC_F32 ? 0 : 1,
                                          .codec = SLC_CODEC_PACKED,
                                          .fibers = SLC_FIBERS_NONE,
                                          .relabel = SLC_RELABEL_NONE,
                                          .block_bytes = BLOCK_BYTES,
                                          .memory_bytes = bound->memory_bytes,
                                          .threads = bound->threads};
    struct slc_generate_report report;

    for (unsigned n = 0; n < bound->order; n++) {
        wanted.dims[n] = bound->nnz;
    }
    if (best != NULL) {
        set_best(bound, best, &wanted);
    }
    return slc_generate(&wanted, &report, err);
}

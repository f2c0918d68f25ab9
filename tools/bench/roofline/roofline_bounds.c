/* Best and worst cases; see roofline.h. */
#include "tools/bench/roofline/roofline.h"

#include "base/memory/checked.h"
#include "convert/build/sort/fibers.h"
#include "convert/generate/full_box.h"
#include "convert/generate/generate.h"
#include "tools/bench/mttkrp/mttkrp_model.h"

enum {
    COPY_BYTES = 16,  /* a nonzero of a copy: its value, what its runs cost; offsets come on top */
    STORE_BYTES = 24, /* a nonzero of a store: a key of 128 bits and a value, encoded or not */
    BLOCK_BYTES = 4 << 20
};

/* What a nonzero of the worst case takes: its rows, an output and a private copy of that for each
   thread, copies per mode (and the same again while they are sorted), the store itself. */
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

enum slc_status roofline_bound_make(const struct roofline_bound *bound,
                                    enum roofline_case which,
                                    const char *path,
                                    struct slc_error *err)
{
    struct slc_generate_options options = {.output = path,
                                           .order = bound->order,
                                           .nnz = bound->nnz,
                                           .distribution = which == ROOFLINE_BEST ? SLC_DIST_BEST
                                                                                  : SLC_DIST_WORST,
                                           /* Integers fit f32; a model of one column does not. */
                                           .rank = bound->value_type == SLC_F32 ? 0 : 1,
                                           .codec = SLC_CODEC_PACKED,
                                           .fibers = SLC_FIBERS_NONE,
                                           .relabel = SLC_RELABEL_NONE,
                                           .block_bytes = BLOCK_BYTES,
                                           .memory_bytes = bound->memory_bytes,
                                           .threads = bound->threads};
    struct slc_generate_report report;

    for (unsigned n = 0; n < bound->order; n++) {
        options.dims[n] = bound->nnz;
    }
    if (which == ROOFLINE_BEST) {
        uint64_t sides[SLC_MAX_ORDER];

        /* No rows beside the box: they would only take room. */
        slc_full_box_sides(bound->order, options.dims, bound->nnz, 0, sides);
        /* The longest fibers are kept together, which a sample of a full box does not show. */
        options.fibers = SLC_FIBERS_GIVEN;
        options.run = (struct slc_fiber_run){.bits = SLC_FIBER_BITS};
        for (unsigned n = 0; n < bound->order; n++) {
            options.dims[n] = sides[n];
            options.run.mode = sides[n] > sides[options.run.mode] ? n : options.run.mode;
        }
    }
    return slc_generate(&options, &report, err);
}

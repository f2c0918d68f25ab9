/* Multiplies tiles whose nonzeros are in runs of fibers of one mode. The coordinates that a run
 * shares are decoded once, and the product of their factor rows is computed once (SPLATT's trees
 * save the same work; [Smith2015] section III).
 *
 * Measured times with runs and, in parentheses, without runs, for one thread, R = 16 and all modes:
 * flights-4d 23.0 ms (54.0 ms, 63 nonzeros per run), cmudict 9.5 ms (16.8 ms, 24 per run), gitlog
 * 10.8 ms (18.9 ms, 5 per run). */
#include "base/memory/checked.h"
#include "cpu/mttkrp/mttkrp.h"

#include <string.h>

enum {
    /* Minimum mean length of runs for which several partial sums save more time than adding them
     * up takes. */
    LONG_RUN = 16,
    /* Number of nonzeros per decoded chunk. A nonzero has one offset and one value, so more
     * nonzeros fit in the L1 cache than with an offset for each mode. With larger chunks, the fixed
     * cost of decoding a chunk is a smaller part of the time (7 to 9 % of decoding on flights-4d,
     * gitlog and cmudict). */
    FIBERS_CHUNK_NNZ = 2 * SLC_CHUNK_NNZ
};

/* Returns true if runs are worthwhile. A run costs a mispredicted branch at its end, about 20
 * cycles. For each nonzero except one, a run saves loading the rows of the other modes, about 2.5
 * cycles per 128 bytes of a row. At R = 16, runs are therefore worthwhile from 6 nonzeros per run
 * with three modes, from 4 with four modes, and from 3 with five modes. Measured with and without
 * runs: 2.8 ms and 3.0 ms at 3.2 nonzeros per run (three modes, kg-fb15k-237), 46 ms and 55 ms
 * at 2.9 (five modes, letters of text). */
static bool are_runs_worthwhile(const struct slc_cpu_backend *cpu,
                                const struct slc_fiber_view *fibers)
{
    const uint64_t row_units = slc_max_u64(cpu->stride / 128, 1);
    const uint64_t saved = row_units * (5 * (uint64_t)(cpu->job.order - 1) - 2);
    const uint64_t cost = 40;

    return (fibers->nnz - fibers->runs) * saved >= fibers->runs * cost;
}

bool slc_mttkrp_long_runs(uint32_t nnz, uint32_t runs)
{
    return nnz / LONG_RUN >= runs;
}

static void span_init(const struct slc_cpu_backend *cpu,
                      const struct slc_tile_view *tile,
                      const struct slc_fiber_view *fibers,
                      unsigned char *output,
                      struct slc_columns columns,
                      struct slc_fiber_span *span)
{
    memset(span, 0, sizeof *span);
    span->runs = fibers->runs;
    span->prefetch = cpu->prefetch;
    span->long_runs = slc_mttkrp_long_runs(fibers->nnz, fibers->runs);
    span->stride = cpu->stride;
    span->row_bytes = columns.bytes;
    span->begin = fibers->begin;
    span->values = fibers->values;
    span->run_offset = fibers->offset[fibers->mode];
    span->rows = fibers->offset[cpu->job.mode];
    span->output = slc_columns_of(cpu, columns, output);
    for (unsigned m = 0; m < cpu->job.order; m++) {
        if (m == cpu->job.mode) {
            continue;
        }
        const unsigned char *rows = cpu->job.factors[m]->buffer.data;
        rows += tile->corner[m] * cpu->stride + columns.begin;
        if (m == fibers->mode) {
            span->run_factor = rows;
        } else {
            span->offset[span->factor_count] = fibers->offset[m];
            span->factor[span->factor_count++] = rows;
        }
    }
}

void slc_mttkrp_accumulate_fibers(const struct slc_cpu_backend *cpu,
                                  const struct slc_fiber_span *span)
{
    slc_panels_add_fibers(cpu->kernels, cpu->type, span);
}

void slc_mttkrp_accumulate_groups(const struct slc_cpu_backend *cpu,
                                  const struct slc_group_span *span)
{
    const unsigned class =
        (span->varying < SLC_VARYING_CLASSES ? span->varying : SLC_VARYING_CLASSES) - 1;
    slc_group_fn *const *widths =
        cpu->type == SLC_F32 ? cpu->kernels->groups->f32[class] : cpu->kernels->groups->f64[class];

    for (uint64_t column = 0; column < span->stride;) {
        const unsigned width = slc_panel_log2(cpu->kernels, cpu->type, span->stride - column);

        widths[width](span, column);
        column += UINT64_C(1) << width;
    }
}

enum slc_status slc_mttkrp_add_fibers(const struct slc_cpu_backend *cpu,
                                      struct slc_tile_view *tile,
                                      unsigned char *output,
                                      struct slc_columns columns,
                                      struct slc_error *err)
{
    struct slc_fiber_view fibers;
    struct slc_fiber_span span;
    enum slc_status status;

    do {
        status = tile->next_fibers(tile, FIBERS_CHUNK_NNZ, &fibers, err);
        if (status != SLC_OK || fibers.nnz == 0) {
            return status;
        }
        span_init(cpu, tile, &fibers, output, columns, &span);
        slc_mttkrp_accumulate_fibers(cpu, &span);
    } while (are_runs_worthwhile(cpu, &fibers));
    return SLC_OK;
}

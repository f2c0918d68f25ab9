#include "cpu/fiber/fiber_dots.h"

#include "cpu/kernel/kernels.h"
#include "cpu/mttkrp/mttkrp.h"

#include <assert.h>
#include <string.h>

void slc_fiber_dots(const struct slc_fiber_view *fibers, const double *vector, double *sums)
{
    uint32_t rows[SLC_CHUNK_NNZ];
    const struct slc_fiber_span span = {.runs = fibers->runs,
                                        .long_runs =
                                            slc_mttkrp_long_runs(fibers->nnz, fibers->runs),
                                        .stride = sizeof *vector,
                                        .row_bytes = sizeof *vector,
                                        .begin = fibers->begin,
                                        .values = fibers->values,
                                        .run_offset = fibers->offset[fibers->mode],
                                        .run_factor = (const unsigned char *)vector,
                                        .rows = rows,
                                        .output = (unsigned char *)sums};

    assert(fibers->runs <= SLC_CHUNK_NNZ);
    for (uint32_t r = 0; r < fibers->runs; r++) {
        rows[r] = r;
    }
    memset(sums, 0, fibers->runs * sizeof *sums);
    slc_panels_add_fibers(slc_kernels(), SLC_F64, &span);
}

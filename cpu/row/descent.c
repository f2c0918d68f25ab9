#include "cpu/row/descent.h"

#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "cpu/kernel/dense_kernels.h"
#include "cpu/kernel/kernels.h"

#include <math.h>
#include <string.h>

struct descent {
    struct slc_descent_options options;
    const struct slc_dense_kernels *kernels;
    struct slc_descent problem; /* the problem of the current mode */
    double *gram, *inverse;
    /* Per worker: rows of M and X that do not fill a block, and the scratch of the kernel. */
    double *scratch;
    uint64_t scratch_elements;
    struct slc_buffer buffer;
};

/* Return numbers of elements: of V and its inverses, and of the scratch of a worker. */
static uint64_t matrix_elements(uint32_t rank)
{
    const uint64_t width = slc_row_width(rank);

    return width * width + width;
}

static uint64_t worker_elements(uint32_t rank)
{
    return 4 * (uint64_t)slc_row_width(rank) * SLC_BLOCK_ROWS;
}

static uint64_t buffer_bytes(unsigned workers, uint32_t rank)
{
    return (matrix_elements(rank) + workers * worker_elements(rank)) * sizeof(double);
}

uint64_t slc_descent_memory_bytes(unsigned workers, uint32_t rank)
{
    return slc_buffer_footprint(buffer_bytes(workers, rank), SLC_PAGES_SMALL) +
           sizeof(struct descent);
}

/* Sets the matrix V of a mode, with the ridge on its diagonal, and the constraints. */
static enum slc_status
begin_mode(void *context, const struct slc_row_mode *mode, struct slc_error *err)
{
    struct descent *descent = context;
    const struct slc_row_terms *terms = &descent->options.terms[mode->mode];
    const uint32_t rank = mode->rank;
    const uint64_t width = slc_row_width(rank);

    memset(descent->gram, 0, matrix_elements(rank) * sizeof *descent->gram);
    for (uint64_t r = 0; r < rank; r++) {
        double *row = descent->gram + r * width;

        memcpy(row, mode->gram + r * rank, rank * sizeof *row);
        row[r] += terms->ridge;
        for (uint32_t s = 0; s < rank; s++) {
            if (!isfinite(row[s])) {
                return slc_fail(err, SLC_ERR_NUMERIC,
                                "the %u x %u Gram matrix contains a NaN or an infinity: the "
                                "factors have overflowed, or their initial values were not finite",
                                rank, rank);
            }
        }
        descent->inverse[r] = isnormal(1.0 / row[r]) && row[r] > 0.0 ? 1.0 / row[r] : 0.0;
    }
    descent->problem = (struct slc_descent){.rank = rank,
                                            .width = (uint32_t)width,
                                            .sweeps = descent->options.sweeps,
                                            .l1 = terms->l1,
                                            .low = terms->bounded ? terms->low : -INFINITY,
                                            .high = terms->bounded ? terms->high : INFINITY,
                                            .tolerance = descent->options.tolerance,
                                            .gram = descent->gram,
                                            .inverse = descent->inverse};
    if (terms->nonnegative) {
        descent->problem.low = fmax(descent->problem.low, 0.0);
    }
    return SLC_OK;
}

/* Solves up to SLC_BLOCK_ROWS rows. Rows that do not fill an aligned block are copied. */
static void solve_block(const struct descent *descent,
                        double *scratch,
                        uint64_t count,
                        uint32_t pitch,
                        const double *mttkrp,
                        double *rows)
{
    const uint64_t width = descent->problem.width;
    const uint64_t block = width * SLC_BLOCK_ROWS;
    const uint64_t used = descent->problem.rank * sizeof *rows;
    double *m = scratch + 2 * block;
    double *x = scratch + 3 * block;

    if (count == SLC_BLOCK_ROWS && pitch == width &&
        ((uintptr_t)mttkrp | (uintptr_t)rows) % 64 == 0) {
        descent->kernels->descend(&descent->problem, mttkrp, rows, scratch);
        return;
    }
    memset(m, 0, 2 * block * sizeof *m);
    for (uint64_t i = 0; i < count; i++) {
        memcpy(m + i * width, mttkrp + i * pitch, used);
        memcpy(x + i * width, rows + i * pitch, used);
    }
    descent->kernels->descend(&descent->problem, m, x, scratch);
    for (uint64_t i = 0; i < count; i++) {
        memcpy(rows + i * pitch, x + i * width, used);
    }
}

static enum slc_status solve_rows(void *context,
                                  unsigned worker,
                                  uint64_t first,
                                  uint64_t count,
                                  uint32_t pitch,
                                  const double *mttkrp,
                                  double *rows,
                                  struct slc_error *err)
{
    const struct descent *descent = context;
    double *scratch = descent->scratch + worker * descent->scratch_elements;

    (void)first;
    (void)err;
    for (uint64_t i = 0; i < count; i += SLC_BLOCK_ROWS) {
        solve_block(descent, scratch, slc_min_u64(count - i, SLC_BLOCK_ROWS), pitch,
                    mttkrp + i * pitch, rows + i * pitch);
    }
    return SLC_OK;
}

enum slc_status slc_descent_create(unsigned workers,
                                   uint32_t rank,
                                   const struct slc_descent_options *options,
                                   struct slc_row_solver *solver,
                                   struct slc_error *err)
{
    struct descent *descent = slc_calloc(1, sizeof *descent);

    *solver = (struct slc_row_solver){.name = "hals",
                                      .input = SLC_ROW_MTTKRP,
                                      .context = descent,
                                      .begin = begin_mode,
                                      .solve = solve_rows};
    SLC_TRY(slc_check_memory(descent != NULL, err, "for the solver of rows"));
    SLC_TRY(slc_buffer_create(&descent->buffer, buffer_bytes(workers, rank), SLC_PAGES_SMALL, err));
    descent->options = *options;
    descent->kernels = slc_kernels()->dense;
    descent->gram = descent->buffer.data;
    descent->inverse = descent->gram + (uint64_t)slc_row_width(rank) * slc_row_width(rank);
    descent->scratch = descent->gram + matrix_elements(rank);
    descent->scratch_elements = worker_elements(rank);
    return SLC_OK;
}

void slc_descent_destroy(struct slc_row_solver *solver)
{
    struct descent *descent = solver->context;

    if (descent != NULL) {
        slc_buffer_destroy(&descent->buffer);
        slc_free(descent);
    }
    *solver = (struct slc_row_solver){.name = NULL};
}

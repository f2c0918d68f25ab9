#include "cpu/row/admm.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "cpu/kernel/dense_kernels.h"

#include <math.h>
#include <string.h>

/* Blocks of a worker. */
enum { BLOCK_M, BLOCK_START, BLOCK_ROW, BLOCK_DUAL, BLOCK_STEP, BLOCK_NEXT, BLOCKS };

struct admm {
    struct slc_admm_options options;
    struct slc_row_terms terms; /* terms of the current mode */
    struct slc_solver system;   /* V + (ridge + rho) I */
    uint32_t rank, width;
    double rho;
    double *gram; /* R x R: V + ridge I; rho I is added during the factorization */
    double *ones;
    double *scratch;
    uint64_t block_elements;
    struct slc_buffer buffer;
};

static uint64_t matrix_elements(uint32_t rank)
{
    const uint64_t width = slc_row_width(rank);

    return width * width + width;
}

static uint64_t buffer_bytes(unsigned workers, uint32_t rank)
{
    return (matrix_elements(rank) +
            (uint64_t)workers * BLOCKS * slc_row_width(rank) * SLC_BLOCK_ROWS) *
           sizeof(double);
}

uint64_t slc_admm_memory_bytes(unsigned workers, uint32_t rank)
{
    return slc_buffer_footprint(buffer_bytes(workers, rank), SLC_PAGES_SMALL) +
           slc_solver_memory_bytes(rank) + sizeof(struct admm);
}

static enum slc_status
begin_mode(void *context, const struct slc_row_mode *mode, struct slc_error *err)
{
    struct admm *admm = context;
    const uint64_t rank = mode->rank;
    double trace = 0.0;

    admm->terms = admm->options.terms[mode->mode];
    memcpy(admm->gram, mode->gram, rank * rank * sizeof *admm->gram);
    for (uint64_t r = 0; r < rank; r++) {
        admm->gram[r * rank + r] += admm->terms.ridge;
        trace += admm->gram[r * rank + r];
    }
    admm->rho = trace > 0.0 ? trace / (double)rank : 1.0;
    for (uint64_t r = 0; r < rank; r++) {
        admm->gram[r * rank + r] += admm->rho;
    }
    SLC_TRY(slc_dense_factorize(admm->options.dense, admm->gram, admm->ones, admm->ones,
                                &admm->system, err));
    for (uint64_t r = 0; r < rank; r++) {
        admm->gram[r * rank + r] -= admm->rho;
    }
    return SLC_OK;
}

/* Returns the product of the matrix V + ridge I and a row, element r. */
static double product(const struct admm *admm, const double *row, uint32_t r)
{
    const double *v = admm->gram + (uint64_t)r * admm->rank;
    double sum = 0.0;

    for (uint32_t s = 0; s < admm->rank; s++) {
        sum += v[s] * row[s];
    }
    return sum;
}

static double objective(const struct admm *admm, const double *m, const double *row)
{
    double sum = 0.0;

    for (uint32_t r = 0; r < admm->rank; r++) {
        sum += row[r] * (product(admm, row, r) / 2 - m[r]) + admm->terms.l1 * fabs(row[r]);
    }
    return sum;
}

/* Makes the second half of a step of a row; `step` is (m + rho (row + dual)) (V + rho I)^-1:
 * updates the row and its dual variables. `next` is scratch. Returns true if the row is complete.
 */
static bool
finish_step(const struct admm *admm, const double *step, double *row, double *dual, double *next)
{
    double primal = 0.0, moved = 0.0, size = 0.0, dual_size = 0.0;

    for (uint32_t r = 0; r < admm->rank; r++) {
        next[r] = step[r] - dual[r];
    }
    slc_row_terms_apply(&admm->terms, admm->rank, admm->terms.l1 / admm->rho, next);
    for (uint32_t r = 0; r < admm->rank; r++) {
        dual[r] += next[r] - step[r];
        primal += (next[r] - step[r]) * (next[r] - step[r]);
        moved += (next[r] - row[r]) * (next[r] - row[r]);
        size += next[r] * next[r];
        dual_size += dual[r] * dual[r];
        row[r] = next[r];
    }
    return primal <= admm->options.tolerance * size && moved <= admm->options.tolerance * dual_size;
}

/* Starts a block: moves its rows within the constraints and sets their dual variables. */
static void
start_block(const struct admm *admm, const double *m, double *start, double *row, double *dual)
{
    for (uint32_t i = 0; i < SLC_BLOCK_ROWS; i++) {
        const uint64_t at = (uint64_t)i * admm->width;

        slc_row_terms_apply(&admm->terms, admm->rank, 0.0, start + at);
        for (uint32_t r = 0; r < admm->rank; r++) {
            row[at + r] = start[at + r];
            dual[at + r] = (product(admm, start + at, r) - m[at + r]) / admm->rho;
        }
    }
}

static void solve_block(const struct admm *admm, double *blocks, uint32_t count)
{
    const uint64_t size = admm->block_elements;
    const double *m = blocks + BLOCK_M * size;
    double *start = blocks + BLOCK_START * size, *row = blocks + BLOCK_ROW * size;
    double *dual = blocks + BLOCK_DUAL * size, *step = blocks + BLOCK_STEP * size;
    double *next = blocks + BLOCK_NEXT * size;
    bool done[SLC_BLOCK_ROWS] = {false};
    uint32_t left = count;

    start_block(admm, m, start, row, dual);
    for (unsigned k = 0; k < admm->options.steps && left > 0; k++) {
        for (uint64_t i = 0; i < size; i++) {
            step[i] = m[i] + admm->rho * (row[i] + dual[i]);
        }
        slc_dense_solve_block(&admm->system, step, step);
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t at = (uint64_t)i * admm->width;

            if (!done[i] && finish_step(admm, step + at, row + at, dual + at, next)) {
                done[i] = true;
                left--;
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t at = (uint64_t)i * admm->width;

        /* restore the start of the row, also if the new objective is not finite */
        if (!(objective(admm, m + at, row + at) <= objective(admm, m + at, start + at))) {
            memcpy(row + at, start + at, admm->rank * sizeof *row);
        }
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
    const struct admm *admm = context;
    double *blocks = admm->scratch + (uint64_t)worker * BLOCKS * admm->block_elements;
    const uint64_t used = admm->rank * sizeof *rows;

    (void)first;
    (void)err;
    for (uint64_t i = 0, some; i < count; i += some) {
        some = slc_min_u64(count - i, SLC_BLOCK_ROWS);
        memset(blocks, 0, BLOCKS * admm->block_elements * sizeof *blocks);
        for (uint64_t k = 0; k < some; k++) {
            memcpy(blocks + BLOCK_M * admm->block_elements + k * admm->width,
                   mttkrp + (i + k) * pitch, used);
            memcpy(blocks + BLOCK_START * admm->block_elements + k * admm->width,
                   rows + (i + k) * pitch, used);
        }
        solve_block(admm, blocks, (uint32_t)some);
        for (uint64_t k = 0; k < some; k++) {
            memcpy(rows + (i + k) * pitch,
                   blocks + BLOCK_ROW * admm->block_elements + k * admm->width, used);
        }
    }
    return SLC_OK;
}

enum slc_status slc_admm_create(unsigned workers,
                                uint32_t rank,
                                const struct slc_admm_options *options,
                                struct slc_row_solver *solver,
                                struct slc_error *err)
{
    struct admm *admm = slc_calloc(1, sizeof *admm);

    *solver = (struct slc_row_solver){.name = "admm",
                                      .input = SLC_ROW_MTTKRP,
                                      .context = admm,
                                      .begin = begin_mode,
                                      .solve = solve_rows};
    SLC_TRY(slc_check_memory(admm != NULL, err, "for the solver of rows"));
    SLC_TRY(slc_solver_create(&admm->system, rank, err));
    SLC_TRY(slc_buffer_create(&admm->buffer, buffer_bytes(workers, rank), SLC_PAGES_SMALL, err));
    admm->options = *options;
    admm->rank = rank;
    admm->width = slc_row_width(rank);
    admm->gram = admm->buffer.data;
    admm->ones = admm->gram + (uint64_t)admm->width * admm->width;
    admm->scratch = admm->gram + matrix_elements(rank);
    admm->block_elements = (uint64_t)admm->width * SLC_BLOCK_ROWS;
    for (uint32_t r = 0; r < rank; r++) {
        admm->ones[r] = 1.0;
    }
    return SLC_OK;
}

void slc_admm_destroy(struct slc_row_solver *solver)
{
    struct admm *admm = solver->context;

    if (admm != NULL) {
        slc_solver_destroy(&admm->system);
        slc_buffer_destroy(&admm->buffer);
        slc_free(admm);
    }
    *solver = (struct slc_row_solver){.name = NULL};
}

/* Computes the core consistency in one pass. Each worker computes the core of its tile. The cores
 * of the tiles are added in file order, so the sum depends neither on threads nor on the order in
 * which tiles are finished. */
#include "engine/solve/core_consistency.h"

#include "base/memory/checked.h"
#include "cpu/dense/dense.h"
#include "cpu/dense/pseudo_inverse.h"
#include "cpu/fiber/core_tile.h"
#include "engine/stream/relabel.h"

#include <math.h>
#include <string.h>

struct pass {
    uint32_t rank;
    unsigned order;
    uint64_t elements; /* elements of a core */
    const struct slc_matrix *matrices;
    struct slc_buffer memory;
    double *total, *cores, *scratch; /* one core and one scratch per worker */
    uint64_t scratch_elements;
};

/* Returns the number of f64 elements that a pass with `workers` workers allocates; UINT64_MAX on
 * overflow. */
static uint64_t pass_elements(unsigned order, uint32_t rank, unsigned workers)
{
    const uint64_t core = slc_core_elements(order, rank);
    const uint64_t scratch = slc_core_scratch_elements(order, rank);
    uint64_t each, all;

    if (core == UINT64_MAX || scratch == UINT64_MAX || !slc_add_u64(core, scratch, &each) ||
        !slc_mul_u64(each, workers, &all) || !slc_add_u64(all, core, &all) ||
        all > INT64_MAX / sizeof(double)) {
        return UINT64_MAX;
    }
    return all;
}

uint64_t
slc_core_consistency_bytes(const struct slc_layout_info *info, uint32_t rank, unsigned workers)
{
    const uint64_t elements = pass_elements(info->order, rank, workers);
    const uint64_t before =
        slc_max_u64(slc_pseudo_inverse_memory_bytes(rank), slc_relabel_memory_bytes(info));

    return elements == UINT64_MAX
               ? UINT64_MAX
               : slc_max_u64(before,
                             slc_buffer_footprint(elements * sizeof(double), SLC_PAGES_SMALL));
}

/* Computes (An^+)^T with rows in the order of the store. An is the factor of `mode` with its
 * columns multiplied by the N-th root of lambda. */
static enum slc_status invert_factor(const struct slc_store *store,
                                     unsigned mode,
                                     const double *lambda,
                                     struct slc_matrix *factor,
                                     uint32_t *independent,
                                     struct slc_error *err)
{
    const unsigned order = store->manifest.order;

    SLC_TRY(slc_relabel_rows(store, mode, SLC_ROWS_OF_STORE, factor, err));
    SLC_TRY(slc_pseudo_inverse(factor, independent, err));
    for (uint32_t r = 0; r < factor->cols; r++) {
        const double scale = lambda[r] > 0.0 ? pow(lambda[r], -1.0 / order) : 0.0;

        for (uint64_t i = 0; i < factor->rows; i++) {
            slc_matrix_row_f64(factor, i)[r] *= scale;
        }
    }
    return SLC_OK;
}

static enum slc_status
compute_core(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct pass *pass = context;
    double *core = pass->cores + worker * pass->elements;

    memset(core, 0, pass->elements * sizeof *core);
    return slc_core_tile(tile, pass->rank, pass->matrices,
                         pass->scratch + worker * pass->scratch_elements, core, err);
}

static bool add_core(void *context, unsigned worker)
{
    struct pass *pass = context;
    const double *core = pass->cores + worker * pass->elements;

    for (uint64_t k = 0; k < pass->elements; k++) {
        pass->total[k] += core[k];
    }
    return true;
}

/* Computes the report from the core G. */
static enum slc_status
evaluate_core(const struct pass *pass, struct slc_core_report *report, struct slc_error *err)
{
    uint64_t stride = 0; /* distance between two elements of the superdiagonal */
    double sum = 0.0, largest = 0.0;

    for (unsigned n = 0; n < pass->order; n++) {
        stride = stride * pass->rank + 1;
    }
    for (uint64_t k = 0; k < pass->elements; k++) {
        const bool diagonal = k % stride == 0;
        const double off = pass->total[k] - (diagonal ? 1.0 : 0.0);

        sum += off * off;
        if (!diagonal && fabs(off) > largest) {
            largest = fabs(off);
        }
    }
    if (!isfinite(sum)) {
        return slc_fail(
            err, SLC_ERR_NUMERIC,
            "the core of these factors is not finite: their columns are almost linearly dependent");
    }
    report->percent = 100.0 * (1.0 - sum / pass->rank);
    report->largest_off = largest;
    return SLC_OK;
}

static enum slc_status allocate_memory(struct pass *pass, unsigned workers, struct slc_error *err)
{
    const uint64_t elements = pass_elements(pass->order, pass->rank, workers);

    if (elements == UINT64_MAX) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "the core of %u modes at rank %u does not fit in memory", pass->order,
                        pass->rank);
    }
    SLC_TRY(slc_buffer_create(&pass->memory, elements * sizeof(double), SLC_PAGES_SMALL, err));
    pass->elements = slc_core_elements(pass->order, pass->rank);
    pass->scratch_elements = slc_core_scratch_elements(pass->order, pass->rank);
    pass->total = pass->memory.data;
    pass->cores = pass->total + pass->elements;
    pass->scratch = pass->cores + workers * pass->elements;
    return SLC_OK;
}

enum slc_status slc_core_consistency(const struct slc_store *store,
                                     const struct slc_core_options *options,
                                     uint32_t rank,
                                     struct slc_matrix *factors,
                                     const double *lambda,
                                     struct slc_core_report *report,
                                     struct slc_error *err)
{
    struct pass pass = {.rank = rank,
                        .order = store->manifest.order,
                        .matrices = factors,
                        .memory = SLC_BUFFER_INIT};
    const struct slc_tile_steps steps = {
        .context = &pass, .decode = compute_core, .in_turn = add_core};
    enum slc_status status = slc_dense_check_blas(options->workers, err);

    memset(report, 0, sizeof *report);
    for (unsigned n = 0; n < pass.order && status == SLC_OK; n++) {
        status = invert_factor(store, n, lambda, &factors[n], &report->independent[n], err);
    }
    SLC_THEN(status, allocate_memory(&pass, options->workers, err));
    SLC_THEN(status, slc_tile_stream_run(options->stream, store->reader, options->workers,
                                         options->stream_bytes, &steps, err));
    SLC_THEN(status, evaluate_core(&pass, report, err));
    slc_buffer_destroy(&pass.memory);
    return status;
}

/* Loads the inputs of MTTKRPs and computes their reference results. */
#include "tools/bench/mttkrp/mttkrp_held.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "cpu/reference/reference.h"
#include "engine/executor/replica.h"
#include "engine/planning/planning.h"
#include "tools/bench/measure/resident.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* A practically unlimited budget, with which each plan computes the memory that it needs. The sum
 * of these sizes is then compared with the budget of the session. */
#define ANY_BYTES (UINT64_MAX / 2)

/* Adds `bytes` to the used part of the budget. Fails if the budget is exceeded; the message names
 * `what`. */
static enum slc_status
hold(struct mttkrp_held *held, uint64_t bytes, const char *what, struct slc_error *err)
{
    const uint64_t budget = held->session->plan.budget_bytes;
    uint64_t *sum = &held->group->held_bytes;

    if (!slc_add_u64(*sum, bytes, sum)) {
        *sum = UINT64_MAX;
    }
    return *sum <= budget ? SLC_OK
                          : slc_fail_budget(err, budget, *sum,
                                            "%s (%" PRIu64 " MiB), in addition to the store", what,
                                            slc_div_up_u64(bytes, UINT64_C(1) << 20));
}

/* ---- layouts */

enum slc_layout_kind mttkrp_fiber_layout(const struct slc_store *store, unsigned mode)
{
    return slc_manifest_find(&store->manifest, SLC_LAYOUT_FIBER, mode) != NULL ? SLC_LAYOUT_FIBER
                                                                               : SLC_LAYOUT_BLCO;
}

bool mttkrp_has_fibers(const struct slc_store *store, unsigned mode)
{
    const struct slc_key_layout *keys = &slc_reader_info(store->reader)->keys;

    /* If the mode has only one index, any order of nonzeros keeps its fibers whole, but the runs of
     * tiles may be of another mode; so their mode is compared too. */
    return mttkrp_fiber_layout(store, mode) == SLC_LAYOUT_FIBER ||
           (keys->run.bits > 0 && keys->run.mode == mode && slc_key_layout_fibers(keys, mode));
}

/* Returns the bytes of memory of a side that the plan of the session has not counted: the layouts
 * of the side, and scratch beyond the scratch of the session. */
static uint64_t side_bytes(const struct slc_plan *plan, const struct slc_plan *session_plan)
{
    const uint64_t scratch =
        plan->request.operation == SLC_OP_CPD && plan->scratch_bytes > session_plan->scratch_bytes
            ? plan->scratch_bytes - session_plan->scratch_bytes
            : 0;

    return plan->index_bytes + plan->decoder_bytes + plan->slot_count * plan->slot_bytes +
           plan->cache_bytes + scratch;
}

/* Plans a side whose layouts are open, opens its tile stream and reads all blocks into memory. */
static enum slc_status start_side(struct mttkrp_held *held,
                                  struct mttkrp_side *side,
                                  const struct slc_plan_request *request,
                                  const char *what,
                                  struct slc_error *err)
{
    SLC_TRY(slc_plan_make(&side->layouts, request, &side->plan, err));
    SLC_TRY(hold(held, side_bytes(&side->plan, &held->session->plan), what, err));
    SLC_TRY(slc_stream_open(slc_files_system(), &side->layouts, &side->plan, &side->stream, err));
    for (unsigned l = 0; l < side->layouts.count; l++) {
        if (side->plan.layouts[l].passes > 0) {
            SLC_TRY(bench_scan_layout(side->stream, l, err));
        }
    }
    return SLC_OK;
}

static enum slc_status open_sorted(struct mttkrp_held *held, struct slc_error *err)
{
    const struct bench_mttkrp_group *group = held->group;
    const bool one_mode = group->mode_end - group->mode_begin == 1;
    const struct slc_plan_request request = {.operation = one_mode ? SLC_OP_MTTKRP : SLC_OP_CPD,
                                             .mode = group->mode_begin,
                                             .rank = group->rank,
                                             .precision = group->precision,
                                             .threads = group->threads,
                                             .slots = 2,
                                             .memory_bytes = ANY_BYTES,
                                             .cache = true,
                                             .copies = SLC_COPIES_NEVER,
                                             .passes = SLC_PASSES_PLAIN};

    SLC_TRY(slc_layouts_open(&held->session->store, SLC_LAYOUTS_SORTED,
                             one_mode ? UINT32_C(1) << group->mode_begin : UINT32_MAX, ANY_BYTES,
                             &held->sorted.layouts, err));
    return start_side(held, &held->sorted, &request, "the sorted layouts", err);
}

static enum slc_status open_fibers(struct mttkrp_held *held, unsigned mode, struct slc_error *err)
{
    /* Baselines over fibers only need decoded tiles. A plan at rank 1 keeps other buffers small. */
    const struct slc_plan_request request = {.operation = SLC_OP_MTTKRP,
                                             .rank = 1,
                                             .precision = held->group->precision,
                                             .threads = held->group->threads,
                                             .slots = 2,
                                             .memory_bytes = ANY_BYTES,
                                             .cache = true};
    struct slc_reader *reader;
    char what[60];

    SLC_TRY(slc_store_open_fibers(&held->session->store, mode, ANY_BYTES, &reader, err));
    held->fibers[mode].layouts = slc_layouts_one(reader);
    (void)snprintf(what, sizeof what, "the layout with whole fibers of mode %u", mode + 1);
    return start_side(held, &held->fibers[mode], &request, what, err);
}

/* ---- the list */

static enum slc_status permute(struct mttkrp_held *held, struct slc_error *err)
{
    struct bench_mttkrp_group *group = held->group;
    struct bench_samples samples = {.count = 0};

    for (unsigned i = 0; i < group->repeats; i++) {
        const uint64_t start_ns = slc_clock_ns();

        for (unsigned n = group->mode_begin; n < group->mode_end; n++) {
            SLC_TRY(slc_coo_permute(&held->list, n, held->session->plan.threads, err));
        }
        bench_samples_add(&samples, slc_seconds_since(start_ns));
    }
    group->permute_seconds = bench_samples_summary(&samples).median;
    return SLC_OK;
}

static enum slc_status load_list(struct mttkrp_held *held, bool permuted, struct slc_error *err)
{
    const enum slc_value_type type = held->group->precision;
    struct slc_tensor_shape shape;
    char what[100];

    slc_replica_shape(slc_reader_info(held->session->store.reader), &shape);
    (void)snprintf(what, sizeof what,
                   "the list of %" PRIu64 " nonzeros for the baselines of --kernel", shape.nnz);
    SLC_TRY(
        hold(held, slc_coo_bytes(&shape, type, permuted, held->session->plan.threads), what, err));
    SLC_TRY(bench_list_pass(held->session, type, &held->list, err));
    return permuted ? permute(held, err) : SLC_OK;
}

/* ---- slices */

/* Builds the slices of a mode from its sorted layout. */
static enum slc_status load_slices(struct mttkrp_held *held, unsigned mode, struct slc_error *err)
{
    const enum slc_value_type type = held->group->precision;
    const unsigned layout = held->sorted.plan.mode_layout[mode];
    const struct slc_reader *reader = held->sorted.layouts.reader[layout];
    struct slc_csf_list from = {.type = type};
    struct slc_coo list = {.type = type};
    char what[100];

    from.order = slc_reader_info(reader)->order;
    from.dims = slc_reader_info(reader)->dims;
    from.nnz = slc_reader_info(reader)->nnz;
    (void)snprintf(what, sizeof what, "the slices of mode %u for the baselines of --kernel",
                   mode + 1);
    SLC_TRY(hold(held, slc_csf_bytes(&from, true), what, err));
    enum slc_status status =
        bench_list_layout(held->sorted.stream, layout, reader, type, &list, err);
    from.coords = list.coords.data;
    from.values = list.values.data;
    SLC_THEN(status, slc_csf_create_slices(&held->slices[mode], &from, mode, err));
    slc_coo_destroy(&list);
    if (held->slices[mode].fibers > 0) {
        held->group->nnz_per_fiber[mode] = (double)from.nnz / (double)held->slices[mode].fibers;
    }
    return status;
}

/* ---- reference results */

/* Counts the elements of the reference results: a product and a magnitude per element of the
 * outputs. Returns false on overflow. */
static bool count_elements(const struct slc_manifest *manifest,
                           const struct bench_mttkrp_group *group,
                           uint64_t *elements)
{
    uint64_t rows = 0;

    for (unsigned n = group->mode_begin; n < group->mode_end; n++) {
        if (!slc_add_u64(rows, manifest->dims[n], &rows)) {
            return false;
        }
    }
    return slc_mul_u64(rows, 2 * (uint64_t)group->rank, elements) &&
           *elements <= SIZE_MAX / 2 / sizeof(double);
}

static enum slc_status
hold_reference(struct mttkrp_held *held, uint64_t *elements, struct slc_error *err)
{
    const struct slc_manifest *manifest = &held->session->store.manifest;
    uint64_t list, bytes = UINT64_MAX;

    if (count_elements(manifest, held->group, elements) &&
        slc_mul_u64(manifest->nnz, (manifest->order + 1) * sizeof(uint64_t), &list) &&
        !slc_add_u64(list, *elements * sizeof(double), &bytes)) {
        bytes = UINT64_MAX;
    }
    return hold(held, bytes, "the reference results of --check", err);
}

/* Computes the reference results with the simple loops of cpu/reference/reference.h. */
static enum slc_status compute_reference(struct mttkrp_held *held, struct slc_error *err)
{
    const struct bench_mttkrp_group *group = held->group;
    const struct ttv_tensor *tensor = &held->tensor;
    const struct slc_matrix *matrices[SLC_MAX_ORDER];
    struct slc_coo_view view = {.order = held->session->store.manifest.order};
    uint64_t elements = 0;

    SLC_TRY(hold_reference(held, &elements, err));
    SLC_TRY(ttv_tensor_load(&held->tensor, &held->session->store, err));
    SLC_TRY(slc_buffer_create(&held->memory, elements * sizeof(double), SLC_PAGES_SMALL, err));
    view.nnz = tensor->nnz;
    view.values = tensor->values;
    for (unsigned m = 0; m < view.order; m++) {
        view.coords[m] = tensor->coords[m];
        matrices[m] = &held->factors.factors[m];
    }
    double *at = held->memory.data;
    for (unsigned n = group->mode_begin; n < group->mode_end; n++) {
        const uint64_t rows = tensor->dims[n];

        held->want[n] = at;
        held->magnitude[n] = at + rows * group->rank;
        at += 2 * rows * group->rank;
        slc_reference_mttkrp(&view, matrices, n, rows, group->rank, held->want[n]);
        slc_reference_mttkrp_magnitude(&view, matrices, n, rows, group->rank, held->magnitude[n]);
    }
    return SLC_OK;
}

double
mttkrp_held_error(const struct mttkrp_held *held, unsigned mode, const struct slc_matrix *output)
{
    const double *want = held->want[mode];
    const double *magnitude = held->magnitude[mode];
    double error = 0;

    for (uint64_t i = 0; i < output->rows; i++) {
        for (uint32_t r = 0; r < held->group->rank; r++, want++, magnitude++) {
            const double difference = fabs(slc_matrix_get(output, i, r) - *want);

            if (difference != 0) {
                error = fmax(error, isnan(difference) ? INFINITY : difference / *magnitude);
            }
        }
    }
    return error;
}

/* ---- opening and closing */

enum slc_status mttkrp_held_open(struct mttkrp_held *held, struct slc_error *err)
{
    const struct bench_mttkrp_group *group = held->group;
    bool listed = false, permuted = false, slices = false;

    for (unsigned v = 0; v < group->variant_count; v++) {
        const struct bench_mttkrp_variant *variant = &group->variants[v];

        listed = listed || variant->listed;
        permuted = permuted || (variant->listed && variant->kernel == SLC_COO_PERMUTED);
        slices = slices || variant->slices;
        if ((variant->sorted || variant->slices) && held->sorted.stream == NULL) {
            SLC_TRY(open_sorted(held, err));
        }
        if (variant->fibers && held->fibers[variant->fiber_mode].stream == NULL) {
            SLC_TRY(open_fibers(held, variant->fiber_mode, err));
        }
    }
    if (listed) {
        SLC_TRY(load_list(held, permuted, err));
    }
    for (unsigned n = group->mode_begin; slices && n < group->mode_end; n++) {
        SLC_TRY(load_slices(held, n, err));
    }
    return group->check ? compute_reference(held, err) : SLC_OK;
}

void mttkrp_held_close(struct mttkrp_held *held)
{
    ttv_tensor_destroy(&held->tensor);
    slc_buffer_destroy(&held->memory);
    slc_coo_destroy(&held->list);
    slc_stream_close(held->sorted.stream);
    slc_layouts_close(&held->sorted.layouts);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_csf_destroy(&held->slices[n]);
        slc_stream_close(held->fibers[n].stream);
        if (held->fibers[n].layouts.count > 0) {
            slc_store_close_layout(&held->session->store, held->fibers[n].layouts.reader[0]);
        }
    }
    bench_factors_destroy(&held->factors);
}

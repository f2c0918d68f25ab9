/* Implements methods with constraints and penalties on the rows of factors. They update a factor
 * from its MTTKRP like CP-ALS, but a row solver computes the rows.
 *
 * If the only constraint is that numbers are 0 or more, columns can be normalized as in CP-ALS.
 * With penalties or bounds, columns keep their units during the run: lambda is 1, and the
 * objective, half of the squared error plus the penalties, never increases.
 *
 * A component whose column becomes zero in one mode has no effect. The other modes keep their
 * columns of this component, so that the next update of the mode may revive it. */
#include "base/memory/checked.h"
#include "cpu/row/admm.h"
#include "cpu/row/descent.h"
#include "cpu/row/smooth.h"
#include "engine/solve/cp_method.h"

/* Coordinate descent ends if a sweep gains less than this part of the largest gain of a sweep, or
 * after this many sweeps ([Gillis2012] section 4.2; docs/PERFORMANCE.md, "Constraints"). */
#define SWEEP_TOLERANCE 1e-8
/* ADMM ends if the squared lengths of a step are at most this part of the squared norms, or after
 * STEPS steps. */
#define STEP_TOLERANCE 1e-6
enum { SWEEPS = 100, STEPS = 50 };

/* Returns true if a factor keeps its units in the final model, because the constraint would not
 * hold for its normalized columns. */
static bool keeps_units(const struct slc_row_terms *terms)
{
    return terms->bounded || terms->simplex;
}

bool cp_keeps_units(const struct cp_state *state, unsigned mode)
{
    return state->plain_units && keeps_units(&state->options->terms[mode]);
}

uint64_t slc_cp_rows_memory_bytes(uint32_t rank, unsigned workers)
{
    return slc_max_u64(slc_descent_memory_bytes(workers, rank),
                       slc_admm_memory_bytes(workers, rank));
}

uint64_t slc_cp_smooth_bytes(const struct slc_row_terms *terms,
                             unsigned order,
                             const uint64_t *dims,
                             uint32_t rank)
{
    uint64_t bytes = 0;

    for (unsigned n = 0; n < order; n++) {
        const uint64_t elements = slc_smooth_elements(dims[n], rank);

        if (terms[n].smooth > 0.0) {
            bytes = slc_max_u64(bytes, elements > UINT64_MAX / 16 ? UINT64_MAX
                                                                  : elements * sizeof(double));
        }
    }
    return bytes == UINT64_MAX || bytes == 0 ? bytes : slc_buffer_footprint(bytes, SLC_PAGES_SMALL);
}

/* Checks the modes with a smoothness penalty: all their rows are solved together, in the order of
 * the input. */
static enum slc_status check_smooth(const struct cp_state *state, struct slc_error *err)
{
    for (unsigned n = 0; n < state->order; n++) {
        if (state->options->terms[n].smooth == 0.0) {
            continue;
        }
        if (slc_manifest_permutation(&state->store->manifest, n) != NULL) {
            return slc_fail(
                err, SLC_ERR_UNSUPPORTED,
                "mode %u cannot have a smoothness penalty: the store has relabelled it, "
                "so consecutive rows are not neighbours; convert the tensor without "
                "relabelling",
                n + 1);
        }
        if (state->plan->cpu_groups > 0) {
            return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_DEVICES,
                                  "a smoothness penalty needs all rows of mode %u on one device: "
                                  "use one device",
                                  n + 1);
        }
        if (state->plan->fusion.modes != 0) {
            return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_PASSES,
                                  "a smoothness penalty needs all rows of mode %u at once, so "
                                  "passes must update one mode: use plain passes",
                                  n + 1);
        }
    }
    return SLC_OK;
}

static enum slc_status check(const struct cp_state *state, struct slc_error *err)
{
    const struct slc_plan_request *request = &state->plan->request;

    SLC_TRY(check_smooth(state, err));
    if (request->gpu_count > 1) {
        return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_DEVICES,
                              "the method '%s' cannot use several GPUs: use one GPU or the CPU",
                              slc_cp_algorithm_name(state->options->algorithm));
    }
    if (request->gpu != NULL && !request->host_rows) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the plan for a GPU has no memory for the rows that the method '%s' solves "
                        "on the host",
                        slc_cp_algorithm_name(state->options->algorithm));
    }
    return SLC_OK;
}

static enum slc_status create_row_solver(struct cp_state *state, struct slc_error *err)
{
    const struct slc_descent_options descent = {
        .terms = state->options->terms, .tolerance = SWEEP_TOLERANCE, .sweeps = SWEEPS};
    const struct slc_admm_options admm = {.terms = state->options->terms,
                                          .tolerance = STEP_TOLERANCE,
                                          .steps = STEPS,
                                          .dense = state->dense};

    return state->options->algorithm == SLC_CP_HALS
               ? slc_descent_create(state->plan->threads, state->rank, &descent, &state->rows, err)
               : slc_admm_create(state->plan->threads, state->rank, &admm, &state->rows, err);
}

static enum slc_status create(struct cp_state *state, struct slc_error *err)
{
    const struct slc_row_terms *terms = state->options->terms;

    for (unsigned n = 0; n < state->order; n++) {
        state->plain_units = state->plain_units || terms[n].l1 > 0.0 || terms[n].ridge > 0.0 ||
                             terms[n].smooth > 0.0 || keeps_units(&terms[n]);
    }
    const uint64_t bytes = slc_cp_smooth_bytes(terms, state->order, state->dims, state->rank);

    if (bytes > 0) {
        SLC_TRY(slc_buffer_create(&state->smooth, bytes, SLC_PAGES_SMALL, err));
    }
    SLC_TRY(cp_mttkrp_create(state, err));
    state->solver.rows = &state->rows;
    state->solver.left = state->left;
    state->solver.start = state->start;
    state->solver.right = state->right;
    return create_row_solver(state, err);
}

static void destroy(struct cp_state *state)
{
    if (state->options->algorithm == SLC_CP_HALS) {
        slc_descent_destroy(&state->rows);
    } else {
        slc_admm_destroy(&state->rows);
    }
    slc_buffer_destroy(&state->smooth);
    cp_mttkrp_destroy(state);
}

enum slc_status cp_constraint_begin(struct cp_state *state, unsigned mode, struct slc_error *err)
{
    const double *lambda = state->result->lambda;
    const struct slc_row_mode about = {.order = state->order,
                                       .mode = mode,
                                       .workers = state->plan->threads,
                                       .iteration = state->iteration,
                                       .rank = state->rank,
                                       .rows = state->dims[mode],
                                       .gram = state->system};

    for (uint32_t r = 0; r < state->rank; r++) {
        state->start[r] = state->scale[mode][r] * (lambda[r] > 0.0 ? lambda[r] : 1.0);
    }
    return state->rows.begin(state->rows.context, &about, err);
}

enum slc_status cp_smooth_update(struct cp_state *state,
                                 unsigned mode,
                                 const struct slc_matrix *mttkrp,
                                 struct slc_error *err)
{
    const struct slc_smooth_problem problem = {.terms = &state->options->terms[mode],
                                               .gram = state->system,
                                               .solver = &state->solver,
                                               .mttkrp = mttkrp,
                                               .factor = &state->result->factors[mode],
                                               .tolerance = STEP_TOLERANCE,
                                               .steps = STEPS};

    return slc_smooth_solve(&problem, state->smooth.data, err);
}

/* Returns the sum of the squared differences of consecutive rows. */
static double squared_differences(const struct cp_state *state, unsigned mode)
{
    const struct slc_matrix *factor = &state->result->factors[mode];
    double sum = 0.0;

    for (uint64_t i = 1; i < factor->rows; i++) {
        for (uint32_t r = 0; r < state->rank; r++) {
            const double difference =
                (slc_matrix_get(factor, i, r) - slc_matrix_get(factor, i - 1, r)) *
                state->scale[mode][r];

            sum += difference * difference;
        }
    }
    return sum;
}

/* Adds the penalties of a mode to *sum. */
static enum slc_status
add_penalties(struct cp_state *state, unsigned mode, double *sum, struct slc_error *err)
{
    const struct slc_row_terms *terms = &state->options->terms[mode];
    double *sums = state->column_inner; /* reused, because an update no longer needs column_inner */

    for (uint32_t r = 0; r < state->rank; r++) {
        *sum += terms->ridge / 2 * state->gram[mode][(size_t)r * state->rank + r];
    }
    if (terms->smooth > 0.0) {
        *sum += terms->smooth * squared_differences(state, mode);
    }
    if (terms->l1 > 0.0) {
        SLC_TRY(slc_dense_column_sums(state->dense, &state->result->factors[mode], sums, err));
        for (uint32_t r = 0; r < state->rank; r++) {
            *sum += terms->l1 * state->scale[mode][r] * sums[r];
        }
    }
    return SLC_OK;
}

static enum slc_status
measure(struct cp_state *state, struct slc_cp_iteration *report, struct slc_error *err)
{
    SLC_TRY(cp_mttkrp_measure(state, report, err));
    if (!state->plain_units) {
        return SLC_OK;
    }
    double objective = state->residual_squared / 2;
    for (unsigned n = 0; n < state->order; n++) {
        SLC_TRY(add_penalties(state, n, &objective, err));
    }
    state->result->objective = objective;
    if (report != NULL) {
        report->objective = objective;
        report->objective_name = "objective";
    }
    return SLC_OK;
}

static void identify(const struct cp_state *state, struct cp_identity *identity)
{
    char text[SLC_CP_TERMS_BYTES];

    slc_cp_terms_text(state->options->terms, state->order, text);
    if (text[0] != '\0') {
        cp_identity_append(identity, "constraints=%s\n", text);
    }
}

/* Write and read the objectives of the completed iterations. */
static void save(const struct cp_state *state, struct slc_checkpoint *checkpoint)
{
    slc_checkpoint_section(checkpoint, "objectives");
    for (unsigned i = 0; i < state->result->iterations; i++) {
        slc_checkpoint_put_f64(checkpoint, state->past[i].objective);
    }
}

static enum slc_status
restore(struct cp_state *state, struct slc_checkpoint_reader *reader, struct slc_error *err)
{
    slc_checkpoint_seek(reader, "objectives");
    for (unsigned i = 0; i < state->past_count; i++) {
        state->past[i].objective = slc_checkpoint_get_f64(reader);
        state->past[i].objective_name = "objective";
        state->result->objective = state->past[i].objective;
    }
    return slc_checkpoint_end(reader, err);
}

const struct cp_method cp_method_constraint = {.check = check,
                                               .create = create,
                                               .destroy = destroy,
                                               .update = cp_mttkrp_update,
                                               .measure = measure,
                                               .record = cp_mttkrp_record,
                                               .settled = cp_fit_settled,
                                               .finish = cp_finish,
                                               .identify = identify,
                                               .save = save,
                                               .restore = restore};

/* Writes the checkpoints of CP-ALS; cp_checkpoint.h describes their contents.
 *
 * A checkpoint is written between two updates, or between two parts of a pass (cp_parts.c). Between
 * two updates the state consists of the stored factors, a few R x R matrices and the MTTKRP that a
 * pass for two modes may have left pending. Between two parts of a pass, the state also has the
 * partial sums of the pass. Factors on a GPU are first copied to host memory. Writing needs one
 * buffer, which the storage layer owns and the plan counts. */
#include "engine/solve/cp_checkpoint.h"

#include "base/error/clock.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "engine/solve/cp_method.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* Default for the least number of seconds between two checkpoints. A user barely notices the loss
 * of this much work. */
#define AUTO_SECONDS 10.0
/* By default, writing checkpoints may use at most 1 / AUTO_SHARE of the time. */
#define AUTO_SHARE 100.0
/* Write rate that is assumed until a checkpoint has been written, the rate of a fast drive. The
 * first checkpoint measures the real rate. */
#define BYTES_PER_SECOND 500e6

enum {
    /* Disk space is reserved for the records of at most this many iterations; further records need
     * little space. */
    PAST_RESERVED = 1000,
    /* Numbers per iteration in the section `past`, in addition to one number per mode. */
    PAST_NUMBERS = 6,
    /* Upper bound for the count of numbers in the section `state`: 28, and per mode 1 number and
     * two choices of 15 numbers each. */
    STATE_NUMBERS = 32 + 31 * SLC_MAX_ORDER,
    /* Number of elements of a row that are converted at once. */
    PIECE = 256
};

void cp_matrix_write(struct slc_checkpoint *checkpoint, const struct slc_matrix *matrix)
{
    const uint32_t item = slc_value_bytes(matrix->type);
    uint8_t piece[8 * PIECE];

    for (uint64_t row = 0; row < matrix->rows; row++) {
        for (uint32_t col = 0, count; col < matrix->cols; col += count) {
            count = matrix->cols - col < PIECE ? matrix->cols - col : PIECE;
            for (uint32_t i = 0; i < count; i++) {
                if (matrix->type == SLC_F32) {
                    slc_store_f32(piece + 4 * i, slc_matrix_row_f32(matrix, row)[col + i]);
                } else {
                    slc_store_f64(piece + 8 * i, slc_matrix_row_f64(matrix, row)[col + i]);
                }
            }
            slc_checkpoint_put(checkpoint, piece, (uint64_t)count * item);
        }
    }
}

static void write_numbers(struct slc_checkpoint *checkpoint, const double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        slc_checkpoint_put_f64(checkpoint, numbers[i]);
    }
}

static void write_matrices(struct cp_state *state, struct slc_checkpoint *checkpoint)
{
    const size_t rank = state->rank;

    slc_checkpoint_section(checkpoint, "matrices");
    for (unsigned n = 0; n < state->order; n++) {
        write_numbers(checkpoint, state->gram[n], rank * rank);
        write_numbers(checkpoint, state->scale[n], rank);
        write_numbers(checkpoint, state->norm[n], rank);
    }
    write_numbers(checkpoint, state->result->lambda, rank);
}

static void write_past(const struct cp_state *state, struct slc_checkpoint *checkpoint)
{
    slc_checkpoint_section(checkpoint, "past");
    for (unsigned i = 0; i < state->result->iterations; i++) {
        const struct slc_cp_iteration *past = &state->past[i];
        uint64_t singular = 0;

        for (unsigned n = 0; n < state->order; n++) {
            singular |= past->singular[n] ? UINT64_C(1) << n : 0;
        }
        slc_checkpoint_put_f64(checkpoint, past->fit);
        slc_checkpoint_put_f64(checkpoint, past->delta);
        slc_checkpoint_put_f64(checkpoint, past->seconds);
        slc_checkpoint_put_u64(checkpoint, past->bytes_read);
        slc_checkpoint_put_u64(checkpoint, past->passes);
        slc_checkpoint_put_u64(checkpoint, singular);
        write_numbers(checkpoint, past->mode_seconds, state->order);
    }
}

static void write_state(const struct cp_state *state, struct slc_checkpoint *checkpoint)
{
    const struct slc_cp_result *result = state->result;
    const time_t now = time(NULL);
    struct slc_cp_saved saved = {.order = state->order,
                                 .iterations = result->iterations,
                                 .place = state->place,
                                 .pending = state->pending,
                                 .settled = state->settled,
                                 .fit = state->fit,
                                 .inner = state->inner,
                                 .copies_after = result->copies_after,
                                 .threads = state->plan->threads,
                                 .times = result->times,
                                 .checkpoints = result->checkpoints,
                                 .part = cp_part_saved(state),
                                 .written = now > 0 ? (uint64_t)now : 0,
                                 .past_count = result->iterations};

    saved.times.total = state->seconds_before + slc_seconds_since(state->start_ns);
    saved.checkpoints.count++;
    memcpy(saved.mode_order, state->mode_order, sizeof saved.mode_order);
    memcpy(saved.choices, result->choices, sizeof saved.choices);
    memcpy(saved.second_choices, result->second_choices, sizeof saved.second_choices);
    cp_saved_write(checkpoint, &saved);
}

/* Returns the bytes of one generation of a checkpoint with records of `past` iterations. */
static uint64_t
generation_bytes(const struct slc_plan *plan, unsigned order, const uint64_t *dims, uint64_t past)
{
    const uint64_t item = slc_value_bytes(plan->request.precision);
    const uint64_t rank = plan->request.rank;
    const uint64_t numbers = order * (rank * rank + 2 * rank) + rank;
    uint64_t sections[SLC_MAX_ORDER + 5 + CP_PART_SECTIONS];
    unsigned count = 0;

    sections[count++] = SLC_CP_IDENTITY_BYTES;
    sections[count++] = STATE_NUMBERS * sizeof(uint64_t);
    sections[count++] = numbers * sizeof(double);
    sections[count++] = past * (PAST_NUMBERS + order) * sizeof(uint64_t);
    for (unsigned n = 0; n < order; n++) {
        /* The product cannot overflow, because the factor is in memory. */
        sections[count++] = dims[n] * rank * item;
    }
    sections[count] = 0;
    for (unsigned n = 0; n < order; n++) {
        if ((plan->fusion.seconds >> n & 1U) != 0) {
            sections[count] = slc_max_u64(sections[count], dims[n] * rank * item);
        }
    }
    count++;
    count += cp_part_bytes(plan, order, dims, &sections[count]);
    return slc_checkpoint_file_bytes(sections, count);
}

static uint64_t file_bytes(const struct cp_state *state, uint64_t past)
{
    return generation_bytes(state->plan, state->order, state->dims, past);
}

uint64_t slc_cp_checkpoint_bytes(const struct slc_plan *plan,
                                 unsigned order,
                                 const uint64_t *dims,
                                 unsigned iterations)
{
    return generation_bytes(plan, order, dims, slc_min_u64(iterations, PAST_RESERVED));
}

enum slc_status cp_checkpoint_start(struct cp_state *state, struct slc_error *err)
{
    const uint64_t past = slc_max_u64(state->result->iterations,
                                      slc_min_u64(state->options->iterations, PAST_RESERVED));

    if (state->options->checkpoint == NULL) {
        return SLC_OK;
    }
    uint64_t bytes = file_bytes(state, past);
    state->saved_ns = slc_clock_ns();
    state->saving_seconds = (double)bytes / BYTES_PER_SECOND;
    return slc_checkpoint_reserve(state->options->checkpoint, bytes, err);
}

static enum slc_status write_all(struct cp_state *state, struct slc_error *err)
{
    struct slc_checkpoint *checkpoint = state->options->checkpoint;

    for (unsigned n = 0; n < state->order; n++) {
        SLC_TRY(state->executor->ops->read_factor(state->executor, n, err));
    }
    SLC_TRY(cp_part_gather(state, err));
    slc_checkpoint_begin(checkpoint);
    slc_checkpoint_section(checkpoint, "identity");
    slc_checkpoint_put(checkpoint, state->identity, strlen(state->identity));
    write_state(state, checkpoint);
    write_matrices(state, checkpoint);
    for (unsigned n = 0; n < state->order; n++) {
        char name[SLC_CHECKPOINT_NAME_BYTES];

        cp_factor_name(n, name);
        slc_checkpoint_section(checkpoint, name);
        cp_matrix_write(checkpoint, &state->result->factors[n]);
    }
    if (state->pending != SLC_MAX_ORDER) {
        const struct slc_matrix pending =
            cp_output_view(state, &state->second_output, state->pending);

        slc_checkpoint_section(checkpoint, "pending");
        cp_matrix_write(checkpoint, &pending);
    }
    cp_part_write(state);
    if (state->method->save != NULL) {
        state->method->save(state, checkpoint);
    }
    write_past(state, checkpoint);
    return slc_checkpoint_commit(checkpoint, err);
}

enum slc_status cp_checkpoint_now(struct cp_state *state, struct slc_error *err)
{
    const struct slc_cp_options *options = state->options;
    struct slc_cp_result *result = state->result;
    const uint64_t start_ns = slc_clock_ns();

    SLC_TRY(write_all(state, err));
    state->saved_ns = slc_clock_ns();
    state->saving_seconds = (double)(state->saved_ns - start_ns) * 1e-9;
    state->unsaved = false;
    result->checkpoints.count++;
    result->checkpoints.seconds += state->saving_seconds;
    result->resume_iteration = result->iterations + 1;
    result->resume_mode = state->mode_order[state->place];
    const struct slc_cp_checkpointed *report =
        &(struct slc_cp_checkpointed){.iteration = result->resume_iteration,
                                      .mode = result->resume_mode,
                                      .seconds = state->saving_seconds,
                                      .bytes = file_bytes(state, result->iterations)};
    if (options->checkpointed != NULL) {
        options->checkpointed(options->context, report);
    }
    return SLC_OK;
}

enum slc_status cp_checkpoint_due(struct cp_state *state, struct slc_error *err)
{
    const double requested = state->options->checkpoint_seconds;
    const double interval =
        requested >= 0 ? requested : fmax(AUTO_SECONDS, AUTO_SHARE * state->saving_seconds);

    /* Between two parts of a pass the model has not changed since the last update. */
    state->unsaved = state->unsaved || state->current.position == 0;
    if (state->options->checkpoint == NULL || slc_seconds_since(state->saved_ns) < interval) {
        return SLC_OK;
    }
    return cp_checkpoint_now(state, err);
}

enum slc_status cp_checkpoint_last(struct cp_state *state, struct slc_error *err)
{
    const enum slc_stop_reason reason = state->result->reason;

    if (state->options->checkpoint == NULL || !state->unsaved || state->half_updated ||
        (reason != SLC_STOP_TIME && reason != SLC_STOP_SIGNAL)) {
        return SLC_OK;
    }
    return cp_checkpoint_now(state, err);
}

enum slc_status cp_checkpoint_past(struct cp_state *state,
                                   const struct slc_cp_iteration *iteration,
                                   struct slc_error *err)
{
    const unsigned index = iteration->iteration - 1;

    if (state->options->checkpoint == NULL) {
        return SLC_OK;
    }
    if (index >= state->past_capacity) {
        const unsigned capacity = 2 * index + 64;
        struct slc_cp_iteration *grown = slc_realloc(state->past, capacity * sizeof *grown);

        SLC_TRY(slc_check_memory(grown != NULL, err, "to record %u iterations", capacity));
        state->past = grown;
        state->past_capacity = capacity;
    }
    state->past[index] = *iteration;
    /* The borrowed pointers are cleared, because they do not stay valid. */
    state->past[index].copies_fault = NULL;
    state->past[index].choices = NULL;
    state->past[index].second_choices = NULL;
    state->past[index].copies = NULL;
    return SLC_OK;
}

/* Resumes a checkpoint: reads the sections that cp_checkpoint.c wrote into the state of a
 * new run.
 *
 * Results of trials are reused if the plan would make the same trials again. Copies per mode are
 * made again when they are due. A pending MTTKRP is used if the plan has passes for two modes;
 * otherwise it is computed again in its own pass. */
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "engine/solve/cp_checkpoint.h"
#include "engine/solve/cp_method.h"

#include <inttypes.h>
#include <string.h>

enum {
    /* Number of elements of a row that are converted at once. */
    PIECE = 256,
    /* Numbers per iteration in the section `past`, in addition to one number per mode. */
    PAST_NUMBERS = 6,
    /* Records of up to this many iterations are small compared with any budget. */
    PAST_FREE = 4096,
    /* Bytes that each further iteration needs: its record, and its text in run.json. */
    PAST_BYTES = 4096
};

enum slc_status cp_matrix_read(struct slc_checkpoint_reader *reader,
                               const char *name,
                               const struct slc_matrix *matrix,
                               struct slc_error *err)
{
    const uint32_t item = slc_value_bytes(matrix->type);
    uint8_t piece[8 * PIECE];

    slc_checkpoint_seek(reader, name);
    for (uint64_t row = 0; row < matrix->rows; row++) {
        for (uint32_t col = 0, count; col < matrix->cols; col += count) {
            count = matrix->cols - col < PIECE ? matrix->cols - col : PIECE;
            slc_checkpoint_get(reader, piece, (uint64_t)count * item);
            for (uint32_t i = 0; i < count; i++) {
                if (matrix->type == SLC_F32) {
                    slc_matrix_row_f32(matrix, row)[col + i] = slc_load_f32(piece + 4 * i);
                } else {
                    slc_matrix_row_f64(matrix, row)[col + i] = slc_load_f64(piece + 8 * i);
                }
            }
        }
    }
    return slc_checkpoint_end(reader, err);
}

static void read_numbers(struct slc_checkpoint_reader *reader, double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        numbers[i] = slc_checkpoint_get_f64(reader);
    }
}

static enum slc_status
read_matrices(struct cp_state *state, struct slc_checkpoint_reader *reader, struct slc_error *err)
{
    const size_t rank = state->rank;

    slc_checkpoint_seek(reader, "matrices");
    for (unsigned n = 0; n < state->order; n++) {
        read_numbers(reader, state->gram[n], rank * rank);
        read_numbers(reader, state->scale[n], rank);
        read_numbers(reader, state->norm[n], rank);
    }
    read_numbers(reader, state->result->lambda, rank);
    SLC_TRY(slc_checkpoint_end(reader, err));
    for (unsigned n = 0; n < state->order; n++) {
        char name[SLC_CHECKPOINT_NAME_BYTES];

        cp_factor_name(n, name);
        SLC_TRY(cp_matrix_read(reader, name, &state->result->factors[n], err));
    }
    return SLC_OK;
}

static enum slc_status read_pending(struct cp_state *state,
                                    struct slc_checkpoint_reader *reader,
                                    unsigned mode,
                                    struct slc_error *err)
{
    if (mode == SLC_MAX_ORDER || (state->plan->fusion.seconds >> mode & 1U) == 0) {
        return SLC_OK;
    }
    struct slc_matrix output = cp_output_view(state, &state->second_output, mode);
    SLC_TRY(cp_matrix_read(reader, "pending", &output, err));
    state->pending = mode;
    return SLC_OK;
}

/* Allocates the records of `count` iterations if they fit in the budget. The count comes from the
 * checkpoint, and a damaged or forged checkpoint may state millions. */
static enum slc_status reserve_past(struct cp_state *state, unsigned count, struct slc_error *err)
{
    const struct slc_plan *plan = state->plan;
    const uint64_t more = (uint64_t)(count > PAST_FREE ? count - PAST_FREE : 0) * PAST_BYTES;

    if (more > 0 &&
        more > plan->budget_bytes - slc_min_u64(plan->minimum_bytes, plan->budget_bytes)) {
        return slc_fail_budget(err, plan->budget_bytes, plan->minimum_bytes + more,
                               "the records of the %u iterations before the checkpoint", count);
    }
    state->past = slc_calloc(count > 0 ? count : 1, sizeof *state->past);
    SLC_TRY(slc_check_memory(state->past != NULL, err, "to record %u iterations", count));
    state->past_capacity = count;
    state->past_count = count;
    return SLC_OK;
}

static enum slc_status read_past(struct cp_state *state,
                                 struct slc_checkpoint_reader *reader,
                                 unsigned count,
                                 struct slc_error *err)
{
    const struct slc_checkpoint_section *section = slc_checkpoint_find(reader, "past");
    enum slc_status status = SLC_OK;

    if (section == NULL ||
        section->bytes != (uint64_t)count * (PAST_NUMBERS + state->order) * sizeof(uint64_t)) {
        return slc_fail_file(
            err, SLC_ERR_FORMAT, slc_checkpoint_reader_path(reader),
            "the checkpoint does not have the number of iteration records that it states");
    }
    status = reserve_past(state, count, err);
    slc_checkpoint_seek(reader, "past");
    SLC_TRY(status);
    for (unsigned i = 0; i < count; i++) {
        struct slc_cp_iteration past = {.iteration = i + 1};

        past.fit = slc_checkpoint_get_f64(reader);
        past.delta = slc_checkpoint_get_f64(reader);
        past.seconds = slc_checkpoint_get_f64(reader);
        past.bytes_read = slc_checkpoint_get_u64(reader);
        past.passes = (unsigned)slc_checkpoint_get_u64(reader);
        uint64_t singular = slc_checkpoint_get_u64(reader);
        for (unsigned n = 0; n < state->order; n++) {
            past.singular[n] = (singular >> n & 1U) != 0;
        }
        read_numbers(reader, past.mode_seconds, state->order);
        state->method->record(state, &past);
        SLC_TRY(cp_checkpoint_past(state, &past, err));
    }
    return slc_checkpoint_end(reader, err);
}

/* Uses the saved result of a trial if the plan would make the same trial. */
static void restore_choice(struct slc_conflict_choice *choice,
                           const struct slc_conflict_choice *saved)
{
    if (choice->rival != SLC_CONFLICT_AUTO && saved->rival == SLC_CONFLICT_AUTO &&
        (saved->chosen == choice->chosen || saved->chosen == choice->rival)) {
        *choice = *saved;
    }
}

static void restore_numbers(struct cp_state *state, const struct slc_cp_saved *saved)
{
    struct slc_cp_result *result = state->result;

    for (unsigned n = 0; n < state->order && saved->threads == state->plan->threads; n++) {
        restore_choice(&result->choices[n], &saved->choices[n]);
        restore_choice(&result->second_choices[n], &saved->second_choices[n]);
    }
    state->part = saved->part;
    state->settled = saved->settled;
    state->place = saved->place;
    state->fit = saved->fit;
    state->inner = saved->inner;
    state->seconds_before = saved->times.total;
    state->unsaved = false;
    result->iterations = saved->iterations;
    result->fit = saved->fit;
    result->times = saved->times;
    result->checkpoints = saved->checkpoints;
    result->checkpoints.resumes++;
    result->resume_iteration = saved->iterations + 1;
    result->resume_mode = state->mode_order[saved->place];
}

static enum slc_status load_checkpoint(struct cp_state *state,
                                       struct slc_checkpoint_reader *reader,
                                       const struct slc_cp_saved *saved,
                                       struct slc_error *err)
{
    SLC_TRY(cp_part_check(state, saved, err));
    SLC_TRY(cp_factors_create(state, err));
    SLC_TRY(read_matrices(state, reader, err));
    SLC_TRY(read_pending(state, reader, saved->pending, err));
    SLC_TRY(read_past(state, reader, saved->past_count, err));
    if (state->method->restore != NULL) {
        SLC_TRY(state->method->restore(state, reader, err));
    }
    restore_numbers(state, saved);
    return SLC_OK;
}

static void report_resume(const struct cp_state *state, const struct slc_cp_saved *saved)
{
    const struct slc_cp_resume resume = {.iteration = state->result->resume_iteration,
                                         .mode = state->result->resume_mode,
                                         .seconds = saved->times.total,
                                         .past = state->past,
                                         .past_count = saved->past_count};

    if (state->options->resumed != NULL) {
        state->options->resumed(state->options->context, &resume);
    }
}

enum slc_status cp_resume(struct cp_state *state, bool *resumed, struct slc_error *err)
{
    struct slc_cp_saved saved;
    char *theirs = NULL;

    *resumed = false;
    state->unsaved = true;
    if (state->options->checkpoint == NULL) {
        return SLC_OK;
    }
    state->identity = slc_malloc(SLC_CP_IDENTITY_BYTES);
    theirs = slc_malloc(SLC_CP_IDENTITY_BYTES);
    if (state->identity == NULL || theirs == NULL) {
        slc_free(theirs);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the identity of a checkpoint");
    }
    enum slc_status status = cp_identity(state, state->identity, err);
    struct slc_checkpoint_reader *reader = slc_checkpoint_found(state->options->checkpoint);
    if (status == SLC_OK && reader != NULL) {
        status = slc_cp_saved_read(reader, theirs, &saved, err);
        SLC_THEN(status, cp_identity_compare(state->identity, theirs, err));
        SLC_THEN(status, load_checkpoint(state, reader, &saved, err));
        if (status == SLC_OK) {
            *resumed = true;
            report_resume(state, &saved);
        } else {
            slc_error_locate_file(err, slc_checkpoint_reader_path(reader));
        }
    }
    slc_free(theirs);
    return status;
}
